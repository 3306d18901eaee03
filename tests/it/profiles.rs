//! Profiles of scrapes and batches (spec 2.1, 4.7): state that pages and sessions share, and who may write it.

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{
    BucketStandIn, BucketState, Caller, Database, FixtureSite, LostAnswer, ServiceOptions, TestService, ended_at,
    wait_until,
};

/// What the page finds in its browser, after the script.
async fn page(caller: &Caller, url: &str, profile: Value, script: &str) -> Value {
    let script = format!(
        "{script}; [document.cookie.split('; ').sort().join(), localStorage.k || null, localStorage.n || null]"
    );
    let body =
        json!({ "url": url, "profile": profile, "actions": [{ "type": "executeJavascript", "script": script }] });
    caller.post("/v2/scrape", &body).await.ok()["data"]["actions"]["javascriptReturns"][0]["value"].clone()
}

/// Waits until the session's row says that it has ended.
async fn has_ended(caller: &Caller, session: &Value) {
    wait_until("the session has ended", || async {
        let list = caller.get("/v2/browser").await.ok();
        let rows = list["sessions"].as_array().unwrap();
        rows.iter().any(|row| row["id"] == *session && row["status"] == "destroyed").then_some(())
    })
    .await;
}

/// A service whose worker takes sessions.
async fn with_sessions() -> TestService {
    with_sessions_on(Database::Sqlite).await
}

async fn with_sessions_on(database: Database) -> TestService {
    let options = ServiceOptions::new(database).with_sessions().env("WEIR_CACHE_SIZE", "10MB");
    let service = TestService::start_with(options).await;
    service.takes_sessions().await;
    service
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_and_sessions_share_a_profile_and_one_writes_it_at_a_time() {
    let site = FixtureSite::start().await;
    let service = with_sessions().await;
    let caller = service.caller();
    let url = site.url("/actions");
    let (saver, reader) = (json!({ "name": "shop" }), json!({ "name": "shop", "saveChanges": false }));

    let set = "document.cookie = 'kept=1; max-age=99999'; document.cookie = 'brief=1'; localStorage.setItem('k', 'v')";
    assert_eq!(page(caller, &url, saver.clone(), set).await, json!(["brief=1,kept=1", "v", null]));
    let spoil = "document.cookie = 'lost=1; max-age=99999'";
    assert_eq!(page(caller, &url, reader.clone(), spoil).await, json!(["brief=1,kept=1,lost=1", "v", null]));
    assert_eq!(
        page(caller, &url, reader.clone(), "1").await,
        json!(["brief=1,kept=1", "v", null]),
        "a reader writes nothing"
    );
    let stranger = service.new_team("stranger");
    assert_eq!(page(&stranger, &url, reader.clone(), "1").await, json!(["", null, null]), "a profile is its team's");

    // A session has the same state, and keeps others from writing while it may.
    let session = caller.post("/v2/browser", &json!({ "ttl": 120, "profile": saver })).await.ok();
    let look = format!("await page.goto('{url}'); await page.evaluate(() => localStorage.k)");
    let path = format!("/v2/browser/{}", session["id"].as_str().unwrap());
    let seen =
        caller.post(&format!("{path}/execute"), &json!({ "code": look, "language": "node", "timeout": 60 })).await.ok();
    assert_eq!(seen["result"], "v", "{seen}");
    let busy = caller.post("/v2/scrape", &json!({ "url": url, "profile": saver })).await;
    assert_eq!((busy.status, busy.code()), (409, "SCRAPE_PROFILE_BUSY"), "{}", busy.text);
    assert!(busy.is_base_error() && busy.error().starts_with("Another session is currently writing to this profile"));
    assert_eq!(page(caller, &url, reader.clone(), "1").await[1], "v", "reading is always possible");
    caller.delete(&path).await.ok();

    // The pages of a batch write it one after another.
    let count = "localStorage.setItem('n', 1 + Number(localStorage.n || 0)); 1";
    let batch = json!({ "urls": [url, url, url], "profile": saver,
        "actions": [{ "type": "executeJavascript", "script": count }] });
    let id = caller.post("/v2/batch/scrape", &batch).await.id();
    let ended = ended_at(caller, &format!("/v2/batch/scrape/{id}"), Duration::from_secs(120)).await;
    assert_eq!(ended["completed"], 3, "{ended}");
    let body = json!({ "url": url, "profile": reader });
    let last = caller.post("/v2/scrape", &body).await.ok()["data"].clone();
    assert_eq!(last["metadata"].get("cacheState"), None, "what a profile shows is not cached");
    assert_eq!(page(caller, &url, reader, "1").await, json!(["brief=1,kept=1", "v", "3"]));

    // The session that goes on from a scrape has its profile.
    let path = format!("/v2/scrape/{}/interact", last["metadata"]["scrapeId"].as_str().unwrap());
    let seen =
        caller.post(&path, &json!({ "code": "await page.evaluate(() => localStorage.n)", "timeout": 60 })).await.ok();
    assert_eq!(seen["result"], "3", "{seen}");
    caller.delete(&path).await.ok();
    // A file needs no browser, and a name that does not exist is told as without a profile.
    let other = json!({ "name": "shop", "saveChanges": false });
    let file = caller.post("/v2/scrape", &json!({ "url": site.url("/files/doc.csv"), "profile": other })).await.ok();
    assert!(file["warning"].as_str().is_some_and(|text| text.contains("without the profile")), "{file}");
    let gone = caller.post("/v2/scrape", &json!({ "url": "http://no-such-host.invalid/", "profile": other })).await;
    assert_eq!((gone.status, gone.code()), (200, "SCRAPE_DNS_RESOLUTION_ERROR"), "{}", gone.text);
    assert_eq!(caller.delete("/v2/browser/profiles/shop").await.ok()["success"], true);
    let crawl = caller.post("/v2/crawl", &json!({ "url": url, "scrapeOptions": { "profile": { "name": "x" } } })).await;
    assert_eq!(crawl.status, 400, "{}", crawl.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_requests_cookies_are_not_saved_with_its_profile() {
    let site = FixtureSite::start().await;
    let service = with_sessions().await;
    let caller = service.caller();
    let url = site.url("/actions");
    let (saver, reader) = (json!({ "name": "shop" }), json!({ "name": "shop", "saveChanges": false }));
    let cookies = async |script: &str, profile: &Value| page(caller, &url, profile.clone(), script).await[0].clone();
    let set = "document.cookie = 'own=1; max-age=99999'; document.cookie = 'sid=mine; max-age=99999'; \
        document.cookie = 'brief=mine'";
    assert_eq!(cookies(set, &saver).await, "brief=mine,own=1,sid=mine");

    let look = "document.cookie = 'changed=by-the-site'; document.cookie.split('; ').sort().join()";
    let body = json!({ "url": url, "profile": saver, "headers": { "Cookie": "sid=hush; brief=hush; other=hush; changed=hush" },
        "actions": [{ "type": "executeJavascript", "script": look }] });
    let scrape = caller.post("/v2/scrape", &body).await.ok()["data"].clone();
    let seen = &scrape["actions"]["javascriptReturns"][0]["value"];
    assert_eq!(seen, "brief=hush,changed=by-the-site,other=hush,own=1,sid=hush", "{scrape}");
    let kept = "brief=mine,changed=by-the-site,own=1,sid=mine";
    assert_eq!(cookies("1", &reader).await, kept, "what the request brought along is not the profile's");

    // A session that goes on from the scrape has the request's cookies, and saves the profile at its end.
    let path = format!("/v2/scrape/{}/interact", scrape["metadata"]["scrapeId"].as_str().unwrap());
    let code = "await page.evaluate(() => document.cookie.split('; ').sort().join())";
    let seen = caller.post(&path, &json!({ "code": code, "timeout": 60 })).await.ok();
    assert_eq!(seen["result"], "brief=hush,changed=hush,other=hush,own=1,sid=hush", "{seen}");
    caller.delete(&path).await.ok();
    // Its site has not said anything of the cookie this time.
    assert_eq!(cookies("1", &reader).await, kept);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_profile_outlives_the_lost_answer_to_the_commit_of_its_save() {
    let Some(database) = Database::postgres() else { return };
    let site = FixtureSite::start().await;
    let mut service = with_sessions_on(database).await;
    let way = LostAnswer::start(service.database_url(), "INSERT INTO profile (").await;
    service.stop();
    service.start_api();
    service.set_env("DATABASE_URL", &way.url);
    service.start_worker(0);
    service.ready().await;
    service.takes_sessions().await;

    let (caller, url) = (service.caller(), site.url("/actions"));
    let session = caller.post("/v2/browser", &json!({ "ttl": 120, "profile": { "name": "shop" } })).await.ok();
    let path = format!("/v2/browser/{}", session["id"].as_str().unwrap());
    let set = format!("await page.goto('{url}'); await page.evaluate(() => localStorage.setItem('k', 'v'))");
    let done = json!({ "code": set, "language": "node", "timeout": 60 });
    caller.post(&format!("{path}/execute"), &done).await.ok();
    caller.delete(&path).await.ok();
    wait_until("the answer is lost", || async { way.has_lost().then_some(()) }).await;
    has_ended(caller, &session["id"]).await;
    let reader = json!({ "name": "shop", "saveChanges": false });
    assert_eq!(page(caller, &url, reader, "1").await[1], "v", "what the row names is there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_is_away_holds_no_page_up_and_costs_no_session_its_profile() {
    let (site, bucket) = (FixtureSite::start().await, BucketStandIn::start().await);
    let mut options = ServiceOptions::new(Database::Sqlite).with_sessions();
    options.env.extend(bucket.settings());
    let service = TestService::start_with(options).await;
    service.takes_sessions().await;
    let (caller, url, saver) = (service.caller(), site.url("/actions"), json!({ "name": "shop" }));

    bucket.becomes(BucketState::Hangs);
    let body = json!({ "url": url, "profile": saver, "timeout": 40_000 });
    let document = caller.post("/v2/scrape", &body).await.ok();
    assert!(document["data"]["warning"].as_str().unwrap().contains("could not be saved"), "{document}");

    bucket.becomes(BucketState::IsAway);
    let session = caller.post("/v2/browser", &json!({ "ttl": 120, "profile": saver })).await.ok();
    let path = format!("/v2/browser/{}", session["id"].as_str().unwrap());
    let set = format!("await page.goto('{url}'); await page.evaluate(() => localStorage.setItem('k', 'v'))");
    let done = json!({ "code": set, "language": "node", "timeout": 60 });
    caller.post(&format!("{path}/execute"), &done).await.ok();
    let before = bucket.turned_away();
    let (leaving, left) = (caller.clone(), path.clone());
    let leaving = tokio::spawn(async move { leaving.delete(&left).await });
    // More refusals than one call of the store's client makes of itself.
    wait_until("it is stored again", || async { (bucket.turned_away() >= before + 12).then_some(()) }).await;
    bucket.becomes(BucketState::Well);
    let _ = leaving.await.unwrap();
    has_ended(caller, &session["id"]).await;
    let reader = json!({ "name": "shop", "saveChanges": false });
    assert_eq!(page(caller, &url, reader, "1").await[1], "v");
}
