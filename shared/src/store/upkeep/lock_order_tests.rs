//! What becomes of transactions that meet on the same rows, on Postgres: none waits for one that waits for it, and what came
//! into use while its removal waited for it stays. SQLite has one writer at a time.

#![allow(clippy::unwrap_used, reason = "tests")]

use tokio::task::JoinHandle;

use crate::domain::api_version::ApiVersion;
use crate::ids::{JobId, TeamId, WorkerId};
use crate::store::accounts::credits::{self, Charge};
use crate::store::accounts::team_lock;
use crate::store::contents::extractors::{self, Learning, Topic};
use crate::store::contents::{site_templates, sitemaps};
use crate::store::testing::{databases, team, wait_for_a_lock};
use crate::store::work::searches::{self, NewSearch};
use crate::store::{Db, StoreResult, Tx};

/// Past the age at which anything goes that nobody uses, milliseconds.
const LONG_MS: i64 = 400 * 86_400_000;

/// `None`: there is no server.
async fn postgres() -> Option<Db> {
    databases().await.into_iter().find(|db| matches!(db, Db::Postgres(_)))
}

/// Begins a transaction, and comes back once it waits for a row; it is committed when it has that.
async fn begin_to_wait<Work>(db: &Db, work: impl FnOnce(Tx) -> Work) -> JoinHandle<()>
where
    Work: Future<Output = StoreResult<Tx>> + Send + 'static,
{
    let work = work(db.begin().await.unwrap());
    let task = tokio::spawn(async { work.await.unwrap().commit().await.unwrap() });
    wait_for_a_lock(db).await;
    task
}

#[tokio::test]
async fn a_search_is_billed_after_whoever_bills_the_team() {
    let Some(db) = postgres().await else { return };
    let (team, now) = (team(&db, "a").await, db.now());
    // A page that ends has its team before it enters anything in the ledger, to whose month both of them add.
    let mut page = db.begin().await.unwrap();
    team_lock::lock(&mut page, team).await.unwrap().unwrap();
    let search = begin_to_wait(&db, |mut tx| async move {
        let (id, version) = (JobId::new(), ApiVersion::V2);
        let search = NewSearch { id, team, key: None, version, query: None, credits: 2, created_at: now };
        searches::record(&mut tx, &search).await?;
        Ok(tx)
    })
    .await;
    let charge = Charge { entry: "page:1".into(), team, key: None, kind: "batch", amount: 1, at: now };
    credits::charge(&mut page, charge).await.unwrap();
    page.commit().await.unwrap();
    search.await.unwrap();
    assert_eq!(credits::balance(&db, team).await.unwrap().unwrap().used, 3);
}

#[tokio::test]
async fn learning_goes_on_while_what_was_learned_long_ago_is_removed() {
    let Some(db) = postgres().await else { return };
    let topic = Topic { team: team(&db, "a").await, site: "shop.test".to_owned(), wish: "w".repeat(64) };
    let (worker, now) = (WorkerId::new(), db.now());
    let long_ago = now.plus_ms(-LONG_MS);
    let mut tx = db.begin().await.unwrap();
    extractors::lock(&mut tx, &topic, long_ago).await.unwrap();
    extractors::begin_reading(&mut tx, &topic, "p", worker, long_ago, now).await.unwrap();
    assert!(extractors::keep(&mut tx, &topic, "p", worker, "s", b"x").await.unwrap());
    tx.commit().await.unwrap();
    let mut tx = db.begin().await.unwrap();
    extractors::lock(&mut tx, &topic, now).await.unwrap();
    let removal = begin_to_wait(&db, |mut tx| async move {
        extractors::expire(&mut tx, now).await?;
        Ok(tx)
    })
    .await;
    extractors::forget(&mut tx, &topic, &["p".to_owned()]).await.unwrap();
    extractors::set(&mut tx, &topic, &Learning { failures: 2, ..Learning::default() }).await.unwrap();
    tx.commit().await.unwrap();
    removal.await.unwrap();
    assert_eq!(extractors::look(&db, &topic, now).await.unwrap().0.failures, 2, "it is in use again");
}

#[tokio::test]
async fn the_same_sitemaps_are_kept_by_several_at_once() {
    let Some(db) = postgres().await else { return };
    let (team, now) = (TeamId::new(), db.now());
    let one: Vec<_> = (0..300).map(|n| (format!("{n:03}"), vec![1])).collect();
    let two: Vec<_> = one.iter().rev().cloned().collect();
    let put = async |files: &[(String, Vec<u8>)]| {
        let mut tx = db.begin().await?;
        sitemaps::put(&mut tx, team, files, now, now.plus_ms(1_000)).await?;
        tx.commit().await
    };
    for _ in 0..3 {
        let (first, second) = tokio::join!(put(&one), put(&two));
        first.unwrap();
        second.unwrap();
    }
    assert!(sitemaps::get(&db, team, "299", now).await.unwrap().is_some());
}

#[tokio::test]
async fn a_sitemap_that_is_kept_anew_stays() {
    let Some(db) = postgres().await else { return };
    let (team, now) = (team(&db, "a").await, db.now());
    let long_ago = now.plus_ms(-LONG_MS);
    let file = [("key".to_owned(), vec![1])];
    let mut tx = db.begin().await.unwrap();
    sitemaps::put(&mut tx, team, &file, long_ago, long_ago).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = db.begin().await.unwrap();
    sitemaps::put(&mut tx, team, &file, now, now.plus_ms(1_000)).await.unwrap();
    let removal = begin_to_wait(&db, |mut tx| async move {
        sitemaps::expire(&mut tx, now).await?;
        Ok(tx)
    })
    .await;
    tx.commit().await.unwrap();
    removal.await.unwrap();
    assert!(sitemaps::get(&db, team, "key", now).await.unwrap().is_some());
}

#[tokio::test]
async fn a_template_that_grows_again_stays() {
    let Some(db) = postgres().await else { return };
    let (team, now) = (team(&db, "a").await, db.now());
    let long_ago = now.plus_ms(-LONG_MS);
    site_templates::write(&db, team, "https://a.test", long_ago, |_| b"old".to_vec()).await.unwrap();
    // Another worker has added to it, and is about to commit.
    let mut tx = db.begin().await.unwrap();
    let Tx::Postgres(postgres) = &mut tx else { unreachable!("it is one") };
    sqlx::query("UPDATE site_template SET changed_at = $1").bind(now).execute(&mut **postgres).await.unwrap();
    let removal = begin_to_wait(&db, |mut tx| async move {
        site_templates::expire(&mut tx, now).await?;
        Ok(tx)
    })
    .await;
    tx.commit().await.unwrap();
    removal.await.unwrap();
    assert!(site_templates::read(&db, team, "https://a.test").await.unwrap().is_some());
}
