//! Page rows: inserted with their job, claimed by workers, released, listed, replayed. Their end is in
//! [`super::finish`].
//!
//! Lock order of every writing transaction, which keeps Postgres free of deadlocks: team, then pages, then jobs.

use std::collections::HashMap;

use sqlx::FromRow as _;

use crate::domain::job::{MAX_CLAIMS, PageState};
use crate::error_code::ErrorCode;
use crate::ids::{JobId, KeyId, PageId, TeamId, WorkerId};
use crate::queue::{self, next_ticket};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::credits::{self, Funds};
use super::finish::{Finished, Outcome};
use super::jobs::{self, JobSpec, SpecColumns};
use super::{Db, StoreError, StoreResult, Tx, claim_patience, team_lock};

/// Rows in one INSERT: SQLite takes 32,766 values a statement.
const INSERT_ROWS: usize = 1_000;

/// Inserts the pages of a job, queued. Returns their ids in the order of `urls`.
pub async fn insert_many(
    tx: &mut Tx,
    job: JobId,
    team: TeamId,
    first_idx: i64,
    urls: &[String],
    now: Timestamp,
) -> StoreResult<Vec<PageId>> {
    let ids: Vec<PageId> = urls.iter().map(|_| PageId::new()).collect();
    for (chunk, part) in urls.chunks(INSERT_ROWS).enumerate() {
        let offset = chunk * INSERT_ROWS;
        on_db!(tx, |conn| {
            let mut insert =
                sqlx::QueryBuilder::new("INSERT INTO page (id, job_id, team_id, idx, url, state, run_at, queued_at) ");
            insert.push_values(part.iter().enumerate(), |mut values, (i, url)| {
                values
                    .push_bind(ids[offset + i])
                    .push_bind(job)
                    .push_bind(team)
                    .push_bind(first_idx + (offset + i) as i64)
                    .push_bind(url.as_str())
                    .push("'queued'")
                    .push_bind(now)
                    .push_bind(now);
            });
            insert.build().persistent(part.len() == 1).execute(conn).await?.rows_affected()
        });
    }
    Ok(ids)
}

/// A page that this worker may work on now, fenced by `epoch`.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Claimed {
    pub id: PageId,
    pub job_id: JobId,
    pub team_id: TeamId,
    pub idx: i64,
    pub url: String,
    /// Links from the start page of a crawl.
    pub depth: i64,
    pub epoch: i64,
    /// Claims so far, this one included.
    pub claims: i64,
    /// Own failed tries before this one.
    pub tries: i64,
    pub queued_at: Timestamp,
    pub started_at: Timestamp,
    /// The worker that has it.
    pub owner: Option<WorkerId>,
    /// A concurrency limit made it wait.
    #[sqlx(default)]
    pub limited: bool,
    /// Whoever waits for it is told by its worker ([`crate::worker_api::direct`]).
    #[sqlx(default)]
    pub handed: bool,
}

/// The same with what its job says.
#[derive(sqlx::FromRow)]
struct ClaimedOf {
    #[sqlx(flatten)]
    page: Claimed,
    kind: String,
    api_key_id: Option<KeyId>,
    options: String,
    webhook: Option<String>,
}

/// What a claim brought.
#[derive(Debug, Default)]
pub struct Claim {
    pub pages: Vec<Claimed>,
    /// The claim was filled: there is probably more.
    pub more: bool,
    /// When the next page of the team is due that only its time keeps waiting; not asked when there is `more`.
    pub next_at: Option<Timestamp>,
}

const RUNNING_BY_JOB: &str = "SELECT job_id, COUNT(*) FROM page WHERE team_id = $1 AND state = 'running' \
    GROUP BY job_id";

/// Jobs that a claim looks at in one go, besides those that already have pages in work.
const LOOK: usize = 50;
/// Looks in one claim: each but the last puts off, empties or fills to its limit as many jobs as it saw.
const LOOKS: usize = 20;

/// Takes up to `want` pages of a team: direct scrapes first, then its jobs in turn, within the limits of the team
/// (`default_limit` when it has none of its own) and of each job.
///
/// A claim cut short by a limit leaves a mark, so that the next finished page sends a ticket. A job found without a page
/// that is due is put off until one is, or until another page of it comes to wait: claims do not see it until then.
///
/// Whoever moves a waiting page holds its team's lock, so what the inner SELECT finds waiting still is. To ask again
/// would cost: Postgres believes that few pages wait and reads them all, once for each page it takes. For the same
/// reason statements that name a page by its id say `state || ''`, which is no column of the index of waiting pages.
pub async fn claim(
    tx: &mut Tx,
    team: TeamId,
    worker: WorkerId,
    want: usize,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<Claim> {
    // Each part is read in the order of the index; only what they bring is sorted.
    const JOBS: &str = "SELECT id, max_concurrency, limited_at, queued FROM (SELECT * FROM (SELECT id, \
        max_concurrency, limited_at, queued, rank, last_served FROM job WHERE team_id = $1 AND queued > 0 \
        AND due_at = 0 ORDER BY rank, last_served, id LIMIT $3) AS ready UNION ALL SELECT * FROM (SELECT id, \
        max_concurrency, limited_at, queued, rank, last_served FROM job WHERE team_id = $1 AND queued > 0 \
        AND due_at > 0 AND due_at <= $2 ORDER BY due_at LIMIT $3) AS woken) AS jobs \
        ORDER BY rank, last_served, id LIMIT $3";
    const TAKE: &str = "UPDATE page SET state = 'running', owner = $1, started_at = $2, epoch = epoch + 1, \
        claims = claims + 1 WHERE id IN (SELECT id FROM page WHERE job_id = $3 AND state = 'queued' AND run_at <= $2 \
        ORDER BY run_at, idx LIMIT $4) \
        RETURNING id, job_id, team_id, idx, url, depth, epoch, claims, tries, queued_at, started_at, owner";
    const TAKEN: &str = "UPDATE job SET queued = queued - $2, last_served = $3, due_at = $4 WHERE id = $1";
    const PUT_OFF: &str = "UPDATE job SET due_at = $2 WHERE id = $1";
    const NEXT: &str = "SELECT MIN(due_at) FROM job WHERE team_id = $1 AND queued > 0 AND due_at > $2";

    let Some(state) = team_lock::lock(tx, team).await? else { return Ok(Claim::default()) };
    let running: Vec<(JobId, i64)> =
        on_db!(tx, |conn| sqlx::query_as(RUNNING_BY_JOB).bind(team).fetch_all(conn).await?);
    let busy: i64 = running.iter().map(|r| r.1).sum();
    let mut running: HashMap<JobId, i64> = running.into_iter().collect();
    let limit = state.concurrency.unwrap_or(default_limit);
    let mut room = (limit - busy).clamp(0, want as i64);

    let mut claim = Claim::default();
    let mut limited = Vec::new();
    let mut may_be_more = true;
    for _ in 0..LOOKS {
        // Those at their own limit have pages in work, so they do not use up what is looked at.
        let look = if room > 0 { LOOK + running.len() } else { LOOK };
        let jobs: Vec<(JobId, Option<i64>, Option<Timestamp>, i64)> =
            on_db!(tx, |conn| sqlx::query_as(JOBS).bind(team).bind(now).bind(look as i64).fetch_all(conn).await?);
        let is_last = jobs.len() < look;
        for (job, max, limited_at, queued) in jobs {
            let free = max.map_or(i64::MAX, |m| m - running.get(&job).copied().unwrap_or(0));
            let take = room.min(free);
            if take <= 0 {
                limited.push(job);
                continue;
            }
            let mut pages: Vec<Claimed> = on_db!(tx, |conn| {
                sqlx::query_as(TAKE).bind(worker).bind(now).bind(job).bind(take).fetch_all(conn).await?
            });
            let count = pages.len() as i64;
            let due = if count < take.min(queued) { next_due(tx, job).await? } else { Timestamp(0) };
            if pages.is_empty() {
                on_db!(tx, |conn| sqlx::query(PUT_OFF).bind(job).bind(due).execute(conn).await?.rows_affected());
                continue;
            }
            // An UPDATE gives its rows in no order.
            pages.sort_by_key(|page| page.idx);
            on_db!(tx, |conn| {
                sqlx::query(TAKEN).bind(job).bind(count).bind(now).bind(due).execute(conn).await?.rows_affected()
            });
            room -= count;
            *running.entry(job).or_insert(0) += count;
            for page in &mut pages {
                page.limited = limited_at.is_some_and(|at| at >= page.queued_at);
            }
            claim.pages.append(&mut pages);
            if count == take {
                // It may have more, which a limit or only the size of this claim keeps waiting.
                limited.push(job);
            }
        }
        may_be_more = room > 0 && !is_last;
        if !may_be_more {
            break;
        }
    }
    claim.more = may_be_more || claim.pages.len() == want;
    if claim.more {
        return Ok(claim);
    }
    if !limited.is_empty() {
        limited.sort_unstable();
        limited.dedup();
        mark_limited(tx, team, state.starved, &limited, now).await?;
    }
    let next: (Option<Timestamp>,) =
        on_db!(tx, |conn| sqlx::query_as(NEXT).bind(team).bind(now).fetch_one(conn).await?);
    claim.next_at = next.0;
    Ok(claim)
}

/// When the first page of the job that waits is due.
async fn next_due(tx: &mut Tx, job: JobId) -> StoreResult<Timestamp> {
    const NEXT: &str = "SELECT MIN(run_at) FROM page WHERE job_id = $1 AND state = 'queued'";
    let next: (Option<Timestamp>,) = on_db!(tx, |conn| sqlx::query_as(NEXT).bind(job).fetch_one(conn).await?);
    Ok(next.0.unwrap_or(Timestamp(0)))
}

/// Takes the next page somebody waits for, with its job's spec, and removes its ticket: all that a worker with a free
/// place does before it fetches. `None`: there is none, or it is no longer queued, or its team is at its limit; its
/// ticket stays, and [`claim_one`] settles it when the library delivers it.
pub async fn claim_next(
    db: &Db,
    worker: WorkerId,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<Option<(Claimed, JobSpec)>> {
    // The row may come before the commit; a claim that is lost then is overtaken. Rows are named by subqueries: a join
    // with so little is planned as a look through the whole table while Postgres believes it to be small.
    const AT_ONCE: &str = concat!(
        "WITH ticket AS MATERIALIZED ",
        next_ticket!(postgres),
        // The patience is set before the lock is asked for: what is selected is computed below it.
        ", held AS (SELECT team.id, team.concurrency, ticket.id AS ticket, ticket.page, \
         set_config('synchronous_commit', 'off', TRUE), set_config('lock_timeout', '",
        claim_patience!(),
        "', TRUE) FROM ticket JOIN team ON team.id = ticket.team \
         FOR NO KEY UPDATE OF team), \
         taken AS (UPDATE page SET state = 'running', owner = $1, started_at = $2, epoch = epoch + 1, \
         claims = claims + 1 WHERE page.id = (SELECT page FROM held) AND page.state || '' = 'queued' \
         AND page.run_at <= $2 AND (SELECT pages_running(id) < COALESCE(concurrency, $3) FROM held) RETURNING page.id, \
         page.job_id, page.team_id, page.idx, page.url, page.depth, page.epoch, page.claims, page.tries, \
         page.queued_at, page.started_at, page.owner), \
         over AS (DELETE FROM apalis.jobs WHERE id = (SELECT held.ticket FROM held, taken)) \
         UPDATE job SET queued = queued - 1, last_served = $2 FROM taken WHERE job.id = (SELECT job_id FROM taken) \
         RETURNING taken.*, job.kind, job.api_key_id, job.options, job.webhook"
    );
    // Each statement goes on only when the one before it changed a row.
    const IN_TURN: &str = concat!(
        "UPDATE page SET state = 'running', owner = $1, started_at = $2, epoch = epoch + 1, claims = claims + 1 \
         WHERE id = ",
        next_ticket!(sqlite "CAST(job AS TEXT) ->> 'page'"),
        " AND state || '' = 'queued' AND run_at <= $2 \
         AND (SELECT COUNT(*) FROM page AS other WHERE other.team_id = page.team_id AND other.state = 'running') \
         < COALESCE((SELECT concurrency FROM team WHERE team.id = page.team_id), $3) \
         RETURNING id, job_id, team_id, idx, url, depth, epoch, claims, tries, queued_at, started_at, owner; \
         UPDATE job SET queued = queued - 1, last_served = $2 WHERE changes() = 1 \
         AND id = (SELECT job_id FROM page WHERE id = ",
        next_ticket!(sqlite "CAST(job AS TEXT) ->> 'page'"),
        ") RETURNING kind, api_key_id, options, webhook; \
         DELETE FROM Jobs WHERE changes() = 1 AND id = ",
        next_ticket!(sqlite "id")
    );
    match db {
        Db::Postgres(pool) => {
            let found: Option<ClaimedOf> =
                sqlx::query_as(AT_ONCE).bind(worker).bind(now).bind(default_limit).fetch_optional(pool).await?;
            let Some(of) = found else { return Ok(None) };
            let spec = jobs::read_spec((of.kind, of.api_key_id, of.options, of.webhook))?;
            Ok(Some((of.page, spec)))
        }
        Db::Sqlite(db) => {
            let mut tx = db.begin().await?;
            let rows = sqlx::query(IN_TURN).bind(worker).bind(now).bind(default_limit).fetch_all(&mut *tx).await?;
            let [page, spec] = &rows[..] else { return Ok(None) };
            let (page, spec) = (Claimed::from_row(page)?, SpecColumns::from_row(spec)?);
            tx.commit().await?;
            Ok(Some((page, jobs::read_spec(spec)?)))
        }
    }
}

/// Takes one page somebody waits for, with its job's spec. `None`: it is taken, ended, or its team is at its limit
/// (then a mark is left).
pub async fn claim_one(
    db: &Db,
    team: TeamId,
    page: PageId,
    worker: WorkerId,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<Option<(Claimed, JobSpec)>> {
    let mut tx = db.begin_claim().await?;
    let claimed = claim_or_mark(&mut tx, team, page, worker, default_limit, now).await?;
    tx.commit().await?;
    Ok(claimed)
}

async fn claim_or_mark(
    tx: &mut Tx,
    team: TeamId,
    page: PageId,
    worker: WorkerId,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<Option<(Claimed, JobSpec)>> {
    const TAKE: &str = "UPDATE page SET state = 'running', owner = $1, started_at = $2, epoch = epoch + 1, \
        claims = claims + 1 WHERE id = $3 AND state || '' = 'queued' AND run_at <= $2 \
        AND (SELECT COUNT(*) FROM page WHERE team_id = $4 AND state = 'running') < $5 \
        RETURNING id, job_id, team_id, idx, url, depth, epoch, claims, tries, queued_at, started_at, owner";
    const TAKEN: &str = "UPDATE job SET queued = queued - 1, last_served = $2 WHERE id = $1 \
        RETURNING kind, api_key_id, options, webhook";
    const JOB: &str = "SELECT job_id FROM page WHERE id = $1 AND state = 'queued' AND run_at <= $2";

    let Some(state) = team_lock::lock(tx, team).await? else { return Ok(None) };
    let limit = state.concurrency.unwrap_or(default_limit);
    let taken: Option<Claimed> = on_db!(tx, |conn| {
        sqlx::query_as(TAKE).bind(worker).bind(now).bind(page).bind(team).bind(limit).fetch_optional(conn).await?
    });
    let Some(taken) = taken else {
        let job: Option<(JobId,)> =
            on_db!(tx, |conn| sqlx::query_as(JOB).bind(page).bind(now).fetch_optional(conn).await?);
        if let Some((job,)) = job {
            mark_limited(tx, team, state.starved, &[job], now).await?;
        }
        return Ok(None);
    };
    let spec: SpecColumns =
        on_db!(tx, |conn| sqlx::query_as(TAKEN).bind(taken.job_id).bind(now).fetch_one(conn).await?);
    Ok(Some((taken, jobs::read_spec(spec)?)))
}

async fn mark_limited(tx: &mut Tx, team: TeamId, starved: bool, jobs: &[JobId], now: Timestamp) -> StoreResult<()> {
    if !starved {
        const TEAM: &str = "UPDATE team SET starved = TRUE WHERE id = $1";
        on_db!(tx, |conn| sqlx::query(TEAM).bind(team).execute(conn).await?.rows_affected());
    }
    on_db!(tx, |conn| {
        let mut update = sqlx::QueryBuilder::new("UPDATE job SET limited_at = ");
        update.push_bind(now).push(" WHERE id IN (");
        let mut list = update.separated(", ");
        for job in jobs {
            list.push_bind(*job);
        }
        update.push(")");
        update.build().execute(conn).await?.rows_affected()
    });
    Ok(())
}

/// Teams that have pages of dead workers.
pub async fn orphaned_teams(db: &Db, limit: i64) -> StoreResult<Vec<TeamId>> {
    const TEAMS: &str = "SELECT DISTINCT team_id FROM page WHERE state = 'running' \
        AND owner NOT IN (SELECT id FROM worker_node WHERE state <> 'dead') LIMIT $1";
    let teams: Vec<(TeamId,)> = on_pool!(db, |pool| sqlx::query_as(TEAMS).bind(limit).fetch_all(pool).await?);
    Ok(teams.into_iter().map(|row| row.0).collect())
}

/// Pages whose worker is dead, or never was: they go back to the queue, or fail at the ceiling of claims. Returns how
/// many. Call after [`super::nodes::bury`]. On Postgres teams whose lock somebody holds are passed over: they keep no
/// other team waiting.
pub async fn rescue_orphans(tx: &mut Tx, now: Timestamp, limit: i64) -> StoreResult<usize> {
    const ORPHANS: &str = "SELECT id, job_id, team_id, idx, url, depth, epoch, claims, tries, queued_at, started_at, owner \
        FROM page WHERE state = 'running' AND owner NOT IN (SELECT id FROM worker_node WHERE state <> 'dead') \
        ORDER BY team_id LIMIT $1";
    const OF_FREE: &str = "WITH free AS MATERIALIZED (SELECT id FROM team WHERE id IN (SELECT team_id FROM page \
        WHERE state = 'running' AND owner NOT IN (SELECT id FROM worker_node WHERE state <> 'dead')) \
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED) \
        SELECT id, job_id, team_id, idx, url, depth, epoch, claims, tries, queued_at, started_at, owner \
        FROM page WHERE state = 'running' AND owner NOT IN (SELECT id FROM worker_node WHERE state <> 'dead') \
        AND team_id IN (SELECT id FROM free) ORDER BY team_id LIMIT $1";
    let orphans: Vec<Claimed> = match tx {
        Tx::Sqlite(tx) => sqlx::query_as(ORPHANS).bind(limit).fetch_all(&mut **tx).await?,
        Tx::Postgres(tx) => sqlx::query_as(OF_FREE).bind(limit).fetch_all(&mut **tx).await?,
    };
    let count = orphans.len();
    rescue(tx, orphans.into_iter().map(|page| (page, Loss::WorkerDied)).collect(), now).await?;
    Ok(count)
}

/// Why a page that is said to be in work is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Its worker died, perhaps of it.
    WorkerDied,
    /// Its worker lives, and the work broke off.
    BrokeOff,
    /// Its worker never knew of the claim: no fault of the page.
    NeverBegun,
}

impl Loss {
    fn outcome(self, claims: i64) -> Outcome {
        let (reason, ceiling) = match self {
            Self::WorkerDied => ("the worker died", "The page was given up: every worker that tried it died."),
            Self::BrokeOff => ("the work broke off", "The page was given up: the work on it broke off each time."),
            Self::NeverBegun => return Outcome::GivenBack,
        };
        if claims >= MAX_CLAIMS {
            return Outcome::Failed { code: ErrorCode::RetryLimit, error: ceiling.to_owned(), credits: 0 };
        }
        Outcome::Lost { reason }
    }
}

/// Pages that are said to be in work and are not: they go back to their place in the queue, or fail at the ceiling of
/// claims.
pub async fn rescue(tx: &mut Tx, pages: Vec<(Claimed, Loss)>, now: Timestamp) -> StoreResult<()> {
    if pages.is_empty() {
        return Ok(());
    }
    let end = |(page, loss): (Claimed, Loss)| {
        let outcome = loss.outcome(page.claims);
        Finished { page, kind: None, key: None, outcome }
    };
    let ends: Vec<Finished> = pages.into_iter().map(end).collect();
    super::finish::finish_many(tx, &ends, now).await?;
    Ok(())
}

/// Teams with pages that were due before `before`: each gets a ticket, in case one was lost, unless it has one. Returns
/// how many.
pub async fn remind_teams(tx: &mut Tx, before: Timestamp) -> StoreResult<usize> {
    const TEAMS: &str = "SELECT DISTINCT job.team_id FROM job WHERE job.queued > 0 AND EXISTS (SELECT 1 FROM page \
        WHERE page.job_id = job.id AND page.state = 'queued' AND page.run_at <= $1) LIMIT 1000";
    let teams: Vec<(TeamId,)> = on_db!(tx, |conn| sqlx::query_as(TEAMS).bind(before).fetch_all(conn).await?);
    let teams: Vec<TeamId> = teams.into_iter().map(|row| row.0).collect();
    queue::remind_lanes(tx, &teams).await?;
    Ok(teams.len())
}

/// A page as stored.
#[derive(Debug, Clone)]
pub struct PageRow {
    pub id: PageId,
    pub job_id: JobId,
    pub team_id: TeamId,
    pub idx: i64,
    pub url: String,
    pub state: PageState,
    pub queued_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub claims: i64,
    pub tries: i64,
    pub error_code: Option<String>,
    pub error: Option<String>,
    /// How often it was put back after it had failed for good; its tries are counted from the last time.
    pub replays: i64,
}

type Columns = (
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
    ($rest:literal) => {
        concat!(
            "SELECT id, job_id, team_id, idx, url, state, queued_at, started_at, finished_at, claims, tries, \
             error_code, error, replays FROM page ",
            $rest
        )
    };
}

fn row(c: Columns) -> StoreResult<PageRow> {
    Ok(PageRow {
        id: c.0,
        job_id: c.1,
        team_id: c.2,
        idx: c.3,
        url: c.4,
        state: c.5.parse().map_err(StoreError::Corrupt)?,
        queued_at: c.6,
        started_at: c.7,
        finished_at: c.8,
        claims: c.9,
        tries: c.10,
        error_code: c.11,
        error: c.12,
        replays: c.13,
    })
}

/// The page, whoever owns it.
pub async fn load(db: &Db, id: PageId) -> StoreResult<Option<PageRow>> {
    const SQL: &str = select_page!("WHERE id = $1");
    let found: Option<Columns> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?);
    found.map(row).transpose()
}

/// Which of these pages have reached a final state.
pub async fn ended_among(db: &Db, ids: &[PageId]) -> StoreResult<Vec<PageId>> {
    among(db, ids, "SELECT id FROM page WHERE state NOT IN ('queued', 'running') AND id IN (").await
}

/// Which of these pages have not ended.
pub async fn open_among(db: &Db, ids: &[PageId]) -> StoreResult<Vec<PageId>> {
    among(db, ids, "SELECT id FROM page WHERE state IN ('queued', 'running') AND id IN (").await
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

/// Failed pages of a job, in the order of their failure (CONTRACT 5.4).
pub async fn failed_of(db: &Db, job: JobId, limit: i64) -> StoreResult<Vec<PageRow>> {
    const SQL: &str = select_page!("WHERE job_id = $1 AND state = 'failed' ORDER BY finished_at, idx LIMIT $2");
    let rows: Vec<Columns> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).bind(limit).fetch_all(pool).await?);
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

/// Which dead pages to replay; `None` or nothing means any.
#[derive(Debug, Clone, Default)]
pub struct ReplayFilter {
    pub job: Option<JobId>,
    pub team: Option<TeamId>,
    /// Error codes.
    pub codes: Vec<String>,
    pub failed_before: Option<Timestamp>,
    pub failed_after: Option<Timestamp>,
    /// Only pages that were replayed less often than this.
    pub most_replays: Option<i64>,
    /// Only pages that nobody waited for: those of batches and crawls.
    pub background: bool,
    pub limit: i64,
}

/// Dead pages that match, oldest failure first. Those of cancelled and expired jobs stay as they are.
pub async fn replayable(db: &Db, filter: &ReplayFilter, now: Timestamp) -> StoreResult<Vec<PageRow>> {
    let rows: Vec<Columns> = on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new(select_page!("WHERE state = 'failed' AND finished_at <= "));
        select.push_bind(filter.failed_before.unwrap_or(Timestamp(i64::MAX)));
        select.push(" AND finished_at >= ").push_bind(filter.failed_after.unwrap_or(Timestamp(0)));
        if let Some(job) = filter.job {
            select.push(" AND job_id = ").push_bind(job);
        }
        if let Some(team) = filter.team {
            select.push(" AND team_id = ").push_bind(team);
        }
        if let Some(most) = filter.most_replays {
            select.push(" AND replays < ").push_bind(most);
        }
        if !filter.codes.is_empty() {
            select.push(" AND error_code IN (");
            let mut list = select.separated(", ");
            for code in &filter.codes {
                list.push_bind(code.as_str());
            }
            select.push(")");
        }
        select.push(" AND EXISTS (SELECT 1 FROM job WHERE job.id = page.job_id AND job.status <> 'cancelled'");
        select.push(if filter.background { " AND job.rank > 0" } else { "" });
        select.push(" AND job.expires_at > ").push_bind(now).push(") ORDER BY finished_at, id LIMIT ");
        select.push_bind(filter.limit).build_query_as().fetch_all(pool).await?
    });
    rows.into_iter().map(row).collect()
}

/// What came of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    Queued,
    /// It is not dead any more, or its job was cancelled or has expired.
    NotDead,
    /// Its team cannot pay for it.
    NoCredits,
}

/// Puts a dead page back into the queue with a clean count of tries; its history stays. A finished job runs again
/// until the page has ended. What receivers of webhooks have not been told of the failure they are not told any more.
pub async fn replay(tx: &mut Tx, page: PageId, metered: bool, now: Timestamp) -> StoreResult<Replay> {
    const OWNER: &str = "SELECT page.team_id, page.job_id, job.page_credits FROM page \
        JOIN job ON job.id = page.job_id WHERE page.id = $1 AND page.state = 'failed'";
    const PAGE: &str = "UPDATE page SET state = 'queued', run_at = $2, queued_at = $2, tries = 0, claims = 0, \
        replays = replays + 1, epoch = epoch + 1, finished_at = NULL, error_code = NULL, error = NULL \
        WHERE id = $1 AND state = 'failed' AND EXISTS (SELECT 1 FROM job WHERE job.id = page.job_id \
        AND job.status <> 'cancelled' AND job.expires_at > $2)";
    const JOB: &str = "UPDATE job SET queued = queued + 1, due_at = 0, failed = failed - 1, status = 'scraping', \
        finished_at = NULL WHERE id = $1";
    const UNTOLD: &str = "DELETE FROM webhook_delivery WHERE job_id = $1 AND page_id = $2 AND state <> 'delivered'";
    let owner: Option<(TeamId, JobId, i64)> =
        on_db!(tx, |conn| sqlx::query_as(OWNER).bind(page).fetch_optional(conn).await?);
    let Some((team, job, need)) = owner else { return Ok(Replay::NotDead) };
    team_lock::lock(tx, team).await?;
    if credits::check_funds(tx, team, need, metered).await? != Funds::Enough {
        return Ok(Replay::NoCredits);
    }
    let moved = on_db!(tx, |conn| sqlx::query(PAGE).bind(page).bind(now).execute(conn).await?.rows_affected());
    if moved == 0 {
        return Ok(Replay::NotDead);
    }
    on_db!(tx, |conn| {
        sqlx::query(JOB).bind(job).execute(&mut *conn).await?;
        sqlx::query(UNTOLD).bind(job).bind(page).execute(conn).await?.rows_affected()
    });
    queue::lane_ticket(tx, team, std::time::Duration::ZERO).await?;
    Ok(Replay::Queued)
}

/// What a worker holds, by the rows: 2,000 pages of it at most.
pub async fn held_by(tx: &mut Tx, worker: WorkerId) -> StoreResult<Vec<Claimed>> {
    const HELD: &str = "SELECT id, job_id, team_id, idx, url, depth, epoch, claims, tries, queued_at, started_at, owner \
        FROM page WHERE state = 'running' AND owner = $1 ORDER BY team_id LIMIT 2000";
    Ok(on_db!(tx, |conn| sqlx::query_as(HELD).bind(worker).fetch_all(conn).await?))
}

/// Everything a worker still holds goes back to the queue as if never claimed: it stops in good order.
pub async fn give_back(tx: &mut Tx, worker: WorkerId, now: Timestamp) -> StoreResult<usize> {
    let held = held_by(tx, worker).await?;
    let ends: Vec<Finished> =
        held.into_iter().map(|page| Finished { page, kind: None, key: None, outcome: Outcome::GivenBack }).collect();
    if !ends.is_empty() {
        super::finish::finish_many(tx, &ends, now).await?;
    }
    Ok(ends.len())
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
