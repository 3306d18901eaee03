//! Runs the suites under tests/sdk: the official SDKs, unmodified, against a real service on both databases.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use weir_tests::{
    Database, FixtureSite, ModelStandIn, Said, SearchStandIn, ServiceOptions, TestService, checkout, first_on,
    installed, require_all,
};

/// Runs one suite, shows its output, notes its counts for scripts/test, and fails when the suite failed.
async fn suite(name: &str, mut command: tokio::process::Command, database: Database) {
    let name = named(name, &database);
    let site = FixtureSite::start().await;
    run(&name, &mut command, ServiceOptions::new(database), &site).await;
}

/// A suite's name with that of its database.
pub fn named(suite: &str, database: &Database) -> String {
    format!("{suite}-{}", if matches!(database, Database::Sqlite) { "sqlite" } else { "postgres" })
}

/// The first marker of main content in what a model was shown.
fn marker_in(shown: &Value) -> String {
    let shown = shown.as_str().unwrap();
    let rest = &shown[shown.find("MAIN").expect("a page of the test site")..];
    rest.chars().take_while(char::is_ascii_alphanumeric).collect()
}

/// The same with a language model that finishes every task and reads "seen" out of every page.
pub async fn suite_with_model(name: &str, mut command: tokio::process::Command, database: Database) {
    let site = FixtureSite::start().await;
    let model = ModelStandIn::answering(|name, asked| match name {
        "action" => Said::does("finish", json!({"answer": "seen", "success": true})),
        "data" => Said::json(&json!({"seen": "seen"})),
        "quotations" => Said::json(&json!({"passages": [marker_in(&asked["messages"][1]["content"])]})),
        "residue" => Said::json(&json!({"drop": []})),
        "names" => Said::json(&json!({"found": []})),
        "hits" => {
            let verdict =
                |number: i64| json!({"number": number, "meaningful": true, "confidence": "high", "reason": "seen"});
            Said::json(&json!({"hits": (1..=10).map(verdict).collect::<Vec<_>>()}))
        }
        "step" => {
            Said::json(&json!({"thought": "It is seen.", "tool": "finish", "answer": "seen", "data": {"seen": "seen"}}))
        }
        name => Said::json(&json!({name: "seen"})),
    })
    .await;
    let options = ServiceOptions::new(database).env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m");
    run(name, &mut command, options, &site).await;
}

async fn run(name: &str, command: &mut tokio::process::Command, options: ServiceOptions, site: &FixtureSite) {
    let hits = ["/article/7", "/article/8", "/article/9"].map(|path| site.url(path));
    let search = SearchStandIn::finding(hits.to_vec()).await;
    // As a service is by itself: with room for pages and a browser that waits.
    let options = options.workers(1).with_sessions().env("WEIR_CACHE_SIZE", "100MB").env("WEIR_WARM_BROWSERS", "1");
    let options = options.env("WEIR_SEARCH_URL", &search.url);
    let service = TestService::start_with(options).await;
    let scrape = service.post("/v2/scrape", &json!({ "url": site.url("/article/5") })).await.ok();
    command.env("WEIR_SCRAPE", scrape["data"]["metadata"]["scrapeId"].as_str().unwrap());
    passes(name, command, &service, site).await;
}

/// Runs a suite against this service and site.
pub async fn passes(name: &str, command: &mut tokio::process::Command, service: &TestService, site: &FixtureSite) {
    let command = command
        .env("WEIR_URL", service.base())
        .env("WEIR_KEY", service.key())
        .env("SITE_URL", site.url(""))
        .env("WEBHOOK_SECRET", weir_tests::WEBHOOK_SECRET)
        .env_remove("FIRECRAWL_API_KEY")
        .env_remove("FIRECRAWL_API_URL")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = command.output().await.unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{text}{errors}");

    // Each suite closes with "N passed, N failed".
    let closing = text.lines().rev().find(|line| line.contains(" passed, ")).expect("a closing line");
    let numbers: Vec<&str> = closing.split(' ').filter(|word| word.bytes().all(|byte| byte.is_ascii_digit())).collect();
    println!("{name}: {closing}");
    if let Ok(report) = std::env::var("WEIR_TEST_SDK_REPORT") {
        let mut report = std::fs::File::options().append(true).create(true).open(report).unwrap();
        writeln!(report, "{name} {} {}", numbers[0], numbers[1]).unwrap();
    }
    assert!(output.status.success() && numbers[1] == "0", "{name}: {closing}");
    assert_ne!(numbers[0], "0", "the suite ran");
}

first_on! {
    postgres:

    async fn the_official_python_sdk_works(database) {
        let Some(python) = installed("venv/bin/python") else { return };
        let mut command = tokio::process::Command::new(python);
        command.arg(checkout().join("tests/sdk/python/suite.py")).env("PYTHONDONTWRITEBYTECODE", "1");
        suite("python", command, database).await;
    }

    async fn the_official_javascript_sdk_uses_sessions(database) {
        let Some(modules) = installed("js/node_modules") else { return };
        let mut command = tokio::process::Command::new("node");
        command.arg(checkout().join("tests/sdk/js/browser.cjs")).env("NODE_PATH", modules);
        suite("javascript-sessions", command, database).await;
    }

    async fn the_official_command_line_and_mcp_server_map_and_crawl(database) {
        let Some(modules) = installed("js/node_modules") else { return };
        let mut command = tokio::process::Command::new("node");
        command.arg(checkout().join("tests/sdk/js/map.cjs")).env("NODE_PATH", modules);
        suite("map-and-crawl", command, database).await;
    }

    async fn the_official_javascript_sdk_calls_version_1(database) {
        let Some(modules) = installed("js/node_modules") else { return };
        let mut command = tokio::process::Command::new("node");
        command.arg(checkout().join("tests/sdk/js/v1.cjs")).env("NODE_PATH", modules);
        suite_with_model(&named("javascript-v1", &database), command, database).await;
    }

    async fn the_official_javascript_clients_wait_for_extractions_and_agents(database) {
        let Some(modules) = installed("js/node_modules") else { return };
        let mut command = tokio::process::Command::new("node");
        command.arg(checkout().join("tests/sdk/js/tasks.cjs")).env("NODE_PATH", modules);
        suite_with_model(&named("javascript-tasks", &database), command, database).await;
    }

    async fn the_official_rust_sdk_works(database) {
        let Some(program) = rust_suite() else { return };
        suite("rust", tokio::process::Command::new(program), database).await;
    }
}

first_on! {
    sqlite:

    async fn the_official_javascript_sdk_works(database) {
        let Some(modules) = installed("js/node_modules") else { return };
        let mut command = tokio::process::Command::new("node");
        command.arg(checkout().join("tests/sdk/js/suite.cjs")).env("NODE_PATH", modules);
        suite("javascript", command, database).await;
    }

    async fn the_official_python_sdk_uses_sessions(database) {
        let Some(python) = installed("venv/bin/python") else { return };
        let mut command = tokio::process::Command::new(python);
        command.arg(checkout().join("tests/sdk/python/browser.py")).env("PYTHONDONTWRITEBYTECODE", "1");
        suite("python-sessions", command, database).await;
    }

    async fn the_official_command_line_uses_sessions(database) {
        let Some(modules) = installed("js/node_modules") else { return };
        let mut command = tokio::process::Command::new("node");
        command.arg(checkout().join("tests/sdk/js/cli.cjs")).env("NODE_PATH", modules);
        suite("command-line", command, database).await;
    }

    async fn the_official_python_sdk_calls_version_1(database) {
        let Some(python) = installed("venv/bin/python") else { return };
        let mut command = tokio::process::Command::new(python);
        command.arg(checkout().join("tests/sdk/python/v1.py")).env("PYTHONDONTWRITEBYTECODE", "1");
        suite_with_model(&named("python-v1", &database), command, database).await;
    }

    async fn the_official_python_sdk_waits_for_extractions_and_agents(database) {
        let Some(python) = installed("venv/bin/python") else { return };
        let mut command = tokio::process::Command::new(python);
        command.arg(checkout().join("tests/sdk/python/tasks.py")).env("PYTHONDONTWRITEBYTECODE", "1");
        suite_with_model(&named("python-tasks", &database), command, database).await;
    }
}

/// The program of the Rust SDK's suites, which has a lock file of its own; `None` with a word when it is not there.
fn rust_suite() -> Option<PathBuf> {
    let program = weir_tests::binary_folder().join("sdk/debug/weir-sdk-suite");
    let program = std::env::var_os("WEIR_TEST_RUST_SDK").map_or(program, PathBuf::from);
    if program.exists() {
        return Some(program);
    }
    assert!(!require_all(), "{} is missing: scripts/test builds it", program.display());
    eprintln!("skipped: {} is missing, scripts/test builds it", program.display());
    None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_python_sdk_interacts() {
    let Some(python) = installed("venv/bin/python") else { return };
    let mut command = tokio::process::Command::new(python);
    command.arg(checkout().join("tests/sdk/python/interact.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    suite_with_model("python-interact", command, Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_javascript_sdk_interacts() {
    let Some(modules) = installed("js/node_modules") else { return };
    let mut command = tokio::process::Command::new("node");
    command.arg(checkout().join("tests/sdk/js/interact.cjs")).env("NODE_PATH", modules);
    suite_with_model("javascript-interact", command, Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_rust_sdk_interacts() {
    let Some(program) = rust_suite() else { return };
    let mut command = tokio::process::Command::new(program);
    command.arg("interact");
    suite_with_model("rust-interact", command, Database::Sqlite).await;
}
