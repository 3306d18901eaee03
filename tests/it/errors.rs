//! Every wrong call of scrape and batch scrape, with the status, code and place that it must give (wire 2).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use weir_shared::random;
use weir_tests::{Database, TestService};

/// A body that breaks one rule, and where `details` must point.
struct Case {
    body: Value,
    path: Value,
    /// A part of `error`, when a client matches its words.
    error: &'static str,
}

fn case(body: Value, path: Value) -> Case {
    Case { body, path, error: "" }
}

fn says(body: Value, path: Value, error: &'static str) -> Case {
    Case { body, path, error }
}

/// Fields that scrape and batch share, each beside the path that it must be named by.
fn wrong_options() -> Vec<Case> {
    let wait = json!({ "type": "wait", "milliseconds": 100 });
    vec![
        case(json!({ "formats": ["nope"] }), json!(["formats", 0])),
        case(json!({ "formats": "markdown" }), json!(["formats"])),
        case(json!({ "formats": [{ "type": "nope" }] }), json!(["formats", 0])),
        case(json!({ "formats": ["screenshot", { "type": "screenshot", "fullPage": true }] }), json!(["formats"])),
        case(json!({ "formats": [{ "type": "screenshot", "quality": 0 }] }), json!(["formats", 0, "quality"])),
        case(json!({ "formats": [{ "type": "screenshot", "quality": 101 }] }), json!(["formats", 0, "quality"])),
        case(
            json!({ "formats": [{ "type": "screenshot", "viewport": { "width": 7681, "height": 1 } }] }),
            json!(["formats", 0, "viewport", "width"]),
        ),
        case(
            json!({ "formats": [{ "type": "screenshot", "viewport": { "width": 10, "height": 4321 } }] }),
            json!(["formats", 0, "viewport", "height"]),
        ),
        case(json!({ "formats": [{ "type": "markdown", "extra": 1 }] }), json!(["formats", 0])),
        case(json!({ "timeout": 999 }), json!(["timeout"])),
        case(json!({ "timeout": 300_001 }), json!(["timeout"])),
        case(json!({ "timeout": "fast" }), json!(["timeout"])),
        case(json!({ "waitFor": -1 }), json!(["waitFor"])),
        case(json!({ "waitFor": 60_001, "timeout": 300_000 }), json!(["waitFor"])),
        says(
            json!({ "waitFor": 5000, "timeout": 9000 }),
            json!(["waitFor"]),
            "waitFor must not exceed half of timeout",
        ),
        case(json!({ "onlyMainContent": "yes" }), json!(["onlyMainContent"])),
        case(json!({ "mobile": 1 }), json!(["mobile"])),
        case(json!({ "includeTags": "main" }), json!(["includeTags"])),
        case(json!({ "excludeTags": [1] }), json!(["excludeTags", 0])),
        case(json!({ "headers": { "a": 1 } }), json!(["headers", "a"])),
        case(json!({ "maxAge": -1 }), json!(["maxAge"])),
        case(json!({ "minAge": -1 }), json!(["minAge"])),
        case(json!({ "maxAge": 1.5 }), json!(["maxAge"])),
        case(json!({ "proxy": "gold" }), json!(["proxy"])),
        case(json!({ "location": { "country": "Germany" } }), json!(["location", "country"])),
        case(json!({ "location": { "planet": "Mars" } }), json!(["location"])),
        case(json!({ "parsers": "pdf" }), json!(["parsers"])),
        case(json!({ "parsers": ["word"] }), json!(["parsers", 0])),
        case(json!({ "parsers": [{ "type": "pdf", "maxPages": 0 }] }), json!(["parsers", 0, "maxPages"])),
        case(json!({ "parsers": [{ "type": "pdf", "maxPages": 10_001 }] }), json!(["parsers", 0, "maxPages"])),
        case(json!({ "profile": { "name": "" } }), json!(["profile", "name"])),
        case(json!({ "profile": { "name": "x".repeat(129) } }), json!(["profile", "name"])),
        case(json!({ "actions": vec![wait; 51] }), json!(["actions"])),
        case(json!({ "actions": [{ "type": "click" }] }), json!(["actions", 0, "selector"])),
        case(json!({ "actions": [{ "type": "dance" }] }), json!(["actions", 0])),
        case(json!({ "actions": [{ "type": "wait", "milliseconds": 1, "selector": "p" }] }), json!(["actions", 0])),
        case(json!({ "actions": [{ "type": "wait", "milliseconds": 60_001 }] }), json!(["actions"])),
        says(json!({ "surprise": 1 }), json!([]), "Unrecognized key in body"),
        says(json!({ "parsePDF": true }), json!([]), "Unrecognized key in body"),
    ]
}

fn with(mut base: Value, body: &Value) -> Value {
    for (key, value) in body.as_object().unwrap() {
        base[key] = value.clone();
    }
    base
}

/// True when one issue names `path` or a place below it, and has a code and a message.
fn names(details: &Value, path: &Value) -> bool {
    let path = path.as_array().unwrap();
    details.as_array().is_some_and(|issues| {
        issues.iter().any(|issue| {
            let there = issue["path"].as_array().is_some_and(|place| place.starts_with(path));
            there && issue["message"].is_string() && issue["code"].is_string()
        })
    })
}

async fn check(service: &TestService, route: &str, base: Value, cases: &[Case]) -> Vec<String> {
    let mut faults = Vec::new();
    for Case { body, path, error } in cases {
        let answer = service.post(route, &with(base.clone(), body)).await;
        let right = answer.status == 400
            && answer.is_base_error()
            && answer.code() == "BAD_REQUEST"
            && names(&answer.body["details"], path)
            && answer.error().contains(error);
        if !right {
            faults.push(format!(
                "{route} {body}: wanted 400 with {path} {error:?}, got {} {}",
                answer.status, answer.text
            ));
        }
    }
    faults
}

#[tokio::test]
async fn a_body_that_breaks_a_rule_is_refused_with_the_place_named() {
    let service = TestService::start(Database::Sqlite).await;
    let page = json!({ "url": "http://127.0.0.1:2/" });
    let pages = json!({ "urls": ["http://127.0.0.1:2/"] });
    let mut faults = check(&service, "/v2/scrape", page, &wrong_options()).await;
    faults.extend(check(&service, "/v2/batch/scrape", pages.clone(), &wrong_options()).await);

    let addresses = [
        case(json!({}), json!(["url"])),
        case(json!({ "url": 1 }), json!(["url"])),
        case(json!({ "url": null }), json!(["url"])),
        case(json!({ "url": "" }), json!(["url"])),
        says(json!({ "url": "ftp://files.example/x" }), json!(["url"]), "URL uses unsupported protocol"),
        says(json!({ "url": "javascript:alert(1)" }), json!(["url"]), ""),
        says(
            json!({ "url": "http://nodot/" }),
            json!(["url"]),
            "URL must have a valid top-level domain or be an IP address",
        ),
    ];
    faults.extend(check(&service, "/v2/scrape", json!({}), &addresses).await);

    let batch = [
        case(json!({ "urls": null }), json!(["urls"])),
        case(json!({ "urls": [] }), json!(["urls"])),
        case(json!({ "urls": "http://127.0.0.1:2/" }), json!(["urls"])),
        case(json!({ "urls": [1] }), json!(["urls", 0])),
        case(
            json!({ "ignoreInvalidURLs": false, "urls": ["http://127.0.0.1:2/", "http://nodot/"] }),
            json!(["urls", 1]),
        ),
        case(json!({ "ignoreInvalidURLs": "no" }), json!(["ignoreInvalidURLs"])),
        case(json!({ "maxConcurrency": 0 }), json!(["maxConcurrency"])),
        case(json!({ "maxConcurrency": 1.5 }), json!(["maxConcurrency"])),
        case(json!({ "appendToId": "latest" }), json!(["appendToId"])),
        case(json!({ "webhook": 5 }), json!(["webhook"])),
        case(json!({ "webhook": "not an address" }), json!(["webhook"])),
        case(json!({ "webhook": {} }), json!(["webhook", "url"])),
        case(
            json!({ "webhook": { "url": "http://127.0.0.1:2/", "events": ["lunch"] } }),
            json!(["webhook", "events", 0]),
        ),
        case(json!({ "webhook": { "url": "http://127.0.0.1:2/", "secret": "x" } }), json!(["webhook"])),
        case(
            json!({ "webhook": { "url": "http://127.0.0.1:2/", "headers": { "a": 1 } } }),
            json!(["webhook", "headers", "a"]),
        ),
    ];
    faults.extend(check(&service, "/v2/batch/scrape", pages, &batch).await);
    assert!(faults.is_empty(), "{} wrong answers:\n{}", faults.len(), faults.join("\n"));
}

/// Sends bytes, and reads until the connection ends.
async fn exchange(service: &TestService, bytes: &str) -> String {
    let mut socket = TcpStream::connect(("127.0.0.1", service.port())).await.unwrap();
    socket.write_all(bytes.as_bytes()).await.unwrap();
    let mut text = String::new();
    let read = socket.read_to_string(&mut text);
    tokio::time::timeout(Duration::from_secs(45), read)
        .await
        .unwrap_or_else(|_| panic!("no end after {bytes}"))
        .unwrap();
    text
}

#[tokio::test]
async fn a_head_is_a_get_without_its_body_and_an_offered_upgrade_is_declined() {
    let service = TestService::start(Database::Sqlite).await;
    let common = format!("host: 127.0.0.1\r\nauthorization: Bearer {}\r\n", service.key());
    let paths =
        ["/healthz", "/readyz", "/docs", "/console/", "/v2/crawl/active", "/v2/nothing", "/v2/team/queue-status"];
    for path in paths {
        let ask = |method: &str| format!("{method} {path} HTTP/1.1\r\n{common}connection: close\r\n\r\n");
        let (alone, whole) = (exchange(&service, &ask("HEAD")).await, exchange(&service, &ask("GET")).await);
        let (head, body) = whole.split_once("\r\n\r\n").unwrap();
        assert_eq!(alone.lines().next(), head.lines().next(), "{path}: the same status");
        for head in [head, &alone] {
            assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{path}: {head}");
        }
        assert!(alone.ends_with("\r\n\r\n"), "{path}: {alone}");
    }
    let text = exchange(&service, &format!("HEAD /v2/scrape HTTP/1.1\r\n{common}connection: close\r\n\r\n")).await;
    assert!(
        text.starts_with("HTTP/1.1 405 ") && text.contains("allow: POST\r\n") && text.ends_with("\r\n\r\n"),
        "{text}"
    );
    for path in ["/console/", "/console/assets/a/b.js"] {
        let request = service.caller().request(reqwest::Method::POST, path).header("content-type", "application/json");
        let answer = service.caller().send(request.body("{}")).await;
        assert_eq!((answer.status, answer.code()), (405, "METHOD_NOT_ALLOWED"), "{path}: {}", answer.text);
    }
    for upgrade in [
        "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n",
        "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n",
        "upgrade: websocket\r\n",
    ] {
        for (request, status) in [
            ("GET /healthz HTTP/1.1\r\n", 200),
            ("POST /v2/scrape HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 2\r\n", 400),
        ] {
            let body = if status == 400 { "{}" } else { "" };
            let text = exchange(&service, &format!("{request}{common}{upgrade}\r\n{body}")).await;
            assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
            assert!(text.contains("\r\nconnection: close\r\n"), "{text}");
        }
    }
}

#[tokio::test]
async fn every_other_wrong_call_has_its_status_and_text() {
    let service = TestService::start(Database::Sqlite).await;
    let unknown = random::id();
    let mut faults = Vec::new();
    for (method, path, status, error) in [
        ("GET", format!("/v2/scrape/{unknown}"), 404, "Job not found"),
        ("GET", "/v2/scrape/abc".to_owned(), 400, "Invalid job ID format. Job ID must be a valid UUID."),
        ("GET", format!("/v2/batch/scrape/{unknown}"), 404, "Job not found"),
        ("GET", format!("/v2/batch/scrape/{unknown}/errors"), 404, "Job not found"),
        ("DELETE", format!("/v2/batch/scrape/{unknown}"), 404, "Job not found"),
        ("GET", "/v2/batch/scrape/abc".to_owned(), 400, "Invalid job ID format. Job ID must be a valid UUID."),
        ("GET", "/v2/batch/scrape/abc/errors".to_owned(), 400, "Invalid job ID format. Job ID must be a valid UUID."),
        ("DELETE", "/v2/batch/scrape/abc".to_owned(), 400, "Invalid job ID format. Job ID must be a valid UUID."),
        ("GET", format!("/v2/batch/scrape/{unknown}?skip=-1"), 400, ""),
        ("GET", format!("/v2/batch/scrape/{unknown}?skip=x"), 400, ""),
        ("GET", format!("/v2/batch/scrape/{unknown}?limit=0"), 400, ""),
        ("GET", format!("/v2/batch/scrape/{unknown}?limit=1001"), 400, ""),
        ("GET", format!("/v2/batch/scrape/{unknown}?limit=ten"), 400, ""),
        ("GET", "/v2/nothing/here".to_owned(), 404, ""),
        ("GET", "/nothing".to_owned(), 404, ""),
        ("PUT", "/v2/scrape".to_owned(), 405, ""),
        ("PATCH", "/v2/batch/scrape".to_owned(), 405, ""),
    ] {
        let request = service.caller().request(method.parse().unwrap(), &path);
        let answer = service.caller().send(request).await;
        if answer.status != status || !answer.is_base_error() || !answer.error().starts_with(error) {
            faults.push(format!("{method} {path}: wanted {status} {error:?}, got {} {}", answer.status, answer.text));
        }
    }
    for body in ["", "{", "{\"url\":", "nonsense", "[1,2"] {
        for path in ["/v2/scrape", "/v2/batch/scrape"] {
            let request =
                service.caller().request(reqwest::Method::POST, path).header("content-type", "application/json");
            let answer = service.caller().send(request.body(body)).await;
            if (answer.status, answer.code()) != (400, "BAD_REQUEST_INVALID_JSON")
                || !answer.error().starts_with("Bad request, malformed JSON")
            {
                faults.push(format!("{path} with {body:?}: got {} {}", answer.status, answer.text));
            }
        }
    }
    for body in ["[]", "1", "null", "\"text\""] {
        let request =
            service.caller().request(reqwest::Method::POST, "/v2/scrape").header("content-type", "application/json");
        let answer = service.caller().send(request.body(body)).await;
        if (answer.status, answer.code()) != (400, "BAD_REQUEST") {
            faults.push(format!("/v2/scrape with {body:?}: got {} {}", answer.status, answer.text));
        }
    }
    let large = json!({ "url": "http://127.0.0.1:2/", "headers": { "x": "y".repeat(11 << 20) } });
    let answer = service.post("/v2/scrape", &large).await;
    if answer.status != 413 || !answer.is_base_error() {
        faults.push(format!("a body over 10 MB: got {} {}", answer.status, answer.text));
    }
    let answer = service.post("/v2/batch/scrape", &json!({ "urls": ["http://nodot/", "ftp://x.example/"] })).await;
    if answer.status != 400 || !answer.error().contains("No valid URLs provided") {
        faults.push(format!("only invalid addresses: got {} {}", answer.status, answer.text));
    }
    let answer =
        service.post("/v2/batch/scrape", &json!({ "urls": ["http://127.0.0.1:2/"], "appendToId": unknown })).await;
    if answer.status != 404 || !answer.is_base_error() {
        faults.push(format!("append to an unknown batch: got {} {}", answer.status, answer.text));
    }
    assert!(faults.is_empty(), "{} wrong answers:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test]
async fn an_option_that_is_not_there_yet_is_refused_and_never_ignored() {
    let service = TestService::start(Database::Sqlite).await;
    let url = format!("{}/welcome", service.base());
    let mut faults = Vec::new();
    for option in [
        json!({ "formats": ["deterministicJson"] }),
        json!({ "minAge": 1 }),
        json!({ "lockdown": true }),
        json!({ "zeroDataRetention": true }),
    ] {
        let answer = service.post("/v2/scrape", &with(json!({ "url": url }), &option)).await;
        // `minAge` and `lockdown` find an empty cache, which is a 404.
        let refused = matches!(answer.status, 400 | 403 | 404) && answer.is_base_error();
        if !refused {
            faults.push(format!("{option}: got {} {}", answer.status, answer.text));
        }
    }
    assert!(faults.is_empty(), "{} wrong answers:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_told_with_status_200() {
    let service = TestService::start(Database::Sqlite).await;
    let answer = service.post("/v2/scrape", &json!({ "url": "http://no-such-host.invalid/" })).await;
    assert_eq!((answer.status, answer.code()), (200, "SCRAPE_DNS_RESOLUTION_ERROR"), "{}", answer.text);
    assert!(answer.is_base_error(), "wire 2.3: {}", answer.text);
}
