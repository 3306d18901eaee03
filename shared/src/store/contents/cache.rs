//! What sites have sent: stored with the end of the page that brought it, read to make pages of it without asking again,
//! dropped when it takes too much.
//!
//! ```text
//! page_version   one way of asking for a page -> what is known of the newest answer, and its content
//! page_earlier   the same for what it was before: written by the database when a version gets another content
//! page_content   what came, compressed, once each; a large one lies in a blob
//! page_blob      blobs that may be nobody's: see [`super::waste`]
//! page_derived   what was made of a content at a cost: see [`super::derived`]
//! ```
//!
//! What was not used for longest goes first. Reads write nothing: [`Uses`] remembers them, and tells the database of each
//! content once an hour. A content that no version names any more is not used any more, so it needs no search. A version
//! whose content is gone is as good as none, and goes later: [`super::orphans`].

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};
use sqlx::AssertSqlSafe;

use crate::blobs::Blobs;
use crate::domain::cache::{CacheKey, Head, Lookup, Parts, short};
use crate::domain::map::site_of;
use crate::domain::scrape::LOCKDOWN_MAX_AGE_MS;
use crate::fault::FaultPoint;
use crate::ids::TeamId;
use crate::time::Timestamp;
use crate::{blocking, random};
use crate::{on_db, on_pool};

use crate::store::{Db, StoreError, StoreResult, Tx};

use super::version::{Body, Version};
use super::{derived, waste};

/// What the rows of a content take besides it, about, bytes.
const ROW: i64 = 1_000;
/// Rows dropped in one transaction.
const STEP: i64 = 500;
/// A use is written down when the last one was so long ago, milliseconds.
const USE_MS: i64 = 3_600_000;
/// Uses that wait to be written down; further ones are forgotten.
const MOST_USES: usize = 10_000;
/// A content may unpack to so many bytes at most.
const MOST: i64 = 256 << 20;

/// The parts of a content, in the order of [`Parts`].
pub type PartsOf<'a> = [Option<&'a [u8]>; 4];

impl Parts {
    /// The lengths of these.
    pub fn of(parts: &PartsOf<'_>) -> Self {
        let [body, dom, shot, branding] = parts.map(|part| part.map(<[u8]>::len));
        Self { body, dom, shot, branding }
    }
}

impl Version {
    /// Makes an answer ready to be stored at these places, where it counts for so long. `None`: it is too large. Computes.
    ///
    /// # Errors
    /// When it cannot be compressed.
    pub fn pack(
        (places, counts_ms): (Vec<CacheKey>, i64),
        url: &str,
        head: &Head,
        parts: &PartsOf<'_>,
    ) -> std::io::Result<Option<Self>> {
        let size: usize = parts.iter().flatten().map(|part| part.len()).sum();
        if size as i64 > MOST {
            return Ok(None);
        }
        let packed = match parts {
            [Some(body), None, None, None] => weir_packing::compress(body)?,
            parts => weir_packing::compress(&parts.iter().flatten().copied().collect::<Vec<_>>().concat())?,
        };
        let mut digest = Sha256::new();
        for length in Parts::of(parts).all() {
            digest.update(length.map_or(u64::MAX, |length| length as u64).to_le_bytes());
        }
        digest.update(&packed);
        Ok(Some(Self {
            places,
            counts_ms,
            url: url.to_owned(),
            site: site_of(url),
            digest: short(digest),
            head: serde_json::to_string(head).map_err(std::io::Error::other)?,
            size: size as i64,
            packed: packed.len() as i64,
            body: Body::Inline(packed),
        }))
    }

    /// Puts a large content among the blobs, where it waits for its row.
    ///
    /// # Errors
    /// When it cannot be stored now. Its content is gone then.
    pub async fn settle(&mut self, db: &Db, blobs: &Blobs) -> StoreResult<()> {
        let Some(packed) = self.body.take_large() else { return Ok(()) };
        let key = Blobs::version_key(random::id());
        waste::put(db, blobs, &key, Arc::new(packed)).await?;
        self.body = Body::Blob(key);
        Ok(())
    }
}

/// An answer that was found, its content still packed.
#[derive(Debug, Clone)]
pub struct Found {
    /// When it was stored last, as far as that is asked for.
    pub stored_at: Timestamp,
    /// Since when it was stored with this content.
    since: Timestamp,
    pub head: Head,
    digest: String,
    size: i64,
    body: Option<Vec<u8>>,
    blob: Option<String>,
    used_at: Timestamp,
}

/// The parts of a content, unpacked.
#[derive(Debug)]
pub struct Content {
    bytes: Vec<u8>,
    parts: Parts,
}

impl Content {
    /// The parts, in the order of [`Parts`].
    pub fn into_parts(mut self) -> [Option<Vec<u8>>; 4] {
        let lengths = self.parts.all();
        let mut parts = [const { None }; 4];
        // From the end, so that each is cut off and the first one stays where it is.
        for place in (0..lengths.len()).rev().filter(|place| lengths[*place].is_some()) {
            let begin: usize = lengths[..place].iter().flatten().sum();
            parts[place] = Some(self.bytes.split_off(begin));
        }
        parts
    }
}

impl Found {
    /// It as of a time at which it was there.
    fn seen_by(self, to: Timestamp) -> Self {
        let stored_at = if self.stored_at <= to { self.stored_at } else { self.since };
        Self { stored_at, ..self }
    }

    /// What its content is known by.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    fn lost(&self, why: &dyn std::fmt::Display) -> StoreError {
        StoreError::Lost(format!("content {}: {why}", self.digest))
    }

    /// Brings the content here where it lies in a blob. Waits for as long as a bucket does not answer, on a thread on which
    /// nobody computes.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when it cannot be read, [`StoreError::BlobsAway`] when it cannot be read now.
    pub async fn bring(mut self, blobs: &Blobs) -> StoreResult<Self> {
        if let (None, Some(key)) = (&self.body, &self.blob) {
            let (blobs, key) = (blobs.clone(), key.clone());
            let read = blocking::run(move || blobs.get(&key).map_err(|error| (blobs.is_away(&error), error)));
            self.body = match read.await.map_err(StoreError::BlobsAway)? {
                Ok(body) => Some(body),
                Err((true, error)) => return Err(StoreError::BlobsAway(error)),
                Err((false, error)) => return Err(self.lost(&error)),
            };
        }
        Ok(self)
    }

    /// Unpacks the content, once it is here. Computes.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when that cannot be done.
    pub fn unpack(&self) -> StoreResult<Content> {
        let lost = |why: &dyn std::fmt::Display| self.lost(why);
        let packed = self.body.as_ref().ok_or_else(|| lost(&"it has no body"))?;
        let parts = self.head.parts;
        let size = parts.all().iter().flatten().try_fold(0_usize, |sum, length| sum.checked_add(*length));
        let size = size.filter(|size| *size as i64 == self.size && self.size <= MOST);
        let size = size.ok_or_else(|| lost(&"its parts are not as long as it is"))?;
        let bytes = weir_packing::decompress(packed, size).map_err(|error| lost(&error))?;
        match bytes.len() == size {
            true => Ok(Content { bytes, parts }),
            false => Err(lost(&"it is cut")),
        }
    }
}

/// The columns of an answer and of its content.
type Row = (String, Timestamp, Option<Timestamp>, String, String, i64, Option<Vec<u8>>, Option<String>, Timestamp);

/// Where answers lie: the newest one to each way of asking, and what it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    Newest,
    Earlier,
}

impl Age {
    /// Where they lie.
    pub(super) const fn table(self) -> &'static str {
        match self {
            Self::Newest => "page_version",
            Self::Earlier => "page_earlier",
        }
    }

    /// The beginning of a statement that reads them.
    const fn select(self) -> &'static str {
        match self {
            Self::Newest => {
                "SELECT v.key, v.stored_at, v.since, v.head, v.digest, c.size, c.body, c.blob, c.used_at \
                 FROM page_version v JOIN page_content c ON c.digest = v.digest WHERE "
            }
            Self::Earlier => {
                "SELECT v.key, v.stored_at, v.since, v.head, v.digest, c.size, c.body, c.blob, c.used_at \
                 FROM page_earlier v JOIN page_content c ON c.digest = v.digest WHERE "
            }
        }
    }
}

/// The answers that were stored where it is looked, newest first. Of a page that was the same for long any time since
/// counts.
///
/// # Errors
/// When the database cannot be asked.
pub async fn find(db: &Db, lookup: &Lookup) -> StoreResult<Vec<Found>> {
    let newest = rows_of(db, Age::Newest, lookup, None).await?;
    // Where any age is young enough, what was before is of no use.
    let earlier = match lookup.to == Timestamp(i64::MAX) {
        true => Vec::new(),
        false => rows_of(db, Age::Earlier, lookup, None).await?,
    };
    let kept = newest.into_iter().chain(earlier).filter_map(read);
    Ok(kept.map(|kept| kept.found.seen_by(lookup.to)).collect())
}

/// The same for several pages in one statement, in their order, where any age is young enough.
///
/// # Errors
/// When the database cannot be asked.
pub(super) async fn find_newest(db: &Db, lookups: &[&Lookup]) -> StoreResult<Vec<Vec<Found>>> {
    let oldest = |time: fn(&Lookup) -> Timestamp| lookups.iter().map(|lookup| time(lookup)).min();
    let (Some(from), Some(now)) = (oldest(|lookup| lookup.from), oldest(|lookup| lookup.now)) else {
        return Ok(Vec::new());
    };
    let mut keys: Vec<&CacheKey> = lookups.iter().flat_map(|lookup| &lookup.keys).collect();
    // So there are few statements to prepare.
    if let Some(last) = keys.last().copied() {
        keys.resize(keys.len().next_power_of_two(), last);
    }
    let rows: Vec<NewestRow> = on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new(
            "SELECT v.key, v.stored_at, v.since, v.head, v.digest, c.size, c.body, c.blob, c.used_at, v.expires_at \
             FROM page_version v JOIN page_content c ON c.digest = v.digest WHERE v.key IN (",
        );
        let mut list = select.separated(", ");
        for key in keys {
            list.push_bind(key.0.as_str());
        }
        select.push(") AND v.stored_at >= ").push_bind(from);
        select.push(" AND v.expires_at > ").push_bind(now);
        select.push(" ORDER BY v.stored_at DESC");
        select.build_query_as().fetch_all(pool).await?
    });
    let mut found = vec![Vec::new(); lookups.len()];
    for NewestRow { row, expires_at } in rows {
        let Some(kept) = read(row) else { continue };
        for (lookup, found) in lookups.iter().zip(&mut found) {
            let is_its = lookup.keys.iter().any(|key| key.0 == kept.key);
            if is_its && kept.found.stored_at >= lookup.from && expires_at > lookup.now {
                found.push(kept.found.clone());
            }
        }
    }
    Ok(found)
}

/// An answer, with when it expires.
#[derive(sqlx::FromRow)]
struct NewestRow {
    #[sqlx(flatten)]
    row: Row,
    expires_at: Timestamp,
}

/// `None`: what is said of it cannot be read.
fn read(row: Row) -> Option<Kept> {
    kept_of(row).inspect_err(|error| tracing::warn!(%error, "what is known of a stored page cannot be read")).ok()
}

/// The answer with this content, whether it is the newest or was there before.
///
/// # Errors
/// When the database cannot be asked, or what it says cannot be read.
pub async fn find_content(db: &Db, keys: &[CacheKey], digest: &str) -> StoreResult<Option<Found>> {
    let lookup = Lookup { keys: keys.to_vec(), from: Timestamp(0), to: Timestamp(i64::MAX), now: Timestamp(0) };
    for age in [Age::Newest, Age::Earlier] {
        if let Some(row) = rows_of(db, age, &lookup, Some(digest)).await?.pop() {
            return Ok(Some(kept_of(row)?.found));
        }
    }
    Ok(None)
}

async fn rows_of(db: &Db, age: Age, lookup: &Lookup, digest: Option<&str>) -> StoreResult<Vec<Row>> {
    Ok(on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new(age.select());
        select.push("v.key IN (");
        let mut list = select.separated(", ");
        for key in &lookup.keys {
            list.push_bind(key.0.as_str());
        }
        select.push(") AND v.stored_at >= ").push_bind(lookup.from);
        select.push(" AND COALESCE(v.since, v.stored_at) <= ").push_bind(lookup.to);
        select.push(" AND v.expires_at > ").push_bind(lookup.now);
        if let Some(digest) = digest {
            select.push(" AND v.digest = ").push_bind(digest);
        }
        select.push(" ORDER BY v.stored_at DESC");
        select.build_query_as().fetch_all(pool).await?
    }))
}

fn kept_of(row: Row) -> StoreResult<Kept> {
    let (key, stored_at, since, head, digest, size, body, blob, used_at) = row;
    let head = serde_json::from_str(&head).map_err(|error| StoreError::Corrupt(format!("page_version: {error}")))?;
    let since = since.unwrap_or(stored_at);
    Ok(Kept { key, found: Found { stored_at, since, head, digest, size, body, blob, used_at } })
}

/// An answer with its place.
#[derive(Debug)]
pub struct Kept {
    pub key: String,
    pub found: Found,
}

/// What is kept, of one registered domain or of all, in the order of keys and digests: the first ones after such a pair.
///
/// # Errors
/// When the database cannot be asked.
pub async fn kept_after(
    db: &Db,
    age: Age,
    (key, digest): (&str, &str),
    site: Option<&str>,
    limit: i64,
) -> StoreResult<Vec<Kept>> {
    let rows: Vec<Row> = on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new(age.select());
        select.push("(v.key, v.digest) > (").push_bind(key).push(", ").push_bind(digest).push(")");
        if let Some(site) = site {
            select.push(" AND v.site = ").push_bind(site);
        }
        select.push(" ORDER BY v.key, v.digest LIMIT ").push_bind(limit);
        select.build_query_as().fetch_all(pool).await?
    });
    rows.into_iter().map(kept_of).collect()
}

/// Which contents were read lately, as far as the database is to hear of it.
#[derive(Debug, Default)]
pub struct Uses(Mutex<HashSet<String>>);

impl Uses {
    /// Remembers that this was read at that time.
    pub fn note(&self, found: &Found, now: Timestamp) {
        if now.ms_since(found.used_at) < USE_MS {
            return;
        }
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.len() < MOST_USES {
            uses.insert(found.digest.clone());
        }
    }

    /// Tells the database.
    ///
    /// # Errors
    /// When it cannot be told; what was remembered is forgotten then.
    pub async fn tell(&self, db: &Db) -> StoreResult<()> {
        let uses = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut uses: Vec<String> = uses.into_iter().collect();
        uses.sort_unstable();
        for part in uses.chunks(STEP as usize) {
            const SQL: &str = "UPDATE page_content SET used_at = $2 WHERE digest = $1 AND used_at < $2";
            let (mut tx, now) = (db.begin_relaxed().await?, db.now());
            for digest in part {
                on_db!(&mut tx, |conn| sqlx::query(SQL).bind(digest).bind(now).execute(conn).await?.rows_affected());
            }
            tx.commit().await?;
        }
        Ok(())
    }
}

/// Addresses of a site that the team has stored, newest first.
pub async fn known_urls(db: &Db, team: TeamId, site: &str, limit: i64) -> StoreResult<Vec<String>> {
    const SQL: &str = "SELECT url FROM page_version WHERE site = $1 AND team_id = $2 ORDER BY stored_at DESC LIMIT $3";
    let rows: Vec<(String,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(site).bind(team).bind(limit).fetch_all(pool).await?);
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// Drops what has expired, and what was not used for longest while all together takes more than `bound` bytes. Returns how
/// many contents and versions went.
///
/// # Errors
/// When the database cannot be asked.
pub async fn evict(db: &Db, bound: i64, now: Timestamp) -> StoreResult<u64> {
    const SIZE: &str = "SELECT CAST((SELECT COALESCE(SUM(packed), 0) + COUNT(*) * $1 FROM page_content) \
        + (SELECT COALESCE(SUM(packed), 0) + COUNT(*) * $2 FROM page_derived) AS BIGINT)";
    const OLD: &str = "SELECT digest, CAST(packed + $1 + (SELECT COALESCE(SUM(d.packed), 0) + COUNT(*) * $2 \
        FROM page_derived d WHERE d.digest = page_content.digest) AS BIGINT) \
        FROM page_content WHERE used_at < $3 ORDER BY used_at LIMIT $4";
    drop_old_rows(db).await?;
    let mut dropped = drop_expired(db, now).await?;
    let before = now.plus_ms(-LOCKDOWN_MAX_AGE_MS);
    let size: (i64,) = on_pool!(db, |pool| sqlx::query_as(SIZE).bind(ROW).bind(derived::ROW).fetch_one(pool).await?);
    let mut over = size.0 - bound;
    loop {
        // A content that nobody has used for so long is no version's that counts.
        let until = if over > 0 { Timestamp(i64::MAX) } else { before };
        let oldest: Vec<(String, i64)> = on_pool!(db, |pool| {
            sqlx::query_as(OLD).bind(ROW).bind(derived::ROW).bind(until).bind(STEP).fetch_all(pool).await?
        });
        let mut digests = Vec::new();
        for (digest, room) in oldest {
            if over <= 0 && until != before {
                break;
            }
            over -= room;
            digests.push(digest);
        }
        let gone = drop_contents(db, &digests, now).await?;
        if gone == 0 {
            return Ok(dropped);
        }
        dropped += gone;
    }
}

/// What the release before has kept, and may still write as long as a process of it lives.
async fn drop_old_rows(db: &Db) -> StoreResult<()> {
    const SQL: &str = "DELETE FROM cached_page WHERE key IN (SELECT key FROM cached_page ORDER BY cached_at LIMIT $1";
    loop {
        let mut tx = db.begin_relaxed().await?;
        let sql = format!("{SQL}{})", unlocked(&tx));
        let gone =
            on_db!(&mut tx, |conn| sqlx::query(AssertSqlSafe(sql)).bind(STEP).execute(conn).await?.rows_affected());
        tx.commit().await?;
        if gone == 0 {
            return Ok(());
        }
    }
}

async fn drop_expired(db: &Db, now: Timestamp) -> StoreResult<u64> {
    const NEWEST: &str = "DELETE FROM page_version WHERE key IN \
        (SELECT key FROM page_version WHERE expires_at <= $1 LIMIT $2";
    const EARLIER: &str = "DELETE FROM page_earlier WHERE (key, digest) IN \
        (SELECT key, digest FROM page_earlier WHERE expires_at <= $1 LIMIT $2";
    let mut dropped = 0;
    for delete in [NEWEST, EARLIER] {
        loop {
            let mut tx = db.begin_relaxed().await?;
            let sql = format!("{delete}{})", unlocked(&tx));
            let gone = on_db!(&mut tx, |conn| {
                sqlx::query(AssertSqlSafe(sql)).bind(now).bind(STEP).execute(conn).await?.rows_affected()
            });
            tx.commit().await?;
            if gone == 0 {
                break;
            }
            dropped += gone;
        }
    }
    Ok(dropped)
}

/// What somebody is just storing stays: it is in use, and to wait for it could be a deadlock.
pub(super) fn unlocked(tx: &Tx) -> &'static str {
    if matches!(tx, Tx::Postgres(_)) { " FOR UPDATE SKIP LOCKED" } else { "" }
}

/// Removes contents. The versions that name them are [`super::orphans`].
pub(super) async fn drop_contents(db: &Db, digests: &[String], now: Timestamp) -> StoreResult<u64> {
    if digests.is_empty() {
        return Ok(0);
    }
    let mut tx = db.begin_relaxed().await?;
    let lock = unlocked(&tx);
    let gone: Vec<(Option<String>,)> = on_db!(&mut tx, |conn| {
        let mut delete = sqlx::QueryBuilder::new(
            "DELETE FROM page_content WHERE digest IN (SELECT digest FROM page_content WHERE digest IN (",
        );
        let mut list = delete.separated(", ");
        for digest in digests {
            list.push_bind(digest.as_str());
        }
        delete.push(")").push(lock).push(") RETURNING blob");
        delete.build_query_as().persistent(false).fetch_all(conn).await?
    });
    if gone.is_empty() {
        return Ok(0);
    }
    let count = gone.len() as u64;
    let blobs: Vec<String> = gone.into_iter().filter_map(|row| row.0).collect();
    waste::expect(&mut tx, &blobs, now).await?;
    db.faults().reach(FaultPoint::BeforeCommit)?;
    tx.commit().await?;
    Ok(count)
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
