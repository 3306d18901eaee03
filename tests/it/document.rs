//! The API's document and its page: that anybody can read them, and that the service is as the document says, however it
//! is asked. Every other test holds its answers to the document too: see `Caller`. And the pages of the repository: what
//! they name is there, and what code names of them is in them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use weir_tests::{Database, SearchStandIn, ServiceOptions, TestService, checkout, fault, installed, long_tests};

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
    // One at a time: Python 3.11 counts the depth of what it parses for all threads together, and two of them that draw
    // cases fail now and then ("AST constructor recursion depth mismatch").
    command.args(["--no-color", "--workers", "1", "--report", "json"]);
    command.arg("--report-json-path").arg(&report).args(arguments);
    if let Some(key) = key {
        command.args(["--header", &format!("Authorization: Bearer {key}")]);
    }
    let output = command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // Its own folder: it keeps drafts in a `tmp` of it, which is the name of the service's.
        .env("HYPOTHESIS_STORAGE_DIRECTORY", service.folder().join("hypothesis"))
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
    let search = SearchStandIn::finding(vec!["http://127.0.0.1:9/".into()]).await;
    let options = ServiceOptions::new(Database::Sqlite)
        .env("WEIR_SEARCH_URL", &search.url)
        .env("WEIR_ALLOW_NETS", "")
        .env("WEIR_TEAM_SESSIONS", "1")
        .env("WEIR_SESSIONS_PER_WORKER", "1");
    let service = TestService::start_with(options).await;
    // A program that is not optimized makes its document for seconds, and schemathesis waits ten for it.
    service.anonymous().get("/openapi.json").await.ok();
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

/// Every file of the tree that ends so, below the folders that hold code and tests.
fn files(kind: &str) -> Vec<(PathBuf, String)> {
    let mut folders: Vec<_> = ["api", "worker", "shared", "tests"].map(|name| checkout().join(name)).to_vec();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() && !path.ends_with("node_modules") => folders.push(path),
                Some(extension) if extension == kind => {
                    let text = std::fs::read_to_string(&path).unwrap();
                    files.push((path, text));
                }
                _ => {}
            }
        }
    }
    files
}

/// Their texts, one after the other.
fn sources(kind: &str) -> String {
    files(kind).into_iter().map(|(_, text)| text).collect()
}

/// The pages of the repository, for people.
fn pages() -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    for folder in ["", "docs", "docs/decisions"] {
        let entries = std::fs::read_dir(checkout().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        paths.extend(entries.filter(|path| path.extension().is_some_and(|kind| kind == "md")));
    }
    paths.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// Where the functions of a file stand among the tests of its crate, as nextest names them: `store::work::jobs::tests`, and
/// for those at the file's own level `store::work::jobs`.
fn modules(path: &Path) -> (String, String) {
    let path = path.strip_prefix(checkout()).unwrap();
    let text = path.to_str().unwrap();
    let is_below = |folder: &'static str| text.find(folder).map(|at| &text[at + folder.len()..]);
    // A file right below `tests` is a crate.
    let inner = is_below("/src/").or_else(|| is_below("tests/it/")).unwrap_or("lib.rs");
    let mut names: Vec<&str> = inner.trim_end_matches(".rs").split('/').collect();
    let last = names.pop().unwrap();
    names.extend(Some(last).filter(|name| !["lib", "main", "mod"].contains(name)));
    let outer = names.join("::");
    // The tests of `claim.rs` that stand in `claim_tests.rs` are its module `tests`, if it says so.
    let about = last.strip_suffix("_tests").map(|about| checkout().join(path.with_file_name(format!("{about}.rs"))));
    let says_so = |about: PathBuf| std::fs::read_to_string(about).is_ok_and(|text| text.contains("#[path = "));
    if about.is_some_and(says_so) {
        let outer = outer.trim_end_matches("_tests");
        return (format!("{outer}::tests"), format!("{outer}::tests::tests"));
    }
    let inner = if outer.is_empty() { "tests".to_owned() } else { format!("{outer}::tests") };
    (outer, inner)
}

/// Every module of the tree's tests in which a function of this name stands.
fn homes<'f>(rust: &'f [(PathBuf, String)], function: &str) -> impl Iterator<Item = String> + 'f {
    let definition = format!("fn {function}(");
    rust.iter().filter_map(move |(path, text)| {
        let (before, _) = text.split_once(&definition)?;
        let (outer, inner) = modules(path);
        Some(if before.contains("mod tests {") { inner } else { outer })
    })
}

#[test]
fn what_the_page_on_security_names_is_there() {
    let page = std::fs::read_to_string(checkout().join("docs/security.md")).unwrap();
    let (rust, python) = (files("rs"), sources("py"));
    let (mut tests, mut places) = (0, 0);
    for row in page.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let [_, holders, shown] = cells[..] else { panic!("three cells: {row}") };
        for place in holders.split('`').skip(1).step_by(2).filter(|place| place.contains(".rs")) {
            let there = checkout().join(place).exists() || (!place.contains('/') && holds_file(&rust, place));
            assert!(there, "docs/security.md names a file that is not there: {place}");
            places += 1;
        }
        for name in shown.split('`').skip(1).step_by(2) {
            let (module, function) = name.rsplit_once("::").unwrap_or(("", name));
            let found: Vec<String> = homes(&rust, function).collect();
            let there = python.contains(&format!("def {function}(")) && module.is_empty();
            let there = there || found.iter().any(|home| home == module || module.is_empty());
            assert!(there, "docs/security.md names a test that is not there: {name}; its name is at {found:?}");
            tests += 1;
        }
    }
    assert!(tests > 80 && places > 40, "the page's rows were not read: {tests} tests, {places} files");
}

/// Whether a file of this name is anywhere in the tree.
fn holds_file(rust: &[(PathBuf, String)], name: &str) -> bool {
    rust.iter().any(|(path, _)| path.ends_with(name))
}

/// The number of a section at the beginning of a text: `4`, `4.7`, `1.7b`.
fn section(text: &str) -> Option<&str> {
    let is_digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let mut end = 0;
    while is_digit(end) || (end > 0 && text[end..].starts_with('.') && is_digit(end + 1)) {
        end += 1;
    }
    // Parts that were put in later have a letter.
    let mut rest = text[end..].chars();
    if rest.next().is_some_and(|c| c.is_ascii_lowercase()) && !rest.next().is_some_and(char::is_alphanumeric) {
        end += 1;
    }
    is_digit(0).then(|| &text[..end])
}

/// The sections that follow a word wherever it stands: three in `spec 2.3, 4.5 and 7`, the ends of `wire 3.4 to 3.6`.
fn sections_after<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(word) {
        let starts_word = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let mut rest = text[at + word.len()..].strip_prefix(' ').filter(|_| starts_word);
        while let Some((text, number)) = rest.and_then(|text| Some((text, section(text)?))) {
            found.push(number);
            let after = &text[number.len()..];
            rest = [", and ", ", ", " and ", " to ", " or "].iter().find_map(|between| after.strip_prefix(between));
        }
    }
    found
}

#[test]
fn references_to_sections_are_read_in_every_form() {
    let text =
        "(spec 2.3, 4.5 and 7; wire 8.4), respec 1, wire 3.4 to 3.6. Wire 1.7b: spec 9, five of them, wire 11.3.";
    assert_eq!(sections_after(text, "spec"), ["2.3", "4.5", "7", "9"]);
    assert_eq!(sections_after(text, "wire"), ["8.4", "3.4", "3.6", "11.3"]);
    assert_eq!(sections_after(text, "Wire"), ["1.7b"]);
}

/// The sections of a page: what its headings begin with.
fn headings(page: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(checkout().join(page)).unwrap();
    let titles = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches(['#', ' ']));
    titles.filter_map(section).map(str::to_owned).collect()
}

#[test]
fn every_section_that_code_names_is_a_heading_of_its_page() {
    // Migrations never change after their release, and keep the names of before.
    let names = [("docs/specification.md", ["spec", "Spec", "SPEC"]), ("docs/wire.md", ["wire", "Wire", "CONTRACT"])];
    let code = files("rs");
    let mut migrations = Vec::new();
    for folder in ["migrations/sqlite", "migrations/postgres"] {
        let entries = std::fs::read_dir(checkout().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        migrations.extend(entries.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())));
    }
    let (mut by_code, mut wrong) = (0, Vec::new());
    for (page, words) in names {
        let headings = headings(page);
        for (is_code, files) in [(true, &code), (false, &pages()), (false, &migrations)] {
            for (path, text) in files {
                // The test above shows what a reference may look like.
                if path.ends_with("tests/it/document.rs") {
                    continue;
                }
                let path = path.strip_prefix(checkout()).unwrap().display();
                for word in words {
                    let sections = sections_after(text, word);
                    by_code += if is_code { sections.len() } else { 0 };
                    let is_old = word.chars().all(char::is_uppercase) && !path.to_string().starts_with("migrations");
                    for number in sections {
                        if is_old || !headings.contains(number) {
                            wrong.push(format!("{path}: {word} {number}"));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "no section of docs/specification.md or docs/wire.md:\n{}", wrong.join("\n"));
    assert!(by_code >= 150, "the references were not read: {by_code}");
}

#[test]
fn links_of_the_pages_lead_somewhere() {
    let mut links = 0;
    for (path, text) in pages() {
        for (at, _) in text.match_indices("](") {
            let link = text[at + 2..].split(')').next().unwrap();
            let file = link.split('#').next().unwrap();
            let is_there = link.contains("://") || path.parent().unwrap().join(file).exists();
            assert!(is_there, "{}: {link}", path.display());
            links += 1;
        }
    }
    assert!(links > 15, "the links were not read: {links}");
}
