//! An API that is replaced: nothing that it has accepted is lost, and where somebody else holds its address, systemd's
//! `weir.socket` in the packages, who calls between two processes waits.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use weir_shared::clock::Stopwatch;
use weir_tests::{
    Caller, Database, FixtureSite, OwnPages, Process, TestService, finished, signal, threads_have_stopped, wait_until,
};

/// Bound of one start or end of a process.
const BOUND: Duration = Duration::from_secs(60);
/// How long a process that stops waits for a further call on a connection, at least.
const LAST_CALL: Duration = Duration::from_millis(900);

async fn answers(caller: &Caller) {
    wait_until("the API answers", || async {
        let answer = caller.try_send(caller.request(Method::GET, "/healthz")).await.ok()?;
        (answer.status == 200).then_some(())
    })
    .await;
}

/// One connection, and calls that are written on it by hand.
struct Line(TcpStream);

impl Line {
    fn to(address: SocketAddr) -> Self {
        let connection = TcpStream::connect(address).unwrap();
        connection.set_read_timeout(Some(BOUND)).unwrap();
        Self(connection)
    }

    fn ask(&mut self) -> io::Result<()> {
        self.0.write_all(b"GET /healthz HTTP/1.1\r\nHost: weir.test\r\n\r\n")
    }

    /// The head of the answer; its body is empty or small, and read.
    fn answer(&mut self) -> io::Result<String> {
        let (mut read, mut buffer) = (String::new(), [0; 4096]);
        loop {
            let count = self.0.read(&mut buffer)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            read.push_str(&String::from_utf8_lossy(&buffer[..count]));
            let Some((head, body)) = read.split_once("\r\n\r\n") else { continue };
            let head = head.to_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Ok(head);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_stops_answers_what_comes_on_the_connections_it_has() {
    let service = TestService::start(Database::Sqlite).await;
    // The calls come in time unless this machine stands still between the signal and them.
    for _ in 0..20 {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let mut running: Process = service.start_api_on(&socket);
        answers(&Caller::new(&format!("http://{address}"), None)).await;
        let mut lines: Vec<Line> = (0..40).map(|_| Line::to(address)).collect();
        // Half of them have had a call. It came last, so all of them are accepted.
        for line in &mut lines[20..] {
            line.ask().unwrap();
            assert!(line.answer().unwrap().starts_with("http/1.1 200"));
        }
        let since = Stopwatch::start();
        running.ask_to_end();
        wait_until("it stops", || async { running.tail(20).contains("stopping").then_some(()) }).await;
        let asked = lines.iter_mut().try_for_each(Line::ask);
        let is_in_time = since.elapsed() < LAST_CALL;
        let heads: Vec<_> = lines.iter_mut().map(|line| line.answer().map_err(|error| error.to_string())).collect();
        assert!(running.await_end(BOUND).success(), "{}", running.tail(20));
        if is_in_time {
            asked.unwrap();
            let is_good = |head: &String| head.starts_with("http/1.1 200") && head.contains("connection: close");
            assert!(heads.iter().all(|head| head.as_ref().is_ok_and(is_good)), "{heads:?}");
            return;
        }
    }
    panic!("this machine never got round to the calls");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_stops_answers_who_waits_in_its_own_socket() {
    let mut service = TestService::start(Database::Sqlite).await;
    let address = service.base().trim_start_matches("http://").parse().unwrap();
    let mut api = service.take_api();
    let id = api.id().to_string();
    signal("STOP", &id);
    wait_until("every thread has stopped", || async { threads_have_stopped(&id).then_some(()) }).await;
    let mut lines: Vec<Line> = (0..40).map(|_| Line::to(address)).collect();
    lines.iter_mut().try_for_each(Line::ask).unwrap();
    // Both wait for it when it wakes up: the calls and its end.
    signal("TERM", &id);
    signal("CONT", &id);
    let heads: Vec<_> = lines.iter_mut().map(|line| line.answer().map_err(|error| error.to_string())).collect();
    let is_good = |head: &String| head.starts_with("http/1.1 200");
    assert!(heads.iter().all(|head| head.as_ref().is_ok_and(is_good)), "{heads:?}");
    assert!(api.await_end(BOUND).success(), "{}", api.tail(20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_nothing_keeps_no_process_that_stops() {
    let mut service = TestService::start(Database::Sqlite).await;
    let pages = OwnPages::start().await;
    // More than the system keeps of what is not read.
    let text = "words of a page that is long ".repeat(100_000);
    let urls: Vec<String> = (0..4).map(|n| pages.put(&format!("/{n}"), &text)).collect();
    let job = service.post("/v2/batch/scrape", &json!({ "urls": urls, "formats": ["rawHtml"] })).await.id();
    finished(service.caller(), &job, BOUND).await;
    let socket = "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                  sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut unread = Vec::new();
    for more in ["", socket] {
        let connection = TcpSocket::new_v4().unwrap();
        connection.set_recv_buffer_size(4_096).unwrap();
        let mut connection = connection.connect(([127, 0, 0, 1], service.port()).into()).await.unwrap();
        let key = service.key();
        let head = format!(
            "GET /v2/batch/scrape/{job} HTTP/1.1\r\nhost: weir.test\r\nauthorization: Bearer {key}\r\n{more}\r\n"
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        // Its answer has begun.
        connection.read_exact(&mut [0; 1_024]).await.unwrap();
        unread.push(connection);
    }
    let mut api = service.take_api();
    let stopped = Stopwatch::start();
    assert!(api.terminate(BOUND).success(), "{}", api.tail(20));
    // Work would be waited for thirty seconds.
    assert!(stopped.elapsed() < Duration::from_secs(15), "{:?}", stopped.elapsed());
    drop(unread);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_calls_between_two_processes_waits_in_the_socket_that_is_held() {
    let service = TestService::start(Database::Sqlite).await;
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut running: Process = service.start_api_on(&socket);
    let base = format!("http://{}", socket.local_addr().unwrap());
    let caller = Caller::new(&base, service.caller().key.as_deref());
    answers(&caller).await;

    for _ in 0..3 {
        assert!(running.terminate(BOUND).success(), "{}", running.tail(20));
        // Whoever calls now finds no process at all, and waits.
        let waiting = {
            let caller = caller.clone();
            tokio::spawn(async move { caller.get("/healthz").await.status })
        };
        running = service.start_api_on(&socket);
        assert_eq!(waiting.await.unwrap(), 200);
    }
    assert!(running.terminate(BOUND).success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_one_api_follows_another_on_the_same_socket_no_call_fails() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut running: Process = service.start_api_on(&socket);
    let base = format!("http://{}", socket.local_addr().unwrap());
    let caller = Caller::new(&base, service.caller().key.as_deref());
    answers(&caller).await;

    let (is_over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let traffic: Vec<_> = (0..6)
        .map(|n| {
            let caller = Caller::new(&base, service.caller().key.as_deref());
            let (is_over, answered, url) =
                (Arc::clone(&is_over), Arc::clone(&answered), site.url(&format!("/small/{n}")));
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let mut request = caller.request(Method::POST, "/v2/scrape");
                    if n % 2 == 0 {
                        // A connection for each call; the others keep theirs.
                        request = request.header("connection", "close");
                    }
                    let answer = caller.try_send(request.json(&json!({ "url": url, "maxAge": 0 }))).await;
                    let answer = answer.unwrap_or_else(|error| panic!("a call was lost: {error:?}"));
                    assert_eq!(answer.status, 200, "{}", answer.text);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for _ in 0..4 {
        let before = answered.load(Ordering::Relaxed);
        wait_until("calls are answered", || async { (answered.load(Ordering::Relaxed) > before + 30).then_some(()) })
            .await;
        assert!(running.terminate(BOUND).success(), "{}", running.tail(20));
        running = service.start_api_on(&socket);
    }
    is_over.store(true, Ordering::Relaxed);
    for caller in traffic {
        caller.await.unwrap();
    }
    assert!(running.terminate(BOUND).success());
}

#[tokio::test]
async fn a_socket_that_listens_elsewhere_than_the_settings_say_is_refused() {
    let service = TestService::start(Database::Sqlite).await;
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut refused = service.start_api_on_as(&socket, "127.0.0.1:1");
    assert!(!refused.await_end(BOUND).success());
    assert!(refused.tail(5).contains("WEIR_BIND says 127.0.0.1:1"), "{}", refused.tail(5));
}
