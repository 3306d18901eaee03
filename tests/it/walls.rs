//! Another team's key on every route with every id, and every route without a key (spec 5). The routes are those of the
//! API's own list, so a new one is tried by itself.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use weir_api::routes::UPLOAD;
use weir_shared::random;
use weir_tests::{
    Answer, Caller, Database, FixtureSite, ModelStandIn, Said, ServiceOptions, TestService, both_databases, finished,
};

/// Words that only the first team's things hold.
const MARK: &str = "walls-secret";

/// The routes of the API: method and path.
fn routes() -> Vec<(Method, String)> {
    weir_api::routes::list().into_iter().map(|(method, path)| (method.parse().unwrap(), path)).collect()
}

/// A body that the route accepts as far as a foreign key allows, with an id wherever one may stand.
fn request_body(path: &str, id: &str) -> Value {
    match path {
        _ if path.ends_with("/execute") => json!({ "code": "1" }),
        _ if path.ends_with("/interact") => json!({ "code": "1" }),
        "/v1/batch/scrape" | "/v2/batch/scrape" => json!({ "urls": ["http://127.0.0.1:2/"], "appendToId": id }),
        // A `ttl` that is refused, so that the other team opens no session of its own.
        "/v2/browser" | "/v2/interact" => json!({ "id": id, "ttl": 1 }),
        "/mcp" => {
            let uri = format!("weir://batch/{id}");
            json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": uri } })
        }
        // A ref of the first team's is among the ids.
        "/v2/parse" => json!({ "uploadRef": id }),
        "/v2/feedback" => json!({ "endpoint": "scrape", "jobId": id, "rating": "bad" }),
        _ if path.ends_with("/feedback") => json!({ "rating": "bad" }),
        "/v2/monitor/{id}" => json!({ "status": "paused" }),
        _ if path.ends_with("/run") => json!({}),
        _ => json!({ "id": id, "jobId": id }),
    }
}

async fn ask(caller: &Caller, method: &Method, path: &str, body: &Value) -> Answer {
    let request = caller.request(method.clone(), path);
    let is_read = *method == Method::GET;
    caller.send(if is_read { request } else { request.json(body) }).await
}

/// Routes that answer without a key: what they show is nobody's, or they have a capability in their address.
fn is_public(path: &str) -> bool {
    path == UPLOAD || !["/v2/", "/v1/", "/mcp"].iter().any(|start| path.starts_with(start))
}

both_databases! {
    async fn another_teams_key_reaches_nothing_on_any_route(database) {
        let site = FixtureSite::start().await;
        let model = ModelStandIn::answering(|name, _| match name {
            "step" => Said::Hang,
            _ => Said::json(&json!({ "said": MARK })),
        }).await;
        let options = ServiceOptions::new(database).with_sessions().env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m");
        let service = TestService::start_with(options).await;
        let url = site.url(&format!("/small/1?{MARK}"));
        let document = service.post("/v2/scrape", &json!({ "url": url })).await.ok();
        let scrape = document["data"]["metadata"]["scrapeId"].as_str().unwrap().to_owned();
        let batch = service.post("/v2/batch/scrape", &json!({ "urls": [url], "origin": MARK })).await.id();
        finished(service.caller(), &batch, Duration::from_secs(60)).await;
        // Pages that are not over before the test is.
        let endless = json!({ "timeout": 300_000 });
        let slow = site.url(&format!("/hang?{MARK}"));
        let running = json!({ "urls": [slow], "timeout": endless["timeout"] });
        let running = service.post("/v2/batch/scrape", &running).await.id();
        let crawl = json!({ "url": slow, "limit": 1, "sitemap": "skip", "scrapeOptions": endless });
        let crawl = service.post("/v2/crawl", &crawl).await.id();
        service.post("/v2/map", &json!({ "url": url, "sitemap": "skip" })).await.ok();
        let profile = json!({ "name": MARK });
        let session = service.post("/v2/browser", &json!({ "ttl": 300, "profile": profile })).await.id();
        let activity = service.get("/v2/team/activity").await.ok();
        let map = activity["data"].as_array().unwrap().iter().find(|entry| entry["endpoint"] == "map").unwrap();
        let map = map["id"].as_str().unwrap().to_owned();
        let team = service.cli_json(&["team", "list", "--json"]);
        let team = team.as_array().unwrap().iter().find(|team| team["name"] == "tests").unwrap();
        let team = team["id"].as_str().unwrap().to_owned();
        let jobs = service.cli_json(&["jobs", "list", "--json"]);
        let mut ids: Vec<String> = jobs.as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect();
        ids.extend([scrape, batch.clone(), running.clone(), crawl.clone(), session.clone(), map, team, MARK.to_owned()]);
        let monitor = json!({ "name": MARK, "schedule": { "cron": "0 0 1 1 *" }, "targets": [{ "type": "scrape", "urls": [url] }] });
        let monitor = service.post("/v2/monitor", &monitor).await.ok()["data"]["id"].as_str().unwrap().to_owned();
        let check = service.post(&format!("/v2/monitor/{monitor}/run"), &json!({})).await.id();
        ids.extend([monitor.clone(), check]);
        ids.push(service.post("/v1/llmstxt", &json!({ "url": url })).await.id());
        let upload = service.post("/v2/parse/upload-url", &json!({ "filename": format!("{MARK}.html") })).await.ok();
        let address = upload["data"]["uploadUrl"].as_str().unwrap();
        ids.push(address.split(['/', '?']).nth(6).unwrap().to_owned());
        ids.push(upload["data"]["uploadRef"].as_str().unwrap().to_owned());

        let agent = service.post("/v2/agent", &json!({ "prompt": MARK, "urls": [url] })).await.ok();
        let [agent, thread] = ["id", "threadId"].map(|name| agent[name].as_str().unwrap().to_owned());
        let extract = service.post("/v2/extract", &json!({ "urls": [url], "prompt": MARK })).await.id();
        ids.extend([agent.clone(), thread, extract]);

        let other = service.new_team("others");
        let unknown = random::id().to_string();
        let mut tried = 0;
        for (method, pattern) in routes() {
            let names = pattern.contains('{');
            let asked = ids.iter().chain([&unknown]).map(async |id| {
                let path = pattern.replace("{id}", id).replace("{name}", id).replace("{page}", id).replace("{check}", id);
                assert!(!path.contains('{'), "{pattern}: a kind of id that this test does not know");
                let answer = ask(&other, &method, &path, &request_body(&pattern, id)).await;
                (id, path, answer)
            });
            for (id, path, answer) in join_all(asked).await {
                tried += 1;
                let said = format!("{method} {path}: {} {}", answer.status, answer.text);
                assert!(answer.status < 500 || [501, 503].contains(&answer.status), "{said}");
                // Only what the request named may come back.
                let about = answer.text.replace(id.as_str(), "");
                assert!(!about.contains(MARK), "{said}");
                assert!(ids.iter().all(|foreign| !about.contains(foreign.as_str())), "{said}");
                let is_page = !is_public(&pattern);
                if names && is_page {
                    assert!((400..=501).contains(&answer.status), "{said}");
                    assert!(answer.is_base_error(), "{said}");
                }
                if pattern == UPLOAD {
                    assert_eq!(answer.status, 400, "{said}");
                }
                if pattern.starts_with("/cdp/") {
                    assert!([400, 401, 403, 404].contains(&answer.status), "{said}");
                }
                if method == Method::DELETE && !names {
                    assert!((400..500).contains(&answer.status), "{said}");
                }
            }
        }
        assert!(tried > 300, "{tried}");

        // Nothing of it took effect.
        let nobody = service.anonymous();
        nobody.send(nobody.request(Method::PUT, address).body("<p>own</p>")).await.ok();
        let parsed = service.post("/v2/parse", &json!({ "uploadRef": upload["data"]["uploadRef"] })).await.ok();
        assert!(parsed["data"]["markdown"].as_str().unwrap().contains("own"), "{parsed}");
        assert_eq!(service.get(&format!("/v2/batch/scrape/{batch}")).await.ok()["total"], 1);
        let status = service.get(&format!("/v2/batch/scrape/{running}")).await.ok();
        assert_eq!((&status["status"], &status["total"]), (&json!("scraping"), &json!(1)));
        assert_eq!(service.get(&format!("/v2/crawl/{crawl}")).await.ok()["status"], "scraping");
        let sessions = service.get("/v2/browser?status=active").await.ok();
        assert_eq!(sessions["sessions"][0]["id"], session.as_str(), "{sessions}");
        assert_eq!(service.get(&format!("/v2/monitor/{monitor}")).await.ok()["data"]["name"], MARK);
        assert_eq!(service.get(&format!("/v2/agent/{agent}")).await.ok()["status"], "processing");
        let (running, crawl) = (format!("/v2/batch/scrape/{running}"), format!("/v2/crawl/{crawl}"));
        let (monitor, agent) = (format!("/v2/monitor/{monitor}"), format!("/v2/agent/{agent}"));
        for path in [monitor, running, crawl, format!("/v2/browser/{session}"), agent] {
            service.delete(&path).await.ok();
        }
        service.delete(&format!("/v2/browser/profiles/{MARK}")).await.ok();
        site.end();
    }
}

#[tokio::test]
async fn every_route_of_the_api_wants_a_key() {
    let service = TestService::start(Database::Sqlite).await;
    let id = random::id().to_string();
    let nobody = service.anonymous();
    let routes = routes();
    assert!(routes.iter().filter(|(_, path)| !is_public(path)).count() > 60, "{routes:?}");
    for (method, pattern) in routes.iter().filter(|(_, path)| !is_public(path)) {
        let path = pattern.replace("{id}", &id).replace("{name}", "mine");
        for (header, error) in [
            (None, "Unauthorized"),
            (Some("Bearer "), "Unauthorized: Token missing"),
            (Some("Bearer"), "Unauthorized: Token missing"),
            (Some("Bearer nobodys-key"), "Unauthorized: Invalid token"),
        ] {
            let mut request = nobody.request(method.clone(), &path);
            if *method != Method::GET {
                request = request.json(&json!({}));
            }
            if let Some(header) = header {
                request = request.header("authorization", header);
            }
            let answer = nobody.send(request).await;
            let said = format!("{method} {path} with {header:?}: {}", answer.text);
            assert_eq!((answer.status, answer.error()), (401, error), "{said}");
            assert!(answer.is_base_error(), "{said}");
        }
    }
}

#[tokio::test]
async fn what_there_is_not_says_so_in_json() {
    let service = TestService::start(Database::Sqlite).await;
    let id = random::id();
    let (get, post, delete, patch) = (Method::GET, Method::POST, Method::DELETE, Method::PATCH);
    for (method, path, status) in [
        // Tasks that there are not.
        (&get, format!("/v2/extract/{id}"), 404),
        (&get, format!("/v2/agent/{id}"), 404),
        (&delete, format!("/v2/agent/{id}"), 404),
        // Paths of the newest clients.
        (&get, format!("/v2/agent/{id}/trace"), 404),
        (&get, format!("/v2/agent/{id}/snapshots/{id}"), 404),
        (&get, format!("/v2/agent/threads/{id}"), 404),
        (&patch, format!("/v2/monitor/{id}"), 400),
        (&post, format!("/v2/monitor/{id}/run"), 404),
        (&get, format!("/v2/monitor/{id}/checks/{id}"), 404),
        (&post, "/v2/search/developer".to_owned(), 404),
        (&post, "/v2/search/gov".to_owned(), 404),
        (&post, "/v2/search/research/papers".to_owned(), 404),
        (&post, "/v2/support/ask".to_owned(), 404),
        (&post, "/v2/support/docs-search".to_owned(), 404),
        (&get, "/v2/team/threat-protection".to_owned(), 403),
        (&Method::PUT, "/v2/team/threat-protection".to_owned(), 403),
        (&get, "/v2/keyless/eligibility".to_owned(), 404),
        (&get, format!("/v2/browser/{id}/replay"), 404),
        // Version 1, and what was before it (wire 26).
        (&get, "/v1/scrape".to_owned(), 405),
        (&get, format!("/v1/extract/{id}"), 404),
        (&get, format!("/v1/llmstxt/{id}"), 404),
        (&post, "/v1/deep-research".to_owned(), 404),
        (&get, format!("/v1/deep-research/{id}"), 404),
        (&post, "/v1/crawl/params-preview".to_owned(), 405),
        (&post, "/v0/scrape".to_owned(), 404),
        (&post, "/v0/crawl".to_owned(), 404),
        (&get, "/v0/crawl/status/x".to_owned(), 404),
        (&get, "/".to_owned(), 404),
        (&patch, "/v2/scrape".to_owned(), 405),
    ] {
        let answer = ask(service.caller(), method, &path, &json!({})).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text);
        assert!(answer.is_base_error(), "{method} {path}: {}", answer.text);
        if path == "/v2/support/ask" {
            assert!(answer.error().contains("/console/jobs/ID"), "{}", answer.text);
        }
    }
}
