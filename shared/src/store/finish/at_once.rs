//! The end of a page that somebody waits for and that is simply done: everything that [`super::finish_many`] would
//! write, as one statement on Postgres, and on SQLite as one string of them between BEGIN and COMMIT.
//!
//! It leaves a page alone that more hangs on (a replay, a team that waits for a place): that stays for the others.

use crate::domain::job::JobStatus;
use crate::store::signals::Signal;
use crate::store::{Db, PostgresDb, StoreError, StoreResult, cache};
use crate::time::Timestamp;

use super::{Body, Finished, Outcome, Report};

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
    cache::replace_row!(),
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
        Db::Postgres(PostgresDb { pool, .. }) => bound!(POSTGRES).fetch_all(pool).await?.pop(),
        Db::Sqlite(db) => {
            let mut tx = db.begin().await?;
            let sql = if place.is_some() { sqlite!(cache::replace_row!()) } else { sqlite!() };
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
