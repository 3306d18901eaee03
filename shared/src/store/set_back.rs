//! What waits for a time that a clock has reckoned which was ahead and is set back: it would wait for as long as the clock was
//! wrong. Monitors see to theirs by themselves ([`super::monitors::due::set_back`]).

use crate::clock::APART_MS;
use crate::domain::job::PageState;
use crate::domain::webhook::DeliveryState;
use crate::ids::JobId;
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::{Db, StoreResult, Tx};

/// Jobs that are looked at together.
const JOBS: i64 = 100;

/// Makes due what waits by a time that was reckoned ahead, which its own past shows: it was queued, begun or tried at a time
/// that is still to come. Of what has no past the time is put back by `by_ms`, by how much the clock was; 0: that is not
/// known. Returns how much there was. Told again, it changes little: what had its time put back twice comes too early.
pub async fn release(db: &Db, by_ms: i64, now: Timestamp) -> StoreResult<u64> {
    const TURNS: &str = "UPDATE turn SET next_at = CASE WHEN next_at - $2 > $1 THEN next_at - $2 ELSE $1 END \
        WHERE next_at > $1";
    const LINES: &str = "UPDATE turn_line SET free_at = CASE WHEN free_at - $2 > $1 THEN free_at - $2 ELSE $1 END \
        WHERE free_at > $1";
    const DELIVERIES: &str = sql!(
        "UPDATE webhook_delivery SET next_at = $1 WHERE state = ",
        DeliveryState::Waiting.sql(),
        " AND next_at > $1 AND (created_at > $2 OR EXISTS (SELECT 1 FROM webhook_attempt \
         WHERE webhook_attempt.delivery_id = webhook_delivery.id AND webhook_attempt.at > $2))"
    );
    const TASKS: &str = "UPDATE task SET due_at = $1 WHERE owner IS NULL AND due_at > $1 AND (created_at > $2 OR $3)";
    let ahead = now.plus_ms(APART_MS);
    let mut released = jobs(db, now, ahead).await?;
    // The locks of one table at a time: whoever else writes has others, too.
    for (sql, is_shifted) in [(TURNS, true), (LINES, true), (DELIVERIES, false), (TASKS, false)] {
        if is_shifted && by_ms <= 0 {
            continue;
        }
        let mut tx = db.begin().await?;
        released += on_db!(&mut tx, |conn| {
            let query = sqlx::query(sql).bind(now);
            let query = if is_shifted { query.bind(by_ms) } else { query.bind(ahead) };
            let query = if sql == TASKS { query.bind(by_ms > 0) } else { query };
            query.execute(conn).await?.rows_affected()
        });
        tx.commit().await?;
    }
    Ok(released)
}

/// Pages of every job that has some waiting, and the job's own time.
async fn jobs(db: &Db, now: Timestamp, ahead: Timestamp) -> StoreResult<u64> {
    const PART: &str = "SELECT id FROM job WHERE queued > 0 AND id > $1 ORDER BY id LIMIT $2";
    let (mut released, mut last) = (0, String::new());
    loop {
        let part: Vec<(JobId,)> =
            on_pool!(db, |pool| sqlx::query_as(PART).bind(&last).bind(JOBS).fetch_all(pool).await?);
        let Some((end,)) = part.last() else { return Ok(released) };
        last = end.to_string();
        for (job,) in part {
            released += pages(db, job, now, ahead).await?;
        }
    }
}

async fn pages(db: &Db, job: JobId, now: Timestamp, ahead: Timestamp) -> StoreResult<u64> {
    const WHICH: &str = sql!(
        "SELECT id FROM page WHERE job_id = $1 AND state = ",
        PageState::Queued.sql(),
        " AND run_at > $2 AND (queued_at > $3 OR started_at > $3)"
    );
    const DUE: &str = sql!("UPDATE page SET run_at = $2 WHERE id IN (", WHICH, ")");
    // In the order of their keys, and none that somebody else writes: no two transactions wait for each other.
    const FREE: &str = sql!("UPDATE page SET run_at = $2 WHERE id IN (", WHICH, " ORDER BY id FOR UPDATE SKIP LOCKED)");
    const ANY: &str =
        sql!("SELECT EXISTS (", WHICH, ") OR EXISTS (SELECT 1 FROM job WHERE id = $1 AND last_served > $3)");
    const JOB: &str = "UPDATE job SET due_at = 0, last_served = CASE WHEN last_served > $2 THEN $2 ELSE last_served END \
        WHERE id = $1 AND (due_at > $2 OR last_served > $2)";
    let is_any: (bool,) =
        on_pool!(db, |pool| sqlx::query_as(ANY).bind(job).bind(now).bind(ahead).fetch_one(pool).await?);
    if !is_any.0 {
        return Ok(0);
    }
    let mut tx = db.begin().await?;
    let released = match &mut tx {
        Tx::Sqlite(tx) => sqlx::query(DUE).bind(job).bind(now).bind(ahead).execute(&mut **tx).await?.rows_affected(),
        Tx::Postgres(tx) => sqlx::query(FREE).bind(job).bind(now).bind(ahead).execute(&mut **tx).await?.rows_affected(),
    };
    on_db!(&mut tx, |conn| sqlx::query(JOB).bind(job).bind(now).execute(conn).await?.rows_affected());
    tx.commit().await?;
    Ok(released)
}
