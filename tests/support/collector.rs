//! A collector of traces: takes OTLP over HTTP in JSON as the test says, and keeps what it was sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How it takes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taking {
    Well,
    /// With this status.
    Badly(u16),
    /// The connection stays open without an answer.
    Hanging,
}

/// A span as it was sent.
#[derive(Debug, Clone)]
pub struct SentSpan {
    pub service: String,
    pub name: String,
    pub trace: String,
    pub id: String,
    pub parent: String,
    /// Nanoseconds since 1970.
    pub began: u64,
    pub ended: u64,
    /// What is said of it, numbers as text.
    pub values: HashMap<String, String>,
    pub is_error: bool,
}

/// Takes calls until it is dropped.
pub struct Collector {
    pub url: String,
    /// Bodies of the calls, whole.
    calls: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Collector {
    pub async fn start(taking: Taking) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let calls: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&calls);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(take(socket, taking, Arc::clone(&log)));
            }
        });
        Self { url, calls, task }
    }

    /// Everything that came, as text.
    pub fn text(&self) -> String {
        self.calls.lock().unwrap().join("\n")
    }

    pub fn call_count(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    /// The spans so far, by the time at which they began.
    pub fn spans(&self) -> Vec<SentSpan> {
        let calls = self.calls.lock().unwrap().clone();
        let bodies = calls.iter().map(|body| serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {body}")));
        let mut spans: Vec<SentSpan> = bodies.flat_map(|body: Value| spans_in(&body)).collect();
        spans.sort_by_key(|span| span.began);
        spans
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(mut socket: TcpStream, taking: Taking, log: Arc<Mutex<Vec<String>>>) {
    let mut bytes = Vec::new();
    // Calls of a kept connection come one after the other.
    loop {
        let Some((head, body)) = request(&mut socket, &mut bytes).await else { return };
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        assert!(head.to_ascii_lowercase().contains("content-type: application/json"), "{head}");
        log.lock().unwrap().push(body);
        let status = match taking {
            Taking::Well => 200,
            Taking::Badly(status) => status,
            Taking::Hanging => return std::future::pending().await,
        };
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}");
        if socket.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The next request; `None` at the end of the connection.
async fn request(socket: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<(String, String)> {
    loop {
        if let Some(at) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at + 4]).into_owned();
            let lower = head.to_ascii_lowercase();
            let length = lower.split("content-length: ").nth(1)?.split("\r\n").next()?.parse::<usize>().ok()?;
            if bytes.len() >= at + 4 + length {
                let body = String::from_utf8_lossy(&bytes[at + 4..at + 4 + length]).into_owned();
                bytes.drain(..at + 4 + length);
                return Some((head, body));
            }
        }
        let mut part = [0; 65_536];
        let Ok(count @ 1..) = socket.read(&mut part).await else { return None };
        bytes.extend_from_slice(&part[..count]);
    }
}

fn spans_in(body: &Value) -> Vec<SentSpan> {
    let list = |value: &Value| value.as_array().unwrap_or_else(|| panic!("a list: {value}")).clone();
    let mut found = Vec::new();
    for resource in list(&body["resourceSpans"]) {
        let service = values(&resource["resource"]["attributes"])["service.name"].clone();
        for span in list(&resource["scopeSpans"]).iter().flat_map(|scope| list(&scope["spans"])) {
            let text = |key: &str| span[key].as_str().unwrap_or_else(|| panic!("{key} is text: {span}")).to_owned();
            found.push(SentSpan {
                service: service.clone(),
                name: text("name"),
                trace: text("traceId"),
                id: text("spanId"),
                parent: text("parentSpanId"),
                began: text("startTimeUnixNano").parse().unwrap(),
                ended: text("endTimeUnixNano").parse().unwrap(),
                values: values(&span["attributes"]),
                is_error: span["status"]["code"] == 2,
            });
        }
    }
    found
}

fn values(attributes: &Value) -> HashMap<String, String> {
    let attributes = attributes.as_array().unwrap().iter();
    attributes
        .map(|attribute| {
            let value = &attribute["value"];
            let value = value["stringValue"].as_str().or(value["intValue"].as_str());
            let key = attribute["key"].as_str().unwrap().to_owned();
            (key, value.unwrap_or_else(|| panic!("{attribute}")).to_owned())
        })
        .collect()
}
