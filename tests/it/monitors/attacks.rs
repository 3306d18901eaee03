//! What happens to a monitor, to what it leans on and to the clock in the middle of a check: a check goes on as it began,
//! says what it could not do, and leaves nothing behind.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{
    Answered, Caller, FixtureSite, ModelStandIn, MovedClock, OwnPages, RuledSite, Said, SearchStandIn, TestService,
    both_databases, first_on, found, wait_until, wait_until_within,
};

use super::{BOUND, are, check, ended, options, patch, watch};

/// Bound on a check of more than a thousand pages.
const LONG: Duration = Duration::from_secs(150);
const HOUR: Duration = Duration::from_secs(3_600);

/// Has a monitor look now; the check's id once it runs.
async fn begin(caller: &Caller, monitor: &str) -> String {
    let run = caller.post(&format!("/v2/monitor/{monitor}/run"), &json!({})).await.ok();
    let check = run["id"].as_str().unwrap().to_owned();
    let path = format!("/v2/monitor/{monitor}/checks/{check}");
    wait_until_within(BOUND, "the check runs", || async {
        (caller.get(&path).await.ok()["data"]["status"] == "running").then_some(())
    })
    .await;
    check
}

/// Waits until a page was asked for.
async fn is_asked_for(pages: &OwnPages, path: &str) {
    wait_until_within(BOUND, "the page is asked for", || async { (!pages.heads(path).is_empty()).then_some(()) }).await;
}

/// All pages of a check.
async fn all_pages(caller: &Caller, monitor: &str, check: &str) -> Vec<Value> {
    let mut pages = Vec::new();
    loop {
        let path = format!("/v2/monitor/{monitor}/checks/{check}?limit=100&skip={}", pages.len());
        let answer = caller.get(&path).await.ok();
        pages.extend(answer["data"]["pages"].as_array().unwrap().iter().cloned());
        if answer["next"].is_null() {
            return pages;
        }
    }
}

both_databases! {
    async fn a_check_goes_on_as_it_began_though_its_monitor_is_edited_and_paused(database) {
        let (site, own) = (FixtureSite::start().await, OwnPages::start().await);
        let is_well = Arc::new(AtomicBool::new(false));
        let (well, hit) = (Arc::clone(&is_well), site.url("/article/1"));
        let backend = SearchStandIn::start(move |asked| match well.load(Ordering::SeqCst) {
            false => Answered::Hang,
            true => Answered::Json(found(if asked.query["pageno"] == "1" { std::slice::from_ref(&hit) } else { &[] })),
        })
        .await;
        let verdict = json!({"hits": [{"number": 1, "meaningful": true, "confidence": "low", "reason": "r"}]});
        let model = ModelStandIn::answering(move |_, _| Said::json(&verdict)).await;
        let options = options(database).env("WEIR_SEARCH_URL", &backend.url);
        let mut service = TestService::start_with(options.env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m")).await;
        let caller = service.caller().clone();
        let (tea, other) = (own.put("/tea", "<p>Tea is here.</p>"), own.put("/other", "<p>Other things are here.</p>"));
        let targets = json!([{"type": "search", "id": "s", "queries": ["whales"]}, {"type": "scrape", "id": "p", "urls": [tea]}]);
        let hook = json!({"url": site.webhook_url("first"), "events": ["monitor.check.completed"]});
        let id = watch(&caller, targets, json!({"goal": "whales in the sea", "webhook": hook})).await;
        let run = begin(&caller, &id).await;
        service.kill_worker(0);
        let edit = json!({"targets": [{"type": "scrape", "id": "p", "urls": [other]}], "goal": "cars on the road",
            "status": "paused", "webhook": {"url": site.webhook_url("second")}});
        let paused = patch(&caller, &format!("/v2/monitor/{id}"), &edit).await.ok()["data"].clone();
        assert_eq!((&paused["status"], &paused["nextRunAt"]), (&json!("paused"), &Value::Null));
        is_well.store(true, Ordering::SeqCst);
        // Nobody waits for the end of the dead worker's time.
        service.execute("UPDATE monitor_check SET next_at = 0 WHERE next_at IS NOT NULL").await;
        service.start_worker(0);
        let first = ended(&caller, &id, &run).await;
        are(&first, &[("1", "new"), ("tea", "new")]);
        assert_eq!((&first["status"], &first["error"]), (&json!("completed"), &Value::Null), "{first}");
        let asked: Vec<String> = model.asked().iter().map(|(_, asked)| asked.to_string()).collect();
        assert!(!asked.is_empty() && asked.iter().all(|asked| asked.contains("whales in the sea")), "{asked:?}");
        wait_until("the first receiver is told", || async { site.events("first").await.first().cloned() }).await;

        // The next one is that of the monitor as it is now.
        are(&check(&caller, &id).await, &[("other", "new")]);
        wait_until("the second receiver is told", || async { site.events("second").await.last().cloned() }).await;
        assert_eq!(site.events("first").await.len(), 1);
        assert_eq!(caller.get(&format!("/v2/monitor/{id}")).await.ok()["data"]["status"], "paused");
    }

    async fn a_monitor_that_is_deleted_in_a_check_leaves_nothing_and_tells_nobody(database) {
        let (own, tells) = (OwnPages::start().await, Arc::new(std::sync::Mutex::new(Vec::<String>::new())));
        let told = Arc::clone(&tells);
        // A receiver that is never well.
        let receiver = RuledSite::start(move |_, body| {
            told.lock().unwrap().push(String::from_utf8_lossy(body).into_owned());
            (500, String::new())
        })
        .await;
        let pauses = ["100ms"; 100].join(",");
        let service = TestService::start_with(options(database).env("WEIR_WEBHOOK_RETRIES", pauses)).await;
        let caller = service.caller();
        let (tea, cake) = (own.put("/tea", "<p>Tea is here.</p>"), own.put("/cake", "<p>Cake is out.</p>"));
        let gate = own.hold("/cake");
        let targets = json!([{"type": "scrape", "urls": [tea, cake]}]);
        let id = watch(caller, targets, json!({"webhook": {"url": receiver.url("/hook")}})).await;
        let run = begin(caller, &id).await;
        is_asked_for(&own, "/cake").await;
        let shown = caller.get(&format!("/v2/monitor/{id}/checks/{run}")).await.ok();
        let job = shown["data"]["targetResults"][0]["expectedJobs"][0].as_str().unwrap().to_owned();
        wait_until("the receiver is told", || async { (tells.lock().unwrap().len() >= 2).then_some(()) }).await;

        let path = format!("/v2/monitor/{id}");
        assert_eq!(caller.delete(&path).await.ok(), json!({"success": true}));
        let before = tells.lock().unwrap().len();
        let rest = || async {
            let (mut tables, _) = service.tables_with(&id).await;
            tables.extend(service.tables_with(&run).await.0);
            // The page that is in work is one of a job, which says what it was for until its results expire.
            tables.retain(|table| !["job", "page", "crawl", "document", "activity"].contains(&table.rsplit('.').next().unwrap()));
            tables
        };
        wait_until_within(BOUND, "the monitor's rows are gone", || async { rest().await.is_empty().then_some(()) }).await;
        let after = tells.lock().unwrap().len();
        assert!(after <= before + 1, "what was under way, and nothing more: {before} {after}");
        // A page that ends after all of it, or is given up, leaves nothing, either.
        gate.open();
        wait_until_within(BOUND, "the page has ended", || async {
            let job = caller.get(&format!("/v2/batch/scrape/{job}")).await.ok();
            (job["completed"] == job["total"]).then_some(())
        })
        .await;
        assert_eq!(rest().await, Vec::<String>::new());
        assert_eq!(tells.lock().unwrap().len(), after);
        assert_eq!(caller.get(&format!("{path}/checks/{run}")).await.status, 404);
    }
}

first_on! {
    postgres:

    async fn a_search_backend_that_goes_away_costs_a_check_its_search_alone(database) {
        let own = OwnPages::start().await;
        let backend = SearchStandIn::start(|_| Answered::Status(500, "x-broken: yes")).await;
        let mut service = TestService::start_with(options(database).env("WEIR_SEARCH_URL", &backend.url)).await;
        let caller = service.caller().clone();
        let tea = own.put("/tea", "<p>Tea is here.</p>");
        let targets = json!([{"type": "search", "id": "s", "queries": ["whales"]}, {"type": "scrape", "id": "p", "urls": [tea]}]);
        let id = watch(&caller, targets, json!({"judgeEnabled": false})).await;
        let broken = check(&caller, &id).await;
        are(&broken, &[("tea", "new")]);
        assert_eq!((&broken["status"], &broken["targetResults"][0]["searchCompleted"]), (&json!("partial"), &json!(false)));
        assert!(broken["targetResults"][0]["error"].as_str().unwrap().contains("did not answer"), "{broken}");

        // Taken out of the settings while a check runs.
        let gate = own.hold("/tea");
        let run = begin(&caller, &id).await;
        service.kill_worker(0);
        service.kill_api();
        service.remove_env("WEIR_SEARCH_URL");
        service.execute("UPDATE monitor_check SET next_at = 0 WHERE next_at IS NOT NULL").await;
        service.start_api();
        service.ready().await;
        service.start_worker(0);
        gate.open();
        let without = ended(&caller, &id, &run).await;
        are(&without, &[("tea", "same")]);
        assert_eq!(without["status"], "partial", "{without}");
        assert!(without["targetResults"][0]["error"].as_str().unwrap().contains("WEIR_SEARCH_URL"), "{without}");
        // What has nothing to do with the search can still be changed.
        let path = format!("/v2/monitor/{id}");
        assert_eq!(patch(&caller, &path, &json!({"status": "paused"})).await.ok()["data"]["status"], "paused");
        let refused = patch(&caller, &path, &json!({"targets": [{"type": "search", "queries": ["x"]}], "judgeEnabled": false})).await;
        assert_eq!(refused.status, 503, "{}", refused.text);
    }
}

first_on! {
    sqlite:

    async fn a_judge_that_answers_nonsense_is_named_in_a_warning(database) {
        let own = OwnPages::start().await;
        let backend = SearchStandIn::finding(vec![own.put("/hit", "<p>A hit.</p>"), own.url("/hat")]).await;
        let model = ModelStandIn::answering(|_, _| Said::Text("Yes, dear.".to_owned())).await;
        let options = options(database).env("WEIR_SEARCH_URL", &backend.url);
        let service = TestService::start_with(options.env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m")).await;
        let caller = service.caller();
        let tea = own.put("/tea", "<p>Tea costs four euros.</p>");
        let targets = json!([{"type": "scrape", "urls": [tea]}, {"type": "search", "queries": ["whales"]}]);
        let id = watch(caller, targets, json!({"goal": "prices"})).await;
        let first = check(caller, &id).await;
        are(&first, &[("hat", "new"), ("hit", "new"), ("tea", "new")]);
        let said = |check: &Value| check["warning"].as_str().unwrap_or_default().to_owned();
        assert!(said(&first).contains("2 hits were not judged"), "{first}");
        own.put("/tea", "<p>Tea costs five euros.</p>");
        let second = check(caller, &id).await;
        are(&second, &[("hat", "same"), ("hit", "same"), ("tea", "changed")]);
        assert!(said(&second).contains("1 change was not judged") && !said(&second).contains("hits"), "{second}");
        assert_eq!((&second["status"], second["pages"].as_array().unwrap().iter().any(|page| page.get("judgment").is_some())),
            (&json!("completed"), false), "{second}");
        assert_eq!(second["actualCredits"], 3, "the page and the search, and no judgement: {second}");
        let third = check(caller, &id).await;
        assert!(third.get("warning").is_none(), "{third}");
        let listed = caller.get(&format!("/v2/monitor/{id}/checks")).await.ok();
        assert_eq!(listed["data"][1]["warning"], second["warning"]);
    }
}

first_on! {
    postgres:

    async fn a_check_of_700_pages_and_450_dead_addresses_tells_of_each_once(database) {
        let site = RuledSite::start(|path, _| (200, format!("<main><p>This is {path}.</p></main>"))).await;
        let dead = weir_tests::free_port();
        let mut urls: Vec<String> = (0..700).map(|n| site.url(&format!("/page/{n}"))).collect();
        for n in 0..450 {
            urls.insert(n * 2, format!("http://127.0.0.1:{dead}/dead/{n}"));
        }
        let service = TestService::start_with(options(database).workers(2)).await;
        let caller = service.caller();
        let id = watch(caller, json!([{"type": "scrape", "urls": urls}]), json!({})).await;
        let run = begin(caller, &id).await;
        let path = format!("/v2/monitor/{id}/checks/{run}");
        let whole = wait_until_within(LONG, "the check has ended", || async {
            let found = caller.get(&path).await.ok()["data"].clone();
            found["finishedAt"].is_string().then_some(found)
        })
        .await;
        let summary = json!({"totalPages": 1150, "same": 0, "changed": 0, "new": 700, "removed": 0, "error": 450});
        assert_eq!((&whole["status"], &whole["summary"]), (&json!("partial"), &summary));
        assert_eq!(whole["actualCredits"], 700);
        let pages = all_pages(caller, &id, &run).await;
        let told: HashSet<&str> = pages.iter().map(|page| page["url"].as_str().unwrap()).collect();
        assert_eq!((pages.len(), told), (1_150, urls.iter().map(String::as_str).collect()));
        let mut by_status: BTreeMap<&str, usize> = BTreeMap::new();
        for page in &pages {
            *by_status.entry(page["status"].as_str().unwrap()).or_default() += 1;
        }
        assert_eq!(by_status, BTreeMap::from([("error", 450), ("new", 700)]));
    }
}

first_on! {
    sqlite:

    async fn a_page_that_failed_by_a_clock_that_was_set_back_is_told_once(database) {
        let (own, clock) = (OwnPages::start().await, MovedClock::new());
        clock.advance(2 * HOUR);
        let (name, file) = clock.setting();
        let service = TestService::start_with(options(database).env(name, file)).await;
        let caller = service.caller();
        let dead = weir_tests::free_port();
        let early = format!("http://127.0.0.1:{dead}/early");
        let late = own.redirect("/late", 302, &format!("http://127.0.0.1:{dead}/nowhere"));
        let gate = own.hold("/late");
        let id = watch(caller, json!([{"type": "scrape", "urls": [early, late]}]), json!({})).await;
        let run = begin(caller, &id).await;
        let path = format!("/v2/monitor/{id}/checks/{run}");
        wait_until_within(BOUND, "the first failure is told", || async {
            (caller.get(&path).await.ok()["data"]["summary"]["error"] == 1).then_some(())
        })
        .await;
        clock.set_back(HOUR);
        gate.open();
        let whole = ended(caller, &id, &run).await;
        are(&whole, &[("early", "error"), ("late", "error")]);
        assert_eq!(whole["status"], "failed", "{whole}");
    }
}

both_databases! {
    async fn results_do_not_expire_under_a_check_that_runs(database) {
        let own = OwnPages::start().await;
        let service = TestService::start_with(options(database)).await;
        let caller = service.caller();
        let (tea, cake) = (own.put("/tea", "<p>Tea is here.</p>"), own.put("/cake", "<p>Cake is out.</p>"));
        let gate = own.hold("/cake");
        let id = watch(caller, json!([{"type": "scrape", "urls": [tea, cake]}]), json!({})).await;
        let other = caller.post("/v2/batch/scrape", &json!({"urls": [tea]})).await.id();
        weir_tests::finished(caller, &other, BOUND).await;
        let run = begin(caller, &id).await;
        is_asked_for(&own, "/cake").await;
        // The results of all jobs are past their time: those of the other one are removed, which tells that it was looked.
        service.execute("UPDATE job SET expires_at = 1000").await;
        wait_until_within(BOUND, "the other job is gone", || async {
            let (tables, _) = service.tables_with(&other).await;
            (!tables.iter().any(|table| table.rsplit('.').next() == Some("job"))).then_some(())
        })
        .await;
        gate.open();
        let whole = ended(caller, &id, &run).await;
        are(&whole, &[("cake", "new"), ("tea", "new")]);
        assert_eq!((&whole["status"], &whole["error"]), (&json!("completed"), &Value::Null), "{whole}");
        // What it found can be read from then on for as long as results are.
        let job = whole["targetResults"][0]["expectedJobs"][0].as_str().unwrap();
        assert_eq!(caller.get(&format!("/v2/batch/scrape/{job}")).await.ok()["completed"], 2);
    }

    async fn a_clock_that_was_ahead_and_is_set_back_costs_no_check(database) {
        let (own, clock) = (OwnPages::start().await, MovedClock::new());
        // A second past one of the monitor's moments: the next one is not reached by waiting.
        let past = clock.now().0.rem_euclid(300_000);
        clock.advance(Duration::from_millis((301_000 - past).unsigned_abs()));
        let (name, file) = clock.setting();
        let service = TestService::start_with(options(database).env(name, file)).await;
        let caller = service.caller();
        let tea = own.put("/tea", "<p>Tea costs four euros.</p>");
        let body = json!({"name": "Often", "schedule": {"cron": "*/5 * * * *"}, "targets": [{"type": "scrape", "urls": [tea]}]});
        let id = caller.post("/v2/monitor", &body).await.ok()["data"]["id"].as_str().unwrap().to_owned();
        let path = format!("/v2/monitor/{id}");
        let over = |count: usize| {
            let path = format!("{path}/checks");
            async move {
                wait_until_within(BOUND, "a check was made and is over", || async {
                    let checks = caller.get(&path).await.ok()["data"].as_array().unwrap().clone();
                    let over: Vec<Value> = checks.into_iter().filter(|check| check["finishedAt"].is_string()).collect();
                    (over.len() >= count).then_some(over)
                })
                .await
            }
        };
        // A day ahead: a check is due and made, and the next one is due a day from now.
        clock.advance(24 * HOUR);
        let ahead = over(1).await;
        assert_eq!(ahead[0]["status"], "completed", "{ahead:?}");
        own.put("/tea", "<p>Tea costs five euros.</p>");
        clock.set_back(24 * HOUR);
        let soon = wait_until_within(BOUND, "the next check is within five minutes", || async {
            let next = caller.get(&path).await.ok()["data"]["nextRunAt"].as_str().unwrap().to_owned();
            let latest = clock.now().plus_ms(300_000).to_iso();
            (next <= latest).then_some(next)
        })
        .await;
        assert!(soon > clock.now().plus_ms(-60_000).to_iso(), "{soon}");
        clock.advance(Duration::from_secs(300));
        let checks = over(2).await;
        let of = |check: &Value| (check["status"].clone(), check["summary"]["changed"].clone());
        assert_eq!(of(&checks[0]), (json!("completed"), json!(1)), "{checks:?}");
        // It was told of, and is not told of again although the clock was ahead when the page was kept last.
        clock.advance(Duration::from_secs(300));
        let checks = over(3).await;
        assert_eq!(of(&checks[0]), (json!("completed"), json!(0)), "{checks:?}");
        // The moment that the clock was ahead at comes again, and has its check.
        clock.advance(24 * HOUR);
        let checks = over(4).await;
        assert_eq!(checks[0]["status"], "completed", "{checks:?}");
    }
}
