//! A worker's private listener without a worker: it opens sessions by moving their rows and answers an execution with
//! what it was asked; the code `refuse` is not run, and `stand in line` waits for other code in vain. What the API makes of sessions can be tested with it on a machine that cannot run any.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use weir_shared::worker_api::SECRET_HEADER;
use weir_shared::{clock, random};

use crate::database::execute;

/// Beats until it is dropped: then it is a worker that died.
pub struct StandIn {
    pub id: String,
    tasks: Vec<JoinHandle<()>>,
}

impl StandIn {
    /// Announces a worker with so many session slots. Workers of the service itself should offer none,
    /// or sessions may be placed there.
    pub async fn start(database_url: &str, slots: u32) -> Self {
        let id = random::id().to_string();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let now = now_ms();
        let sql = format!(
            "INSERT INTO worker_node (id, name, host, pid, address, state, slots, session_slots, started_at, \
             heartbeat_at) VALUES ('{id}', 'stand-in', 'elsewhere', 1, '{address}', 'live', 0, {slots}, {now}, {now})"
        );
        execute(database_url, &sql).await;
        let (url, worker) = (database_url.to_owned(), id.clone());
        let beat = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(500)).await;
                let now = now_ms();
                let sql =
                    format!("UPDATE worker_node SET heartbeat_at = {now} WHERE id = '{worker}' AND state <> 'dead'");
                execute(&url, &sql).await;
            }
        });
        let url = database_url.to_owned();
        let serve = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let url = url.clone();
                tokio::spawn(async move { answer(socket, &url).await });
            }
        });
        Self { id, tasks: vec![beat, serve] }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn now_ms() -> i64 {
    clock::of_machine().0
}

async fn answer(mut socket: TcpStream, database_url: &str) {
    let Some((head, body)) = read(&mut socket).await else { return };
    let line = head.lines().next().unwrap_or_default();
    let has_secret =
        head.lines().any(|l| l.to_ascii_lowercase().starts_with(&format!("{SECRET_HEADER}: ")) && l.len() > 33);
    let (status, body) = if !has_secret {
        ("401 Unauthorized", json!({"error": "no secret"}))
    } else if line.starts_with("POST /sessions HTTP") {
        let (id, now) = (body["id"].as_str().unwrap_or_default(), now_ms());
        let sql = format!(
            "UPDATE browser_session SET state = 'active', opened_at = {now}, last_activity = {now}, \
             expires_at = {now} + ttl_ms WHERE id = '{id}' AND state = 'opening'"
        );
        execute(database_url, &sql).await;
        ("200 OK", json!({}))
    } else if line.contains("/execute HTTP") && body["code"] == "refuse" {
        ("502 Bad Gateway", json!({"error": "the runner did not start"}))
    } else if line.contains("/execute HTTP") && body["code"] == "stand in line" {
        ("409 Conflict", json!({"error": "another call is still running in this session"}))
    } else if line.contains("/execute HTTP") {
        let output = json!({"stdout": body.to_string(), "result": "4", "stderr": "", "exitCode": 0, "killed": false});
        ("200 OK", output)
    } else {
        // A close: the API does without a worker that does not have the session.
        ("404 Not Found", json!({"error": "no such session"}))
    };
    let body = body.to_string();
    let text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
    let _ = socket.write_all(text.as_bytes()).await;
}

/// The head, and the body as JSON.
async fn read(socket: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 16_384];
        let count = socket.read(&mut part).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return Some((head.to_owned(), serde_json::from_str(body).unwrap_or(Value::Null)));
        }
    }
}
