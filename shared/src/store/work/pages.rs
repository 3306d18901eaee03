//! Page rows as callers and operators read them. How they are written is in [`super::page`].

use crate::domain::job::PageState;
use crate::domain::target::without_user;
use crate::ids::{JobId, PageId, TeamId};
use crate::on_pool;
use crate::store::{Db, StoreError, StoreResult};
use crate::time::Timestamp;

/// A page as stored.
#[derive(Debug, Clone)]
pub struct PageRow {
    pub id: PageId,
    pub job_id: JobId,
    pub team_id: TeamId,
    pub idx: i64,
    /// Without a name and a password: what callers and operators are shown. [`address`] has them.
    pub url: String,
    /// Whether it was asked for with a name or a password in it.
    pub has_user: bool,
    pub state: PageState,
    pub queued_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub claims: i64,
    pub tries: i64,
    pub error_code: Option<String>,
    /// Why it failed, its last try did, or it was left out; what a crawl notes of a delivered page (`frontier.rs`) is none.
    pub error: Option<String>,
    /// How often it was put back after it had failed for good; its tries are counted from the last time.
    pub replays: i64,
}

pub(in crate::store) type Columns = (
    PageId,
    JobId,
    TeamId,
    i64,
    String,
    String,
    Timestamp,
    Option<Timestamp>,
    Option<Timestamp>,
    i64,
    i64,
    Option<String>,
    Option<String>,
    i64,
);

macro_rules! select_page {
    ($($rest:expr),+) => {
        sql!(
            "SELECT id, job_id, team_id, idx, url, state, queued_at, started_at, finished_at, claims, tries, \
             error_code, error, replays FROM page ",
            $($rest),+
        )
    };
}
pub(in crate::store) use select_page;

pub(in crate::store) fn row(c: Columns) -> StoreResult<PageRow> {
    let state = c.5.parse().map_err(StoreError::Corrupt)?;
    let url = without_user(&c.4);
    Ok(PageRow {
        id: c.0,
        job_id: c.1,
        team_id: c.2,
        idx: c.3,
        has_user: url != c.4,
        url,
        state,
        queued_at: c.6,
        started_at: c.7,
        finished_at: c.8,
        claims: c.9,
        tries: c.10,
        error_code: c.11,
        error: c.12.filter(|_| state != PageState::Done),
        replays: c.13,
    })
}

/// The page, whoever owns it.
pub async fn load(db: &Db, id: PageId) -> StoreResult<Option<PageRow>> {
    const SQL: &str = select_page!("WHERE id = $1");
    let found: Option<Columns> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?);
    found.map(row).transpose()
}

/// The address of a page as it was asked for, with a name and a password where it has some.
pub async fn address(db: &Db, id: PageId) -> StoreResult<Option<String>> {
    const SQL: &str = "SELECT url FROM page WHERE id = $1";
    Ok(on_pool!(db, |pool| sqlx::query_scalar(SQL).bind(id).fetch_optional(pool).await?))
}

/// The states of a page that has not ended.
const OPEN: &str = sql!("(", PageState::Queued.sql(), ", ", PageState::Running.sql(), ")");

/// Which of these pages have reached a final state.
pub async fn ended_among(db: &Db, ids: &[PageId]) -> StoreResult<Vec<PageId>> {
    among(db, ids, sql!("SELECT id FROM page WHERE state NOT IN ", OPEN, " AND id IN (")).await
}

/// Which of these pages have not ended.
pub async fn open_among(db: &Db, ids: &[PageId]) -> StoreResult<Vec<PageId>> {
    among(db, ids, sql!("SELECT id FROM page WHERE state IN ", OPEN, " AND id IN (")).await
}

async fn among(db: &Db, ids: &[PageId], start: &'static str) -> StoreResult<Vec<PageId>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<(PageId,)> = on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new(start);
        let mut list = select.separated(", ");
        for id in ids {
            list.push_bind(*id);
        }
        select.push(")");
        select.build_query_as().fetch_all(pool).await?
    });
    Ok(rows.into_iter().map(|r| r.0).collect())
}

/// Failed pages of a job, in the order of their failure (wire 5.4).
pub async fn failed_of(db: &Db, job: JobId, limit: i64) -> StoreResult<Vec<PageRow>> {
    const SQL: &str =
        select_page!("WHERE job_id = $1 AND state = ", PageState::Failed.sql(), " ORDER BY finished_at, idx LIMIT $2");
    let rows: Vec<Columns> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).bind(limit).fetch_all(pool).await?);
    rows.into_iter().map(row).collect()
}

/// Why a job failed: it fails when nothing but failures came of it, and the first is that of its first page.
pub async fn first_failure(db: &Db, job: JobId) -> StoreResult<Option<String>> {
    Ok(failed_of(db, job, 1).await?.into_iter().next().and_then(|page| page.error))
}

/// Bytes of the addresses and the words of [`failed_of`].
pub async fn bytes_of_failed(db: &Db, job: JobId, limit: i64) -> StoreResult<i64> {
    const SQL: &str = sql!(
        "SELECT CAST(COALESCE(SUM(OCTET_LENGTH(url) + COALESCE(OCTET_LENGTH(error), 0)), 0) AS BIGINT) FROM \
         (SELECT url, error FROM page WHERE job_id = $1 AND state = ",
        PageState::Failed.sql(),
        " ORDER BY finished_at, idx LIMIT $2) AS failed"
    );
    let sum: (i64,) = on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).bind(limit).fetch_one(pool).await?);
    Ok(sum.0)
}

/// The same behind one of them, given by the time of its failure and its place.
pub async fn failed_since(
    db: &Db,
    job: JobId,
    after: Option<(Timestamp, i64)>,
    limit: i64,
) -> StoreResult<Vec<PageRow>> {
    const SQL: &str = select_page!(
        "WHERE job_id = $1 AND state = ",
        PageState::Failed.sql(),
        " AND (finished_at, idx) > ($2, $3) ORDER BY finished_at, idx LIMIT $4"
    );
    let (at, idx) = after.unwrap_or((Timestamp(i64::MIN), i64::MIN));
    let rows: Vec<Columns> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).bind(at).bind(idx).bind(limit).fetch_all(pool).await?);
    rows.into_iter().map(row).collect()
}

/// Pages of a job in the order of the request.
pub async fn list(db: &Db, job: JobId, state: Option<PageState>, limit: i64) -> StoreResult<Vec<PageRow>> {
    const SQL: &str = select_page!("WHERE job_id = $1 AND ($2 IS NULL OR state = $2) ORDER BY idx LIMIT $3");
    let rows: Vec<Columns> = on_pool!(db, |pool| {
        sqlx::query_as(SQL).bind(job).bind(state.map(PageState::as_str)).bind(limit).fetch_all(pool).await?
    });
    rows.into_iter().map(row).collect()
}

/// One try that failed or was lost.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct AttemptRow {
    pub epoch: i64,
    pub worker: Option<String>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Timestamp,
    pub code: Option<String>,
    pub error: String,
}

/// The failed tries of a page, oldest first.
pub async fn attempts_of(db: &Db, page: PageId) -> StoreResult<Vec<AttemptRow>> {
    const SQL: &str = "SELECT epoch, worker, started_at, ended_at, code, error FROM page_attempt \
        WHERE page_id = $1 ORDER BY epoch LIMIT 100";
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(page).fetch_all(pool).await?))
}
