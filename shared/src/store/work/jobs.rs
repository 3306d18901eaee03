//! Job rows: one per scrape, batch or crawl, with counts that change only in the transaction that changes the pages.

use std::borrow::Cow;

use crate::domain::job::{JobKind, JobStatus};
use crate::domain::map::site_of;
use crate::domain::price;
use crate::domain::scrape::ScrapeOptions;
use crate::domain::target::{naming, with_user_of, without_user};
use crate::domain::webhook::WebhookSpec;
use crate::ids::{JobId, KeyId, TeamId};
use crate::store::db::parts::parts;
use crate::store::db::signals::{Signal, notify_done};
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::traces;
use crate::{on_db, on_pool};

use super::crawls::{self, CrawlSpec};
use super::tasks;

/// A job to be written, with all its pages queued.
#[derive(Clone, Copy)]
pub struct NewJob<'a> {
    pub id: JobId,
    pub team: TeamId,
    pub key: Option<KeyId>,
    pub kind: JobKind,
    pub options: &'a ScrapeOptions,
    /// The first URL, for lists.
    pub target: &'a str,
    pub origin: Option<&'a str>,
    /// Pages at once; `None`: the team's limit.
    pub max_concurrency: Option<i64>,
    pub webhook: Option<&'a WebhookSpec>,
    /// Pages that will be inserted with it.
    pub total: i64,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The statement that writes a job row, and its values.
macro_rules! insert_job {
    () => {
        sql!(insert_job!(into), "VALUES (", insert_job!(values "$11"), ")")
    };
    (into) => {
        "INSERT INTO job (id, team_id, api_key_id, kind, status, rank, options, target, origin, max_concurrency, \
         webhook, total, queued, created_at, expires_at, site, zero_retention, page_credits) "
    };
    (values $queued:literal) => {
        sql!(
            "$1, $2, $3, $4, ",
            $crate::domain::job::JobStatus::Scraping.sql(),
            ", $5, $6, $7, $8, $9, $10, $11, ",
            $queued,
            ", $12, $13, $14, $15, $16"
        )
    };
    ($sql:expr, $job:ident) => {
        sqlx::query($sql)
            .bind($job.id)
            .bind($job.team)
            .bind($job.key)
            .bind($job.kind.as_str())
            .bind($job.kind.rank())
            .bind($crate::store::work::jobs::stored_options($job.options)?)
            .bind($job.target)
            .bind($job.origin)
            .bind($job.max_concurrency)
            .bind($job.webhook.map(serde_json::to_string).transpose()?)
            .bind($job.total)
            .bind($job.created_at)
            .bind($job.expires_at)
            .bind($crate::domain::map::site_of($job.target).filter(|_| !$job.options.zero_retention))
            .bind($job.options.zero_retention)
            .bind($crate::domain::price::most($job.options))
    };
}
pub(super) use insert_job;

/// The options as they lie in the row: with the span that the job is written under.
pub(super) fn stored_options(options: &ScrapeOptions) -> serde_json::Result<String> {
    match traces::current() {
        Some(parent) if options.trace_parent.is_none() => {
            serde_json::to_string(&ScrapeOptions { trace_parent: Some(parent), ..options.clone() })
        }
        _ => serde_json::to_string(options),
    }
}

/// Writes the job row. The pages follow in the same transaction.
pub async fn insert(tx: &mut Tx, job: &NewJob<'_>) -> StoreResult<()> {
    const SQL: &str = insert_job!();
    on_db!(tx, |conn| insert_job!(SQL, job).execute(conn).await?.rows_affected());
    Ok(())
}

/// Writes the rows of several jobs. Their pages follow in the same transaction.
pub async fn insert_all(tx: &mut Tx, jobs: &[NewJob<'_>]) -> StoreResult<()> {
    for part in parts(jobs) {
        let mut texts = Vec::with_capacity(part.len());
        for job in part {
            texts.push((job, stored_options(job.options)?, job.webhook.map(serde_json::to_string).transpose()?));
        }
        on_db!(&mut *tx, |conn| {
            let mut insert = sqlx::QueryBuilder::new(insert_job!(into));
            insert.push_values(&texts, |mut row, (job, options, webhook)| {
                row.push_bind(job.id)
                    .push_bind(job.team)
                    .push_bind(job.key)
                    .push_bind(job.kind.as_str())
                    .push(JobStatus::Scraping.sql())
                    .push_bind(job.kind.rank())
                    .push_bind(options.as_str())
                    .push_bind(job.target)
                    .push_bind(job.origin)
                    .push_bind(job.max_concurrency)
                    .push_bind(webhook.as_deref())
                    .push_bind(job.total)
                    .push_bind(job.total)
                    .push_bind(job.created_at)
                    .push_bind(job.expires_at)
                    .push_bind(site_of(job.target).filter(|_| !job.options.zero_retention))
                    .push_bind(job.options.zero_retention)
                    .push_bind(price::most(job.options));
            });
            insert.build().execute(conn).await?.rows_affected()
        });
    }
    Ok(())
}

/// A job as stored, without its options.
#[derive(Debug, Clone)]
pub struct JobRow {
    pub id: JobId,
    pub team_id: TeamId,
    pub kind: JobKind,
    pub status: JobStatus,
    /// The first address, without a name and a password, or what is looked for or asked.
    pub target: String,
    pub total: i64,
    /// Pages not claimed yet, pauses before a retry included.
    pub queued: i64,
    pub completed: i64,
    pub failed: i64,
    pub credits_used: i64,
    pub max_concurrency: Option<i64>,
    pub webhook: Option<WebhookSpec>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// Page rows that are steps of the job itself, and no pages to clients.
    pub hidden: i64,
}

impl JobRow {
    /// `total` as clients see it: failed pages leave it once the job has ended (wire 14).
    pub fn total_shown(&self) -> i64 {
        let pages = self.pages();
        if self.status == JobStatus::Scraping { pages } else { pages - self.failed }
    }

    /// All pages of the job, as operators see it: without its own steps.
    pub fn pages(&self) -> i64 {
        self.total - self.hidden
    }

    /// Those that have ended, well or not.
    pub fn ended(&self) -> i64 {
        self.completed + self.failed
    }

    /// Whether nobody is to find it any more. One that runs is there, however long that takes: its expiry is moved on.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.status != JobStatus::Scraping && self.expires_at <= now
    }

    /// Pages that have not ended, without the job's own steps.
    pub fn waiting(&self) -> Waiting {
        let open = (self.pages() - self.ended()).max(0);
        let queued = self.queued.min(open);
        Waiting { queued, running: open - queued }
    }
}

/// Pages of a job that have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    pub queued: i64,
    pub running: i64,
}

type Columns = (
    JobId,
    TeamId,
    String,
    String,
    String,
    i64,
    i64,
    i64,
    i64,
    i64,
    Option<i64>,
    Option<String>,
    Timestamp,
    Timestamp,
    Option<Timestamp>,
    i64,
);

/// The column list of [`Columns`], in a macro so that each statement stays one literal.
macro_rules! select_job {
    ($rest:literal) => {
        sql!(
            "SELECT id, team_id, kind, status, target, total, queued, completed, failed, credits_used, \
             max_concurrency, webhook, created_at, expires_at, finished_at, hidden FROM job ",
            $rest
        )
    };
}

fn row(c: Columns) -> StoreResult<JobRow> {
    let kind: JobKind = c.2.parse().map_err(StoreError::Corrupt)?;
    Ok(JobRow {
        id: c.0,
        team_id: c.1,
        kind,
        status: c.3.parse().map_err(StoreError::Corrupt)?,
        target: match kind {
            // What is looked for or asked in words is no address.
            JobKind::Search | JobKind::Agent => c.4,
            // Earlier releases have kept it as it was given.
            _ => without_user(&c.4),
        },
        total: c.5,
        queued: c.6,
        completed: c.7,
        failed: c.8,
        credits_used: c.9,
        max_concurrency: c.10,
        webhook: c.11.as_deref().map(serde_json::from_str).transpose()?,
        created_at: c.12,
        expires_at: c.13,
        finished_at: c.14,
        hidden: c.15,
    })
}

/// The job, whoever owns it.
pub async fn load(db: &Db, id: JobId) -> StoreResult<Option<JobRow>> {
    const SQL: &str = select_job!("WHERE id = $1");
    let found: Option<Columns> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?);
    found.map(row).transpose()
}

/// Whether nobody wants the job's pages any more: it was cancelled, or is gone.
pub async fn is_cancelled(db: &Db, id: JobId) -> StoreResult<bool> {
    const SQL: &str = "SELECT status FROM job WHERE id = $1";
    let status: Option<String> = on_pool!(db, |pool| sqlx::query_scalar(SQL).bind(id).fetch_optional(pool).await?);
    Ok(status.is_none_or(|status| status == JobStatus::Cancelled.as_str()))
}

/// Several jobs, newest first.
pub async fn by_ids(db: &Db, ids: &[JobId]) -> StoreResult<Vec<JobRow>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<Columns> = on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new(select_job!("WHERE id IN ("));
        let mut list = select.separated(", ");
        for id in ids {
            list.push_bind(*id);
        }
        select.push(") ORDER BY id DESC");
        select.build_query_as().persistent(false).fetch_all(pool).await?
    });
    rows.into_iter().map(row).collect()
}

/// Who made a job, as far as its row says: origin, and whether nothing of it may be kept.
pub async fn origin(db: &Db, id: JobId) -> StoreResult<Option<(Option<String>, bool)>> {
    const SQL: &str = "SELECT origin, zero_retention FROM job WHERE id = $1";
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?))
}

/// Results of those of these jobs that would go before `least` stay until then.
pub async fn keep_until(tx: &mut Tx, jobs: &[JobId], least: Timestamp, until: Timestamp) -> StoreResult<()> {
    for part in parts(jobs) {
        on_db!(&mut *tx, |conn| {
            let mut update = sqlx::QueryBuilder::new("UPDATE job SET expires_at = ");
            update.push_bind(until).push(" WHERE expires_at < ").push_bind(least).push(" AND id IN (");
            let mut list = update.separated(", ");
            for job in part {
                list.push_bind(*job);
            }
            update.push(")");
            update.build().persistent(false).execute(conn).await?.rows_affected()
        });
    }
    Ok(())
}

/// Has a job's results expire now; one that runs has been cancelled. Its rows go as those of every expired job do.
/// `false`: they had expired.
pub async fn expire_now(tx: &mut Tx, id: JobId, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "UPDATE job SET expires_at = $2 WHERE id = $1 AND expires_at > $2 AND status <> ",
        JobStatus::Scraping.sql()
    );
    let done = on_db!(tx, |conn| sqlx::query(SQL).bind(id).bind(now).execute(conn).await?.rows_affected());
    Ok(done == 1)
}

/// The job with its row locked until the transaction ends. Lock the team first when it is written
/// ([`crate::store::accounts::team_lock::lock`]).
pub async fn lock(tx: &mut Tx, id: JobId) -> StoreResult<Option<JobRow>> {
    // On SQLite the transaction holds the lock of the whole file already.
    let found: Option<Columns> = match tx {
        Tx::Sqlite(tx) => sqlx::query_as(select_job!("WHERE id = $1")).bind(id).fetch_optional(&mut **tx).await?,
        Tx::Postgres(tx) => {
            sqlx::query_as(select_job!("WHERE id = $1 FOR NO KEY UPDATE")).bind(id).fetch_optional(&mut **tx).await?
        }
    };
    found.map(row).transpose()
}

/// What a worker must know of a job to work on its pages.
#[derive(Debug, Clone)]
pub struct JobSpec {
    pub kind: JobKind,
    pub key: Option<KeyId>,
    pub options: ScrapeOptions,
    pub webhook: Option<WebhookSpec>,
    /// Of a crawl, where it goes.
    pub crawl: Option<CrawlSpec>,
    /// Of a task, the addresses that it was given.
    pub given: Vec<String>,
}

impl JobSpec {
    /// The address that the caller named for a page at `url`: the page's own, where its crawl begins, or the one of its
    /// task's that is of the same origin. `None`: nobody named it; a search has found it.
    pub fn named<'a>(&'a self, url: &'a str) -> Option<&'a str> {
        match self.kind {
            JobKind::Scrape | JobKind::Batch | JobKind::Map => Some(url),
            JobKind::Crawl => self.crawl.as_ref().map(|crawl| crawl.start.as_str()),
            JobKind::Search => None,
            JobKind::Extract | JobKind::Agent => naming(&self.given, url),
        }
    }

    /// The address that a page at `url` is asked for by: with the name and the password of the address that the caller named for
    /// it. What is kept of a page goes by this one.
    pub fn asked<'a>(&self, url: &'a str) -> Cow<'a, str> {
        let login = match self.kind {
            // They are in the page's own.
            JobKind::Scrape | JobKind::Batch | JobKind::Map | JobKind::Search => None,
            JobKind::Crawl => self.crawl.as_ref().and_then(|crawl| crawl.login.as_ref()?.put_into(url)),
            JobKind::Extract | JobKind::Agent => with_user_of(&self.given, url),
        };
        login.map_or(Cow::Borrowed(url), Cow::Owned)
    }

    /// Whether it will never change.
    pub fn is_settled(&self) -> bool {
        self.crawl.as_ref().is_none_or(|crawl| crawl.is_settled)
    }
}

/// What of a job does not change (of a crawl: not any more once its start page has ended), for workers.
pub async fn spec(db: &Db, id: JobId) -> StoreResult<Option<JobSpec>> {
    const SQL: &str = "SELECT kind, api_key_id, options, webhook FROM job WHERE id = $1";
    let found: Option<SpecColumns> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?);
    let Some(mut spec) = found.map(read_spec).transpose()? else { return Ok(None) };
    if spec.kind == JobKind::Crawl {
        spec.crawl = crawls::spec(db, id).await?;
        if spec.crawl.is_none() {
            return Ok(None);
        }
    }
    if spec.kind.is_task() {
        spec.given = tasks::given(db, id).await?;
    }
    Ok(Some(spec))
}

/// `kind, api_key_id, options, webhook`.
pub(super) type SpecColumns = (String, Option<KeyId>, String, Option<String>);

pub(super) fn read_spec((kind, key, options, webhook): SpecColumns) -> StoreResult<JobSpec> {
    Ok(JobSpec {
        kind: kind.parse().map_err(StoreError::Corrupt)?,
        key,
        options: serde_json::from_str(&options)?,
        webhook: webhook.as_deref().map(serde_json::from_str).transpose()?,
        crawl: None,
        given: Vec::new(),
    })
}

/// What a page of the team's job is held back for: the most that the job's options can come to. `None`: the team has no
/// such job.
pub async fn page_price(tx: &mut Tx, team: TeamId, id: JobId) -> StoreResult<Option<i64>> {
    const SQL: &str = "SELECT page_credits FROM job WHERE id = $1 AND team_id = $2";
    let found: Option<(i64,)> = on_db!(tx, |conn| sqlx::query_as(SQL).bind(id).bind(team).fetch_optional(conn).await?);
    Ok(found.map(|row| row.0))
}

/// Adds pages to a running batch (`appendToId`). `false` when it has ended.
pub async fn grow(tx: &mut Tx, id: JobId, by: i64) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "UPDATE job SET total = total + $2, queued = queued + $2, due_at = 0 WHERE id = $1 AND status = ",
        JobStatus::Scraping.sql()
    );
    let done = on_db!(tx, |conn| sqlx::query(SQL).bind(id).bind(by).execute(conn).await?.rows_affected());
    Ok(done == 1)
}

/// Which jobs to list; `None` means any.
#[derive(Debug, Clone, Copy)]
pub struct JobFilter {
    pub team: Option<TeamId>,
    pub kind: Option<JobKind>,
    pub status: Option<JobStatus>,
    pub limit: i64,
}

/// Jobs, newest first.
pub async fn list(db: &Db, filter: &JobFilter) -> StoreResult<Vec<JobRow>> {
    const SQL: &str = select_job!(
        "WHERE ($1 IS NULL OR team_id = $1) AND ($2 IS NULL OR kind = $2) AND ($3 IS NULL OR status = $3) \
         ORDER BY created_at DESC, id DESC LIMIT $4"
    );
    let rows: Vec<Columns> = on_pool!(db, |pool| {
        sqlx::query_as(SQL)
            .bind(filter.team.map(|t| t.to_string()))
            .bind(filter.kind.map(JobKind::as_str))
            .bind(filter.status.map(JobStatus::as_str))
            .bind(filter.limit)
            .fetch_all(pool)
            .await?
    });
    rows.into_iter().map(row).collect()
}

/// Whether an idempotency key was there to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    Taken,
    /// It was used before, for this job; `None`: by a release that did not write that down.
    Before(Option<JobId>),
}

/// Takes an idempotency key for a team's job (wire 5.8).
pub async fn use_idempotency_key(
    tx: &mut Tx,
    team: TeamId,
    key: &str,
    job: JobId,
    now: Timestamp,
) -> StoreResult<KeyUse> {
    const TAKE: &str = "INSERT INTO idempotency_key (team_id, key, job_id, created_at) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (team_id, key) DO NOTHING";
    const JOB: &str = "SELECT job_id FROM idempotency_key WHERE team_id = $1 AND key = $2";
    let done = on_db!(&mut *tx, |conn| {
        sqlx::query(TAKE).bind(team).bind(key).bind(job).bind(now).execute(conn).await?.rows_affected()
    });
    if done == 1 {
        return Ok(KeyUse::Taken);
    }
    let found: Option<(Option<JobId>,)> =
        on_db!(tx, |conn| sqlx::query_as(JOB).bind(team).bind(key).fetch_optional(conn).await?);
    Ok(KeyUse::Before(found.and_then(|row| row.0)))
}

/// Wakes whoever watches the job, when this transaction commits.
pub(super) async fn notify_job(tx: &mut Tx, id: JobId) -> StoreResult<()> {
    tx.tell(Signal::End);
    if let Tx::Postgres(tx) = tx {
        sqlx::query(sql!("SELECT ", notify_done!(job "$1"))).bind(id).execute(&mut **tx).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::sync::Arc;

    use super::*;
    use crate::domain::crawl::CrawlOptions;
    use crate::domain::crawl::scope::CrawlScope;
    use crate::domain::target::Login;
    use crate::store::testing;

    #[tokio::test]
    async fn a_key_that_was_used_says_for_which_job() {
        for db in testing::databases().await {
            const EARLIER: &str = "UPDATE idempotency_key SET job_id = NULL WHERE team_id = $1";
            let (team, other) = (testing::team(&db, "a").await, testing::team(&db, "b").await);
            let (job, key, now) = (JobId::new(), JobId::new().to_string(), db.now());
            let mut tx = db.begin().await.unwrap();
            let take = async |tx: &mut Tx, team| use_idempotency_key(tx, team, &key, job, now).await.unwrap();
            assert_eq!(take(&mut tx, team).await, KeyUse::Taken);
            assert_eq!(take(&mut tx, team).await, KeyUse::Before(Some(job)));
            assert_eq!(take(&mut tx, other).await, KeyUse::Taken, "a key is a team's");
            // As a release writes it that does not know the column.
            on_db!(&mut tx, |conn| sqlx::query(EARLIER).bind(team).execute(conn).await.unwrap().rows_affected());
            assert_eq!(take(&mut tx, team).await, KeyUse::Before(None));
            tx.commit().await.unwrap();
        }
    }

    #[test]
    fn a_page_is_asked_for_with_what_was_given_for_its_origin() {
        let given = vec!["https://shop.test/".to_owned(), "https://me:word@shop.test/p/*".to_owned()];
        let scope = CrawlScope::new("https://me:word@shop.test/".parse().unwrap(), &CrawlOptions::default()).unwrap();
        let scope = Arc::new(scope);
        let spec = |kind| JobSpec {
            kind,
            key: None,
            options: ScrapeOptions::default(),
            webhook: None,
            crawl: (kind == JobKind::Crawl).then(|| CrawlSpec {
                start: given[1].clone(),
                login: Login::of(&given[1]),
                scope: Arc::clone(&scope),
                is_settled: true,
            }),
            given: given.clone(),
        };
        for kind in [JobKind::Crawl, JobKind::Extract, JobKind::Agent] {
            let spec = spec(kind);
            assert_eq!(spec.asked("https://shop.test/x"), "https://me:word@shop.test/x", "{kind:?}");
            for other in
                ["https://shop.test:8443/", "http://shop.test/", "https://a.shop.test/", "https://b@shop.test/"]
            {
                assert_eq!(spec.asked(other), other, "{kind:?}");
            }
        }
        for kind in [JobKind::Scrape, JobKind::Batch, JobKind::Map, JobKind::Search] {
            for own in ["https://shop.test/x", "https://you:word@shop.test/x"] {
                assert_eq!(spec(kind).asked(own), own, "{kind:?}");
            }
        }
    }

    #[test]
    fn a_page_that_a_search_has_found_is_named_by_nobody() {
        let given = vec!["https://shop.test/p/*".to_owned(), "bare.test/x".to_owned()];
        let spec = |kind| JobSpec {
            kind,
            key: None,
            options: ScrapeOptions::default(),
            webhook: None,
            crawl: None,
            given: given.clone(),
        };
        let (own, hit) = ("https://shop.test/p/1", "https://other.test/p/1");
        for kind in [JobKind::Scrape, JobKind::Batch, JobKind::Map] {
            assert_eq!(spec(kind).named(hit), Some(hit), "{kind:?}");
        }
        assert_eq!(spec(JobKind::Search).named(own), None);
        for kind in [JobKind::Extract, JobKind::Agent] {
            let spec = spec(kind);
            assert_eq!(spec.named(own), Some("https://shop.test/p/*"), "{kind:?}");
            assert_eq!(spec.named("https://bare.test/y"), Some("bare.test/x"), "a host without a scheme is both");
            for other in [hit, "http://shop.test/p/1", "https://shop.test:444/p/1", "https://a.shop.test/"] {
                assert_eq!(spec.named(other), None, "{kind:?} {other}");
            }
        }
    }
}
