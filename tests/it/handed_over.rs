//! An API whose address is held by somebody else, systemd's `weir.socket` in the packages: who calls between two
//! processes waits.

use std::net::TcpListener;
use std::time::Duration;

use reqwest::Method;
use weir_tests::{Caller, Database, Process, TestService, wait_until};

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

#[tokio::test]
async fn a_socket_that_listens_elsewhere_than_the_settings_say_is_refused() {
    let service = TestService::start(Database::Sqlite).await;
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut refused = service.start_api_on_as(&socket, "127.0.0.1:1");
    assert!(!refused.await_end(BOUND).success());
    assert!(refused.tail(5).contains("WEIR_BIND says 127.0.0.1:1"), "{}", refused.tail(5));
}
