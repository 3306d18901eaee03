//! The API's document and its page: that anybody can read them, and that the service is as the document says, however it
//! is asked. Every other test holds its answers to the document too: see `Caller`.

use std::process::Stdio;

use serde_json::Value;
use weir_tests::{Database, ServiceOptions, TestService, checkout, fault, installed, long_tests};

#[tokio::test]
async fn the_document_and_its_page_need_no_key_and_nothing_from_elsewhere() {
    let service = TestService::start(Database::Sqlite).await;
    let nobody = service.anonymous();
    let document = nobody.get("/openapi.json").await.ok();
    assert_eq!(document["openapi"], "3.1.0");
    let mut examples = 0;
    for (path, verbs) in document["paths"].as_object().unwrap() {
        for (verb, operation) in verbs.as_object().unwrap() {
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let Some(example) = answer["content"]["application/json"].get("example") else { continue };
                let method = verb.to_ascii_uppercase();
                let fault = fault(&method, path, status.parse().unwrap(), "application/json", &example.to_string());
                assert_eq!(fault, None, "{method} {path}");
                examples += 1;
            }
        }
    }
    assert!(examples >= 8, "{examples} examples of answers");
    let mut page = String::new();
    for (path, kind) in [("/docs", "text/html"), ("/docs/docs.js", "text/javascript"), ("/docs/docs.css", "text/css")] {
        let answer = nobody.get(path).await;
        let header = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
        assert!(answer.status == 200 && header("content-type").starts_with(kind), "{path}: {}", answer.status);
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        page += &answer.text;
    }
    for elsewhere in ["http://", "https://", "//cdn", "@import"] {
        let is_text = |at: usize| page[..at].ends_with('`') || page[..at].ends_with('"');
        let found: Vec<_> = page.match_indices(elsewhere).filter(|(at, _)| !is_text(*at)).collect();
        assert!(found.is_empty(), "the page takes something from elsewhere: {found:?}");
    }
    assert!(!page.contains("innerHTML") && !page.contains("style="), "nothing is put in as markup");
}

/// Runs schemathesis with this many cases an operation; returns how many cases there were.
async fn tried(service: &TestService, key: Option<&str>, arguments: &[&str]) -> u64 {
    let folder = checkout().join("tests/openapi");
    let report = service.folder().join(format!("schemathesis-{}.json", key.is_some()));
    let Some(program) = installed("openapi/bin/st") else { return 0 };
    let mut command = tokio::process::Command::new(program);
    command.current_dir(&folder).args(["--config-file", "schemathesis.toml", "run"]);
    command.arg(format!("{}/openapi.json", service.base()));
    command.args(["--no-color", "--workers", "2", "--report", "json"]);
    command.arg("--report-json-path").arg(&report).args(arguments);
    if let Some(key) = key {
        command.args(["--header", &format!("Authorization: Bearer {key}")]);
    }
    let output = command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HYPOTHESIS_STORAGE_DIRECTORY", service.folder())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    report["test_cases"]["generated"].as_u64().unwrap_or_else(|| panic!("no count in {report:.2000}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing_with_or_without_a_key() {
    let Some(_) = installed("openapi/bin/st") else { return };
    // Nothing on loopback may be reached, so that pages end at once, and no more than one browser is started.
    let options = ServiceOptions::new(Database::Sqlite)
        .env("WEIR_ALLOW_NETS", "")
        .env("WEIR_TEAM_SESSIONS", "1")
        .env("WEIR_SESSIONS_PER_WORKER", "1")
        .env("WEIR_WARM_BROWSERS", "0");
    let service = TestService::start_with(options).await;
    let (keyed, keyless, least): (&[&str], &[&str], u64) = if long_tests() {
        let many = &["--max-examples", "1200", "--generation-database", "none"];
        (many, &["--max-examples", "100", "--generation-database", "none"], 20_000)
    } else {
        let few = &["--phases", "examples,fuzzing", "--max-examples", "4", "--generation-deterministic"];
        (few, &["--phases", "fuzzing", "--max-examples", "1", "--generation-deterministic"], 250)
    };
    let cases = tried(&service, Some(service.key()), keyed).await + tried(&service, None, keyless).await;
    println!("schemathesis: {cases} cases");
    assert!(cases >= least, "{cases} cases");
    service.ready().await;
}

/// Every file of the tree that ends so, below the folders that hold tests.
fn sources(kind: &str) -> String {
    let mut folders: Vec<_> = ["api", "worker", "shared", "tests"].map(|name| checkout().join(name)).to_vec();
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() && !path.ends_with("node_modules") => folders.push(path),
                Some(extension) if extension == kind => text += &std::fs::read_to_string(path).unwrap(),
                _ => {}
            }
        }
    }
    text
}

#[test]
fn every_test_that_the_page_on_security_names_is_there() {
    let page = std::fs::read_to_string(checkout().join("docs/security.md")).unwrap();
    let (rust, python) = (sources("rs"), sources("py"));
    let mut named = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let tests = row.trim_end_matches('|').rsplit(" | ").next().unwrap();
        for name in tests.split('`').skip(1).step_by(2) {
            let name = name.rsplit("::").next().unwrap();
            let there = rust.contains(&format!("fn {name}(")) || python.contains(&format!("def {name}("));
            assert!(there, "docs/security.md names a test that is not there: {name}");
            named += 1;
        }
    }
    assert!(named > 40, "the page's rows were not read: {named}");
}
