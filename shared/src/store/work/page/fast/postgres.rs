//! The fast statements on Postgres: each is one, whose parts run in the order in which they need each other.

use crate::ids::{KeyId, WorkerId};
use crate::queue::next_wakeup;
use crate::store::accounts::credits::{ENTERED_ONCE, LEDGER_ENTRY, used_more};
use crate::store::db::signals::notify_done;
use crate::store::work::jobs::{self, JobSpec, insert_job};
use crate::store::work::page::rows::Claimed;
use crate::store::work::page::rules::{
    CLAIMED_COLUMNS, INSERT_CONTENT, INSERT_DOCUMENT, INSERT_VERSION, IS_DUE_BY_ID, KNOWN_CONTENT, REPLACE_VERSION,
    TAKE, done, has_room, is_ours,
};
use crate::store::work::page::scrape::{NewScrape, scrape_values};
use crate::store::{PostgresDb, StoreResult, claim_patience};
use crate::time::Timestamp;

use super::values::{COUNT_DONE, DirectEnd, INSERT_PAGE_CLAIMED, claimed_values, end_values};

/// What is set before the team is locked: a commit that is lost in a crash loses nothing here, and who asks has a slot in
/// hand.
const SET_CLAIM: &str = concat!(
    "set_config('synchronous_commit', 'off', TRUE), set_config('lock_timeout', '",
    claim_patience!(),
    "', TRUE)"
);

/// The row may come before the commit; a claim that is lost then is overtaken. Rows are named by subqueries: a join with
/// so little is planned as a look through the whole table while Postgres believes it to be small.
const CLAIM_NEXT: &str = sql!(
    "WITH wakeup AS MATERIALIZED ",
    next_wakeup!(postgres),
    // The patience is set before the lock is asked for: what is selected is computed below it.
    ", held AS (SELECT team.id, team.concurrency, wakeup.id AS wakeup, wakeup.page, ",
    SET_CLAIM,
    " FROM wakeup JOIN team ON team.id = wakeup.team AND team.removed_at IS NULL FOR NO KEY UPDATE OF team), \
     taken AS (UPDATE page SET ",
    TAKE,
    " WHERE page.id = (SELECT page FROM held) AND ",
    IS_DUE_BY_ID,
    " AND (SELECT ",
    has_room!(held, "$3"),
    " FROM held) RETURNING ",
    CLAIMED_COLUMNS,
    "), over AS (DELETE FROM apalis.jobs WHERE id = (SELECT held.wakeup FROM held, taken)) \
     UPDATE job SET queued = queued - 1, last_served = $2 FROM taken WHERE job.id = (SELECT job_id FROM taken) \
     RETURNING taken.*, job.kind, job.api_key_id, job.options, job.webhook"
);

/// The team is locked before its running pages are counted.
const INSERT_CLAIMED: &str = sql!(
    "WITH held AS (SELECT id, concurrency, ",
    SET_CLAIM,
    " FROM team WHERE id = $2 AND NOT starved AND removed_at IS NULL FOR NO KEY UPDATE), new_job AS (",
    insert_job!(into),
    "SELECT ",
    insert_job!(values "0"),
    " FROM held WHERE ",
    has_room!(held, "$24"),
    " RETURNING id), new_page AS (",
    INSERT_PAGE_CLAIMED,
    " FROM new_job) ",
    scrape_values!(into_shown),
    "SELECT ",
    scrape_values!(shown),
    " FROM new_job RETURNING id"
);

/// In this order: lock the team, move the page, count it in its job and tell who waits (unless its worker does), store the
/// document and what the site has sent, bill it. Jobs of one page have no webhook.
const FINISH: &str = sql!(
    "WITH held AS (SELECT id FROM team WHERE id = $3 AND NOT starved FOR NO KEY UPDATE), moved AS (UPDATE page SET ",
    done!("$5"),
    " FROM held WHERE page.id = $1 AND ",
    is_ours!("$2"),
    " AND page.replays = 0 AND page.team_id = held.id RETURNING page.job_id), counted AS (",
    COUNT_DONE,
    " FROM moved WHERE job.id = $4 AND job.id = moved.job_id \
     RETURNING job.id, job.status, job.completed, CASE WHEN NOT $16 THEN ",
    notify_done!(page "$1"),
    " END), stored AS (",
    INSERT_DOCUMENT,
    "SELECT id, completed, $1, $7, $8, $9, $17 FROM counted), came AS (",
    INSERT_CONTENT,
    "SELECT $13, $19, $20, $5, $21, $22 FROM counted WHERE $10 IS NOT NULL",
    KNOWN_CONTENT,
    " RETURNING 1), kept AS (",
    INSERT_VERSION,
    "SELECT $10, $3, $11, $12, $13, $18, $5, $23, $5 FROM counted WHERE (SELECT COUNT(*) FROM came) = 1",
    REPLACE_VERSION,
    "), entered AS (",
    LEDGER_ENTRY,
    "SELECT 'page:' || $1, $3, $14, $15, $6, $5 FROM counted WHERE $6 > 0",
    ENTERED_ONCE,
    " RETURNING amount), billed AS (",
    used_more!("entered.amount"),
    " FROM entered WHERE team.id = $3) SELECT status FROM counted"
);

/// A page with what its job says.
#[derive(sqlx::FromRow)]
struct ClaimedOf {
    #[sqlx(flatten)]
    page: Claimed,
    kind: String,
    api_key_id: Option<KeyId>,
    options: String,
    webhook: Option<String>,
}

/// See [`super::claim_next`].
pub async fn claim_next(
    db: &PostgresDb,
    worker: WorkerId,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<Option<(Claimed, JobSpec)>> {
    let claim = sqlx::query_as(CLAIM_NEXT).bind(worker).bind(now).bind(default_limit);
    // By a connection of the pool, which hears what comes after the row: a kept one would tell the next statement of it.
    let found: Option<ClaimedOf> = claim.fetch_optional(&db.pool).await?;
    let Some(of) = found else { return Ok(None) };
    let spec = jobs::read_spec((of.kind, of.api_key_id, of.options, of.webhook))?;
    Ok(Some((of.page, spec)))
}

/// See [`super::insert_claimed`].
pub async fn insert_claimed(
    db: &PostgresDb,
    scrape: &NewScrape<'_>,
    worker: WorkerId,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<bool> {
    let mut connection = db.kept.take(&db.pool).await?;
    let query = claimed_values!(INSERT_CLAIMED, scrape, worker, now, default_limit);
    let is_written = !query.fetch_all(&mut *connection).await?.is_empty();
    db.kept.keep(&db.pool, connection);
    Ok(is_written)
}

/// See [`super::finish`]. All of the answer is waited for: the row comes before the rest is done.
pub async fn finish(db: &PostgresDb, direct: &DirectEnd<'_>, now: Timestamp) -> StoreResult<Option<String>> {
    let mut connection = db.kept.take(&db.pool).await?;
    let written = end_values!(FINISH, direct, now).fetch_all(&mut *connection).await?.pop();
    db.kept.keep(&db.pool, connection);
    Ok(written.map(|row| row.0))
}
