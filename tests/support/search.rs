//! A search backend without a web: it answers what the test says of each request, and keeps what it was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// One request.
#[derive(Debug, Clone)]
pub struct SearchAsked {
    pub path: String,
    pub query: HashMap<String, String>,
    /// Headers in lower case.
    pub head: String,
}

/// One answer.
#[derive(Debug, Clone)]
pub enum Answered {
    Json(Value),
    /// A page for people.
    Html,
    /// Called JSON, and none.
    Text(&'static str),
    /// With further header lines.
    Status(u16, &'static str),
    After(Duration, Value),
    /// The connection stays open without an answer.
    Hang,
}

/// Answers until it is dropped.
pub struct SearchStandIn {
    pub url: String,
    asked: Arc<Mutex<Vec<SearchAsked>>>,
    task: JoinHandle<()>,
}

impl SearchStandIn {
    pub async fn start(answer: impl Fn(&SearchAsked) -> Answered + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<SearchAsked>>> = Arc::default();
        let (log, answer) = (Arc::clone(&asked), Arc::new(answer));
        let task = tokio::spawn(async move {
            loop {
                let Ok((mut socket, _)) = listener.accept().await else { return };
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    // Requests of a kept connection come one after the other.
                    loop {
                        let end = loop {
                            if let Some(at) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
                                break at + 4;
                            }
                            let mut part = [0; 8_192];
                            let Ok(count @ 1..) = socket.read(&mut part).await else { return };
                            bytes.extend_from_slice(&part[..count]);
                        };
                        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                        bytes.drain(..end);
                        let target = head.split(' ').nth(1).unwrap_or_default();
                        let url = reqwest::Url::parse(&format!("http://backend{target}")).unwrap();
                        let request = SearchAsked {
                            path: url.path().to_owned(),
                            query: url.query_pairs().into_owned().collect(),
                            head: head.to_ascii_lowercase(),
                        };
                        log.lock().unwrap().push(request.clone());
                        let json = "content-type: application/json";
                        let (status, headers, body) = match answer(&request) {
                            Answered::Hang => return std::future::pending().await,
                            Answered::Html => {
                                (200, "content-type: text/html", "<html><h1>Hello</h1></html>".to_owned())
                            }
                            Answered::Text(text) => (200, json, text.to_owned()),
                            Answered::Status(status, headers) => (status, headers, String::new()),
                            Answered::Json(body) => (200, json, body.to_string()),
                            Answered::After(time, body) => {
                                tokio::time::sleep(time).await;
                                (200, json, body.to_string())
                            }
                        };
                        let head =
                            format!("HTTP/1.1 {status} X\r\n{headers}\r\ncontent-length: {}\r\n\r\n", body.len());
                        if socket.write_all((head + &body).as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, asked, task }
    }

    /// A SearXNG that finds these pages on its first page, whatever is looked for.
    pub async fn finding(urls: Vec<String>) -> Self {
        Self::start(move |asked| Answered::Json(found(if asked.query["pageno"] == "1" { &urls } else { &[] }))).await
    }

    /// A Brave Search API that finds these pages on its first page, for callers with this key.
    pub async fn brave(urls: Vec<String>, key: &'static str) -> Self {
        Self::start(move |asked| {
            if !asked.head.contains(&format!("x-subscription-token: {key}\r\n")) {
                return Answered::Status(422, "content-type: application/json");
            }
            let count: usize = asked.query["count"].parse().unwrap();
            let is_first = asked.query.get("offset").is_none_or(|offset| offset == "0");
            let urls = &urls[..if is_first { count.min(urls.len()) } else { 0 }];
            let results: Vec<Value> = urls.iter().enumerate().map(brave_hit).collect();
            match asked.path.as_str() {
                "/web/search" => Answered::Json(json!({
                    "type": "search", "query": {"original": asked.query["q"], "more_results_available": false},
                    "web": {"type": "search", "results": results},
                })),
                "/news/search" | "/images/search" => Answered::Json(json!({"type": "news", "results": results})),
                _ => Answered::Status(404, "content-type: application/json"),
            }
        })
        .await
    }

    /// A SearXNG, or a Brave Search API, that fails in the way that it is asked for.
    pub async fn failing(is_brave: bool) -> Self {
        let shaped = move |results: Value| {
            let brave = json!({"query": {"more_results_available": true}, "web": {"results": results}});
            Answered::Json(if is_brave { brave } else { json!({"results": results}) })
        };
        let full: Vec<String> = (0..20).map(|n| format!("https://hit-{n}.example/")).collect();
        let full: Value = full.iter().enumerate().map(brave_hit).collect();
        Self::start(move |asked| {
            let is_first = if is_brave { asked.query["offset"] == "0" } else { asked.query["pageno"] == "1" };
            match asked.query["q"].as_str() {
                "too many" => Answered::Status(429, "retry-after: 300"),
                "a page for people" => Answered::Html,
                "no json" => Answered::Text("{\"results\": ["),
                "broken" => Answered::Status(500, "x-broken: yes"),
                "slow" => Answered::Hang,
                "empty" => shaped(json!([])),
                "no list" => shaped(json!("text")),
                "odd" => shaped(
                    json!([7, null, {"url": 1}, {"url": "ftp://x/"}, {"url": "https://ok.example/", "title": []}]),
                ),
                "repeated" => shaped(full.clone()),
                "too many later" if is_first => shaped(full.clone()),
                "too many later" => Answered::Status(429, "retry-after: 300"),
                other => panic!("{other} is not in the script"),
            }
        })
        .await
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<SearchAsked> {
        self.asked.lock().unwrap().clone()
    }
}

/// A result as Brave has it, of any source.
fn brave_hit((n, url): (usize, &String)) -> Value {
    json!({"type": "search_result", "url": url, "title": format!("Hit {n}"), "description": format!("What is found at {n}."),
        "page_age": "2026-11-01T10:00:00", "thumbnail": {"src": format!("https://pictures.example/{n}-small.png")},
        "properties": {"url": format!("https://pictures.example/{n}.png"), "width": 640, "height": 480}})
}

/// SearXNG's answer with these pages. Each has a picture, too.
pub fn found(urls: &[String]) -> Value {
    let one = |(n, url): (usize, &String)| {
        json!({"url": url, "title": format!("Hit {n}"), "content": format!("What is found at {n}."), "engine": "x",
            "img_src": format!("https://pictures.example/{n}.png"), "resolution": "640 x 480",
            "publishedDate": "2026-11-01T10:00:00"})
    };
    json!({"query": "x", "results": urls.iter().enumerate().map(one).collect::<Vec<_>>(), "unresponsive_engines": []})
}

impl Drop for SearchStandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}
