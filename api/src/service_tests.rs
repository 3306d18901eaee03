//! The routes over real rows, with pages ended by hand instead of by a worker. The whole service, workers included, is
//! tested in the `tests` crate.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;
use std::path::PathBuf;

use actix_web::App;
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use serde_json::{Value, json};
use weir_shared::config::Settings;
use weir_shared::domain::document::Document;
use weir_shared::domain::job::JobKind;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, TeamId, WorkerId};
use weir_shared::store::finish::{Finished, Outcome, finish_many};
use weir_shared::store::{self, documents, keys, pages, teams};
use weir_shared::time::Timestamp;

use crate::app::State;
use crate::{access_log, first_key, routes, server};

pub(crate) struct Api {
    pub state: State,
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
        let db = server::connect(&settings).await.unwrap();
        store::migrate(&db).await.unwrap();
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
        let app =
            App::new().app_data(self.state.clone()).wrap(from_fn(access_log::observe)).configure(routes::configure);
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

    async fn batch(&self, urls: &[&str]) -> String {
        let (status, body) = self.post("/v2/batch/scrape", json!({"urls": urls})).await;
        assert_eq!(status, 200, "{body}");
        body["id"].as_str().unwrap().to_owned()
    }

    /// Claims up to `count` pages and ends them, the ones with `fail` in their URL as failures.
    async fn work(&self, count: usize) {
        let now = Timestamp::now();
        let mut tx = self.state.db.begin().await.unwrap();
        let claim = pages::claim(&mut tx, self.team, WorkerId::new(), count, 100, now).await.unwrap();
        let ended: Vec<Finished> = claim.pages.into_iter().map(|page| self.end(page)).collect();
        finish_many(&mut tx, &ended, now).await.unwrap();
        tx.commit().await.unwrap();
    }

    fn end(&self, page: pages::Claimed) -> Finished {
        let outcome = if page.url.contains("fail") {
            Outcome::Failed { code: ErrorCode::Site, error: "it broke".into(), credits: 0 }
        } else {
            let mut document = Document { markdown: Some(page.url.clone()), ..Document::default() };
            document.metadata.insert("scrapeId".into(), page.id.to_string().into());
            let blobs = &self.state.blobs;
            let document = documents::encode(blobs, page.job_id, page.id, page.epoch, &document).unwrap();
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
        let team = teams::insert(&mut tx, "other", Timestamp::now()).await.unwrap();
        let key = keys::create(&mut tx, team, Timestamp::now()).await.unwrap().key;
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
async fn open_auth_takes_any_key_and_none() {
    let api = Api::start(&[("WEIR_AUTH", "open")]).await;
    let body = json!({"urls": ["http://a.test/"]}).to_string();
    for header in ["", "Bearer wrong"] {
        let request = TestRequest::with_uri("/v2/batch/scrape").method(Method::POST).set_payload(body.clone());
        let (status, _) = api.send(request.insert_header(("authorization", header))).await;
        assert_eq!(status, 200);
    }
}

#[actix_web::test]
async fn a_revoked_key_stops_working() {
    let api = Api::start(&[]).await;
    let other = api.other_team().await;
    let path = format!("/v2/scrape/{}", JobId::new());
    assert_eq!(other.get(&path).await.0, 404);
    let mut tx = api.state.db.begin().await.unwrap();
    let id = keys::list(&api.state.db, Some(other.team)).await.unwrap()[0].id;
    keys::revoke(&mut tx, id, Timestamp::now()).await.unwrap();
    tx.commit().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1_600)).await;
    assert_eq!(other.get(&path).await.0, 401);
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
        (Method::POST, "/v2/search", 501),
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
async fn bodies_are_limited_and_must_be_json() {
    let api = Api::start(&[]).await;
    let (status, body) = api.send(api.request(Method::POST, "/v2/scrape").set_payload("{nope")).await;
    assert_eq!((status, &body["code"]), (400, &json!("BAD_REQUEST_INVALID_JSON")));
    assert!(body["error"].as_str().unwrap().starts_with("Bad request, malformed JSON"));
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

    let start = std::time::Instant::now();
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
    let id = api.batch(&["http://a.test/1"]).await;
    let path = format!("/v2/batch/scrape/{id}?skip=0");
    let start = std::time::Instant::now();
    let later = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        api.work(1).await;
    };
    let ((_, body), ()) = tokio::join!(api.get(&path), later);
    assert_eq!(body["data"].as_array().unwrap().len(), 1);
    assert!(start.elapsed().as_millis() < 700, "{:?}", start.elapsed());
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
    assert_eq!(send(key.clone()).await.0, 200);
    let (status, body) = send(key).await;
    assert_eq!((status, &body["error"]), (409, &json!("Idempotency key already used")));
    assert_eq!(send("not-a-uuid".to_owned()).await.0, 409);
}

#[actix_web::test]
async fn metered_teams_pay_up_front() {
    let api = Api::start(&[("WEIR_CREDITS", "metered")]).await;
    let (status, body) = api.post("/v2/batch/scrape", json!({"urls": ["http://a.test/1"]})).await;
    assert_eq!(status, 402);
    assert!(body["error"].as_str().unwrap().starts_with("Insufficient credits to perform this request."));
    assert_eq!(api.post("/v2/scrape", json!({"url": "http://a.test/1"})).await.0, 402);
    let mut tx = api.state.db.begin().await.unwrap();
    store::credits::grant(&mut tx, api.team, 1).await.unwrap();
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
    store::credits::grant(&mut tx, api.team, 14).await.unwrap();
    tx.commit().await.unwrap();
    let read = json!({"urls": ["http://a.test/1"], "formats": [{"type": "json", "prompt": "the title"}]});
    let (status, body) = api.post("/v2/batch/scrape", read).await;
    assert_eq!(status, 200, "{body}");
    let append = |urls: Value| json!({"urls": urls, "appendToId": body["id"]});
    let left = async || store::credits::balance(&api.state.db, api.team).await.unwrap().unwrap().left();
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
    let (status, body) = api.post("/v2/batch/scrape", json!({"urls": ["http://a.test/1"]})).await;
    // The minute may have changed between the two.
    if status != 200 {
        assert_eq!(status, 429);
        assert!(body["error"].as_str().unwrap().contains("retry after "), "{body}");
    }
}

#[actix_web::test]
async fn a_scrape_waits_for_its_page_and_answers_with_it() {
    let api = Api::start(&[]).await;
    let work = async {
        for _ in 0..100 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            api.work(1).await;
        }
    };
    let scrape = api.post("/v2/scrape", json!({"url": "http://a.test/1", "timeout": 5_000, "origin": "website"}));
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
    let start = std::time::Instant::now();
    let (status, body) = api.post("/v2/scrape", json!({"url": "http://a.test/1", "timeout": 1_000})).await;
    assert_eq!((status, &body["code"]), (503, &json!("UNAVAILABLE")), "no worker lives");
    assert!(start.elapsed().as_millis() < 1_000);
    let mut tx = api.state.db.begin().await.unwrap();
    let claim = pages::claim(&mut tx, api.team, WorkerId::new(), 5, 100, Timestamp::now()).await.unwrap();
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
}
