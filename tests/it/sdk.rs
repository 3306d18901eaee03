//! Runs the suites under tests/sdk: the official SDKs, unmodified, against a real service on both databases.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use weir_tests::{FixtureSite, ServiceOptions, TestService, both_databases, checkout, require_all};

/// Where `scripts/setup --tests` keeps the SDKs, or `None` with a word when they are not there.
pub fn installed(part: &str) -> Option<PathBuf> {
    let cache =
        std::env::var("WEIR_CACHE").unwrap_or_else(|_| format!("{}/.cache/weir", std::env::var("HOME").unwrap()));
    let path = PathBuf::from(cache).join("sdk").join(part);
    if path.exists() {
        return Some(path);
    }
    assert!(!require_all(), "{} is missing: scripts/setup --tests installs it", path.display());
    eprintln!("skipped: {} is missing, scripts/setup --tests installs it", path.display());
    None
}

/// Runs one suite, shows its output, notes its counts for scripts/test, and fails when the suite failed.
async fn suite(name: &str, mut command: tokio::process::Command, database: weir_tests::Database) {
    let name =
        format!("{name}-{}", if matches!(database, weir_tests::Database::Sqlite) { "sqlite" } else { "postgres" });
    let site = FixtureSite::start().await;
    let service = TestService::start_with(ServiceOptions::new(database).workers(1)).await;
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

both_databases! {
    async fn the_official_python_sdk_works(database) {
        let Some(python) = installed("venv/bin/python") else { return };
        let mut command = tokio::process::Command::new(python);
        command.arg(checkout().join("tests/sdk/python/suite.py")).env("PYTHONDONTWRITEBYTECODE", "1");
        suite("python", command, database).await;
    }

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

    async fn the_official_javascript_sdk_uses_sessions(database) {
        let Some(modules) = installed("js/node_modules") else { return };
        let mut command = tokio::process::Command::new("node");
        command.arg(checkout().join("tests/sdk/js/browser.cjs")).env("NODE_PATH", modules);
        suite("javascript-sessions", command, database).await;
    }

    async fn the_official_command_line_uses_sessions(database) {
        let Some(modules) = installed("js/node_modules") else { return };
        let mut command = tokio::process::Command::new("node");
        command.arg(checkout().join("tests/sdk/js/cli.cjs")).env("NODE_PATH", modules);
        suite("command-line", command, database).await;
    }

    async fn the_official_command_line_and_mcp_server_map_and_crawl(database) {
        let Some(modules) = installed("js/node_modules") else { return };
        let mut command = tokio::process::Command::new("node");
        command.arg(checkout().join("tests/sdk/js/map.cjs")).env("NODE_PATH", modules);
        suite("map-and-crawl", command, database).await;
    }

    async fn the_official_rust_sdk_works(database) {
        // A program with a lock file of its own; scripts/test builds it.
        let program = weir_tests::binary_folder().join("sdk/debug/weir-sdk-suite");
        let program = std::env::var_os("WEIR_TEST_RUST_SDK").map_or(program, PathBuf::from);
        if !program.exists() {
            assert!(!require_all(), "{} is missing: scripts/test builds it", program.display());
            eprintln!("skipped: {} is missing, scripts/test builds it", program.display());
            return;
        }
        suite("rust", tokio::process::Command::new(program), database).await;
    }
}
