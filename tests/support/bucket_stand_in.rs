//! A bucket of an S3-compatible store without the store: it keeps what is put, and hangs or is away when the test says so.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketState {
    Well,
    /// Requests stay open without an answer.
    Hangs,
    /// Requests are refused with 503.
    IsAway,
}

/// Serves on a port of 127.0.0.1 until it is dropped.
pub struct BucketStandIn {
    endpoint: String,
    state: watch::Sender<BucketState>,
    turned_away: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

struct Bucket {
    state: watch::Receiver<BucketState>,
    turned_away: Arc<AtomicUsize>,
    objects: Mutex<HashMap<String, Vec<u8>>>,
}

impl BucketStandIn {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (state, seen) = watch::channel(BucketState::Well);
        let turned_away = Arc::<AtomicUsize>::default();
        let bucket = Bucket { state: seen, turned_away: Arc::clone(&turned_away), objects: Mutex::default() };
        let bucket = Arc::new(bucket);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let bucket = Arc::clone(&bucket);
                tokio::spawn(async move { bucket.serve(socket).await });
            }
        });
        Self { endpoint, state, turned_away, task }
    }

    /// The settings of a service that keeps its blobs here.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("WEIR_BLOBS", "s3://pages/weir".to_owned()),
            ("AWS_ENDPOINT_URL", self.endpoint.clone()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "tests".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "tests".to_owned()),
        ]
    }

    /// From now on, also for requests that hang.
    pub fn becomes(&self, state: BucketState) {
        self.state.send_replace(state);
    }

    /// Requests that were not answered as they should be: let hang, or refused.
    pub fn turned_away(&self) -> usize {
        self.turned_away.load(Ordering::Relaxed)
    }
}

impl Drop for BucketStandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Bucket {
    async fn serve(&self, mut socket: TcpStream) {
        let Some((method, key, body)) = request(&mut socket).await else { return };
        let mut state = self.state.clone();
        if *state.borrow() != BucketState::Well {
            self.turned_away.fetch_add(1, Ordering::Relaxed);
        }
        if state.wait_for(|state| *state != BucketState::Hangs).await.is_err() {
            return;
        }
        let (status, content) = if *state.borrow() == BucketState::IsAway {
            (503, Vec::new())
        } else {
            let mut objects = self.objects.lock().await;
            match method.as_str() {
                "PUT" => {
                    objects.insert(key, body);
                    (200, Vec::new())
                }
                "DELETE" => {
                    objects.remove(&key);
                    (204, Vec::new())
                }
                _ => objects.get(&key).map_or((404, Vec::new()), |content| (200, content.clone())),
            }
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\netag: \"1\"\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            content.len()
        );
        let _ = socket.write_all(head.as_bytes()).await;
        let _ = socket.write_all(&content).await;
    }
}

/// Method, path and body.
async fn request(socket: &mut TcpStream) -> Option<(String, String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let head = loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            break end + 4;
        }
        socket.read_buf(&mut bytes).await.ok().filter(|count| *count > 0)?;
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut first = text.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let length = text.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let length: usize = length.unwrap_or(0);
    let mut body = bytes.split_off(head);
    while body.len() < length {
        socket.read_buf(&mut body).await.ok().filter(|count| *count > 0)?;
    }
    Some((method, path, body))
}
