//! Monitors (wire 24): checks of pages, sites and searches that change, by a schedule and by hand, and what callers and
//! receivers of webhooks are told.

mod attacks;
mod changing;
mod edits;
mod large;
mod seldom;
mod week;

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use weir_shared::fault::{ENVIRONMENT, FaultPoint};
use weir_tests::{
    Answer, Answered, Caller, Database, FixtureSite, ModelStandIn, OwnPages, Said, SearchStandIn, ServiceOptions,
    TestService, both_databases, first_on, wait_until, wait_until_within,
};

const BOUND: Duration = Duration::from_secs(60);

fn options(database: Database) -> ServiceOptions {
    ServiceOptions::new(database).env("WEIR_PAGE_BROWSERS", "0")
}

async fn patch(caller: &Caller, path: &str, body: &Value) -> Answer {
    caller.send(caller.request(Method::PATCH, path).json(body)).await
}

/// A monitor that is never due by itself while the test runs.
async fn watch(caller: &Caller, targets: Value, more: Value) -> String {
    let mut body = json!({"name": "Watch", "schedule": {"cron": "0 0 1 1 *"}, "targets": targets});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    caller.post("/v2/monitor", &body).await.ok()["data"]["id"].as_str().unwrap().to_owned()
}

/// Waits until a check has ended; gives it with its pages.
async fn ended(caller: &Caller, monitor: &str, check: &str) -> Value {
    let path = format!("/v2/monitor/{monitor}/checks/{check}");
    wait_until_within(BOUND, "the check has ended", || async {
        let found = caller.get(&path).await.ok()["data"].clone();
        found["finishedAt"].is_string().then_some(found)
    })
    .await
}

/// Looks now, and waits for the end.
async fn check(caller: &Caller, monitor: &str) -> Value {
    let started = caller.post(&format!("/v2/monitor/{monitor}/run"), &json!({"origin": "python-sdk@4"})).await.ok();
    assert_eq!((&started["id"], &started["data"]["status"]), (&started["data"]["id"], &json!("queued")));
    ended(caller, monitor, started["id"].as_str().unwrap()).await
}

/// The status of each page by the end of its address.
fn pages(check: &Value) -> Vec<(String, String)> {
    let page = |page: &Value| {
        let name = page["url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        (name, page["status"].as_str().unwrap().to_owned())
    };
    let mut pages: Vec<_> = check["pages"].as_array().unwrap().iter().map(page).collect();
    pages.sort();
    pages
}

fn are(check: &Value, expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(name, status)| ((*name).to_owned(), (*status).to_owned())).collect();
    assert_eq!(pages(check), expected, "{check}");
}

first_on! {
    sqlite:

    async fn pages_that_change_are_told_check_by_check(database) {
        let site = FixtureSite::start().await;
        let (service, own) = (TestService::start_with(options(database)).await, OwnPages::start().await);
        let caller = service.caller();
        let tea = own.put("/tea", "<main><h1>Prices</h1><p>Tea costs four euros.</p></main>");
        let cake = own.put("/cake", "<main><p>Cake is out.</p></main>");
        let webhook = json!({"url": site.webhook_url("watch"), "metadata": {"shop": "1"}, "headers": {"x-mine": "hush"},
            "events": ["monitor.page", "monitor.check.completed"]});
        let id = watch(caller, json!([{"type": "scrape", "urls": [tea, cake]}]), json!({"webhook": webhook})).await;
        let first = check(caller, &id).await;
        are(&first, &[("cake", "new"), ("tea", "new")]);
        assert_eq!((&first["status"], &first["trigger"], &first["actualCredits"]), (&json!("completed"), &json!("manual"), &json!(2)));
        assert_eq!(first["summary"], json!({"totalPages": 2, "same": 0, "changed": 0, "new": 2, "removed": 0, "error": 0}));
        assert!(first["targetResults"][0]["expectedJobs"][0].is_string() && first["billingStatus"] == "confirmed", "{first}");
        are(&check(caller, &id).await, &[("cake", "same"), ("tea", "same")]);

        own.put("/tea", "<main><h1>Prices</h1><p>Tea costs five euros.</p></main>");
        own.put_with("/cake", 404, "<p>Gone.</p>");
        let changed = check(caller, &id).await;
        are(&changed, &[("cake", "removed"), ("tea", "changed")]);
        let page = changed["pages"].as_array().unwrap().iter().find(|page| page["status"] == "changed").unwrap();
        let text = page["diff"]["text"].as_str().unwrap();
        assert!(text.contains("-Tea costs four euros.\n+Tea costs five euros.\n"), "{text}");
        assert!(page["diff"]["json"]["files"][0]["chunks"].is_array() && page.get("snapshot").is_none(), "{page}");
        assert_eq!((&page["statusCode"], page["metadata"]["title"].as_str()), (&json!(200), Some("A page")));
        let before = first["pages"].as_array().unwrap().iter().find(|page| page["url"] == tea.as_str()).unwrap();
        assert!(page["currentScrapeId"].is_string() && page["previousScrapeId"].is_string());
        assert_ne!(page["previousScrapeId"], before["currentScrapeId"], "that of the check between");
        // What is gone is told once; what cannot be reached makes the check partial and forgets nothing.
        let nobody = format!("http://127.0.0.1:{}/x", weir_tests::free_port());
        patch(caller, &format!("/v2/monitor/{id}"), &json!({"targets": [{"type": "scrape", "id": "b", "urls": [nobody, tea]}]})).await.ok();
        let partial = check(caller, &id).await;
        are(&partial, &[("tea", "new"), ("x", "error")]);
        assert_eq!(partial["status"], "partial");
        assert!(partial["pages"].as_array().unwrap().iter().any(|page| page["error"].is_string()), "{partial}");

        let events = wait_until("four checks are told of", || async {
            let events = site.events("watch").await;
            (events.iter().filter(|event| event["type"] == "monitor.check.completed").count() == 4).then_some(events)
        })
        .await;
        let of_changed: Vec<&Value> = events.iter().filter(|event| event["id"] == changed["id"]).collect();
        let kinds: Vec<&str> = of_changed.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["monitor.page", "monitor.page", "monitor.check.completed"]);
        assert!(of_changed.iter().all(|event| event["metadata"] == json!({"shop": "1"})), "{of_changed:?}");
        let told = of_changed.iter().map(|event| &event["data"][0]).find(|told| told["status"] == "changed").unwrap();
        assert_eq!((&told["monitorId"], &told["checkId"], &told["diff"]["text"]), (&json!(id), &changed["id"], &json!(text)));
        let end = &of_changed[2]["data"][0];
        assert_eq!((&end["summary"], &end["status"]), (&changed["summary"], &json!("completed")));
        let of_partial = events.iter().find(|event| event["id"] == partial["id"] && event["type"] == "monitor.check.completed");
        assert_eq!(of_partial.unwrap()["success"], false);
        for delivery in site.deliveries("watch").await {
            let headers = delivery["headers"].to_string().to_lowercase();
            assert!(headers.contains("x-firecrawl-signature") && headers.contains("hush"), "{headers}");
        }

        // Paging follows the answer's own address, filters choose.
        let path = format!("/v2/monitor/{id}/checks/{}", changed["id"].as_str().unwrap());
        let page = caller.get(&format!("{path}?limit=1")).await.ok();
        let next = page["next"].as_str().unwrap();
        assert_eq!((page["data"]["pages"].as_array().unwrap().len(), &page["data"]["next"]), (1, &page["next"]));
        let last = caller.get(next.strip_prefix(service.base()).unwrap()).await.ok();
        assert_eq!((last["data"]["pages"].as_array().unwrap().len(), &last["next"]), (1, &Value::Null));
        let removed = caller.get(&format!("{path}?status=removed")).await.ok();
        assert_eq!(pages(&removed["data"]), [("cake".to_owned(), "removed".to_owned())]);
        let checks = caller.get(&format!("/v2/monitor/{id}/checks?limit=2&status=completed")).await.ok();
        assert_eq!((checks["data"].as_array().unwrap().len(), &checks["data"][0]["id"]), (2, &changed["id"]));
        let monitor = caller.get(&format!("/v2/monitor/{id}")).await.ok()["data"].clone();
        assert_eq!((&monitor["lastCheckSummary"], &monitor["currentCheckId"]), (&partial["summary"], &Value::Null));
        assert!(!monitor.to_string().contains("hush"), "{monitor}");
    }
}

both_databases! {
    async fn a_crawl_tells_which_pages_came_and_went(database) {
        let (service, own) = (TestService::start_with(options(database)).await, OwnPages::start().await);
        let caller = service.caller();
        let links = |names: &[&str]| names.iter().map(|name| format!("<p><a href='/{name}'>{name} of the site</a></p>")).collect::<String>();
        let start = own.put("/index", &links(&["a", "b"]));
        own.put("/a", "<main><p>The first page of it.</p></main>");
        own.put("/b", "<main><p>The second page of it.</p></main>");
        let crawl = json!({"type": "crawl", "url": start, "crawlOptions": {"limit": 20, "maxDepth": 3, "sitemap": "skip",
            "crawlEntireDomain": true}});
        let id = watch(caller, json!([crawl]), json!({})).await;
        are(&check(caller, &id).await, &[("a", "new"), ("b", "new"), ("index", "new")]);
        own.put("/index", &links(&["a", "c"]));
        own.put("/c", "<main><p>The third page of it.</p></main>");
        let later = check(caller, &id).await;
        are(&later, &[("a", "same"), ("b", "removed"), ("c", "new"), ("index", "changed")]);
        assert!(later["targetResults"][0]["crawlId"].is_string() && later["actualCredits"] == 3, "{later}");
        are(&check(caller, &id).await, &[("a", "same"), ("c", "same"), ("index", "same")]);
        // One that is back is new again.
        own.put("/index", &links(&["a", "b", "c"]));
        are(&check(caller, &id).await, &[("a", "same"), ("b", "new"), ("c", "same"), ("index", "changed")]);
    }
}

first_on! {
    sqlite:

    async fn a_site_that_answers_with_failures_is_an_error_and_no_change(database) {
        let (service, own) = (TestService::start_with(options(database)).await, OwnPages::start().await);
        let caller = service.caller();
        let (text, links) = ("<main><p>Tea costs four euros.</p></main>", "<p><a href='/tea'>The tea of the site</a></p>");
        let (tea, start) = (own.put("/tea", text), own.put("/index", links));
        let page = watch(caller, json!([{"type": "scrape", "urls": [tea]}]), json!({})).await;
        let crawl = json!({"type": "crawl", "url": start, "crawlOptions": {"limit": 20, "sitemap": "skip",
            "crawlEntireDomain": true}});
        let site = watch(caller, json!([crawl]), json!({})).await;
        are(&check(caller, &page).await, &[("tea", "new")]);
        are(&check(caller, &site).await, &[("index", "new"), ("tea", "new")]);
        for status in [500, 403, 500] {
            own.put_with("/tea", status, "<p>Something broke.</p>");
            own.put_with("/index", status, "<p>Something broke.</p>");
            let broken = check(caller, &page).await;
            are(&broken, &[("tea", "error")]);
            let found = &broken["pages"][0];
            assert_eq!((&broken["status"], &found["statusCode"]), (&json!("failed"), &json!(status)), "{broken}");
            assert!(found["error"].as_str().is_some_and(|text| !text.is_empty()) && found.get("diff").is_none(), "{broken}");
            // The page that led to the others was not read: nobody knows whether they are there.
            are(&check(caller, &site).await, &[("index", "error")]);
        }
        own.put("/tea", text);
        own.put("/index", links);
        are(&check(caller, &page).await, &[("tea", "same")]);
        are(&check(caller, &site).await, &[("index", "same"), ("tea", "same")]);
    }
}

first_on! {
    postgres:

    async fn what_does_not_count_is_the_same(database) {
        let (service, own) = (TestService::start_with(options(database)).await, OwnPages::start().await);
        let caller = service.caller();
        let page = |minutes: i64, price: f64, stock: &str, first: &str, second: &str| {
            own.put("/shop", &format!(
                "<main><p>Updated {minutes} minutes ago</p><p>Price {price} euros</p><p>{stock}</p><ul><li>{first}</li>\
                 <li>{second}</li></ul><p class=ad>Offer {minutes}</p></main>"
            ))
        };
        let url = page(1, 10.0, "Sold out", "tea", "cake");
        let target = |ignore: Value, only: Value| json!([{"type": "scrape", "urls": [url], "ignore": ignore, "onlyIf": only}]);
        let rules = json!({"selectors": [".ad"], "lines": ["^Updated \\d+"], "order": true, "numbersBelow": 2});
        let quiet = watch(caller, target(rules, json!({})), json!({})).await;
        let stock = watch(caller, target(json!({}), json!({"appears": "in stock"})), json!({})).await;
        for id in [&quiet, &stock] {
            are(&check(caller, id).await, &[("shop", "new")]);
        }
        page(2, 11.0, "Sold out", "cake", "tea");
        are(&check(caller, &quiet).await, &[("shop", "same")]);
        are(&check(caller, &stock).await, &[("shop", "same")]);
        // Small steps add up, because what is the same is compared with what was told last.
        page(3, 12.0, "In stock", "cake", "tea");
        let told = check(caller, &quiet).await;
        are(&told, &[("shop", "changed")]);
        let text = told["pages"][0]["diff"]["text"].as_str().unwrap();
        assert!(text.contains("-Price 10 euros") && text.contains("+Price 12 euros"), "{text}");
        assert!(!text.contains("Updated") && !text.contains("Offer"), "{text}");
        are(&check(caller, &stock).await, &[("shop", "changed")]);
        page(4, 90.0, "In stock", "cake", "tea");
        are(&check(caller, &stock).await, &[("shop", "same")]);
    }
}

both_databases! {
    async fn a_due_monitor_is_looked_at_by_itself_though_its_worker_is_killed(database) {
        let site = FixtureSite::start().await;
        let mut service = TestService::start_with(options(database).workers(1)).await;
        let caller = service.caller().clone();
        let urls = [site.url("/slow?ms=1500&n=1"), site.url("/small/1"), site.url("/small/2")];
        let hook = json!({"url": site.webhook_url("due")});
        let id = watch(&caller, json!([{"type": "scrape", "urls": urls}]), json!({"webhook": hook})).await;
        // It was due a while ago: one check is made up, whoever looks.
        service.execute(&format!("UPDATE monitor SET next_due_at = 1600000000000 WHERE id = '{id}'")).await;
        let started = wait_until("the check runs", || async {
            let checks = caller.get(&format!("/v2/monitor/{id}/checks")).await.ok();
            checks["data"].as_array().unwrap().first().filter(|check| check["status"] == "running").cloned()
        })
        .await;
        service.kill_worker(0);
        service.start_worker(0);
        let check = ended(&caller, &id, started["id"].as_str().unwrap()).await;
        assert_eq!((&check["status"], &check["trigger"]), (&json!("completed"), &json!("scheduled")));
        assert_eq!(check["scheduledFor"], "2020-09-13T12:26:40.000Z");
        assert_eq!(check["summary"]["new"], 3, "{check}");
        assert_eq!(check["actualCredits"], 3, "each page is billed once");
        let checks = caller.get(&format!("/v2/monitor/{id}/checks")).await.ok();
        assert_eq!(checks["data"].as_array().unwrap().len(), 1, "{checks}");
        let monitor = caller.get(&format!("/v2/monitor/{id}")).await.ok()["data"].clone();
        assert!(monitor["nextRunAt"].as_str().unwrap().ends_with("-01-01T00:00:00.000Z"), "{monitor}");
        let events = wait_until("the end is told of", || async {
            let events = site.events("due").await;
            events.iter().any(|event| event["type"] == "monitor.check.completed").then_some(events)
        })
        .await;
        let of_pages = events.iter().filter(|event| event["type"] == "monitor.page").map(|event| event["webhookId"].to_string());
        assert_eq!(of_pages.collect::<std::collections::BTreeSet<_>>().len(), 3);
    }

    async fn a_worker_that_is_killed_around_the_claim_of_a_due_monitor_neither_misses_nor_doubles_it(database) {
        let site = FixtureSite::start().await;
        for point in [FaultPoint::BeforeCommit, FaultPoint::AfterCommit] {
            let options = options(database.clone()).workers(1).env(ENVIRONMENT, format!("{}=kill", point.as_str()));
            let mut service = TestService::start_with(options).await;
            service.remove_env(ENVIRONMENT);
            let caller = service.caller().clone();
            let id = watch(&caller, json!([{"type": "scrape", "urls": [site.url("/small/1")]}]), json!({})).await;
            service.execute(&format!("UPDATE monitor SET next_due_at = 1600000000000 WHERE id = '{id}'")).await;
            let status = service.await_worker(0, BOUND);
            assert_eq!(status.signal(), Some(9), "the worker gets to {}: {status}", point.as_str());
            service.start_worker(0);
            let path = format!("/v2/monitor/{id}/checks");
            let checks = wait_until_within(BOUND, "the check is completed", || async {
                let checks = caller.get(&path).await.ok()["data"].clone();
                (checks[0]["status"] == "completed").then_some(checks)
            })
            .await;
            assert_eq!(checks.as_array().unwrap().len(), 1, "{checks}");
            assert_eq!((&checks[0]["summary"]["new"], &checks[0]["actualCredits"]), (&json!(1), &json!(1)));
        }
    }

    async fn a_monitor_is_paused_changed_and_deleted_and_runs_one_check_at_a_time(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(options(database)).await;
        let caller = service.caller();
        let slow = site.url("/slow?ms=60000&watch");
        let id = watch(caller, json!([{"type": "scrape", "id": "mine", "urls": [slow]}]), json!({"goal": "x"})).await;
        let path = format!("/v2/monitor/{id}");
        // No body and no content type, as the command line sends it.
        let run = caller.send(caller.request(Method::POST, &format!("{path}/run"))).await.ok();
        let again = caller.post(&format!("{path}/run"), &json!({})).await;
        assert_eq!(again.status, 409, "{}", again.text);
        service.execute(&format!("UPDATE monitor SET next_due_at = 1600000000000 WHERE id = '{id}'")).await;
        let skipped = wait_until("the due check is skipped", || async {
            let checks = caller.get(&format!("{path}/checks?status=skipped_overlap")).await.ok();
            checks["data"].as_array().unwrap().first().cloned()
        })
        .await;
        assert_eq!((&skipped["actualCredits"], &skipped["billingStatus"]), (&json!(0), &json!("not_applicable")));

        let paused = patch(caller, &path, &json!({"status": "paused", "name": "Other", "goal": null})).await.ok()["data"].clone();
        assert_eq!((&paused["status"], &paused["nextRunAt"], &paused["name"]), (&json!("paused"), &Value::Null, &json!("Other")));
        assert_eq!((&paused["goal"], &paused["judgeEnabled"], &paused["targets"][0]["id"]), (&Value::Null, &json!(false), &json!("mine")));
        let active = patch(caller, &path, &json!({"status": "active", "schedule": {"text": "every 30 minutes"}})).await.ok()["data"].clone();
        assert!(active["nextRunAt"].is_string() && active["schedule"]["cron"].as_str().unwrap().ends_with("/30 * * * *"), "{active}");
        let (listed, other) = (caller.get("/v2/monitor").await.ok(), service.new_team("others"));
        assert_eq!(listed["data"].as_array().unwrap().len(), 1);
        assert_eq!(other.get("/v2/monitor").await.ok()["data"], json!([]));
        assert_eq!(other.delete(&path).await.status, 404);

        // The operator's commands.
        let list = service.cli_json(&["monitor", "list", "--json"]);
        assert_eq!((&list[0]["id"], &list[0]["status"]), (&json!(id), &json!("active")));
        service.cli(&["monitor", "pause", &id]);
        assert_eq!(caller.get(&path).await.ok()["data"]["status"], "paused");
        service.cli(&["monitor", "pause", &id, "--resume"]);
        assert!(!service.try_cli(&["monitor", "run", &id]).status.success(), "one runs");
        let history = service.cli_json(&["monitor", "history", &id, "--json"]);
        assert_eq!(history.as_array().unwrap().len(), 2, "{history}");

        // Its end ends the check that runs, with its job.
        let check = caller.get(&format!("{path}/checks/{}", run["id"].as_str().unwrap())).await.ok();
        let job = wait_until("the check has its job", || async {
            let check = caller.get(&format!("{path}/checks/{}", run["id"].as_str().unwrap())).await.ok();
            check["data"]["targetResults"][0]["expectedJobs"][0].as_str().map(str::to_owned)
        })
        .await;
        assert_eq!(check["data"]["summary"]["totalPages"], 0);
        assert_eq!(caller.delete(&path).await.ok(), json!({"success": true}));
        assert_eq!((caller.get(&path).await.status, caller.delete(&path).await.status), (404, 404));
        assert_eq!(caller.get(&path).await.error(), "Monitor not found");
        assert_eq!(caller.get(&format!("/v2/batch/scrape/{job}")).await.ok()["status"], "cancelled");
        assert_eq!(service.cli_json(&["monitor", "list", "--json"]), json!([]));
        site.end();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_are_compared_by_path_and_changes_are_judged() {
    let model = ModelStandIn::answering(|name, asked| {
        let user = asked["messages"][1]["content"].as_str().unwrap();
        match name {
            "judgement" => Said::json(
                &json!({"meaningful": user.contains("prices"), "confidence": "high", "reason": "It is dearer.",
                "meaningfulChanges": [{"type": "changed", "before": "4", "after": "5", "reason": "price"}]}),
            ),
            _ => {
                let price = if user.contains("four euros") { 4 } else { 5 };
                Said::json(&json!({"plans": [{"price": price, "name": "tea"}]}))
            }
        }
    })
    .await;
    let options = options(Database::Sqlite).env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m");
    let (service, own) = (TestService::start_with(options).await, OwnPages::start().await);
    let caller = service.caller();
    let url = own.put("/tea", "<main><p>Tea costs four euros.</p></main>");
    let tracking = |modes: Value| {
        json!([{"type": "scrape", "urls": [url], "scrapeOptions": {"formats": ["markdown",
        {"type": "changeTracking", "modes": modes, "schema": {"type": "object"}}]}}])
    };
    let fields = watch(caller, tracking(json!(["json"])), json!({"goal": "prices of drinks"})).await;
    let both = watch(caller, tracking(json!(["json", "git-diff"])), json!({})).await;
    for id in [&fields, &both] {
        are(&check(caller, id).await, &[("tea", "new")]);
    }
    // The text differs and the fields do not.
    own.put("/tea", "<main><p>Tea costs four euros today.</p></main>");
    are(&check(caller, &fields).await, &[("tea", "same")]);
    are(&check(caller, &both).await, &[("tea", "changed")]);
    own.put("/tea", "<main><p>Tea costs five euros.</p></main>");
    let changed = check(caller, &fields).await;
    let page = &changed["pages"][0];
    assert_eq!(page["diff"], json!({"json": {"plans[0].price": {"previous": 4, "current": 5}}}), "{changed}");
    assert_eq!(page["snapshot"]["json"]["plans"][0]["price"], 5);
    assert_eq!(
        (&page["judgment"]["meaningful"], &page["judgment"]["meaningfulChanges"][0]["after"]),
        (&json!(true), &json!("5"))
    );
    assert_eq!(page["judgment"]["fields"], json!(["plans[0].price"]), "{changed}");
    assert_eq!(changed["actualCredits"], 6, "page, data, judgement");
    let mixed = check(caller, &both).await;
    let diff = &mixed["pages"][0]["diff"];
    assert!(
        diff["text"].as_str().unwrap().contains("+Tea costs five") && diff["json"]["plans[0].price"]["current"] == 5,
        "{diff}"
    );
    assert!(mixed["pages"][0].get("judgment").is_none(), "nobody was asked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hits_of_a_search_are_new_once_and_judged() {
    let site = FixtureSite::start().await;
    let backend = SearchStandIn::finding(vec![site.url("/article/1"), site.url("/article/2")]).await;
    let model = ModelStandIn::answering(|_, _| {
        let verdict =
            |number: i64| json!({"number": number, "meaningful": number == 1, "confidence": "low", "reason": "r"});
        Said::json(&json!({"hits": [verdict(1), verdict(2)]}))
    })
    .await;
    let options = options(Database::Sqlite).env("WEIR_SEARCH_URL", &backend.url);
    let service = TestService::start_with(options.env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m")).await;
    let caller = service.caller();
    let target = json!([{"type": "search", "queries": ["whales", "dolphins"], "searchWindow": "7d", "maxResults": 10}]);
    let id = watch(caller, target, json!({"goal": "whales"})).await;
    let first = check(caller, &id).await;
    are(&first, &[("1", "new"), ("2", "new")]);
    let result = &first["targetResults"][0];
    assert_eq!(
        (&result["searchCompleted"], &result["resultCount"], &result["matches"]),
        (&json!(true), &json!(2), &json!(1))
    );
    assert_eq!(
        (&result["searchCredits"], &result["judgeCredits"], &first["actualCredits"]),
        (&json!(2), &json!(2), &json!(4))
    );
    assert_eq!(first["pages"][0]["judgment"]["meaningful"], true);
    let second = check(caller, &id).await;
    are(&second, &[("1", "same"), ("2", "same")]);
    assert_eq!((model.asked().len(), &second["actualCredits"]), (1, &json!(2)), "what is known is not judged again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_whose_engines_are_silent_is_told_of() {
    let backend =
        SearchStandIn::start(|_| Answered::Json(json!({"results": [], "unresponsive_engines": [["bing", "CAPTCHA"]]})))
            .await;
    let service = TestService::start_with(options(Database::Sqlite).env("WEIR_SEARCH_URL", &backend.url)).await;
    let caller = service.caller();
    let target = json!([{"type": "search", "queries": ["whales", "dolphins"]}]);
    let id = watch(caller, target, json!({"judgeEnabled": false})).await;
    let silent = check(caller, &id).await;
    assert_eq!((&silent["status"], &silent["actualCredits"]), (&json!("completed"), &json!(0)), "{silent}");
    assert_eq!(silent["warning"], "The search backend's engines did not answer: bing.", "{silent}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_honoured_is_refused_or_said() {
    let service = TestService::start_with(options(Database::Sqlite)).await;
    let caller = service.caller();
    let page = json!({"type": "scrape", "urls": ["https://example.com"]});
    let body = |targets: Value, more: Value| {
        let mut body = json!({"name": "n", "schedule": {"text": "daily"}, "targets": targets});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for (body, status, words) in [
        (json!({}), 400, "Required"),
        (body(json!([]), json!({})), 400, "at least 1"),
        (body(json!([page]), json!({"name": ""})), 400, "at least 1"),
        (body(json!([page]), json!({"schedule": {"text": "every 2 minutes"}})), 400, "5 minutes"),
        (body(json!([page]), json!({"retentionDays": 366})), 400, "at most 365"),
        (body(json!([page]), json!({"status": "paused"})), 400, "Unrecognized"),
        (
            body(json!([page]), json!({"webhook": {"url": "https://x.test", "events": ["page"]}})),
            400,
            "expected one of",
        ),
        (
            body(json!([{"type": "scrape", "urls": ["https://example.com"], "ignore": {"lines": ["("]}}]), json!({})),
            400,
            "patterns",
        ),
        (
            body(
                json!([{"type": "scrape", "urls": ["https://example.com"], "ignore": {"lines": ["(?=x)"]}}]),
                json!({}),
            ),
            400,
            "look-around",
        ),
        (body(json!([{"type": "scrape", "urls": []}]), json!({})), 400, "at least 1"),
        (body(json!([{"type": "tweet"}]), json!({})), 400, "expected one of"),
        (
            body(
                json!([{"id": "a", "type": "scrape", "urls": ["https://a.test"]}, {"id": "a", "type": "scrape", "urls": ["https://b.test"]}]),
                json!({}),
            ),
            400,
            "different ids",
        ),
        (
            body(
                json!([{"type": "scrape", "urls": ["https://a.test"], "scrapeOptions": {"lockdown": true}}]),
                json!({}),
            ),
            400,
            "lockdown is not possible",
        ),
        (body(json!([{"type": "scrape", "urls": ["http://10.0.0.1/"]}]), json!({})), 403, "10.0.0.1"),
        (body(json!([{"type": "search", "queries": ["x"]}]), json!({})), 400, "goal is required"),
        (body(json!([{"type": "search", "queries": ["x"]}]), json!({"judgeEnabled": false})), 503, "WEIR_SEARCH_URL"),
        (
            body(
                json!([{"type": "scrape", "urls": ["https://a.test"], "scrapeOptions": {"formats": ["markdown",
            {"type": "changeTracking", "modes": ["json"], "prompt": "x"}]}}]),
                json!({}),
            ),
            400,
            "WEIR_LLM_URL",
        ),
    ] {
        let refused = caller.post("/v2/monitor", &body).await;
        assert!(
            refused.status == status && refused.text.contains(words),
            "{body}: {} {}",
            refused.status,
            refused.text
        );
    }
    let more = json!({"goal": "prices", "notification": {"email": {"enabled": true, "recipients": ["a@example.com"]}}});
    let made = caller.post("/v2/monitor", &body(json!([page]), more)).await.ok();
    let warning = made["warning"].as_str().unwrap();
    assert!(warning.contains("No mail is sent") && warning.contains("not judged"), "{warning}");
    assert_eq!((&made["data"]["judgeEnabled"], &made["data"]["retentionDays"]), (&json!(true), &json!(30)));
    assert_eq!(made["data"]["estimatedCreditsPerMonth"], 30);
    let path = format!("/v2/monitor/{}", made["data"]["id"].as_str().unwrap());
    assert_eq!(patch(caller, &path, &json!({})).await.status, 400);
    assert_eq!(patch(caller, &path, &json!({"retentionDays": 0})).await.status, 400);
    let unknown = weir_shared::random::id();
    assert_eq!(caller.get(&format!("{path}/checks/{unknown}")).await.status, 404);
    assert_eq!(caller.get("/v2/monitor/5").await.status, 400);
    assert_eq!(caller.get("/v2/monitor?limit=0").await.status, 400);

    // A team that keeps nothing has nothing to compare with.
    let keeps_nothing = service.new_team("quiet");
    service.cli(&["team", "set", "quiet", "--zero-data-retention", "on"]);
    wait_until("the team's setting holds", || async {
        (keeps_nothing.post("/v2/monitor", &body(json!([page]), json!({}))).await.status == 403).then_some(())
    })
    .await;
}
