//! The console over HTTP: signing in, who may see and do what, and what keeps other sites away.

mod many;

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use weir_shared::fault::ENVIRONMENT;
use weir_shared::random;
use weir_tests::{
    Answer, Caller, ConsoleUser, Database, FixtureSite, ModelStandIn, Said, ServiceOptions, TestService,
    both_databases, finished, wait_until, wait_until_within,
};

const OPERATOR: &str = "the-operators-own-key";
const READER: &str = "a-key-that-reads-only";
/// Words that only the first team's things hold.
const MARK: &str = "console-secret";

async fn service(database: Database) -> TestService {
    service_with(ServiceOptions::new(database)).await
}

async fn service_with(options: ServiceOptions) -> TestService {
    TestService::start_with(options.env("WEIR_CONSOLE_KEY", OPERATOR).env("WEIR_CONSOLE_READ_KEY", READER)).await
}

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
}

/// A path of the API's list with ids in its holes.
fn filled(pattern: &str, id: &str, page: &str) -> String {
    pattern.replace("{id}", id).replace("{page}", page).replace("/console/api", "")
}

/// The console's routes: method and path.
fn routes() -> Vec<(Method, String)> {
    let own = weir_api::routes::list().into_iter().filter(|(_, path)| path.starts_with("/console/api/"));
    own.map(|(method, path)| (method.parse().unwrap(), path)).collect()
}

/// Those that anybody may ask, or that end the session that asks.
fn is_about_sessions(path: &str) -> bool {
    ["/console/api/sign-in", "/console/api/sign-out", "/console/api/me"].contains(&path)
}

/// A body that the route reads, with an id wherever one may stand.
fn sent_to(path: &str, id: &str) -> Value {
    match path {
        "/console/api/jobs/count" => json!({ "filter": {} }),
        "/console/api/failures/replay" => json!({ "host": "127.0.0.1", "count": 5 }),
        "/console/api/teams" => json!({ "name": format!("team-{}", random::id()) }),
        _ if path.ends_with("/webhooks/replay") => json!({ "id": null }),
        _ if path.contains("/keys") => json!({ "name": "named" }),
        _ if path.contains("/teams/") => json!({ "webhookSecret": "changed" }),
        _ if path.contains("/jobs/") => json!({ "ids": [id] }),
        _ => json!({}),
    }
}

#[tokio::test]
async fn a_key_or_a_link_is_exchanged_for_a_cookie_that_no_script_reads() {
    let service = service(Database::Sqlite).await;
    let nobody = service.anonymous();
    assert_eq!(nobody.get("/console/api/me").await.status, 401);
    for (key, role) in [(service.key(), "team"), (OPERATOR, "operator"), (READER, "reader")] {
        let user = ConsoleUser::with_key(service.base(), key).await;
        assert_eq!(user.me["role"], role);
        assert_eq!(user.me["team"]["name"].as_str(), (role == "team").then_some("tests"));
        for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/console;", "; Max-Age=43200"] {
            assert!(user.set_cookie.contains(part), "{}", user.set_cookie);
        }
        assert!(!user.set_cookie.contains("Secure") && !user.set_cookie.contains("Domain"), "{}", user.set_cookie);
        assert_eq!(user.get("/me").await.ok(), user.me);
        // Answers of any kind say whose they are.
        for path in ["/me", "/jobs", "/teams", "/jobs/nothing", "/nothing", "/public/v2/nothing"] {
            let answer = user.get(path).await;
            assert_eq!(header(&answer, "x-weir-session"), user.me["session"], "{path}: {}", answer.status);
        }
        assert_eq!(user.post("/sign-out", &json!({})).await.status, 204);
        assert_eq!(user.get("/me").await.status, 401);
    }
    // Behind TLS.
    let request = nobody.request(Method::POST, "/console/api/sign-in").header("x-forwarded-proto", "https");
    let answer = nobody.send(request.json(&json!({ "key": OPERATOR }))).await;
    assert!(header(&answer, "set-cookie").ends_with("; Secure"));
    // A link signs in once.
    let link = service.cli_json(&["console", "link", "--base", service.base(), "--json"]);
    let url = link["url"].as_str().unwrap();
    let (page, token) = url.split_once('#').unwrap();
    assert_eq!(page, format!("{}/console/sign-in", service.base()));
    let user = ConsoleUser::with(service.base(), &json!({ "token": token })).await;
    assert_eq!(user.me["role"], "operator");
    let again = nobody.post("/console/api/sign-in", &json!({ "token": token })).await;
    assert_eq!((again.status, again.code()), (401, "UNAUTHORIZED"));
    let link = service.cli_json(&["console", "link", "--team", "tests", "--json"]);
    let token = link["url"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    assert_eq!(ConsoleUser::with(service.base(), &json!({ "token": token })).await.me["team"]["name"], "tests");
    // What stands in the database opens nothing.
    for secret in [&user.cookie[13..], OPERATOR, READER, token.as_str()] {
        let tables = service.tables_with(secret).await.0;
        assert!(tables.is_empty(), "a secret is stored in {tables:?}");
    }
    for wrong in [json!({}), json!({ "key": "a", "token": "b" }), json!({ "key": 1 }), json!({ "other": "x" })] {
        assert_eq!(nobody.post("/console/api/sign-in", &wrong).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn a_session_cannot_be_slipped_under_somebody() {
    let service = service(Database::Sqlite).await;
    let before = ConsoleUser::with_key(service.base(), service.key()).await;
    let nobody = service.anonymous();
    // Whoever signs in gets a secret of their own, and what the browser had ends.
    let request = nobody.request(Method::POST, "/console/api/sign-in").header("cookie", &before.cookie);
    let answer = nobody.send(request.json(&json!({ "key": OPERATOR }))).await;
    let cookie = header(&answer, "set-cookie").split(';').next().unwrap().to_owned();
    assert_ne!(cookie, before.cookie);
    let mark = header(&answer, "x-weir-session").to_owned();
    let me = answer.ok();
    assert_eq!(me["role"], "operator");
    assert!(me["session"] == mark && mark != before.me["session"], "{me}");
    assert_eq!(before.get("/me").await.status, 401, "the session of before has ended");
    // A secret that somebody made up does not become one.
    let planted = format!("weir_console={}", "a".repeat(64));
    let request = nobody.request(Method::POST, "/console/api/sign-in").header("cookie", &planted);
    nobody.send(request.json(&json!({ "key": OPERATOR }))).await.ok();
    let request = nobody.request(Method::GET, "/console/api/me").header("cookie", &planted);
    assert_eq!(nobody.send(request).await.status, 401);
    // Two cookies of the name: one may be a neighbour's.
    let request = nobody.request(Method::GET, "/console/api/me").header("cookie", format!("{cookie}; {planted}"));
    assert_eq!(nobody.send(request).await.status, 401);
    let request = nobody.request(Method::GET, "/console/api/me").header("cookie", cookie);
    assert_eq!(nobody.send(request).await.status, 200);
}

#[tokio::test]
async fn failed_sign_ins_are_counted() {
    let service = service(Database::Sqlite).await;
    let nobody = service.anonymous();
    let mut refused = None;
    for _ in 0..25 {
        let answer = nobody.post("/console/api/sign-in", &json!({ "key": "not-the-right-key" })).await;
        if answer.status != 401 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("it goes on and on");
    assert_eq!((refused.status, refused.code()), (429, "RATE_LIMITED"));
    assert!(refused.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn strangers_who_guess_keep_nobody_from_signing_in() {
    let service = service(Database::Sqlite).await;
    let nobody = service.anonymous();
    let sign_in = async |body: Value| nobody.post("/console/api/sign-in", &body).await;
    // As many as there are: behind a proxy, all have one address.
    while sign_in(json!({ "key": "a-guess" })).await.status != 429 {}
    assert_eq!(sign_in(json!({ "key": service.key() })).await.ok()["role"], "team");
    let link = service.cli_json(&["console", "link", "--json"]);
    let token = link["url"].as_str().unwrap().split_once('#').unwrap().1;
    assert_eq!(sign_in(json!({ "token": token })).await.ok()["role"], "operator");
    assert_eq!(sign_in(json!({ "token": token })).await.status, 401, "a link signs in once");
    let refused = sign_in(json!({ "key": OPERATOR })).await;
    assert_eq!((refused.status, refused.code()), (429, "RATE_LIMITED"), "who guesses learns nothing of it");
    assert!(refused.error().contains("weir console link"), "{}", refused.text);
    // What was made up opens nothing, however often.
    for n in 0..30 {
        let key = format!("weir_{}", format!("{n:02}").repeat(20));
        assert_eq!(sign_in(json!({ "key": key })).await.status, 401);
        assert_eq!(sign_in(json!({ "token": format!("{n:064x}") })).await.status, 401);
    }
}

both_databases! {
    async fn whoever_is_not_signed_in_or_comes_from_elsewhere_changes_nothing(database) {
        let service = service(database).await;
        let user = ConsoleUser::with_key(service.base(), service.key()).await;
        let reader = ConsoleUser::with_key(service.base(), READER).await;
        let nobody = service.anonymous();
        let id = random::id().to_string();
        let unsafe_ones: Vec<_> = routes()
            .into_iter()
            .filter(|(method, path)| *method != Method::GET && !is_about_sessions(path))
            .map(|(method, path)| (method, path.clone(), filled(&path, &id, &id)))
            .chain([(Method::POST, String::new(), "/public/v2/scrape".to_owned())])
            .collect();
        assert!(unsafe_ones.len() > 10);
        for (method, pattern, path) in unsafe_ones {
            let said = format!("{method} {path}");
            let body = sent_to(&pattern, &id);
            let plain = || nobody.request(method.clone(), &format!("/console/api{path}")).json(&body);
            assert_eq!(nobody.send(plain()).await.status, 401, "{said}");
            // A key is no session.
            let keyed = service.caller().request(method.clone(), &format!("/console/api{path}")).json(&body);
            assert_eq!(service.caller().send(keyed).await.status, 401, "{said}");
            let without = user.send(plain().header("cookie", &user.cookie)).await;
            assert_eq!((without.status, without.code()), (403, "FORBIDDEN"), "{said}");
            let others = user.send(plain().header("cookie", &user.cookie).header("x-weir-csrf", &reader.csrf)).await;
            assert_eq!(others.status, 403, "{said}");
            for (name, value) in [
                ("origin", "https://elsewhere.example"),
                ("origin", "null"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-site", "same-site"),
            ] {
                let foreign = user.send(user.request(method.clone(), &path).header(name, value).json(&body)).await;
                assert_eq!((foreign.status, foreign.code()), (403, "FORBIDDEN"), "{said} {name}: {value}");
            }
            let read_only = reader.send(reader.request(method.clone(), &path).json(&body)).await;
            assert_eq!((read_only.status, read_only.code()), (403, "FORBIDDEN"), "{said}");
            assert!(read_only.is_base_error(), "{said}");
        }
        // The same from one's own page.
        let own = user.request(Method::POST, "/keys").header("origin", service.base()).json(&json!({ "name": "ci" }));
        assert_eq!(user.send(own.header("sec-fetch-site", "same-origin")).await.status, 201);
        for form in ["text/plain", "application/x-www-form-urlencoded"] {
            let request = user.request(Method::POST, "/keys").header("content-type", form).body("{\"name\":null}");
            assert_eq!(user.send(request).await.status, 400, "{form}");
        }
        // A reader may leave.
        assert_eq!(reader.post("/sign-out", &json!({})).await.status, 204);
    }

    async fn another_teams_session_sees_nothing_and_an_operator_sees_all(database) {
        let site = FixtureSite::start().await;
        let service = service_with(ServiceOptions::new(database).with_sessions()).await;
        let url = site.url(&format!("/small/1?{MARK}"));
        let hook = site.webhook_url("walls");
        let batch = json!({ "urls": [url, format!("http://127.0.0.1:2/{MARK}")], "origin": MARK, "webhook": { "url": hook } });
        let job = service.post("/v2/batch/scrape", &batch).await.id();
        finished(service.caller(), &job, Duration::from_secs(60)).await;
        let own = ConsoleUser::with_key(service.base(), service.key()).await;
        let pages = own.get(&format!("/jobs/{job}/pages")).await.ok();
        let page = pages["pages"][0]["id"].as_str().unwrap().to_owned();
        let made = own.post("/keys", &json!({ "name": MARK })).await;
        assert_eq!(made.status, 201);
        let key = made.body["id"].as_str().unwrap().to_owned();
        let team = own.me["team"]["id"].as_str().unwrap().to_owned();
        let session = service.post("/v2/browser", &json!({ "ttl": 300 })).await.id();
        let worker = service.cli_json(&["workers", "list", "--json"])[0]["id"].as_str().unwrap().to_owned();

        let other = service.new_team("others");
        let other = ConsoleUser::with_key(service.base(), other.key.as_deref().unwrap()).await;
        let ids = [job.clone(), page.clone(), key.clone(), team.clone(), session.clone(), worker.clone()];
        let mut tried = 0;
        for (method, pattern) in routes() {
            if is_about_sessions(&pattern) || pattern == "/console/api/stream" || pattern.ends_with("/teams") && method == Method::POST {
                continue;
            }
            let names = pattern.contains('{');
            for id in &ids {
                let path = filled(&pattern, id, &page);
                for path in [path.clone(), format!("{path}?team={team}")] {
                    let request = other.request(method.clone(), &path);
                    let is_read = method == Method::GET;
                    let answer = other.send(if is_read { request } else { request.json(&sent_to(&pattern, id)) }).await;
                    tried += 1;
                    let said = format!("{method} {path}: {} {}", answer.status, answer.text);
                    assert!(answer.status < 500, "{said}");
                    let about = answer.text.replace(id.as_str(), "");
                    assert!(!about.contains(MARK), "{said}");
                    assert!(ids.iter().all(|foreign| !about.contains(foreign.as_str())), "{said}");
                    if names || path.contains("?team=") {
                        assert!((400..500).contains(&answer.status), "{said}");
                    }
                }
            }
        }
        assert!(tried > 200, "{tried}");
        for id in [&job, &page] {
            assert_eq!(other.get(&format!("/jobs?id={id}")).await.ok()["jobs"], json!([]));
        }
        for path in [format!("/public/v2/batch/scrape/{job}"), format!("/public/v2/browser/{session}")] {
            assert!([403, 404].contains(&other.get(&path).await.status), "{path}");
            assert_eq!(own.get(&path).await.status, 200, "{path}");
        }

        // Nothing of it took effect, and the operator and the reader see it.
        for (name, secret) in [("operator", OPERATOR), ("reader", READER)] {
            let user = ConsoleUser::with_key(service.base(), secret).await;
            for path in [
                format!("/jobs/{job}"),
                format!("/jobs/{job}/pages/{page}"),
                format!("/jobs/{job}/webhooks"),
                format!("/jobs?team={team}"),
                "/failures".to_owned(),
                "/keys".to_owned(),
            ] {
                let answer = user.get(&path).await;
                let is_told = [team.as_str(), page.as_str(), MARK].iter().any(|word| answer.text.contains(word));
                assert!(answer.status == 200 && is_told, "{name} {path}: {}", answer.text);
            }
            let keys = user.get("/keys").await.ok();
            let found = keys["keys"].as_array().unwrap().iter().find(|one| one["id"] == key.as_str()).unwrap();
            assert_eq!((&found["name"], &found["revokedAt"]), (&json!(MARK), &Value::Null));
            let sessions = user.get("/sessions?status=active").await.ok();
            assert_eq!(sessions["sessions"][0]["id"], session.as_str());
            assert!(sessions["sessions"][0]["liveViewUrl"].is_string());
            assert_eq!(sessions["sessions"][0]["interactiveLiveViewUrl"].is_string(), name == "operator");
            assert_eq!(user.get("/workers").await.ok()["workers"][0]["state"], "live");
            assert_eq!(user.get("/teams").await.ok()["teams"].as_array().unwrap().iter()
                .filter(|one| one["hasWebhookSecret"] == true).count(), 0);
            assert_eq!(user.get("/usage").await.status, 400, "which team?");
            assert_eq!(user.get(&format!("/usage?team={team}")).await.status, 200);
            assert_eq!(user.get(&format!("/jobs?team={}", random::id())).await.status, 404);
        }
        for path in ["/workers", "/workers/x/drain"] {
            let method = if path.ends_with("drain") { Method::POST } else { Method::GET };
            let answer = own.send(own.request(method, &path.replace('x', &worker))).await;
            assert_eq!(answer.status, 403, "{path}");
        }
        assert_eq!(own.post("/teams", &json!({ "name": "mine" })).await.status, 403);
        assert_eq!(own.patch(&format!("/teams/{team}"), &json!({ "concurrency": 5 })).await.status, 403);
        own.delete(&format!("/public/v2/browser/{session}")).await.ok();
    }

    async fn jobs_are_listed_shown_and_worked_on_in_bulk(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let user = ConsoleUser::with_key(service.base(), service.key()).await;
        let good = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 3), "formats": ["markdown", "html"],
            "headers": { "X-Secret": MARK } })).await.id();
        let bad = service.post("/v2/batch/scrape", &json!({ "urls": ["http://127.0.0.1:2/a", "http://127.0.0.1:2/b"] })).await.id();
        for job in [&good, &bad] {
            finished(service.caller(), job, Duration::from_secs(60)).await;
        }
        // Not over before the test is.
        let endless = json!({ "urls": [site.url("/hang")], "timeout": 300_000 });
        let running = [
            service.post("/v2/batch/scrape", &endless).await.id(),
            service.post("/v2/batch/scrape", &endless).await.id(),
        ];
        let list = async |query: &str| {
            let body = user.get(&format!("/jobs?{query}")).await.ok();
            let ids = body["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned());
            (ids.collect::<Vec<_>>(), body["next"].as_str().map(str::to_owned))
        };
        let all = vec![running[1].clone(), running[0].clone(), bad.clone(), good.clone()];
        assert_eq!(list("").await, (all.clone(), None));
        assert_eq!(list("status=scraping").await.0, all[..2]);
        assert_eq!(list("status=failed").await.0, Vec::<String>::new(), "a batch ends however its pages do");
        assert_eq!(list("code=SCRAPE_SITE_ERROR").await.0, std::slice::from_ref(&bad));
        assert_eq!(list("kind=crawl").await.0, Vec::<String>::new());
        assert_eq!(list("host=127.0.0.1&since=1h&kind=batch").await.0, all);
        assert_eq!(list("host=elsewhere.example").await.0, Vec::<String>::new());
        assert_eq!(list("cursor=").await, (all.clone(), None), "as if it were absent");
        let (first, next) = list("limit=3").await;
        assert_eq!(first, all[..3]);
        assert_eq!(list(&format!("limit=3&cursor={}", next.unwrap())).await, (all[3..].to_vec(), None));
        for wrong in ["status=x", "kind=x", "limit=0", "limit=201", "cursor=x", "since=soon", "other=1", "id=x"] {
            assert_eq!(user.get(&format!("/jobs?{wrong}")).await.status, 400, "{wrong}");
        }

        let shown = user.get(&format!("/jobs/{good}")).await.ok();
        assert_eq!((&shown["status"], &shown["states"]["done"]), (&json!("completed"), &json!(3)));
        assert_eq!(shown["request"]["path"], "/v2/batch/scrape");
        assert_eq!(shown["request"]["body"]["urls"].as_array().unwrap().len(), 3);
        assert_eq!((&shown["request"]["hidden"], &shown["request"]["isWhole"]), (&json!(["headers.X-Secret"]), &json!(true)));
        assert!(!shown.to_string().contains(MARK) && !shown.to_string().contains("•••"), "{shown}");
        // The request as it is shown can be sent again.
        let again = user.post("/public/v2/batch/scrape", &shown["request"]["body"]).await.id();
        finished(service.caller(), &again, Duration::from_secs(60)).await;
        let pages = user.get(&format!("/jobs/{good}/pages?limit=2&cursor=")).await.ok();
        assert_eq!(pages["pages"].as_array().unwrap().len(), 2);
        let rest = user.get(&format!("/jobs/{good}/pages?cursor={}", pages["next"].as_str().unwrap())).await.ok();
        assert_eq!((rest["pages"][0]["index"].as_i64(), &rest["next"]), (Some(2), &Value::Null));
        let page = pages["pages"][0]["id"].as_str().unwrap().to_owned();
        // By a part of their address, whatever it means to a database.
        let found = async |job: &str, query: &str| {
            let body = user.get(&format!("/jobs/{job}/pages?{query}")).await.ok();
            assert_eq!(body["next"], Value::Null);
            let pages = body["pages"].as_array().unwrap().iter();
            pages.map(|page| page["index"].as_i64().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(found(&good, "url=SMALL").await, [0, 1, 2]);
        assert_eq!(found(&good, "limit=3").await, [0, 1, 2], "a full piece that is the last says so");
        let second = pages["pages"][1]["url"].as_str().unwrap();
        assert_eq!(found(&good, &format!("url={second}&status=done")).await, [1]);
        assert_eq!(found(&good, "url=small&status=failed").await, Vec::<i64>::new());
        for none in ["%25small", "sm_ll", "elsewhere", "%5C"] {
            assert_eq!(found(&good, &format!("url={none}")).await, Vec::<i64>::new(), "{none}");
        }
        assert_eq!(found(&good, "url=").await, [0, 1, 2], "as if it were absent");
        assert_eq!(found(&bad, "url=2/B&status=failed").await, [1]);
        assert_eq!(user.get(&format!("/jobs/{good}/pages?url=%00")).await.status, 400);
        let detail = user.get(&format!("/jobs/{good}/pages/{page}")).await.ok();
        assert!(detail["document"]["markdown"].is_string() && detail["cut"] == json!([]), "{detail}");
        // A page's id finds its job, and is no other's.
        let by_page = user.get(&format!("/jobs/{page}")).await.ok();
        assert_eq!([&by_page["id"], &by_page["page"], &shown["page"]], [&json!(good), &json!(page), &Value::Null]);
        for id in [&good, &page] {
            assert_eq!(list(&format!("id={id}")).await, (vec![good.clone()], None));
        }
        assert_eq!(list(&format!("id={good}&kind=crawl")).await.0, Vec::<String>::new());
        assert_eq!(list(&format!("id={}", random::id())).await.0, Vec::<String>::new());
        let count = user.post("/jobs/count", &json!({ "filter": { "id": page } })).await.ok();
        assert_eq!((&count["count"], &count["upTo"]), (&json!(1), &json!(good)));
        let html = user.get(&format!("/jobs/{good}/pages/{page}/html")).await;
        assert_eq!((html.status, header(&html, "content-type")), (200, "text/html; charset=utf-8"));
        let policy = header(&html, "content-security-policy");
        assert!(policy.starts_with("sandbox; default-src 'none';") && !policy.contains("script"), "{policy}");
        assert_eq!(user.get(&format!("/jobs/{good}/pages/{page}/html?raw=1")).await.status, 404, "not asked for");
        assert_eq!(user.get(&format!("/jobs/{good}/pages/{page}/screenshot")).await.status, 404);
        let failed = user.get(&format!("/jobs/{bad}/pages?status=failed")).await.ok();
        assert_eq!(failed["pages"][0]["code"], "SCRAPE_SITE_ERROR");

        // Failures are a group, and a replay puts its pages back once.
        let failures = user.get("/failures?since=1h").await.ok();
        let group = &failures["groups"][0];
        assert_eq!((&group["host"], &group["count"]), (&json!("127.0.0.1:2"), &json!(2)), "{failures}");
        let body = json!({ "host": group["host"], "code": group["code"], "count": 2 });
        // By the pages: an answer about a job that has ended may be some moments old.
        let fail_again = async |replays: u64| {
            wait_until_within(Duration::from_secs(60), "its pages fail again", || async {
                let failed = user.get(&format!("/jobs/{bad}/pages?status=failed")).await.ok();
                let pages = failed["pages"].as_array().unwrap();
                (pages.len() == 2 && pages.iter().all(|page| page["replays"] == replays)).then_some(())
            })
            .await;
        };
        assert_eq!(user.post("/failures/replay", &body).await.ok()["done"], 2);
        fail_again(1).await;
        let replayed = user.post("/jobs/replay", &json!({ "ids": [bad, good] })).await.ok();
        assert_eq!((&replayed["done"], &replayed["skipped"], &replayed["pages"]), (&json!(1), &json!(1), &json!(2)));
        fail_again(2).await;
        // One alone, while nobody else is at it.
        let failed = user.get(&format!("/jobs/{bad}/pages?status=failed")).await.ok();
        let one = failed["pages"][0]["id"].as_str().unwrap().to_owned();
        let replayed = user.post(&format!("/jobs/{bad}/pages/{one}/replay"), &json!({})).await.ok();
        assert_eq!(replayed, json!({ "done": 1, "skipped": 0, "pages": 1, "next": null }));
        wait_until_within(Duration::from_secs(60), "the one page fails again", || async {
            let failed = user.get(&format!("/jobs/{bad}/pages?status=failed")).await.ok();
            let counts = failed["pages"].as_array().unwrap().iter();
            let counts: Vec<_> = counts.map(|page| (page["id"] == one.as_str(), page["replays"].as_i64())).collect();
            (counts.len() == 2 && counts.contains(&(true, Some(3))) && counts.contains(&(false, Some(2)))).then_some(())
        })
        .await;
        let none = user.post(&format!("/jobs/{good}/pages/{page}/replay"), &json!({})).await.ok();
        assert_eq!((&none["done"], &none["skipped"]), (&json!(0), &json!(1)), "it has not failed");
        assert_eq!(user.post(&format!("/jobs/{good}/pages/{one}/replay"), &json!({})).await.status, 404, "of another job");

        // By filter, after the count was confirmed.
        let filter = json!({ "status": "scraping", "host": "127.0.0.1" });
        let count = user.post("/jobs/count", &json!({ "filter": filter })).await.ok();
        assert_eq!((&count["count"], &count["isMore"]), (&json!(2), &json!(false)));
        let wrong = json!({ "filter": filter, "count": 1, "upTo": count["upTo"] });
        assert_eq!(user.post("/jobs/cancel", &wrong).await.status, 409);
        let right = json!({ "filter": filter, "count": 2, "upTo": count["upTo"] });
        let done = user.post("/jobs/cancel", &right).await.ok();
        assert_eq!((&done["done"], &done["next"]), (&json!(2), &Value::Null));
        assert_eq!(user.post("/jobs/cancel", &right).await.ok()["done"], 0, "pressed twice");
        assert_eq!(list("status=cancelled").await.0, all[..2]);
        let done = user.post("/jobs/delete", &json!({ "ids": [good, running[0]] })).await.ok();
        assert_eq!((&done["done"], &done["skipped"]), (&json!(2), &json!(0)));
        assert_eq!(user.get(&format!("/jobs/{good}")).await.status, 404);
        assert_eq!(service.get(&format!("/v2/batch/scrape/{good}")).await.status, 404);
        assert!(!list("").await.0.contains(&good));
        for wrong in [json!({}), json!({ "ids": [] }), json!({ "ids": ["x"] }), json!({ "ids": [bad], "filter": {} })] {
            assert_eq!(user.post("/jobs/cancel", &wrong).await.status, 400, "{wrong}");
        }
        let failing = service.post("/v2/scrape", &json!({ "url": "http://127.0.0.1:2/c", "timeout": 20_000 })).await;
        assert!(failing.status >= 400, "{}", failing.text);
        assert_eq!(list("status=failed").await.0.len(), 1);
        assert_eq!(list("status=failed&kind=batch").await.0, Vec::<String>::new());
        site.end();
    }

    async fn keys_and_teams_are_made_named_limited_and_ended(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let operator = ConsoleUser::with_key(service.base(), OPERATOR).await;
        let made = operator.post("/teams", &json!({ "name": "research" })).await;
        assert_eq!((made.status, &made.body["hasWebhookSecret"]), (201, &json!(false)));
        let team = made.body["id"].as_str().unwrap().to_owned();
        assert_eq!(operator.post("/teams", &json!({ "name": "research" })).await.status, 409);
        assert_eq!(operator.post("/keys", &json!({ "name": "x" })).await.status, 400, "for which team?");
        let key = operator.post(&format!("/keys?team={team}"), &json!({ "name": "colleague" })).await;
        assert_eq!(key.status, 201);
        let (id, text) = (key.body["id"].as_str().unwrap().to_owned(), key.body["key"].as_str().unwrap().to_owned());
        assert!(!operator.get("/keys").await.text.contains(&text), "it is shown once");
        let colleague = Caller::new(service.base(), Some(&text));
        colleague.post("/v2/scrape", &json!({ "url": site.url("/small/1") })).await.ok();
        let renamed = operator.patch(&format!("/keys/{id}"), &json!({ "name": "colleague 2" })).await.ok();
        assert_eq!(renamed["name"], "colleague 2");
        let changed = operator.patch(&format!("/teams/{team}"), &json!({ "concurrency": 3, "rates": { "scrape": 7 },
            "webhookSecret": "s3cret", "zeroDataRetention": true, "grantCredits": 50 })).await.ok();
        assert_eq!((&changed["concurrency"], &changed["rates"]["scrape"], &changed["creditsGranted"]), (&json!(3), &json!(7), &json!(50)));
        assert!(changed["hasWebhookSecret"] == true && changed["zeroDataRetention"] == true);
        assert!(!operator.get("/teams").await.text.contains("s3cret"));
        let back = operator.patch(&format!("/teams/{team}"), &json!({ "concurrency": null, "webhookSecret": null })).await.ok();
        assert_eq!((&back["concurrency"], &back["hasWebhookSecret"], &back["rates"]["scrape"]), (&Value::Null, &json!(false), &json!(7)));
        for wrong in [json!({ "concurrency": 0 }), json!({ "rates": { "lunch": 3 } }), json!({ "webhookSecret": "" }), json!({ "name": "x" }),
            json!({ "grantCredits": -51 }), json!({ "grantCredits": i64::MAX })] {
            assert_eq!(operator.patch(&format!("/teams/{team}"), &wrong).await.status, 400, "{wrong}");
        }
        // A team sets its own secret, and its session ends with its key.
        let user = ConsoleUser::with_key(service.base(), &text).await;
        assert_eq!(user.patch(&format!("/teams/{team}"), &json!({ "webhookSecret": "own" })).await.ok()["hasWebhookSecret"], true);
        assert_eq!(user.get("/teams").await.ok()["teams"].as_array().unwrap().len(), 1);
        let keys = user.get("/keys").await.ok();
        assert_eq!((keys["keys"].as_array().unwrap().len(), &keys["keys"][0]["isOwn"]), (1, &json!(true)));
        let usage = user.get("/usage?days=2").await.ok();
        assert_eq!(usage["days"].as_array().unwrap().len(), 2);
        assert_eq!((&usage["days"][1]["credits"], &usage["days"][1]["byKey"][&id]), (&json!(1), &json!(1)), "{usage}");
        let limits: Vec<&str> =
            usage["limits"].as_array().unwrap().iter().map(|limit| limit["name"].as_str().unwrap()).collect();
        assert_eq!(limits[..3], ["concurrency", "sessions", "queue"]);
        assert_eq!(operator.delete(&format!("/keys/{id}")).await.status, 204);
        assert_eq!(operator.delete(&format!("/keys/{id}")).await.status, 409);
        assert_eq!(user.get("/me").await.status, 401);
        wait_until("the key opens nothing", async || (colleague.get("/v2/concurrency-check").await.status == 401).then_some(())).await;
    }

    async fn an_address_is_not_found_by_its_password(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let with_user = site.url("/small/1").replace("http://", "http://ada:kettle@");
        let urls = json!([with_user, site.url("/small/2?kettle"), site.url("/small/3?mail=a@b.example")]);
        let job = service.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
        finished(service.caller(), &job, Duration::from_secs(60)).await;
        let reader = ConsoleUser::with_key(service.base(), READER).await;
        for (part, expected) in
            [("kettle", vec![1]), ("kett", vec![1]), ("ada", vec![]), ("a@b", vec![2]), ("/small/", vec![0, 1, 2])]
        {
            for limit in [1, 2, 50] {
                let (mut seen, mut cursor) = (Vec::new(), String::new());
                loop {
                    let path = format!("/jobs/{job}/pages?url={part}&limit={limit}&cursor={cursor}");
                    let body = reader.get(&path).await.ok();
                    seen.extend(body["pages"].as_array().unwrap().iter().map(|page| page["index"].as_i64().unwrap()));
                    let Some(next) = body["next"].as_str() else { break };
                    next.clone_into(&mut cursor);
                }
                assert_eq!(seen, expected, "{part}, {limit} a piece");
            }
        }
        site.end();
    }

    async fn operators_see_what_each_team_used(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let others = service.new_team("others");
        service.post("/v2/scrape", &json!({ "url": site.url("/small/1") })).await.ok();
        for n in 2..4 {
            others.post("/v2/scrape", &json!({ "url": site.url(&format!("/small/{n}")) })).await.ok();
        }
        let team = ConsoleUser::with_key(service.base(), service.key()).await;
        assert_eq!(team.get("/usage/teams").await.status, 403);
        let own = team.me["team"]["id"].as_str().unwrap().to_owned();
        for secret in [OPERATOR, READER] {
            let user = ConsoleUser::with_key(service.base(), secret).await;
            let usage = user.get("/usage/teams?days=7").await.ok();
            let days = usage["days"].as_array().unwrap();
            assert_eq!(days.len(), 7);
            let sum = |team: &str| days.iter().filter_map(|day| day["byTeam"][team].as_i64()).sum::<i64>();
            let named: Vec<(&str, i64)> =
                usage["teams"].as_object().unwrap().iter().map(|(id, name)| (name.as_str().unwrap(), sum(id))).collect();
            assert!(named.len() == 2 && named.contains(&("others", 2)) && named.contains(&("tests", 1)), "{usage}");
            assert_eq!(days.iter().map(|day| day["credits"].as_i64().unwrap()).sum::<i64>(), 3);
            // Of one team, where one is looked at.
            let one = user.get(&format!("/usage/teams?team={own}")).await.ok();
            assert_eq!((&one["teams"], one["days"].as_array().unwrap().len()), (&json!({ &own: "tests" }), 30));
            for wrong in ["days=0", "days=367", "days=x", "other=1"] {
                assert_eq!(user.get(&format!("/usage/teams?{wrong}")).await.status, 400, "{wrong}");
            }
        }
        site.end();
    }

    async fn figures_stream_while_the_session_lasts(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let operator = ConsoleUser::with_key(service.base(), OPERATOR).await;
        let user = ConsoleUser::with_key(service.base(), service.key()).await;
        let slow = service.post("/v2/batch/scrape", &json!({ "urls": [site.url("/slow?ms=60000")] })).await.id();
        let mut streams = Vec::new();
        for who in [&operator, &user] {
            let answer = who.request(Method::GET, "/stream").send().await.unwrap();
            assert_eq!(answer.headers()["content-type"], "text/event-stream");
            streams.push(answer);
        }
        let mut all = String::new();
        while !all.contains("\"running\":1") || !all.contains("\"memoryBytes\":") {
            let chunk = tokio::time::timeout(Duration::from_secs(60), streams[0].chunk()).await.unwrap().unwrap().unwrap();
            all += std::str::from_utf8(&chunk).unwrap();
        }
        assert!(all.contains("event: figures\ndata: {"), "{all}");
        let first = format!("event: session\ndata: {}\n\n", operator.me["session"].as_str().unwrap());
        assert!(all.starts_with(&first), "{all}");
        let mut own = String::new();
        while !own.contains("\"running\":1") {
            let chunk = tokio::time::timeout(Duration::from_secs(60), streams[1].chunk()).await.unwrap().unwrap().unwrap();
            own += std::str::from_utf8(&chunk).unwrap();
        }
        assert!(own.contains("\"workers\":[]") && own.contains("\"pagesPerSecond\":null"), "{own}");
        // It ends with its session.
        assert_eq!(user.post("/sign-out", &json!({})).await.status, 204);
        let ended = async { while let Ok(Some(_)) = streams[1].chunk().await {} };
        tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the stream goes on");
        // So it does when another tab of the browser signs in.
        let user = ConsoleUser::with_key(service.base(), service.key()).await;
        streams[1] = user.request(Method::GET, "/stream").send().await.unwrap();
        let anew = user.request(Method::POST, "/sign-in").json(&json!({ "key": OPERATOR }));
        assert_eq!(user.send(anew).await.ok()["role"], "operator");
        let ended = async { while let Ok(Some(_)) = streams[1].chunk().await {} };
        tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the stream goes on");
        let overview = operator.get("/overview?range=hour").await.ok();
        assert_eq!((&overview["health"]["word"], overview["points"].as_array().unwrap().len()), (&json!("ok"), 60));
        for (range, points) in [("day", 96), ("week", 84)] {
            let overview = operator.get(&format!("/overview?range={range}")).await.ok();
            assert_eq!(overview["points"].as_array().unwrap().len(), points, "{range}");
        }
        assert_eq!(operator.get("/overview?range=year").await.status, 400);
        drop(streams);
        service.delete(&format!("/v2/batch/scrape/{slow}")).await.ok();
        site.end();
    }
}

/// Whoever copies a request from the console sends it as it stands there.
#[tokio::test]
async fn what_the_console_has_committed_is_answered_though_the_answer_to_the_commit_is_lost() {
    let faults = (1..=4).map(|n| format!("call_committed=fail@{n}")).collect::<Vec<_>>().join(",");
    let service = service_with(ServiceOptions::new(Database::Sqlite).env(ENVIRONMENT, faults)).await;
    let operator = ConsoleUser::with_key(service.base(), OPERATOR).await;
    let made = operator.post("/teams", &json!({ "name": "lost" })).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let team = made.body["id"].as_str().unwrap();
    let granted = operator.patch(&format!("/teams/{team}"), &json!({ "grantCredits": 70 })).await.ok();
    assert_eq!(granted["creditsGranted"], 70, "once");
    let key = operator.post(&format!("/keys?team={team}"), &json!({ "name": "lost" })).await;
    assert_eq!(key.status, 201, "it is shown: {}", key.text);
    let caller = Caller::new(service.base(), key.body["key"].as_str());
    assert_eq!(caller.get("/v2/team/credit-usage").await.status, 200);
    let revoked = operator.delete(&format!("/keys/{}", key.body["id"].as_str().unwrap())).await;
    assert_eq!(revoked.status, 204, "{}", revoked.text);
}

#[tokio::test]
async fn a_request_of_any_kind_is_shown_as_it_can_be_sent_again() {
    let site = FixtureSite::start().await;
    let model = ModelStandIn::answering(|_, _| Said::json(&json!({ "title": "x" }))).await;
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m");
    let service = service_with(options).await;
    let user = ConsoleUser::with_key(service.base(), service.key()).await;
    let (url, headers) = (site.url("/small/1"), json!({ "Cookie": MARK }));
    let schema = json!({ "type": "object", "properties": { "title": { "type": "string" } } });
    let hook = json!({ "url": site.webhook_url("again"), "headers": { "X-Hook": MARK }, "events": ["completed"] });
    let in_pages = json!(["scrapeOptions.headers.Cookie", "webhook.headers.X-Hook"]);
    for (path, body, hidden) in [
        (
            "/v2/crawl",
            json!({ "url": url, "limit": 1, "scrapeOptions": { "headers": headers }, "webhook": hook }),
            in_pages.clone(),
        ),
        ("/v2/map", json!({ "url": url, "limit": 2, "headers": headers }), json!(["headers.Cookie"])),
        (
            "/v2/extract",
            json!({ "urls": [url], "prompt": "the title", "schema": schema, "enableWebSearch": false,
            "scrapeOptions": { "headers": headers, "waitFor": 5 }, "webhook": hook }),
            in_pages,
        ),
        (
            "/v2/agent",
            json!({ "urls": [url], "prompt": "the title", "strictConstrainToURLs": true, "maxCredits": 5,
            "webhook": hook }),
            json!(["webhook.headers.X-Hook"]),
        ),
    ] {
        service.post(path, &body).await.ok();
        let shown = async || {
            let jobs = user.get("/jobs").await.ok();
            user.get(&format!("/jobs/{}", jobs["jobs"][0]["id"].as_str().unwrap())).await.ok()["request"].clone()
        };
        let request = shown().await;
        assert_eq!(
            (&request["path"], &request["hidden"], &request["isWhole"]),
            (&json!(path), &hidden, &json!(true)),
            "{request}"
        );
        assert!(!request.to_string().contains(MARK), "{request}");
        user.post(&format!("/public{path}"), &request["body"]).await.ok();
        assert_eq!(shown().await["body"], request["body"], "{path}");
    }
    let count = user.post("/jobs/count", &json!({ "filter": { "status": "scraping" } })).await.ok();
    let all = json!({ "filter": { "status": "scraping" }, "count": count["count"], "upTo": count["upTo"] });
    user.post("/jobs/cancel", &all).await.ok();
    site.end();
}

#[tokio::test]
async fn a_minute_of_pages_is_in_the_overview_of_its_team() {
    let site = FixtureSite::start().await;
    let service = service(Database::Sqlite).await;
    let user = ConsoleUser::with_key(service.base(), service.key()).await;
    let operator = ConsoleUser::with_key(service.base(), OPERATOR).await;
    let other = service.new_team("others");
    let other = ConsoleUser::with_key(service.base(), other.key.as_deref().unwrap()).await;
    let job = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 3) })).await.id();
    finished(service.caller(), &job, Duration::from_secs(60)).await;
    let bound = Duration::from_secs(100);
    let overview = wait_until_within(bound, "the minute is written", async || {
        let overview = user.get("/overview").await.ok();
        (overview["totals"]["pages"] == 3).then_some(overview)
    })
    .await;
    assert_eq!((&overview["totals"]["credits"], &overview["totals"]["failed"]), (&json!(3), &json!(0)));
    assert!(overview["totals"]["p50Ms"].is_u64() && overview["totals"]["p95Ms"].is_u64());
    assert!(overview["points"].as_array().unwrap().iter().all(|point| point["memoryBytes"].is_null()));
    let all = operator.get("/overview").await.ok();
    assert_eq!(all["totals"]["pages"], 3);
    assert!(all["points"].as_array().unwrap().iter().any(|point| point["memoryBytes"].as_i64() > Some(1_000_000)));
    assert_eq!(other.get("/overview").await.ok()["totals"]["pages"], 0);
    // Told by the API, whose minute may end a second after the worker's.
    wait_until_within(bound, "the use of the key is written", async || {
        let keys = user.get("/keys").await.ok();
        keys["keys"][0]["lastUsedAt"].is_string().then_some(())
    })
    .await;
}

#[tokio::test]
async fn every_answer_below_the_console_keeps_other_sites_away() {
    let service = service(Database::Sqlite).await;
    let nobody = service.anonymous();
    for path in ["/console", "/console/", "/console/jobs/x?status=failed", "/console/sign-in"] {
        let page = nobody.get(path).await;
        assert_eq!((page.status, header(&page, "content-type")), (200, "text/html; charset=utf-8"), "{path}");
        assert_eq!(header(&page, "cache-control"), "no-store");
        let policy = header(&page, "content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!page.text.contains("{{assets}}"));
    }
    for path in [
        "/console",
        "/console/api/me",
        "/console/api/nothing",
        "/console/assets/0/nothing.js",
        "/console/api/public/v2/team/queue-status",
    ] {
        let request = nobody.request(Method::GET, path).header("origin", "https://elsewhere.example");
        let answer = nobody.send(request).await;
        for (name, value) in [
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
            ("access-control-allow-origin", ""),
            ("access-control-allow-credentials", ""),
        ] {
            assert_eq!(header(&answer, name), value, "{path} {name}");
        }
        assert!(header(&answer, "content-security-policy").contains("frame-ancestors 'none'"), "{path}");
    }
    assert_eq!(nobody.get("/console/api/nothing").await.status, 404);
    assert_eq!(nobody.get("/console/api/public/v2/team/queue-status").await.status, 401);
    let upgrade = ConsoleUser::with_key(service.base(), service.key()).await;
    let id = random::id();
    let request = upgrade.request(Method::GET, &format!("/public/v2/crawl/{id}"));
    let request = request.header("connection", "upgrade").header("upgrade", "websocket");
    assert_eq!(upgrade.send(request).await.status, 400);
}

#[tokio::test]
async fn the_console_can_be_off_and_in_open_mode_it_asks_for_a_key_all_the_same() {
    let off = TestService::start_with(ServiceOptions::new(Database::Sqlite).env("WEIR_CONSOLE", "off")).await;
    for path in ["/console", "/console/api/me", "/console/api/public/v2/team/queue-status", "/console/assets/0/x.js"] {
        let answer = off.get(path).await;
        assert_eq!((answer.status, answer.code()), (404, "NOT_FOUND"), "{path}");
    }
    let sign_in = off.anonymous().post("/console/api/sign-in", &json!({ "key": off.key() })).await;
    assert_eq!(sign_in.status, 404);
    let output = off.try_cli(&["console", "link"]);
    assert!(!output.status.success());

    let open = TestService::start_with(ServiceOptions::new(Database::Sqlite).env("WEIR_AUTH", "open")).await;
    let nobody = open.anonymous();
    assert_eq!(nobody.get("/v2/team/queue-status").await.status, 200);
    assert_eq!(nobody.get("/console/api/me").await.status, 401);
    assert_eq!(nobody.get("/console/api/public/v2/team/queue-status").await.status, 401);
    let user = ConsoleUser::with_key(open.base(), open.key()).await;
    assert_eq!(user.me["features"]["openMode"], true);
    assert_eq!(user.get("/public/v2/team/queue-status").await.status, 200);
    // Names that a page may have turned to this machine.
    let request = user.request(Method::GET, "/me").header("host", "rebound.example");
    assert_eq!(user.send(request).await.status, 403);
}
