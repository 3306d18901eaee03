//! Cached pages: stored with the end of their page, read by what was asked of them, dropped when there are too many.
//!
//! A cached page has no copy of its document as long as the job is kept that brought it; it is read there. When the job
//! expires, a document in its row moves here. One that lies in a blob goes with its job, and so does its cached page.

use serde_json::value::RawValue;

use crate::blobs::Blobs;
use crate::domain::cache::Lookup;
use crate::domain::job::{JobKind, PageState};
use crate::domain::scrape::LOCKDOWN_MAX_AGE_MS;
use crate::domain::scrape::ScrapeOptions;
use crate::ids::{JobId, KeyId, PageId, TeamId};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::page::end::{Encoded, Finished, Outcome};
use super::page::results::write_done;
use super::page::rows::{Claimed, insert_page};
use super::page::rules::job_after;
use super::{Db, StoreError, StoreResult, Tx, documents, jobs, retention};

/// What a row takes besides its document, about, bytes.
const ROW: i64 = 500;
/// Rows dropped in one transaction.
const STEP: i64 = 500;

/// A page that was found.
#[derive(Debug)]
pub struct CachedPage {
    pub cached_at: Timestamp,
    pub json: Box<RawValue>,
}

/// The page that is looked for.
pub async fn find(db: &Db, blobs: &Blobs, lookup: &Lookup) -> StoreResult<Option<CachedPage>> {
    const SQL: &str = "SELECT c.cached_at, COALESCE(c.size, d.size), COALESCE(c.body, d.body), d.blob \
        FROM cached_page c LEFT JOIN document d ON d.page_id = c.page_id AND c.body IS NULL \
        WHERE c.key = $1 AND c.cached_at >= $2 AND c.cached_at <= $3";
    type Row = (Timestamp, Option<i64>, Option<Vec<u8>>, Option<String>);
    let found: Option<Row> = on_pool!(db, |pool| {
        sqlx::query_as(SQL).bind(lookup.key.0.as_str()).bind(lookup.from).bind(lookup.to).fetch_optional(pool).await?
    });
    let Some((cached_at, Some(size), body, blob)) = found else { return Ok(None) };
    let unpacked = match blob {
        None => documents::unpack(blobs, size, body, None),
        Some(_) => {
            let blobs = blobs.clone();
            let reading = tokio::task::spawn_blocking(move || documents::unpack(&blobs, size, body, blob));
            reading.await.map_err(|e| StoreError::Corrupt(e.to_string()))?
        }
    };
    match unpacked {
        Ok(json) => Ok(Some(CachedPage { cached_at, json })),
        // Its job may have expired between the two reads.
        Err(StoreError::Lost(why)) => {
            tracing::debug!(why, "a cached page is gone");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Addresses of a site that the team has stored, newest first.
pub async fn known_urls(db: &Db, team: TeamId, site: &str, limit: i64) -> StoreResult<Vec<String>> {
    const SQL: &str = "SELECT url FROM cached_page WHERE site = $1 AND team_id = $2 ORDER BY cached_at DESC LIMIT $3";
    let rows: Vec<(String,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(site).bind(team).bind(limit).fetch_all(pool).await?);
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// A scrape that is answered from the cache at once.
pub struct Answered<'a> {
    pub job: JobId,
    pub page: PageId,
    pub team: TeamId,
    pub key: Option<KeyId>,
    pub options: &'a ScrapeOptions,
    /// As requested.
    pub url: &'a str,
    pub origin: Option<&'a str>,
    pub document: Encoded,
    pub credits: i64,
    pub now: Timestamp,
    pub expires_at: Timestamp,
}

/// Writes such a scrape: job, page, document and ledger, all of it done.
pub async fn write_answered(tx: &mut Tx, scrape: Answered<'_>) -> StoreResult<()> {
    const PAGE: &str = sql!(
        insert_page!(", started_at, finished_at"),
        "VALUES ($1, $2, $3, 0, $4, 0, ",
        PageState::Done.sql(),
        ", $5, $5, $5, $5)"
    );
    const DONE: &str = sql!(
        "UPDATE job SET queued = 0, completed = 1, credits_used = $2, ",
        job_after!("1", "0", "0", "$3"),
        " WHERE id = $1"
    );
    let Answered { job, page, team, key, now, .. } = scrape;
    let row = jobs::NewJob {
        id: job,
        team,
        key,
        kind: JobKind::Scrape,
        options: scrape.options,
        target: scrape.url,
        origin: scrape.origin,
        max_concurrency: None,
        webhook: None,
        total: 1,
        created_at: now,
        expires_at: scrape.expires_at,
    };
    jobs::insert(tx, &row).await?;
    on_db!(tx, |conn| {
        sqlx::query(PAGE).bind(page).bind(job).bind(team).bind(scrape.url).bind(now).execute(&mut *conn).await?;
        sqlx::query(DONE).bind(job).bind(scrape.credits).bind(now).execute(conn).await?.rows_affected()
    });
    let page = Claimed {
        id: page,
        job_id: job,
        team_id: team,
        idx: 0,
        url: scrape.url.to_owned(),
        depth: 0,
        epoch: 0,
        claims: 0,
        tries: 0,
        queued_at: now,
        started_at: now,
        owner: None,
        limited: false,
        may_rest: false,
        dispatched: false,
    };
    let outcome = Outcome::Done { document: scrape.document, credits: scrape.credits };
    write_done(tx, &Finished { page, kind: Some(JobKind::Scrape), key, outcome }, now).await?;
    if scrape.options.zero_retention { retention::blank(tx, job).await } else { Ok(()) }
}

/// Before the documents of these pages go: the ones in rows that the cache reads move there, those that are `blobs` leave
/// it. Rows are taken in the order of their keys, as where pages are stored.
pub(super) async fn take_over(tx: &mut Tx, inline: &[PageId], blobs: &[PageId]) -> StoreResult<()> {
    const MOVE: &str = "UPDATE cached_page SET body = d.body, size = d.size FROM document d \
        WHERE cached_page.key = $1 AND cached_page.body IS NULL AND d.page_id = cached_page.page_id \
        AND d.body IS NOT NULL";
    const DROP: &str = "DELETE FROM cached_page WHERE key = $1 AND body IS NULL";
    if inline.is_empty() && blobs.is_empty() {
        return Ok(());
    }
    let lock = if matches!(tx, Tx::Postgres(_)) { " FOR UPDATE" } else { "" };
    let read: Vec<(String, PageId)> = on_db!(tx, |conn| {
        let mut select =
            sqlx::QueryBuilder::new("SELECT key, page_id FROM cached_page WHERE body IS NULL AND page_id IN (");
        let mut list = select.separated(", ");
        for page in inline.iter().chain(blobs) {
            list.push_bind(*page);
        }
        select.push(") ORDER BY key").push(lock);
        select.build_query_as().persistent(false).fetch_all(conn).await?
    });
    for (key, page) in read {
        let sql = if blobs.contains(&page) { DROP } else { MOVE };
        on_db!(tx, |conn| sqlx::query(sql).bind(key).execute(conn).await?.rows_affected());
    }
    Ok(())
}

/// Drops pages that are too old, and the oldest while all together take more than `bound` bytes. Returns how many.
pub async fn evict(db: &Db, bound: i64, now: Timestamp) -> StoreResult<u64> {
    const OLD: &str = "SELECT key FROM cached_page WHERE cached_at < $1 ORDER BY cached_at LIMIT $2";
    const SIZE: &str = "SELECT CAST(COALESCE(SUM(bytes), 0) + COUNT(*) * $1 AS BIGINT) FROM cached_page";
    const OLDEST: &str = "SELECT key, bytes FROM cached_page ORDER BY cached_at LIMIT $1";
    let mut dropped = 0;
    loop {
        let mut tx = db.begin().await?;
        let before = now.plus_ms(-LOCKDOWN_MAX_AGE_MS);
        let old: Vec<(String,)> =
            on_db!(&mut tx, |conn| sqlx::query_as(OLD).bind(before).bind(STEP).fetch_all(conn).await?);
        if old.is_empty() {
            break;
        }
        dropped += remove(&mut tx, old.into_iter().map(|row| row.0).collect()).await?;
        tx.commit().await?;
    }
    let size: (i64,) = on_pool!(db, |pool| sqlx::query_as(SIZE).bind(ROW).fetch_one(pool).await?);
    let mut over = size.0 - bound;
    while over > 0 {
        let mut tx = db.begin().await?;
        let oldest: Vec<(String, i64)> =
            on_db!(&mut tx, |conn| sqlx::query_as(OLDEST).bind(STEP).fetch_all(conn).await?);
        let mut keys = Vec::new();
        for (key, bytes) in oldest {
            if over <= 0 {
                break;
            }
            over -= bytes + ROW;
            keys.push(key);
        }
        if keys.is_empty() {
            break;
        }
        dropped += remove(&mut tx, keys).await?;
        tx.commit().await?;
    }
    Ok(dropped)
}

/// Removes rows. They are locked in the order of their keys, as where pages are stored.
async fn remove(tx: &mut Tx, keys: Vec<String>) -> StoreResult<u64> {
    let lock = if matches!(tx, Tx::Postgres(_)) { " ORDER BY key FOR UPDATE" } else { "" };
    Ok(on_db!(tx, |conn| {
        let mut delete =
            sqlx::QueryBuilder::new("DELETE FROM cached_page WHERE key IN (SELECT key FROM cached_page WHERE key IN (");
        let mut list = delete.separated(", ");
        for key in &keys {
            list.push_bind(key.as_str());
        }
        delete.push(")").push(lock).push(")");
        delete.build().persistent(false).execute(conn).await?.rows_affected()
    }))
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
