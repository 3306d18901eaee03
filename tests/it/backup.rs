//! The README's chapter on backup and restore: its commands, as they stand there, on a service that works meanwhile.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use weir_tests::{
    Database, FixtureSite, ServiceOptions, TestService, both_databases, checkout, documents_of, finished, wait_until,
};

/// The README's blocks of commands below a heading, in order: to save, to restore.
fn commands(heading: &str) -> (String, String) {
    let readme = std::fs::read_to_string(checkout().join("README.md")).unwrap();
    let (_, chapter) = readme.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let mut blocks = chapter.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap().to_owned());
    (blocks.next().unwrap(), blocks.next().unwrap())
}

fn run(folder: &Path, database_url: &str, commands: &str) {
    let mut shell = Command::new("bash");
    let output = shell.args(["-euc", commands]).current_dir(folder).env("DATABASE_URL", database_url).output().unwrap();
    assert!(output.status.success(), "{commands}\n{}", String::from_utf8_lossy(&output.stderr));
}

both_databases! {
    async fn what_was_saved_while_the_service_worked_is_there_after_a_loss(database) {
        let site = FixtureSite::start().await;
        let is_sqlite = matches!(database, Database::Sqlite);
        let mut options = ServiceOptions::new(database).env("WEIR_BLOBS", "file://data/blobs");
        if is_sqlite {
            options = options.env("DATABASE_URL", "sqlite://data/weir.db");
        }
        let mut service = TestService::start_with(options).await;
        let (folder, url) = (service.folder().to_owned(), service.database_url().to_owned());
        let (save, restore) = commands(if is_sqlite { "### SQLite" } else { "### Postgres" });

        let urls = [site.url("/article/1"), site.url("/huge?mb=8")];
        let before = service.post("/v2/batch/scrape", &json!({ "urls": urls, "formats": ["rawHtml"] })).await.id();
        finished(service.caller(), &before, Duration::from_secs(60)).await;
        let documents = documents_of(service.caller(), &before).await;
        assert_eq!(documents.len(), 2);
        let running = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/slow?ms=3000&n=", 3) })).await.id();
        wait_until("the pages are in work", || async { (site.hit_count("/slow").await > 0).then_some(()) }).await;
        run(&folder, &url, &save);

        let later = service.post("/v2/batch/scrape", &json!({ "urls": [site.url("/article/2")] })).await.id();
        finished(service.caller(), &later, Duration::from_secs(60)).await;
        service.stop();
        std::fs::remove_dir_all(folder.join("data")).unwrap();
        run(&folder, &url, &restore);
        service.start_api();
        service.start_worker(0);
        service.ready().await;

        // The key is the same, finished work is there, work under way is done, and what came later is unknown.
        assert_eq!(documents_of(service.caller(), &before).await, documents);
        let body = finished(service.caller(), &running, Duration::from_secs(60)).await;
        assert_eq!((&body["status"], &body["completed"]), (&json!("completed"), &json!(3)), "{body}");
        assert_eq!(service.get(&format!("/v2/batch/scrape/{later}")).await.status, 404);
    }
}
