//! Crawl rows: what a job has besides pages when it is a crawl. How it grows is in [`super::frontier`].

use std::sync::Arc;

use url::Url;

use crate::domain::crawl::scope::CrawlScope;
use crate::domain::crawl::{AddressState, CrawlOptions, SitemapMode};
use crate::domain::job::JobStatus;
use crate::domain::target::{Login, fetch_url, without_user};
use crate::ids::{JobId, PageId, TeamId};
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{blocking, on_db, on_pool};

use super::page::rows::{self, NewPage, SITEMAP_IDX};

/// Longest text of warnings, characters.
const MAX_WARNING: usize = 2_000;

/// A crawl to be written, beside its job row.
pub struct NewCrawl<'a> {
    pub job: JobId,
    pub team: TeamId,
    /// The start page as asked for.
    pub url: &'a str,
    pub options: &'a CrawlOptions,
    /// Most pages: the limit of the options, or less.
    pub limit: i64,
}

/// Page rows that a crawl begins with: the job's `total`.
pub fn first_pages(options: &CrawlOptions) -> i64 {
    match options.sitemap {
        SitemapMode::Skip | SitemapMode::Only => 1,
        SitemapMode::Include => 2,
    }
}

/// Writes the crawl row, the start page and the step that reads the sitemaps, as the options ask for them. The job row
/// is inserted in the same transaction, with the total of [`first_pages`].
pub async fn insert(tx: &mut Tx, crawl: &NewCrawl<'_>, now: Timestamp) -> StoreResult<()> {
    const CRAWL: &str = "INSERT INTO crawl (job_id, team_id, url, options, base, page_limit, admitted, next_seq, \
        discovered) VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $7)";
    const HIDDEN: &str = "UPDATE job SET hidden = 1 WHERE id = $1";
    const START: &str = sql!(
        "INSERT INTO crawl_url (job_id, key, state, page_id, depth, seq) VALUES ($1, $2, ",
        AddressState::Taken.sql(),
        ", $3, 0, 0)"
    );
    let options = serde_json::to_string(crawl.options)?;
    let start = fetch_url(crawl.url).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let with_start = crawl.options.sitemap != SitemapMode::Only;
    // Without a start page there is nothing that could move the site's address.
    let base = (!with_start).then(|| start.as_str());
    on_db!(tx, |conn| {
        sqlx::query(CRAWL)
            .bind(crawl.job)
            .bind(crawl.team)
            .bind(crawl.url)
            .bind(options)
            .bind(base)
            .bind(crawl.limit)
            .bind(i64::from(with_start))
            .execute(conn)
            .await?
            .rows_affected()
    });
    let mut pages = Vec::new();
    if with_start {
        let page = PageId::new();
        let key =
            scope(start, crawl.options)?.key(&fetch_url(crawl.url).map_err(|e| StoreError::Corrupt(e.to_string()))?);
        on_db!(tx, |conn| sqlx::query(START).bind(crawl.job).bind(key).bind(page).execute(conn).await?.rows_affected());
        pages.push(NewPage { id: page, idx: 0, url: crawl.url, depth: 0 });
    }
    if crawl.options.sitemap != SitemapMode::Skip {
        pages.push(NewPage { id: PageId::new(), idx: SITEMAP_IDX, url: crawl.url, depth: 0 });
        on_db!(tx, |conn| sqlx::query(HIDDEN).bind(crawl.job).execute(conn).await?.rows_affected());
    }
    rows::insert(tx, crawl.job, crawl.team, &pages, now).await
}

/// Most pages that a crawl may have.
pub async fn page_limit(db: &Db, job: JobId) -> StoreResult<Option<i64>> {
    const SQL: &str = "SELECT page_limit FROM crawl WHERE job_id = $1";
    let found: Option<(i64,)> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).fetch_optional(pool).await?);
    Ok(found.map(|row| row.0))
}

fn scope(base: Url, options: &CrawlOptions) -> StoreResult<CrawlScope> {
    CrawlScope::new(base, options).map_err(StoreError::Corrupt)
}

/// What a worker must know of a crawl to work on its pages.
#[derive(Debug, Clone)]
pub struct CrawlSpec {
    /// The start page as asked for: what the caller named.
    pub start: String,
    /// What the start page's address says of the caller.
    pub login: Option<Login>,
    pub scope: Arc<CrawlScope>,
    /// The scope will not move any more: the start page has ended.
    pub is_settled: bool,
}

impl CrawlSpec {
    /// An address of the site's own files as it is asked for: with what the start page's says of the caller.
    pub fn signed(&self, url: Url) -> Url {
        match &self.login {
            Some(login) => login.put(url),
            None => url,
        }
    }
}

/// The scope of a crawl. `None`: it is gone.
pub(super) async fn spec(db: &Db, job: JobId) -> StoreResult<Option<CrawlSpec>> {
    const SQL: &str = "SELECT url, base, options FROM crawl WHERE job_id = $1";
    let found: Option<(String, Option<String>, String)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).fetch_optional(pool).await?);
    let Some((url, base, options)) = found else { return Ok(None) };
    let is_settled = base.is_some();
    let base = fetch_url(base.as_deref().unwrap_or(&url)).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let options: CrawlOptions = serde_json::from_str(&options)?;
    // Patterns take a while to compile.
    let made = blocking::run(move || scope(base, &options)).await;
    let scope = made.map_err(|e| StoreError::Corrupt(e.to_string()))??;
    let login = Login::of(&url);
    Ok(Some(CrawlSpec { start: url, login, scope: Arc::new(scope), is_settled }))
}

/// What a crawl was asked for: where it begins, as it is shown, its options, and the most pages of it. `None`: the job is
/// gone, or of another kind.
pub async fn asked(db: &Db, job: JobId) -> StoreResult<Option<(String, CrawlOptions, i64)>> {
    const SQL: &str = "SELECT url, options, page_limit FROM crawl WHERE job_id = $1";
    let found: Option<(String, String, i64)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).fetch_optional(pool).await?);
    found.map(|(url, options, limit)| Ok((without_user(&url), serde_json::from_str(&options)?, limit))).transpose()
}

/// Whether the scope of a crawl will not move any more, or the crawl is gone.
pub async fn is_settled(db: &Db, job: JobId) -> StoreResult<bool> {
    const SQL: &str = "SELECT base FROM crawl WHERE job_id = $1";
    let found: Option<(Option<String>,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).fetch_optional(pool).await?);
    Ok(found.is_none_or(|row| row.0.is_some()))
}

/// What people see of a crawl besides its job.
#[derive(Debug, Clone, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct CrawlCounts {
    /// Addresses met that belong to the crawl, those that robots.txt forbids aside.
    pub discovered: i64,
    /// Addresses that robots.txt forbids.
    pub blocked: i64,
    /// Pages fetched and not delivered: another one is the same, or a redirect led out of the crawl.
    pub dropped: i64,
    pub warning: Option<String>,
}

/// The counts; `None`: the job is gone, or of another kind.
pub async fn counts(db: &Db, job: JobId) -> StoreResult<Option<CrawlCounts>> {
    const SQL: &str = "SELECT discovered, blocked, dropped, warning FROM crawl WHERE job_id = $1";
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).fetch_optional(pool).await?))
}

/// Addresses that robots.txt forbids, in the order they were met.
pub async fn blocked(db: &Db, job: JobId, limit: i64) -> StoreResult<Vec<String>> {
    const SQL: &str = sql!(
        "SELECT url FROM crawl_url WHERE job_id = $1 AND state = ",
        AddressState::Blocked.sql(),
        " ORDER BY seq LIMIT $2"
    );
    let rows: Vec<(Option<String>,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).bind(limit).fetch_all(pool).await?);
    Ok(rows.into_iter().filter_map(|row| row.0).map(|url| without_user(&url)).collect())
}

/// How many addresses [`blocked`] lists, and their bytes.
pub async fn bytes_of_blocked(db: &Db, job: JobId, limit: i64) -> StoreResult<(i64, i64)> {
    const SQL: &str = sql!(
        "SELECT COUNT(*), CAST(COALESCE(SUM(OCTET_LENGTH(url)), 0) AS BIGINT) FROM \
         (SELECT url FROM crawl_url WHERE job_id = $1 AND state = ",
        AddressState::Blocked.sql(),
        " ORDER BY seq LIMIT $2) AS blocked"
    );
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).bind(limit).fetch_one(pool).await?))
}

/// A running crawl as `GET /v2/crawl/active` lists it.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct ActiveCrawl {
    pub id: JobId,
    pub team_id: TeamId,
    pub url: String,
    pub created_at: Timestamp,
    /// CrawlOptions as JSON.
    pub options: String,
    /// ScrapeOptions as JSON.
    pub scrape_options: String,
}

/// The team's running crawls, newest first.
pub async fn active(db: &Db, team: TeamId, limit: i64) -> StoreResult<Vec<ActiveCrawl>> {
    const SQL: &str = sql!(
        "SELECT job.id, job.team_id, crawl.url, job.created_at, crawl.options, \
         job.options AS scrape_options FROM job JOIN crawl ON crawl.job_id = job.id WHERE job.team_id = $1 \
         AND job.status = ",
        JobStatus::Scraping.sql(),
        " AND job.kind = 'crawl' ORDER BY job.created_at DESC, job.id DESC LIMIT $2"
    );
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(limit).fetch_all(pool).await?))
}

/// How many crawls [`active`] lists, and the bytes of what they were asked for.
pub async fn bytes_of_active(db: &Db, team: TeamId, limit: i64) -> StoreResult<(i64, i64)> {
    const SQL: &str = sql!(
        "SELECT COUNT(*), CAST(COALESCE(SUM(url + options + scrape_options), 0) AS BIGINT) FROM (SELECT \
         OCTET_LENGTH(crawl.url) AS url, OCTET_LENGTH(crawl.options) AS options, \
         OCTET_LENGTH(job.options) AS scrape_options FROM job JOIN crawl ON crawl.job_id = job.id \
         WHERE job.team_id = $1 AND job.status = ",
        JobStatus::Scraping.sql(),
        " AND job.kind = 'crawl' ORDER BY job.created_at DESC, job.id DESC LIMIT $2) AS running"
    );
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(limit).fetch_one(pool).await?))
}

/// Adds a sentence to the crawl's warnings, once.
pub async fn warn(tx: &mut Tx, job: JobId, sentence: &str) -> StoreResult<()> {
    const LOAD: &str = "SELECT warning FROM crawl WHERE job_id = $1";
    const SAVE: &str = "UPDATE crawl SET warning = $2 WHERE job_id = $1";
    let found: Option<(Option<String>,)> =
        on_db!(tx, |conn| sqlx::query_as(LOAD).bind(job).fetch_optional(conn).await?);
    let text = match found.and_then(|row| row.0) {
        Some(text) if text.contains(sentence) || text.len() + sentence.len() > MAX_WARNING => return Ok(()),
        Some(text) => format!("{text} {sentence}"),
        None => sentence.to_owned(),
    };
    on_db!(tx, |conn| sqlx::query(SAVE).bind(job).bind(text).execute(conn).await?.rows_affected());
    Ok(())
}
