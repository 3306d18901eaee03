//! Who may call, and what belongs to whom (spec 5, wire 2.1). Every route is tried in `walls`.

use serde_json::{Value, json};
use weir_shared::random;
use weir_tests::{Caller, Database, FixtureSite, ServiceOptions, TestService, both_databases, finished, wait_until};

both_databases! {
    async fn another_teams_jobs_are_out_of_reach(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let other = service.new_team("others");

        let document = service.post("/v2/scrape", &json!({ "url": site.url("/article/1") })).await.ok();
        let scrape = document["data"]["metadata"]["scrapeId"].as_str().unwrap().to_owned();
        let batch = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/slow?ms=2000&n=", 3) })).await.id();

        let read = other.get(&format!("/v2/scrape/{scrape}")).await;
        assert_eq!(read.status, 403, "{}", read.text);
        assert_eq!(read.error(), "You are not allowed to access this resource.");
        let path = format!("/v2/batch/scrape/{batch}");
        for answer in [other.get(&path).await, other.delete(&path).await] {
            assert_eq!((answer.status, answer.error()), (404, "Job not found"), "{}", answer.text);
        }
        let errors = other.get(&format!("{path}/errors")).await;
        assert_eq!((errors.status, errors.error()), (403, "Forbidden"), "{}", errors.text);
        let append = other.post("/v2/batch/scrape", &json!({ "urls": site.urls("/article/", 1), "appendToId": batch })).await;
        assert_eq!(append.status, 404, "{}", append.text);

        let status = finished(service.caller(), &batch, std::time::Duration::from_secs(60)).await;
        assert_eq!((&status["status"], &status["total"]), (&json!("completed"), &json!(3)), "nothing of it took effect");
    }

    async fn a_revoked_key_ends_and_the_teams_other_key_goes_on(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let second = service.new_key("tests");
        let keys = service.cli_json(&["key", "list", "--team", "tests", "--json"]);
        let keys = keys.as_array().unwrap_or_else(|| panic!("an array of keys: {keys}")).clone();
        assert_eq!(keys.len(), 2, "{keys:?}");
        let text = serde_json::to_string(&keys).unwrap();
        assert!(!text.contains(second.key.as_deref().unwrap()), "a key is shown once, when it is made");

        let newest = keys.iter().max_by_key(|key| key["id"].as_str().map(str::to_owned)).unwrap();
        let newest = newest["id"].as_str().unwrap_or_else(|| panic!("a key has an id: {newest}"));
        service.cli(&["key", "revoke", newest]);
        let page = json!({ "url": site.url("/small/1") });
        wait_until("the revoked key is refused", || async {
            (second.post("/v2/scrape", &page).await.status == 401).then_some(())
        })
        .await;
        service.post("/v2/scrape", &page).await.ok();
    }
}

#[tokio::test]
async fn in_open_mode_everyone_is_the_default_team() {
    let site = FixtureSite::start().await;
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_AUTH", "open");
    let service = TestService::start_with(options).await;
    let scrape = async |caller: &Caller| -> Value {
        caller.post("/v2/scrape", &json!({ "url": site.url("/small/1") })).await.ok()
    };
    let document = scrape(&service.anonymous()).await;
    let id = document["data"]["metadata"]["scrapeId"].as_str().unwrap();
    service.anonymous().get(&format!("/v2/scrape/{id}")).await.ok();
    scrape(service.caller()).await;
}

#[tokio::test]
async fn open_mode_is_refused_on_a_public_address() {
    let service = TestService::start(Database::Sqlite).await;
    let mut command = service.command("weir");
    command.arg("serve").env("WEIR_AUTH", "open").env("WEIR_BIND", "0.0.0.0:0");
    let output = command.output().unwrap();
    assert!(!output.status.success());
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("WEIR_AUTH"), "the line names the setting: {text}");
}

#[tokio::test]
async fn the_default_team_has_the_key_of_the_settings_file() {
    let service = TestService::start(Database::Sqlite).await;
    let path = service.folder().join("data/api-key");
    let key = std::fs::read_to_string(path).expect("data/api-key is made on first start");
    let key = key.trim();
    assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "wire 6: {key:?}");
    let caller = Caller::new(service.base(), Some(key));
    let answer = caller.get(&format!("/v2/batch/scrape/{}", random::id())).await;
    assert_eq!(answer.status, 404, "known key, unknown job: {}", answer.text);
}
