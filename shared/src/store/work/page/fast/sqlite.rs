//! The fast statements on SQLite: strings of them, in which each goes on only when the one before it changed a row.

use sqlx::FromRow as _;

use crate::fault::FaultPoint;
use crate::ids::WorkerId;
use crate::queue::next_wakeup;
use crate::store::accounts::credits::{ENTERED_ONCE, LEDGER_ENTRY, used_more};
use crate::store::db::signals::Signal;
use crate::store::db::writer::{BEGIN, COMMIT};
use crate::store::work::jobs::{self, JobSpec, SpecColumns, insert_job};
use crate::store::work::page::rows::Claimed;
use crate::store::work::page::rules::{
    CLAIMED_COLUMNS, INSERT_CONTENT, INSERT_DOCUMENT, INSERT_VERSION, IS_DUE_BY_ID, KNOWN_CONTENT, REPLACE_VERSION,
    TAKE, done, has_room, is_ours,
};
use crate::store::work::page::scrape::{NewScrape, scrape_values};
use crate::store::{SqliteDb, StoreResult};
use crate::time::Timestamp;

use super::values::{COUNT_DONE, DirectEnd, INSERT_PAGE_CLAIMED, claimed_values, end_values};

const CLAIM_NEXT: &str = sql!(
    BEGIN,
    "; UPDATE page SET ",
    TAKE,
    " WHERE id = ",
    next_wakeup!(sqlite "CAST(job AS TEXT) ->> 'page'"),
    " AND ",
    IS_DUE_BY_ID,
    " AND ",
    // A team that is removed has room for none.
    has_room!(
        "page.team_id",
        "(SELECT CASE WHEN removed_at IS NULL THEN concurrency ELSE 0 END FROM team WHERE team.id = page.team_id)",
        "$3"
    ),
    " RETURNING ",
    CLAIMED_COLUMNS,
    "; UPDATE job SET queued = queued - 1, last_served = $2 WHERE changes() = 1 AND id = (SELECT job_id FROM page \
     WHERE id = ",
    next_wakeup!(sqlite "CAST(job AS TEXT) ->> 'page'"),
    ") RETURNING kind, api_key_id, options, webhook; DELETE FROM Jobs WHERE changes() = 1 AND id = ",
    next_wakeup!(sqlite "id"),
    "; ",
    COMMIT
);

const INSERT_CLAIMED: &str = sql!(
    BEGIN,
    "; ",
    insert_job!(into),
    "SELECT ",
    insert_job!(values "0"),
    " FROM team WHERE id = $2 AND NOT starved AND removed_at IS NULL AND ",
    has_room!("$2", "concurrency", "$24"),
    "; ",
    INSERT_PAGE_CLAIMED,
    " WHERE changes() = 1; ",
    scrape_values!(into_shown),
    "SELECT ",
    scrape_values!(shown),
    " WHERE changes() = 1 RETURNING id; ",
    COMMIT
);

/// With `kept` what the site has sent is stored.
macro_rules! finish {
    ($($kept:ident)?) => {
        sql!(
            BEGIN,
            "; UPDATE page SET ",
            done!("$5"),
            " WHERE id = $1 AND ",
            is_ours!("$2"),
            " AND replays = 0 AND job_id = $4 AND team_id = $3 AND NOT (SELECT starved FROM team WHERE id = $3); ",
            COUNT_DONE,
            " WHERE id = $4 AND changes() = 1 RETURNING status; ",
            INSERT_DOCUMENT,
            "SELECT id, completed, $1, $7, $8, $9, $17 FROM job WHERE id = $4 AND changes() = 1; ",
            $(finish!(store $kept),)?
            LEDGER_ENTRY,
            "SELECT 'page:' || $1, $3, $14, $15, $6, $5 WHERE $6 > 0 AND changes() = 1",
            ENTERED_ONCE,
            "; ",
            used_more!("$6"),
            " WHERE id = $3 AND changes() = 1; ",
            COMMIT
        )
    };
    (store version) => {
        sql!(
            INSERT_CONTENT,
            "SELECT $13, $19, $20, $5, $21, $22 WHERE changes() = 1",
            KNOWN_CONTENT,
            "; ",
            INSERT_VERSION,
            "SELECT $10, $3, $11, $12, $13, $18, $5, $23, $5 WHERE changes() = 1",
            REPLACE_VERSION,
            "; "
        )
    };
}
const FINISH: &str = finish!();
const FINISH_AND_KEEP: &str = finish!(version);

/// See [`super::claim_next`].
pub async fn claim_next(
    db: &SqliteDb,
    worker: WorkerId,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<Option<(Claimed, JobSpec)>> {
    let mut turn = db.writer.turn().await?;
    let rows = sqlx::query(CLAIM_NEXT).bind(worker).bind(now).bind(default_limit).fetch_all(&mut *turn).await?;
    turn.end();
    let [page, spec] = &rows[..] else { return Ok(None) };
    let (page, spec) = (Claimed::from_row(page)?, SpecColumns::from_row(spec)?);
    Ok(Some((page, jobs::read_spec(spec)?)))
}

/// See [`super::insert_claimed`].
pub async fn insert_claimed(
    db: &SqliteDb,
    scrape: &NewScrape<'_>,
    worker: WorkerId,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<bool> {
    let mut turn = db.writer.turn().await?;
    let query = claimed_values!(INSERT_CLAIMED, scrape, worker, now, default_limit);
    let is_written = !query.fetch_all(&mut *turn).await?.is_empty();
    turn.end();
    Ok(is_written)
}

/// See [`super::finish`].
pub async fn finish(db: &SqliteDb, direct: &DirectEnd<'_>, now: Timestamp) -> StoreResult<Option<String>> {
    let mut turn = db.writer.turn().await?;
    db.faults.reach(FaultPoint::BeforeCommit)?;
    let sql = if direct.version().is_some() { FINISH_AND_KEEP } else { FINISH };
    let written = end_values!(sql, direct, now).fetch_all(&mut *turn).await?.pop();
    turn.end();
    if written.is_some() && !direct.end.page.dispatched {
        db.signals.send(Signal::End);
    }
    Ok(written.map(|row| row.0))
}
