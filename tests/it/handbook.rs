//! The commands of README and of every page of `docs/`, run as they stand there. What cannot be run by a test stands in
//! [`NOT_RUN`], with the reason: a block that is neither fails.

use std::process::Command;
use std::time::Duration;

use serde_json::json;
use weir_tests::{
    Database, FixtureSite, SearchStandIn, ServiceOptions, TestService, binary_folder, checkout, finished, installed,
};

/// README first: the other pages go on where it ended.
fn pages() -> Vec<String> {
    let names = std::fs::read_dir(checkout().join("docs")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    pages.sort_unstable_by_key(|page| (page != "docs/use.md", page.clone()));
    pages.insert(0, "README.md".to_owned());
    pages
}

/// Blocks, by the beginning of their first line, or single commands by theirs, and why nobody runs them here.
const NOT_RUN: &[(&str, &str)] = &[
    ("scripts/run", "the whole service, which is what the other commands talk to"),
    ("scripts/test", "all tests, this one included"),
    ("scripts/setup", "sets up the machine"),
    ("scripts/package", "builds a release"),
    ("scripts/dependencies", "a step of scripts/test"),
    ("claude mcp add", "a program of somebody else; mcp.rs speaks with a stock client"),
    ("weir serve", "the service of this test is one"),
    ("WEIR_BIND=", "the same with an address"),
    ("WEIR_SEARCH_URL=", "the same with search backends"),
    ("weir-worker", "the service of this test has one"),
    ("WEIR_WORKER_BIND=", "the same with an address"),
    ("weir agent show", "wants an agent, and so a language model; agent.rs"),
    ("weir mcp", "speaks until its input ends; mcp.rs"),
    ("export DATABASE_URL=", "several machines; hosts.rs"),
    ("weir backup", "backup.rs"),
    ("weir restore", "backup.rs"),
    ("apt-get install ./weir", "tests/packages/lifecycle.py"),
    ("docker load", "tests/packages/image.py"),
    ("cp secret.env.example", "needs a cluster; tests/packages/files.py puts the manifests together"),
    ("sha256sum --check", "tests/packages/release.py"),
    ("page = weir.scrape", "needs a model; reading.rs"),
    ("from firecrawl.v2.types", "needs a model; reading.rs"),
    ("print(weir.interact(scrape, prompt", "needs a model; interact.rs"),
];

/// One block of code: its language and text.
type Block = (String, String);

fn blocks(page: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(checkout().join(page)).unwrap();
    let mut found = Vec::new();
    for part in text.split("\n```").skip(1).step_by(2) {
        let (language, code) = part.split_once('\n').unwrap();
        found.push((language.to_owned(), code.to_owned()));
    }
    found
}

fn is_not_run(line: &str) -> bool {
    NOT_RUN.iter().any(|(start, _)| line.trim_start().starts_with(start))
}

/// A block without what is not run; `None` when its first line is, and with it the block. In a list of single commands
/// each stands for itself.
fn to_run(code: &str) -> Option<String> {
    let lines: Vec<&str> = code.lines().collect();
    let is_list = lines.len() > 3 && lines.iter().all(|line| line.starts_with("weir"));
    if !is_list && is_not_run(lines[0]) {
        return None;
    }
    let rest: Vec<&str> = lines.into_iter().filter(|line| !is_not_run(line)).collect();
    Some(rest.join("\n") + "\n")
}

struct Handbook {
    service: TestService,
    _search: SearchStandIn,
    site: FixtureSite,
    /// A job that stands where the pages say `ID`.
    job: String,
}

impl Handbook {
    async fn open() -> Self {
        let site = FixtureSite::start().await;
        let search = SearchStandIn::finding([1, 2, 3].map(|n| site.url(&format!("/article/{n}"))).to_vec()).await;
        let options = ServiceOptions::new(Database::Sqlite).with_sessions().env("WEIR_SEARCH_URL", &search.url);
        let service = TestService::start_with(options).await;
        let job = service.post("/v2/batch/scrape", &json!({ "urls": [site.url("/article/3")] })).await.id();
        finished(service.caller(), &job, Duration::from_secs(60)).await;
        std::fs::create_dir_all(service.folder().join("data")).unwrap();
        std::fs::write(service.folder().join("data/api-key"), service.caller().key.as_deref().unwrap()).unwrap();
        let report = checkout().join("worker/office/tests/files/headings.docx");
        std::fs::copy(report, service.folder().join("report.docx")).unwrap();
        Self { service, _search: search, site, job }
    }

    /// The page's words with this service's address, this site's pages and this job.
    fn here(&self, code: &str) -> String {
        code.replace("http://127.0.0.1:3002", self.service.base())
            .replace("https://example.com", &self.site.url("/article/1"))
            .replace("https://example.org", &self.site.url("/article/2"))
            .replace("watch ID", &format!("watch {}", self.job))
            .replace("--job ID", &format!("--job {}", self.job))
    }

    fn run(&self, page: &str, mut command: Command, code: &str) -> String {
        let path = format!("{}:{}", binary_folder().display(), std::env::var("PATH").unwrap());
        command.envs(self.service.environment()).env("PATH", path).current_dir(self.service.folder());
        let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{page}: {code}\n{text}\n{errors}");
        // A refused call is an answer to curl.
        assert!(!text.contains("\"success\":false"), "{page}: {code}\n{text}");
        text
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_of_the_pages_about_tasks_does_what_it_says() {
    let book = Handbook::open().await;
    let key = book.service.caller().key.clone().unwrap();
    let (mut python, mut shell) = (String::new(), 0);
    for page in &pages() {
        for (language, code) in blocks(page) {
            let Some(code) = to_run(&code) else { continue };
            let code = book.here(&code);
            match language.as_str() {
                "sh" => {
                    let mut command = Command::new("bash");
                    command.args(["-euc", &code]).env("BASE", book.service.base()).env("KEY", &key);
                    book.run(page, command, &code);
                    shell += 1;
                }
                // Pages go on where the one before ended.
                "python" => python += &code,
                "js" => {
                    let Some(modules) = installed("js/node_modules") else { continue };
                    let folder = book.service.folder();
                    if !folder.join("node_modules").exists() {
                        std::os::unix::fs::symlink(modules, folder.join("node_modules")).unwrap();
                    }
                    std::fs::write(folder.join("page.mjs"), &code).unwrap();
                    let mut command = Command::new("node");
                    command.arg("page.mjs");
                    assert_eq!(book.run(page, command, &code).lines().count(), 2, "one line a page");
                }
                "json" => drop(serde_json::from_str::<serde_json::Value>(&code).unwrap()),
                // Drawings.
                "" | "text" => {}
                // Read by tests/packages/files.py.
                "yaml" => {}
                other => panic!("{page}: nobody runs a block of {other:?}"),
            }
        }
    }
    assert!(shell >= 4, "blocks of commands were run: {shell}");
    if let Some(program) = installed("venv/bin/python") {
        let mut command = Command::new(program);
        command.args(["-c", &python]);
        assert!(book.run("python", command, &python).lines().count() >= 3, "what the blocks print");
    }
}

#[test]
fn what_is_not_run_is_on_a_page() {
    let lines: Vec<String> = pages().iter().flat_map(|page| blocks(page)).map(|(_, code)| code).collect();
    for (start, _) in NOT_RUN {
        let is_there = lines.iter().any(|code| code.lines().any(|line| line.trim_start().starts_with(start)));
        assert!(is_there, "{start} stands on no page any more");
    }
}

#[test]
fn the_readme_is_short() {
    let length = std::fs::read_to_string(checkout().join("README.md")).unwrap().lines().count();
    assert!(length < 300, "README has {length} lines; what is for one task goes to a page of its own in docs/");
}
