//! The operator's commands.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::Connection as _;
use weir_shared::fault::ENVIRONMENT;
use weir_tests::{
    Answered, Caller, Database, FixtureSite, ModelStandIn, PostgresCluster, Process, Said, SearchStandIn,
    ServiceOptions, TestService, both_databases, checkout, finished, temporary, wait_until,
};

use crate::faults::long::SmallDisk;

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
        finished(service.caller(), &id, Duration::from_secs(60)).await;
        let jobs = list(&service.cli_json(&["jobs", "list", "--json"]));
        assert!(jobs.iter().any(|job| job["id"] == id.as_str()), "{jobs:?}");
        let job = service.cli_json(&["jobs", "show", &id, "--json"]);
        assert!(job.to_string().contains("completed"), "{job}");
        let workers = list(&service.cli_json(&["workers", "list", "--json"]));
        assert_eq!(workers.len(), 1, "{workers:?}");
    }

    async fn a_team_that_is_removed_is_gone_for_its_keys_with_all_it_had_and_its_name_is_free(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let acme = service.new_team("acme");
        let id = acme.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 3) })).await.id();
        finished(&acme, &id, Duration::from_secs(60)).await;
        let path = format!("/v2/batch/scrape/{id}");

        // Nobody types its name, and the default team is nobody's to remove.
        let asked = service.try_cli(&["team", "remove", "acme"]);
        let said = String::from_utf8_lossy(&asked.stderr);
        assert!(asked.status.code() == Some(1) && said.contains("1 key, 1 job (running: 0) with 3 documents"), "{said}");
        assert_eq!(service.try_cli(&["team", "remove", "default", "--yes"]).status.code(), Some(1));
        assert_eq!(service.try_cli(&["team", "remove", "nobody", "--yes"]).status.code(), Some(1));
        acme.get(&path).await.ok();

        let done = service.cli_json(&["team", "remove", "acme", "--yes", "--wait", "--json"]);
        assert_eq!((&done["name"], &done["had"]["documents"], &done["had"]["keys"]), (&json!("acme"), &json!(3), &json!(1)));
        wait_until("its key is refused", || async { (acme.get(&path).await.status == 401).then_some(()) }).await;
        assert_eq!(service.try_cli(&["jobs", "show", &id]).status.code(), Some(1), "the job is gone");
        let shown = |team: &Value| team["id"] == done["id"] && team["removedAt"].is_string();
        let teams = list(&service.cli_json(&["team", "list", "--json"]));
        assert_eq!(teams.iter().filter(|team| shown(team)).count(), 1, "{teams:?}");
        let name = teams.iter().find(|team| shown(team)).unwrap()["name"].as_str().unwrap().to_owned();
        for refused in [["key", "create", "--team", &name], ["credits", "show", "--team", &name]] {
            assert_eq!(service.try_cli(&refused).status.code(), Some(1), "{refused:?}");
        }

        // Whoever was not told gives the command once more, and needs to type nothing for what is done.
        let told = service.try_cli(&["team", "remove", "acme"]);
        let said = String::from_utf8_lossy(&told.stdout);
        assert!(told.status.success() && said.starts_with("team acme is removed already: "), "{told:?}");
        let once_more = service.cli_json(&["team", "remove", "acme", "--yes", "--wait", "--json"]);
        assert_eq!((&once_more["id"], &once_more["wasRemoved"]), (&done["id"], &json!(true)));
        assert_eq!(done["wasRemoved"], false);

        let again = service.new_team("acme");
        assert_eq!(again.get(&path).await.status, 404);
        assert_eq!(again.get("/v2/team/activity").await.ok()["data"], json!([]));
    }

    async fn failed_pages_can_be_replayed(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let urls = json!([site.url("/files/audio.wav"), site.url("/small/1")]);
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
        let status = finished(service.caller(), &id, Duration::from_secs(60)).await;
        assert_eq!(status["completed"], 1);
        // A page that failed is done, too.
        let shown = service.cli(&["jobs", "show", &id]);
        assert!(shown.contains("\n2 of 2 done, 1 failed, 0 waiting"), "{shown}");
        let watched = service.cli(&["jobs", "watch", &id]);
        assert!(watched.contains("completed: 2 of 2 done, 1 failed, 0 queued"), "{watched}");
        let listed = service.cli(&["jobs", "list"]);
        assert!(listed.lines().any(|line| line.starts_with(&id) && line.contains(" 2/2 ")), "{listed}");
        let job = service.cli_json(&["jobs", "show", &id, "--json"]);
        assert_eq!((&job["total"], &job["completed"], &job["failed"]), (&json!(2), &json!(1), &json!(1)), "{job}");
        let before = site.hit_count("/files/").await;
        service.cli(&["jobs", "replay", &id]);
        weir_tests::wait_until("the failed page is tried again", || async {
            (site.hit_count("/files/").await > before).then_some(())
        })
        .await;
        finished(service.caller(), &id, Duration::from_secs(60)).await;
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
        (&["jobs", "replay", "00000000-0000-0000-0000-000000000000"][..], 1),
        (&["webhooks", "deliveries", "--job", "00000000-0000-0000-0000-000000000000"][..], 1),
        (&["webhooks", "replay", "00000000-0000-0000-0000-000000000000", "--dry-run"][..], 1),
        (&["nonsense"][..], 2),
        (&["team", "set", "tests", "--concurrency", "many"][..], 2),
        (&["credits", "grant", "--team", "tests", "0"][..], 2),
        (&["credits", "grant", "--team", "tests", "9223372036854775807"][..], 2),
        (&["credits", "grant", "--team", "tests", "-1"][..], 1),
        (&["key", "create"][..], 2),
    ] {
        let output = service.try_cli(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "weir {}: {said}", arguments.join(" "));
    }
    let set = |more: &[&str]| {
        let team = service.cli_json(&[&["team", "set", "tests", "--json"][..], more].concat());
        json!([team["concurrency"], team["rates"]])
    };
    let own = set(&["--concurrency", "5", "--rate", "scrape=9", "--rate", "map=3"]);
    assert_eq!(own, json!([5, { "scrape": 9, "map": 3 }]));
    assert_eq!(set(&["--concurrency", "default", "--rate", "map=default"]), json!([null, { "scrape": 9 }]));
    for command in [
        "serve", "migrate", "backup", "restore", "config", "team", "key", "credits", "jobs", "workers", "webhooks",
        "doctor",
    ] {
        assert!(service.try_cli(&[command, "--help"]).status.success(), "weir {command} --help");
    }
}

#[tokio::test]
async fn a_command_in_another_folder_makes_no_database_and_replaces_no_backup() {
    let service = TestService::start(Database::Sqlite).await;
    let elsewhere = service.folder().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let (backup, made) = (service.folder().join("backup"), elsewhere.join("data/weir.db"));
    let backup = backup.to_str().unwrap();
    assert!(service.try_cli(&["backup", backup]).status.success());
    let there = |arguments: &[&str]| {
        let mut command = service.command("weir");
        command.args(arguments).current_dir(&elsewhere).env("DATABASE_URL", "sqlite://data/weir.db");
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    for arguments in
        [&["jobs", "list"][..], &["team", "list"], &["key", "list"], &["console", "link"], &["backup", backup]]
    {
        let (code, said) = there(arguments);
        assert!(code == Some(1) && said.contains("there is no database at data/weir.db"), "{arguments:?}: {said}");
    }
    let (_, said) = there(&["doctor"]);
    assert!(said.contains("data/weir.db: not there yet"), "{said}");
    assert!(!made.exists());

    // One of another installation does not take the backup's place, whether it was started yet or not.
    for make in [&["migrate"][..], &["key", "create", "--team", "default"]] {
        assert_eq!(there(make).0, Some(if make.len() == 1 { 0 } else { 1 }), "{make:?}");
        let (code, said) = there(&["backup", backup]);
        assert!(code == Some(1) && said.contains("of another installation"), "{said}");
    }
    let said = service.try_cli(&["backup", backup]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

/// As where the connection breaks between the commit and its answer.
#[tokio::test]
async fn what_a_command_has_committed_is_shown_though_the_answer_to_the_commit_is_lost() {
    let service = TestService::start(Database::Sqlite).await;
    let lost = |arguments: &[&str]| {
        let mut command = service.command("weir");
        let output = command.args(arguments).arg("--json").env(ENVIRONMENT, "call_committed=fail").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert!(lost(&["team", "add", "lost"])["id"].is_string());
    assert_eq!(lost(&["credits", "grant", "--team", "lost", "70"])["granted"], 70, "once");
    let key = lost(&["key", "create", "--team", "lost"]);
    let caller = Caller::new(service.base(), key["key"].as_str());
    assert_eq!(caller.get("/v2/team/credit-usage").await.status, 200);
    assert_eq!(lost(&["key", "revoke", key["id"].as_str().unwrap()])["revoked"], true);
    assert_eq!(lost(&["team", "remove", "lost", "--yes"])["wasRemoved"], false);
    assert_eq!(lost(&["team", "remove", "lost", "--yes"])["wasRemoved"], true);
}

#[tokio::test]
async fn a_key_is_told_from_others_by_its_name() {
    let service = TestService::start(Database::Sqlite).await;
    service.cli_json(&["key", "create", "--team", "default", "--name", "shop", "--json"]);
    let keys = list(&service.cli_json(&["key", "list", "--json"]));
    assert!(keys.iter().any(|key| key["name"] == "shop" && key["lastUsedAt"].is_null()), "{keys:#?}");
}

/// What `weir doctor --json` says with these settings on top of the service's: its exit code, and each check.
fn examined(service: &TestService, settings: &[(&str, &str)]) -> (Option<i32>, Vec<Value>) {
    let output = service.command("weir").args(["doctor", "--json"]).envs(settings.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let checks = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (output.status.code(), list(&checks))
}

fn check<'a>(checks: &'a [Value], name: &str) -> &'a Value {
    checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no {name}: {checks:#?}"))
}

both_databases! {
    async fn doctor_finds_a_machine_that_has_everything_well(database) {
        let is_postgres = matches!(database, Database::Postgres(_));
        let service = TestService::start(database).await;
        let (code, checks) = examined(&service, &[]);
        assert_eq!(code, Some(0), "{checks:#?}");
        for name in ["database", "clock", "blobs", "one store", "disk", "open files", "chromium", "sandbox", "box folder", "boxes", "recognition"] {
            assert_eq!(check(&checks, name)["ok"], true, "{checks:#?}");
        }
        assert_eq!(checks.iter().any(|check| check["check"] == "listen"), is_postgres);
        // What is weaker than it could be is told with its mend, as what fails is.
        for found in &checks {
            assert_eq!(found["mend"].is_string(), found["state"] != "ok", "{found}");
        }
        let lines = service.cli(&["doctor"]);
        assert_eq!(lines.lines().count(), checks.len(), "one line a check: {lines}");
    }
}

#[tokio::test]
async fn doctor_names_what_is_wrong_with_its_mend() {
    let service = TestService::start_with(ServiceOptions::new(Database::Sqlite).with_sessions()).await;
    // A folder on the way that shuts out the users of boxes, as a TMPDIR in root's home does.
    let shut = service.folder().join("shut");
    std::fs::create_dir_all(&shut).unwrap();
    std::fs::set_permissions(&shut, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let run_dir = shut.join("run").display().to_string();
    let missing = format!("file://{}/weir.db/blobs", service.folder().display());
    let mut expected = vec![
        ("chromium", ("WEIR_CHROMIUM", "/nowhere/chromium"), "/nowhere/chromium", "WEIR_CHROMIUM"),
        ("boxes", ("WEIR_CHROMIUM", "/nowhere/chromium"), "", "see chromium"),
        ("blobs", ("WEIR_BLOBS", missing.as_str()), "weir.db/blobs", "WEIR_BLOBS"),
        ("runners", ("WEIR_RUNNERS", "/nowhere"), "/nowhere", "scripts/setup"),
    ];
    if weir_tests::is_root() {
        expected.push(("box folder", ("WEIR_RUN_DIR", run_dir.as_str()), "shuts out the users of boxes", "/run/weir"));
    }
    for (name, setting, what, mend) in expected {
        let (code, checks) = examined(&service, &[setting]);
        let found = check(&checks, name);
        assert_eq!((code, &found["ok"]), (Some(1), &json!(false)), "{found}");
        let says = |key: &str, text: &str| found[key].as_str().is_some_and(|said| said.contains(text));
        assert!(says("detail", what) && says("mend", mend), "{found}");
    }
    let (_, checks) = examined(&service, &[]);
    let installed = check(&checks, "runners")["detail"].as_str().unwrap().replace("installed in ", "");
    let broken = runners_without_a_library(&service, Path::new(&installed));
    let (code, checks) = examined(&service, &[("WEIR_RUNNERS", broken.as_str())]);
    let found = check(&checks, "runners");
    assert!(code == Some(1) && found["detail"].as_str().unwrap().contains("libatomic.so.1"), "{found}");
    assert!(found["mend"].as_str().unwrap().contains("libatomic1"), "{found}");
    let (_, checks) = examined(&service, &[("WEIR_SANDBOX", "off")]);
    assert_eq!(check(&checks, "sandbox")["state"], "weak");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_asks_the_model_and_the_search_backends_where_there_are_any() {
    let service = TestService::start(Database::Sqlite).await;
    let (_, checks) = examined(&service, &[]);
    assert!(!checks.iter().any(|check| ["model", "search"].contains(&check["check"].as_str().unwrap())), "{checks:#?}");
    let well = ModelStandIn::start(vec![Said::json(&json!({"ok": true}))]).await;
    let locked = ModelStandIn::start(vec![Said::Status(401)]).await;
    let unknown = ModelStandIn::start(vec![Said::Status(404)]).await;
    let nowhere = format!("http://127.0.0.1:{}/v1", weir_tests::free_port());
    for (url, state, mend) in [
        (&well.url, "ok", None),
        (&locked.url, "fail", Some("WEIR_LLM_KEY")),
        (&unknown.url, "fail", Some("WEIR_LLM_MODEL")),
        (&nowhere, "fail", Some("WEIR_LLM_URL")),
    ] {
        let (code, checks) = examined(&service, &[("WEIR_LLM_URL", url), ("WEIR_LLM_MODEL", "m-1")]);
        let found = check(&checks, "model");
        assert_eq!((code, &found["state"]), (Some(i32::from(state == "fail")), &json!(state)), "{found}");
        let is_said = mend.is_none_or(|mend| found["mend"].as_str().is_some_and(|said| said.contains(mend)));
        assert!(is_said && found["detail"].as_str().unwrap().starts_with("m-1 at 127.0.0.1"), "{found}");
    }
    let (code, checks) = examined(&service, &[("WEIR_SEARCH_URL", nowhere.as_str())]);
    let found = check(&checks, "search");
    assert_eq!((code, &found["state"]), (Some(1), &json!("fail")), "{found}");
    // Each backend is told of, with what it answers.
    let locked = SearchStandIn::start(|_| Answered::Status(401, "x-locked: yes")).await;
    let page = SearchStandIn::start(|_| Answered::Html).await;
    let all = format!("{},{},{nowhere}", locked.url, page.url);
    let (code, checks) = examined(&service, &[("WEIR_SEARCH_URL", all.as_str())]);
    let found: Vec<&Value> = checks.iter().filter(|check| check["check"] == "search").collect();
    assert_eq!((code, found.len()), (Some(1), 3), "{checks:#?}");
    for (found, detail, mend) in [
        (found[0], "answers with status 401", "password"),
        (found[1], "does not answer with JSON", "search.formats"),
        (found[2], "cannot be reached", "start it"),
    ] {
        let says = |key: &str, text: &str| found[key].as_str().is_some_and(|said| said.contains(text));
        assert!(says("detail", "SearXNG at 127.0.0.1:") && says("detail", detail) && says("mend", mend), "{found}");
    }
}

/// A file of root's that the service's user may not read: the check is made as somebody else.
#[tokio::test]
async fn doctor_and_the_start_tell_of_a_key_that_cannot_be_read() {
    if !weir_tests::is_root() {
        eprintln!("skipped: only root gives files to others");
        return;
    }
    let folder = temporary("key");
    std::fs::create_dir_all(folder.join("data")).unwrap();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    std::fs::write(folder.join("data/api-key"), "a-key-of-root").unwrap();
    std::fs::set_permissions(folder.join("data/api-key"), Permissions::from_mode(0o600)).unwrap();
    let nobody = 65_534;
    std::os::unix::fs::chown(folder.join("data"), Some(nobody), Some(nobody)).unwrap();
    // The build folder may lie where nobody else comes to.
    let program = folder.join("weir");
    std::fs::copy(weir_tests::binary_folder().join("weir"), &program).unwrap();
    let said = |argument: &str| {
        let mut command = Command::new(&program);
        command.arg(argument).current_dir(&folder).env_clear().env("PATH", std::env::var("PATH").unwrap());
        command.env("WEIR_BIND", "127.0.0.1:0").uid(nobody).gid(nobody);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    for argument in ["doctor", "serve"] {
        let (code, said) = said(argument);
        assert!(code == Some(1) && said.contains("cannot read data/api-key") && said.contains("chown"), "{said}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The installed runners with a Node that starts as on a machine without one of its libraries.
fn runners_without_a_library(service: &TestService, installed: &Path) -> String {
    let folder = service.folder().join("runners");
    std::fs::create_dir_all(&folder).unwrap();
    for part in ["node_modules", "python"] {
        std::os::unix::fs::symlink(installed.join(part), folder.join(part)).unwrap();
    }
    let node = folder.join("node");
    std::fs::write(&node, "#!/bin/sh\necho 'libatomic.so.1: cannot open shared object file' >&2\nexit 127\n").unwrap();
    std::fs::set_permissions(&node, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut record: Value = serde_json::from_slice(&std::fs::read(installed.join("installed.json")).unwrap()).unwrap();
    record["node"] = json!(node);
    std::fs::write(folder.join("installed.json"), record.to_string()).unwrap();
    folder.display().to_string()
}

#[tokio::test]
async fn doctor_without_a_database_says_so_and_goes_on() {
    let service = TestService::start(Database::Sqlite).await;
    let nowhere = format!("postgres://nobody:hidden-word@127.0.0.1:{}/none", weir_tests::free_port());
    let (code, checks) = examined(&service, &[("DATABASE_URL", nowhere.as_str())]);
    let found = check(&checks, "database");
    assert_eq!((code, &found["ok"]), (Some(1), &json!(false)));
    assert!(found["detail"].as_str().unwrap().contains("refused"), "{found}");
    assert_eq!(check(&checks, "disk")["ok"], true);
    assert!(!json!(checks).to_string().contains("hidden-word"), "{checks:#?}");
    let output = service.command("weir").args(["team", "list"]).env("DATABASE_URL", &nowhere).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains("refused") && said.contains("nobody@127.0.0.1:"),
        "{said}"
    );
    assert!(!said.contains("hidden-word"), "{said}");
}

#[tokio::test]
async fn doctor_sees_blobs_that_are_not_shared() {
    let service = TestService::start(Database::Sqlite).await;
    // A worker as another machine would announce it.
    let other = "INSERT INTO worker_node (id, name, host, pid, address, state, slots, session_slots, started_at, heartbeat_at) \
                 SELECT '0190c0de-0000-7000-8000-0000000000aa', 'stand-in', 'another boot', 1, '127.0.0.1:9', state, 0, 0, started_at, heartbeat_at + 60000 \
                 FROM worker_node WHERE state = 'live'";
    service.execute(other).await;
    let (code, checks) = examined(&service, &[]);
    let found = check(&checks, "one store");
    assert!(code == Some(1) && found["detail"].as_str().unwrap().contains("stand-in"), "{found}");
    assert!(found["mend"].as_str().unwrap().contains("s3://"), "{found}");
    service.execute("DELETE FROM worker_node WHERE name = 'stand-in'").await;
    assert_eq!(check(&examined(&service, &[]).1, "one store")["ok"], true);
}

#[tokio::test]
async fn config_shows_each_setting_with_its_source_and_no_secret() {
    let mut service = TestService::start(Database::Sqlite).await;
    service.set_env("WEIR_API_KEY", "key-word-of-the-tests");
    service.set_env("WEIR_PROXY_BASIC", "us=http://name:proxy-word@127.0.0.1:9");
    service.remove_env("WEIR_LOG");
    let file = "WEIR_RESULT_TTL=3h\nWEIR_LLM_KEY=model-word\nWEIR_BIND=127.0.0.1:1\nWEIR_RESULT_TLT=1h\n";
    std::fs::write(service.folder().join(".env"), file).unwrap();
    let output = service.try_cli(&["config", "--json"]);
    let settings = list(&serde_json::from_slice(&output.stdout).unwrap());
    let find = |name: &str| settings.iter().find(|setting| setting["name"] == name).unwrap().clone();
    for (name, value, source) in [
        ("WEIR_RESULT_TTL", json!("3h"), ".env"),
        ("WEIR_LLM_KEY", json!("***"), ".env"),
        ("WEIR_API_KEY", json!("***"), "environment"),
        ("WEIR_PROXY_BASIC", json!("us=http://name:***@127.0.0.1:9/"), "environment"),
        ("WEIR_BIND", json!(format!("127.0.0.1:{}", service.port())), "environment"),
        ("WEIR_LOG", json!("info"), "default"),
        ("WEIR_CHROMIUM", json!(null), "default"),
    ] {
        let found = find(name);
        assert_eq!((&found["value"], &found["source"]), (&value, &json!(source)), "{found}");
        assert!(!found["meaning"].as_str().unwrap().is_empty() && !found["default"].as_str().unwrap().is_empty());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let misspelt = "WEIR_RESULT_TLT (did you mean WEIR_RESULT_TTL?) is no setting";
    assert!(output.status.success() && said.contains(misspelt), "{said}");
    let text = service.cli(&["config"]);
    assert_eq!(text.lines().count(), settings.len() + 1, "one line a setting: {text}");
    let all = String::from_utf8_lossy(&output.stdout).into_owned() + &text;
    assert!(!all.contains("-word"), "{all}");

    // One that is wrong is shown and told.
    service.set_env("WEIR_SANDBOX", "perhaps");
    let output = service.try_cli(&["config"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("perhaps"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("strict or degraded or off"));
    service.remove_env("WEIR_SANDBOX");
    let output = service.command("weir").arg("config").env("WEIR_PUBLIC_URL", "https://a.test/?b=c").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("without query and fragment"), "{said}");
    // A file that cannot be read is not left out in silence, and its lines are not shown but counted.
    std::fs::write(service.folder().join(".env"), "# ours\n\nWEIR_KEY='secret-word\nand more\n").unwrap();
    let output = service.try_cli(&["team", "list"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains(".env: line 3 ") && !said.contains("secret-word"),
        "{said}"
    );
    std::fs::remove_file(service.folder().join(".env")).unwrap();
}

#[tokio::test]
async fn the_setting_that_counts_or_does_not_is_named() {
    let misspelt = ServiceOptions::new(Database::Sqlite).env("WEIR_ALLOW_NET", "10.9.8.7/32");
    let service = TestService::start_with(misspelt).await;
    for log in ["api.log", "worker-0.log"] {
        let text = wait_until("the name is told of", || async {
            let text = std::fs::read_to_string(service.folder().join(log)).unwrap();
            text.contains("WEIR_ALLOW_NET (did you mean WEIR_ALLOW_NETS?)").then_some(text)
        })
        .await;
        assert!(text.contains("WARN") && !text.contains("10.9.8.7"), "{log}: {text}");
    }

    // A link that leads somewhere, whatever the API listens on.
    let link = |bind: &str, arguments: &[&str]| {
        let mut command = service.command("weir");
        let output = command.args(["console", "link"]).args(arguments).env("WEIR_BIND", bind).output().unwrap();
        let [link, said] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (link, said)
    };
    for (bind, base) in [("0.0.0.0:4040", "http://127.0.0.1:4040"), ("[::]:4040", "http://[::1]:4040")] {
        let (url, said) = link(bind, &[]);
        assert!(url.starts_with(&format!("{base}/console/sign-in#")), "{url}");
        assert!(said.contains("--base") && said.contains("WEIR_PUBLIC_URL"), "{said}");
    }
    for (bind, arguments, base) in [
        ("127.0.0.2:4040", &[][..], "http://127.0.0.2:4040"),
        ("0.0.0.0:4040", &["--base", "https://weir.test/"], "https://weir.test"),
    ] {
        let (url, said) = link(bind, arguments);
        assert!(url.starts_with(&format!("{base}/console/sign-in#")) && said.is_empty(), "{url} {said}");
    }

    let show = |credits: &str, more: &[&str]| {
        let mut command = service.command("weir");
        let output =
            command.args(["credits", "show", "--team", "tests"]).args(more).env("WEIR_CREDITS", credits).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let unlimited = show("unlimited", &[]);
    assert!(unlimited.trim_end().ends_with(", left: unlimited (WEIR_CREDITS)"), "{unlimited}");
    let unlimited: Value = serde_json::from_str(&show("unlimited", &["--json"])).unwrap();
    assert_eq!((&unlimited["left"], &unlimited["granted"]), (&Value::Null, &json!(0)), "{unlimited}");
    let metered = show("metered", &[]);
    assert!(metered.trim_end().ends_with(", left 0"), "{metered}");
}

#[tokio::test]
async fn migrate_makes_a_database_and_may_run_again() {
    let service = TestService::start(Database::Sqlite).await;
    let fresh = format!("sqlite://{}/fresh.db", service.folder().display());
    for _ in 0..2 {
        assert!(service.command("weir").arg("migrate").env("DATABASE_URL", &fresh).status().unwrap().success());
    }
    service.cli(&["migrate"]);
    assert_eq!(service.anonymous().get("/readyz").await.status, 200);
}

/// `weir migrate --check --json`: its exit code, and what it prints.
fn checked(service: &TestService) -> (Option<i32>, Value) {
    let output = service.try_cli(&["migrate", "--check", "--json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}")))
}

both_databases! {
    async fn a_database_that_is_newer_is_used_and_one_that_was_changed_is_refused(database) {
        let mut service = TestService::start(database).await;
        assert_eq!(checked(&service), (Some(0), json!({ "missing": [], "newer": [], "damaged": [] })));
        service.stop();
        service.execute(
            "INSERT INTO _service_migrations (version, description, success, checksum, execution_time) \
             SELECT 9001, 'of tomorrow', success, checksum, 0 FROM _service_migrations WHERE version = 1",
        ).await;
        service.start_api();
        service.start_worker(0);
        service.ready().await;
        let site = FixtureSite::start().await;
        let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 1) })).await.id();
        assert_eq!(finished(service.caller(), &id, Duration::from_secs(60)).await["completed"], 1);
        let logs = service.logs();
        assert_eq!(logs.matches("9001_of_tomorrow").count(), 2, "the API and the worker name it: {logs}");
        let (code, found) = checked(&service);
        assert_eq!((code, &found["newer"]), (Some(0), &json!(["9001_of_tomorrow"])));
        service.stop();

        let change = "UPDATE _service_migrations SET checksum = (SELECT checksum FROM _service_migrations WHERE \
                      version = 1) WHERE version = 2";
        service.execute(change).await;
        let output = service.try_cli(&["migrate"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("0002_sessions"), "{said}");
        let (code, found) = checked(&service);
        assert_eq!((code, &found["damaged"]), (Some(1), &json!(["0002_sessions"])));
        for (binary, argument) in [("weir", Some("serve")), ("weir-worker", None)] {
            let output = service.command(binary).args(argument).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains("0002_sessions"), "{binary}: {said}");
        }
        service.abandon();
    }

    async fn migrate_check_lists_what_is_missing_and_changes_nothing(database) {
        let folder = if matches!(database, Database::Sqlite) { "migrations/sqlite" } else { "migrations/postgres" };
        let mut service = TestService::start(database).await;
        service.stop();
        service.execute("DELETE FROM _service_migrations WHERE version >= 19").await;
        let files = std::fs::read_dir(checkout().join(folder)).unwrap();
        let names = files.map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
        let mut missing: Vec<String> = names.filter(|name| name.as_str() >= "0019").collect();
        missing.sort();
        for _ in 0..2 {
            let (code, found) = checked(&service);
            assert_eq!((code, &found["missing"]), (Some(1), &json!(missing)));
        }
        let text = service.try_cli(&["migrate", "--check"]);
        assert!(String::from_utf8_lossy(&text.stdout).contains("to be applied: 0019_search"));
        service.abandon();
    }
}

#[tokio::test]
async fn migrate_check_makes_no_file() {
    let service = TestService::start(Database::Sqlite).await;
    let path = service.folder().join("none/weir.db");
    let mut command = service.command("weir");
    let output = command.args(["migrate", "--check"]).env("DATABASE_URL", format!("sqlite://{}", path.display()));
    let output = output.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(1) && text.contains("0001_core") && text.contains("queue "), "{text}");
    assert!(!path.parent().unwrap().exists(), "nothing is made");
}

#[tokio::test]
async fn processes_wait_for_a_database_that_starts_after_them() {
    if Database::postgres().is_none() {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return;
    }
    let cluster = PostgresCluster::start();
    let mut service = TestService::start(Database::Postgres(cluster.url.clone())).await;
    service.stop();
    cluster.kill();
    // Each of the two logs counts: a process says it again every ten seconds.
    let are_waiting = |service: &TestService, from: [usize; 2]| {
        ["api.log", "worker-0.log"].iter().zip(from).all(|(log, from)| {
            let text = std::fs::read_to_string(service.folder().join(log)).unwrap();
            text[from..].contains("waiting for the database")
        })
    };
    let logged = |service: &TestService| {
        ["api.log", "worker-0.log"].map(|log| std::fs::read_to_string(service.folder().join(log)).unwrap().len())
    };
    let before = logged(&service);
    let log = service.folder().join("migrate.log");
    let started = |service: &TestService| {
        let mut command = service.command("weir");
        command.arg("migrate");
        // The one thing in the address that nobody may read.
        command.env("DATABASE_URL", service.database_url().replace("weir@", "weir:hidden-word@"));
        Process::start("migrate", command, &log)
    };
    let is_waiting = async |migrate: &Process| {
        wait_until("it says that it waits", || async {
            migrate.tail(40).contains("waiting for the database").then_some(())
        })
        .await;
    };

    // The stop ends the wait.
    let mut migrate = started(&service);
    is_waiting(&migrate).await;
    assert_eq!(migrate.terminate(Duration::from_secs(40)).code(), Some(1), "it was not done");
    service.start_api();
    service.start_worker(0);
    wait_until("API and worker wait", || async { are_waiting(&service, before).then_some(()) }).await;
    service.stop();

    // The server does.
    let before = logged(&service);
    service.start_api();
    service.start_worker(0);
    let mut migrate = started(&service);
    is_waiting(&migrate).await;
    wait_until("API and worker wait", || async { are_waiting(&service, before).then_some(()) }).await;
    cluster.restart();
    assert!(migrate.await_end(Duration::from_secs(60)).success(), "{}", migrate.tail(20));
    service.ready().await;
    let workers = service.cli_json(&["workers", "list", "--json"]);
    assert!(!workers.as_array().unwrap().is_empty());
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("127.0.0.1:") && !text.contains("hidden-word"), "{text}");

    // What does not pass is told at once.
    let mut command = service.command("weir");
    let unknown = format!("{}_unknown", service.database_url());
    let output = command.arg("migrate").env("DATABASE_URL", unknown).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && text.contains("does not exist"), "{text}");
    assert!(!text.contains("waiting for the database"), "{text}");
    drop(service);
    drop(cluster);
}

#[tokio::test]
async fn processes_wait_for_a_disk_that_is_full() {
    let Some(disk) = SmallDisk::mount("48m") else {
        eprintln!("skipped: this user may not mount a small file system");
        return;
    };
    let service = TestService::start(Database::Sqlite).await;
    let migrate = |name: &str| {
        let mut command = service.command("weir");
        command.arg("migrate").env("DATABASE_URL", format!("sqlite://{}", disk.0.join(name).display()));
        Process::start(name, command, &service.folder().join(format!("{name}.log")))
    };
    // One that was closed in good order, and has to be given its log again; and one that has no tables yet.
    assert!(migrate("old.db").await_end(Duration::from_secs(30)).success());
    let ballast = disk.fill();
    let processes = ["old.db", "new.db"].map(migrate);
    for process in &processes {
        wait_until("it says that it waits", || async { process.tail(40).contains("its disk is full").then_some(()) })
            .await;
    }
    std::fs::remove_file(ballast).unwrap();
    for mut process in processes {
        assert!(process.await_end(Duration::from_secs(30)).success(), "{}", process.tail(20));
    }
}

#[tokio::test]
async fn a_migration_that_waits_says_for_whom_and_ends_with_the_stop() {
    let Some(database) = Database::postgres() else {
        eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
        return;
    };
    let mut service = TestService::start(database).await;
    service.stop();
    let mut reader = sqlx::PgConnection::connect(service.database_url()).await.unwrap();
    let before = "DELETE FROM _service_migrations WHERE version = 47; ALTER TABLE page ADD CONSTRAINT page_state_check \
                  CHECK (TRUE); ALTER TABLE job ADD CONSTRAINT job_kind_check CHECK (TRUE), ADD CONSTRAINT \
                  job_status_check CHECK (TRUE)";
    for sql in [before, "BEGIN", "LOCK TABLE page IN ACCESS SHARE MODE"] {
        sqlx::raw_sql(sql).execute(&mut reader).await.unwrap();
    }
    let holder: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut reader).await.unwrap();
    for (argument, code) in [("migrate", 1), ("serve", 0)] {
        let mut command = service.command("weir");
        command.arg(argument);
        let mut process = Process::start(argument, command, &service.folder().join(format!("{argument}.log")));
        wait_until("it says for whom it waits", || async {
            process.tail(40).contains(&format!("waits for process {holder} of Postgres")).then_some(())
        })
        .await;
        assert_eq!(process.terminate(Duration::from_secs(5)).code(), Some(code), "{argument}");
    }
    reader.close().await.unwrap();
    service.cli(&["migrate"]);
    service.abandon();
}

#[tokio::test]
async fn what_is_logged_into_a_file_has_no_colours() {
    let service = TestService::start(Database::Sqlite).await;
    assert_eq!(service.post("/v2/scrape", &json!({})).await.status, 400);
    let logs = service.logs();
    assert!(logs.contains(" status=400 ") && logs.contains("the worker is ready"), "{logs}");
    assert!(!logs.contains('\u{1b}'), "{logs:?}");
}

#[test]
fn a_compiler_that_is_too_old_or_missing_is_told_of_before_anything_is_installed() {
    let folder = temporary("rust");
    std::fs::create_dir(&folder).unwrap();
    let rustc = folder.join("rustc");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let set_up = |says: &str| {
        std::fs::write(&rustc, format!("#!/bin/sh\n{says}\n")).unwrap();
        std::fs::set_permissions(&rustc, Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new(checkout().join("scripts/setup"));
        let output = command.arg("--compiler").env("PATH", &path).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let old = set_up("echo 'rustc 1.75.0 (82e1608df 2023-12-21)'");
    assert!(!old.0 && old.1.contains("Rust 1.75.0 is too old: install 1."), "{old:?}");
    let none = set_up("exit 1");
    assert!(!none.0 && none.1.contains("Rust is missing"), "{none:?}");
    let new = set_up("echo 'rustc 1.200.1-nightly (82e1608df 2033-12-21)'");
    assert!(new.0 && new.1.is_empty(), "{new:?}");
    std::fs::remove_dir_all(folder).unwrap();
}
