//! An upstream proxy as operators have them: it takes whole requests and tunnels, and puts its name into requests.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Forwards until it is dropped.
pub struct ForwardProxy {
    pub url: String,
    seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl ForwardProxy {
    /// Requests through it carry `x-via: NAME`.
    pub async fn start(name: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (log, name) = (Arc::clone(&seen), name.to_owned());
        let task = tokio::spawn(async move {
            loop {
                let Ok((socket, _)) = listener.accept().await else { return };
                let (log, name) = (Arc::clone(&log), name.clone());
                tokio::spawn(async move { serve(socket, &name, &log).await });
            }
        });
        Self { url, seen, task }
    }

    /// First lines of the requests so far.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Every name is this machine's, as the names of `WEIR_ALLOW_HOSTS` are.
fn address_of(authority: &str) -> String {
    match authority.rsplit_once(':') {
        Some((host, port)) if host.parse::<std::net::IpAddr>().is_err() => format!("127.0.0.1:{port}"),
        _ => authority.to_owned(),
    }
}

async fn serve(mut client: TcpStream, name: &str, log: &Mutex<Vec<String>>) -> Option<()> {
    let mut head = String::new();
    while !head.contains("\r\n\r\n") {
        let mut part = [0; 8192];
        let count = client.read(&mut part).await.ok().filter(|count| *count > 0)?;
        head.push_str(&String::from_utf8_lossy(&part[..count]));
    }
    let line = head.lines().next()?.to_owned();
    log.lock().unwrap().push(line.clone());
    let target = line.split(' ').nth(1)?;
    if line.starts_with("CONNECT ") {
        let mut origin = TcpStream::connect(address_of(target)).await.ok()?;
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
        tokio::io::copy_bidirectional(&mut client, &mut origin).await.ok()?;
        return Some(());
    }
    let rest = target.strip_prefix("http://")?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut origin = TcpStream::connect(address_of(host)).await.ok()?;
    let path = if path.is_empty() { "/" } else { path };
    let (_, fields) = head.split_once("\r\n")?;
    let request = format!("GET {path} HTTP/1.1\r\nx-via: {name}\r\nconnection: close\r\n{fields}");
    origin.write_all(request.as_bytes()).await.ok()?;
    tokio::io::copy(&mut origin, &mut client).await.ok()?;
    client.shutdown().await.ok()
}
