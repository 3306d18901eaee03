//! `/v2/extract` (wire 22) with a scripted language model: pages read one by one and put together, addresses by globs and by
//! search, wrong answers, bills, and workers that are killed at each step.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use serde_json::{Value, json};
use weir_shared::fault::{ENVIRONMENT, FaultPoint};
use weir_tests::{
    Caller, Database, FixtureSite, ModelStandIn, OwnPages, Said, SearchStandIn, ServiceOptions, TestService,
    both_databases, wait_until, wait_until_within,
};

pub const BOUND: Duration = Duration::from_secs(60);

pub fn options(database: Database, model: &ModelStandIn) -> ServiceOptions {
    let options = ServiceOptions::new(database).env("WEIR_PAGE_BROWSERS", "0");
    options.env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m-1")
}

/// The state of a task once it has ended.
pub async fn ended(caller: &Caller, path: &str) -> Value {
    wait_until_within(BOUND, "the task ends", || async {
        let status = caller.get(path).await.ok();
        (status["status"] != "processing").then_some(status)
    })
    .await
}

async fn extract(service: &TestService, body: &Value) -> Value {
    let id = service.post("/v2/extract", body).await.id();
    ended(service.caller(), &format!("/v2/extract/{id}")).await
}

pub async fn used(service: &TestService) -> i64 {
    service.cli_json(&["credits", "show", "--team", "tests", "--json"])["used"].as_i64().unwrap()
}

/// What the model was shown last.
pub fn shown(asked: &Value) -> &str {
    asked["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap()
}

fn kettle() -> Value {
    json!({"type": "object", "required": ["name", "price"], "properties": {
        "name": {"type": "string"}, "price": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}}}})
}

/// Reads the test's pages as a good model would.
fn reads(name: &str, asked: &Value) -> Said {
    assert_eq!(name, "data", "{asked}");
    let page = shown(asked);
    Said::json(&match () {
        () if page.contains("Blue Kettle costs") => json!({"name": "Blue Kettle", "price": 39, "tags": ["steel"]}),
        () if page.contains("Its tags") => json!({"name": null, "price": null, "tags": ["steel", "blue"]}),
        () if page.contains("Elsewhere") => json!({"name": "blue kettle", "price": 41}),
        () => json!({}),
    })
}

fn write_pages(pages: &OwnPages) -> Vec<String> {
    vec![
        pages.put("/p/a", "<main><h1>Kettle</h1><p>The Blue Kettle costs 39 euros. See /p/b.</p></main>"),
        pages.put("/p/b", "<main><p>Its tags are steel and blue.</p></main>"),
        pages.put("/p/c", "<main><p>Elsewhere the kettle costs 41 euros.</p></main>"),
    ]
}

both_databases! {
    async fn pages_are_read_one_by_one_put_together_and_billed_once(database) {
        let model = ModelStandIn::answering(reads).await;
        let (pages, site) = (OwnPages::start().await, FixtureSite::start().await);
        let service = TestService::start_with(options(database, &model)).await;
        let urls = write_pages(&pages);
        let gone = pages.url("/gone");
        let hook = json!({ "url": site.webhook_url("extract"), "metadata": {"own": 1} });
        let all = [urls.clone(), vec![gone.clone(), "nope".to_owned()]].concat();
        let body = json!({ "urls": all, "schema": kettle(), "showSources": true, "webhook": hook, "scrapeOptions": {"maxAge": 0} });
        let started = service.post("/v2/extract", &body).await.ok();
        assert_eq!((&started["invalidURLs"], &started["urlTrace"]), (&json!(["nope"]), &json!([])), "{started}");
        let id = started["id"].as_str().unwrap();
        let path = format!("/v2/extract/{id}");
        let status = ended(service.caller(), &path).await;
        assert_eq!(status["data"], json!({"name": "Blue Kettle", "price": 39, "tags": ["steel", "blue"]}), "{status}");
        assert_eq!((&status["success"], &status["status"]), (&json!(true), &json!("completed")));
        let warning = status["warning"].as_str().unwrap();
        assert!(warning.contains("says 39") && warning.contains("says 41") && warning.contains("404"), "{warning}");
        assert_eq!(status["sources"]["tags"], json!([urls[0], urls[1]]), "{status}");
        // Four pages, of which three are read by the model.
        assert_eq!((&status["creditsUsed"], used(&service).await), (&json!(4 + 3 * 4), 16), "{status}");
        assert_eq!(model.asked().len(), 3);
        for (_, asked) in model.asked() {
            assert!(asked["messages"][0]["content"].as_str().unwrap().contains("never an instruction"));
        }
        let usage = service.get("/v2/team/token-usage/historical").await.ok();
        let period = &usage["periods"][0];
        let tokens = period["modelTokensSent"].as_i64().unwrap() + period["modelTokensReceived"].as_i64().unwrap();
        assert_eq!(status["tokensUsed"], tokens, "counted once: {usage}");

        let events = wait_until("the webhooks", || async {
            let events = site.events("extract").await;
            (events.len() == 2).then_some(events)
        }).await;
        assert_eq!((&events[0]["type"], &events[0]["data"]), (&json!("extract.started"), &json!([])));
        assert_eq!((&events[1]["type"], &events[1]["data"][0]["data"]), (&json!("extract.completed"), &status["data"]));
        assert_eq!((&events[1]["data"][0]["extractId"], &events[1]["metadata"]), (&json!(id), &json!({"own": 1})));

        let activity = service.get("/v2/team/activity?endpoint=extract").await.ok();
        assert_eq!((&activity["data"][0]["id"], &activity["data"][0]["target"]), (&json!(id), &json!(urls[0])));
        let other = service.new_team("others");
        let foreign = other.get(&path).await;
        assert_eq!((foreign.status, foreign.error()), (404, "Extract job not found"));
        // Version 1 reads the same, and is strict about addresses.
        assert_eq!(service.get(&format!("/v1/extract/{id}")).await.ok()["data"], status["data"]);
        assert_eq!(service.post("/v1/extract", &json!({ "urls": ["nope"], "prompt": "x" })).await.status, 400);
        let shown = service.cli_json(&["agent", "show", id, "--json"]);
        assert_eq!(shown["steps"].as_array().unwrap().len(), 4, "pages, and three that were read: {shown}");
    }

    async fn globs_and_searches_give_addresses(database) {
        let pages = OwnPages::start().await;
        let model = ModelStandIn::answering(|name, asked| match name {
            "queries" => Said::json(&json!({"queries": ["blue kettle"]})),
            _ => reads(name, asked),
        }).await;
        let urls = write_pages(&pages);
        pages.put("/p", &format!("<main><a href='{}'>a</a> <a href='{}'>b</a> <a href='/q/x'>x</a></main>", urls[0], urls[1]));
        pages.put("/q/x", "<p>Not below.</p>");
        let search = SearchStandIn::finding(vec![urls[0].clone(), urls[1].clone()]).await;
        let service = TestService::start_with(options(database, &model).env("WEIR_SEARCH_URL", &search.url)).await;
        let body = json!({ "urls": [pages.url("/p/*")], "schema": kettle(), "scrapeOptions": {"maxAge": 0} });
        let status = extract(&service, &body).await;
        assert_eq!(status["data"]["tags"], json!(["steel", "blue"]), "{status}");
        assert!(pages.heads("/q/x").is_empty() || !model.asked().iter().any(|(_, asked)| shown(asked).contains("Not below")));

        let status = extract(&service, &json!({ "prompt": "name and price of the blue kettle", "schema": kettle() })).await;
        assert_eq!((&status["data"]["name"], &status["data"]["price"]), (&json!("Blue Kettle"), &json!(39)), "{status}");
        assert!(search.asked().iter().all(|asked| asked.query["q"].contains("blue kettle")) && !search.asked().is_empty());
        // A question, a search, two pages that are read.
        assert_eq!(status["creditsUsed"], 1 + 2 + 2 * 5, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_answers_badly_is_repaired_or_told_of() {
    let text = |text: &str| Said::Text(text.to_owned());
    let right = || Said::json(&json!({"name": "Blue Kettle", "price": 39}));
    let foreign = json!({"name": "https://evil.example/steal", "price": 39});
    for (case, said, fails, questions) in [
        ("prose, then right", vec![text("It costs 39."), right()], false, 2),
        ("the wrong shape, then right", vec![Said::json(&json!({"name": [5]})), right()], false, 2),
        ("a number as a text", vec![Said::json(&json!({"name": "Blue Kettle", "price": "39"}))], false, 1),
        ("nothing, then right", vec![Said::Body(json!({"choices": []}).to_string()), right()], false, 2),
        ("a foreign address, then right", vec![Said::json(&foreign), right()], false, 2),
        ("busy for a while", vec![Said::Status(429), Said::Status(429), right()], false, 3),
        ("the wrong shape for good", vec![Said::json(&json!({"name": [5]}))], true, 3),
        ("the wrong key", vec![Said::Status(401)], true, 1),
    ] {
        let model = ModelStandIn::start(said).await;
        let pages = OwnPages::start().await;
        let service = TestService::start_with(options(Database::Sqlite, &model)).await;
        let url = write_pages(&pages).remove(0);
        let status = extract(&service, &json!({ "urls": [url], "schema": kettle() })).await;
        assert_eq!(model.asked().len(), questions, "{case}: {status}");
        if fails {
            assert_eq!((&status["success"], &status["status"]), (&json!(false), &json!("failed")), "{case}: {status}");
            let error = status["error"].as_str().unwrap();
            assert!(error.contains("language model") && !error.contains(&model.url), "{case}: {error}");
            assert_eq!(status["creditsUsed"], 1, "{case}: the page, and no reading of it");
        } else {
            assert_eq!(status["data"], json!({"name": "Blue Kettle", "price": 39}), "{case}: {status}");
            assert_eq!(status["creditsUsed"], 5, "{case}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_that_is_a_list_is_read_whether_or_not_it_stands_in_an_object() {
    let schema = json!({"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}});
    let list = json!([{"name": "Blue Kettle"}]);
    let pages = OwnPages::start().await;
    let url = write_pages(&pages).remove(0);
    for (case, said, questions) in [
        ("in an object", vec![json!({ "value": list })], 1),
        ("alone", vec![list.clone()], 1),
        ("under another name, then right", vec![json!({ "items": list }), json!({ "value": list })], 2),
    ] {
        let model = ModelStandIn::start(said.iter().map(Said::json).collect()).await;
        let service = TestService::start_with(options(Database::Sqlite, &model)).await;
        let status = extract(&service, &json!({ "urls": [url], "schema": schema })).await;
        assert_eq!((&status["data"], model.asked().len()), (&list, questions), "{case}: {status}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_pages_leave_out_is_settled_by_the_model_or_said() {
    // Each page has a part; together they lack the price.
    let model = ModelStandIn::answering(|name, asked| {
        Said::json(&match name {
            "settled" if shown(asked).contains("price") && shown(asked).contains("/p/c") => {
                json!({"value": {"name": "Blue Kettle", "price": 41}, "missing": []})
            }
            "settled" => json!({"value": null, "missing": ["price"]}),
            _ => json!({"name": "Blue Kettle"}),
        })
    })
    .await;
    let pages = OwnPages::start().await;
    let service = TestService::start_with(options(Database::Sqlite, &model)).await;
    let urls = write_pages(&pages);
    let status = extract(&service, &json!({ "urls": [urls[0], urls[2]], "schema": kettle() })).await;
    assert_eq!(status["data"], json!({"name": "Blue Kettle", "price": 41}), "{status}");
    let status = extract(&service, &json!({ "urls": [urls[0]], "schema": kettle() })).await;
    assert_eq!(status["status"], "failed", "{status}");
    assert!(status["error"].as_str().unwrap().contains("The pages do not say: price"), "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_model_or_a_search_it_is_refused_by_the_settings_name() {
    let none = ServiceOptions::new(Database::Sqlite).env("WEIR_PAGE_BROWSERS", "0");
    let service = TestService::start_with(none).await;
    for (path, body) in [
        ("/v2/extract", json!({ "urls": ["https://example.com"], "prompt": "x" })),
        ("/v1/extract", json!({ "urls": ["https://example.com"], "prompt": "x" })),
        ("/v2/agent", json!({ "prompt": "x" })),
    ] {
        let refused = service.post(path, &body).await;
        assert_eq!((refused.status, refused.code()), (400, "SCRAPE_MODEL_NOT_CONFIGURED"), "{path}: {}", refused.text);
        assert!(refused.error().contains("WEIR_LLM_URL"), "{}", refused.text);
    }
    drop(service);
    let model = ModelStandIn::answering(reads).await;
    let metered = options(Database::Sqlite, &model).env("WEIR_CREDITS", "metered");
    let service = TestService::start_with(metered).await;
    let refused = service.post("/v2/extract", &json!({ "prompt": "x" })).await;
    assert_eq!((refused.status, refused.code()), (503, "SEARCH_NOT_CONFIGURED"), "{}", refused.text);
    assert!(refused.error().contains("WEIR_SEARCH_URL"), "{}", refused.text);
    service.cli(&["credits", "grant", "--team", "tests", "19"]);
    for (path, body) in [
        ("/v2/extract", json!({ "urls": ["https://example.com"], "prompt": "x" })),
        ("/v2/agent", json!({ "prompt": "x" })),
    ] {
        let refused = service.post(path, &body).await;
        assert_eq!(refused.status, 402, "20 up front: {}", refused.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_timeout_ends_what_is_under_way() {
    let model = ModelStandIn::answering(|_, _| Said::Hang).await;
    let (pages, site) = (OwnPages::start().await, FixtureSite::start().await);
    let service = TestService::start_with(options(Database::Sqlite, &model)).await;
    let (page, slow) = (write_pages(&pages).remove(0), site.url("/hang"));
    // A page that does not come, a model that does not answer, and a site that cannot be mapped.
    for url in [slow.clone(), page, format!("{slow}/*")] {
        let body = json!({ "urls": [url], "schema": kettle(), "timeout": 2000, "scrapeOptions": {"maxAge": 0} });
        let id = service.post("/v2/extract", &body).await.id();
        let path = format!("/v2/extract/{id}");
        let status = wait_until_within(BOUND, "the timeout ends it", || async {
            let status = service.get(&path).await.ok();
            (status["status"] != "processing").then_some(status)
        })
        .await;
        let error = status["error"].as_str().unwrap_or_default();
        assert!(status["status"] == "failed" && error.contains("within its timeout"), "{url}: {status}");
    }
    site.end();
}

/// A worker is killed when it gets to `point` for the `arrival`-th time; the extraction is as if nothing had been.
async fn survive_a_kill(database: Database, point: FaultPoint, arrival: usize) {
    let model = ModelStandIn::answering(reads).await;
    let pages = OwnPages::start().await;
    let fault = format!("{}=kill@{arrival}", point.as_str());
    let mut service = TestService::start_with(options(database, &model).env(ENVIRONMENT, &fault)).await;
    service.remove_env(ENVIRONMENT);
    let urls = write_pages(&pages);
    let body = json!({ "urls": urls, "schema": kettle(), "scrapeOptions": {"maxAge": 0} });
    let id = service.post("/v2/extract", &body).await.id();
    let status = service.await_worker(0, BOUND);
    assert_eq!(status.signal(), Some(9), "the worker gets to {fault}: {status}");
    service.start_worker(0);
    let status = ended(service.caller(), &format!("/v2/extract/{id}")).await;
    assert_eq!(
        status["data"],
        json!({"name": "Blue Kettle", "price": 39, "tags": ["steel", "blue"]}),
        "{fault}: {status}"
    );
    assert_eq!((&status["creditsUsed"], used(&service).await), (&json!(15), 15), "{fault}: {status}");
    let mut asked: Vec<String> = model.asked().iter().map(|(_, asked)| asked["messages"].to_string()).collect();
    asked.iter_mut().for_each(|text| *text = without_fences(text));
    let count = asked.len();
    asked.sort();
    asked.dedup();
    // Those under way when the worker was killed are asked again: their answers were never heard.
    let repeated = count - asked.len();
    let most = if point == FaultPoint::StepStored { 3 } else { 2 };
    assert!(asked.len() == 3 && repeated <= most, "{fault}: {count} questions, {} different", asked.len());
    let steps = service.cli_json(&["agent", "show", &id, "--json"])["steps"].clone();
    for step in steps.as_array().unwrap() {
        assert_eq!(step["state"], "done", "{fault}: {step}");
    }
}

fn without_fences(text: &str) -> String {
    let mut parts = text.split("data ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(
            part.get(16..).filter(|_| part.as_bytes().iter().take(16).all(u8::is_ascii_hexdigit)).unwrap_or(part),
        );
    }
    out
}

both_databases! {
    async fn a_worker_killed_at_a_step_loses_and_doubles_nothing(database) {
        for (point, arrival) in [
            (FaultPoint::StepBegun, 1),
            (FaultPoint::StepStored, 1),
            (FaultPoint::StepBegun, 2),
            (FaultPoint::StepStored, 3),
            (FaultPoint::StepStored, 4),
        ] {
            survive_a_kill(database.clone(), point, arrival).await;
        }
    }
}
