//! What the API makes of browser sessions (spec 4.1 to 4.4, wire 8): rows, limits, money, walls, failures. The
//! browsers themselves are another module's; here a stand-in plays their worker.

use std::time::Duration;

use serde_json::{Value, json};
use weir_shared::clock::Stopwatch;
use weir_shared::random;
use weir_tests::{
    Answer, Caller, Database, ServiceOptions, StandIn, TestService, both_databases, wait_until, wait_until_within,
};

/// A service whose own worker takes no sessions.
async fn start(database: Database) -> TestService {
    TestService::start_with(options(database)).await
}

fn options(database: Database) -> ServiceOptions {
    ServiceOptions::new(database)
}

async fn ids(caller: &Caller, query: &str) -> Vec<String> {
    let body = caller.get(&format!("/v2/browser{query}")).await.ok();
    body["sessions"].as_array().unwrap().iter().map(|s| s["id"].as_str().unwrap().to_owned()).collect()
}

/// `DELETE` with a body.
async fn delete_with(caller: &Caller, path: &str, body: &Value) -> Answer {
    caller.send(caller.request(reqwest::Method::DELETE, path).json(body)).await
}

fn used(service: &TestService) -> i64 {
    let shown = service.cli_json(&["credits", "show", "--team", "tests", "--json"]);
    shown["used"].as_i64().unwrap_or_else(|| panic!("no used in {shown}"))
}

both_databases! {
    async fn a_session_is_created_listed_used_destroyed_and_billed_once(database) {
        let service = start(database).await;
        let _worker = StandIn::start(service.database_url(), 5).await;
        let made = service.post("/v2/browser", &json!({ "ttl": 60, "activityTtl": 30 })).await.ok();
        let id = made["id"].as_str().unwrap();
        let base = service.base();
        assert!(made["cdpUrl"].as_str().unwrap().starts_with(&format!("{}/cdp/{id}?token=", base.replace("http", "ws"))));
        for field in ["liveViewUrl", "interactiveLiveViewUrl"] {
            assert!(made[field].as_str().unwrap().starts_with(&format!("{base}/live/{id}#")), "{made}");
        }
        let listed = service.get("/v2/interact?status=active").await.ok();
        for field in ["id", "cdpUrl", "liveViewUrl", "interactiveLiveViewUrl"] {
            assert_eq!(listed["sessions"][0][field], made[field]);
        }
        let path = format!("/v2/browser/{id}");
        let ran = service.post(&format!("{path}/execute"), &json!({ "code": "2 + 2" })).await.ok();
        assert_eq!((&ran["result"], &ran["exitCode"], &ran["success"]), (&json!("4"), &json!(0), &json!(true)));
        assert!(ran["stdout"].as_str().unwrap().contains(r#""language":"node","timeout_ms":30000"#), "{ran}");
        let first = service.delete(&path).await.ok();
        assert_eq!((&first["success"], &first["creditsBilled"]), (&json!(true), &json!(2)), "{first}");
        assert!(first["sessionDurationMs"].is_u64());
        assert_eq!(service.delete(&path).await.ok(), first);
        assert_eq!(delete_with(service.caller(), "/v2/interact", &json!({ "id": id })).await.ok(), first);
        assert_eq!(used(&service), 2);
        let again = service.post(&format!("{path}/execute"), &json!({ "code": "1" })).await;
        assert_eq!((again.status, again.error()), (410, "Browser session has been destroyed."));
        assert_eq!(ids(service.caller(), "?status=destroyed").await, [id]);
    }

    async fn a_session_belongs_to_its_team(database) {
        let service = start(database).await;
        let _worker = StandIn::start(service.database_url(), 5).await;
        let other = service.new_team("others");
        let profile = json!({ "profile": { "name": "mine" } });
        let id = service.post("/v2/browser", &profile).await.id();
        for root in ["/v2/browser", "/v2/interact"] {
            let path = format!("{root}/{id}");
            for answer in [
                other.get(&path).await,
                other.delete(&path).await,
                delete_with(&other, root, &json!({ "id": id })).await,
                other.post(&format!("{path}/execute"), &json!({ "code": "1" })).await,
            ] {
                assert_eq!((answer.status, answer.error()), (403, "Forbidden."));
            }
        }
        assert!(ids(&other, "").await.is_empty());
        assert_eq!(other.delete("/v2/browser/profiles/mine").await.status, 404);
        other.post("/v2/browser", &profile).await.ok();
        assert_eq!(service.post("/v2/browser", &profile).await.status, 409, "one saver in a team");
        assert_eq!(ids(service.caller(), "?status=active").await, [id]);
    }

    async fn a_session_outlives_the_api(database) {
        let mut service = start(database).await;
        let _worker = StandIn::start(service.database_url(), 5).await;
        let made = service.post("/v2/browser", &json!({ "profile": { "name": "p" } })).await.ok();
        service.kill_api();
        service.start_api();
        service.ready().await;
        let listed = service.get("/v2/browser?status=active").await.ok();
        for field in ["id", "cdpUrl", "liveViewUrl", "interactiveLiveViewUrl"] {
            assert_eq!(listed["sessions"][0][field], made[field], "{field}");
        }
        let path = format!("/v2/browser/{}", made["id"].as_str().unwrap());
        service.post(&format!("{path}/execute"), &json!({ "code": "1" })).await.ok();
        assert_eq!(service.post("/v2/browser", &json!({ "profile": { "name": "p" } })).await.status, 409);
        assert_eq!(service.delete(&path).await.ok()["creditsBilled"], 2);
    }

    async fn a_dead_workers_session_frees_its_slot_and_its_profile_in_ten_seconds(database) {
        let service = TestService::start_with(options(database).env("WEIR_TEAM_SESSIONS", "1")).await;
        let dying = StandIn::start(service.database_url(), 5).await;
        let saves = json!({ "profile": { "name": "p" } });
        let id = service.post("/v2/browser", &saves).await.id();
        let _next = StandIn::start(service.database_url(), 5).await;
        assert_eq!(service.post("/v2/browser", &saves).await.status, 429);
        drop(dying);
        let died = Stopwatch::start();
        // It counts as dead after nine seconds, and its session's time would be over after ten minutes.
        wait_until_within(Duration::from_secs(30), "a place for the next session", || async {
            (service.post("/v2/browser", &saves).await.status == 200).then_some(())
        })
        .await;
        let waited = died.elapsed();
        assert!(waited > Duration::from_secs(7), "not before it counts as dead: {waited:?}");
        let ended = service.delete(&format!("/v2/browser/{id}")).await.ok();
        let duration = Duration::from_millis(ended["sessionDurationMs"].as_u64().unwrap());
        assert!(duration < waited, "billed to its last sign of life, not to its burial: {duration:?}");
        assert_eq!((&ended["status"], &ended["creditsBilled"]), (&json!("destroyed"), &json!(2)));
    }

    async fn the_sweeper_ends_sessions_of_the_dead_that_nobody_asks_for(database) {
        let service = start(database).await;
        let dying = StandIn::start(service.database_url(), 5).await;
        service.post("/v2/browser", &json!({})).await.ok();
        assert_eq!(used(&service), 0);
        drop(dying);
        wait_until("the session is billed", || async { (used(&service) == 2).then_some(()) }).await;
    }

    async fn limits_are_told_with_the_time_to_come_back(database) {
        let service = TestService::start_with(options(database).env("WEIR_TEAM_SESSIONS", "2")).await;
        let answer = service.post("/v2/browser", &json!({})).await;
        assert_eq!(answer.status, 503, "no worker takes sessions: {}", answer.text);
        assert!(answer.headers.contains_key("retry-after"));
        let _worker = StandIn::start(service.database_url(), 3).await;
        for _ in 0..2 {
            service.post("/v2/browser", &json!({})).await.ok();
        }
        let answer = service.post("/v2/interact", &json!({})).await;
        assert_eq!(answer.status, 429, "{}", answer.text);
        assert!(answer.error().starts_with("You have reached the maximum number of concurrent jobs (2)"));
        assert!(answer.headers.contains_key("retry-after"));
        let other = service.new_team("others");
        other.post("/v2/browser", &json!({})).await.ok();
        let answer = other.post("/v2/browser", &json!({})).await;
        assert_eq!(answer.status, 503, "no slot is left: {}", answer.text);
        assert!(answer.headers.contains_key("retry-after"));
        service.cli(&["team", "set", "tests", "--sessions", "1"]);
        let active = ids(service.caller(), "?status=active").await;
        service.delete(&format!("/v2/browser/{}", active[0])).await.ok();
        assert_eq!(service.post("/v2/browser", &json!({})).await.status, 429, "the team's own number");
        let workers = service.cli_json(&["workers", "list", "--json"]);
        let shown: Vec<_> = workers.as_array().unwrap().iter().map(|w| (&w["sessionSlots"], &w["sessionsTaken"])).collect();
        assert!(shown.contains(&(&json!(3), &json!(2))), "{workers}");
    }
}

#[tokio::test]
async fn wrong_calls_of_sessions_have_their_status_and_place() {
    let service = start(Database::Sqlite).await;
    let unknown = random::id();
    let mut faults = Vec::new();
    let execute = format!("/v2/browser/{unknown}/execute");
    for (path, body, place) in [
        ("/v2/browser", json!({ "ttl": 29 }), json!(["ttl"])),
        ("/v2/browser", json!({ "ttl": 3601 }), json!(["ttl"])),
        ("/v2/browser", json!({ "ttl": "long" }), json!(["ttl"])),
        ("/v2/browser", json!({ "activityTtl": 9 }), json!(["activityTtl"])),
        ("/v2/interact", json!({ "activityTtl": 3601 }), json!(["activityTtl"])),
        ("/v2/browser", json!({ "streamWebView": 1 }), json!(["streamWebView"])),
        ("/v2/browser", json!({ "profile": {} }), json!(["profile", "name"])),
        ("/v2/browser", json!({ "profile": { "name": "" } }), json!(["profile", "name"])),
        ("/v2/browser", json!({ "profile": { "name": "x".repeat(129) } }), json!(["profile", "name"])),
        ("/v2/browser", json!({ "profile": { "name": "x", "saveChanges": "no" } }), json!(["profile", "saveChanges"])),
        ("/v2/browser", json!({ "recordSession": true }), json!(["recordSession"])),
        ("/v2/browser", json!({ "location": { "country": "Mars" } }), json!(["location", "country"])),
        (&execute, json!({}), json!(["code"])),
        (&execute, json!({ "code": "" }), json!(["code"])),
        (&execute, json!({ "code": "x".repeat(100_001) }), json!(["code"])),
        (&execute, json!({ "code": "1", "language": "ruby" }), json!(["language"])),
        (&execute, json!({ "code": "1", "timeout": 0 }), json!(["timeout"])),
        (&execute, json!({ "code": "1", "timeout": 301 }), json!(["timeout"])),
    ] {
        let answer = service.post(path, &body).await;
        if answer.status != 400 || !answer.is_base_error() || answer.body["details"][0]["path"] != place {
            faults.push(format!("{path} {body}: got {} {}", answer.status, answer.text));
        }
    }
    for (method, path, body, status) in [
        ("GET", "/v2/browser?status=closing".to_owned(), Value::Null, 400),
        ("DELETE", "/v2/browser".to_owned(), json!({}), 400),
        ("DELETE", "/v2/browser".to_owned(), json!({ "id": 5 }), 400),
        ("DELETE", "/v2/browser".to_owned(), json!({ "id": unknown }), 404),
        ("DELETE", format!("/v2/browser/{unknown}"), Value::Null, 404),
        ("GET", format!("/v2/interact/{unknown}"), Value::Null, 404),
        ("GET", "/v2/browser/nonsense".to_owned(), Value::Null, 404),
        ("POST", execute.clone(), json!({ "code": "1" }), 404),
        ("DELETE", "/v2/browser/profiles/unknown".to_owned(), Value::Null, 404),
        ("DELETE", format!("/v2/interact/profiles/{}", "x".repeat(129)), Value::Null, 400),
        ("PUT", "/v2/browser".to_owned(), Value::Null, 405),
    ] {
        let request = service.caller().request(method.parse().unwrap(), &path).json(&body);
        let answer = service.caller().send(request).await;
        if answer.status != status || !answer.is_base_error() {
            faults.push(format!("{method} {path} {body}: wanted {status}, got {} {}", answer.status, answer.text));
        }
    }
    assert!(faults.is_empty(), "{} wrong answers:\n{}", faults.len(), faults.join("\n"));
    assert_eq!(service.get("/v2/browser").await.ok(), json!({ "success": true, "sessions": [] }));
}

#[tokio::test]
async fn a_metered_team_pays_for_the_ttl_up_front() {
    let service = TestService::start_with(options(Database::Sqlite).env("WEIR_CREDITS", "metered")).await;
    let _worker = StandIn::start(service.database_url(), 5).await;
    service.cli(&["credits", "grant", "--team", "tests", "19"]);
    let answer = service.post("/v2/browser", &json!({})).await;
    assert_eq!(answer.status, 402, "{}", answer.text);
    assert!(answer.error().starts_with("Insufficient credits for a 600s browser session"), "{}", answer.text);
    let id = service.post("/v2/browser", &json!({ "ttl": 540 })).await.id();
    assert_eq!(service.post("/v2/browser", &json!({ "ttl": 60 })).await.status, 402, "held back for the first");
    service.delete(&format!("/v2/browser/{id}")).await.ok();
    service.post("/v2/browser", &json!({ "ttl": 500 })).await.ok();
}
