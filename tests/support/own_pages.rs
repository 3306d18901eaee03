//! A web site whose pages a test writes and changes while it runs.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

#[derive(Clone)]
struct Page {
    status: u16,
    /// Each with its line's end.
    headers: String,
    body: String,
}

#[derive(Default)]
struct State {
    pages: HashMap<String, Page>,
    /// Pages that only requests with a word in their head get; others a 403.
    words: HashMap<String, String>,
    /// Pages that are asked for and not answered: the connection is closed.
    silent: HashSet<String>,
    /// Pages that end before the length that they announce.
    cut: HashSet<String>,
    /// Pages that are not answered before their gate is open.
    gates: HashMap<String, watch::Receiver<bool>>,
    /// Head of each request, in order.
    heads: Vec<String>,
}

/// A page that is asked for and not answered while this is kept.
pub struct Gate(watch::Sender<bool>);

impl Gate {
    /// Answers who waits, and who comes later.
    pub fn open(self) {}
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

impl Page {
    fn html(status: u16, body: &str) -> Self {
        Self { status, headers: "content-type: text/html; charset=utf-8\r\n".to_owned(), body: body.to_owned() }
    }
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
                    let gate = {
                        let mut state = state.lock().unwrap();
                        state.heads.push(head.clone());
                        state.gates.get(&path).cloned()
                    };
                    if let Some(mut gate) = gate {
                        // An error says that the test is over.
                        let _ = gate.wait_for(|is_open| *is_open).await;
                    }
                    let (is_cut, Page { status, headers, body }) = {
                        let state = state.lock().unwrap();
                        if state.silent.contains(&path) {
                            return;
                        }
                        let is_refused = state.words.get(&path).is_some_and(|word| !head.contains(word));
                        let refused = is_refused.then(|| Page::html(403, "<p>You shall not pass.</p>"));
                        let page = refused
                            .or_else(|| state.pages.get(&path).cloned())
                            .unwrap_or_else(|| Page::html(404, "<p>There is no such page.</p>"));
                        (state.cut.contains(&path), page)
                    };
                    let head = format!("HTTP/1.1 {status} X\r\n{headers}connection: close\r\n");
                    let answer =
                        format!("{head}content-length: {}\r\n\r\n{body}", body.len() + if is_cut { 500 } else { 0 });
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
        self.insert(path, Page::html(status, document))
    }

    /// A redirect.
    pub fn redirect(&self, path: &str, status: u16, to: &str) -> String {
        let headers = format!("location: {to}\r\n");
        self.insert(path, Page { status, headers, body: String::new() })
    }

    /// A file of another kind.
    pub fn put_file(&self, path: &str, content_type: &str, body: &str) -> String {
        let headers = format!("content-type: {content_type}\r\n");
        self.insert(path, Page { status: 200, headers, body: body.to_owned() })
    }

    /// A text that whoever gets it may keep for an hour.
    pub fn put_cached(&self, path: &str, body: &str) -> String {
        let headers = "content-type: text/plain\r\ncache-control: public, max-age=3600\r\n".to_owned();
        self.insert(path, Page { status: 200, headers, body: body.to_owned() })
    }

    fn insert(&self, path: &str, page: Page) -> String {
        self.state.lock().unwrap().pages.insert(path.to_owned(), page);
        self.url(path)
    }

    /// Further headers of a page, each with its line's end.
    pub fn add_headers(&self, path: &str, headers: &str) {
        self.state.lock().unwrap().pages.get_mut(path).expect("a page").headers.push_str(headers);
    }

    /// From now on requests for a page wait until the gate is opened.
    pub fn hold(&self, path: &str) -> Gate {
        let (gate, gated) = watch::channel(false);
        self.state.lock().unwrap().gates.insert(path.to_owned(), gated);
        Gate(gate)
    }

    /// From now on requests for a page are heard, and the connection is closed. Its address.
    pub fn hang_up(&self, path: &str) -> String {
        self.state.lock().unwrap().silent.insert(path.to_owned());
        self.url(path)
    }

    /// From now on a page ends before it is whole.
    pub fn cut(&self, path: &str) {
        self.state.lock().unwrap().cut.insert(path.to_owned());
    }

    /// From now on a page is there only for requests with this word in their head.
    pub fn guard(&self, path: &str, word: &str) {
        self.state.lock().unwrap().words.insert(path.to_owned(), word.to_owned());
    }

    /// The address of a path at another name of this machine.
    pub fn url_at(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Heads of all requests so far.
    pub fn all_heads(&self) -> Vec<String> {
        self.state.lock().unwrap().heads.clone()
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
