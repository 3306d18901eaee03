//! What waits for a time that a clock has reckoned which was ahead and is set back: it would wait for as long as the clock was
//! wrong. Monitors see to theirs by themselves ([`crate::store::monitors::due::set_back`]).

use crate::clock::APART_MS;
use crate::domain::job::PageState;
use crate::domain::webhook::DeliveryState;
use crate::ids::JobId;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// Jobs that are looked at together.
const JOBS: i64 = 100;
/// Pages of a job in one transaction.
const PAGES: usize = 500;
/// Stands for the time by which a clock was ahead where nobody knows: nothing is further away than that.
const UNKNOWN: i64 = i64::MAX / 4;

/// Puts back by `by_ms`, by how much the clock was, what waits for a time that was reckoned ahead: as its own past shows, which
/// is still to come, or because it is further away than that. 0: it is not known by how much; what shows it is due now then.
/// Returns how much there was. Told twice, some of it comes too early.
pub async fn release(db: &Db, by_ms: i64, now: Timestamp) -> StoreResult<u64> {
    const TURNS: &str = "UPDATE turn SET next_at = CASE WHEN next_at - $3 > $1 THEN next_at - $3 ELSE $1 END \
        WHERE next_at > $2";
    const LINES: &str = "UPDATE turn_line SET free_at = CASE WHEN free_at - $3 > $1 THEN free_at - $3 ELSE $1 END \
        WHERE free_at > $2";
    const DELIVERIES: &str = sql!(
        "UPDATE webhook_delivery SET next_at = CASE WHEN next_at - $3 > $1 THEN next_at - $3 ELSE $1 END WHERE state = ",
        DeliveryState::Waiting.sql(),
        " AND next_at > $1 AND (created_at > $2 OR next_at - $3 > $1 OR EXISTS (SELECT 1 FROM webhook_attempt \
         WHERE webhook_attempt.delivery_id = webhook_delivery.id AND webhook_attempt.at > $2))"
    );
    const TASKS: &str = "UPDATE task SET due_at = CASE WHEN due_at - $3 > $1 THEN due_at - $3 ELSE $1 END \
        WHERE owner IS NULL AND due_at > $1 AND (created_at > $2 OR due_at - $3 > $1)";
    let ahead = now.plus_ms(APART_MS);
    let by = if by_ms > 0 { by_ms } else { UNKNOWN };
    let mut released = jobs(db, by, now, ahead).await?;
    // A turn has no past. The locks of one table at a time: whoever else writes has others, too.
    let turns = if by_ms > 0 { &[TURNS, LINES][..] } else { &[] };
    for sql in turns.iter().chain(&[DELIVERIES, TASKS]) {
        let mut tx = db.begin().await?;
        released += on_db!(&mut tx, |conn| {
            sqlx::query(*sql).bind(now).bind(ahead).bind(by).execute(conn).await?.rows_affected()
        });
        tx.commit().await?;
    }
    Ok(released)
}

/// Pages of every job that has some waiting, and the job's own time.
async fn jobs(db: &Db, by: i64, now: Timestamp, ahead: Timestamp) -> StoreResult<u64> {
    const PART: &str = "SELECT id FROM job WHERE queued > 0 AND id > $1 ORDER BY id LIMIT $2";
    let (mut released, mut last) = (0, String::new());
    loop {
        let part: Vec<(JobId,)> =
            on_pool!(db, |pool| sqlx::query_as(PART).bind(&last).bind(JOBS).fetch_all(pool).await?);
        let Some((end,)) = part.last() else { return Ok(released) };
        last = end.to_string();
        for (job,) in part {
            released += pages(db, job, by, now, ahead).await?;
        }
    }
}

async fn pages(db: &Db, job: JobId, by: i64, now: Timestamp, ahead: Timestamp) -> StoreResult<u64> {
    const WHICH: &str = sql!(
        "SELECT id FROM page WHERE job_id = $1 AND state = ",
        PageState::Queued.sql(),
        " AND run_at > $2 AND (queued_at > $3 OR started_at > $3 OR run_at - $4 > $2)"
    );
    const ANY: &str =
        sql!("SELECT EXISTS (", WHICH, ") OR EXISTS (SELECT 1 FROM job WHERE id = $1 AND last_served > $3)");
    const SET: &str = "UPDATE page SET run_at = CASE WHEN run_at - $4 > $2 THEN run_at - $4 ELSE $2 END WHERE id IN (";
    const PART: &str = sql!(WHICH, " AND idx > $5 ORDER BY idx LIMIT $6");
    const DUE: &str = sql!(SET, PART, ") RETURNING idx");
    // None that somebody else writes: no two transactions wait for each other.
    const FREE: &str = sql!(SET, PART, " FOR UPDATE SKIP LOCKED) RETURNING idx");
    const JOB: &str = "UPDATE job SET due_at = 0, last_served = CASE WHEN last_served > $2 THEN $2 ELSE last_served END \
        WHERE id = $1 AND (due_at > $2 OR last_served > $2)";
    let is_any: (bool,) =
        on_pool!(db, |pool| sqlx::query_as(ANY).bind(job).bind(now).bind(ahead).bind(by).fetch_one(pool).await?);
    if !is_any.0 {
        return Ok(0);
    }
    let (mut released, mut last) = (0, -1);
    loop {
        let mut tx = db.begin().await?;
        let sql = if matches!(tx, Tx::Sqlite(_)) { DUE } else { FREE };
        let part: Vec<(i64,)> = on_db!(&mut tx, |conn| {
            let query = sqlx::query_as(sql).bind(job).bind(now).bind(ahead).bind(by);
            query.bind(last).bind(PAGES as i64).fetch_all(conn).await?
        });
        on_db!(&mut tx, |conn| sqlx::query(JOB).bind(job).bind(now).execute(conn).await?.rows_affected());
        tx.commit().await?;
        released += part.len() as u64;
        last = part.iter().map(|page| page.0).max().unwrap_or(last);
        if part.len() < PAGES {
            return Ok(released);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::domain::job::JobKind;
    use crate::store::testing;

    #[tokio::test]
    async fn what_was_reckoned_ahead_is_put_back_and_nothing_else() {
        const HOUR: i64 = 3_600_000;
        for db in testing::databases().await {
            let team = testing::team(&db, "a").await;
            let now = Timestamp(1_800_000_000_000);
            let (job, pages) = testing::job(&db, team, JobKind::Batch, 4, None).await;
            // (run_at, queued_at): due in 5 s by right; reckoned ahead; booked for a turn that was; done ahead long ago.
            let times = [(5_000, 0), (HOUR + 5_000, HOUR), (HOUR + 7_000, 0), (-9, HOUR)];
            let mut tx = db.begin().await.unwrap();
            for (page, (run_at, queued_at)) in pages.iter().zip(times) {
                const SQL: &str = "UPDATE page SET run_at = $2, queued_at = $3 WHERE id = $1";
                let (run_at, queued_at) = (now.plus_ms(run_at), now.plus_ms(queued_at));
                on_db!(&mut tx, |conn| {
                    sqlx::query(SQL)
                        .bind(page)
                        .bind(run_at)
                        .bind(queued_at)
                        .execute(conn)
                        .await
                        .unwrap()
                        .rows_affected()
                });
            }
            const TURN: &str = "INSERT INTO turn (name, next_at, booked) VALUES ('x', $1, $1)";
            const JOB: &str = "UPDATE job SET due_at = $2, last_served = $2 WHERE id = $1";
            let ahead = now.plus_ms(HOUR + 3_000);
            on_db!(&mut tx, |conn| {
                sqlx::query(TURN).bind(ahead).execute(&mut *conn).await.unwrap();
                sqlx::query(JOB).bind(job).bind(ahead).execute(conn).await.unwrap().rows_affected()
            });
            tx.commit().await.unwrap();

            let times = || async {
                let sql = "SELECT run_at FROM page ORDER BY idx";
                let pages: Vec<(i64,)> = on_pool!(&db, |pool| sqlx::query_as(sql).fetch_all(pool).await.unwrap());
                let sql = "SELECT job.due_at, job.last_served, turn.next_at FROM job, turn";
                let rest: (i64, i64, i64) = on_pool!(&db, |pool| sqlx::query_as(sql).fetch_one(pool).await.unwrap());
                (pages.into_iter().map(|page| page.0 - now.0).collect::<Vec<_>>(), rest)
            };
            assert_eq!(release(&db, HOUR, now).await.unwrap(), 3);
            let expected = (vec![5_000, 5_000, 7_000, -9], (0, now.0, now.0 + 3_000));
            assert_eq!(times().await, expected);
            assert_eq!(
                release(&db, 0, now).await.unwrap(),
                1,
                "whose past is ahead is due now where nobody knows more"
            );
            assert_eq!(times().await, (vec![5_000, 0, 7_000, -9], expected.1));
        }
    }
}
