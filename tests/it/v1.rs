//! Version 1 of the API (wire 26): the names, the defaults and the shapes in which it differs, and that it is the same
//! service.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use weir_shared::random;
use weir_tests::{
    Answer, Database, FixtureSite, ModelStandIn, OwnPages, Said, SearchStandIn, ServiceOptions, SiteOptions,
    TestService, both_databases, ended_at, markdown_of, wait_until,
};

use crate::websocket::{by_header, by_subprotocol, frames};

const BOUND: Duration = Duration::from_secs(60);

/// A service without browsers: what is asked for here needs none.
fn options(database: Database) -> ServiceOptions {
    let options = ServiceOptions::new(database).workers(1);
    options.env("WEIR_PAGE_BROWSERS", "0").env("WEIR_CACHE_SIZE", "100MB")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("a list: {value}"))
}

/// The sources of the documents of a body.
fn sources(body: &Value) -> BTreeSet<&str> {
    list(&body["data"]).iter().map(|document| text(&document["metadata"]["sourceURL"])).collect()
}

/// Endpoint and version of what the team did, newest first.
async fn activity(service: &TestService) -> Vec<(String, String)> {
    let body = service.get("/v1/team/activity").await.ok();
    assert_eq!(body, service.get("/v2/team/activity").await.ok());
    let entry = |entry: &Value| (text(&entry["endpoint"]).to_owned(), text(&entry["api_version"]).to_owned());
    list(&body["data"]).iter().map(entry).collect()
}

async fn read_by_delete(service: &TestService, path: &str) -> Answer {
    service.caller().send(service.caller().request(Method::DELETE, path)).await
}

both_databases! {
    async fn a_scrape_has_the_defaults_of_version_1(database) {
        let site = FixtureSite::start_with(SiteOptions { tls: true, ..SiteOptions::default() }).await;
        let service = TestService::start_with(options(database)).await;
        let url = site.url("/article/1");
        let plain = service.post("/v1/scrape", &json!({ "url": url, "origin": "python-sdk@4.53.0" })).await.ok();
        assert_eq!(site.truth("/article/1").await.fault_in(markdown_of(&plain["data"])), None);
        let metadata = &plain["data"]["metadata"];
        assert_eq!((text(&metadata["sourceURL"]), metadata["statusCode"].as_i64()), (url.as_str(), Some(200)));
        assert!(metadata["cacheState"].is_null(), "the cache is not asked: {metadata}");
        // What it has put there is found by those that want it; a cached scrape writes its rows in another way.
        let cached = service.post("/v1/scrape", &json!({ "url": url, "maxAge": 600_000 })).await.ok();
        assert_eq!(cached["data"]["metadata"]["cacheState"], "hit", "{cached}");
        let named = service.post("/v1/scrape", &json!({ "url": url, "origin": "website" })).await.ok();
        assert_eq!(named["scrape_id"], named["data"]["metadata"]["scrapeId"]);
        service.post("/v2/scrape", &json!({ "url": url, "maxAge": 0 })).await.ok();
        let seen: Vec<String> = activity(&service).await.into_iter().map(|(_, version)| version).collect();
        assert_eq!(seen, ["v2", "v1", "v1", "v1"]);

        let base64 = json!({ "url": site.url("/files/report.pdf"), "parsePDF": false });
        assert!(markdown_of(&service.post("/v1/scrape", &base64).await.ok()["data"]).starts_with("JVBER"));
        let formats = ["rawHtml", "links", "content"];
        let several = service.post("/v1/scrape", &json!({ "url": url, "formats": formats })).await.ok();
        let fields: BTreeSet<&str> = several["data"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, BTreeSet::from(["markdown", "rawHtml", "links", "metadata"]));

        let place = json!({ "url": site.url("/headers"), "formats": ["rawHtml"], "geolocation": { "country": "FR" } });
        let seen = service.post("/v1/scrape", &place).await.ok();
        assert!(text(&seen["data"]["rawHtml"]).contains("fr-FR"), "{seen}");
        // Certificates have to verify unless the caller says otherwise.
        let tls = site.tls_url("/small/1");
        let refused = service.post("/v1/scrape", &json!({ "url": tls })).await;
        assert_eq!((refused.status, refused.code()), (500, "SCRAPE_SSL_ERROR"), "{}", refused.text);
        service.post("/v1/scrape", &json!({ "url": tls, "skipTlsVerification": true })).await.ok();

        for (body, words) in [
            (json!({ "url": url, "formats": [{ "type": "markdown" }] }), "Bad Request"),
            (json!({ "url": url, "formats": ["json"] }), "corresponding options must be provided"),
            (json!({ "url": url, "onlyCleanContent": true }), "the v1 API documentation"),
            (json!({ "url": url, "agent": { "model": "FIRE-1", "prompt": "x" } }), "agent is not available yet"),
        ] {
            let answer = service.post("/v1/scrape", &body).await;
            assert!(answer.status == 400 && answer.error().contains(words), "{}", answer.text);
            assert!(answer.is_base_error());
        }
    }

    async fn changes_of_a_page_are_told(database) {
        let (service, pages) = (TestService::start_with(options(database)).await, OwnPages::start().await);
        let url = pages.put("/page", "<main><h1>Prices</h1><p>Tea costs four euros.</p></main>");
        let body = json!({ "url": url, "formats": ["markdown", "changeTracking"],
            "changeTrackingOptions": { "modes": ["git-diff"], "tag": "weekly" } });
        let track = || async { service.post("/v1/scrape", &body).await.ok()["data"]["changeTracking"].clone() };
        assert_eq!(text(&track().await["changeStatus"]), "new");
        pages.put("/page", "<main><h1>Prices</h1><p>Tea costs five euros.</p></main>");
        let changed = track().await;
        assert_eq!(text(&changed["changeStatus"]), "changed");
        assert!(text(&changed["diff"]["text"]).contains("+Tea costs five euros."), "{changed}");
        // The history is that of version 2: of the page, the tag and the options.
        let format = json!({ "type": "changeTracking", "tag": "weekly" });
        let newer = service.post("/v2/scrape", &json!({ "url": url, "formats": ["markdown", format], "maxAge": 0 })).await;
        assert_eq!(text(&newer.ok()["data"]["changeTracking"]["changeStatus"]), "same");
    }

    async fn what_is_read_out_of_a_page_is_answered_under_both_names(database) {
        let site = FixtureSite::start().await;
        let model = ModelStandIn::answering(|_, _| Said::json(&json!({ "owner": "seen" }))).await;
        let options = options(database).env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m");
        let service = TestService::start_with(options).await;
        let schema = json!({ "type": "object", "properties": { "owner": { "type": "string" } } });
        let wanted = json!({ "schema": schema, "prompt": "the owner", "systemPrompt": "Be brief, please." });
        let body = json!({ "url": site.url("/article/1"), "formats": ["json"], "jsonOptions": wanted });
        let document = service.post("/v1/scrape", &body).await.ok()["data"].clone();
        assert_eq!((&document["json"], &document["extract"]), (&json!({ "owner": "seen" }), &json!({ "owner": "seen" })));
        assert_eq!(document["metadata"]["creditsUsed"], 5);
        let asked = model.asked();
        assert!(asked.iter().any(|(_, body)| body.to_string().contains("Be brief, please.")), "{asked:?}");

        let body = json!({ "urls": [site.url("/article/2")], "formats": ["markdown", "extract"], "extract": wanted,
            "webhook": { "url": site.webhook_url("v1"), "events": ["page"] } });
        let id = service.post("/v1/batch/scrape", &body).await.id();
        for path in [format!("/v1/batch/scrape/{id}"), format!("/v1/crawl/{id}")] {
            let status = ended_at(service.caller(), &path, BOUND).await;
            assert_eq!(status["data"][0]["extract"]["owner"], "seen", "{path}");
        }
        let told = wait_until("the page's webhook", async || site.events("v1").await.pop()).await;
        assert_eq!(told["data"][0]["extract"]["owner"], "seen", "{told}");
        let (stream, _) = by_header(&service, &format!("/v1/crawl/{id}"), service.key()).await.unwrap();
        assert_eq!(frames(stream).await.0[0]["data"]["data"][0]["extract"]["owner"], "seen");
        // Version 2 knows the new name alone.
        let status = service.get(&format!("/v2/batch/scrape/{id}")).await.ok();
        assert_eq!((&status["data"][0]["extract"], &status["data"][0]["json"]["owner"]), (&Value::Null, &json!("seen")));
    }

    async fn a_crawl_is_started_read_and_cancelled_under_v1(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(options(database)).await;
        // What Dify sends to try a key.
        let dify = json!({ "url": site.url("/small/1"), "includePaths": [], "excludePaths": [], "limit": 1,
            "scrapeOptions": { "onlyMainContent": true } });
        let started = service.post("/v1/crawl", &dify).await;
        assert_eq!(started.status, 200, "{}", started.text);
        let id = started.id();
        let status = ended_at(service.caller(), &format!("/v1/crawl/{id}"), BOUND).await;
        assert_eq!((text(&status["status"]), status["total"].as_i64()), ("completed", Some(1)));

        // The path may have one segment more than the start page's.
        let body = json!({ "url": site.url("/crawl/3/"), "maxDepth": 1, "ignoreSitemap": true, "ignoreQueryParameters": true });
        let started = service.post("/v1/crawl", &body).await.ok();
        let path = format!("/v1/crawl/{}", text(&started["id"]));
        assert_eq!(text(&started["url"]), format!("{}{path}", service.base()));
        ended_at(service.caller(), &path, BOUND).await;
        let first = service.get(&format!("{path}?limit=6")).await.ok();
        assert_eq!(text(&first["next"]), format!("{}{path}?skip=6&limit=6", service.base()));
        let rest = service.get(text(&first["next"]).strip_prefix(service.base()).unwrap()).await.ok();
        assert!(!rest.as_object().unwrap().contains_key("next") && !rest.as_object().unwrap().contains_key("error"));
        let pages: BTreeSet<&str> = sources(&first).union(&sources(&rest)).copied().collect();
        let expected: Vec<String> = (0..10).map(|n| site.url(&format!("/crawl/3/{n}/"))).chain([site.url("/crawl/3/")]).collect();
        assert_eq!(pages, expected.iter().map(String::as_str).collect());

        // Its errors are read by GET and by DELETE, which cancels nothing.
        let body = json!({ "url": site.url("/slow?ms=60000"), "limit": 1, "ignoreSitemap": true });
        let path = format!("/v1/crawl/{}", service.post("/v1/crawl", &body).await.id());
        let errors = read_by_delete(&service, &format!("{path}/errors")).await.ok();
        assert_eq!(errors, service.get(&format!("{path}/errors")).await.ok());
        assert_eq!((&errors["errors"], &errors["robotsBlocked"]), (&json!([]), &json!([])));
        let running = service.get(&path).await.ok();
        assert_eq!((text(&running["status"]), &running["data"]), ("scraping", &json!([])));
        assert!(text(&running["next"]).starts_with(&format!("{}{path}?skip=0", service.base())));
        for list in ["active", "ongoing"] {
            let crawls = service.get(&format!("/v1/crawl/{list}")).await.ok();
            assert_eq!(crawls["crawls"].as_array().unwrap().len(), 1, "{crawls}");
            assert_eq!(crawls["crawls"][0]["options"]["maxDepth"], 10);
        }
        assert_eq!(service.delete(&path).await.ok()["status"], "cancelled");
        assert_eq!(text(&service.get(&path).await.ok()["status"]), "cancelled");
        let seen = activity(&service).await;
        assert_eq!(seen, vec![("crawl".to_owned(), "v1".to_owned()); 3]);

        let key = random::id().to_string();
        for status in [200, 409] {
            let request = service.caller().request(Method::POST, "/v1/crawl").header("x-idempotency-key", &key);
            let answer = service.caller().send(request.json(&dify)).await;
            assert_eq!(answer.status, status, "{}", answer.text);
        }
        site.end();
    }

    async fn a_batch_is_served_at_the_path_of_crawls_too(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(options(database)).await;
        let mut urls = site.urls("/small/", 5);
        urls.push("http://no-such-name.invalid/".to_owned());
        let started = service.post("/v1/batch/scrape", &json!({ "urls": urls, "maxConcurrency": 2 })).await.ok();
        assert!(!started.as_object().unwrap().contains_key("invalidURLs"), "{started}");
        let id = text(&started["id"]);
        assert_eq!(text(&started["url"]), format!("{}/v1/batch/scrape/{id}", service.base()));
        for path in [format!("/v1/crawl/{id}"), format!("/v1/batch/scrape/{id}")] {
            ended_at(service.caller(), &path, BOUND).await;
            let status = service.get(&path).await.ok();
            assert_eq!((text(&status["status"]), status["completed"].as_i64()), ("completed", Some(5)));
            assert!(!status.as_object().unwrap().contains_key("next"), "{path}");
            let part = service.get(&format!("{path}?limit=2")).await.ok();
            assert_eq!(text(&part["next"]), format!("{}{path}?skip=2&limit=2", service.base()));
            let errors = read_by_delete(&service, &format!("{path}/errors")).await.ok();
            assert_eq!(text(&errors["errors"][0]["url"]), "http://no-such-name.invalid/");
        }
        // Not so in version 2, nor the other way round.
        assert_eq!(service.get(&format!("/v2/crawl/{id}")).await.status, 404);
        let crawl = service.post("/v1/crawl", &json!({ "url": site.url("/slow?ms=60000"), "limit": 1 })).await.id();
        assert_eq!(service.get(&format!("/v1/batch/scrape/{crawl}")).await.status, 404);
        assert_eq!(service.delete(&format!("/v1/batch/scrape/{crawl}")).await.status, 404);
        let slow = service.post("/v1/batch/scrape", &json!({ "urls": [site.url("/slow?ms=60000")] })).await.id();
        for id in [crawl, slow] {
            assert_eq!(service.delete(&format!("/v1/crawl/{id}")).await.ok()["status"], "cancelled");
        }

        let bad = json!({ "urls": [site.url("/small/1"), "ftp://files.example/"] });
        let refused = service.post("/v1/batch/scrape", &bad).await;
        assert_eq!((refused.status, refused.error()), (400, "URL uses unsupported protocol"), "{}", refused.text);
        let skipped = json!({ "urls": bad["urls"], "ignoreInvalidURLs": true });
        let skipped = service.post("/v1/batch/scrape", &skipped).await.ok();
        assert_eq!(skipped["invalidURLs"], json!(["ftp://files.example/"]));
        ended_at(service.caller(), &format!("/v1/batch/scrape/{}", text(&skipped["id"])), BOUND).await;
        site.end();
    }

    async fn both_kinds_of_jobs_are_watched_at_the_path_of_crawls(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(options(database)).await;
        let urls = site.urls("/slow?ms=300&n=", 4);
        let batch = service.post("/v1/batch/scrape", &json!({ "urls": urls, "maxConcurrency": 2 })).await.id();
        let body = json!({ "url": site.url("/crawl/5/5/"), "maxDepth": 1, "limit": 4, "ignoreSitemap": true });
        let crawl = service.post("/v1/crawl", &body).await.id();
        for path in [format!("/v1/crawl/{batch}"), format!("/v1/batch/scrape/{batch}"), format!("/v1/crawl/{crawl}")] {
            // As the JavaScript client does: the key is the subprotocol.
            let (stream, response) = by_subprotocol(&service, &path, service.key()).await.unwrap();
            assert_eq!(response.headers()["sec-websocket-protocol"], service.key());
            let (frames, code) = frames(stream).await;
            let caught_up = frames[0]["data"]["data"].as_array().unwrap().len();
            let rest = frames[1..].iter().filter(|frame| frame["type"] == "document").count();
            assert_eq!((code, caught_up + rest), (1000, 4), "{path}: {frames:?}");
            assert_eq!(frames[frames.len() - 1]["type"], "done");
        }
        let (stream, _) = by_subprotocol(&service, &format!("/v1/batch/scrape/{crawl}"), service.key()).await.unwrap();
        assert_eq!(frames(stream).await.1, 1008);
    }

    async fn links_of_a_map_are_texts(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(options(database)).await;
        for (path, older, newer) in [
            ("/", json!({ "sitemapOnly": true, "timeout": 30_000 }), json!({ "sitemap": "only" })),
            ("/crawl/4/", json!({ "ignoreSitemap": true, "useIndex": false }), json!({ "sitemap": "skip", "useIndex": false })),
        ] {
            let ask = |version: &str, mut body: Value| {
                body["url"] = json!(site.url(path));
                body["limit"] = json!(25);
                let (caller, path) = (service.caller().clone(), format!("/{version}/map"));
                async move { caller.post(&path, &body).await.ok() }
            };
            let (links, objects) = (ask("v1", older).await, ask("v2", newer).await);
            let links: BTreeSet<&str> = list(&links["links"]).iter().map(text).collect();
            let urls: BTreeSet<&str> = list(&objects["links"]).iter().map(|link| text(&link["url"])).collect();
            assert!(links.len() > 5, "{links:?}");
            assert_eq!(links, urls);
        }
        let lost = service.post("/v1/map", &json!({ "url": "http://no-such-name.invalid" })).await;
        assert_eq!((lost.status, lost.code()), (200, "SCRAPE_DNS_RESOLUTION_ERROR"), "{}", lost.text);
        let seen = activity(&service).await;
        assert_eq!(seen[0], ("map".to_owned(), "v1".to_owned()));
        assert_eq!(service.post("/v1/map", &json!({ "url": site.url("/"), "limit": 30_001 })).await.status, 400);
    }

    async fn hits_of_a_search_are_one_list(database) {
        let site = FixtureSite::start().await;
        let gone = "http://127.0.0.1:9/".to_owned();
        let backend = SearchStandIn::finding(vec![site.url("/article/1"), gone]).await;
        let service = TestService::start_with(options(database).env("WEIR_SEARCH_URL", &backend.url)).await;
        // What the JavaScript client sends by itself.
        let body = json!({ "query": "whales", "limit": 5, "lang": "en", "country": "us", "timeout": 60_000,
            "scrapeOptions": { "formats": [] } });
        let plain = service.post("/v1/search", &body).await.ok();
        assert_eq!(
            plain["data"][0],
            json!({ "url": site.url("/article/1"), "title": "Hit 0", "description": "What is found at 0." })
        );
        assert_eq!(backend.asked().remove(0).query["language"], "en-US");
        let body = json!({ "query": "whales", "limit": 2, "scrapeOptions": { "formats": ["markdown"], "timeout": 60_000 } });
        let full = service.post("/v1/search", &body).await.ok();
        let hits = list(&full["data"]);
        assert_eq!(site.truth("/article/1").await.fault_in(markdown_of(&hits[0])), None);
        assert_eq!((text(&hits[0]["title"]), text(&hits[0]["description"])), ("Hit 0", "What is found at 0."));
        assert!(hits[1]["metadata"]["error"].is_string() && hits[1]["markdown"].is_null(), "{}", hits[1]);
        let seen = activity(&service).await;
        assert_eq!(seen, vec![("search".to_owned(), "v1".to_owned()); 2]);
    }

    async fn what_a_team_has_left_is_told_in_snake_case(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(options(database).env("WEIR_CREDITS", "metered")).await;
        service.cli(&["credits", "grant", "--team", "tests", "100"]);
        service.post("/v1/scrape", &json!({ "url": site.url("/small/1") })).await.ok();
        let credits = service.get("/v1/team/credit-usage").await.ok();
        assert_eq!(
            credits,
            json!({ "success": true, "data": { "remaining_credits": 99, "plan_credits": 100,
                "billing_period_start": null, "billing_period_end": null } })
        );
        let tokens = service.get("/v1/team/token-usage").await.ok();
        assert_eq!((&tokens["data"]["remaining_tokens"], &tokens["data"]["plan_tokens"]), (&json!(99), &json!(100)));
        for path in ["team/credit-usage/historical", "team/token-usage/historical?byApiKey=true", "concurrency-check"] {
            let told = service.get(&format!("/v1/{path}")).await.ok();
            assert_eq!(told, service.get(&format!("/v2/{path}")).await.ok());
        }
        let history = service.get("/v1/team/credit-usage/historical").await.ok();
        assert_eq!(history["periods"][0]["creditsUsed"], 1);
        assert_eq!(service.get("/v1/team/queue-status").await.ok()["jobsInQueue"], 0);
        // A team that cannot pay is told so here as well.
        let urls = site.urls("/small/", 100);
        assert_eq!(service.post("/v1/batch/scrape", &json!({ "urls": urls })).await.status, 402);
    }
}
