//! The console's pages in real Chromium, as people use them: the suites under tests/console.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use weir_tests::{
    Database, ModelStandIn, Said, ServiceOptions, TestService, both_databases, checkout, first_on, long_tests,
};
use weir_worker::sandbox::find_chromium;

const OPERATOR: &str = "operators-key-of-the-tests";
const READER: &str = "readers-key-of-the-tests";

/// Where `scripts/setup --tests` puts what drives the pages.
fn modules() -> Option<PathBuf> {
    weir_tests::installed("console/node_modules")
}

/// A service with the keys of operators, whose sandbox works: suites open sessions.
async fn service(database: Database) -> TestService {
    service_with(ServiceOptions::new(database)).await
}

async fn service_with(options: ServiceOptions) -> TestService {
    let options = options.env("WEIR_CONSOLE_KEY", OPERATOR).env("WEIR_CONSOLE_READ_KEY", READER);
    let service = TestService::start_with(options.with_sessions()).await;
    service.takes_sessions().await;
    service
}

fn script(name: &str, modules: PathBuf) -> tokio::process::Command {
    let mut command = tokio::process::Command::new("node");
    command
        .arg(checkout().join("tests/console").join(name))
        .env("NODE_PATH", modules)
        .env("ROOT", checkout())
        .env("CHROMIUM", find_chromium(None).unwrap().path)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Runs a suite to its end, shows what it says, and fails when a part of it failed.
async fn passes(mut command: tokio::process::Command) {
    let output = command.output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    let closing = text.lines().rev().find(|line| line.contains(" passed, ")).expect("a closing line");
    assert!(output.status.success() && closing.ends_with(", 0 failed"), "{closing}");
}

/// The same against a service.
async fn passes_with(service: &TestService, mut command: tokio::process::Command) {
    command.env("BASE", service.base()).env("KEY", service.key()).env("OPERATOR", OPERATOR).env("READER", READER);
    passes(command).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_files_are_whole_small_and_make_no_markup_of_text() {
    let Some(modules) = modules() else { return };
    passes(script("files.cjs", modules)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_reads_what_strangers_wrote_and_writes_calls_that_say_just_that() {
    let Some(modules) = modules() else { return };
    let Some(python) = weir_tests::installed("venv/bin/python") else { return };
    let mut command = script("reading.cjs", modules);
    command.env("PYTHON", python);
    passes(command).await;
}

both_databases! {
    // Two minutes on each database; the walk, hostile content and axe go through every page in each run of the tests.
    async fn every_page_shows_and_does_what_it_should(database) {
        if !long_tests() {
            return;
        }
        let Some(modules) = modules() else { return };
        let Some(python) = weir_tests::installed("venv/bin/python") else { return };
        let Some(sdk) = weir_tests::installed("js/node_modules") else { return };
        let service = service(database).await;
        let other = service.new_team("others");
        let mut command = script("pages.cjs", modules);
        command.env("OTHER_KEY", other.key.as_deref().unwrap()).env("DRAIN", "1").env("PYTHON", python).env("SDK", sdk);
        passes_with(&service, command).await;
    }

    // The log tells each statement. Nobody is scraped meanwhile; what the service asks by itself counts as well.
    async fn an_open_tab_costs_next_to_nothing(database) {
        // Two looks of half a minute each.
        if !long_tests() {
            return;
        }
        let Some(modules) = modules() else { return };
        let service = service_with(ServiceOptions::new(database).env("WEIR_LOG", "info,sqlx::query=debug")).await;
        let mut command = script("open.cjs", modules);
        command.env("BASE", service.base()).env("KEY", service.key()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut tab = command.spawn().unwrap();
        let mut lines = BufReader::new(tab.stdout.take().unwrap()).lines();
        while lines.next_line().await.unwrap().is_some_and(|line| line != "open") {}
        let with_tab = used(&service, WHILE).await;
        drop(tab.stdin.take());
        assert!(tab.wait().await.unwrap().success());
        // Afterwards: what a process does in its first minute is not the tab's.
        let without = used(&service, WHILE).await;
        println!("with a tab {with_tab:?}, without one {without:?}, in {WHILE:?}");
        assert!(with_tab.statements > 10, "the log tells each statement");
        let statements = with_tab.statements.saturating_sub(without.statements);
        assert!(statements <= WHILE.as_secs(), "{statements} statements in {WHILE:?}");
        // The log itself, and a program that is not optimized, cost more than the tab.
        let most = WHILE.mul_f64(if cfg!(debug_assertions) { 0.03 } else { 0.01 });
        assert!(with_tab.cpu.saturating_sub(without.cpu) < most, "{with_tab:?}, {without:?}");
    }
}

first_on! {
    postgres:

    async fn a_first_time_operator_finds_the_way(database) {
        let Some(modules) = modules() else { return };
        let service = service(database).await;
        let link = service.cli(&["console", "link", "--base", service.base()]);
        let of_team = service.cli(&["console", "link", "--team", "tests", "--base", service.base()]);
        let mut command = script("walk.cjs", modules);
        command.env("LINK", link.trim()).env("LINK_OF_TEAM", of_team.trim());
        passes_with(&service, command).await;
    }
}

first_on! {
    sqlite:

    async fn hostile_content_runs_nothing(database) {
        let Some(modules) = modules() else { return };
        let service = service(database).await;
        passes_with(&service, script("hostile.cjs", modules)).await;
    }

    async fn calls_questions_lists_and_charts_hold_what_they_promise(database) {
        let Some(modules) = modules() else { return };
        let service = service(database).await;
        let other = service.new_team("others");
        let mut command = script("details.cjs", modules);
        command.env("OTHER_KEY", other.key.as_deref().unwrap());
        passes_with(&service, command).await;
    }

    async fn axe_finds_nothing_on_any_page(database) {
        let Some(modules) = modules() else { return };
        let service = service(database).await;
        passes_with(&service, script("axe.cjs", modules)).await;
    }

    async fn monitors_and_agents_are_watched_and_worked_with(database) {
        let Some(modules) = modules() else { return };
        let end = json!({"thought": "I know.", "tool": "finish", "answer": "It costs 31 crowns.", "sources": []});
        let model = ModelStandIn::start(vec![Said::json(&end)]).await;
        let options = ServiceOptions::new(database).env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m");
        let service = service_with(options).await;
        passes_with(&service, script("monitors.cjs", modules)).await;
    }

    async fn what_goes_on_is_seen_while_somebody_looks(database) {
        let Some(modules) = modules() else { return };
        let scroll = Said::does("scroll", json!({"direction": "down"}));
        let finish = Said::does("finish", json!({"answer": "in stock", "success": true}));
        let model = ModelStandIn::start(vec![scroll, finish]).await;
        let options = ServiceOptions::new(database).env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m");
        let service = service_with(options).await;
        passes_with(&service, script("live.cjs", modules)).await;
    }
}

/// The pictures of docs/console.md; `PICTURES` names the folder that they go to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_pictures_can_be_taken_anew() {
    if !long_tests() {
        return;
    }
    let Some(modules) = modules() else { return };
    let hosts = ["kettles", "docs.harbour", "news.lighthouse"].map(|name| format!("{name}.example=127.0.0.2"));
    let service = service_with(ServiceOptions::new(Database::Sqlite).env("WEIR_ALLOW_HOSTS", hosts.join(","))).await;
    let folder = std::env::var("PICTURES").map_or_else(|_| service.folder().join("pictures"), PathBuf::from);
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = script("pictures.cjs", modules);
    command.env("OUT", &folder).env("SITES", format!("127.0.0.2:{}", weir_tests::free_port()));
    if weir_tests::is_root() {
        command.env("SITES", "127.0.0.2:80");
    }
    passes_with(&service, command).await;
    assert_eq!(weir_tests::files_below(&folder).len(), 14);
}

/// How long an open tab is looked at.
const WHILE: Duration = Duration::from_secs(30);

/// What the API process has used in a while.
#[derive(Debug)]
struct Used {
    statements: u64,
    cpu: Duration,
}

async fn used(service: &TestService, a_while: Duration) -> Used {
    let now = || {
        let log = std::fs::read_to_string(service.folder().join("api.log")).unwrap();
        Used { statements: log.matches("summary").count() as u64, cpu: service.api_cpu() }
    };
    let before = now();
    tokio::time::sleep(a_while).await;
    let after = now();
    Used { statements: after.statements - before.statements, cpu: after.cpu - before.cpu }
}
