#![allow(clippy::unwrap_used, reason = "tests")]
use serde_json::{Value, json};

use super::*;
use crate::domain::cache::CacheKey;
use crate::domain::job::JobStatus;
use crate::ids::WorkerId;
use crate::store::page::end::CacheEntry;
use crate::store::page::{claim, finish};
use crate::store::slices::Slices;
use crate::store::{credits, pages, sweep, testing};

fn blobs() -> Blobs {
    Blobs::open(&std::env::temp_dir().join(format!("weir-blobs-{}", uuid::Uuid::now_v7()))).unwrap()
}

fn key(name: &str) -> CacheKey {
    CacheKey(name.to_owned())
}

fn any(name: &str) -> Lookup {
    Lookup { key: key(name), from: Timestamp(0), to: Timestamp(i64::MAX) }
}

async fn found(db: &Db, blobs: &Blobs, name: &str) -> Option<Value> {
    let page = find(db, blobs, &any(name)).await.unwrap()?;
    Some(serde_json::from_str(page.json.get()).unwrap())
}

/// Scrapes a page and stores it under `name` at `at`; its job.
async fn stored(db: &Db, blobs: &Blobs, team: TeamId, name: &str, text: &str, at: Timestamp) -> JobId {
    let (job, ids) = testing::job(db, team, JobKind::Scrape, 1, None).await;
    let claimed = claim::claim_one(db, team, ids[0], WorkerId::new(), 50, Timestamp::now()).await.unwrap();
    let page = claimed.unwrap().0;
    let mut document = documents::encode(blobs, job, page.id, page.epoch, &json!({ "markdown": text })).unwrap();
    let url = format!("http://site.test/{name}");
    document.cache = Some(Box::new(CacheEntry { key: key(name), url, site: Some("site.test".into()) }));
    let outcome = Outcome::Done { document, credits: 1 };
    let end = [Finished { page, kind: Some(JobKind::Scrape), key: None, outcome }];
    assert_eq!(finish::finish(db, &end, at).await.unwrap().ended, [job]);
    job
}

#[tokio::test]
async fn a_page_is_found_by_its_key_and_age_until_another_takes_its_place() {
    for db in testing::databases().await {
        let (blobs, team) = (blobs(), testing::team(&db, "a").await);
        let other = testing::team(&db, "b").await;
        assert_eq!(found(&db, &blobs, "x").await, None);
        stored(&db, &blobs, team, "x", "first", Timestamp(1_000)).await;
        stored(&db, &blobs, team, "y", "else", Timestamp(1_500)).await;
        assert_eq!(found(&db, &blobs, "x").await.unwrap()["markdown"], "first");
        for (from, to, is_there) in [(1_000, 1_000, true), (1_001, 9_000, false), (0, 999, false)] {
            let lookup = Lookup { key: key("x"), from: Timestamp(from), to: Timestamp(to) };
            assert_eq!(find(&db, &blobs, &lookup).await.unwrap().is_some(), is_there, "{from} {to}");
        }
        assert_eq!(known_urls(&db, team, "site.test", 10).await.unwrap(), ["http://site.test/y", "http://site.test/x"]);
        stored(&db, &blobs, other, "x", "second", Timestamp(2_000)).await;
        let page = find(&db, &blobs, &any("x")).await.unwrap().unwrap();
        assert_eq!((page.cached_at, page.json.get()), (Timestamp(2_000), r#"{"markdown":"second"}"#));
        assert_eq!(known_urls(&db, team, "site.test", 10).await.unwrap(), ["http://site.test/y"]);
        assert_eq!(known_urls(&db, other, "site.test", 10).await.unwrap(), ["http://site.test/x"]);
        assert!(known_urls(&db, team, "other.test", 10).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_small_document_outlives_its_job_and_a_large_one_goes_with_it() {
    for db in testing::databases().await {
        let (blobs, team) = (blobs(), testing::team(&db, "a").await);
        stored(&db, &blobs, team, "small", "kept", Timestamp(1_000)).await;
        let noise: Vec<u8> = (0..400_000).map(|_| rand::random()).collect();
        stored(&db, &blobs, team, "large", &hex::encode(noise), Timestamp(1_000)).await;
        assert_eq!(found(&db, &blobs, "large").await.unwrap()["markdown"].as_str().unwrap().len(), 800_000);
        let later = Timestamp::now().plus_ms(90_000_000);
        while sweep::expire(&db, &mut Slices::default(), later).await.unwrap() > 0 {}
        sweep::remove_waste(&db, &blobs, later).await.unwrap();
        assert_eq!(found(&db, &blobs, "small").await.unwrap()["markdown"], "kept");
        assert_eq!(found(&db, &blobs, "large").await, None);
        // One that is stored anew has its document with its job again.
        let job = stored(&db, &blobs, team, "small", "anew", Timestamp(5_000)).await;
        assert_eq!(found(&db, &blobs, "small").await.unwrap()["markdown"], "anew");
        assert!(jobs::load(&db, job).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn the_oldest_go_first_when_there_are_too_many() {
    for db in testing::databases().await {
        let (blobs, team) = (blobs(), testing::team(&db, "a").await);
        let now = Timestamp::now();
        for (name, at) in [("a", now.plus_ms(-3)), ("b", now.plus_ms(-2)), ("c", now.plus_ms(-1))] {
            stored(&db, &blobs, team, name, "text", at).await;
        }
        assert_eq!(evict(&db, 1 << 20, now).await.unwrap(), 0);
        assert_eq!(evict(&db, 2 * (ROW + 100), now).await.unwrap(), 1);
        assert_eq!(found(&db, &blobs, "a").await, None);
        assert!(found(&db, &blobs, "b").await.is_some());
        assert_eq!(evict(&db, 1 << 20, now.plus_ms(LOCKDOWN_MAX_AGE_MS)).await.unwrap(), 2, "two years");
        stored(&db, &blobs, team, "d", "text", now).await;
        assert_eq!(evict(&db, 0, now).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn an_answered_scrape_has_all_its_rows_and_its_bill() {
    for db in testing::databases().await {
        let (blobs, team) = (blobs(), testing::team(&db, "a").await);
        let (job, page, now) = (JobId::new(), PageId::new(), Timestamp::now());
        let options = ScrapeOptions::default();
        let document = documents::encode(&blobs, job, page, 0, &json!({ "markdown": "x" })).unwrap();
        let scrape = Answered {
            job,
            page,
            team,
            key: None,
            options: &options,
            url: "http://site.test/",
            origin: None,
            document,
            credits: 3,
            now,
            expires_at: now.plus_ms(1_000),
        };
        let mut tx = db.begin().await.unwrap();
        write_answered(&mut tx, scrape).await.unwrap();
        tx.commit().await.unwrap();
        let row = jobs::load(&db, job).await.unwrap().unwrap();
        assert_eq!((row.status, row.total, row.completed, row.queued), (JobStatus::Completed, 1, 1, 0));
        assert_eq!((row.credits_used, row.finished_at), (3, Some(now)));
        assert_eq!(documents::by_page(&db, &blobs, page).await.unwrap().unwrap().json.get(), r#"{"markdown":"x"}"#);
        assert_eq!(pages::load(&db, page).await.unwrap().unwrap().url, "http://site.test/");
        assert_eq!(credits::balance(&db, team).await.unwrap().unwrap().used, 3);
    }
}
