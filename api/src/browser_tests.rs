//! The routes of browser sessions over real rows, with a small server that plays a worker's private listener: it moves
//! the rows as a worker does, and runs nothing.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use actix_web::http::Method;
use actix_web::web::{self, Bytes, Data, Json, Path};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use serde_json::{Value, json};
use weir_shared::domain::capability::{Capability, verify};
use weir_shared::domain::node::NodeState;
use weir_shared::domain::session::EndReason;
use weir_shared::ids::{SessionId, WorkerId};
use weir_shared::store::accounts::{credits, teams};
use weir_shared::store::contents::waste;
use weir_shared::store::sessions::{self, Found, profiles};
use weir_shared::store::work::nodes::{self, NodeRow};
use weir_shared::store::{self, Db};
use weir_shared::time::Timestamp;
use weir_shared::worker_api::sessions::{CLOSE, EXECUTE, OPEN};
use weir_shared::worker_api::{Refusal, SECRET_HEADER};

use crate::service_tests::Api;

/// What the worker does when it is asked to open or close a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// What it should.
    Good,
    /// Answers 503.
    Refuses,
    /// Takes no session that it is asked to open.
    TakesNone,
    /// Answers well and does nothing.
    Lies,
    /// Begins to close and answers that it could not end it yet.
    Slow,
    /// Knows no session.
    Forgets,
    /// Breaks the connection in the middle of the answer.
    Breaks,
    /// Breaks the first connection and does what it should on the next.
    BreaksOnce,
    /// The same as it opens a session, when the call waits for no worker any more.
    BreaksLate,
    /// Counted as dead while it opened a session.
    Buried,
    /// Does what it should as soon as it is in another mood.
    Waits,
}

struct Worker {
    db: Db,
    secret: String,
    id: WorkerId,
    mood: Mutex<Mood>,
    /// How long ago it says that it opened a session, milliseconds.
    head_start: AtomicI64,
    /// Method and path of every request.
    calls: Mutex<Vec<String>>,
}

impl Worker {
    /// Starts to listen and announces itself.
    async fn start(api: &Api, slots: i64) -> Arc<Self> {
        let db = api.state.db.clone();
        let secret = api.state.internal_secret.clone();
        let (mood, calls) = (Mutex::new(Mood::Good), Mutex::default());
        let head_start = AtomicI64::new(0);
        let worker = Arc::new(Self { db, secret, id: WorkerId::new(), mood, head_start, calls });
        let data = Data::from(Arc::clone(&worker));
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let server = HttpServer::new(move || {
            App::new()
                .app_data(data.clone())
                .route(OPEN, web::post().to(open))
                .route(CLOSE.pattern(), web::delete().to(close))
                .route(EXECUTE.pattern(), web::post().to(execute))
        });
        let server = server.workers(1).disable_signals().listen(socket).unwrap().run();
        actix_web::rt::spawn(server);
        announce(&worker.db, worker.id, &address, slots, None).await;
        worker
    }

    fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn mood(&self) -> Mood {
        let mut mood = self.mood.lock().unwrap();
        let now = *mood;
        if now == Mood::BreaksOnce {
            *mood = Mood::Good;
        }
        now
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    /// Its last sign of life was so long ago.
    async fn fall_silent(&self, ms: i64) -> Timestamp {
        let heard = self.db.now().plus_ms(-ms);
        let mut tx = self.db.begin().await.unwrap();
        nodes::heartbeat(&mut tx, self.id, heard, None).await.unwrap();
        tx.commit().await.unwrap();
        heard
    }

    fn take(&self, request: &HttpRequest) {
        let secret = request.headers().get(SECRET_HEADER).map(|v| v.to_str().unwrap().to_owned());
        assert_eq!(secret.as_deref(), Some(self.secret.as_str()), "every call carries the secret");
        self.calls.lock().unwrap().push(format!("{} {}", request.method(), request.path()));
    }
}

async fn announce(db: &Db, id: WorkerId, address: &str, slots: i64, refused: Option<&str>) {
    let now = db.now();
    let node = NodeRow {
        id,
        name: format!("host-{id}"),
        host: "h".into(),
        pid: 1,
        address: address.to_owned(),
        state: NodeState::Live,
        slots: 1,
        session_slots: slots,
        sessions_refused: refused.map(str::to_owned),
        started_at: now,
        heartbeat_at: now,
    };
    let mut tx = db.begin().await.unwrap();
    nodes::insert(&mut tx, &node).await.unwrap();
    tx.commit().await.unwrap();
}

/// The address of a port that nobody listens on.
fn nowhere() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn broken() -> HttpResponse {
    let cut = futures_util::stream::iter([Ok(Bytes::from_static(b"{\"std")), Err(std::io::Error::other("cut"))]);
    HttpResponse::Ok().streaming(cut)
}

fn error(status: u16, text: &str) -> HttpResponse {
    let status = actix_web::http::StatusCode::from_u16(status).unwrap();
    HttpResponse::build(status).json(json!({"error": text}))
}

async fn open(worker: Data<Worker>, request: HttpRequest, body: Json<Value>) -> HttpResponse {
    worker.take(&request);
    let id: SessionId = body["id"].as_str().unwrap().parse().unwrap();
    while worker.mood() == Mood::Waits {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    match worker.mood() {
        Mood::Refuses => return error(503, "no memory for another browser"),
        Mood::TakesNone => return error(Refusal::NotHere.status(), "this worker is stopping"),
        Mood::Lies => return HttpResponse::Ok().json(json!({})),
        Mood::Breaks => return broken(),
        Mood::BreaksLate => {
            tokio::time::sleep(std::time::Duration::from_millis(5_100)).await;
            return broken();
        }
        Mood::Buried => return error(Refusal::Conflict.status(), "the session is not to be opened any more"),
        _ => {}
    }
    let loaded = sessions::load(&worker.db, id).await.unwrap().unwrap().profile_version;
    let mut tx = worker.db.begin().await.unwrap();
    let opened_at = worker.db.now().plus_ms(-worker.head_start.load(Ordering::Relaxed));
    assert!(sessions::activate(&mut tx, id, Found { profile: loaded, warning: None }, opened_at).await.unwrap());
    tx.commit().await.unwrap();
    HttpResponse::Ok().json(json!({}))
}

async fn close(worker: Data<Worker>, request: HttpRequest, id: Path<SessionId>) -> HttpResponse {
    worker.take(&request);
    let (id, now) = (id.into_inner(), worker.db.now());
    let mood = worker.mood();
    match mood {
        Mood::Forgets => return error(404, "no such session"),
        Mood::Refuses => return error(503, "busy"),
        Mood::Breaks | Mood::BreaksOnce => return broken(),
        Mood::Lies => return HttpResponse::Ok().json(json!({})),
        Mood::Good | Mood::Slow | Mood::TakesNone | Mood::BreaksLate | Mood::Buried | Mood::Waits => {}
    }
    let mut tx = worker.db.begin().await.unwrap();
    sessions::begin_close(&mut tx, id, EndReason::Deleted, now).await.unwrap();
    if mood != Mood::Slow {
        sessions::destroy(&mut tx, id, EndReason::Deleted, now).await.unwrap();
    }
    tx.commit().await.unwrap();
    if mood == Mood::Slow { error(500, "still saving") } else { HttpResponse::Ok().json(json!({})) }
}

/// Answers with what it was asked, as the output of the code.
async fn execute(worker: Data<Worker>, request: HttpRequest, body: Json<Value>) -> HttpResponse {
    worker.take(&request);
    match worker.mood() {
        Mood::Forgets => return error(404, "no such session"),
        Mood::Refuses => return error(502, "the runner did not start"),
        Mood::Breaks => return broken(),
        Mood::Lies => return error(410, "closing"),
        _ => {}
    }
    let killed = body["code"] == "while (true);";
    HttpResponse::Ok().json(json!({
        "stdout": body.to_string(),
        "result": null,
        "stderr": "",
        "exitCode": if killed { 137 } else { 0 },
        "killed": killed,
        "error": if killed { json!("Timed out") } else { Value::Null },
        "truncated": false,
    }))
}

async fn create(api: &Api, body: Value) -> SessionId {
    let (status, answer) = api.post("/v2/browser", body).await;
    assert_eq!(status, 200, "{answer}");
    answer["id"].as_str().unwrap().parse().unwrap()
}

async fn ids(api: &Api, query: &str) -> Vec<String> {
    let (status, body) = api.get(&format!("/v2/browser{query}")).await;
    assert_eq!(status, 200, "{body}");
    body["sessions"].as_array().unwrap().iter().map(|s| s["id"].as_str().unwrap().to_owned()).collect()
}

async fn used(api: &Api) -> i64 {
    credits::balance(&api.state.db, api.team).await.unwrap().unwrap().used
}

#[actix_web::test]
async fn a_session_is_created_listed_used_deleted_and_billed_under_both_names() {
    let api = Api::start(&[]).await;
    let worker = Worker::start(&api, 5).await;
    worker.head_start.store(61_500, Ordering::Relaxed);
    for (n, root) in ["/v2/browser", "/v2/interact"].into_iter().enumerate() {
        let body = json!({"ttl": 120, "activityTtl": 60, "streamWebView": false, "origin": "python-sdk@4"});
        let (status, made) = api.post(root, body).await;
        assert_eq!((status, &made["success"], made.get("warning")), (200, &json!(true), None), "{made}");
        let id: SessionId = made["id"].as_str().unwrap().parse().unwrap();
        let secret = api.state.internal_secret.as_bytes();
        let cdp = format!("wss://weir.test:8443/cdp/{id}?token=");
        let token = made["cdpUrl"].as_str().unwrap().strip_prefix(&cdp).unwrap();
        assert!(verify(secret, Capability::Cdp, id, token));
        for (field, kind) in [("liveViewUrl", Capability::View), ("interactiveLiveViewUrl", Capability::Control)] {
            let view = format!("https://weir.test:8443/live/{id}#");
            assert!(verify(secret, kind, id, made[field].as_str().unwrap().strip_prefix(&view).unwrap()));
        }
        assert_eq!(worker.calls(), ["POST /sessions"]);

        let (_, listed) = api.get(&format!("{root}?status=active")).await;
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
        let entry = &listed["sessions"][0];
        for field in ["id", "cdpUrl", "liveViewUrl", "interactiveLiveViewUrl", "expiresAt"] {
            assert_eq!(entry[field], made[field], "{field}");
        }
        assert_eq!((&entry["status"], &entry["streamWebView"]), (&json!("active"), &json!(false)));
        assert!(entry["createdAt"].as_str().unwrap().ends_with('Z') && entry["lastActivity"].is_string());
        let (_, shown) = api.get(&format!("{root}/{id}")).await;
        assert_eq!((&shown["id"], &shown["success"]), (&made["id"], &json!(true)));
        assert_eq!(shown.get("creditsBilled"), None, "it still runs");

        let code = json!({"code": "1 + 1", "language": "python", "timeout": 7, "integration": "cli"});
        let (status, ran) = api.post(&format!("{root}/{id}/execute"), code).await;
        assert_eq!((status, &ran["success"], &ran["exitCode"]), (200, &json!(true), &json!(0)), "{ran}");
        assert_eq!((&ran["killed"], ran.get("error"), ran.get("truncated")), (&json!(false), None, None));
        assert_eq!(ran["result"], ran["stdout"]);
        let asked: Value = serde_json::from_str(ran["stdout"].as_str().unwrap()).unwrap();
        assert_eq!(asked, json!({"code": "1 + 1", "language": "python", "timeout_ms": 7_000}));

        let (status, first) = api.delete(&format!("{root}/{id}")).await;
        assert_eq!((status, &first["success"], &first["creditsBilled"]), (200, &json!(true), &json!(3)), "{first}");
        assert!((61_500..70_000).contains(&first["sessionDurationMs"].as_i64().unwrap()));
        assert_eq!((&first["status"], first.get("cleanupQueued")), (&json!("destroyed"), None));
        let (execute, delete) = (format!("POST /sessions/{id}/execute"), format!("DELETE /sessions/{id}"));
        assert_eq!(worker.calls(), [execute, delete]);
        // Again, and in the other form: the same numbers, and nobody is asked.
        assert_eq!(api.delete(&format!("{root}/{id}")).await, (200, first.clone()));
        let again = api.request(Method::DELETE, root).set_payload(json!({"id": id}).to_string());
        assert_eq!(api.send(again).await, (200, first.clone()));
        assert_eq!((worker.calls().len(), used(&api).await), (0, 3 * (n as i64 + 1)));

        let (_, gone) = api.get(&format!("{root}?status=destroyed")).await;
        let entry = &gone["sessions"][0];
        assert_eq!(
            (&entry["id"], &entry["status"], &entry["cdpUrl"]),
            (&made["id"], &json!("destroyed"), &made["cdpUrl"])
        );
        let (_, shown) = api.get(&format!("{root}/{id}")).await;
        assert_eq!((&shown["creditsBilled"], &shown["sessionDurationMs"]), (&json!(3), &first["sessionDurationMs"]));
        let (status, refused) = api.post(&format!("{root}/{id}/execute"), json!({"code": "1"})).await;
        assert_eq!((status, &refused["error"]), (410, &json!("Browser session has been destroyed.")));
    }
    assert_eq!((ids(&api, "").await.len(), ids(&api, "?status=active&x=y").await.len()), (2, 0));
}

#[actix_web::test]
async fn a_session_whose_caller_has_gone_before_it_was_open_is_ended() {
    let api = Api::start(&[]).await;
    let worker = Worker::start(&api, 5).await;
    worker.set(Mood::Waits);
    let until = async |what: fn(&[String]) -> bool| {
        let mut calls = Vec::new();
        while !what(&calls) {
            calls.extend(worker.calls());
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        answer = api.post("/v2/browser", json!({})) => panic!("{answer:?}"),
        () = until(|calls| calls == ["POST /sessions"]) => {}
    }
    worker.set(Mood::Good);
    let wait = std::time::Duration::from_millis(10);
    let is_ended = async |count: usize| {
        let ended = async {
            until(|calls| calls.iter().any(|call| call.starts_with("DELETE /sessions/"))).await;
            while ids(&api, "?status=destroyed").await.len() != count {
                tokio::time::sleep(wait).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), ended).await.expect("it is ended");
        assert_eq!(ids(&api, "?status=active").await.len(), 0);
    };
    is_ended(1).await;
    // So is that of one who goes when it is open, and has not been answered yet.
    worker.set(Mood::Waits);
    {
        let mut call = std::pin::pin!(api.post("/v2/browser", json!({})));
        tokio::select! {
            answer = &mut call => panic!("{answer:?}"),
            () = until(|calls| calls == ["POST /sessions"]) => {}
        }
        worker.set(Mood::Good);
        // Who opens it counts it, and tells the call in the same step; the call is not looked at.
        let opened = async {
            while !api.state.metrics.text().unwrap().contains("weir_session_opens_total{outcome=\"opened\"} 2") {
                tokio::time::sleep(wait).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), opened).await.expect("it is open");
    }
    is_ended(2).await;
}

#[actix_web::test]
async fn a_session_needs_no_body_and_an_unknown_field_is_named() {
    let api = Api::start(&[]).await;
    Worker::start(&api, 5).await;
    let (status, body) = api.send(api.request(Method::POST, "/v2/browser")).await;
    assert_eq!(status, 200, "{body}");
    let (status, body) = api.post("/v2/browser", json!({"blockAds": true, "colour": "red"})).await;
    assert_eq!(status, 200, "{body}");
    let warning = body["warning"].as_str().unwrap();
    assert!(!warning.contains("blockAds") && warning.contains("colour"), "{warning}");
    let id = body["id"].as_str().unwrap();
    let (_, ran) = api.post(&format!("/v2/browser/{id}/execute"), json!({"code": "1", "tempo": 3})).await;
    assert!(ran["warning"].as_str().unwrap().contains("tempo"), "{ran}");
}

#[actix_web::test]
async fn wrong_bodies_and_queries_are_refused_before_anybody_is_asked() {
    let api = Api::start(&[]).await;
    let worker = Worker::start(&api, 5).await;
    let id = create(&api, json!({})).await;
    let execute = format!("/v2/interact/{id}/execute");
    worker.calls();
    for (method, path, body, place) in [
        (Method::POST, "/v2/browser", json!({"ttl": 29}), json!(["ttl"])),
        (Method::POST, "/v2/interact", json!({"activityTtl": 3601}), json!(["activityTtl"])),
        (Method::POST, "/v2/browser", json!({"profile": {"name": ""}}), json!(["profile", "name"])),
        (Method::POST, "/v2/browser", json!({"profile": {"name": "a", "b": 1}}), json!(["profile"])),
        (Method::POST, "/v2/browser", json!({"recordSession": true}), json!(["recordSession"])),
        (Method::POST, "/v2/browser", json!("x"), json!([])),
        (Method::POST, &execute, json!({}), json!(["code"])),
        (Method::POST, &execute, json!({"code": "x".repeat(100_001)}), json!(["code"])),
        (Method::POST, &execute, json!({"code": "1", "language": "perl"}), json!(["language"])),
        (Method::POST, &execute, json!({"code": "1", "timeout": 301}), json!(["timeout"])),
        (Method::DELETE, "/v2/browser", json!({}), json!(["id"])),
        (Method::DELETE, "/v2/interact", json!({"id": 7}), json!(["id"])),
        (Method::GET, "/v2/browser?status=closing", Value::Null, json!(["status"])),
    ] {
        let request = api.request(method.clone(), path).set_payload(body.to_string());
        let (status, answer) = api.send(request).await;
        assert_eq!((status, &answer["success"]), (400, &json!(false)), "{method} {path} {body}: {answer}");
        assert_eq!(answer["details"][0]["path"], place, "{method} {path} {body}: {answer}");
    }
    for path in ["/v2/browser", &execute] {
        let (status, answer) = api.send(api.request(Method::POST, path).set_payload("{nope")).await;
        assert_eq!((status, &answer["code"]), (400, &json!("BAD_REQUEST_INVALID_JSON")), "{path}");
    }
    for (method, path) in [(Method::PUT, "/v2/browser"), (Method::POST, "/v2/browser/x"), (Method::GET, &execute)] {
        assert_eq!(api.send(api.request(method.clone(), path)).await.0, 405, "{method} {path}");
    }
    assert_eq!(worker.calls(), Vec::<String>::new());
    assert_eq!(ids(&api, "").await.len(), 1);
}

#[actix_web::test]
async fn a_session_is_its_teams_alone_on_every_route() {
    let api = Api::start(&[]).await;
    let worker = Worker::start(&api, 5).await;
    let id = create(&api, json!({"profile": {"name": "work"}})).await;
    let other = api.other_team().await;
    let (unknown, code) = (SessionId::new(), json!({"code": "1"}));
    worker.calls();
    for root in ["/v2/browser", "/v2/interact"] {
        let routes = |id: &str| {
            [
                (Method::GET, format!("{root}/{id}"), Value::Null),
                (Method::DELETE, format!("{root}/{id}"), Value::Null),
                (Method::DELETE, root.to_owned(), json!({"id": id})),
                (Method::POST, format!("{root}/{id}/execute"), code.clone()),
            ]
        };
        for (id, status, text) in [
            (id.to_string(), 403, "Forbidden."),
            (unknown.to_string(), 404, "Browser session not found."),
            ("nonsense".to_owned(), 404, "Browser session not found."),
        ] {
            for (method, path, body) in routes(&id) {
                let request = other.request(method.clone(), &path).set_payload(body.to_string());
                let (got, answer) = other.send(request).await;
                assert_eq!((got, &answer["error"]), (status, &json!(text)), "{method} {path} {body}");
            }
        }
        assert_eq!(other.get(root).await, (200, json!({"success": true, "sessions": []})));
        for (method, path, body) in routes(&id.to_string()).into_iter().chain([
            (Method::POST, root.to_owned(), json!({})),
            (Method::GET, root.to_owned(), Value::Null),
            (Method::DELETE, format!("{root}/profiles/work"), Value::Null),
        ]) {
            let request = actix_web::test::TestRequest::with_uri(&path).method(method.clone());
            let (got, _) = api.send(request.set_payload(body.to_string())).await;
            assert_eq!(got, 401, "{method} {path}");
        }
    }
    // A profile's name belongs to its team.
    assert_eq!(other.delete("/v2/browser/profiles/work").await.0, 404);
    assert_eq!(worker.calls(), Vec::<String>::new());
    create(&other, json!({"profile": {"name": "work"}})).await;
    assert_eq!((ids(&other, "").await.len(), ids(&api, "").await), (1, vec![id.to_string()]));
}

#[actix_web::test]
async fn a_team_has_a_number_of_sessions_and_the_server_a_number_of_slots() {
    let api = Api::start(&[("WEIR_TEAM_SESSIONS", "2")]).await;
    let ask = async |api: &Api| api.send_whole(api.request(Method::POST, "/v2/browser").set_payload("{}")).await;
    let (status, retry, body) = ask(&api).await;
    assert_eq!((status, retry, &body["error"]), (503, Some(5), &json!("No worker is running. Please try again.")));
    let worker = WorkerId::new();
    announce(&api.state.db, worker, "127.0.0.1:1", 0, Some("user namespaces are forbidden")).await;
    let mut tx = api.state.db.begin().await.unwrap();
    nodes::say_box_limits(&mut tx, worker, "cgroup v2").await.unwrap();
    tx.commit().await.unwrap();
    let (status, retry, body) = ask(&api).await;
    assert_eq!((status, retry.is_some(), &body["code"]), (503, true, &json!("BROWSER_NOT_CONFIGURED")));
    let text = body["error"].as_str().unwrap();
    assert!(text.starts_with("Browser feature is not configured") && text.contains("user namespaces"), "{text}");
    let (_, ready) = api.get("/readyz").await;
    assert!(ready["sessionsRefused"][0].as_str().unwrap().contains("user namespaces"), "{ready}");
    assert!(ready["boxLimits"][0].as_str().unwrap().ends_with(": cgroup v2"), "{ready}");

    Worker::start(&api, 3).await;
    let first = create(&api, json!({})).await;
    create(&api, json!({})).await;
    let (status, retry, body) = ask(&api).await;
    assert_eq!((status, retry, &body["code"]), (429, Some(5), &json!("TOO_MANY_SESSIONS")));
    let text = body["error"].as_str().unwrap();
    assert!(text.starts_with("You have reached the maximum number of concurrent jobs (2)"), "{text}");
    let other = api.other_team().await;
    create(&other, json!({})).await;
    let (status, retry, body) = ask(&other).await;
    assert_eq!((status, retry), (503, Some(5)), "every slot is taken: {body}");
    assert_eq!(api.delete(&format!("/v2/browser/{first}")).await.0, 200);
    create(&other, json!({})).await;

    let mut tx = api.state.db.begin().await.unwrap();
    let change = teams::TeamChange { sessions: Some(Some(1)), ..Default::default() };
    teams::update(&mut tx, api.team, &change).await.unwrap();
    tx.commit().await.unwrap();
    assert!(ask(&api).await.2["error"].as_str().unwrap().contains("(1)"), "the team's own number counts");
}

#[actix_web::test]
async fn a_team_has_a_number_of_sockets_and_one_that_does_not_open_keeps_none() {
    let api = Api::start(&[]).await;
    let _worker = Worker::start(&api, 5).await;
    let (_, made) = api.post("/v2/browser", json!({})).await;
    let (_, path) = made["cdpUrl"].as_str().unwrap().split_once(":8443").unwrap();
    let connect = || {
        let key = ("sec-websocket-key", "d2VpciBsaXZlIHNvY2tldA==");
        let request = api.request(Method::GET, path).insert_header(("upgrade", "websocket")).insert_header(key);
        request.insert_header(("connection", "Upgrade")).insert_header(("sec-websocket-version", "13"))
    };
    let take_all = || std::iter::from_fn(|| api.state.places.socket(api.team).ok()).collect::<Vec<_>>();
    let mut held = take_all();
    let all = held.len();
    let (status, retry_after, body) = api.send_whole(connect()).await;
    assert_eq!((status, retry_after, &body["code"]), (429, Some(5), &json!("RATE_LIMITED")), "{body}");
    held.pop();
    // The browser of this worker takes no connections.
    for _ in 0..2 {
        let (status, body) = api.send(connect()).await;
        assert!(status >= 400 && status != 429, "{status} {body}");
    }
    drop(held);
    assert_eq!(take_all().len(), all);
}

#[actix_web::test]
async fn creations_at_once_take_no_more_than_the_team_may() {
    let api = Api::start(&[("WEIR_TEAM_SESSIONS", "3")]).await;
    Worker::start(&api, 12).await;
    let asked = (0..8).map(|_| api.post("/v2/browser", json!({})));
    let statuses: Vec<u16> = futures_util::future::join_all(asked).await.into_iter().map(|a| a.0).collect();
    assert_eq!(statuses.iter().filter(|s| **s == 200).count(), 3, "{statuses:?}");
    assert!(statuses.iter().all(|s| [200, 429].contains(s)), "{statuses:?}");
    assert_eq!(ids(&api, "?status=active").await.len(), 3);
}

#[actix_web::test]
async fn the_rate_of_creations_and_executions_is_limited() {
    let api = Api::start(&[("WEIR_RATE_LIMITS", "browser=1,execute=1")]).await;
    Worker::start(&api, 12).await;
    let id = create(&api, json!({})).await;
    // The minute may have changed between two calls.
    let mut statuses = Vec::new();
    for _ in 0..2 {
        statuses.push(api.post("/v2/interact", json!({})).await.0);
    }
    assert!(statuses.contains(&429), "both names share the bucket: {statuses:?}");
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(api.post(&format!("/v2/browser/{id}/execute"), json!({"code": "1"})).await.0);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[actix_web::test]
async fn a_metered_team_needs_credits_for_the_whole_ttl() {
    let api = Api::start(&[("WEIR_CREDITS", "metered")]).await;
    Worker::start(&api, 5).await;
    let grant = async |amount| {
        let mut tx = api.state.db.begin().await.unwrap();
        credits::grant(&mut tx, api.team, amount).await.unwrap();
        tx.commit().await.unwrap();
    };
    grant(19).await;
    let (status, body) = api.post("/v2/browser", json!({"ttl": 600})).await;
    let text = body["error"].as_str().unwrap();
    assert!(status == 402 && text.starts_with("Insufficient credits for a 600s browser session"), "{status} {text}");
    assert!(text.contains("20"), "{text}");
    let id = create(&api, json!({"ttl": 570})).await;
    assert_eq!(api.post("/v2/browser", json!({"ttl": 30})).await.0, 402, "held back for the first");
    assert_eq!(api.delete(&format!("/v2/browser/{id}")).await.1["creditsBilled"], 2);
    create(&api, json!({"ttl": 500})).await;
}

#[actix_web::test]
async fn a_profile_has_one_saver_at_a_time_and_can_be_forgotten() {
    let api = Api::start(&[]).await;
    Worker::start(&api, 9).await;
    let saves = json!({"profile": {"name": "my shop/eu"}});
    let path = "/v2/interact/profiles/my%20shop%2Feu";
    let saver = create(&api, saves.clone()).await;
    let (status, body) = api.post("/v2/browser", saves.clone()).await;
    let text = body["error"].as_str().unwrap();
    assert!(status == 409 && text.starts_with("Another session is currently writing to this profile"), "{text}");
    create(&api, json!({"profile": {"name": "my shop/eu", "saveChanges": false}})).await;
    create(&api, json!({"profile": {"name": "other"}})).await;
    assert_eq!(api.delete(path).await.0, 409);

    let (db, blobs) = (&api.state.db, &api.state.blobs);
    waste::put(db, blobs, "profiles/x", Arc::new(b"state".to_vec())).await.unwrap();
    let mut tx = api.state.db.begin().await.unwrap();
    profiles::publish(&mut tx, saver, "profiles/x", 5, api.state.db.now()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(api.delete(&format!("/v2/browser/{saver}")).await.0, 200);
    let again = create(&api, saves).await;
    assert_eq!(sessions::load(&api.state.db, again).await.unwrap().unwrap().profile_version, Some(1));
    assert_eq!(api.delete(&format!("/v2/browser/{again}")).await.0, 200);
    assert_eq!(api.delete(path).await, (200, json!({"success": true})));
    assert_eq!(waste::remove(db, blobs, db.now()).await.unwrap(), 1);
    assert!(blobs.get("profiles/x").is_err(), "the blob goes with it");
    let (status, body) = api.delete(path).await;
    assert_eq!((status, &body["error"]), (404, &json!("Profile not found.")));
    assert_eq!(api.delete(&format!("/v2/browser/profiles/{}", "x".repeat(129))).await.0, 400);
}

#[actix_web::test]
async fn a_browser_that_does_not_start_leaves_nothing_and_costs_nothing() {
    let api = Api::start(&[("WEIR_TEAM_SESSIONS", "1")]).await;
    let worker = Worker::start(&api, 1).await;
    let wanted = json!({"profile": {"name": "p"}});
    for mood in [Mood::Refuses, Mood::Lies] {
        worker.set(mood);
        let (status, body) = api.post("/v2/browser", wanted.clone()).await;
        assert_eq!((status, &body["error"]), (502, &json!("Failed to create browser session.")), "{mood:?}");
        assert_eq!(ids(&api, "").await.len(), 0);
    }
    worker.set(Mood::Good);
    let id = create(&api, wanted).await;
    assert_eq!((used(&api).await, ids(&api, "").await), (0, vec![id.to_string()]), "place, slot and lease were free");
}

#[actix_web::test]
async fn workers_that_cannot_be_reached_or_take_none_are_passed_over() {
    let api = Api::start(&[]).await;
    for slots in [8, 9] {
        announce(&api.state.db, WorkerId::new(), &nowhere(), slots, None).await;
    }
    let (status, retry, body) = api.send_whole(api.request(Method::POST, "/v2/browser")).await;
    let text = "The worker of the browser session cannot be reached. Please try again.";
    assert_eq!((status, retry, &body["error"]), (503, Some(5), &json!(text)));
    let (stopping, worker) = (Worker::start(&api, 7).await, Worker::start(&api, 1).await);
    stopping.set(Mood::TakesNone);
    let id = create(&api, json!({})).await;
    let asked = vec!["POST /sessions".to_owned()];
    assert_eq!(
        (stopping.calls(), worker.calls()),
        (asked.clone(), asked),
        "and neither is told to close what it has not"
    );
    assert_eq!(ids(&api, "").await, [id.to_string()]);
}

#[actix_web::test]
async fn a_session_whose_worker_dies_while_it_opens_goes_to_another() {
    let api = Api::start(&[]).await;
    let (dying, worker) = (Worker::start(&api, 9).await, Worker::start(&api, 5).await);
    for mood in [Mood::Breaks, Mood::Buried, Mood::BreaksLate] {
        dying.set(mood);
        let wanted = json!({"profile": {"name": format!("{mood:?}")}});
        let id = create(&api, wanted).await;
        assert_eq!(ids(&api, "?status=active").await[0], id.to_string(), "{mood:?}");
        let asked = |worker: &Worker| worker.calls().iter().filter(|call| *call == "POST /sessions").count();
        assert_eq!((asked(&dying), asked(&worker)), (1, 1), "{mood:?}");
    }
}

/// As one whose machine is gone, of which nothing more comes.
#[actix_web::test]
async fn a_worker_that_counts_as_dead_is_not_waited_for() {
    let api = Api::start(&[]).await;
    let (dying, worker) = (Worker::start(&api, 9).await, Worker::start(&api, 1).await);
    dying.set(Mood::Waits);
    let buried = async {
        while dying.calls().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let mut tx = api.state.db.begin().await.unwrap();
        nodes::declare_dead(&mut tx, dying.id).await.unwrap();
        tx.commit().await.unwrap();
        sessions::end_orphans(&api.state.db).await.unwrap();
    };
    let (id, ()) = futures_util::join!(create(&api, json!({})), buried);
    assert_eq!((ids(&api, "?status=active").await, worker.calls().len()), (vec![id.to_string()], 1));
}

#[actix_web::test]
async fn a_full_server_waits_a_moment_for_a_worker_that_has_just_started() {
    let api = Api::start(&[]).await;
    Worker::start(&api, 1).await;
    create(&api, json!({})).await;
    let started = Worker::start(&api, 0).await;
    let offer = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let mut tx = api.state.db.begin().await.unwrap();
        nodes::offer_sessions(&mut tx, started.id, 1, None).await.unwrap();
        tx.commit().await.unwrap();
    };
    let (_, ()) = futures_util::join!(create(&api, json!({})), offer);
    assert_eq!(started.calls(), ["POST /sessions"]);
}

#[actix_web::test]
async fn a_worker_that_has_let_a_call_wait_in_vain_comes_last() {
    let api = Api::start(&[]).await;
    let (silent, worker) = (Worker::start(&api, 9).await, Worker::start(&api, 1).await);
    api.state.silent_workers.note(silent.id, api.state.db.clock().instant());
    let asked = async || {
        create(&api, json!({})).await;
        [&silent, &worker].map(|worker| worker.calls().len())
    };
    assert_eq!(asked().await, [0, 1], "although it has more room");
    assert_eq!(asked().await, [1, 0], "nobody else has any");
    assert!(api.state.silent_workers.now(api.state.db.clock().instant()).is_empty(), "it has answered");
}

/// The address of the interaction with a page that was scraped with these actions.
async fn scraped(api: &Api, actions: Value) -> String {
    let batch = json!({"urls": ["https://site.test/a"], "actions": actions});
    let (status, body) = api.post("/v2/batch/scrape", batch).await;
    assert_eq!(status, 200, "{body}");
    api.work(1).await;
    let (_, body) = api.get(&format!("/v2/batch/scrape/{}", body["id"].as_str().unwrap())).await;
    format!("/v2/scrape/{}/interact", body["data"][0]["metadata"]["scrapeId"].as_str().unwrap())
}

#[actix_web::test]
async fn a_scrape_without_actions_whose_worker_dies_while_it_is_brought_back_goes_to_another() {
    let api = Api::start(&[]).await;
    let (dying, worker) = (Worker::start(&api, 2).await, Worker::start(&api, 1).await);
    dying.set(Mood::Breaks);
    let path = scraped(&api, json!([])).await;
    let (status, body) = api.post(&path, json!({"code": "1"})).await;
    assert_eq!((status, &body["success"]), (200, &json!(true)), "{body}");
    assert_eq!(
        (dying.calls()[0].as_str(), worker.calls().len()),
        ("POST /sessions", 2),
        "opened, and the code was run"
    );
}

#[actix_web::test]
async fn actions_of_a_scrape_that_may_have_been_done_are_not_begun_again_by_a_client_that_repeats_502() {
    let api = Api::start(&[]).await;
    let worker = Worker::start(&api, 2).await;
    let path = scraped(&api, json!([{"type": "click", "selector": "#order"}])).await;
    for mood in [Mood::Breaks, Mood::Buried, Mood::Lies] {
        worker.set(mood);
        let (status, body) = api.post(&path, json!({"code": "1"})).await;
        let text = body["error"].as_str().unwrap();
        assert_eq!((status, text.contains("its actions may have been done")), (503, true), "{mood:?}: {body}");
        assert_eq!(worker.calls().iter().filter(|call| *call == "POST /sessions").count(), 1, "{mood:?}");
    }
}

#[actix_web::test]
async fn a_session_waits_a_moment_for_a_worker_that_comes_back() {
    let api = Api::start(&[]).await;
    announce(&api.state.db, WorkerId::new(), &nowhere(), 1, None).await;
    let coming = async {
        // Its first worker is asked meanwhile.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        Worker::start(&api, 1).await
    };
    let (id, worker) = futures_util::join!(create(&api, json!({})), coming);
    assert_eq!((worker.calls(), ids(&api, "").await), (vec!["POST /sessions".to_owned()], vec![id.to_string()]));
}

#[actix_web::test]
async fn sessions_of_a_dead_worker_are_destroyed_for_whoever_asks() {
    let api = Api::start(&[("WEIR_TEAM_SESSIONS", "3")]).await;
    let dying = Worker::start(&api, 3).await;
    dying.head_start.store(120_000, Ordering::Relaxed);
    let wanted = json!({"profile": {"name": "p"}});
    let (first, second) = (create(&api, wanted.clone()).await, create(&api, json!({})).await);
    let third = create(&api, json!({})).await;
    dying.fall_silent(nodes::DEAD_MS - 5_000).await;
    assert_eq!(ids(&api, "?status=active").await.len(), 3, "silent, not dead");
    let heard = dying.fall_silent(nodes::DEAD_MS + 1_000).await;
    Worker::start(&api, 3).await;
    // Nobody sweeps here: whoever asks finds out.
    let next = create(&api, wanted).await;
    assert_eq!(ids(&api, "?status=active").await, [next.to_string()]);
    let (status, body) = api.post(&format!("/v2/browser/{second}/execute"), json!({"code": "1"})).await;
    assert_eq!(status, 410, "{body}");
    let row = sessions::load(&api.state.db, first).await.unwrap().unwrap();
    assert_eq!((row.ended_at, row.end_reason), (Some(heard), Some(EndReason::WorkerDied)));
    let (status, body) = api.delete(&format!("/v2/browser/{third}")).await;
    let billed = body["sessionDurationMs"].as_i64().unwrap();
    assert!(status == 200 && (105_000..119_000).contains(&billed), "until the last sign of life: {body}");
    assert_eq!((&body["creditsBilled"], used(&api).await), (&json!(4), 12));

    // And by a list, a read or a delete alone.
    let lost = Worker::start(&api, 9).await;
    let id = create(&api, json!({})).await;
    lost.fall_silent(60_000).await;
    assert_eq!(api.get(&format!("/v2/browser/{id}")).await.1["status"], "destroyed");
    assert_eq!(ids(&api, "?status=active").await, [next.to_string()]);
}

#[actix_web::test]
async fn a_clock_that_is_set_ahead_ends_no_session_of_a_living_worker() {
    let api = Api::start(&[]).await;
    let worker = Worker::start(&api, 9).await;
    let id = create(&api, json!({"ttl": 3_600})).await;
    api.state.db.clock().advance(std::time::Duration::from_secs(60));
    assert_eq!(ids(&api, "?status=active").await, [id.to_string()]);
    let (status, _) = api.post(&format!("/v2/browser/{id}/execute"), json!({"code": "1"})).await;
    assert_eq!((status, worker.calls().len()), (200, 2));
    assert!(sessions::load(&api.state.db, id).await.unwrap().unwrap().is_live());
    // Its worker gives the next sign of life by the same clock.
    worker.fall_silent(0).await;
    assert_eq!(ids(&api, "?status=active").await, [id.to_string()]);
}

#[actix_web::test]
async fn a_delete_ends_the_session_whatever_its_worker_does() {
    let api = Api::start(&[]).await;
    let worker = Worker::start(&api, 9).await;
    for (mood, calls) in [
        (Mood::Good, 1),
        (Mood::BreaksOnce, 2),
        (Mood::Forgets, 1),
        (Mood::Lies, 1),
        (Mood::Refuses, 1),
        (Mood::Breaks, 2),
    ] {
        worker.set(Mood::Good);
        let id = create(&api, json!({"profile": {"name": "p"}})).await;
        worker.calls();
        worker.set(mood);
        let (status, body) = api.delete(&format!("/v2/browser/{id}")).await;
        assert_eq!((status, &body["creditsBilled"], body.get("cleanupQueued")), (200, &json!(2), None), "{mood:?}");
        assert_eq!(worker.calls().len(), calls, "{mood:?}");
        assert!(!sessions::load(&api.state.db, id).await.unwrap().unwrap().is_live(), "{mood:?}");
    }
    assert_eq!(used(&api).await, 12);

    // One that still saves its profile is left to it, and its bill is final.
    worker.set(Mood::Good);
    let id = create(&api, json!({"profile": {"name": "p"}})).await;
    worker.set(Mood::Slow);
    let (status, first) = api.delete(&format!("/v2/browser/{id}")).await;
    assert_eq!((status, &first["cleanupQueued"], &first["creditsBilled"]), (200, &json!(true), &json!(2)), "{first}");
    assert_eq!(ids(&api, "?status=active").await.len(), 0);
    assert_eq!(api.post(&format!("/v2/browser/{id}/execute"), json!({"code": "1"})).await.0, 410);
    assert_eq!(api.post("/v2/browser", json!({"profile": {"name": "p"}})).await.0, 409, "the lease is still held");
    api.state.db.clock().advance(std::time::Duration::from_secs(2));
    worker.set(Mood::Good);
    let (_, second) = api.delete(&format!("/v2/browser/{id}")).await;
    assert_eq!((second.get("cleanupQueued"), &second["sessionDurationMs"]), (None, &first["sessionDurationMs"]));
}

#[actix_web::test]
async fn an_execution_tells_code_that_failed_from_a_session_that_did() {
    let api = Api::start(&[]).await;
    let worker = Worker::start(&api, 9).await;
    let id = create(&api, json!({})).await;
    let path = format!("/v2/browser/{id}/execute");
    let (status, body) = api.post(&path, json!({"code": "while (true);", "timeout": 1})).await;
    assert_eq!((status, &body["success"], &body["killed"]), (200, &json!(true), &json!(true)));
    assert_eq!((&body["error"], &body["exitCode"]), (&json!("Timed out"), &json!(137)));
    for (mood, expected) in [(Mood::Refuses, 502), (Mood::Breaks, 503), (Mood::Lies, 410), (Mood::Forgets, 410)] {
        worker.set(mood);
        worker.calls();
        let (status, body) = api.post(&path, json!({"code": "1"})).await;
        assert_eq!((status, worker.calls().len()), (expected, 1), "code is never sent twice: {mood:?} {body}");
    }
    worker.set(Mood::Good);
    assert_eq!(api.post(&path, json!({"code": "1"})).await.0, 410, "a session that its worker forgot has ended");
    assert_eq!(api.delete(&format!("/v2/browser/{id}")).await.1["creditsBilled"], 2);
    let figures = api.state.metrics.text().unwrap();
    for line in [
        r#"weir_executions_total{language="node",outcome="killed"} 1"#,
        r#"weir_session_opens_total{outcome="opened"} 1"#,
    ] {
        assert!(figures.contains(line), "{line} is not in {figures}");
    }
}

#[actix_web::test]
async fn an_execution_whose_worker_is_away_was_not_run() {
    let api = Api::start(&[]).await;
    let worker = WorkerId::new();
    announce(&api.state.db, worker, &nowhere(), 9, None).await;
    // Placed and opened by hand: nobody listens at its worker's address.
    let request = weir_shared::domain::session::parse_create(&json!({})).unwrap();
    let new = sessions::NewSession {
        team: api.team,
        key: None,
        kind: weir_shared::domain::session::SessionKind::Browser,
        page: None,
        request: &request,
        default_limit: 10,
        metered: false,
        avoid: &[],
        only: None,
    };
    let now = api.state.db.now();
    let mut tx = api.state.db.begin().await.unwrap();
    let id = sessions::create(&mut tx, &new, now).await.unwrap().unwrap().id;
    tx.commit().await.unwrap();
    for (method, path) in [(Method::GET, format!("/v2/browser/{id}")), (Method::DELETE, format!("/v2/browser/{id}"))] {
        assert_eq!(api.send(api.request(method, &path)).await.0, 404, "nobody was told of it yet");
    }
    let mut tx = api.state.db.begin().await.unwrap();
    sessions::activate(&mut tx, id, Found::default(), now).await.unwrap();
    tx.commit().await.unwrap();
    let (status, body) = api.post(&format!("/v2/browser/{id}/execute"), json!({"code": "1"})).await;
    assert_eq!((status, &body["error"]), (502, &json!("Failed to execute code in browser session.")));
    let (status, body) = api.delete(&format!("/v2/browser/{id}")).await;
    assert_eq!((status, &body["creditsBilled"]), (200, &json!(2)));
}

#[actix_web::test]
async fn a_session_outlives_the_api_process() {
    let api = Api::start(&[]).await;
    Worker::start(&api, 5).await;
    let (_, made) = api.post("/v2/browser", json!({"profile": {"name": "p"}})).await;
    let id = made["id"].as_str().unwrap();
    let next = api.restarted().await;
    let (_, shown) = next.get(&format!("/v2/browser/{id}")).await;
    for field in ["cdpUrl", "liveViewUrl", "interactiveLiveViewUrl", "expiresAt"] {
        assert_eq!(shown[field], made[field], "{field}");
    }
    assert_eq!(next.post(&format!("/v2/browser/{id}/execute"), json!({"code": "1"})).await.0, 200);
    assert_eq!(next.post("/v2/browser", json!({"profile": {"name": "p"}})).await.0, 409);
    let (status, first) = next.delete(&format!("/v2/browser/{id}")).await;
    assert_eq!((status, api.delete(&format!("/v2/browser/{id}")).await), (200, (200, first)));
}

#[actix_web::test]
async fn a_destroyed_session_is_forgotten_after_the_result_time() {
    const RESULT_TTL_MS: i64 = 5_000;
    let api = Api::start(&[("WEIR_RESULT_TTL", "5s")]).await;
    Worker::start(&api, 5).await;
    let (id, lives) = (create(&api, json!({})).await, create(&api, json!({})).await);
    assert_eq!(api.delete(&format!("/v2/browser/{id}")).await.0, 200);
    assert_eq!(ids(&api, "?status=destroyed").await.len(), 1);
    api.state.db.clock().advance(std::time::Duration::from_millis(RESULT_TTL_MS.unsigned_abs()));
    assert_eq!(ids(&api, "").await, [lives.to_string()]);
    assert_eq!(api.get(&format!("/v2/browser/{id}")).await.0, 404);
    assert_eq!(api.post(&format!("/v2/browser/{id}/execute"), json!({"code": "1"})).await.0, 404);
    let mut tx = api.state.db.begin().await.unwrap();
    assert_eq!(store::sessions::remove_old(&mut tx, api.state.db.now().plus_ms(-RESULT_TTL_MS)).await.unwrap(), 1);
}

#[actix_web::test]
async fn figures_and_readiness_tell_of_sessions() {
    let api = Api::start(&[]).await;
    Worker::start(&api, 7).await;
    create(&api, json!({})).await;
    let (status, ready) = api.get("/readyz").await;
    assert_eq!((status, &ready["sessionSlots"], ready.get("sessionsRefused")), (200, &json!(7), None));
    assert_eq!(ready.get("browserProblems"), None);
    api.get("/metrics").await;
    let figures = api.state.metrics.text().unwrap();
    for line in [
        r#"weir_sessions{state="active"} 1"#,
        r#"weir_sessions{state="closing"} 0"#,
        "weir_session_slots 7",
        "weir_workers_without_browser 0",
    ] {
        assert!(figures.contains(line), "{line} is not in {figures}");
    }
}
