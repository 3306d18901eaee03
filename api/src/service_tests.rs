//! The routes over real rows, with pages ended by hand instead of by a worker. The whole service, workers included, is
//! tested in the `tests` crate.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../shared/src/store/testing/sqlite_template.rs"]
mod sqlite_template;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use actix_web::App;
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use serde_json::{Value, json};
use weir_shared::blobs::Blobs;
use weir_shared::clock::Stopwatch;
use weir_shared::config::{DatabaseUrl, Settings};
use weir_shared::domain::document::Document;
use weir_shared::domain::job::JobKind;
use weir_shared::error_code::ErrorCode;
use weir_shared::fault::{Fault, FaultPoint};
use weir_shared::ids::{JobId, PageId, TeamId, WorkerId};
use weir_shared::store::accounts::{keys, teams};
use weir_shared::store::contents::version::Body;
use weir_shared::store::work::page::end::{Finished, Outcome};
use weir_shared::store::work::page::finish::finish_many;
use weir_shared::store::work::page::{claim, rows};
use weir_shared::store::work::{documents, pages, queue_depth};
use weir_shared::store::{self, Db, PoolUse};

use crate::app::AppData;
use crate::callers::first_key;
use crate::http::{access_log, answers};
use crate::{routes, server};

pub(crate) struct Api {
    pub state: AppData,
    pub key: String,
    pub team: TeamId,
    folder: PathBuf,
}

impl Drop for Api {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Api {
    pub async fn start(extra: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("weir-api-{}", JobId::new()));
        let mut values: HashMap<String, String> = extra.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        values.insert("DATABASE_URL".into(), format!("sqlite://{}/weir.db", folder.display()));
        values.insert("WEIR_BLOBS".into(), format!("file://{}/blobs", folder.display()));
        values.entry("WEIR_ALLOW_NETS".into()).or_insert_with(|| "127.0.0.0/8".into());
        let mut settings = Settings::from_lookup(&|name| values.get(name).cloned()).unwrap();
        settings.api.api_key_file = folder.join("api-key");
        sqlite_template::create(&folder.join("weir.db"), async |draft| {
            let db = Db::connect(&DatabaseUrl::Sqlite(draft), 1, PoolUse::Rows).await.unwrap();
            store::migrate(&db).await.unwrap();
            db.close().await;
        })
        .await;
        let db = server::connect(&settings, PoolUse::Rows).await.unwrap();
        let key = first_key::ensure(&db, &settings.api).await.unwrap().key;
        let team = teams::by_name(&db, "default").await.unwrap().unwrap().id;
        Self { state: server::build(settings, db).await.unwrap(), key, team, folder }
    }

    pub async fn send(&self, request: TestRequest) -> (u16, Value) {
        let (status, _, body) = self.send_whole(request).await;
        (status, body)
    }

    /// Status, `Retry-After` and body.
    pub async fn send_whole(&self, request: TestRequest) -> (u16, Option<u64>, Value) {
        let app = App::new()
            .app_data(self.state.clone())
            .wrap(from_fn(answers::hold))
            .wrap(from_fn(access_log::observe))
            .configure(routes::configure);
        let app = init_service(app).await;
        let response = call_service(&app, request.to_request()).await;
        assert!(response.headers().contains_key("x-request-id"));
        let status = response.status().as_u16();
        let retry_after = response.headers().get("retry-after").map(|v| v.to_str().unwrap().parse().unwrap());
        (status, retry_after, serde_json::from_slice(&read_body(response).await).unwrap_or(Value::Null))
    }

    pub fn request(&self, method: Method, path: &str) -> TestRequest {
        TestRequest::with_uri(path)
            .method(method)
            .insert_header(("authorization", format!("Bearer {}", self.key)))
            .insert_header(("host", "weir.test:8443"))
            .insert_header(("x-forwarded-proto", "https"))
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn delete(&self, path: &str) -> (u16, Value) {
        self.send(self.request(Method::DELETE, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(self.request(Method::POST, path).set_payload(body.to_string())).await
    }

    /// Starts a batch without a key.
    async fn batch_by(&self, host: (&str, &str), body: &str) -> String {
        let request = TestRequest::with_uri("/v2/batch/scrape").method(Method::POST).insert_header(host);
        let (status, answer) = self.send(request.set_payload(body.to_owned())).await;
        assert_eq!(status, 200, "{answer}");
        answer["id"].as_str().unwrap().to_owned()
    }

    async fn batch(&self, urls: &[&str]) -> String {
        let (status, body) = self.post("/v2/batch/scrape", json!({"urls": urls})).await;
        assert_eq!(status, 200, "{body}");
        body["id"].as_str().unwrap().to_owned()
    }

    /// Claims up to `count` pages and ends them, the ones with `fail` in their URL as failures.
    pub async fn work(&self, count: usize) {
        let now = self.state.db.now();
        let mut tx = self.state.db.begin().await.unwrap();
        let claim = claim::claim(&mut tx, self.team, WorkerId::new(), count, 100, now).await.unwrap();
        let ended: Vec<Finished> = claim.pages.into_iter().map(|page| self.end(page)).collect();
        finish_many(&mut tx, &ended, now).await.unwrap();
        tx.commit().await.unwrap();
    }

    fn end(&self, page: rows::Claimed) -> Finished {
        let outcome = if page.url.contains("fail") {
            Outcome::Failed { code: ErrorCode::Site, error: "it broke".into(), credits: 0 }
        } else {
            let mut document = Document { markdown: Some(page.url.clone()), ..Document::default() };
            document.metadata.insert("scrapeId".into(), page.id.to_string().into());
            let document = documents::encode(&document).unwrap();
            Outcome::Done { document, credits: 1 }
        };
        Finished { page, kind: Some(JobKind::Batch), key: None, outcome }
    }

    /// The same database behind another process, as after a restart.
    pub async fn restarted(&self) -> Self {
        let state = server::build(self.state.settings.clone(), self.state.db.clone()).await.unwrap();
        Self { state, key: self.key.clone(), team: self.team, folder: PathBuf::from("/nonexistent/weir") }
    }

    pub async fn other_team(&self) -> Self {
        let mut tx = self.state.db.begin().await.unwrap();
        let team = teams::insert(&mut tx, "other", self.state.db.now()).await.unwrap();
        let key = keys::create(&mut tx, team, self.state.db.now()).await.unwrap().key;
        tx.commit().await.unwrap();
        Self { state: self.state.clone(), key, team, folder: PathBuf::from("/nonexistent/weir") }
    }
}

#[actix_web::test]
async fn a_missing_empty_or_unknown_key_is_401() {
    let api = Api::start(&[]).await;
    for (header, text) in [
        (None, "Unauthorized"),
        (Some("Bearer "), "Unauthorized: Token missing"),
        (Some("Bearer nope"), "Unauthorized: Invalid token"),
    ] {
        let mut request = TestRequest::with_uri("/v2/scrape").method(Method::POST).set_payload("{}");
        if let Some(header) = header {
            request = request.insert_header(("authorization", header));
        }
        let (status, body) = api.send(request).await;
        assert_eq!((status, &body["error"], &body["success"]), (401, &json!(text), &json!(false)));
    }
}

#[actix_web::test]
async fn readiness_tells_of_a_database_that_takes_no_writes() {
    let api = Api::start(&[]).await;
    let reasons = async || api.get("/readyz").await.1["reasons"].clone();
    assert_eq!(reasons().await, json!(["workers: no live worker"]));
    api.state.witness.could_not_write();
    assert_eq!(reasons().await, json!(["database: cannot be written", "workers: no live worker"]));
}

#[actix_web::test]
async fn a_key_file_that_others_could_read_is_shut() {
    use std::os::unix::fs::PermissionsExt;
    let api = Api::start(&[]).await;
    let file = api.folder.join("api-key");
    let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    assert_eq!(first_key::ensure(&api.state.db, &api.state.settings.api).await.unwrap().key, api.key);
    assert_eq!(mode(), 0o600);
}

#[actix_web::test]
async fn open_auth_takes_any_key_and_none() {
    let api = Api::start(&[("WEIR_AUTH", "open")]).await;
    let body = json!({"urls": ["http://a.test/"]}).to_string();
    for header in ["", "Bearer wrong"] {
        let request = TestRequest::with_uri("/v2/batch/scrape").method(Method::POST).set_payload(body.clone());
        let (status, _) = api.send(request.insert_header(("authorization", header))).await;
        assert_eq!(status, 200);
    }
}

/// What a page of another site can make the operator's browser send, and what comes of it.
#[actix_web::test]
async fn open_auth_is_not_for_pages_from_elsewhere() {
    let public = ("WEIR_PUBLIC_URL", "https://weir.example.com");
    let api = Api::start(&[("WEIR_AUTH", "open"), public]).await;
    let own = ("host", "127.0.0.1:3002");
    let json = ("content-type", "application/json");
    let body = json!({"urls": ["http://a.test/"]}).to_string();
    let upgrade = [("upgrade", "websocket"), ("connection", "upgrade"), ("sec-websocket-version", "13")];
    let key = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    let job = api.batch_by(own, &body).await;
    let status = format!("/v2/batch/scrape/{job}");
    let send = async |path: &str, headers: &[(&str, &str)], body: Option<&str>| {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let mut request = TestRequest::with_uri(path).method(method);
        for header in headers {
            request = request.append_header(*header);
        }
        if let Some(body) = body {
            request = request.insert_header(("content-length", body.len())).set_payload(body.to_owned());
        }
        api.send(request).await.0
    };
    let start = "/v2/batch/scrape";
    let refused: &[&[(&str, &str)]] = &[
        &[own, json, ("origin", "https://evil.example")],
        &[own, json, ("origin", "null")],
        &[own, json, ("origin", "http://127.0.0.1:8080")],
        &[own, json, ("origin", "http://localhost:3002")],
        &[own, json, ("origin", "http://127.0.0.1:3002"), ("origin", "https://evil.example")],
        &[own, json, ("sec-fetch-site", "cross-site")],
        &[own, json, ("sec-fetch-site", "same-site"), ("sec-fetch-mode", "navigate")],
        &[("host", "evil.example:3002"), json],
        &[("host", "evil.example:3002"), json, ("origin", "http://evil.example:3002")],
        &[("host", "127.0.0.1.evil.example"), json],
        &[("host", "127.0.0.1@evil.example"), json],
        &[("host", "10.0.0.5:3002"), json],
        &[own, ("host", "evil.example"), json],
        &[own, ("content-type", "text/plain")],
        &[own, ("content-type", "text/plain"), ("origin", "http://127.0.0.1:3002")],
        &[own, ("content-type", "application/x-www-form-urlencoded")],
        &[own, ("content-type", "multipart/form-data; boundary=x")],
        &[own, ("origin", "http://127.0.0.1:3002")],
    ];
    for headers in refused {
        assert_eq!(send(start, headers, Some(&body)).await, 403, "{headers:?}");
    }
    for headers in [
        vec![("host", "evil.example")],
        vec![own, ("origin", "null")],
        vec![own, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
        [&[own, key, ("origin", "https://evil.example")][..], &upgrade].concat(),
        [&[("host", "evil.example"), key][..], &upgrade].concat(),
    ] {
        assert_eq!(send(&status, &headers, None).await, 403, "{headers:?}");
    }
    let taken: &[&[(&str, &str)]] = &[
        &[own, json],
        &[own, ("content-type", "Application/JSON; charset=utf-8")],
        &[("host", "localhost:3002"), json, ("origin", "http://localhost:3002"), ("sec-fetch-site", "same-origin")],
        &[("host", "a.localhost"), json],
        &[("host", "[::1]:3002"), json, ("origin", "http://[::1]:3002")],
        &[("host", "weir.example.com"), json, ("origin", "https://weir.example.com")],
        &[own, json, ("origin", "https://weir.example.com")],
    ];
    for headers in taken {
        assert_eq!(send(start, headers, Some(&body)).await, 200, "{headers:?}");
    }
    let link = [own, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    assert_eq!(send("/docs", &link, None).await, 200);
    assert_eq!(send("/healthz", &[("host", "weir:3002")], None).await, 200);
    // Where a key is required, the key tells who calls.
    let closed = Api::start(&[]).await;
    let request = closed.request(Method::POST, start).insert_header(("origin", "https://evil.example"));
    assert_eq!(closed.send(request.insert_header(("content-type", "text/plain")).set_payload(body)).await.0, 200);
}

#[actix_web::test]
async fn open_auth_for_everybody_answers_by_addresses_and_by_its_own_name() {
    let anywhere = [("WEIR_AUTH", "open"), ("WEIR_AUTH_OPEN_ANYWHERE", "1"), ("WEIR_BIND", "0.0.0.0:3002")];
    let api = Api::start(&anywhere).await;
    for (host, expected) in [("10.0.0.5:3002", 404), ("127.0.0.1", 404), ("evil.example", 403)] {
        let path = format!("/v2/batch/scrape/{}", JobId::new());
        assert_eq!(api.send(TestRequest::with_uri(&path).insert_header(("host", host))).await.0, expected, "{host}");
    }
}

#[actix_web::test]
async fn a_revoked_key_stops_working() {
    let api = Api::start(&[]).await;
    let path = format!("/v2/scrape/{}", JobId::new());
    // It is remembered for a moment, which may be over on a machine that stands still for as long.
    for _ in 0..25 {
        let other = api.other_team().await;
        assert_eq!(other.get(&path).await.0, 404);
        let mut tx = api.state.db.begin().await.unwrap();
        let id = keys::list(&api.state.db, Some(other.team)).await.unwrap()[0].id;
        keys::revoke(&mut tx, id, api.state.db.now()).await.unwrap();
        tx.commit().await.unwrap();
        let was_remembered = other.get(&path).await.0 == 404;
        api.state.db.clock().advance(std::time::Duration::from_millis(1_600));
        assert_eq!(other.get(&path).await.0, 401);
        if was_remembered {
            return;
        }
    }
    panic!("no key is remembered");
}

#[actix_web::test]
async fn unknown_paths_methods_and_operations_answer_in_json() {
    let api = Api::start(&[]).await;
    for (method, path, expected) in [
        (Method::GET, "/v2/nothing", 404),
        (Method::GET, "/v2/scrape", 405),
        (Method::PUT, "/v2/batch/scrape", 405),
        (Method::POST, "/v2/map", 400),
        (Method::POST, "/v2/crawl", 400),
        (Method::POST, "/v2/search", 400),
        (Method::POST, "/v2/agent", 400),
        (Method::GET, "/v2/scrape/5", 400),
        (Method::GET, "/v2/batch/scrape/5", 400),
        (Method::DELETE, "/v2/batch/scrape/5", 400),
        (Method::GET, "/v2/batch/scrape/5/errors", 400),
    ] {
        let (status, body) = api.send(api.request(method.clone(), path)).await;
        assert_eq!((status, &body["success"]), (expected, &json!(false)), "{method} {path}: {body}");
        assert!(body["error"].is_string());
    }
}

#[actix_web::test]
async fn a_page_whose_caller_has_gone_does_not_begin() {
    let api = Api::start(&[]).await;
    let waiting = async |expected: i64| {
        let count = async || {
            let mut tx = api.state.db.begin().await.unwrap();
            queue_depth::team_waiting(&mut tx, api.team).await.unwrap()
        };
        while count().await != expected {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    for path in ["/v2/scrape", "/v2/map"] {
        tokio::select! {
            answer = api.post(path, json!({"url": "http://127.0.0.1:2/", "timeout": 60_000})) => panic!("{answer:?}"),
            () = waiting(1) => {}
        }
        tokio::time::timeout(Duration::from_secs(35), waiting(0)).await.unwrap_or_else(|_| panic!("{path} goes on"));
    }
}

#[actix_web::test]
async fn a_file_that_cannot_be_written_is_named_before_the_workers_that_it_silences() {
    let api = Api::start(&[]).await;
    let other = server::connect(&api.state.settings, PoolUse::Rows).await.unwrap();
    let held = other.begin().await.unwrap();
    let asked = Stopwatch::start();
    let (status, body) = api.get("/readyz").await;
    assert_eq!((status, &body["reasons"][0]), (503, &json!("database: cannot be written")), "{body}");
    // Who writes waits ten seconds for its turn.
    assert!(asked.elapsed() < Duration::from_secs(9), "{:?}", asked.elapsed());
    drop(held);
    let (_, body) = api.get("/readyz").await;
    assert_eq!(body["reasons"], json!(["workers: no live worker"]));
}

#[actix_web::test]
async fn bodies_are_limited_and_must_be_json() {
    let api = Api::start(&[]).await;
    // A mark before the text is no part of it.
    let marked = api.request(Method::POST, "/v2/scrape").set_payload("\u{feff}{\"url\": \"nowhere\"}");
    let (status, body) = api.send(marked).await;
    assert_eq!((status, &body["code"]), (400, &json!("BAD_REQUEST")), "{body}");
    let (status, body) = api.send(api.request(Method::POST, "/v2/scrape").set_payload("{nope")).await;
    assert_eq!((status, &body["code"]), (400, &json!("BAD_REQUEST_INVALID_JSON")));
    assert!(body["error"].as_str().unwrap().starts_with("Bad request, malformed JSON"));
    let coded = |coding| api.request(Method::POST, "/v2/scrape").insert_header(("content-encoding", coding));
    let (status, body) = api.send(coded("gzip").set_payload(vec![0x1f, 0x8b])).await;
    assert_eq!((status, body["error"].as_str().unwrap().contains("compressed (gzip)")), (400, true), "{body}");
    for plain in ["identity", "utf-8"] {
        let (_, body) = api.send(coded(plain).set_payload("{nope")).await;
        assert_eq!(body["code"], json!("BAD_REQUEST_INVALID_JSON"), "{plain}");
    }
    let huge = format!("{{\"url\":\"{}\"}}", "x".repeat(10 * 1024 * 1024));
    assert_eq!(api.send(api.request(Method::POST, "/v2/scrape").set_payload(huge)).await.0, 413);
    let (status, body) = api.post("/v2/scrape", json!({"url": "http://a.test", "wat": 1})).await;
    assert_eq!((status, &body["details"][0]["keys"]), (400, &json!(["wat"])));
    let (status, body) = api.post("/v2/scrape", json!({"url": "http://10.0.0.1/"})).await;
    assert_eq!((status, &body["code"]), (403, &json!("unsafe_domain_blocked")));
}

#[actix_web::test]
async fn a_batch_is_read_page_by_page_until_its_end() {
    let api = Api::start(&[]).await;
    let id = api.batch(&["http://a.test/1", "http://a.test/fail", "http://a.test/2", "http://a.test/3"]).await;
    let base = format!("https://weir.test:8443/v2/batch/scrape/{id}");
    let path = format!("/v2/batch/scrape/{id}");

    let (_, body) = api.get(&path).await;
    assert_eq!((&body["status"], &body["total"], &body["completed"]), (&json!("scraping"), &json!(4), &json!(0)));
    assert_eq!((&body["data"], &body["next"]), (&json!([]), &json!(format!("{base}?skip=0"))));

    api.work(3).await;
    let (_, body) = api.get(&format!("{path}?limit=1")).await;
    assert_eq!((&body["data"][0]["markdown"], &body["completed"]), (&json!("http://a.test/1"), &json!(2)));
    assert_eq!(body["next"], json!(format!("{base}?skip=1&limit=1")));
    assert_eq!((&body["total"], &body["creditsUsed"]), (&json!(4), &json!(2)));

    let start = Stopwatch::start();
    let (_, body) = api.get(&format!("{path}?skip=2")).await;
    assert_eq!((&body["data"], &body["next"]), (&json!([]), &json!(format!("{base}?skip=2"))));
    assert!(start.elapsed().as_millis() >= 900, "an empty page of a running job is held");

    api.work(1).await;
    let (_, body) = api.get(&format!("{path}?skip=1")).await;
    assert_eq!((&body["status"], &body["total"], &body["completed"]), (&json!("completed"), &json!(3), &json!(3)));
    assert_eq!((body["data"].as_array().unwrap().len(), body.get("next")), (2, None));
    let (_, body) = api.get(&format!("{path}?skip=9")).await;
    assert_eq!((&body["data"], body.get("next")), (&json!([]), None));

    let (_, errors) = api.get(&format!("{path}/errors")).await;
    assert_eq!((&errors["errors"][0]["url"], &errors["robotsBlocked"]), (&json!("http://a.test/fail"), &json!([])));
    assert_eq!(
        (&errors["errors"][0]["code"], &errors["errors"][0]["error"]),
        (&json!("SCRAPE_SITE_ERROR"), &json!("it broke"))
    );
    assert_eq!(api.delete(&path).await.0, 409);
    assert_eq!(api.get(&format!("{path}?limit=0")).await.0, 400);
}

#[actix_web::test]
async fn a_held_page_is_answered_as_soon_as_there_is_a_document() {
    let api = Api::start(&[]).await;
    let mut least = Duration::MAX;
    // The fastest of some: the machine may be busy. Without a document each would be held for a second.
    for n in 0..25 {
        let id = api.batch(&["http://a.test/1"]).await;
        let path = format!("/v2/batch/scrape/{id}?skip=0");
        let start = Stopwatch::start();
        let later = async {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            api.work(1).await;
        };
        let ((_, body), ()) = tokio::join!(api.get(&path), later);
        assert_eq!(body["data"].as_array().unwrap().len(), 1, "{n}");
        least = least.min(start.elapsed());
        if least.as_millis() < 700 {
            return;
        }
    }
    panic!("{least:?}");
}

#[actix_web::test]
async fn a_cancel_is_seen_at_once_and_can_be_repeated() {
    let api = Api::start(&[]).await;
    let id = api.batch(&["http://a.test/1", "http://a.test/2"]).await;
    api.work(1).await;
    let path = format!("/v2/batch/scrape/{id}");
    for _ in 0..2 {
        assert_eq!(api.delete(&path).await, (200, json!({"success": true, "status": "cancelled"})));
    }
    let (_, body) = api.get(&path).await;
    assert_eq!((&body["status"], body.get("next")), (&json!("cancelled"), None));
    assert_eq!(body["data"].as_array().unwrap().len(), 1);
}

#[actix_web::test]
async fn another_teams_job_is_404_or_403_as_the_contract_says() {
    let api = Api::start(&[]).await;
    let id = api.batch(&["http://a.test/1"]).await;
    api.work(1).await;
    let (_, body) = api.get(&format!("/v2/batch/scrape/{id}")).await;
    let page = body["data"][0]["metadata"]["scrapeId"].as_str().unwrap().to_owned();
    let (_, own) = api.get(&format!("/v2/scrape/{page}")).await;
    assert_eq!(own["data"]["markdown"], json!("http://a.test/1"));

    let other = api.other_team().await;
    assert_eq!(other.get(&format!("/v2/batch/scrape/{id}")).await.0, 404);
    assert_eq!(other.delete(&format!("/v2/batch/scrape/{id}")).await.0, 404);
    assert_eq!(other.get(&format!("/v2/batch/scrape/{id}/errors")).await.0, 403);
    let (status, body) = other.get(&format!("/v2/scrape/{page}")).await;
    assert_eq!((status, &body["error"]), (403, &json!("You are not allowed to access this resource.")));
    let append = json!({"urls": ["http://a.test/9"], "appendToId": id});
    assert_eq!(other.post("/v2/batch/scrape", append).await.0, 404);
    assert_eq!(api.get(&format!("/v2/scrape/{}", JobId::new())).await.1["error"], json!("Job not found"));
}

#[actix_web::test]
async fn invalid_urls_are_skipped_or_fail_the_request() {
    let api = Api::start(&[]).await;
    let urls = json!(["http://a.test/1", "ftp://x", "http://10.0.0.1/"]);
    let (status, body) = api.post("/v2/batch/scrape", json!({"urls": urls})).await;
    assert_eq!((status, &body["invalidURLs"]), (200, &json!(["ftp://x", "http://10.0.0.1/"])));
    let (status, body) = api.post("/v2/batch/scrape", json!({"urls": urls, "ignoreInvalidURLs": false})).await;
    assert_eq!((status, &body["details"][0]["path"]), (400, &json!(["urls", 1])));
    let strict = json!({"urls": ["http://a.test/1"], "ignoreInvalidURLs": false});
    assert_eq!(api.post("/v2/batch/scrape", strict).await.1.get("invalidURLs"), None);
    let (status, body) = api.post("/v2/batch/scrape", json!({"urls": ["http://10.0.0.1/"]})).await;
    assert_eq!((status, &body["code"]), (403, &json!("unsafe_domain_blocked")));
}

#[actix_web::test]
async fn an_append_grows_a_running_batch_with_the_same_options() {
    let api = Api::start(&[]).await;
    let id = api.batch(&["http://a.test/1"]).await;
    let append = |more: Value| {
        let mut body = json!({"urls": ["http://a.test/2"], "appendToId": id});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let (status, body) = api.post("/v2/batch/scrape", append(json!({}))).await;
    assert_eq!((status, &body["id"]), (200, &json!(id)));
    assert_eq!(api.post("/v2/batch/scrape", append(json!({"formats": ["markdown"]}))).await.0, 200);
    assert_eq!(api.post("/v2/batch/scrape", append(json!({"formats": ["html"]}))).await.0, 400);
    assert_eq!(api.get(&format!("/v2/batch/scrape/{id}")).await.1["total"], json!(3));
    api.work(3).await;
    let (status, body) = api.post("/v2/batch/scrape", append(json!({}))).await;
    assert_eq!(status, 409);
    assert!(body["error"].as_str().unwrap().contains("start a new batch"));
}

#[actix_web::test]
async fn an_idempotency_key_is_used_once_per_team() {
    let api = Api::start(&[]).await;
    let key = JobId::new().to_string();
    let send = |key: String| {
        let request = api.request(Method::POST, "/v2/batch/scrape").insert_header(("x-idempotency-key", key));
        api.send(request.set_payload(json!({"urls": ["http://a.test/1"]}).to_string()))
    };
    let (status, begun) = send(key.clone()).await;
    assert_eq!(status, 200);
    let (status, body) = send(key.clone()).await;
    assert_eq!((status, &body["error"]), (409, &json!("Idempotency key already used")));
    assert_eq!((&body["id"], begun["id"].is_string()), (&begun["id"], true), "it says what was begun");
    let crawl = api.request(Method::POST, "/v2/crawl").insert_header(("x-idempotency-key", key));
    let (status, body) = api.send(crawl.set_payload(json!({"url": "http://a.test/1"}).to_string())).await;
    assert_eq!((status, &body["id"]), (409, &begun["id"]));
    assert_eq!(send("not-a-uuid".to_owned()).await.0, 409);
}

#[actix_web::test]
async fn what_is_committed_is_answered_though_the_answer_to_its_commit_is_lost() {
    let api = Api::start(&[("WEIR_LLM_URL", "http://127.0.0.1:9/v1"), ("WEIR_LLM_MODEL", "m")]).await;
    let faults = api.state.db.faults();
    let lose = || faults.arm(FaultPoint::CallCommitted, Fault::Fail, 1);
    let post = async |path: &str, body: Value| {
        lose();
        let (status, answer) = api.post(path, body).await;
        assert!(faults.have_happened(), "{path}");
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    };
    let delete = async |path: String| {
        lose();
        let (status, answer) = api.delete(&path).await;
        assert!(faults.have_happened(), "{path}");
        assert_eq!(status, 200, "{path}: {answer}");
    };
    let id = |answer: &Value| answer["id"].as_str().unwrap_or_default().to_owned();
    let batch = id(&post("/v2/batch/scrape", json!({"urls": ["http://a.test/1"]})).await);
    post("/v2/batch/scrape", json!({"urls": ["http://a.test/2"], "appendToId": batch})).await;
    assert_eq!(api.get(&format!("/v2/batch/scrape/{batch}")).await.1["total"], json!(2), "appended once");
    let crawl = id(&post("/v2/crawl", json!({"url": "http://a.test/"})).await);
    delete(format!("/v2/crawl/{crawl}")).await;
    assert_eq!(api.get(&format!("/v2/crawl/{crawl}")).await.1["status"], json!("cancelled"));
    post("/v2/extract", json!({"urls": ["http://a.test/1"], "prompt": "the title"})).await;
    let agent = id(&post("/v2/agent", json!({"prompt": "the title"})).await);
    delete(format!("/v2/agent/{agent}")).await;
    let targets = json!([{"type": "scrape", "urls": ["http://a.test/1"]}]);
    let wanted = json!({"name": "m", "schedule": {"text": "daily at 9:00"}, "targets": targets});
    let made = post("/v2/monitor", wanted).await;
    let monitor = format!("/v2/monitor/{}", made["data"]["id"].as_str().unwrap());
    post(&format!("{monitor}/run"), json!({})).await;
    lose();
    let change = api.request(Method::PATCH, &monitor).set_payload(json!({"name": "n"}).to_string());
    let (status, answer) = api.send(change).await;
    assert_eq!((status, &answer["data"]["name"]), (200, &json!("n")), "{answer}");
    delete(monitor.clone()).await;
    assert_eq!(api.get(&monitor).await.0, 404);
    // It is waited for, in vain.
    lose();
    let (_, answer) = api.post("/v2/map", json!({"url": "http://a.test/", "timeout": 1000})).await;
    assert!(answer["error"].as_str().unwrap().starts_with("No worker is running"), "{answer}");
    assert!(faults.have_happened());
}

#[actix_web::test]
async fn metered_teams_pay_up_front() {
    let api = Api::start(&[("WEIR_CREDITS", "metered")]).await;
    let (status, body) = api.post("/v2/batch/scrape", json!({"urls": ["http://a.test/1"]})).await;
    assert_eq!(status, 402);
    assert!(body["error"].as_str().unwrap().starts_with("Insufficient credits to perform this request."));
    assert_eq!(api.post("/v2/scrape", json!({"url": "http://a.test/1"})).await.0, 402);
    let mut tx = api.state.db.begin().await.unwrap();
    store::accounts::credits::grant(&mut tx, api.team, 1).await.unwrap();
    tx.commit().await.unwrap();
    api.batch(&["http://a.test/1"]).await;
    assert_eq!(api.post("/v2/batch/scrape", json!({"urls": ["http://a.test/2"]})).await.0, 402);
}

#[actix_web::test]
async fn an_append_costs_what_the_pages_of_its_batch_cost() {
    let api =
        Api::start(&[("WEIR_CREDITS", "metered"), ("WEIR_LLM_URL", "http://127.0.0.1:9/v1"), ("WEIR_LLM_MODEL", "m")])
            .await;
    let mut tx = api.state.db.begin().await.unwrap();
    store::accounts::credits::grant(&mut tx, api.team, 14).await.unwrap();
    tx.commit().await.unwrap();
    let read = json!({"urls": ["http://a.test/1"], "formats": [{"type": "json", "prompt": "the title"}]});
    let (status, body) = api.post("/v2/batch/scrape", read).await;
    assert_eq!(status, 200, "{body}");
    let append = |urls: Value| json!({"urls": urls, "appendToId": body["id"]});
    let left = async || store::accounts::credits::balance(&api.state.db, api.team).await.unwrap().unwrap().left();
    assert_eq!(left().await, 9);
    let (status, refused) = api.post("/v2/batch/scrape", append(json!(["http://a.test/2", "http://a.test/3"]))).await;
    assert_eq!((status, left().await), (402, 9), "{refused}");
    assert_eq!(api.post("/v2/batch/scrape", append(json!(["http://a.test/2"]))).await.0, 200);
    assert_eq!(left().await, 4);
    let (status, refused) = api.post("/v2/batch/scrape", append(json!(["http://a.test/3"]))).await;
    assert_eq!((status, left().await), (402, 4), "{refused}");
}

#[actix_web::test]
async fn the_rate_is_limited_per_minute() {
    let api = Api::start(&[("WEIR_RATE_LIMITS", "crawl=1")]).await;
    api.batch(&["http://a.test/1"]).await;
    let again = async || api.post("/v2/batch/scrape", json!({"urls": ["http://a.test/1"]})).await;
    // The minute may turn once: one of two more is the second of its own.
    let (mut status, mut body) = again().await;
    if status == 200 {
        (status, body) = again().await;
    }
    assert_eq!(status, 429, "{body}");
    assert!(body["error"].as_str().unwrap().contains("retry after "), "{body}");
}

#[actix_web::test]
async fn a_scrape_waits_for_its_page_and_answers_with_it() {
    let api = Api::start(&[]).await;
    let work = async {
        for _ in 0..1_500 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            api.work(1).await;
        }
    };
    let scrape = api.post("/v2/scrape", json!({"url": "http://a.test/1", "timeout": 60_000, "origin": "website"}));
    tokio::select! {
        () = work => panic!("the scrape was not answered"),
        (status, body) = scrape => {
            assert_eq!((status, &body["data"]["markdown"]), (200, &json!("http://a.test/1")));
            assert_eq!(body["scrape_id"], body["data"]["metadata"]["scrapeId"]);
        }
    }
}

#[actix_web::test]
async fn a_scrape_that_nobody_takes_ends_before_its_timeout_and_never_starts() {
    let api = Api::start(&[]).await;
    let start = Stopwatch::start();
    let (status, body) = api.post("/v2/scrape", json!({"url": "http://a.test/1", "timeout": 6_000})).await;
    assert_eq!((status, &body["code"]), (503, &json!("UNAVAILABLE")), "no worker lives");
    assert!(start.elapsed().as_millis() < 6_000, "{:?}", start.elapsed());
    let mut tx = api.state.db.begin().await.unwrap();
    let claim = claim::claim(&mut tx, api.team, WorkerId::new(), 5, 100, api.state.db.now()).await.unwrap();
    assert!(claim.pages.is_empty());
}

#[actix_web::test]
async fn probes_and_the_welcome_page_answer_without_a_key() {
    let api = Api::start(&[]).await;
    let send = |path: &str| api.send(TestRequest::with_uri(path));
    assert_eq!(send("/healthz").await.0, 200);
    let (status, body) = send("/readyz").await;
    assert_eq!((status, &body["reasons"]), (503, &json!(["workers: no live worker"])));
    assert_eq!((send("/metrics").await.0, send("/welcome").await.0), (200, 200));
    // The address alone leads browsers there, and tells programs that nothing is here.
    let browser = |path: &str| {
        let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        api.send(TestRequest::with_uri(path).insert_header(("accept", accept)))
    };
    assert_eq!((browser("/").await.0, browser("/nothing").await.0), (302, 404));
    for accept in ["*/*", "application/json", "text/html;q=0"] {
        let (status, body) = api.send(TestRequest::with_uri("/").insert_header(("accept", accept))).await;
        assert_eq!((status, &body["error"]), (404, &json!("Cannot GET /")), "{accept}");
    }
    assert_eq!(send("/").await.0, 404);
    assert_eq!(api.send(TestRequest::with_uri("/").method(Method::POST)).await.0, 405);
}

/// The pages of a batch of which the second has a large document.
async fn with_a_blob(api: &Api) -> (String, Vec<Value>) {
    let id = api.batch(&["http://a.test/1", "http://a.test/2", "http://a.test/3"]).await;
    let now = api.state.db.now();
    let mut tx = api.state.db.begin().await.unwrap();
    let claim = claim::claim(&mut tx, api.team, WorkerId::new(), 3, 100, now).await.unwrap();
    let ended: Vec<Finished> = claim
        .pages
        .into_iter()
        .map(|page| {
            if page.url.ends_with('2') {
                // What does not compress.
                let noise: String = (0..60_000).map(|_| JobId::new().to_string()).collect();
                let document = Document { markdown: Some(noise), ..Document::default() };
                let mut document = documents::encode(&document).unwrap();
                let key = Blobs::key(page.job_id, page.id, page.epoch);
                api.state.blobs.put(&key, &document.body.take_large().unwrap()).unwrap();
                document.body = Body::Blob(key);
                let outcome = Outcome::Done { document, credits: 1 };
                return Finished { page, kind: Some(JobKind::Batch), key: None, outcome };
            }
            api.end(page)
        })
        .collect();
    finish_many(&mut tx, &ended, now).await.unwrap();
    tx.commit().await.unwrap();
    let scrapes = ended.iter().map(|end| json!(end.page.id)).collect();
    (id, scrapes)
}

fn blob_file(folder: &std::path::Path) -> PathBuf {
    let inner = |path: &PathBuf| std::fs::read_dir(path).unwrap().next().unwrap().unwrap().path();
    let mut path = folder.join("blobs");
    while path.is_dir() {
        path = inner(&path);
    }
    path
}

#[actix_web::test]
async fn one_lost_document_is_named_in_its_place_and_the_others_are_answered() {
    for is_damaged in [false, true] {
        let api = Api::start(&[]).await;
        let (id, scrapes) = with_a_blob(&api).await;
        let blob = blob_file(&api.folder);
        match is_damaged {
            true => std::fs::write(&blob, b"no zstd").unwrap(),
            false => std::fs::remove_file(&blob).unwrap(),
        }
        let (status, body) = api.get(&format!("/v2/batch/scrape/{id}")).await;
        assert_eq!((status, &body["completed"]), (200, &json!(3)), "{body}");
        let data = body["data"].as_array().unwrap();
        let lost: Vec<_> = data.iter().filter(|document| document["metadata"]["error"].is_string()).collect();
        assert_eq!((data.len(), lost.len()), (3, 1), "{body}");
        assert_eq!(lost[0]["metadata"]["sourceURL"], "http://a.test/2");
        assert_eq!(lost[0]["metadata"]["scrapeId"], scrapes[1]);
        assert!(lost[0]["warning"].as_str().unwrap().contains("lost"));
        let page = scrapes[1].as_str().unwrap();
        let (status, body) = api.get(&format!("/v2/scrape/{page}")).await;
        assert_eq!(status, 404, "{body}");
        assert!(body["error"].as_str().unwrap().contains("lost"), "{body}");
        let good = scrapes[0].as_str().unwrap();
        assert_eq!(api.get(&format!("/v2/scrape/{good}")).await.0, 200);
    }
}

#[actix_web::test]
async fn blobs_that_are_away_are_a_503_that_says_when_to_come_back() {
    let api = Api::start(&[]).await;
    let (id, scrapes) = with_a_blob(&api).await;
    let page = scrapes[1].as_str().unwrap();
    // All of them, and one that is there and cannot be read: a folder has its name, which root is refused, too.
    for is_one in [false, true] {
        let (place, away) = match is_one {
            true => (blob_file(&api.folder), api.folder.join("away")),
            false => (api.folder.join("blobs"), api.folder.join("away")),
        };
        std::fs::rename(&place, &away).unwrap();
        if is_one {
            std::fs::create_dir(&place).unwrap();
        }
        for path in [format!("/v2/batch/scrape/{id}"), format!("/v2/scrape/{page}")] {
            let (status, retry_after, body) = api.send_whole(api.request(Method::GET, &path)).await;
            assert_eq!((status, &body["code"]), (503, &json!("UNAVAILABLE")), "{body}");
            assert!(retry_after.is_some());
        }
        if is_one {
            std::fs::remove_dir(&place).unwrap();
        }
        std::fs::rename(&away, &place).unwrap();
    }
    let (status, body) = api.get(&format!("/v2/batch/scrape/{id}")).await;
    assert_eq!((status, body["data"].as_array().unwrap().len()), (200, 3));
}

/// Waits until nothing of a page's content is in the rows.
async fn is_forgotten(api: &Api, page: PageId) {
    let began = Stopwatch::start();
    loop {
        let row = pages::load(&api.state.db, page).await.unwrap().unwrap();
        let document = documents::by_page(&api.state.db, &api.state.blobs, page).await.unwrap();
        if row.url.is_empty() && document.is_none() {
            return;
        }
        assert!(began.elapsed().as_secs() < 60, "{} is still there", row.url);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[actix_web::test]
async fn what_keeps_nothing_is_forgotten_though_nobody_waits_for_it() {
    let api = Api::start(&[]).await;
    let db = &api.state.db;
    let mut tx = db.begin().await.unwrap();
    let change = teams::TeamChange { zero_data_retention: Some(true), ..teams::TeamChange::default() };
    assert!(teams::update(&mut tx, api.team, &change).await.unwrap());
    tx.commit().await.unwrap();
    let claimed = async || loop {
        let mut tx = db.begin().await.unwrap();
        let claim = claim::claim(&mut tx, api.team, WorkerId::new(), 1, 100, api.state.db.now()).await.unwrap();
        tx.commit().await.unwrap();
        match claim.pages.into_iter().next() {
            Some(page) => return page,
            None => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
        }
    };

    // The caller hangs up while the page is in work.
    let page = tokio::select! {
        answer = api.post("/v2/scrape", json!({"url": "http://secret.test/1"})) => panic!("{answer:?}"),
        page = claimed() => page,
    };
    let id = page.id;
    let mut tx = db.begin().await.unwrap();
    finish_many(&mut tx, &[Finished { kind: Some(JobKind::Scrape), ..api.end(page) }], db.now()).await.unwrap();
    tx.commit().await.unwrap();
    is_forgotten(&api, id).await;

    // It takes too long, and ends after its caller was told so.
    let scrape = api.post("/v2/scrape", json!({"url": "http://secret.test/2", "timeout": 3_000}));
    let (answer, page) = tokio::join!(scrape, claimed());
    assert_eq!(answer.0, 408, "{}", answer.1);
    let id = page.id;
    let mut tx = db.begin().await.unwrap();
    finish_many(&mut tx, &[Finished { kind: Some(JobKind::Scrape), ..api.end(page) }], db.now()).await.unwrap();
    tx.commit().await.unwrap();
    is_forgotten(&api, id).await;
}

#[actix_web::test]
async fn a_team_has_a_number_of_calls_at_once_and_one_that_is_answered_makes_room() {
    let api = Api::start(&[]).await;
    let mut held: Vec<_> = std::iter::from_fn(|| api.state.places.call(api.team).ok()).collect();
    let (status, retry_after, body) = api.send_whole(api.request(Method::GET, "/v2/team/queue-status")).await;
    assert_eq!((status, retry_after, &body["code"]), (429, Some(5), &json!("RATE_LIMITED")), "{body}");
    held.pop();
    for path in ["/v2/team/queue-status", "/v2/concurrency-check", "/v2/crawl/active"] {
        let (status, body) = api.get(path).await;
        assert_eq!(status, 200, "{body}");
    }
    // Another team's are its own.
    held.extend(api.state.places.call(api.team));
    assert!(api.state.places.call(TeamId::new()).is_ok());
    assert_eq!(api.get("/v2/team/queue-status").await.0, 429);
}

#[actix_web::test]
async fn a_file_on_its_way_has_a_place_among_its_teams_sockets() {
    let api = Api::start(&[]).await;
    let (status, given) = api.post("/v2/parse/upload-url", json!({"filename": "a.html"})).await;
    assert_eq!(status, 200, "{given}");
    let (_, path) = given["data"]["uploadUrl"].as_str().unwrap().split_once(":8443").unwrap();
    let send = || TestRequest::with_uri(path).method(Method::PUT).set_payload("<p>text</p>");
    let mut held: Vec<_> = std::iter::from_fn(|| api.state.places.socket(api.team).ok()).collect();
    let (status, retry_after, body) = api.send_whole(send()).await;
    assert_eq!((status, retry_after, &body["code"]), (429, Some(5), &json!("RATE_LIMITED")), "{body}");
    held.pop();
    let (status, body) = api.send(send()).await;
    assert_eq!(status, 200, "{body}");
}
