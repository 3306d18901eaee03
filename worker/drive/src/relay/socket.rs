//! The socket that code boxes get as their DevTools port: `/json/version` and the WebSocket, through the same filter as
//! everybody else. Chromium's own socket never enters a code box.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::{Browser, SessionHandle, Source, Upstream, relay_cdp};

/// Largest request head, bytes.
const HEAD: usize = 16 << 10;
/// Time to send a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves the session's filtered DevTools port on `listener` until the session ends.
pub async fn serve_cdp_socket(listener: UnixListener, session: Arc<SessionHandle>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = session.ended.cancelled() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Mostly a lack of descriptors, which come back: try again a little later.
                tracing::warn!(%error, "a code box's connection could not be taken");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // Too many: closed at once.
        let Ok(place) = Arc::clone(&session.places).try_acquire_owned() else { continue };
        let session = Arc::clone(&session);
        tokio::spawn(async move {
            if let Err(error) = serve(stream, &session).await {
                tracing::debug!(%error, "a code box's connection failed");
            }
            drop(place);
        });
    }
}

/// A request, as far as it matters here.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    /// Without the query.
    path: String,
    host: String,
    /// `Sec-WebSocket-Key`, when it asks for a WebSocket.
    key: Option<String>,
}

async fn serve(stream: UnixStream, session: &SessionHandle) -> io::Result<()> {
    // Stays around the stream: it may hold what the client sent after the head.
    let mut stream = BufReader::new(stream);
    let head = tokio::time::timeout(PATIENCE, read_head(&mut stream)).await??;
    let Some(request) = parse(&head) else { return refuse(&mut stream, "400 Bad Request").await };
    if let Some(key) = &request.key {
        // Pages have no sockets of their own here: one connection, all pages, one filter.
        if request.path.starts_with("/devtools/page/") {
            return refuse(&mut stream, "404 Not Found").await;
        }
        let upstream = match Upstream::connect(session.browser.as_ref(), &session.budget).await {
            Ok(upstream) => upstream,
            Err(_) => return refuse(&mut stream, "502 Bad Gateway").await,
        };
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {}\r\n\r\n",
            derive_accept_key(key.as_bytes())
        );
        stream.write_all(answer.as_bytes()).await?;
        relay_cdp(stream, upstream, Source::Code, session).await;
        return Ok(());
    }
    match request.path.trim_end_matches('/') {
        "/json/version" => {
            let mut version = version(session.browser.as_ref()).await.unwrap_or_default();
            let address = format!("ws://{}{}", request.host, session.browser.ws_path());
            version.insert("webSocketDebuggerUrl".to_owned(), address.into());
            answer(&mut stream, "200 OK", &serde_json::Value::Object(version).to_string()).await
        }
        _ => refuse(&mut stream, "404 Not Found").await,
    }
}

/// Everything up to the empty line.
async fn read_head(stream: &mut BufReader<UnixStream>) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(1024);
    while !head.ends_with(b"\r\n\r\n") {
        let left = HEAD.saturating_sub(head.len());
        if stream.take(left as u64).read_until(b'\n', &mut head).await? == 0 {
            return Err(io::Error::other("the request's head is cut short or too long"));
        }
    }
    Ok(head)
}

fn parse(head: &[u8]) -> Option<Request> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?, first.next()?);
    if method != "GET" || !target.starts_with('/') {
        return None;
    }
    let mut request = Request {
        path: target.split('?').next().unwrap_or(target).to_owned(),
        host: "127.0.0.1:9222".to_owned(),
        key: None,
    };
    let (mut upgrade, mut key) = (false, None);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "host" if is_host(value) => request.host = value.to_owned(),
            "upgrade" => upgrade = value.eq_ignore_ascii_case("websocket"),
            "sec-websocket-key" => key = Some(value.to_owned()),
            _ => {}
        }
    }
    request.key = key.filter(|_| upgrade);
    Some(request)
}

fn is_host(text: &str) -> bool {
    !text.is_empty() && text.len() <= 300 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b))
}

/// What Chromium says of itself, without its addresses.
pub(super) async fn version(browser: &dyn Browser) -> io::Result<serde_json::Map<String, serde_json::Value>> {
    let ask = async {
        let mut stream = browser.connect().await?;
        stream.write_all(b"GET /json/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
        let mut answer = Vec::new();
        let mut limited = stream.take(HEAD as u64);
        // Chromium may keep the connection open after the body; the body's end is its closing brace.
        loop {
            let read = limited.read_buf(&mut answer).await?;
            let body = answer.windows(4).position(|w| w == b"\r\n\r\n").map(|at| &answer[at + 4..]);
            if let Some(mut version) =
                body.and_then(|b| serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(b).ok())
            {
                version.retain(|name, _| !name.ends_with("Url"));
                return Ok(version);
            }
            if read == 0 {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    };
    tokio::time::timeout(PATIENCE, ask).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn refuse(stream: &mut (impl AsyncWrite + Unpin), status: &str) -> io::Result<()> {
    answer(stream, status, "{\"error\":\"Not available in a session\"}").await
}

async fn answer(stream: &mut (impl AsyncWrite + Unpin), status: &str, body: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json; charset=UTF-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_clients_write_it() {
        let head = b"GET /json/version/?x=1 HTTP/1.1\r\nHOST: localhost:9222\r\n\r\n";
        let expected = Request { path: "/json/version/".into(), host: "localhost:9222".into(), key: None };
        assert_eq!(parse(head), Some(expected));
        let head = b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k==\r\n\r\n";
        assert_eq!(parse(head).and_then(|r| r.key), Some("k==".to_owned()));
        assert_eq!(parse(b"PUT /json/new HTTP/1.1\r\n\r\n"), None);
        assert_eq!(parse(b"\xff"), None);
        let head = b"GET /json/version HTTP/1.1\r\nHost: a/b\"c\r\n\r\n";
        assert_eq!(parse(head).map(|r| r.host), Some("127.0.0.1:9222".to_owned()));
    }
}
