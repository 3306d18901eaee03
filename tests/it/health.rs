//! What an operator's monitoring sees: health, readiness, metrics, logs, a graceful end.

use std::fs::File;
use std::future::ready;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use weir_shared::clock::Stopwatch;
use weir_tests::{
    ConsoleUser, Database, FixtureSite, MovedClock, ServiceOptions, TestService, both_databases, errors_of, finished,
    first_on, signal, wait_until, wait_until_within,
};
use weir_worker::sandbox::find_chromium;

both_databases! {
    async fn readiness_follows_the_workers(database) {
        let mut service = TestService::start(database).await;
        let anyone = service.anonymous();
        assert_eq!(anyone.get("/healthz").await.status, 200);
        assert_eq!(anyone.get("/readyz").await.status, 200);
        // Its worker is set to take no sessions and says so with its row: no call waits for what it may still offer.
        let refused = service.post("/v2/browser", &json!({})).await;
        assert_eq!((refused.status, refused.code()), (503, "BROWSER_NOT_CONFIGURED"), "{}", refused.text);
        service.kill_worker(0);
        let answer = wait_until_within(Duration::from_secs(60), "a dead worker shows", || async {
            let answer = anyone.get("/readyz").await;
            (answer.status == 503).then_some(answer)
        })
        .await;
        assert!(answer.text.contains("worker"), "the reason is told: {}", answer.text);
        assert_eq!(anyone.get("/healthz").await.status, 200, "the API itself lives");
        service.start_worker(0);
        service.ready().await;
    }
}

first_on! {
    sqlite:

    async fn a_stop_lets_running_pages_finish_and_leaves_no_process(database) {
        let site = FixtureSite::start().await;
        let mut service = TestService::start(database).await;
        service.post("/v2/scrape", &json!({ "url": site.url("/js/render/1") })).await.ok();
        let body = json!({ "urls": site.urls("/slow?ms=800&n=", 60), "maxConcurrency": 6 });
        let id = service.post("/v2/batch/scrape", &body).await.id();
        wait_until("the batch runs", || async { (site.hit_count("/slow").await >= 6).then_some(()) }).await;
        service.stop();
        assert!(service.processes().is_empty(), "left behind: {:?}", service.processes());

        service.start_api();
        service.start_worker(0);
        service.ready().await;
        let began = Stopwatch::start();
        let status = finished(service.caller(), &id, Duration::from_secs(60)).await;
        assert_eq!((&status["completed"], &status["total"]), (&json!(60), &json!(60)), "what was left is done after the restart");
        assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
        assert!(errors_of(service.caller(), &id).await.is_empty());
    }
}

both_databases! {
    async fn a_clock_that_is_set_forward_takes_no_worker_for_dead(database) {
        let clock = MovedClock::new();
        let (name, file) = clock.setting();
        let options = ServiceOptions::new(database).workers(3).env(name, file).env("WEIR_PAGE_BROWSERS", "0");
        let service = TestService::start_with(options).await;
        service.workers_are_there().await;
        for _ in 0..5 {
            clock.advance(Duration::from_secs(60));
            let moved = clock.now().to_iso();
            wait_until("every worker has given a sign of life or is taken for dead", || async {
                let workers = service.cli_json(&["workers", "list", "--json"]);
                let workers = workers.as_array().unwrap();
                // Those that only look silent are listed as dead, too, but their heartbeat is old.
                workers.iter().all(|worker| worker["heartbeatAt"].as_str().unwrap() > moved.as_str()).then_some(())
            })
            .await;
        }
        assert!(!service.logs().contains("declared"), "{}", service.logs());
    }
}

/// As where a library is missing, or the sandbox is refused.
#[tokio::test]
async fn a_browser_that_cannot_be_started_is_told_everywhere_until_it_can() {
    let site = FixtureSite::start().await;
    let folder = weir_tests::temporary("test");
    let chromium = find_chromium(None).expect("a Chromium, which scripts/setup installs").path;
    let (place, name) = (folder.join("chromium"), chromium.file_name().unwrap());
    std::fs::create_dir_all(&place).unwrap();
    let program = place.join(name);
    std::fs::write(&program, "#!/bin/sh\necho 'cannot open libnss3.so' >&2\nexit 127\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_CHROMIUM", program.display().to_string());
    let service = TestService::start_in(folder, options.env("WEIR_CONSOLE_KEY", "the-operators-own-key")).await;
    let anyone = service.anonymous();
    let rendered = json!({ "url": site.url("/small/1"), "actions": [{ "type": "wait", "milliseconds": 1 }] });
    for _ in 0..3 {
        assert_ne!(service.post("/v2/scrape", &rendered).await.status, 200);
    }
    let ready = wait_until("it is told", || async {
        let ready = anyone.get("/readyz").await;
        ready.body["browserProblems"].is_array().then_some(ready)
    })
    .await;
    assert_eq!((ready.status, &ready.body["status"]), (200, &json!("ready")), "pages without a browser are scraped");
    assert!(ready.text.contains("libnss3.so"), "{}", ready.text);
    service.post("/v2/scrape", &json!({ "url": site.url("/small/1") })).await.ok();
    assert!(anyone.get("/metrics").await.text.contains("weir_workers_without_browser 1"));
    assert!(service.worker_figure(0, "weir_browser_failed_starts ").await >= 3);
    let doctor = service.command("weir").args(["doctor", "--json"]).output().unwrap();
    let checks: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let browsers = checks.as_array().unwrap().iter().find(|check| check["check"] == "browsers").unwrap();
    assert!(browsers["ok"] == false && browsers["detail"].as_str().unwrap().contains("libnss3.so"), "{browsers}");
    let workers = service.cli_json(&["workers", "list", "--json"]);
    assert!(workers[0]["browserProblem"].as_str().unwrap().contains("libnss3.so"), "{workers}");
    let operator = ConsoleUser::with_key(service.base(), "the-operators-own-key").await;
    let workers = operator.get("/workers").await.ok();
    assert!(workers["workers"][0]["browserProblem"].as_str().unwrap().contains("libnss3.so"), "{workers}");
    let health = operator.get("/overview").await.ok()["health"].clone();
    assert!(health["word"] == "degraded" && health.to_string().contains("libnss3.so"), "{health}");
    let log = std::fs::read_to_string(service.folder().join("worker-0.log")).unwrap();
    assert_eq!(log.matches("no browser can be started").count(), 1, "{log}");

    // It starts again as soon as it can, unasked. Where Chromium lies elsewhere it does not lie in the box of this one.
    if chromium.starts_with("/usr") {
        std::os::unix::fs::symlink(&chromium, place.join("mended")).unwrap();
        std::fs::rename(place.join("mended"), &program).unwrap();
        wait_until_within(Duration::from_secs(180), "browsers start again", || async {
            anyone.get("/readyz").await.body["browserProblems"].is_null().then_some(())
        })
        .await;
        service.post("/v2/scrape", &rendered).await.ok();
    }
}

#[tokio::test]
async fn metrics_count_pages_and_the_queue() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    for n in 0..3 {
        service.post("/v2/scrape", &json!({ "url": site.url(&format!("/small/{n}")) })).await.ok();
    }
    let answer = service.anonymous().get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert!(answer.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
    assert!(answer.text.contains("# TYPE weir_"), "{:.600}", answer.text);
    for word in ["queue", "http"] {
        assert!(answer.text.contains(word), "no {word} in\n{}", answer.text);
    }
}

/// What a full disk does to a log, and a pipe whose reader has gone.
#[tokio::test]
async fn logs_that_cannot_be_written_stop_nothing() {
    let site = FixtureSite::start().await;
    let mut service = TestService::start_with(ServiceOptions::new(Database::Sqlite).env("WEIR_LOG", "debug")).await;
    service.kill_api();
    service.kill_worker(0);
    let start = |binary: &str, arguments: &[&str]| {
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let mut command = service.command(binary);
        Ended(command.args(arguments).stdout(full()).stderr(full()).process_group(0).spawn().unwrap())
    };
    let (mut api, mut worker) = (start("weir", &["serve"]), start("weir-worker", &[]));
    wait_until("the API takes calls", || async {
        service.anonymous().request(Method::GET, "/healthz").send().await.is_ok().then_some(())
    })
    .await;
    let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/article/", 5) })).await.id();
    let status = finished(service.caller(), &id, Duration::from_secs(60)).await;
    assert_eq!((&status["status"], &status["completed"]), (&json!("completed"), &json!(5)), "{status}");
    assert!(api.0.try_wait().unwrap().is_none() && worker.0.try_wait().unwrap().is_none());
    let told = service.command("weir").args(["config"]).stdout(File::create("/dev/full").unwrap()).output().unwrap();
    assert_eq!(told.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&told.stderr).starts_with("cannot write to standard output"), "{told:?}");
}

/// As under a service manager that hangs.
#[tokio::test]
async fn a_log_that_nobody_reads_stops_nothing() {
    let site = FixtureSite::start().await;
    let mut service = TestService::start_with(ServiceOptions::new(Database::Sqlite).env("WEIR_LOG", "debug")).await;
    service.kill_api();
    service.kill_worker(0);
    let start = |binary: &str, arguments: &[&str]| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        // There is room for a few lines in it.
        writer.write_all(&[b'.'; 60 << 10]).unwrap();
        let mut command = service.command(binary);
        command.args(arguments).stdout(Stdio::null()).stderr(writer).process_group(0);
        (Ended(command.spawn().unwrap()), reader)
    };
    let ((mut api, mut of_api), (mut worker, of_worker)) = (start("weir", &["serve"]), start("weir-worker", &[]));
    wait_until("the API takes calls", || async {
        service.anonymous().request(Method::GET, "/healthz").send().await.is_ok().then_some(())
    })
    .await;
    for _ in 0..100 {
        assert_eq!(service.get("/v2/team/credit-usage").await.status, 200);
    }
    let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/article/", 40) })).await.id();
    let status = finished(service.caller(), &id, Duration::from_secs(60)).await;
    assert_eq!((&status["status"], &status["completed"]), (&json!("completed"), &json!(40)), "{status}");
    // Nobody waits long for the last lines either, and whoever reads again has missed none.
    signal("TERM", &worker.0.id().to_string());
    let ended = wait_until("the worker ends", || ready(worker.0.try_wait().unwrap())).await;
    assert!(ended.success(), "{ended}");
    drop(of_worker);
    let read = std::thread::spawn(move || {
        let mut text = String::new();
        of_api.read_to_string(&mut text).map(|_| text)
    });
    signal("TERM", &api.0.id().to_string());
    let ended = wait_until("the API ends", || ready(api.0.try_wait().unwrap())).await;
    assert!(ended.success(), "{ended}");
    let text = read.join().unwrap().unwrap();
    assert_eq!(text.matches("/v2/team/credit-usage").count(), 100, "{text:.2000}");
    assert!(text.contains("stopping"), "{text:.2000}");
}

/// With fewer files than connections, as the soft limit of a shell or container allows, and a hard one that is higher.
#[tokio::test]
async fn connections_that_send_nothing_shut_nobody_out() {
    let mut service = TestService::start(Database::Sqlite).await;
    service.kill_api();
    let (command, mut limited) = (service.command("weir"), Command::new("sh"));
    limited.args(["-c", "ulimit -Sn 256 && exec \"$0\" serve"]).arg(command.get_program());
    limited.current_dir(service.folder());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let _api = Ended(limited.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap());
    wait_until("the API takes calls", || async {
        service.anonymous().request(Method::GET, "/healthz").send().await.is_ok().then_some(())
    })
    .await;
    let address = ("127.0.0.1", service.port());
    let mut idle = Vec::new();
    for _ in 0..400 {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    let asked = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    // They are closed after 15 s at the latest.
    let answer = tokio::time::timeout(Duration::from_secs(10), asked).await.expect("an answer beside them");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// A process of the test's own, which ends with it.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn logs_hold_ids_and_no_secrets() {
    let site = FixtureSite::start().await;
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_LOG_FORMAT", "json").env("WEIR_LOG", "debug");
    let service = TestService::start_with(options).await;
    let secret = "a-cookie-that-nobody-may-read";
    let body = json!({ "url": site.url("/article/1"), "headers": { "Cookie": format!("session={secret}") } });
    let document = service.post("/v2/scrape", &body).await.ok();
    let marker = site.truth("/article/1").await.main[0].clone();
    assert!(document.to_string().contains(&marker));
    for name in ["api.log", "worker-0.log"] {
        let log = std::fs::read_to_string(service.folder().join(name)).unwrap();
        for forbidden in [service.key(), secret, marker.as_str(), weir_tests::WEBHOOK_SECRET] {
            assert!(!log.contains(forbidden), "{name} holds {forbidden}");
        }
        let last = log.lines().rfind(|line| line.starts_with('{')).expect("lines of JSON");
        serde_json::from_str::<Value>(last).unwrap();
    }
}

#[tokio::test]
async fn what_strangers_make_up_fills_neither_the_figures_nor_the_log() {
    let service = TestService::start(Database::Sqlite).await;
    let (anyone, made_up) = (service.anonymous(), "made-up".repeat(1_000));
    for n in 0..30 {
        let method = Method::from_bytes(format!("{made_up}{n}").as_bytes()).unwrap();
        for path in ["/v2/scrape", "/nowhere"] {
            assert_eq!(anyone.send(anyone.request(method.clone(), path)).await.status / 100, 4);
        }
        assert_eq!(anyone.get(&format!("/{made_up}{n}")).await.status, 404);
        let mut socket = TcpStream::connect(("127.0.0.1", service.port())).await.unwrap();
        socket.write_all(format!("{made_up}\r\n\r\n").as_bytes()).await.unwrap();
        let _ = socket.read_to_end(&mut Vec::new()).await;
    }
    let long = made_up.repeat(50);
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": long, "arguments": {} } }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": long } }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": long, "params": {} }),
        json!({ "jsonrpc": "2.0", "id": long, "method": "prompts/get", "params": { "name": "x" } }),
    ] {
        let request = service.caller().request(Method::POST, "/mcp");
        let answer = service.caller().send(request.header("accept", "application/json").json(&message)).await;
        assert!(answer.body["error"].is_object(), "{:.300}", answer.text);
    }
    let figures = anyone.get("/metrics").await.text;
    assert!(
        figures.contains(r#"weir_http_requests_total{method="other",route="unmatched",status="404"} 30"#),
        "{figures}"
    );
    assert!(!figures.contains("made-up"), "{:.2000}", figures);
    let log = std::fs::read_to_string(service.folder().join("api.log")).unwrap();
    assert!(log.contains("/made-up"), "what is asked for is told: {log}");
    let is_wrong = |line: &&str| line.len() > 600 || line.contains(" WARN ") || line.contains(" ERROR ");
    let wrong: Vec<&str> = log.lines().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{} lines, of which {:.600}", wrong.len(), wrong[0]);
}

#[tokio::test]
async fn a_wrong_setting_stops_the_start_with_one_line() {
    let service = TestService::start(Database::Sqlite).await;
    for (name, value) in [
        ("WEIR_BIND", "nowhere"),
        ("WEIR_ALLOW_NETS", "127.0.0.0/99"),
        ("WEIR_RESULT_TTL", "soon"),
        ("WEIR_WORKER_CONCURRENCY", "0"),
        ("WEIR_WEBHOOK_RETRIES", "1m,later"),
        ("WEIR_AUTH", "maybe"),
        ("WEIR_AD_LISTS", "ads.txt"),
        ("WEIR_PROXY_BASIC", "uk=http://127.0.0.1:1"),
        ("DATABASE_URL", "mysql://127.0.0.1/x"),
    ] {
        let mut command = service.command("weir-worker");
        let output = command.env(name, value).output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success(), "{name}={value}");
        assert!(text.contains(name), "the line names {name}: {text}");
        assert!(text.trim().lines().count() <= 2, "{text}");
    }
}
