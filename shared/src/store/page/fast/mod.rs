//! A page that somebody waits for, in one statement on Postgres, and on SQLite as one string of them between BEGIN and
//! COMMIT: claimed with its ticket, written as claimed already, ended. All of it is what the general way would write.
//!
//! The end leaves a page alone that more hangs on (a replay, a team that waits for a place): that stays for
//! [`super::finish::finish_many`].

use sqlx::FromRow as _;

use crate::domain::job::JobStatus;
use crate::ids::{KeyId, WorkerId};
use crate::queue::next_ticket;
use crate::store::jobs::{self, JobSpec, SpecColumns, insert_job};
use crate::store::signals::Signal;
use crate::store::{Db, StoreError, StoreResult, claim_patience};
use crate::time::Timestamp;

use super::end::{Body, Finished, Outcome, Report};
use super::results::replace_row;
use super::rows::Claimed;
use super::scrape::NewScrape;

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
        Db::Postgres(pool) => !bound!(AT_ONCE).fetch_all(pool).await?.is_empty(),
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

/// On Postgres, in this order: lock the team, move the page, count it in its job and tell who waits (unless its worker
/// does), store the document, enter it in the cache, bill it. Jobs of one page have no webhook.
const POSTGRES: &str = concat!(
    "WITH held AS (SELECT id FROM team WHERE id = $3 AND NOT starved FOR NO KEY UPDATE), \
     moved AS (UPDATE page SET state = 'done', finished_at = $5, owner = NULL, error_code = NULL, error = NULL \
         FROM held WHERE page.id = $1 AND page.epoch = $2 AND page.state || '' = 'running' AND page.replays = 0 \
         AND page.team_id = held.id RETURNING page.job_id), \
     counted AS (UPDATE job SET completed = completed + 1, credits_used = credits_used + $6, \
         status = CASE WHEN status <> 'scraping' OR completed + failed + 1 < total THEN status ELSE 'completed' END, \
         finished_at = CASE WHEN status <> 'scraping' OR completed + failed + 1 < total THEN finished_at ELSE $5 END \
         FROM moved WHERE job.id = $4 AND job.id = moved.job_id \
         RETURNING job.id, job.status, job.completed, \
             CASE WHEN NOT $16 THEN pg_notify('weir_done', 'p:' || $1) END), \
     stored AS (INSERT INTO document (job_id, seq, page_id, size, body, blob) \
         SELECT id, completed, $1, $7, $8, $9 FROM counted), \
     kept AS (INSERT INTO cached_page (key, team_id, url, site, page_id, bytes, cached_at) \
         SELECT $10, $3, $11, $12, $1, $13, $5 FROM counted WHERE $10 IS NOT NULL",
    replace_row!(),
    "), \
     entered AS (INSERT INTO credit_entry (key, team_id, api_key_id, kind, amount, created_at) \
         SELECT 'page:' || $1, $3, $14, $15, $6, $5 FROM counted WHERE $6 > 0 ON CONFLICT (key) DO NOTHING \
         RETURNING amount), \
     billed AS (UPDATE team SET credits_used = credits_used + entered.amount FROM entered WHERE team.id = $3) \
     SELECT status FROM counted"
);

/// The same on SQLite, where each statement goes on only when the one before it changed a row. With `cached` the page
/// is entered in the cache.
macro_rules! sqlite {
    ($($cached:expr)?) => {
        concat!(
            "UPDATE page SET state = 'done', finished_at = $5, owner = NULL, error_code = NULL, error = NULL \
                 WHERE id = $1 AND epoch = $2 AND state || '' = 'running' AND replays = 0 AND job_id = $4 \
                 AND team_id = $3 AND NOT (SELECT starved FROM team WHERE id = $3); \
             UPDATE job SET completed = completed + 1, credits_used = credits_used + $6, \
                 status = CASE WHEN status <> 'scraping' OR completed + failed + 1 < total THEN status \
                     ELSE 'completed' END, \
                 finished_at = CASE WHEN status <> 'scraping' OR completed + failed + 1 < total THEN finished_at \
                     ELSE $5 END \
                 WHERE id = $4 AND changes() = 1 RETURNING status; \
             INSERT INTO document (job_id, seq, page_id, size, body, blob) \
                 SELECT id, completed, $1, $7, $8, $9 FROM job WHERE id = $4 AND changes() = 1; ",
            $(
                "INSERT INTO cached_page (key, team_id, url, site, page_id, bytes, cached_at) \
                     SELECT $10, $3, $11, $12, $1, $13, $5 WHERE changes() = 1",
                $cached,
                "; ",
            )?
            "INSERT INTO credit_entry (key, team_id, api_key_id, kind, amount, created_at) \
                 SELECT 'page:' || $1, $3, $14, $15, $6, $5 WHERE $6 > 0 AND changes() = 1 \
                 ON CONFLICT (key) DO NOTHING; \
             UPDATE team SET credits_used = credits_used + $6 WHERE id = $3 AND changes() = 1"
        )
    };
}

/// Writes the end, if it is such a one. `None`: it is not, or was overtaken, or more hangs on it.
pub(super) async fn finish(db: &Db, end: &Finished, now: Timestamp) -> StoreResult<Option<Report>> {
    let Outcome::Done { document, credits } = &end.outcome else { return Ok(None) };
    let Some(kind) = end.kind.filter(|kind| kind.is_direct() && document.snapshot.is_none()) else { return Ok(None) };
    let (body, blob) = match &document.body {
        Body::Inline(bytes) => (Some(bytes.as_slice()), None),
        Body::Blob(key) => (None, Some(key.as_str())),
    };
    let place = document.cache.as_deref();
    macro_rules! bound {
        ($sql:expr) => {
            sqlx::query_as::<_, (String,)>($sql)
                .bind(end.page.id)
                .bind(end.page.epoch)
                .bind(end.page.team_id)
                .bind(end.page.job_id)
                .bind(now)
                .bind(credits)
                .bind(document.size)
                .bind(body)
                .bind(blob)
                .bind(place.map(|place| place.key.0.as_str()))
                .bind(place.map(|place| place.url.as_str()))
                .bind(place.and_then(|place| place.site.as_deref()))
                .bind(document.packed)
                .bind(end.key)
                .bind(kind.credit_kind())
                .bind(end.page.handed)
        };
    }
    // All of the answer is waited for: the row comes before the rest is done.
    let written = match db {
        Db::Postgres(pool) => bound!(POSTGRES).fetch_all(pool).await?.pop(),
        Db::Sqlite(db) => {
            let mut tx = db.begin().await?;
            let sql = if place.is_some() { sqlite!(replace_row!()) } else { sqlite!() };
            let written = bound!(sql).fetch_all(&mut *tx).await?.pop();
            if written.is_some() {
                if !end.page.handed {
                    tx.tell(Signal::End);
                }
                tx.commit().await?;
            }
            written
        }
    };
    let Some((status,)) = written else { return Ok(None) };
    let status: JobStatus = status.parse().map_err(StoreError::Corrupt)?;
    let is_over = matches!(status, JobStatus::Completed | JobStatus::Failed);
    let ended = if is_over { vec![end.page.job_id] } else { Vec::new() };
    Ok(Some(Report { written: vec![end.page.id], ended }))
}
