//! A web site whose pages a test writes and changes while it runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

#[derive(Default)]
struct State {
    pages: HashMap<String, (u16, String)>,
    /// Head of each request, in order.
    heads: Vec<String>,
}

/// Serves HTML on a port of 127.0.0.1 until it is dropped; what nobody wrote is a 404.
pub struct OwnPages {
    port: u16,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl OwnPages {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            loop {
                let Ok((mut socket, _)) = listener.accept().await else { return };
                let state = Arc::clone(&shared);
                tokio::spawn(async move {
                    let mut head = String::new();
                    while !head.contains("\r\n\r\n") {
                        let mut part = [0; 4096];
                        let Ok(count @ 1..) = socket.read(&mut part).await else { return };
                        head.push_str(&String::from_utf8_lossy(&part[..count]));
                    }
                    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
                    let (status, body) = {
                        let mut state = state.lock().unwrap();
                        state.heads.push(head);
                        state.pages.get(&path).cloned().unwrap_or((404, "<p>There is no such page.</p>".to_owned()))
                    };
                    let head = format!(
                        "HTTP/1.1 {status} X\r\ncontent-type: text/html; charset=utf-8\r\nconnection: close\r\n"
                    );
                    let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
                    let _ = socket.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { port, state, task }
    }

    /// Writes a page, from its body's HTML; returns its address.
    pub fn put(&self, path: &str, html: &str) -> String {
        self.put_with(
            path,
            200,
            &format!("<!DOCTYPE html><html lang=en><title>A page</title><body>{html}</body></html>"),
        )
    }

    /// The same with a status and the whole document.
    pub fn put_with(&self, path: &str, status: u16, document: &str) -> String {
        self.state.lock().unwrap().pages.insert(path.to_owned(), (status, document.to_owned()));
        self.url(path)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Heads of the requests for a path so far.
    pub fn heads(&self, path: &str) -> Vec<String> {
        let state = self.state.lock().unwrap();
        state.heads.iter().filter(|head| head.split(' ').nth(1) == Some(path)).cloned().collect()
    }
}

impl Drop for OwnPages {
    fn drop(&mut self) {
        self.task.abort();
    }
}
