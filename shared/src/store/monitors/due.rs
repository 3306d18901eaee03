//! Whose time has come. A monitor's next moment is a column, and whoever moves it on makes the check, in one transaction:
//! a worker that dies before the commit has done nothing, and one that dies after it has done all. A check is unique by
//! its monitor and moment besides.

use crate::clock::APART_MS;
use crate::domain::monitor::{CheckStatus, Progress};
use crate::ids::{CheckId, MonitorId};
use crate::on_pool;
use crate::time::Timestamp;

use super::checks::{self, NewCheck};
use super::turns::{Turns, teams_with};
use super::{MonitorRow, select_monitor};
use crate::domain::monitor::Cause;
use crate::on_db;
use crate::store::db::parts::parts;
use crate::store::{Db, StoreResult, Tx};

/// When a monitor is looked at again whose schedule this build cannot read, milliseconds.
const UNREADABLE_MS: i64 = 3_600_000;

/// No check is anybody's for longer than this, milliseconds: one that says so was claimed by a clock that was ahead.
pub const LONGEST_LEASE_MS: i64 = 300_000;
/// Monitors that are looked at again in one transaction.
const PART_ROWS: i64 = 200;

/// What there is to do: due monitors, and checks that somebody has to look after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    pub monitors: bool,
    pub checks: bool,
    /// When there is something to do next, as far as that is known now.
    pub next_at: Option<Timestamp>,
}

/// Whether there is anything to do, and when there will be. All that workers ask while nothing is due.
pub async fn look(db: &Db, now: Timestamp) -> StoreResult<Work> {
    const LOOK: &str = "SELECT (SELECT MIN(next_due_at) FROM monitor WHERE next_due_at IS NOT NULL), \
        (SELECT MIN(next_at) FROM monitor_check WHERE next_at IS NOT NULL)";
    let (monitor, check): (Option<Timestamp>, Option<Timestamp>) =
        on_pool!(db, |pool| sqlx::query_as(LOOK).fetch_one(pool).await?);
    let is_due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
    let next_at = monitor.into_iter().chain(check).min();
    Ok(Work { monitors: is_due(monitor), checks: is_due(check), next_at })
}

/// Makes the checks of up to `limit` monitors that are due, teams in turn, and moves each on to its next moment after
/// `now`: of moments that nobody saw, one is made up. Returns how many monitors were moved on.
pub async fn claim(tx: &mut Tx, now: Timestamp, limit: i64) -> StoreResult<usize> {
    const TEAMS: &str = teams_with!("monitor", "next_due_at");
    const DUE: &str = select_monitor!("WHERE team_id = $1 AND next_due_at <= $2 ORDER BY next_due_at LIMIT $3");
    let mut turns = Turns::begin(tx, TEAMS, now, limit).await?;
    let mut all: Vec<MonitorRow> = Vec::new();
    while let Some((team, share)) = turns.next() {
        let taken: Vec<&MonitorId> = all.iter().filter(|row| row.team_id == team).map(|row| &row.id).collect();
        // Those that this claim has taken in an earlier round are due still.
        let most = share + taken.len() as i64;
        let mut due: Vec<MonitorRow> = match tx {
            // The transaction has the lock of the whole file.
            Tx::Sqlite(tx) => sqlx::query_as(DUE).bind(team).bind(now).bind(most).fetch_all(&mut **tx).await?,
            // What another worker is just taking is left to it.
            Tx::Postgres(tx) => {
                const LOCKED: &str = sql!(DUE, " FOR NO KEY UPDATE SKIP LOCKED");
                sqlx::query_as(LOCKED).bind(team).bind(now).bind(most).fetch_all(&mut **tx).await?
            }
        };
        due.retain(|row| !taken.contains(&&row.id));
        turns.took(team, share, due.len());
        all.append(&mut due);
    }
    make(tx, &all, now).await?;
    Ok(all.len())
}

/// A monitor that is moved on.
struct Moved {
    id: MonitorId,
    due: Option<Timestamp>,
    next: Option<Timestamp>,
    /// The check that runs now.
    check: Option<CheckId>,
}

/// Makes the checks of these monitors, whose rows are locked, so that they are there to be moved on. Each goes on to a
/// moment after `now`, so that none of them is due again at once.
async fn make(tx: &mut Tx, due: &[MonitorRow], now: Timestamp) -> StoreResult<()> {
    let mut moved = Vec::with_capacity(due.len());
    let mut read = Vec::with_capacity(due.len());
    for monitor in due {
        let why = match (monitor.timing().clockwork(), monitor.spec()) {
            (Ok(clockwork), Ok(spec)) => {
                read.push((monitor, clockwork, Progress::all(&spec.targets), spec.webhook));
                continue;
            }
            (Err(problem), _) => problem,
            (_, Err(error)) => error.to_string(),
        };
        tracing::error!(monitor.id = %monitor.id, why, "a monitor cannot be read; it is tried again in an hour");
        moved.push(Moved {
            id: monitor.id,
            due: monitor.next_due_at,
            next: Some(now.plus_ms(UNREADABLE_MS)),
            check: None,
        });
    }
    let is_overlap = |monitor: &MonitorRow| monitor.current_check_id.is_some();
    let new: Vec<NewCheck<'_>> = read
        .iter()
        .map(|(monitor, _, targets, webhook)| NewCheck {
            id: CheckId::new(),
            monitor,
            status: if is_overlap(monitor) { CheckStatus::SkippedOverlap } else { CheckStatus::Queued },
            cause: Cause::Scheduled,
            scheduled_for: monitor.next_due_at,
            targets,
            webhook: webhook.as_ref(),
        })
        .collect();
    // A moment that has its check gets no other one.
    let made = checks::insert(tx, &new, now).await?;
    for ((monitor, clockwork, ..), check) in read.iter().zip(&new) {
        let runs = made.contains(&check.id) && !is_overlap(monitor);
        let (due, next) = (monitor.next_due_at, clockwork.next_after(now));
        moved.push(Moved { id: monitor.id, due, next, check: runs.then_some(check.id) });
    }
    move_on(tx, &moved, now).await
}

/// Moves monitors on.
async fn move_on(tx: &mut Tx, moved: &[Moved], now: Timestamp) -> StoreResult<()> {
    for part in parts(moved) {
        on_db!(&mut *tx, |conn| {
            let mut update = sqlx::QueryBuilder::new("WITH moved (id, due, next, checked) AS (VALUES ");
            for (n, monitor) in part.iter().enumerate() {
                update.push(if n == 0 { "(CAST(" } else { ", (CAST(" }).push_bind(monitor.id);
                update.push(" AS TEXT), CAST(").push_bind(monitor.due);
                update.push(" AS BIGINT), CAST(").push_bind(monitor.next);
                update.push(" AS BIGINT), CAST(").push_bind(monitor.check);
                update.push(" AS TEXT))");
            }
            update.push(
                ") UPDATE monitor SET next_due_at = moved.next, \
                 current_check_id = COALESCE(moved.checked, monitor.current_check_id), \
                 last_run_at = CASE WHEN moved.checked IS NULL THEN monitor.last_run_at ELSE ",
            );
            update.push_bind(now);
            update.push(" END FROM moved WHERE monitor.id = moved.id AND monitor.next_due_at = moved.due");
            update.build().execute(conn).await?.rows_affected()
        });
    }
    Ok(())
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
        let ahead = now.plus_ms(APART_MS);
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
