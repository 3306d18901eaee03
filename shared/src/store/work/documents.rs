//! Stored documents: compressed JSON, large ones as blobs, read back in the order of completion without parsing.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::blobs::Blobs;
use crate::ids::{JobId, PageId};
use crate::store::db::handle::on_kept;
use crate::store::db::parts::parts;
use crate::store::{Db, StoreError, StoreResult};
use crate::time::Timestamp;
use crate::{blocking, on_pool};

use super::jobs::JobRow;
use super::page::end::Encoded;
use super::pages;
use crate::store::contents::version::Body;

/// Documents of more bytes than this are unpacked off the async threads, where others would stand behind them.
const AT_ONCE: usize = 256 << 10;

/// A document is unpacked for its metadata alone when it is no longer than this, bytes.
const FOR_METADATA: usize = 256 << 10;

/// A document may unpack to this many bytes at most.
const SIZE_LIMIT: usize = 256 * 1024 * 1024;

/// A document as stored.
#[derive(Debug, Clone)]
pub struct StoredDocument {
    /// Place in the order of completion, 1 upwards.
    pub seq: i64,
    pub page_id: PageId,
    pub json: Box<RawValue>,
}

/// Packs a document, or another result of a page. A large one belongs into a blob before it is stored:
/// [`Body::take_large`]. Computes.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn encode(document: &impl Serialize) -> std::io::Result<Encoded> {
    let (size, packed) = weir_packing::pack(document)?;
    let length = packed.len() as i64;
    let body = Body::Inline(packed);
    Ok(Encoded { size: size as i64, packed: length, body, version: None, snapshot: None, derived: None, steps: None })
}

type Columns = (i64, PageId, i64, Option<Vec<u8>>, Option<String>);

/// What documents have when they are unpacked, bytes.
fn bytes_of(rows: &[Columns]) -> usize {
    rows.iter().fold(0, |sum, (_, _, size, _, _)| sum.saturating_add(usize::try_from(*size).unwrap_or(usize::MAX)))
}

/// A document as read, or why this one cannot be.
type Read = (i64, PageId, Result<Box<RawValue>, String>);

/// Unpacks documents; those that lie elsewhere or are large are read off the async threads. One that is lost is not the
/// others' loss.
async fn decode_all(blobs: &Blobs, rows: Vec<Columns>) -> StoreResult<Vec<Read>> {
    if bytes_of(&rows) <= AT_ONCE && rows.iter().all(|(_, _, _, body, _)| body.is_some()) {
        return rows.into_iter().map(|c| decode(blobs, c)).collect();
    }
    let blobs = blobs.clone();
    let reading = move || rows.into_iter().map(|c| decode(&blobs, c)).collect();
    blocking::run(reading).await.map_err(StoreError::BlobsAway)?
}

fn decode(blobs: &Blobs, c: Columns) -> StoreResult<Read> {
    let (seq, page_id, size, body, blob) = c;
    match unpack(blobs, size, body, blob) {
        Ok(json) => Ok((seq, page_id, Ok(json))),
        Err(StoreError::Lost(why)) => Ok((seq, page_id, Err(why))),
        Err(error) => Err(error),
    }
}

/// What stands in the place of a document that is lost: which page it was, and that it cannot be read any more.
async fn in_place(db: &Db, page: PageId) -> StoreResult<Box<RawValue>> {
    const TEXT: &str = "The document of this page is lost: what was stored cannot be read any more. Scrape it again.";
    let url = pages::load(db, page).await?.map(|row| row.url).unwrap_or_default();
    let document = serde_json::json!({
        "warning": TEXT,
        "metadata": {"sourceURL": url, "scrapeId": page, "error": TEXT},
    });
    Ok(serde_json::value::to_raw_value(&document)?)
}

/// The text of a compressed document, of `size` bytes.
///
/// # Errors
/// [`StoreError::Lost`] when it cannot be unpacked to that.
pub fn open(size: i64, packed: &[u8]) -> StoreResult<Box<RawValue>> {
    let size = usize::try_from(size).unwrap_or(SIZE_LIMIT).min(SIZE_LIMIT);
    let damaged = |error: &dyn std::fmt::Display| StoreError::Lost(format!("it is damaged: {error}"));
    let json = weir_packing::decompress(packed, size).map_err(|e| damaged(&e))?;
    let json = String::from_utf8(json).map_err(|e| damaged(&e))?;
    RawValue::from_string(json).map_err(|e| damaged(&e))
}

/// The text of a document in its row or in a blob.
///
/// # Errors
/// [`StoreError::Lost`] when it is gone or damaged, [`StoreError::BlobsAway`] when it cannot be read now.
pub(super) fn unpack(
    blobs: &Blobs,
    size: i64,
    body: Option<Vec<u8>>,
    blob: Option<String>,
) -> StoreResult<Box<RawValue>> {
    match (body, blob) {
        (Some(body), _) => open(size, &body),
        (None, Some(key)) => {
            let lost = |why: &dyn std::fmt::Display| StoreError::Lost(format!("blob {key}: {why}"));
            match blobs.get(&key) {
                Ok(packed) => open(size, &packed).map_err(|error| lost(&error)),
                Err(error) if blobs.is_away(&error) => Err(StoreError::BlobsAway(error)),
                Err(error) => Err(lost(&error)),
            }
        }
        (None, None) => Err(StoreError::Lost("it has no body".to_owned())),
    }
}

/// Which documents of a job are read: those after the first `skip`, at most `limit` and about `max_bytes` of them; at
/// least one if there is one.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub skip: i64,
    pub limit: i64,
    pub max_bytes: usize,
}

/// The statement that reads the documents of the job `$1` after the place `$2`, to `$3`. One alone is named by its place:
/// Postgres makes a plan for each range anew, which takes longer than to read a document.
macro_rules! select_bodies {
    ($to:literal $(, $condition:expr)?) => {
        sql!(
            "SELECT seq, page_id, size, body, blob FROM document WHERE job_id = $1 AND seq > $2 AND seq ",
            $to,
            " $3",
            $($condition,)?
            " ORDER BY seq"
        )
    };
}

/// Documents that have been found and are not unpacked yet: what they will take is known before they do.
#[derive(Debug)]
pub struct Found {
    job: JobId,
    lie: Lie,
}

/// How much of them is in memory.
#[derive(Debug)]
enum Lie {
    /// All of it, packed: of one document, which was read by its place.
    Packed(Vec<Columns>),
    /// Nothing: those after the place `skip`, to `last`.
    Stored { skip: i64, last: i64, bytes: usize, ended: Option<Ended> },
}

/// What the row of a job that has ended says of that.
#[derive(Debug, Clone, Copy)]
struct Ended {
    finished_at: Option<Timestamp>,
    expires_at: Timestamp,
}

impl Found {
    /// What they have when they are unpacked, about, bytes.
    pub fn bytes(&self) -> usize {
        match &self.lie {
            Lie::Packed(rows) => bytes_of(rows),
            Lie::Stored { bytes, .. } => *bytes,
        }
    }

    /// Reads and unpacks them. In the place of one that is lost stands what is known of its page.
    ///
    /// # Errors
    /// [`StoreError::BlobsAway`] when a blob among them cannot be read now.
    pub async fn open(self, db: &Db, blobs: &Blobs) -> StoreResult<Vec<StoredDocument>> {
        let rows = match self.lie {
            Lie::Packed(rows) => rows,
            Lie::Stored { skip, last, ended, .. } => select(db, self.job, skip, last, ended).await?,
        };
        let mut documents = Vec::with_capacity(rows.len());
        for read in decode_all(blobs, rows).await? {
            documents.push(named(db, self.job, read).await?);
        }
        Ok(documents)
    }
}

/// A part of a job's documents.
///
/// # Errors
/// When the database does not answer.
pub async fn find(db: &Db, job: JobId, part: Part) -> StoreResult<Found> {
    find_of(db, job, part, None).await
}

/// The same of a job that had ended when its row was read, in one statement with whether the row says so still: there are
/// none where the job was replayed or deleted since then.
///
/// # Errors
/// As those of [`find`].
pub async fn find_of_ended(db: &Db, job: &JobRow, part: Part) -> StoreResult<Found> {
    let ended = Ended { finished_at: job.finished_at, expires_at: job.expires_at };
    find_of(db, job.id, part, Some(ended)).await
}

async fn find_of(db: &Db, job: JobId, part: Part, ended: Option<Ended>) -> StoreResult<Found> {
    let Part { skip, limit, .. } = part;
    let lie = if limit == 1 {
        Lie::Packed(select(db, job, skip, skip.saturating_add(1), ended).await?)
    } else {
        let (last, bytes) = end_of(db, job, part).await?;
        Lie::Stored { skip, last, bytes, ended }
    };
    Ok(Found { job, lie })
}

async fn select(db: &Db, job: JobId, skip: i64, last: i64, ended: Option<Ended>) -> StoreResult<Vec<Columns>> {
    const IS_STILL: &str = " AND EXISTS (SELECT 1 FROM job WHERE id = $1 AND finished_at = $4 AND expires_at = $5)";
    let is_one = skip.saturating_add(1) == last;
    Ok(match ended {
        None => {
            let select = if is_one { select_bodies!("=") } else { select_bodies!("<=") };
            on_kept!(db, |executor| sqlx::query_as(select).bind(job).bind(skip).bind(last).fetch_all(executor).await?)
        }
        Some(ended) => {
            let select = if is_one { select_bodies!("=", IS_STILL) } else { select_bodies!("<=", IS_STILL) };
            on_kept!(db, |executor| {
                sqlx::query_as(select)
                    .bind(job)
                    .bind(skip)
                    .bind(last)
                    .bind(ended.finished_at)
                    .bind(ended.expires_at)
                    .fetch_all(executor)
                    .await?
            })
        }
    })
}

/// All documents of several jobs, each in the order of its own; only of as many jobs as have about `max_bytes` together.
///
/// # Errors
/// As those of [`slice`].
pub async fn of_jobs(
    db: &Db,
    blobs: &Blobs,
    jobs: &[JobId],
    max_bytes: usize,
) -> StoreResult<HashMap<JobId, Vec<StoredDocument>>> {
    let mut found: HashMap<JobId, Vec<StoredDocument>> = HashMap::new();
    let (mut light, mut bytes) = (Vec::with_capacity(jobs.len()), 0usize);
    for part in parts(jobs) {
        let sizes: Vec<(JobId, i64)> = on_pool!(db, |pool| {
            let mut select =
                sqlx::QueryBuilder::new("SELECT job_id, CAST(SUM(size) AS BIGINT) FROM document WHERE job_id IN (");
            let mut list = select.separated(", ");
            for job in part {
                list.push_bind(*job);
            }
            select.push(") GROUP BY job_id");
            select.build_query_as().fetch_all(pool).await?
        });
        for (job, size) in sizes {
            bytes = bytes.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
            if bytes <= max_bytes {
                light.push(job);
            }
        }
    }
    for part in parts(&light) {
        type Row = (JobId, i64, PageId, i64, Option<Vec<u8>>, Option<String>);
        let rows: Vec<Row> = on_pool!(db, |pool| {
            let mut select = sqlx::QueryBuilder::new(
                "SELECT job_id, seq, page_id, size, body, blob FROM document WHERE job_id IN (",
            );
            let mut list = select.separated(", ");
            for job in part {
                list.push_bind(*job);
            }
            select.push(") ORDER BY job_id, seq");
            select.build_query_as().fetch_all(pool).await?
        });
        let of: Vec<JobId> = rows.iter().map(|row| row.0).collect();
        let rows = rows.into_iter().map(|(_, seq, page, size, body, blob)| (seq, page, size, body, blob)).collect();
        for (job, read) in of.into_iter().zip(decode_all(blobs, rows).await?) {
            found.entry(job).or_default().push(named(db, job, read).await?);
        }
    }
    Ok(found)
}

/// The place of the last document of a part, and what those until there have when they are unpacked, bytes.
async fn end_of(db: &Db, job: JobId, part: Part) -> StoreResult<(i64, usize)> {
    const SIZES: &str = "SELECT seq, size FROM document WHERE job_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let Part { skip, limit, max_bytes } = part;
    let sizes: Vec<(i64, i64)> =
        on_kept!(db, |executor| sqlx::query_as(SIZES).bind(job).bind(skip).bind(limit).fetch_all(executor).await?);
    let mut bytes = 0usize;
    let mut last = skip;
    for (seq, size) in sizes {
        let more = bytes.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
        if more > max_bytes && last > skip {
            break;
        }
        (last, bytes) = (seq, more);
    }
    Ok((last, bytes))
}

/// The document; in the place of one that is lost what is known of its page.
async fn named(db: &Db, job: JobId, (seq, page_id, read): Read) -> StoreResult<StoredDocument> {
    let json = match read {
        Ok(json) => json,
        Err(why) => {
            tracing::error!(why, page.id = %page_id, job.id = %job, "a document is lost; its place is named");
            in_place(db, page_id).await?
        }
    };
    Ok(StoredDocument { seq, page_id, json })
}

/// What the attempt at a page did, as it was stored with its document (`document.steps`).
pub async fn steps(db: &Db, page: PageId) -> StoreResult<Option<String>> {
    const SQL: &str = "SELECT steps FROM document WHERE page_id = $1";
    let found: Option<(Option<String>,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(page).fetch_optional(pool).await?);
    Ok(found.and_then(|row| row.0))
}

/// What a document says of its page.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageMetadata {
    /// After redirects.
    pub url: Option<String>,
    pub status_code: Option<u16>,
    /// A text, or a list of texts.
    pub title: Option<Value>,
    pub description: Option<Value>,
}

/// The metadata of pages whose documents are small; others are left out. Bodies are read in parts, so that memory stays
/// flat.
pub async fn metadata(db: &Db, pages: &[PageId]) -> StoreResult<HashMap<PageId, PageMetadata>> {
    #[derive(Deserialize)]
    struct Partial {
        metadata: PageMetadata,
    }
    let mut found = HashMap::new();
    for part in pages.chunks(50) {
        let rows: Vec<Columns> = on_pool!(db, |pool| {
            let mut select = sqlx::QueryBuilder::new(
                "SELECT seq, page_id, size, body, blob FROM document WHERE blob IS NULL AND page_id IN (",
            );
            let mut list = select.separated(", ");
            for page in part {
                list.push_bind(*page);
            }
            select.push(")");
            select.build_query_as().persistent(false).fetch_all(pool).await?
        });
        let read = move || -> Vec<(PageId, PageMetadata)> {
            let unpack = |row: Columns| {
                let size = usize::try_from(row.2).ok().filter(|size| *size <= FOR_METADATA)?;
                let json = weir_packing::decompress(row.3.as_deref()?, size).ok()?;
                Some((row.1, serde_json::from_slice::<Partial>(&json).ok()?.metadata))
            };
            rows.into_iter().filter_map(unpack).collect()
        };
        found.extend(blocking::run(read).await.unwrap_or_default());
    }
    Ok(found)
}

/// The document of a page, packed: what it will take is known before it does.
#[derive(Debug)]
pub struct Packed(Columns);

impl Packed {
    /// What it has when it is unpacked, bytes.
    pub fn bytes(&self) -> usize {
        bytes_of(std::slice::from_ref(&self.0))
    }

    /// Unpacks it.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when it cannot be read any more, [`StoreError::BlobsAway`] when it cannot be read now.
    pub async fn open(self, blobs: &Blobs) -> StoreResult<StoredDocument> {
        let read = decode_all(blobs, vec![self.0]).await?.pop();
        let (seq, page_id, read) = read.ok_or_else(|| StoreError::Corrupt("a document is gone".to_owned()))?;
        Ok(StoredDocument { seq, page_id, json: read.map_err(StoreError::Lost)? })
    }
}

/// The document of one page as it lies.
///
/// # Errors
/// When the database does not answer.
pub async fn packed(db: &Db, page: PageId) -> StoreResult<Option<Packed>> {
    const SQL: &str = "SELECT seq, page_id, size, body, blob FROM document WHERE page_id = $1";
    let found: Option<Columns> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(page).fetch_optional(pool).await?);
    Ok(found.map(Packed))
}

/// The document of one page.
///
/// # Errors
/// Those of [`Packed::open`].
pub async fn by_page(db: &Db, blobs: &Blobs, page: PageId) -> StoreResult<Option<StoredDocument>> {
    match packed(db, page).await? {
        Some(packed) => packed.open(blobs).await.map(Some),
        None => Ok(None),
    }
}
