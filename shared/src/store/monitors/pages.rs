//! What checks found of pages, and the addresses that a target has met.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::domain::monitor::PageStatus;
use crate::ids::{CheckId, MonitorId, PageId};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::checks::CheckRow;
use crate::store::db::parts::parts;
use crate::store::work::documents;
use crate::store::{Db, StoreError, StoreResult, Tx};

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

/// A page that is found, in its place.
pub struct NewPage<'a> {
    pub check: &'a CheckRow,
    /// Place in the check, 1 upwards.
    pub seq: i64,
    pub found: &'a Found,
}

impl<'a> NewPage<'a> {
    /// What a check found after `before` pages.
    pub fn of(check: &'a CheckRow, before: i64, found: &'a [Found]) -> impl Iterator<Item = Self> {
        (before + 1..).zip(found).map(move |(seq, found)| Self { check, seq, found })
    }
}

/// Writes what checks found, and that they have met it. The caller saves the checks in the same transaction.
pub async fn insert(tx: &mut Tx, pages: &[NewPage<'_>], now: Timestamp) -> StoreResult<()> {
    for part in parts(pages) {
        on_db!(&mut *tx, |conn| {
            let mut insert = sqlx::QueryBuilder::new(
                "INSERT INTO monitor_page (id, check_id, seq, target_id, url, status, previous_scrape_id, \
                 current_scrape_id, status_code, error, detail, detail_size, created_at) ",
            );
            insert.push_values(part, |mut row, NewPage { check, seq, found }| {
                row.push_bind(found.id)
                    .push_bind(check.id)
                    .push_bind(*seq)
                    .push_bind(&found.target_id)
                    .push_bind(&found.url)
                    .push_bind(found.status)
                    .push_bind(found.previous_scrape_id)
                    .push_bind(found.current_scrape_id)
                    .push_bind(found.status_code)
                    .push_bind(found.error.as_deref())
                    .push_bind(found.detail.packed.as_slice())
                    .push_bind(found.detail.size)
                    .push_bind(now);
            });
            insert.build().execute(conn).await?.rows_affected()
        });
    }
    meet(tx, pages, now).await
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

/// An address of a target.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    pub monitor: MonitorId,
    pub target: String,
    /// Digest of the address.
    key: String,
}

impl Address {
    pub fn new(monitor: MonitorId, target: &str, url: &str) -> Self {
        Self { monitor, target: target.to_owned(), key: hex::encode(Sha256::digest(url)) }
    }
}

/// What is known of these addresses.
pub async fn known(db: &Db, addresses: &[Address]) -> StoreResult<HashMap<Address, Known>> {
    type Row = (MonitorId, String, String, Option<PageId>, bool);
    let mut found = HashMap::new();
    for part in parts(addresses) {
        let rows: Vec<Row> = on_pool!(db, |pool| {
            let mut select = sqlx::QueryBuilder::new(
                "SELECT monitor_id, target_id, key, scrape_id, is_gone FROM monitor_url \
                 WHERE (monitor_id, target_id, key) IN (VALUES ",
            );
            let mut list = select.separated(", ");
            for address in part {
                list.push("(").push_bind_unseparated(address.monitor).push_unseparated(", ");
                list.push_bind_unseparated(&address.target).push_unseparated(", ");
                list.push_bind_unseparated(&address.key).push_unseparated(")");
            }
            select.push(")");
            select.build_query_as().fetch_all(pool).await?
        });
        found.extend(rows.into_iter().map(|(monitor, target, key, scrape_id, is_gone)| {
            (Address { monitor, target, key }, Known { scrape_id, is_gone })
        }));
    }
    Ok(found)
}

/// What a check has met at an address.
struct Met<'a> {
    check: CheckId,
    url: &'a str,
    scrape_id: Option<PageId>,
    is_gone: bool,
}

/// Notes that checks have met addresses of their targets. One that failed stays as it was, if it was known at all.
pub(super) async fn meet(tx: &mut Tx, pages: &[NewPage<'_>], now: Timestamp) -> StoreResult<()> {
    const FAILED: &str = "UPDATE monitor_url SET check_id = $4, seen_at = $5 \
        WHERE monitor_id = $1 AND target_id = $2 AND key = $3";
    // An address may be met twice: what was found last holds.
    let mut met: BTreeMap<Address, Met<'_>> = BTreeMap::new();
    for NewPage { check, found, .. } in pages {
        let address = Address::new(check.monitor_id, &found.target_id, &found.url);
        if found.status == PageStatus::Error {
            let Address { monitor, target, key } = address;
            on_db!(&mut *tx, |conn| {
                let query = sqlx::query(FAILED).bind(monitor).bind(target).bind(key).bind(check.id).bind(now);
                query.execute(conn).await?.rows_affected()
            });
            continue;
        }
        let is_gone = found.status == PageStatus::Removed || matches!(found.status_code, Some(404 | 410));
        let before = met.get(&address).and_then(|met| met.scrape_id);
        let scrape_id = found.current_scrape_id.or(before);
        met.insert(address, Met { check: check.id, url: &found.url, scrape_id, is_gone });
    }
    let met: Vec<(Address, Met<'_>)> = met.into_iter().collect();
    for part in parts(&met) {
        on_db!(&mut *tx, |conn| {
            let mut insert = sqlx::QueryBuilder::new(
                "INSERT INTO monitor_url (monitor_id, target_id, key, url, scrape_id, is_gone, check_id, seen_at) ",
            );
            insert.push_values(part, |mut row, (address, met)| {
                row.push_bind(address.monitor)
                    .push_bind(&address.target)
                    .push_bind(&address.key)
                    .push_bind(met.url)
                    .push_bind(met.scrape_id)
                    .push_bind(met.is_gone)
                    .push_bind(met.check)
                    .push_bind(now);
            });
            insert.push(
                " ON CONFLICT (monitor_id, target_id, key) DO UPDATE SET \
                 scrape_id = COALESCE(excluded.scrape_id, monitor_url.scrape_id), is_gone = excluded.is_gone, \
                 check_id = excluded.check_id, seen_at = excluded.seen_at",
            );
            insert.build().execute(conn).await?.rows_affected()
        });
    }
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
