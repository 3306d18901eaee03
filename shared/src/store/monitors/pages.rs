//! What checks found of pages, and the addresses that a target has met.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::domain::monitor::PageStatus;
use crate::ids::{CheckId, MonitorId, PageId};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::checks::CheckRow;
use crate::store::{Db, StoreError, StoreResult, Tx, documents};

/// Rows in one statement.
const AT_ONCE: usize = 50;
/// How hard a page's details are packed: they are written once and seldom read.
const LEVEL: i32 = 3;

/// What a check found of a page.
pub struct Found {
    pub id: PageId,
    pub target_id: String,
    pub url: String,
    pub status: PageStatus,
    pub previous_scrape_id: Option<PageId>,
    pub current_scrape_id: Option<PageId>,
    pub status_code: Option<i64>,
    pub error: Option<String>,
    pub detail: Detail,
}

/// The larger part of it, packed.
pub struct Detail {
    size: i64,
    packed: Vec<u8>,
}

impl Detail {
    /// Packs it. Computes.
    pub fn new(detail: &impl Serialize) -> StoreResult<Self> {
        let json = serde_json::to_vec(detail)?;
        let packed = zstd::bulk::compress(&json, LEVEL).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        Ok(Self { size: json.len() as i64, packed })
    }
}

/// Writes what a check found, after `before` pages. The caller saves the check in the same transaction.
pub async fn insert(tx: &mut Tx, check: CheckId, before: i64, found: &[Found], now: Timestamp) -> StoreResult<()> {
    for (part, pages) in found.chunks(AT_ONCE).enumerate() {
        on_db!(tx, |conn| {
            let mut insert = sqlx::QueryBuilder::new(
                "INSERT INTO monitor_page (id, check_id, seq, target_id, url, status, previous_scrape_id, \
                 current_scrape_id, status_code, error, detail, detail_size, created_at) ",
            );
            insert.push_values(pages.iter().enumerate(), |mut row, (n, page)| {
                row.push_bind(page.id)
                    .push_bind(check)
                    .push_bind(before + (part * AT_ONCE + n) as i64 + 1)
                    .push_bind(&page.target_id)
                    .push_bind(&page.url)
                    .push_bind(page.status)
                    .push_bind(page.previous_scrape_id)
                    .push_bind(page.current_scrape_id)
                    .push_bind(page.status_code)
                    .push_bind(page.error.as_deref())
                    .push_bind(page.detail.packed.as_slice())
                    .push_bind(page.detail.size)
                    .push_bind(now);
            });
            insert.build().persistent(false).execute(conn).await?.rows_affected()
        });
    }
    Ok(())
}

/// A page of a check as stored.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct CheckPageRow {
    pub id: PageId,
    pub check_id: CheckId,
    pub target_id: String,
    pub url: String,
    pub status: PageStatus,
    pub previous_scrape_id: Option<PageId>,
    pub current_scrape_id: Option<PageId>,
    pub status_code: Option<i64>,
    pub error: Option<String>,
    detail: Vec<u8>,
    detail_size: i64,
    pub created_at: Timestamp,
}

impl CheckPageRow {
    /// The larger part of it, as text of JSON. Computes.
    pub fn detail(&self) -> StoreResult<Box<RawValue>> {
        documents::open(self.detail_size, &self.detail)
    }

    /// Bytes of it when unpacked.
    pub const fn detail_size(&self) -> i64 {
        self.detail_size
    }
}

macro_rules! page_columns {
    () => {
        "id, check_id, target_id, url, status, previous_scrape_id, current_scrape_id, status_code, error, detail, \
         detail_size, created_at"
    };
}

/// Pages of a check in the order in which they were found; `status`: those of this one.
pub async fn list(
    db: &Db,
    check: CheckId,
    status: Option<PageStatus>,
    skip: i64,
    limit: i64,
) -> StoreResult<Vec<CheckPageRow>> {
    const ALL: &str = concat!(
        "SELECT ",
        page_columns!(),
        " FROM monitor_page WHERE check_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
    );
    const SOME: &str = concat!(
        "SELECT ",
        page_columns!(),
        " FROM monitor_page WHERE check_id = $1 AND status = $4 ORDER BY seq LIMIT $3 OFFSET $2"
    );
    Ok(on_pool!(db, |pool| match status {
        None => sqlx::query_as(ALL).bind(check).bind(skip).bind(limit).fetch_all(pool).await?,
        Some(status) => {
            sqlx::query_as(SOME).bind(check).bind(skip).bind(limit).bind(status.as_str()).fetch_all(pool).await?
        }
    }))
}

/// The pages that a check has told of as failed, by what they are in their jobs.
pub async fn failed(db: &Db, check: CheckId) -> StoreResult<HashSet<PageId>> {
    const SQL: &str =
        sql!("SELECT current_scrape_id FROM monitor_page WHERE check_id = $1 AND status = ", PageStatus::Error.sql());
    let rows: Vec<(Option<PageId>,)> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(check).fetch_all(pool).await?);
    Ok(rows.into_iter().filter_map(|row| row.0).collect())
}

/// A page of a check.
pub async fn load(db: &Db, id: PageId) -> StoreResult<Option<CheckPageRow>> {
    const SQL: &str = concat!("SELECT ", page_columns!(), " FROM monitor_page WHERE id = $1");
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?))
}

/// What is known of an address of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub scrape_id: Option<PageId>,
    pub is_gone: bool,
}

/// What an address is found by.
pub fn key(url: &str) -> String {
    hex::encode(Sha256::digest(url))
}

/// What is known of these addresses, by their keys.
pub async fn known(db: &Db, monitor: MonitorId, target: &str, keys: &[String]) -> StoreResult<HashMap<String, Known>> {
    let mut found = HashMap::new();
    for part in keys.chunks(AT_ONCE) {
        let rows: Vec<(String, Option<PageId>, bool)> = on_pool!(db, |pool| {
            let mut select =
                sqlx::QueryBuilder::new("SELECT key, scrape_id, is_gone FROM monitor_url WHERE monitor_id = ");
            select.push_bind(monitor).push(" AND target_id = ").push_bind(target).push(" AND key IN (");
            let mut list = select.separated(", ");
            for key in part {
                list.push_bind(key);
            }
            select.push(")");
            select.build_query_as().persistent(false).fetch_all(pool).await?
        });
        found.extend(rows.into_iter().map(|(key, scrape_id, is_gone)| (key, Known { scrape_id, is_gone })));
    }
    Ok(found)
}

/// Notes that a check has met an address of a target. One that failed stays as it was, if it was known at all.
pub async fn meet(tx: &mut Tx, check: &CheckRow, found: &Found, now: Timestamp) -> StoreResult<()> {
    const MET: &str = "INSERT INTO monitor_url (monitor_id, target_id, key, url, scrape_id, is_gone, check_id, seen_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (monitor_id, target_id, key) DO UPDATE SET \
        scrape_id = COALESCE(excluded.scrape_id, monitor_url.scrape_id), is_gone = excluded.is_gone, \
        check_id = excluded.check_id, seen_at = excluded.seen_at";
    const FAILED: &str = "UPDATE monitor_url SET check_id = $4, seen_at = $5 \
        WHERE monitor_id = $1 AND target_id = $2 AND key = $3";
    let key = key(&found.url);
    let (monitor, target) = (check.monitor_id, found.target_id.as_str());
    let is_gone = found.status == PageStatus::Removed || matches!(found.status_code, Some(404 | 410));
    on_db!(tx, |conn| {
        let query = match found.status {
            PageStatus::Error => sqlx::query(FAILED).bind(monitor).bind(target).bind(key).bind(check.id).bind(now),
            _ => sqlx::query(MET)
                .bind(monitor)
                .bind(target)
                .bind(key)
                .bind(found.url.as_str())
                .bind(found.current_scrape_id)
                .bind(is_gone)
                .bind(check.id)
                .bind(now),
        };
        query.execute(conn).await?.rows_affected()
    });
    Ok(())
}

/// Addresses of a target that were there and that this check has not met, up to `limit`.
pub async fn missing(
    db: &Db,
    check: &CheckRow,
    target: &str,
    limit: i64,
) -> StoreResult<Vec<(String, Option<PageId>)>> {
    const SQL: &str = "SELECT url, scrape_id FROM monitor_url WHERE monitor_id = $1 AND target_id = $2 AND check_id <> $3 \
        AND NOT is_gone ORDER BY key LIMIT $4";
    Ok(on_pool!(db, |pool| {
        sqlx::query_as(SQL).bind(check.monitor_id).bind(target).bind(check.id).bind(limit).fetch_all(pool).await?
    }))
}
