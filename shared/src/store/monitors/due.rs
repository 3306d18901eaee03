//! Whose time has come. A monitor's next moment is a column, and whoever moves it on makes the check, in one transaction:
//! a worker that dies before the commit has done nothing, and one that dies after it has done all. A check is unique by
//! its monitor and moment besides.

use crate::domain::monitor::{CheckStatus, Progress};
use crate::ids::{CheckId, MonitorId};
use crate::on_pool;
use crate::time::Timestamp;

use super::checks::{self, NewCheck};
use super::{MonitorRow, select_monitor};
use crate::domain::monitor::Cause;
use crate::on_db;
use crate::store::{Db, StoreResult, Tx};

/// When a monitor is looked at again whose schedule this build cannot read, milliseconds.
const UNREADABLE_MS: i64 = 3_600_000;

/// No check is anybody's for longer than this, milliseconds: one that says so was claimed by a clock that was ahead.
pub const LONGEST_LEASE_MS: i64 = 300_000;
/// Clocks of machines differ, and are put right, by less than this without a word, milliseconds.
pub const SET_BACK_MS: i64 = 10_000;
/// Monitors that are looked at again in one transaction.
const PART_ROWS: i64 = 200;

/// What there is to do: due monitors, and checks that somebody has to look after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    pub monitors: bool,
    pub checks: bool,
}

/// The statement of [`look`], for the test of its plan.
pub(super) const LOOK: &str = "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM monitor WHERE next_due_at <= $1 LIMIT 1) AS found), \
    (SELECT COUNT(*) FROM (SELECT 1 FROM monitor_check WHERE next_at <= $1 LIMIT 1) AS found)";

/// Whether there is anything to do. All that workers ask while nothing is due.
pub async fn look(db: &Db, now: Timestamp) -> StoreResult<Work> {
    let (monitors, checks): (i64, i64) = on_pool!(db, |pool| sqlx::query_as(LOOK).bind(now).fetch_one(pool).await?);
    Ok(Work { monitors: monitors > 0, checks: checks > 0 })
}

/// Makes the checks of up to `limit` monitors that are due, and moves each on to its next moment after `now`: of moments
/// that nobody saw, one is made up. Returns how many monitors were moved on.
pub async fn claim(tx: &mut Tx, now: Timestamp, limit: i64) -> StoreResult<usize> {
    const DUE: &str = select_monitor!("WHERE next_due_at <= $1 ORDER BY next_due_at LIMIT $2");
    let due: Vec<MonitorRow> = match tx {
        // The transaction has the lock of the whole file.
        Tx::Sqlite(tx) => sqlx::query_as(DUE).bind(now).bind(limit).fetch_all(&mut **tx).await?,
        // What another worker is just taking is left to it.
        Tx::Postgres(tx) => {
            const LOCKED: &str = sql!(DUE, " FOR NO KEY UPDATE SKIP LOCKED");
            sqlx::query_as(LOCKED).bind(now).bind(limit).fetch_all(&mut **tx).await?
        }
    };
    for monitor in &due {
        claim_one(tx, monitor, now).await?;
    }
    Ok(due.len())
}

async fn claim_one(tx: &mut Tx, monitor: &MonitorRow, now: Timestamp) -> StoreResult<()> {
    let Some(due) = monitor.next_due_at else { return Ok(()) };
    let (clockwork, spec) = match (monitor.timing().clockwork(), monitor.spec()) {
        (Ok(clockwork), Ok(spec)) => (clockwork, spec),
        (Err(problem), _) => return put_off(tx, monitor, due, &problem, now).await,
        (_, Err(error)) => return put_off(tx, monitor, due, &error.to_string(), now).await,
    };
    let id = CheckId::new();
    let is_overlap = monitor.current_check_id.is_some();
    let targets: Vec<Progress> =
        spec.targets.iter().map(|target| Progress::new(target.id.clone(), target.kind())).collect();
    let check = NewCheck {
        id,
        monitor,
        status: if is_overlap { CheckStatus::SkippedOverlap } else { CheckStatus::Queued },
        cause: Cause::Scheduled,
        scheduled_for: Some(due),
        targets: &targets,
        webhook: spec.webhook.as_ref(),
    };
    // The monitor's row is locked, so it is there to be moved on. A moment that has its check gets no other one.
    let is_made = checks::insert(tx, &check, now).await?;
    move_on(tx, monitor.id, due, clockwork.next_after(now), (is_made && !is_overlap).then_some((id, now))).await
}

/// Moves a monitor on.
async fn move_on(
    tx: &mut Tx,
    id: MonitorId,
    due: Timestamp,
    next: Option<Timestamp>,
    check: Option<(CheckId, Timestamp)>,
) -> StoreResult<()> {
    const SQL: &str = "UPDATE monitor SET next_due_at = $3, current_check_id = COALESCE($4, current_check_id), \
        last_run_at = COALESCE($5, last_run_at) WHERE id = $1 AND next_due_at = $2";
    let (check, at) = check.unzip();
    on_db!(tx, |conn| {
        sqlx::query(SQL).bind(id).bind(due).bind(next).bind(check).bind(at).execute(conn).await?.rows_affected()
    });
    Ok(())
}

async fn put_off(tx: &mut Tx, monitor: &MonitorRow, due: Timestamp, why: &str, now: Timestamp) -> StoreResult<()> {
    tracing::error!(monitor.id = %monitor.id, why, "a monitor cannot be read; it is tried again in an hour");
    move_on(tx, monitor.id, due, Some(now.plus_ms(UNREADABLE_MS)), None).await
}

/// Looks at all moments again, because the clock was set back: those that were reckoned while it was ahead lie too far
/// away. Returns how many monitors and checks are due earlier by it. Told again, it changes nothing.
///
/// `now` is asked when the rows are ours. By an earlier time, a moment that another worker has just made the check of would
/// seem to be still to come, and would get a second one.
pub async fn set_back(db: &Db, now: impl Fn() -> Timestamp) -> StoreResult<u64> {
    const PART: &str = select_monitor!("WHERE next_due_at > $1 AND id > $2 ORDER BY id LIMIT $3");
    const EARLIER: &str = "UPDATE monitor SET next_due_at = $3, last_run_at = CASE WHEN last_run_at > $4 THEN $4 \
        ELSE last_run_at END WHERE id = $1 AND next_due_at = $2";
    // That moment is still to come, and has a check of its own then.
    const UNBOUND: &str = "UPDATE monitor_check SET scheduled_for = NULL WHERE monitor_id = $1 AND scheduled_for > $2";
    const CHECKS: &str = "UPDATE monitor_check SET next_at = $1 WHERE next_at > $2";
    let begun = now();
    let mut moved = 0;
    let mut last = String::new();
    loop {
        let mut tx = db.begin().await?;
        let part: Vec<MonitorRow> = match &mut tx {
            Tx::Sqlite(tx) => sqlx::query_as(PART).bind(begun).bind(&last).bind(PART_ROWS).fetch_all(&mut **tx).await?,
            Tx::Postgres(tx) => {
                const LOCKED: &str = sql!(PART, " FOR NO KEY UPDATE");
                sqlx::query_as(LOCKED).bind(begun).bind(&last).bind(PART_ROWS).fetch_all(&mut **tx).await?
            }
        };
        let Some(end) = part.last() else { break };
        last = end.id.to_string();
        let now = now();
        // Whoever has reckoned by a clock that is ahead by less has not reckoned wrongly.
        let ahead = now.plus_ms(SET_BACK_MS);
        for monitor in &part {
            let Ok(clockwork) = monitor.timing().clockwork() else { continue };
            let is_far = |due: &Timestamp| clockwork.next_after(ahead).is_some_and(|next| next < *due);
            let Some(due) = monitor.next_due_at.filter(is_far) else { continue };
            let next = clockwork.next_after(now);
            moved += on_db!(&mut tx, |conn| {
                let done =
                    sqlx::query(EARLIER).bind(monitor.id).bind(due).bind(next).bind(now).execute(&mut *conn).await?;
                sqlx::query(UNBOUND).bind(monitor.id).bind(ahead).execute(conn).await?;
                done.rows_affected()
            });
        }
        tx.commit().await?;
    }
    let mut tx = db.begin().await?;
    let now = now();
    moved += on_db!(&mut tx, |conn| {
        sqlx::query(CHECKS).bind(now).bind(now.plus_ms(LONGEST_LEASE_MS)).execute(conn).await?.rows_affected()
    });
    tx.commit().await?;
    Ok(moved)
}
