//! The proxy as a browser meets it.

use std::collections::HashMap;
use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use weir_shared::clock;

use super::*;

fn guard() -> AddressGuard {
    let host = |name: &str, ip: &str| (name.to_owned(), ip.parse::<IpAddr>().unwrap());
    let hosts = [host("site.test", "127.0.0.1"), host("inner.test", "10.0.0.1"), host("ads.test", "127.0.0.1")];
    AddressGuard::new(vec!["127.0.0.1/32".parse().unwrap()], HashMap::from(hosts))
}

struct NoAds;
impl HostFilter for NoAds {
    fn blocks(&self, host: &str) -> bool {
        host == "ads.test"
    }
}

async fn proxy() -> EgressProxy {
    let options = EgressOptions { filter: Some(Arc::new(NoAds)), ..EgressOptions::default() };
    EgressProxy::start_with(guard(), options).await.unwrap()
}

/// Sends what it was sent back as the body of its answer; `/ws` switches and echoes.
async fn origin() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut part = vec![0; 64 * 1024];
                while let Ok(read @ 1..) = stream.read(&mut part).await {
                    let seen = String::from_utf8_lossy(&part[..read]).into_owned();
                    let answer = if seen.starts_with("GET /ws ") {
                        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n".into()
                    } else if seen.starts_with("GET ") || seen.starts_with("POST ") {
                        let length = seen.len();
                        format!(
                            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nKeep-Alive: timeout=5\r\nConnection: keep-alive\r\n\r\n{seen}"
                        )
                    } else {
                        seen
                    };
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    port
}

async fn ask(proxy: &EgressProxy, request: &str) -> String {
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    read_some(&mut stream).await
}

/// A whole answer, or what arrives where it is none, and what follows it at once.
async fn read_some<S: AsyncRead + Unpin>(stream: &mut S) -> String {
    let (mut all, mut part) = (Vec::new(), vec![0; 64 * 1024]);
    let mut patience = LONG;
    while let Ok(Ok(read @ 1..)) = tokio::time::timeout(patience, stream.read(&mut part)).await {
        all.extend_from_slice(&part[..read]);
        if is_whole(&String::from_utf8_lossy(&all)) {
            patience = Duration::from_millis(100);
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// For what comes soon, on a machine on which every process may stand still for seconds.
const LONG: Duration = Duration::from_secs(30);

/// An answer with as much of a body as it announces.
fn is_whole(text: &str) -> bool {
    if !text.starts_with("HTTP/") {
        return true;
    }
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let head = head.to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

#[tokio::test]
async fn requests_go_out_in_origin_form_without_the_proxys_headers() {
    let (proxy, port) = (proxy().await, origin().await);
    let answer = ask(
        &proxy,
        &format!(
            "GET http://site.test:{port}/a?b=c HTTP/1.1\r\nHost: wrong.test\r\nProxy-Connection: keep-alive\r\n\
             Proxy-Authorization: Basic eA==\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-Own: stays\r\n\
             Upgrade: h2c\r\nTE: trailers\r\n\r\n"
        ),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let (head, seen) = answer.split_once("\r\n\r\n").unwrap();
    assert!(!head.to_lowercase().contains("keep-alive"), "{head}");
    assert!(seen.starts_with(&format!("GET /a?b=c HTTP/1.1\r\nHost: site.test:{port}\r\n")), "{seen}");
    assert!(seen.contains("X-Own: stays"));
    for gone in ["proxy-", "x-hop", "upgrade", "te:", "wrong.test"] {
        assert!(!seen.to_lowercase().contains(gone), "{gone} in {seen}");
    }
}

#[tokio::test]
async fn one_connection_serves_many_requests_to_several_origins() {
    let (proxy, one, two) = (proxy().await, origin().await, origin().await);
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    for port in [one, one, two, one] {
        let request = format!("POST http://site.test:{port}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_some(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(&format!("site.test:{port}")), "{answer}");
    }
    assert_eq!(proxy.metrics().requests.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn inner_addresses_are_refused_in_every_form_and_on_both_ways() {
    let proxy = proxy().await;
    for host in [
        "10.0.0.1",
        "127.0.0.2",
        "127.2",
        "0x7f.2",
        "2130706434",
        "[::1]",
        "[::ffff:10.0.0.1]",
        "[64:ff9b::a00:1]",
        "0.0.0.0",
        "169.254.169.254",
        "inner.test",
        "INNER.test.",
        "[fd00::1]",
    ] {
        let plain = ask(&proxy, &format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert!(plain.starts_with("HTTP/1.1 403") && plain.contains("x-weir-egress: blocked"), "{host}: {plain}");
        let tunnel = ask(&proxy, &format!("CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n")).await;
        assert!(tunnel.starts_with("HTTP/1.1 403") && tunnel.contains("x-weir-egress: blocked"), "{host}: {tunnel}");
    }
    assert_eq!(proxy.metrics().denied_address.load(Ordering::Relaxed), 26);
}

#[tokio::test]
async fn ports_that_browsers_refuse_are_refused_on_both_ways_unless_opened() {
    // One of theirs that any user may listen on and nobody does.
    let ports = [10_080, 6_697, 6_669, 6_668, 5_061, 4_190];
    let mut found = None;
    for port in ports {
        found = found.or(TcpListener::bind(("127.0.0.1", port)).await.ok().map(|listener| (port, listener)));
    }
    let (port, listener) = found.expect("a port that browsers refuse is free");
    let connect = |port: u16| format!("CONNECT site.test:{port} HTTP/1.1\r\nHost: site.test:{port}\r\n\r\n");
    let proxy = proxy().await;
    for port in [22, 25, 6_667, port] {
        let plain = format!("GET http://site.test:{port}/ HTTP/1.1\r\nHost: x\r\n\r\n");
        for request in [connect(port), plain] {
            let answer = ask(&proxy, &request).await;
            assert!(
                answer.starts_with("HTTP/1.1 403") && answer.contains("x-weir-egress: blocked"),
                "{request}{answer}"
            );
        }
    }
    let nets = vec!["127.0.0.1/32".parse().unwrap()];
    let hosts = HashMap::from([("site.test".to_owned(), "127.0.0.1".parse().unwrap())]);
    let opened = EgressProxy::start(AddressGuard::with_ports(nets, hosts, vec![port]), None).await.unwrap();
    let request = connect(port);
    let (answer, accepted) = tokio::join!(ask(&opened, &request), listener.accept());
    assert!(answer.starts_with("HTTP/1.1 200") && accepted.is_ok(), "{answer}");
    assert!(ask(&opened, &connect(22)).await.starts_with("HTTP/1.1 403"));
}

#[tokio::test]
async fn lists_of_names_come_first() {
    let proxy = proxy().await;
    for (target, word) in [
        ("ads.test:443", "filtered"),
        ("ADS.test.:443", "filtered"),
        ("update.googleapis.com:443", "vendor"),
        ("Clients2.Google.com:443", "vendor"),
    ] {
        let answer = ask(&proxy, &format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains(word), "{target}: {answer}");
    }
}

#[tokio::test]
async fn no_proxy_of_this_process_is_a_target() {
    let (first, second) = (proxy().await, proxy().await);
    for address in [first.addr(), second.addr()] {
        let answer = ask(&first, &format!("GET http://{address}/ HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        assert!(answer.contains("x-weir-egress: blocked"), "{answer}");
        let named = format!("CONNECT site.test:{} HTTP/1.1\r\nHost: x\r\n\r\n", address.port());
        assert!(ask(&first, &named).await.contains("x-weir-egress: blocked"));
    }
}

#[tokio::test]
async fn broken_requests_are_refused() {
    let (proxy, port) = (proxy().await, origin().await);
    let at = format!("http://site.test:{port}/");
    for request in [
        "GET / HTTP/1.1\r\nHost: site.test\r\n\r\n".to_owned(),
        "GET https://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n".to_owned(),
        "GET ftp://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n".to_owned(),
        "CONNECT site.test HTTP/1.1\r\nHost: site.test\r\n\r\n".to_owned(),
        "CONNECT site.test:0 HTTP/1.1\r\nHost: site.test\r\n\r\n".to_owned(),
        format!("GET http://u:p@site.test:{port}/ HTTP/1.1\r\nHost: x\r\n\r\n"),
        format!("POST {at} HTTP/1.1\r\nHost: x\r\nContent-Length: 5x\r\n\r\nhello"),
        format!("POST {at} HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\nhello"),
        format!("POST {at} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
        format!("POST {at} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nhello"),
        format!("GET {at} HTTP/1.1\r\nHost: x\r\nBad Header: x\r\n\r\n"),
        format!("GET {at} HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "y".repeat(2 * MAX_HEAD)),
    ] {
        let answer = ask(&proxy, &request).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{}: {answer}", &request[..request.len().min(90)]);
    }
}

#[tokio::test]
async fn a_second_length_never_passes() {
    let (proxy, port) = (proxy().await, origin().await);
    let smuggle = format!(
        "POST http://site.test:{port}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nhello\r\n0\r\n\r\n"
    );
    let answer = ask(&proxy, &smuggle).await.to_lowercase();
    let seen = answer.split_once("\r\n\r\n").unwrap().1;
    assert!(seen.contains("transfer-encoding: chunked") && !seen.contains("content-length"), "{answer}");
}

#[tokio::test]
async fn an_origin_that_promises_an_answer_without_end_is_cut_and_a_few_promises_are_none_of_our_business() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let flooded = tokio::spawn(async move {
        let (mut few, _) = listener.accept().await.unwrap();
        let promises = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n".repeat(3);
        let _ = few.read(&mut [0; 4096]).await.unwrap();
        let answer = format!("{promises}HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nthere");
        few.write_all(answer.as_bytes()).await.unwrap();
        let (mut endless, _) = listener.accept().await.unwrap();
        let promises = "HTTP/1.1 100 X\r\n\r\n".repeat(200);
        let mut sent = 0_usize;
        // It ends when the other side has hung up.
        while endless.write_all(promises.as_bytes()).await.is_ok() {
            sent += promises.len();
            assert!(sent < 64 << 20, "nobody hangs up");
        }
    });
    let proxy = proxy().await;
    let request = format!("GET http://site.test:{port}/ HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = ask(&proxy, &request).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("there"), "{answer}");
    let answer = ask(&proxy, &request).await;
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    flooded.await.unwrap();
}

#[tokio::test]
async fn unreachable_targets_say_so() {
    let proxy = proxy().await;
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    for request in [
        format!("GET http://site.test:{unused}/ HTTP/1.1\r\nHost: x\r\n\r\n"),
        format!("CONNECT site.test:{unused} HTTP/1.1\r\nHost: x\r\n\r\n"),
    ] {
        let answer = ask(&proxy, &request).await;
        assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("x-weir-egress: connect"), "{answer}");
    }
}

#[tokio::test]
async fn tunnels_carry_bytes_both_ways_until_the_proxy_goes() {
    let (proxy, port) = (proxy().await, origin().await);
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    // The first bytes for the target may come with the request itself.
    stream.write_all(format!("CONNECT site.test:{port} HTTP/1.1\r\nHost: x\r\n\r\nearly").as_bytes()).await.unwrap();
    let mut answer = read_some(&mut stream).await;
    if !answer.ends_with("early") {
        answer += &read_some(&mut stream).await;
    }
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("early"), "{answer}");
    stream.write_all(b"late").await.unwrap();
    assert_eq!(read_some(&mut stream).await, "late");
    drop(proxy);
    let ended = tokio::time::timeout(LONG, stream.read(&mut [0; 8])).await;
    assert!(matches!(ended, Ok(Ok(0) | Err(_))));
}

#[tokio::test]
async fn websockets_pass_without_a_tunnel() {
    let (proxy, port) = (proxy().await, origin().await);
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    let request = format!(
        "GET http://site.test:{port}/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = read_some(&mut stream).await.to_lowercase();
    assert!(answer.starts_with("http/1.1 101") && answer.contains("upgrade: websocket"), "{answer}");
    stream.write_all(b"frame").await.unwrap();
    assert_eq!(read_some(&mut stream).await, "frame");
}

#[tokio::test]
async fn an_upstream_proxy_is_used_after_the_judgement() {
    let upstream = origin().await;
    let options = EgressOptions {
        upstream: Some(format!("http://u:p@127.0.0.1:{upstream}").parse().unwrap()),
        ..Default::default()
    };
    let proxy = EgressProxy::start_with(guard(), options).await.unwrap();
    let answer = ask(&proxy, "GET http://site.test/x HTTP/1.1\r\nHost: y\r\n\r\n").await;
    let seen = answer.split_once("\r\n\r\n").unwrap().1;
    assert!(seen.starts_with("GET http://site.test/x HTTP/1.1\r\nHost: site.test\r\n"), "{answer}");
    assert!(seen.to_lowercase().contains("proxy-authorization: basic dtpw"), "{answer}");
    let answer = ask(&proxy, "GET http://inner.test/x HTTP/1.1\r\nHost: y\r\n\r\n").await;
    assert!(answer.contains("x-weir-egress: blocked"));
}

#[tokio::test]
async fn connections_over_the_limit_wait() {
    let port = origin().await;
    let options = EgressOptions { max_connections: Some(1), ..EgressOptions::default() };
    let proxy = EgressProxy::start_with(guard(), options).await.unwrap();
    let first = TcpStream::connect(proxy.addr()).await.unwrap();
    let mut second = TcpStream::connect(proxy.addr()).await.unwrap();
    let request = format!("GET http://site.test:{port}/ HTTP/1.1\r\nHost: x\r\n\r\n");
    second.write_all(request.as_bytes()).await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(150), second.read(&mut [0; 8])).await;
    assert!(early.is_err(), "served beside the first");
    drop(first);
    assert!(read_some(&mut second).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn idle_connections_and_tunnels_are_closed_and_busy_ones_are_not() {
    let port = origin().await;
    let options = EgressOptions { idle_timeout: Some(Duration::from_secs(3)), ..EgressOptions::default() };
    let proxy = EgressProxy::start_with(guard(), options).await.unwrap();
    let mut tunnel = TcpStream::connect(proxy.addr()).await.unwrap();
    tunnel.write_all(format!("CONNECT site.test:{port} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
    assert!(read_some(&mut tunnel).await.starts_with("HTTP/1.1 200"));
    // For longer than it may be idle.
    let began = clock::instant();
    while began.elapsed() < Duration::from_secs(4) {
        tunnel.write_all(b"ping").await.unwrap();
        assert_eq!(read_some(&mut tunnel).await, "ping");
    }
    let mut unused = TcpStream::connect(proxy.addr()).await.unwrap();
    for stream in [&mut tunnel, &mut unused] {
        let ended = tokio::time::timeout(LONG, stream.read(&mut [0; 8])).await;
        assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{ended:?}");
    }
}
