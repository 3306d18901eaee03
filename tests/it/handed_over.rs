//! An API whose address is held by somebody else, systemd's `weir.socket` in the packages: it is replaced without a
//! caller who is refused.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use weir_tests::{Caller, Database, FixtureSite, Process, TestService, wait_until};

/// Bound of one start or end of a process.
const BOUND: Duration = Duration::from_secs(30);

async fn answers(caller: &Caller) {
    wait_until("the API answers", || async {
        let answer = caller.try_send(caller.request(Method::GET, "/healthz")).await.ok()?;
        (answer.status == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_one_api_follows_another_on_the_same_socket_no_caller_is_refused() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut running: Process = service.start_api_on(&socket);
    let base = format!("http://{}", socket.local_addr().unwrap());
    let caller = Caller::new(&base, service.caller().key.as_deref());
    answers(&caller).await;

    let ended = Arc::new(AtomicBool::new(false));
    let traffic: Vec<_> = (0..4)
        .map(|n| {
            let (caller, ended, url) = (caller.clone(), Arc::clone(&ended), site.url(&format!("/small/{n}")));
            tokio::spawn(async move {
                let mut answered = 0_u32;
                while !ended.load(Ordering::Relaxed) {
                    // A connection of its own each time: it waits in the socket's line if nobody takes it.
                    let request = caller.request(Method::POST, "/v2/scrape").header("connection", "close");
                    let answer = caller.try_send(request.json(&json!({ "url": url, "maxAge": 0 }))).await;
                    let answer = answer.unwrap_or_else(|error| panic!("a caller was refused: {error}"));
                    assert_eq!(answer.status, 200, "{}", answer.text);
                    answered += 1;
                }
                answered
            })
        })
        .collect();

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
    ended.store(true, Ordering::Relaxed);
    for caller in traffic {
        assert!(caller.await.unwrap() > 0, "each caller was answered");
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
