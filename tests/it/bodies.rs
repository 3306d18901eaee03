//! What bodies of requests may cost the API: no more than ten times their length, on every route, and no longer than they
//! are needed. And what large answers may.

use std::cell::RefCell;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use weir_shared::clock;
use weir_tests::{Database, OwnPages, ServiceOptions, TestService, ended_at, long_tests, wait_until_within};

use crate::uploads::offered;
use crate::websocket;

const MB: usize = 1 << 20;

/// Every route that takes a body.
const ROUTES: [(&str, &str); 17] = [
    ("POST", "/v2/scrape"),
    ("POST", "/v2/batch/scrape"),
    ("POST", "/v2/crawl"),
    ("POST", "/v2/crawl/params-preview"),
    ("POST", "/v2/map"),
    ("POST", "/v2/parse"),
    ("POST", "/v2/parse/upload-url"),
    ("POST", "/v2/feedback"),
    ("POST", "/v2/search/0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f/feedback"),
    ("POST", "/v1/llmstxt"),
    ("POST", "/v2/browser"),
    ("DELETE", "/v2/browser"),
    ("POST", "/v2/interact"),
    ("POST", "/mcp"),
    ("DELETE", "/v2/interact"),
    ("POST", "/v2/browser/0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f/execute"),
    ("POST", "/v2/scrape/0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f/interact"),
];

/// The API's memory.
struct Memory(u32);

impl Memory {
    fn line(&self, name: &str) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{status}"));
        line.split_ascii_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
    }

    fn now(&self) -> usize {
        self.line("VmRSS:")
    }

    /// Forgets the highest so far.
    fn start_over(&self) -> usize {
        std::fs::write(format!("/proc/{}/clear_refs", self.0), "5").unwrap();
        self.now()
    }

    fn highest(&self) -> usize {
        self.line("VmHWM:")
    }
}

/// A JSON body of this length: `head`, one piece over and over, `tail`.
fn body(head: &str, piece: &str, tail: &str, length: usize) -> String {
    let count = length / (piece.len() + 1);
    let mut text = String::with_capacity(length + head.len() + tail.len());
    text.push_str(head);
    for n in 0..count {
        if n > 0 {
            text.push(',');
        }
        text.push_str(piece);
    }
    text.push_str(tail);
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_body_costs_ten_times_its_length_on_any_route() {
    let mut service = TestService::start(Database::Sqlite).await;
    let api = service.take_api();
    let memory = Memory(api.id());
    let length = if long_tests() { 8 } else { 3 } * MB;
    // No session is wanted either: its body is not strict, but a `ttl` of 0 is refused.
    let list = |piece: &str| body(r#"{"ttl":0,"url":"http://a.test","urls":["#, piece, "]}", length);
    let unknown: Vec<String> = (0..length / 64).map(|n| format!("\"{n:059}\":0")).collect();
    let bodies = [
        ("lists", list("[0]")),
        ("objects", list("{\"\":0}")),
        ("numbers", list("0")),
        ("empty strings", list("\"\"")),
        ("addresses that are none", list("\"ftp://a.test/b\"")),
        (
            "lists of lists",
            body(r#"{"ttl":0,"url":"http://a.test","scrapeOptions":{"formats":["#, "[[]]", "]}}", length),
        ),
        ("unknown keys", format!("{{\"ttl\":0,{}}}", unknown.join(","))),
        ("a long key", format!("{{\"ttl\":0,\"headers\":{{\"{}\":\"\"}}}}", "\u{e4}".repeat(length / 2))),
        ("code", json!({"ttl": 0, "code": "x".repeat(length)}).to_string()),
    ];
    let mut faults = Vec::new();
    for (method, path) in ROUTES {
        for (name, body) in &bodies {
            let before = memory.start_over();
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let request = service.caller().request(method.clone(), path).header("content-type", "application/json");
            let answer = service.caller().send(request.body(body.clone())).await;
            let took = memory.highest().saturating_sub(before);
            if took > 10 * body.len() || answer.text.len() > MB || !(400..500).contains(&answer.status) {
                let times = took as f64 / body.len() as f64;
                faults.push(format!("{method} {path}, {name}: {} and {times:.1} times", answer.status));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_of_a_tool_costs_ten_times_its_length() {
    let length = 8 * MB;
    let call = |name: &str, arguments: String| {
        let params = format!(r#"{{"name":"{name}","arguments":{arguments}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
    };
    let scrape = |list: &str, piece: &str| {
        call("firecrawl_scrape", body(&format!(r#"{{"url":"http://a.test","{list}":["#), piece, "]}", length))
    };
    let mut faults = Vec::new();
    for (name, body) in [
        ("short texts", scrape("includeTags", "\"abcdefghijklmnop\"")),
        ("texts", scrape("includeTags", &format!("\"{}\"", "x".repeat(60)))),
        ("lists", scrape("formats", &format!("[\"{}\"]", "x".repeat(90)))),
        (
            "addresses",
            call(
                "firecrawl_batch_scrape",
                body(r#"{"urls":["#, "\"ftp://a.test/a/longer/path/than/most/that/there/are\"", "]}", length),
            ),
        ),
        ("one text", scrape("includeTags", &format!("\"{}\"", "x".repeat(length - 10)))),
    ] {
        // Each by a process of its own: what an earlier call has left to one would hide what the next one takes.
        let mut service = TestService::start(Database::Sqlite).await;
        let api = service.take_api();
        let memory = Memory(api.id());
        let before = memory.start_over();
        let request = service.caller().request(Method::POST, "/mcp").header("content-type", "application/json");
        let answer = service.caller().send(request.body(body.clone())).await;
        let times = memory.highest().saturating_sub(before) as f64 / body.len() as f64;
        println!("{name}: {} and {times:.1} times", answer.status);
        if times > 10.0 || answer.text.len() > MB || ![200, 400].contains(&answer.status) {
            faults.push(format!("{name}: {} and {times:.1} times", answer.status));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_batch_costs_less_than_ten_times_its_body() {
    let mut service = TestService::start_with(ServiceOptions::new(Database::Sqlite)).await;
    let api = service.take_api();
    let memory = Memory(api.id());
    // Short addresses, because each takes room beside its text; the invalid ones are answered.
    let urls: Vec<String> = (0..20_000).map(|n| format!("http://{n:05}.test/")).collect();
    let mut all: Vec<&str> = urls.iter().map(String::as_str).collect();
    all.resize(300_000, "ftp://a.test/x");
    let text = json!({ "urls": all }).to_string();
    let before = memory.start_over();
    let request = service.caller().request(Method::POST, "/v2/batch/scrape").header("content-type", "application/json");
    let answer = service.caller().send(request.body(text.clone())).await;
    let took = memory.highest().saturating_sub(before);
    assert_eq!(answer.status, 200, "{:.300}", answer.text);
    assert!(took < 10 * text.len(), "{took} bytes for {}", text.len());
}

/// Sends the head of a scrape that announces a body, and its beginning.
async fn begin(service: &TestService, key: Option<&str>, announced: usize) -> TcpStream {
    begin_at(service, key, "POST /v2/scrape", "application/json", announced).await
}

/// The same of another route, for a body of this type.
async fn begin_at(service: &TestService, key: Option<&str>, route: &str, kind: &str, announced: usize) -> TcpStream {
    let mut socket = TcpStream::connect(("127.0.0.1", service.port())).await.unwrap();
    let key = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
    let head = format!(
        "{route} HTTP/1.1\r\nhost: 127.0.0.1\r\n{key}content-type: {kind}\r\n\
         content-length: {announced}\r\n\r\n{{"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

/// The status of what comes back, and its whole text.
async fn status(socket: &mut TcpStream) -> (u16, String) {
    let mut text = String::new();
    while !text.contains("\r\n\r\n") {
        let mut part = [0; 4096];
        let count = socket.read(&mut part).await.unwrap();
        assert_ne!(count, 0, "closed after {text:?}");
        text.push_str(&String::from_utf8_lossy(&part[..count]));
    }
    (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bodies_of_a_key_have_64_mib_together_and_those_of_nobody_are_not_read() {
    let service = TestService::start(Database::Sqlite).await;
    // Without a key the answer comes before the body does.
    let mut nobody = begin(&service, None, 8 * MB).await;
    assert_eq!(status(&mut nobody).await.0, 401);
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(begin(&service, Some(service.key()), 8 * MB).await);
    }
    // All eight are being read when another one finds no room. That one may have been before the last of them.
    let until = clock::deadline(Duration::from_secs(60));
    let refused = loop {
        assert!(clock::instant() < until, "every body found room");
        let answer = service.post("/v2/scrape", &json!({"url": "nowhere"})).await;
        if answer.status == 429 {
            break answer;
        }
        for socket in &mut held {
            if socket.try_read(&mut [0]).is_ok() {
                *socket = begin(&service, Some(service.key()), 8 * MB).await;
            }
        }
    };
    assert_eq!((refused.code(), refused.headers["retry-after"].to_str().unwrap()), ("RATE_LIMITED", "1"));
    let other = service.new_team("others");
    let answer = other.post("/v2/scrape", &json!({"url": "nowhere"})).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    drop(held);
    wait_until_within(Duration::from_secs(25), "room after the others hung up", || async {
        (service.post("/v2/scrape", &json!({"url": "nowhere"})).await.status == 400).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_neither_reads_nor_writes_holds_little_and_is_given_up_within_a_minute() {
    let mut service = TestService::start(Database::Sqlite).await;
    let api = service.take_api();
    let memory = Memory(api.id());
    let pages = OwnPages::start().await;
    let text = "words of a page that is long ".repeat(3 * MB / 29);
    let urls: Vec<String> = (0..24).map(|n| pages.put(&format!("/{n}"), &text)).collect();
    let job = service.post("/v2/batch/scrape", &json!({"urls": urls, "formats": ["rawHtml"]})).await.id();
    ended_at(service.caller(), &format!("/v2/batch/scrape/{job}"), Duration::from_secs(60)).await;
    let before = memory.start_over();
    // Who sends nothing of what it has announced, on each way that bodies come in by.
    let address = offered(service.caller(), "a.html").await;
    let put = format!("PUT {}", address["uploadUrl"].as_str().unwrap().strip_prefix(service.base()).unwrap());
    let key = Some(service.key());
    let mut silent = [
        begin(&service, key, 8 * MB).await,
        begin_at(&service, None, &put, "text/html", 8 * MB).await,
        begin_at(&service, key, "POST /v2/parse", "multipart/form-data; boundary=b", 8 * MB).await,
        begin_at(&service, None, "POST /console/api/sign-in", "application/json", 100).await,
    ];
    // Who reads the job's documents as they come, and does not.
    let mut unread = Vec::new();
    for _ in 0..5 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut socket = socket.connect(([127, 0, 0, 1], service.port()).into()).await.unwrap();
        let head = format!(
            "GET /v2/batch/scrape/{job} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {}\r\n\
             connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            service.key()
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        unread.push(socket);
    }
    // One that reads as a client should gets all of it, beside those.
    let reads = websocket::by_header(&service, &format!("batch/scrape/{job}"), service.key()).await.unwrap().0;
    let (frames, code) = websocket::frames(reads).await;
    let in_catchup = frames[0]["data"]["data"].as_array().unwrap().len();
    assert_eq!((code, in_catchup + frames.len() - 2), (1000, 24), "catchup, documents and done");
    for silent in &mut silent {
        let (status, text) = status(silent).await;
        assert!(status == 408 && text.contains("REQUEST_TIMEOUT"), "{text}");
    }
    let unread = RefCell::new(unread);
    wait_until_within(Duration::from_secs(120), "those that do not read are cut off", || async {
        unread.borrow_mut().retain(|socket: &TcpStream| socket.take_error().unwrap().is_none());
        unread.borrow().is_empty().then_some(())
    })
    .await;
    let took = memory.highest().saturating_sub(before);
    assert!(took < 200 * MB, "{} MB for five that do not read", took / MB);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_does_not_wait_with_its_request() {
    let mut service = TestService::start(Database::Sqlite).await;
    let api = service.take_api();
    let memory = Memory(api.id());
    // What is read of it is a few bytes; the rest is of no interest to anybody.
    let site = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", site.local_addr().unwrap());
    let ignored = "x".repeat(9 * MB);
    let text = json!({"url": url, "timeout": 100_000, "auditMetadata": ignored}).to_string();
    let before = memory.start_over();
    let request = service.caller().request(Method::POST, "/v2/scrape").header("content-type", "application/json");
    let caller = service.caller().clone();
    let waiting = tokio::spawn(async move { caller.send(request.body(text)).await });
    let (_socket, _) = tokio::time::timeout(Duration::from_secs(60), site.accept()).await.unwrap().unwrap();
    // The page is being asked for: what is left is what the request needs. The allocator gives back after a moment.
    wait_until_within(Duration::from_secs(60), "the body's room is free again", || async {
        (memory.now() < before + 6 * MB).then_some(())
    })
    .await;
    assert!(!waiting.is_finished(), "the scrape still waits");
    waiting.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_answers_of_a_team_have_64_mib_together_and_keep_nobody_else_waiting() {
    let mut service = TestService::start(Database::Sqlite).await;
    let api = service.take_api();
    let memory = Memory(api.id());
    let pages = OwnPages::start().await;
    let text = "words of a page that is long ".repeat(3 * MB / 29);
    let urls: Vec<String> = (0..3).map(|n| pages.put(&format!("/{n}"), &text)).collect();
    let scrape = json!({"urls": urls, "formats": ["rawHtml"]});
    let other = service.new_team("others");
    let mut jobs = Vec::new();
    for caller in [service.caller(), &other] {
        let job = caller.post("/v2/batch/scrape", &scrape).await.id();
        ended_at(caller, &format!("/v2/batch/scrape/{job}"), Duration::from_secs(60)).await;
        jobs.push(job);
    }
    let before = memory.start_over();
    // Nine megabytes each, of which nobody reads any.
    let mut unread = Vec::new();
    for _ in 0..60 {
        let mut socket = TcpStream::connect(("127.0.0.1", service.port())).await.unwrap();
        let head = format!(
            "GET /v2/batch/scrape/{} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {}\r\n\r\n",
            jobs[0],
            service.key()
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        unread.push(socket);
    }
    let whole = other.get(&format!("/v2/batch/scrape/{}", jobs[1])).await;
    assert_eq!((whole.status, whole.text.len() > 8 * MB), (200, true));
    // What is small waits for no room.
    let small = service.get(&format!("/v2/batch/scrape/{}/errors", jobs[0])).await;
    assert_eq!(small.status, 200, "{}", small.text);
    let took = memory.highest().saturating_sub(before);
    assert!(took < 250 * MB, "{} MB for answers that nobody reads", took / MB);
    drop(unread);
    let whole = service.get(&format!("/v2/batch/scrape/{}", jobs[0])).await;
    assert_eq!((whole.status, whole.text.len() > 8 * MB), (200, true));
}
