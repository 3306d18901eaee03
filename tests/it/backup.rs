//! `weir backup` and `weir restore`: what was saved while the service works is there after a loss, whoever gave the keys.
//! The commands are those of the page about them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{
    Database, FixtureSite, ServiceOptions, TestService, binary_folder, both_databases, checkout, documents_of,
    files_below, finished, wait_until,
};

/// The commands of `docs/backup.md`: to save, to restore.
fn commands() -> [String; 2] {
    let page = std::fs::read_to_string(checkout().join("docs/backup.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap().to_owned());
    blocks.collect::<Vec<_>>().try_into().expect("two blocks of commands")
}

/// Runs commands of the page as somebody would who stands in the service's folder.
fn run(service: &TestService, commands: &str) -> Output {
    let mut shell = Command::new("bash");
    let own = service.command("weir");
    shell.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(service.folder());
    let path = format!("{}:{}", binary_folder().display(), std::env::var("PATH").unwrap());
    shell.args(["-euc", commands]).env("PATH", path).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn succeed(service: &TestService, commands: &str) -> String {
    let output = run(service, commands);
    assert!(output.status.success(), "{commands}: {}", said(&output));
    said(&output)
}

fn refused(service: &TestService, commands: &str, why: &str) {
    let output = run(service, commands);
    assert!(output.status.code() == Some(1) && said(&output).contains(why), "{commands}: {}", said(&output));
}

/// Data below the service's own folder, as operators have it.
fn options(database: Database) -> ServiceOptions {
    let is_sqlite = matches!(database, Database::Sqlite);
    let options = ServiceOptions::new(database).env("WEIR_BLOBS", "file://data/blobs");
    if is_sqlite { options.env("DATABASE_URL", "sqlite://data/weir.db") } else { options }
}

/// Everything is lost: the folder of data, and on Postgres what is in the database.
async fn lose(service: &mut TestService) {
    service.stop();
    std::fs::remove_dir_all(service.folder().join("data")).unwrap();
    if !service.database_url().starts_with("sqlite:") {
        for schema in ["public", "apalis"] {
            service.execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await;
        }
        service.execute("CREATE SCHEMA public").await;
    }
}

async fn start_again(service: &mut TestService) {
    service.start_api();
    service.start_worker(0);
    service.ready().await;
    // Until the new worker is there, the one whose row was saved while it worked passes for it.
    service.workers_are_there().await;
    wait_until("one worker lives", || async {
        let workers = service.cli_json(&["workers", "list", "--json"]);
        let alive = workers.as_array().unwrap().iter().filter(|worker| worker["state"] == "live").count();
        (alive == 1).then_some(())
    })
    .await;
}

/// A job with a large document, which lies in a blob because it cannot be made small.
async fn large_job(service: &TestService, site: &FixtureSite) -> (String, Vec<Value>) {
    let noise: Vec<u8> = (0..20_000).flat_map(|_| weir_shared::random::bytes::<32>()).collect();
    let file = site.serve_file("noise.bin", "application/octet-stream", noise).await;
    let body = json!({ "urls": [site.url("/article/1"), file], "formats": ["rawBase64"] });
    let id = service.post("/v2/batch/scrape", &body).await.id();
    finished(service.caller(), &id, Duration::from_secs(60)).await;
    let documents = documents_of(service.caller(), &id).await;
    assert_eq!(documents.len(), 2);
    (id, documents)
}

both_databases! {
    async fn what_was_saved_while_the_service_worked_is_there_after_a_loss(database) {
        let site = FixtureSite::start().await;
        let mut service = TestService::start_with(options(database)).await;
        let [save, restore] = commands();
        let (before, documents) = large_job(&service, &site).await;
        let running = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/slow?ms=3000&n=", 3) })).await.id();
        wait_until("the pages are in work", || async { (site.hit_count("/slow").await > 0).then_some(()) }).await;
        succeed(&service, &save);
        let later = service.post("/v2/batch/scrape", &json!({ "urls": [site.url("/article/2")] })).await.id();
        finished(service.caller(), &later, Duration::from_secs(60)).await;

        // What is there is not written over.
        let key_file = service.folder().join("data/api-key");
        let key = std::fs::read_to_string(&key_file).unwrap();
        service.stop();
        refused(&service, &restore, if service.database_url().starts_with("sqlite:") { "there is a database" } else { "not empty" });
        assert!(documents_are_kept(&service));
        lose(&mut service).await;
        std::fs::create_dir_all(key_file.parent().unwrap()).unwrap();
        std::fs::write(&key_file, "another-key").unwrap();
        refused(&service, &restore, "another key");
        std::fs::remove_file(&key_file).unwrap();
        succeed(&service, &restore);
        start_again(&mut service).await;

        // The keys are the same, finished work is there, work under way is done, and what came later is unknown.
        assert_eq!(std::fs::read_to_string(&key_file).unwrap(), key);
        assert_eq!(documents_of(service.caller(), &before).await, documents);
        let body = finished(service.caller(), &running, Duration::from_secs(60)).await;
        assert_eq!((&body["status"], &body["completed"]), (&json!("completed"), &json!(3)), "{body}");
        assert_eq!(service.get(&format!("/v2/batch/scrape/{later}")).await.status, 404);
    }

    async fn keys_that_were_given_from_outside_are_saved_and_asked_for(database) {
        let site = FixtureSite::start().await;
        let secret = "an-internal-secret-of-the-tests";
        let options = options(database).env("WEIR_API_KEY", "given-from-outside").env("WEIR_INTERNAL_SECRET", secret);
        let mut service = TestService::start_with(options).await;
        let [save, restore] = commands();
        let (id, documents) = large_job(&service, &site).await;
        succeed(&service, &save);
        lose(&mut service).await;

        service.remove_env("WEIR_INTERNAL_SECRET");
        refused(&service, &restore, "WEIR_INTERNAL_SECRET");
        service.set_env("WEIR_INTERNAL_SECRET", "another-secret-of-the-tests");
        refused(&service, &restore, "WEIR_INTERNAL_SECRET");
        service.set_env("WEIR_INTERNAL_SECRET", secret);
        service.remove_env("WEIR_API_KEY");
        succeed(&service, &restore);
        let key_file = service.folder().join("data/api-key");
        assert_eq!(std::fs::read_to_string(key_file).unwrap().trim(), "given-from-outside");
        start_again(&mut service).await;
        assert_eq!(documents_of(service.caller(), &id).await, documents);
        let given = weir_tests::Caller::new(service.base(), Some("given-from-outside"));
        assert_eq!(given.get("/v2/team/credit-usage").await.status, 200);
    }

    async fn a_backup_is_brought_up_to_date_and_a_restore_that_broke_off_goes_on(database) {
        let site = FixtureSite::start().await;
        let mut service = TestService::start_with(options(database)).await;
        let [save, restore] = commands();
        let save = format!("{} --json", save.trim());
        let told = |text: String| serde_json::from_str::<Value>(text.lines().last().unwrap()).unwrap();
        let (first, _) = large_job(&service, &site).await;
        let once = told(succeed(&service, &save));
        assert_eq!((&once["blobs"], &once["copied"]["blobs"]), (&json!(1), &json!(1)), "{once}");
        let (second, documents) = large_job(&service, &site).await;
        let twice = told(succeed(&service, &save));
        assert_eq!((&twice["blobs"], &twice["copied"]["blobs"]), (&json!(2), &json!(1)), "{twice}");
        // What is gone leaves the backup with the next one.
        if let Some(path) = service.database_url().strip_prefix("sqlite://") {
            // Where the harness looks for it, in the place of the one that it made.
            std::fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink(service.folder().join("data/weir.db"), path).unwrap();
        }
        service.execute(&format!("UPDATE job SET expires_at = 1 WHERE id = '{first}'")).await;
        wait_until("the first job's blob is gone", || async {
            (blobs_of(service.folder().join("data/blobs")).len() == 1).then_some(())
        })
        .await;
        assert_eq!(told(succeed(&service, &save))["blobs"], 1);
        assert_eq!(blobs_of(service.folder().join("backup/blobs")).len(), 1);

        lose(&mut service).await;
        let is_sqlite = service.database_url().starts_with("sqlite:");
        let copy = service.folder().join(if is_sqlite { "backup/weir.db" } else { "backup/weir.dump" });
        let whole = std::fs::read(&copy).unwrap();
        std::fs::write(&copy, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(run(&service, &restore).status.code(), Some(1), "half a copy is no copy");
        std::fs::write(&copy, whole).unwrap();
        succeed(&service, &restore);
        start_again(&mut service).await;
        assert_eq!(documents_of(service.caller(), &second).await, documents);
        // To the database, the worker of the backup has died; the others say so after some seconds of silence.
        service.abandon();
    }
}

fn documents_are_kept(service: &TestService) -> bool {
    !blobs_of(service.folder().join("data/blobs")).is_empty()
}

/// The blobs of jobs below a folder.
fn blobs_of(folder: PathBuf) -> Vec<PathBuf> {
    let is_blob = |path: &PathBuf| path.extension().is_some_and(|end| end == "zst");
    files_below(&folder).into_iter().filter(is_blob).collect()
}

#[tokio::test]
async fn a_folder_with_something_else_in_it_is_left_alone() {
    let service = TestService::start_with(options(Database::Sqlite)).await;
    let folder = service.folder().join("backup");
    std::fs::create_dir_all(&folder).unwrap();
    refused(&service, "weir restore backup", "no whole backup");
    std::fs::write(folder.join("letter.txt"), "dear").unwrap();
    refused(&service, "weir backup backup", "letter.txt");
    assert_eq!(files_below(Path::new(&folder)), [folder.join("letter.txt")]);
    std::fs::remove_file(folder.join("letter.txt")).unwrap();
    succeed(&service, "weir backup backup");
    let output = run(&service, "DATABASE_URL=postgres://127.0.0.1:9/none weir restore backup");
    assert!(said(&output).contains("the backup is of SQLite"), "{}", said(&output));
    assert_eq!(modes(&folder), [0o600, 0o600, 0o600, 0o600], "nobody else may read it");
}

/// A process that is killed, or a disk that is full, leaves the next backup nothing to stumble over.
#[tokio::test]
async fn a_backup_goes_on_where_another_broke_off() {
    let service = TestService::start_with(options(Database::Sqlite)).await;
    let folder = service.folder().join("backup");
    succeed(&service, "weir backup backup");
    let whole = || files_below(&folder).into_iter().collect::<BTreeSet<_>>();
    let files = whole();
    let left = ["weir.new", "weir.new-journal", "weir.new-wal", "weir.new-shm", "blobs/ab/job/page-1.tmp"];
    std::fs::create_dir_all(folder.join("blobs/ab/job")).unwrap();
    for name in left {
        std::fs::write(folder.join(name), "half of something").unwrap();
    }
    succeed(&service, "weir backup backup");
    assert_eq!(whole(), files, "what was left is gone");
    // No file may become larger than 100 KB, which the database is.
    refused(&service, "trap '' XFSZ; ulimit -f 100; weir backup backup", "cannot copy the database");
    assert_eq!(whole(), files, "and what fails leaves nothing");
    succeed(&service, "weir backup backup");
}

/// Who may read the files at the top of a backup: `.lock`, `api-key`, `backup.json`, `weir.db`.
fn modes(folder: &Path) -> Vec<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    let files = [".lock", "api-key", "backup.json", "weir.db"].map(|name| folder.join(name));
    files.iter().map(|file| std::fs::metadata(file).unwrap().permissions().mode() & 0o777).collect()
}
