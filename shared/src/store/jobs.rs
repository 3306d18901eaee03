//! Job rows: one per scrape, batch or crawl, with counts that change only in the transaction that changes the pages.

use crate::clock::Stopwatch;
use crate::domain::activity::Endpoint;
use crate::domain::job::{JobKind, JobStatus, WebhookEvent};
use crate::domain::map::site_of;
use crate::domain::price;
use crate::domain::scrape::ScrapeOptions;
use crate::domain::webhook::WebhookSpec;
use crate::ids::{JobId, KeyId, PageId, TeamId, WorkerId};
use crate::queue::{ScrapeTicket, insert_ticket};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::crawls::{self, CrawlSpec};
use super::pages::Claimed;
use super::signals::Signal;
use super::slices::Slices;
use super::{Db, PostgresDb, StoreError, StoreResult, Tx, claim_patience, team_lock, webhooks};

/// A job to be written, with all its pages queued.
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
        concat!(insert_job!(into), "VALUES (", insert_job!(values "$11"), ")")
    };
    (into) => {
        "INSERT INTO job (id, team_id, api_key_id, kind, status, rank, options, target, origin, max_concurrency, \
         webhook, total, queued, created_at, expires_at, site, zero_retention, page_credits) "
    };
    (values $queued:literal) => {
        concat!(
            "$1, $2, $3, $4, 'scraping', $5, $6, $7, $8, $9, $10, $11, ",
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
            .bind(serde_json::to_string($job.options)?)
            .bind($job.target)
            .bind($job.origin)
            .bind($job.max_concurrency)
            .bind($job.webhook.map(serde_json::to_string).transpose()?)
            .bind($job.total)
            .bind($job.created_at)
            .bind($job.expires_at)
            .bind(site_of($job.target).filter(|_| !$job.options.zero_retention))
            .bind($job.options.zero_retention)
            .bind(price::most($job.options))
    };
}

/// Writes the job row. The pages follow in the same transaction.
pub async fn insert(tx: &mut Tx, job: &NewJob<'_>) -> StoreResult<()> {
    const SQL: &str = insert_job!();
    on_db!(tx, |conn| insert_job!(SQL, job).execute(conn).await?.rows_affected());
    Ok(())
}

/// A job of one page that somebody waits for.
pub struct NewScrape<'a> {
    pub job: NewJob<'a>,
    pub page: PageId,
    pub url: &'a str,
    pub endpoint: Endpoint,
}

/// The statement that writes job, page, what the team sees of it and the ticket, and its values.
macro_rules! insert_scrape {
    (page) => {
        "INSERT INTO page (id, job_id, team_id, idx, url, state, run_at, queued_at) \
         VALUES ($17, $1, $2, 0, $18, 'queued', $12, $12)"
    };
    (shown) => {
        "INSERT INTO activity (team_id, created_at, id, endpoint, target) VALUES ($2, $12, $17, $19, $20)"
    };
    ($scrape:ident, $sqlite_or_postgres:ident, $conn:expr) => {{
        let job = &$scrape.job;
        let ticket = ScrapeTicket::new(job.team, $scrape.page)?;
        insert_job!(insert_scrape!($sqlite_or_postgres), job)
            .bind($scrape.page)
            .bind($scrape.url)
            .bind($scrape.endpoint.as_str())
            .bind(Some(job.target).filter(|target| !target.is_empty()))
            .bind(ticket.id)
            .bind(ticket.queue)
            .bind(ticket.payload)
            .bind(ticket.attempts)
            .execute($conn)
            .await?;
    }};
    (sqlite) => {
        concat!(insert_job!(), "; ", insert_scrape!(page), "; ", insert_scrape!(shown), "; ", insert_ticket!(sqlite))
    };
    (postgres) => {
        concat!(
            "WITH new_job AS (",
            insert_job!(),
            "), new_page AS (",
            insert_scrape!(page),
            "), new_ticket AS (",
            insert_ticket!(postgres),
            ") ",
            insert_scrape!(shown)
        )
    };
}

/// Writes the job with its page, what the team sees of it and its ticket.
pub async fn insert_scrape(tx: &mut Tx, scrape: &NewScrape<'_>) -> StoreResult<()> {
    tx.tell(Signal::Scrape);
    match tx {
        Tx::Sqlite(tx) => insert_scrape!(scrape, sqlite, &mut **tx),
        Tx::Postgres(tx) => insert_scrape!(scrape, postgres, &mut **tx),
    }
    Ok(())
}

/// The same as a transaction of its own.
pub async fn insert_scrape_alone(db: &Db, scrape: &NewScrape<'_>) -> StoreResult<()> {
    if let Db::Postgres(PostgresDb { pool, .. }) = db {
        insert_scrape!(scrape, postgres, pool);
        return Ok(());
    }
    let mut tx = db.begin_relaxed().await?;
    insert_scrape(&mut tx, scrape).await?;
    tx.commit().await
}

/// Writes the job with its page, claimed by `worker`: all that a worker with a free place does before it fetches a page
/// it was handed. `None`: nothing is written, for its team is at its limit (`default_limit` when it has none of its own)
/// or has pages that wait for a place. On Postgres the team's lock is not waited for long
/// ([`StoreError::is_lock_wait`]).
pub async fn insert_scrape_claimed(
    db: &Db,
    scrape: &NewScrape<'_>,
    worker: WorkerId,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<Option<Claimed>> {
    // The caller still waits, so a commit that is lost in a crash loses nothing. The team is locked before its running
    // pages are counted.
    const AT_ONCE: &str = concat!(
        "WITH held AS (SELECT id, concurrency, set_config('synchronous_commit', 'off', TRUE), \
         set_config('lock_timeout', '",
        claim_patience!(),
        "', TRUE) FROM team WHERE id = $2 AND NOT starved FOR NO KEY UPDATE), new_job AS (",
        insert_job!(into),
        "SELECT ",
        insert_job!(values "0"),
        " FROM held WHERE pages_running(held.id) < COALESCE(held.concurrency, $23) RETURNING id), \
         new_page AS (INSERT INTO page (id, job_id, team_id, idx, url, state, run_at, queued_at, owner, started_at, \
         epoch, claims) SELECT $17, id, $2, 0, $18, 'running', $12, $12, $21, $22, 1, 1 FROM new_job) \
         INSERT INTO activity (team_id, created_at, id, endpoint, target) SELECT $2, $12, $17, $19, $20 FROM new_job \
         RETURNING id"
    );
    // Each statement goes on only when the one before it wrote a row.
    const IN_TURN: &str = concat!(
        insert_job!(into),
        "SELECT ",
        insert_job!(values "0"),
        " FROM team WHERE id = $2 AND NOT starved AND \
         (SELECT COUNT(*) FROM page WHERE team_id = $2 AND state = 'running') < COALESCE(concurrency, $23); \
         INSERT INTO page (id, job_id, team_id, idx, url, state, run_at, queued_at, owner, started_at, epoch, claims) \
         SELECT $17, $1, $2, 0, $18, 'running', $12, $12, $21, $22, 1, 1 WHERE changes() = 1; \
         INSERT INTO activity (team_id, created_at, id, endpoint, target) SELECT $2, $12, $17, $19, $20 \
         WHERE changes() = 1 RETURNING id"
    );
    let job = &scrape.job;
    macro_rules! bound {
        ($sql:expr) => {
            insert_job!($sql, job)
                .bind(scrape.page)
                .bind(scrape.url)
                .bind(scrape.endpoint.as_str())
                .bind(Some(job.target).filter(|target| !target.is_empty()))
                .bind(worker)
                .bind(now)
                .bind(default_limit)
        };
    }
    let is_written = match db {
        Db::Postgres(PostgresDb { pool, .. }) => !bound!(AT_ONCE).fetch_all(pool).await?.is_empty(),
        Db::Sqlite(db) => {
            let mut tx = db.begin().await?;
            let is_written = !bound!(IN_TURN).fetch_all(&mut *tx).await?.is_empty();
            if is_written {
                tx.commit().await?;
            }
            is_written
        }
    };
    Ok(is_written.then(|| Claimed {
        id: scrape.page,
        job_id: job.id,
        team_id: job.team,
        idx: 0,
        url: scrape.url.to_owned(),
        depth: 0,
        epoch: 1,
        claims: 1,
        tries: 0,
        queued_at: job.created_at,
        started_at: now,
        owner: Some(worker),
        limited: false,
        handed: true,
    }))
}

/// A job as stored, without its options.
#[derive(Debug, Clone)]
pub struct JobRow {
    pub id: JobId,
    pub team_id: TeamId,
    pub kind: JobKind,
    pub status: JobStatus,
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
    /// `total` as clients see it: failed pages leave it once the job has ended (CONTRACT 14).
    pub fn total_shown(&self) -> i64 {
        let pages = self.total - self.hidden;
        if self.status == JobStatus::Scraping { pages } else { pages - self.failed }
    }

    /// Pages that have not ended, without the job's own steps.
    pub fn waiting(&self) -> Waiting {
        let open = (self.total - self.hidden - self.completed - self.failed).max(0);
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
        concat!(
            "SELECT id, team_id, kind, status, target, total, queued, completed, failed, credits_used, \
             max_concurrency, webhook, created_at, expires_at, finished_at, hidden FROM job ",
            $rest
        )
    };
}

fn row(c: Columns) -> StoreResult<JobRow> {
    Ok(JobRow {
        id: c.0,
        team_id: c.1,
        kind: c.2.parse().map_err(StoreError::Corrupt)?,
        status: c.3.parse().map_err(StoreError::Corrupt)?,
        target: c.4,
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

/// The job with its row locked until the transaction ends. Lock the team first ([`teams::lock`]) when it is written.
pub async fn lock(tx: &mut Tx, id: JobId) -> StoreResult<Option<JobRow>> {
    // SQLite holds the whole file already.
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
}

impl JobSpec {
    /// The address that the caller named for a page at `url`: the page's own, or where its crawl begins.
    pub fn named<'a>(&'a self, url: &'a str) -> &'a str {
        self.crawl.as_ref().map_or(url, |crawl| crawl.start.as_str())
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
    const SQL: &str = "UPDATE job SET total = total + $2, queued = queued + $2, due_at = 0 \
        WHERE id = $1 AND status = 'scraping'";
    let done = on_db!(tx, |conn| sqlx::query(SQL).bind(id).bind(by).execute(conn).await?.rows_affected());
    Ok(done == 1)
}

/// Waiting pages of a cancelled job that are marked in one transaction.
const DROPPED_AT_ONCE: i64 = 1_000;

/// Cancels a running job: its waiting pages never start, running ones may still finish (CONTRACT 5.5). `false` when
/// it has ended.
///
/// Waiting pages leave the counts at once, and nobody claims a page that its job does not count. When they are many, most
/// of their rows are marked later, by [`drop_cancelled`].
pub async fn cancel(tx: &mut Tx, id: JobId, now: Timestamp) -> StoreResult<bool> {
    const OWNER: &str = "SELECT team_id FROM job WHERE id = $1";
    // A step that had not begun leaves the counts like a page.
    const END: &str = "UPDATE job SET status = 'cancelled', finished_at = $2, total = total - queued, queued = 0, \
        dropping = queued > $3, hidden = (SELECT COUNT(*) FROM page WHERE job_id = $1 AND idx < 0 AND state = 'running') \
        WHERE id = $1 AND status = 'scraping'";
    let owner: Option<(TeamId,)> = on_db!(tx, |conn| sqlx::query_as(OWNER).bind(id).fetch_optional(conn).await?);
    let Some((team,)) = owner else { return Ok(false) };
    team_lock::lock(tx, team).await?;
    let ended = on_db!(tx, |conn| {
        sqlx::query(END).bind(id).bind(now).bind(DROPPED_AT_ONCE).execute(conn).await?.rows_affected()
    });
    if ended == 0 {
        return Ok(false);
    }
    drop_waiting(tx, id, now, DROPPED_AT_ONCE).await?;
    let job = lock(tx, id).await?;
    if let Some(job) = job.filter(|j| j.webhook.as_ref().is_some_and(|w| w.wants(WebhookEvent::Cancelled))) {
        webhooks::queue(tx, job.team_id, id, None, WebhookEvent::Cancelled, now).await?;
    }
    notify_job(tx, id).await?;
    Ok(true)
}

/// Marks up to `limit` waiting pages of a job that has ended; its counts are without them. Returns how many.
pub(super) async fn drop_waiting(tx: &mut Tx, id: JobId, now: Timestamp, limit: i64) -> StoreResult<u64> {
    const SQL: &str = "UPDATE page SET state = 'cancelled', finished_at = $2, epoch = epoch + 1 WHERE id IN \
        (SELECT id FROM page WHERE job_id = $1 AND state = 'queued' LIMIT $3)";
    Ok(on_db!(tx, |conn| sqlx::query(SQL).bind(id).bind(now).bind(limit).execute(conn).await?.rows_affected()))
}

/// Marks what cancelled jobs have left of their waiting pages, in slices.
pub async fn drop_cancelled(db: &Db, slices: &mut Slices, now: Timestamp) -> StoreResult<()> {
    const SOME: &str = "SELECT id, team_id FROM job WHERE dropping LIMIT 20";
    const OVER: &str = "UPDATE job SET dropping = FALSE WHERE id = $1";
    let jobs: Vec<(JobId, TeamId)> = on_pool!(db, |pool| sqlx::query_as(SOME).fetch_all(pool).await?);
    for (job, team) in jobs {
        loop {
            let rows = slices.rows();
            let mut tx = db.begin_relaxed().await?;
            let began = Stopwatch::start();
            team_lock::lock(&mut tx, team).await?;
            let is_last = drop_waiting(&mut tx, job, now, rows).await? < rows.unsigned_abs();
            if is_last {
                on_db!(&mut tx, |conn| sqlx::query(OVER).bind(job).execute(conn).await?.rows_affected());
            }
            tx.commit().await?;
            slices.pause(began).await;
            if is_last {
                break;
            }
        }
    }
    Ok(())
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

/// Takes an idempotency key for a team (CONTRACT 5.8). `false`: used before.
pub async fn use_idempotency_key(tx: &mut Tx, team: TeamId, key: &str, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = "INSERT INTO idempotency_key (team_id, key, created_at) VALUES ($1, $2, $3) \
        ON CONFLICT (team_id, key) DO NOTHING";
    let done = on_db!(tx, |conn| sqlx::query(SQL).bind(team).bind(key).bind(now).execute(conn).await?.rows_affected());
    Ok(done == 1)
}

/// The queue as operators watch it.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueueStats {
    /// Pages not claimed yet.
    pub queued: i64,
    /// Pages in work.
    pub running: i64,
    /// Jobs not ended.
    pub jobs: i64,
    /// When the oldest unfinished job with waiting pages was made.
    pub oldest: Option<Timestamp>,
}

/// Depth and age of the queue.
pub async fn queue_stats(db: &Db) -> StoreResult<QueueStats> {
    const JOBS: &str = "SELECT CAST(COALESCE(SUM(queued), 0) AS BIGINT), COUNT(*), MIN(created_at) FROM job \
        WHERE queued > 0";
    const RUNNING: &str = "SELECT COUNT(*) FROM page WHERE state = 'running'";
    let jobs: (i64, i64, Option<Timestamp>) = on_pool!(db, |pool| sqlx::query_as(JOBS).fetch_one(pool).await?);
    let running: (i64,) = on_pool!(db, |pool| sqlx::query_as(RUNNING).fetch_one(pool).await?);
    Ok(QueueStats { queued: jobs.0, jobs: jobs.1, oldest: jobs.2, running: running.0 })
}

/// A team's pages in the queue, over all of its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TeamQueue {
    /// Not claimed yet.
    pub waiting: i64,
    /// In work.
    pub running: i64,
    /// When a job last ended with a result, of those that are still kept.
    pub last_success: Option<Timestamp>,
}

/// How a team's queue stands.
pub async fn team_queue(db: &Db, team: TeamId) -> StoreResult<TeamQueue> {
    // One statement, so that a page on its way from waiting to running is counted once.
    const SQL: &str = "SELECT \
        (SELECT CAST(COALESCE(SUM(queued), 0) AS BIGINT) FROM job WHERE team_id = $1 AND queued > 0), \
        (SELECT COUNT(*) FROM page WHERE team_id = $1 AND state = 'running'), \
        (SELECT finished_at FROM job WHERE team_id = $1 AND status = 'completed' AND completed > 0 \
         ORDER BY finished_at DESC LIMIT 1)";
    let (waiting, running, last_success): (i64, i64, Option<Timestamp>) =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).fetch_one(pool).await?);
    Ok(TeamQueue { waiting, running, last_success })
}

/// A team's pages that are not claimed yet. Exact when the team is locked; without the lock, requests at the same moment
/// do not see each other's.
pub async fn team_waiting(tx: &mut Tx, team: TeamId) -> StoreResult<i64> {
    const SQL: &str = "SELECT CAST(COALESCE(SUM(queued), 0) AS BIGINT) FROM job WHERE team_id = $1 AND queued > 0";
    let waiting: (i64,) = on_db!(tx, |conn| sqlx::query_as(SQL).bind(team).fetch_one(conn).await?);
    Ok(waiting.0)
}

/// Pages of a team that are in work.
pub async fn team_running(db: &Db, team: TeamId) -> StoreResult<i64> {
    const SQL: &str = "SELECT COUNT(*) FROM page WHERE team_id = $1 AND state = 'running'";
    let running: (i64,) = on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).fetch_one(pool).await?);
    Ok(running.0)
}

/// Wakes whoever watches the job, when this transaction commits.
pub(super) async fn notify_job(tx: &mut Tx, id: JobId) -> StoreResult<()> {
    tx.tell(Signal::End);
    if let Tx::Postgres(tx) = tx {
        sqlx::query("SELECT pg_notify('weir_done', $1)").bind(format!("j:{id}")).execute(&mut **tx).await?;
    }
    Ok(())
}
