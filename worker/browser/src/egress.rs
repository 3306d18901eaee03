//! Asks the egress proxy why it refused a page.
//!
//! Chromium hides the proxy's answer behind `ERR_TUNNEL_CONNECTION_FAILED`: a `CONNECT` of our own to the same host gets the
//! reason. It costs one connection, and sends the site no request. Over plain HTTP the answer is shown as if it were the
//! site's page; it has a mark there that no site knows beforehand.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use url::Url;
use weir_shared::clock;

use super::error::RenderError;

/// How long the question may take; the proxy has just answered the same one.
const LIMIT: Duration = Duration::from_secs(5);

/// Why `proxy` refuses `url`, or `None` when it does not.
pub(super) async fn refusal(proxy: SocketAddr, url: &Url, deadline: Instant) -> Option<RenderError> {
    let target = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
    let ask = async {
        let mut stream = TcpStream::connect(proxy).await.ok()?;
        stream.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes()).await.ok()?;
        let mut head = Vec::with_capacity(1024);
        while head.len() < 16 * 1024 && !head.windows(4).any(|w| w == b"\r\n\r\n") {
            if stream.read_buf(&mut head).await.ok()? == 0 {
                break;
            }
        }
        reason(&String::from_utf8_lossy(&head))
    };
    tokio::time::timeout_at(deadline.min(clock::deadline(LIMIT)), ask).await.ok().flatten()
}

/// Why the proxy has given no page, from the text that it has put in its place. `None`: the text is a site's.
pub(super) fn told(text: &str) -> Option<RenderError> {
    weir_fetch::refusal_in(text).map(error_of)
}

fn reason(head: &str) -> Option<RenderError> {
    let word = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("x-weir-egress").then(|| value.trim().to_ascii_lowercase())
    })?;
    Some(error_of(&word))
}

fn error_of(word: &str) -> RenderError {
    match word {
        "blocked" => RenderError::AddressBlocked,
        "filtered" | "vendor" => RenderError::Site("ERR_BLOCKED_BY_CLIENT".into()),
        "dns" => RenderError::Dns,
        "lookup" => RenderError::Site("ERR_NAME_RESOLUTION_FAILED".into()),
        "upstream" => RenderError::Proxy,
        "answer" => RenderError::Site("ERR_EMPTY_RESPONSE".into()),
        _ => RenderError::Site("ERR_CONNECTION_FAILED".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_read_from_the_proxys_header() {
        let head = |word: &str| format!("HTTP/1.1 403 Forbidden\r\nx-weir-egress: {word}\r\n\r\n");
        assert!(matches!(reason(&head("blocked")), Some(RenderError::AddressBlocked)));
        assert!(matches!(reason(&head("dns")), Some(RenderError::Dns)));
        assert!(matches!(reason(&head("lookup")), Some(RenderError::Site(_))), "it may exist");
        assert!(matches!(reason(&head("upstream")), Some(RenderError::Proxy)));
        assert!(matches!(reason(&head("connect")), Some(RenderError::Site(_))));
        assert!(reason("HTTP/1.1 200 OK\r\n\r\n").is_none());
    }
}
