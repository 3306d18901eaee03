//! The operator's commands.

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{Database, FixtureSite, TestService, both_databases, finished};

fn list(value: &Value) -> Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("an array: {value}")).clone()
}

both_databases! {
    async fn teams_keys_credits_jobs_and_workers_are_listed_as_json(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let made = service.cli_json(&["team", "add", "second", "--json"]);
        assert_eq!(made["name"], "second");
        assert!(made["id"].is_string());
        let teams = list(&service.cli_json(&["team", "list", "--json"]));
        assert!(teams.iter().any(|team| team["name"] == "second"), "{teams:?}");

        service.cli(&["credits", "grant", "--team", "second", "100"]);
        let credits = service.cli_json(&["credits", "show", "--team", "second", "--json"]);
        assert!(credits.to_string().contains("100"), "{credits}");

        let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 3) })).await.id();
        finished(service.caller(), &id, Duration::from_secs(30)).await;
        let jobs = list(&service.cli_json(&["jobs", "list", "--json"]));
        assert!(jobs.iter().any(|job| job["id"] == id.as_str()), "{jobs:?}");
        let job = service.cli_json(&["jobs", "show", &id, "--json"]);
        assert!(job.to_string().contains("completed"), "{job}");
        let workers = list(&service.cli_json(&["workers", "list", "--json"]));
        assert_eq!(workers.len(), 1, "{workers:?}");
    }

    async fn failed_pages_can_be_replayed(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let urls = json!([site.url("/slow?ms=2500"), site.url("/small/1")]);
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls, "timeout": 1000 })).await.id();
        let status = finished(service.caller(), &id, Duration::from_secs(40)).await;
        assert_eq!(status["completed"], 1);
        let before = site.hit_count("/slow").await;
        service.cli(&["jobs", "replay", &id]);
        weir_tests::wait_until("the failed page is tried again", || async {
            (site.hit_count("/slow").await > before).then_some(())
        })
        .await;
        finished(service.caller(), &id, Duration::from_secs(40)).await;
    }
}

#[tokio::test]
async fn exit_codes_tell_success_failure_and_bad_usage() {
    let service = TestService::start(Database::Sqlite).await;
    for (arguments, code) in [
        (&["--help"][..], 0),
        (&["team", "list"][..], 0),
        (&["team", "list", "--json"][..], 0),
        (&["key", "create", "--team", "nobody"][..], 1),
        (&["jobs", "show", "00000000-0000-0000-0000-000000000000"][..], 1),
        (&["nonsense"][..], 2),
        (&["team", "set", "tests", "--concurrency", "many"][..], 2),
        (&["key", "create"][..], 2),
    ] {
        let output = service.try_cli(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "weir {}: {said}", arguments.join(" "));
    }
    for command in ["serve", "migrate", "team", "key", "credits", "jobs", "workers", "webhooks", "doctor"] {
        assert!(service.try_cli(&[command, "--help"]).status.success(), "weir {command} --help");
    }
}

#[tokio::test]
async fn doctor_tells_what_is_right_and_fails_when_something_is_not() {
    let service = TestService::start(Database::Sqlite).await;
    let output = service.try_cli(&["doctor"]);
    let text = String::from_utf8_lossy(&output.stdout).to_lowercase();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for subject in ["database", "chromium", "disk", "clock"] {
        assert!(text.contains(subject), "no line about {subject}: {text}");
    }
    let mut broken = service.command("weir");
    let output = broken.arg("doctor").env("WEIR_CHROMIUM", "/nowhere/chromium").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[tokio::test]
async fn migrate_may_run_again() {
    let service = TestService::start(Database::Sqlite).await;
    service.cli(&["migrate"]);
    service.cli(&["migrate"]);
    assert_eq!(service.anonymous().get("/readyz").await.status, 200);
}
