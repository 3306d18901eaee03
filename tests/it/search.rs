//! `POST /v2/search` (wire 20) over backends without a web: what is found, scraped, billed and kept.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use weir_shared::clock;
use weir_tests::{
    Answered, Database, FixtureSite, SearchStandIn, ServiceOptions, TestService, both_databases, checkout, ended_at,
    found, installed, markdown_of, wait_until,
};

use crate::sdk::passes;

fn options(database: Database, backends: &[&SearchStandIn]) -> ServiceOptions {
    let urls: Vec<&str> = backends.iter().map(|backend| backend.url.as_str()).collect();
    let options = ServiceOptions::new(database).workers(1).env("WEIR_SEARCH_URL", urls.join(","));
    options.env("WEIR_PAGE_BROWSERS", "0")
}

async fn credits(service: &TestService) -> i64 {
    service.get("/v2/team/credit-usage/historical").await.ok()["periods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|period| period["creditsUsed"].as_i64().or(period["totalCredits"].as_i64()).unwrap())
        .sum()
}

both_databases! {
    async fn hits_come_by_source_are_scraped_and_billed_once(database) {
        let site = FixtureSite::start().await;
        let urls: Vec<String> = ["/article/1", "/article/2", "/status/404"].iter().map(|path| site.url(path)).collect();
        let gone = "http://127.0.0.1:9/".to_owned();
        let backend = SearchStandIn::finding([urls.clone(), vec![gone.clone()]].concat()).await;
        let service = TestService::start_with(options(database, &[&backend])).await;

        // As the MCP server asks by itself.
        let body = json!({"query": "whales", "sources": ["web", "alexandria"], "domainTools": true, "toolDetail": "compact"});
        let plain = service.post("/v2/search", &body).await.ok();
        let web = plain["data"]["web"].as_array().unwrap();
        assert_eq!((web.len(), plain["creditsUsed"].as_i64()), (4, Some(2)), "{plain}");
        assert_eq!(web[0], json!({"url": urls[0], "title": "Hit 0", "description": "What is found at 0.", "position": 1}));
        assert_eq!(plain["data"].as_object().unwrap().len(), 1, "no other group");

        let body = json!({"query": "whales", "limit": 4, "sources": [{"type": "web"}, "news", "images"], "highlights": false,
            "scrapeOptions": {"formats": ["markdown"], "maxAge": 0, "timeout": 60_000}});
        let full = service.post("/v2/search", &body).await.ok();
        let (web, news) = (full["data"]["web"].as_array().unwrap(), full["data"]["news"].as_array().unwrap());
        let image = &full["data"]["images"][0];
        assert_eq!((image["imageWidth"].as_i64(), image["imageHeight"].as_i64()), (Some(640), Some(480)), "{image}");
        assert!(image["metadata"].is_null(), "pictures are not scraped");
        for (hit, path) in web.iter().zip(["/article/1", "/article/2"]) {
            assert_eq!(site.truth(path).await.fault_in(markdown_of(hit)), None);
            assert_eq!((hit["metadata"]["sourceURL"].as_str(), hit["metadata"]["statusCode"].as_i64()), (hit["url"].as_str(), Some(200)));
        }
        assert_eq!((news[0]["snippet"].as_str(), news[0]["date"].as_str()), (Some("What is found at 0."), Some("2026-11-01T10:00:00")));
        assert_eq!(news[0]["markdown"], web[0]["markdown"], "scraped once for both");
        let lost = &web[3];
        assert_eq!((lost["url"].as_str(), lost["position"].as_i64(), lost["markdown"].is_null()), (Some(gone.as_str()), Some(4), true));
        assert!(lost["metadata"]["error"].is_string() && lost["metadata"]["statusCode"].as_i64() >= Some(400), "{lost}");
        assert!(lost.as_object().unwrap().values().all(|value| !value.is_null()));
        // Twelve hits, and three pages of four: the fourth has failed.
        assert_eq!(full["creditsUsed"].as_i64(), Some(4 + 3), "{full}");
        assert_eq!(credits(&service).await, 2 + 7);
        let scrape = service.get(&format!("/v2/scrape/{}", web[0]["metadata"]["scrapeId"].as_str().unwrap())).await;
        assert_eq!(scrape.ok()["data"]["markdown"], web[0]["markdown"]);
        let listed = service.get("/v2/team/activity?endpoint=search").await.ok();
        let entries = listed["data"].as_array().unwrap();
        assert_eq!((entries.len(), entries[0]["id"] == full["id"], entries[0]["target"].as_str()), (2, true, Some("whales")), "{listed}");
        // The job of a search cannot be cancelled as a batch.
        let id = full["id"].as_str().unwrap();
        assert_eq!(service.get(&format!("/v2/batch/scrape/{id}")).await.status, 404);
        assert_eq!(service.delete(&format!("/v2/batch/scrape/{id}")).await.status, 404);
    }

    async fn pages_that_take_too_long_stay_hits_and_are_paid_for_by_nobody(database) {
        let site = FixtureSite::start().await;
        let backend = SearchStandIn::finding(vec![site.url("/article/1"), site.url("/hang")]).await;
        let service = TestService::start_with(options(database, &[&backend])).await;
        let body = json!({"query": "x", "timeout": 6_000, "scrapeOptions": {"formats": [{"type": "markdown"}], "maxAge": 0}});
        let answer = service.post("/v2/search", &body).await.ok();
        let web = answer["data"]["web"].as_array().unwrap();
        assert!(web[0]["markdown"].is_string() && web[1]["markdown"].is_null(), "{answer}");
        assert_eq!(web[1]["metadata"]["statusCode"].as_i64(), Some(408), "{answer}");
        assert!(answer["warning"].as_str().unwrap().contains("1 of 2 pages"), "{answer}");
        assert_eq!(answer["creditsUsed"].as_i64(), Some(3));
        site.end();
    }

    async fn a_worker_that_is_killed_loses_no_hit_and_bills_none_twice(database) {
        let site = FixtureSite::start().await;
        let urls: Vec<String> = (0..5).map(|n| site.url(&format!("/slow?ms=1500&n={n}"))).collect();
        let backend = SearchStandIn::finding(urls).await;
        let mut service = TestService::start_with(options(database, &[&backend])).await;
        let caller = service.caller().clone();
        let body = json!({"query": "x", "scrapeOptions": {"formats": ["markdown"], "maxAge": 0}});
        let asked = tokio::spawn(async move { caller.post("/v2/search", &body).await });
        wait_until("the pages are in work", || async { (site.hit_count("/slow").await > 0).then_some(()) }).await;
        service.kill_worker(0);
        service.start_worker(0);
        let answer = asked.await.unwrap().ok();
        let web = answer["data"]["web"].as_array().unwrap();
        assert!(web.iter().all(|hit| hit["markdown"].is_string()), "{answer}");
        assert_eq!((answer["creditsUsed"].as_i64(), credits(&service).await), (Some(7), 7));
    }

    async fn searches_go_on_beside_pages_of_their_team(database) {
        let site = FixtureSite::start().await;
        let backend = SearchStandIn::finding(site.urls("/small/", 5)).await;
        let service = TestService::start_with(options(database, &[&backend])).await;
        let batch = json!({"urls": site.urls("/small/", 400), "maxAge": 0});
        let batch = service.post("/v2/batch/scrape", &batch).await.id();
        // Both add to what the team has used, each page and each search by itself.
        let search = async |_| {
            let body = json!({"query": "whales", "limit": 5, "scrapeOptions": {"formats": ["markdown"], "maxAge": 0}});
            for _ in 0..5 {
                let found = service.post("/v2/search", &body).await.ok();
                assert_eq!(found["creditsUsed"], 7, "{found}");
            }
        };
        join_all((0..8).map(search)).await;
        let ended = ended_at(service.caller(), &format!("/v2/batch/scrape/{batch}"), Duration::from_secs(60)).await;
        assert_eq!((&ended["status"], &ended["completed"]), (&json!("completed"), &json!(400)), "{ended}");
        assert_eq!(credits(&service).await, 400 + 40 * 7);
    }

    async fn nothing_is_kept_of_a_search_without_retention(database) {
        let site = FixtureSite::start().await;
        let backend = SearchStandIn::finding(vec![site.url("/article/1")]).await;
        let service = TestService::start_with(options(database, &[&backend])).await;
        let body = json!({"query": "zebra crossings", "enterprise": ["zdr"], "scrapeOptions": {"formats": ["markdown"]}});
        let stranger = service.new_team("stranger").post("/v2/search", &body).await;
        assert_eq!(stranger.status, 403, "the team does not have it: {}", stranger.text);
        service.cli(&["team", "set", "tests", "--zero-data-retention", "on"]);
        let answer = service.post("/v2/search", &body).await.ok();
        assert!(answer["data"]["web"][0]["markdown"].is_string(), "{answer}");
        assert_eq!(answer["creditsUsed"].as_i64(), Some(10 + 2));
        for text in ["zebra", "/article/1"] {
            let (tables, documents) = service.tables_with(text).await;
            assert!(tables.is_empty() && documents == 0, "{text}: {tables:?}, {documents} documents");
        }
    }
}

#[tokio::test]
async fn backends_are_asked_in_order_and_their_failures_are_told() {
    let limited = SearchStandIn::start(|_| Answered::Status(429, "retry-after: 30")).await;
    let people = SearchStandIn::start(|_| Answered::Html).await;
    let good = SearchStandIn::finding(vec!["https://a.example/".into()]).await;
    let service = TestService::start_with(options(Database::Sqlite, &[&limited, &people, &good])).await;
    for _ in 0..2 {
        let answer = service.post("/v2/search", &json!({"query": "x"})).await.ok();
        assert_eq!(answer["data"]["web"].as_array().unwrap().len(), 1);
    }
    assert_eq!((limited.asked().len(), people.asked().len()), (1, 1), "they rest");

    let alone = TestService::start_with(options(Database::Sqlite, &[&limited])).await;
    let refused = alone.post("/v2/search", &json!({"query": "x"})).await;
    assert_eq!(
        (refused.status, refused.body["code"].as_str()),
        (503, Some("SEARCH_BACKEND_FAILED")),
        "{}",
        refused.text
    );
    assert!(
        refused.body["retry_after_seconds"].as_u64().is_some_and(|seconds| (25..=30).contains(&seconds)),
        "{}",
        refused.text
    );
    assert_eq!(credits(&alone).await, 0);

    let none = TestService::start(Database::Sqlite).await;
    let refused = none.post("/v2/search", &json!({"query": "x"})).await;
    assert_eq!((refused.status, refused.body["code"].as_str()), (503, Some("SEARCH_NOT_CONFIGURED")));
    assert!(refused.error().contains("WEIR_SEARCH_URL"), "{}", refused.text);
}

#[tokio::test]
async fn what_is_an_order_to_the_backend_takes_nobodys_search_away() {
    let backend = SearchStandIn::start(|asked| match asked.query["q"].starts_with('!') {
        true => Answered::Status(302, "content-type: text/html\r\nlocation: https://elsewhere.example/"),
        false => Answered::Json(json!({"results": [{"url": "https://a.example/", "title": "A"}]})),
    })
    .await;
    let service = TestService::start_with(options(Database::Sqlite, &[&backend])).await;
    for query in ["!!g kettle", "!images kettle", "kettle"] {
        let found = service.post("/v2/search", &json!({ "query": query })).await.ok();
        assert_eq!(found["data"]["web"][0]["url"], "https://a.example/", "{query}: {found}");
    }
    let refused = service.post("/v2/search", &json!({"query": "!!"})).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(service.post("/v2/search", &json!({"query": "kettle"})).await.status == 200, "nobody rests for it");
}

/// As Brave's smallest plan: it says by `X-RateLimit-Reset` alone when it takes the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_of_one_request_a_second_serves_two_teams() {
    let taken = std::sync::Mutex::new(None::<tokio::time::Instant>);
    let backend = SearchStandIn::start(move |asked| {
        let mut taken = taken.lock().unwrap();
        if taken.is_some_and(|at| at.elapsed() < Duration::from_secs(1)) {
            return Answered::Status(429, "x-ratelimit-remaining: 0, 900\r\nx-ratelimit-reset: 1, 1419704");
        }
        *taken = Some(clock::instant());
        let hits = json!([{"url": format!("https://{}.example/", asked.query["q"]), "title": "A hit"}]);
        Answered::Json(json!({"web": {"results": hits.clone()}, "results": hits, "query": {}}))
    })
    .await;
    let options = options(Database::Sqlite, &[]).env("WEIR_SEARCH_URL", "brave").env("WEIR_SEARCH_KEY", "k");
    let service = TestService::start_with(options.env("WEIR_BRAVE_URL", &backend.url)).await;
    let other = service.new_team("other");
    let both = service.post("/v2/search", &json!({"query": "first", "sources": ["web", "news"]})).await.ok();
    for source in ["web", "news"] {
        assert_eq!(both["data"][source][0]["url"], "https://first.example/", "{both}");
    }
    let crowd = async |n: usize| {
        let found = service.post("/v2/search", &json!({"query": format!("crowd-{n}")})).await.ok();
        assert_eq!(found["data"]["web"][0]["url"], format!("https://crowd-{n}.example/"), "{found}");
    };
    let crowd = join_all((0..16).map(crowd));
    let alone = async {
        let begun = async || backend.asked().iter().any(|asked| asked.query["q"] != "first").then_some(());
        wait_until("the crowd has begun", begun).await;
        other.post("/v2/search", &json!({"query": "alone"})).await.ok()
    };
    let (_, found) = tokio::join!(crowd, alone);
    assert_eq!(found["data"]["web"][0]["url"], "https://alone.example/", "{found}");
    let order: Vec<String> = backend.asked().iter().map(|asked| asked.query["q"].clone()).collect();
    let at = order.iter().position(|words| words == "alone").unwrap();
    let after =
        order[at..].iter().filter(|words| words.starts_with("crowd")).collect::<std::collections::BTreeSet<_>>();
    assert!(after.len() >= 4, "a crowd of another team is served first: {order:?}");
}

#[tokio::test]
async fn a_slow_backend_an_empty_web_and_odd_results_are_told_apart() {
    let backend = SearchStandIn::start(|asked| match asked.query["q"].as_str() {
        "slow" => Answered::Hang,
        "late" => Answered::After(Duration::from_millis(300), found(&["https://late.example/".into()])),
        "nothing" => Answered::Json(json!({"results": []})),
        "odd" => Answered::Json(
            json!({"results": [7, {"url": 1}, {"url": "ftp://x/"}, {"url": "https://ok.example/", "title": []}]}),
        ),
        _ => Answered::Json(json!("text")),
    })
    .await;
    let service = TestService::start_with(options(Database::Sqlite, &[&backend])).await;
    let ask = |query: &'static str, timeout: u64| {
        let caller = service.caller().clone();
        async move { caller.post("/v2/search", &json!({"query": query, "timeout": timeout})).await }
    };
    let slow = ask("slow", 500).await;
    assert_eq!((slow.status, slow.error()), (408, "Request timed out"), "{}", slow.text);
    assert_eq!(ask("late", 60_000).await.ok()["data"]["web"][0]["url"], "https://late.example/");
    let nothing = ask("nothing", 60_000).await.ok();
    assert_eq!((nothing["data"].clone(), nothing["creditsUsed"].as_i64()), (json!({"web": []}), Some(0)));
    let odd = ask("odd", 60_000).await.ok();
    assert_eq!(
        odd["data"]["web"],
        json!([{"url": "https://ok.example/", "title": "", "description": "", "position": 1}])
    );
    assert_eq!(ask("garbage", 60_000).await.status, 503);
}

#[tokio::test]
async fn what_narrows_a_search_reaches_the_backend_and_is_held() {
    let backend = SearchStandIn::finding(vec![
        "https://github.com/a/b".into(),
        "https://other.example/x.pdf".into(),
        "https://elsewhere.example/".into(),
        "http://10.0.0.1/inner".into(),
    ])
    .await;
    let service = TestService::start_with(options(Database::Sqlite, &[&backend])).await;
    let urls = |body: &Value| -> Vec<String> {
        let web = body["data"]["web"].as_array().unwrap();
        web.iter().map(|hit| hit["url"].as_str().unwrap().to_owned()).collect()
    };
    let body = json!({"query": "x", "categories": ["github", {"type": "pdf"}], "tbs": "qdr:w", "country": "de", "lang": "de", "safe": true});
    let found = service.post("/v2/search", &body).await.ok();
    assert_eq!(urls(&found), ["https://github.com/a/b", "https://other.example/x.pdf"]);
    assert_eq!(found["data"]["web"][1]["category"], "pdf");
    let asked = backend.asked().remove(0).query;
    assert_eq!(asked["q"], "x (site:github.com OR filetype:pdf)");
    assert_eq!(
        (asked["time_range"].as_str(), asked["language"].as_str(), asked["safesearch"].as_str()),
        ("week", "de-DE", "2")
    );

    let found = service
        .post("/v2/search", &json!({"query": "x", "excludeDomains": ["example"], "ignoreInvalidURLs": true}))
        .await;
    assert_eq!(urls(&found.ok()), ["https://github.com/a/b"]);
    let found = service.post("/v2/search", &json!({"query": "x", "location": "Berlin", "filter": "0"})).await.ok();
    let warning = found["warning"].as_str().unwrap();
    assert!(warning.contains("location has no effect") && warning.contains("filter"), "{warning}");
    // A hit that may not be reached stays a hit, with the reason.
    let body = json!({"query": "x", "includeDomains": ["10.0.0.1"], "scrapeOptions": {"formats": ["markdown"]}});
    let found = service.post("/v2/search", &body).await.ok();
    assert_eq!(found["data"]["web"][0]["metadata"]["statusCode"], 403, "{found}");
    let foreign = service.post("/v2/search", &json!({"query": "x", "sources": ["alexandria"]})).await;
    assert_eq!((foreign.status, foreign.error()), (403, "Exchange is not enabled for this team."));
}

#[tokio::test]
async fn descriptions_become_passages_of_pages_that_are_at_hand() {
    let site = FixtureSite::start().await;
    let page = site.url("/article/3");
    let backend = SearchStandIn::finding(vec![page.clone(), "https://unknown.example/".into()]).await;
    let service = TestService::start_with(options(Database::Sqlite, &[&backend]).env("WEIR_CACHE_SIZE", "100MB")).await;
    let document = service.post("/v2/scrape", &json!({"url": page})).await.ok();
    let markdown = markdown_of(&document["data"]).to_owned();
    let marker = markdown.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| word.starts_with("MAIN")).unwrap();
    let found = service.post("/v2/search", &json!({"query": marker})).await.ok();
    let described = found["data"]["web"][0]["description"].as_str().unwrap();
    assert!(described.contains(marker) && markdown.contains(described.split("\n\n").next().unwrap()), "{described}");
    assert_eq!(found["data"]["web"][1]["description"], "What is found at 1.");
    let plain = service.post("/v2/search", &json!({"query": marker, "highlights": false})).await.ok();
    assert_eq!(plain["data"]["web"][0]["description"], "What is found at 0.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_sdks_search_over_brave() {
    let site = FixtureSite::start().await;
    let hits = ["/article/7", "/article/8", "/article/9"].map(|path| site.url(path));
    let backend = SearchStandIn::brave(hits.to_vec(), "brave-key").await;
    let options = options(Database::Sqlite, &[]).env("WEIR_SEARCH_URL", "brave").env("WEIR_SEARCH_KEY", "brave-key");
    let service = TestService::start_with(options.env("WEIR_BRAVE_URL", &backend.url)).await;
    for (name, mut command) in suites("brave") {
        passes(&name, &mut command, &service, &site).await;
    }
    let asked = backend.asked();
    assert!(asked.iter().all(|asked| asked.head.contains("x-subscription-token: brave-key")), "{asked:?}");
    for path in ["/web/search", "/news/search", "/images/search"] {
        assert!(asked.iter().any(|asked| asked.path == path), "{path}: {asked:?}");
    }
}

/// The suites of this name, of the SDKs that are installed.
fn suites(name: &str) -> Vec<(String, tokio::process::Command)> {
    let suite = |program: &std::path::Path, path: String| {
        let mut command = tokio::process::Command::new(program);
        command.arg(checkout().join("tests/sdk").join(path)).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let python = installed("venv/bin/python").map(|python| suite(&python, format!("python/{name}.py")));
    let javascript = installed("js/node_modules").map(|modules| {
        let mut command = suite(std::path::Path::new("node"), format!("js/{name}.cjs"));
        command.env("NODE_PATH", modules);
        command
    });
    let named = [("python", python), ("javascript", javascript)];
    named.into_iter().filter_map(|(sdk, command)| Some((format!("{sdk}-{name}"), command?))).collect()
}

/// Each way to fail that makes a backend rest has a service of its own, or the others would only see it resting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_sdks_and_mcp_server_meet_failing_backends() {
    let site = FixtureSite::start().await;
    let good = SearchStandIn::finding(["/article/7", "/article/8"].map(|path| site.url(path)).to_vec()).await;
    for is_brave in [false, true] {
        let failing = SearchStandIn::failing(is_brave).await;
        let start = async |then: &str| {
            let first = if is_brave { "brave" } else { &failing.url };
            let options = options(Database::Sqlite, &[]).env("WEIR_SEARCH_URL", format!("{first}{then}"));
            let options = options.env("WEIR_SEARCH_KEY", "k").env("WEIR_BRAVE_URL", &failing.url);
            TestService::start_with(options).await
        };
        let steady = start("").await;
        let mut resting = std::collections::BTreeMap::new();
        for way in ["too many", "a page for people", "no json"] {
            resting.insert(way, start("").await);
        }
        let followed = start(&format!(",{}", good.url)).await;
        let known = |service: &TestService| json!({"url": service.base(), "key": service.key()});
        let services: serde_json::Map<String, Value> =
            resting.iter().map(|(way, service)| ((*way).to_owned(), known(service))).collect();
        for (name, mut command) in suites("failing") {
            let name = format!("{name}-{}", if is_brave { "brave" } else { "searxng" });
            command
                .env("RESTING", Value::from(services.clone()).to_string())
                .env("FOLLOWED", known(&followed).to_string());
            passes(&name, &mut command, &steady, &site).await;
        }
        let asked = |words: &str| failing.asked().iter().filter(|asked| asked.query["q"] == words).count();
        for (way, service) in &resting {
            // Once by the service that has nobody else to ask, whoever calls it; `followed` is asked for one of them.
            assert_eq!(asked(way), if *way == "too many" { 2 } else { 1 }, "{way}: it rests");
            assert_eq!(credits(service).await, 0, "{way}: nothing is paid for");
        }
    }
}
