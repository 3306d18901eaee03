//! What nobody needs any more: checks past their retention, which may have been lowered since they ended; deleted monitors;
//! addresses that nobody has met for long, with the versions of their pages. In slices, each a transaction of its own.

use crate::clock::Stopwatch;
use crate::domain::monitor::MonitorStatus;
use crate::ids::{CheckId, MonitorId, TeamId};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::checks::DAY_MS;
use crate::store::contents::snapshots::KEPT_MS;
use crate::store::db::slices::Slices;
use crate::store::{Db, StoreResult, Tx};

/// Checks that are removed together.
const CHECKS: i64 = 500;
/// Monitors that were deleted, or whose retention was lowered, in one round.
const MONITORS: i64 = 20;
/// No id comes after it.
const LAST_ID: &str = "g";

/// Removes what is due. Returns how many checks are gone.
pub async fn remove(db: &Db, slices: &mut Slices, now: Timestamp) -> StoreResult<u64> {
    const OLD: &str =
        "SELECT id FROM monitor_check WHERE expires_at <= $1 AND next_at IS NULL ORDER BY expires_at LIMIT $2";
    shorten(db, slices).await?;
    let mut gone = 0;
    loop {
        let due: Vec<(CheckId,)> =
            on_pool!(db, |pool| sqlx::query_as(OLD).bind(now).bind(CHECKS).fetch_all(pool).await?);
        let checks: Vec<CheckId> = due.into_iter().map(|row| row.0).collect();
        gone += checks.len() as u64;
        remove_checks(db, slices, &checks).await?;
        if (checks.len() as i64) < CHECKS {
            break;
        }
    }
    remove_deleted(db, slices).await?;
    Ok(gone)
}

/// Shortens the stay of checks that had ended before their monitor's retention was lowered.
async fn shorten(db: &Db, slices: &mut Slices) -> StoreResult<()> {
    const LOWERED: &str = "SELECT id, retention_days FROM monitor WHERE shortens LIMIT $1";
    const WINDOW: &str = "SELECT id FROM monitor_check WHERE monitor_id = $1 AND id > $2 ORDER BY id LIMIT 1 OFFSET $3";
    const SHORTEN: &str = "UPDATE monitor_check SET expires_at = finished_at + $4 WHERE monitor_id = $1 AND id > $2 \
        AND id <= $3 AND next_at IS NULL AND expires_at > finished_at + $4";
    // One that runs has the retention of the moment when it ends.
    const DONE: &str = "UPDATE monitor SET shortens = FALSE WHERE id = $1 AND retention_days = $2";
    let lowered: Vec<(MonitorId, i64)> =
        on_pool!(db, |pool| sqlx::query_as(LOWERED).bind(MONITORS).fetch_all(pool).await?);
    for (monitor, days) in lowered {
        let (mut from, mut is_last) = (String::new(), false);
        while !is_last {
            let rows = slices.rows();
            let end: Option<(CheckId,)> = on_pool!(db, |pool| {
                sqlx::query_as(WINDOW).bind(monitor).bind(&from).bind(rows - 1).fetch_optional(pool).await?
            });
            is_last = end.is_none();
            let to = end.map_or_else(|| LAST_ID.to_owned(), |(end,)| end.to_string());
            let mut tx = db.begin_relaxed().await?;
            let began = Stopwatch::start();
            on_db!(&mut tx, |conn| {
                let shorten = sqlx::query(SHORTEN).bind(monitor).bind(&from).bind(&to).bind(days * DAY_MS);
                shorten.execute(&mut *conn).await?;
                match is_last {
                    true => sqlx::query(DONE).bind(monitor).bind(days).execute(conn).await?.rows_affected(),
                    false => 0,
                }
            });
            tx.commit().await?;
            slices.pause(began).await;
            from = to;
        }
    }
    Ok(())
}

/// Forgets addresses that no check has met for so long, with the versions of their pages. What a monitor's last two checks
/// have met stays, however seldom it looks or how long it is paused: the next check compares with it.
///
/// It goes from the oldest upwards in windows of so many rows, so that what stays is passed once and no transaction passes
/// much of it.
pub async fn forget(db: &Db, slices: &mut Slices, now: Timestamp) -> StoreResult<()> {
    struct Aged {
        /// The time of the last row of a window, if there are so many.
        window: &'static str,
        delete: &'static str,
    }
    const ADDRESSES: Aged = Aged {
        window: "SELECT seen_at FROM monitor_url WHERE seen_at >= $1 AND seen_at < $2 ORDER BY seen_at LIMIT 1 OFFSET $3",
        delete: "DELETE FROM monitor_url WHERE seen_at >= $1 AND seen_at < $2 AND NOT EXISTS (SELECT 1 FROM monitor m \
            WHERE m.id = monitor_url.monitor_id AND (m.looked_before IS NULL OR m.looked_before <= monitor_url.seen_at))",
    };
    const VERSIONS: Aged = Aged {
        window: "SELECT scraped_at FROM page_snapshot WHERE scraped_at >= $1 AND scraped_at < $2 ORDER BY scraped_at \
            LIMIT 1 OFFSET $3",
        delete: "DELETE FROM page_snapshot WHERE scraped_at >= $1 AND scraped_at < $2 AND NOT EXISTS (SELECT 1 \
            FROM monitor m WHERE m.id = page_snapshot.monitor_id \
            AND (m.looked_before IS NULL OR m.looked_before <= page_snapshot.scraped_at))",
    };
    let end = now.plus_ms(-KEPT_MS);
    for Aged { window, delete } in [ADDRESSES, VERSIONS] {
        let mut from = Timestamp(i64::MIN);
        while from < end {
            let rows = slices.rows();
            let last: Option<(Timestamp,)> = on_pool!(db, |pool| {
                sqlx::query_as(window).bind(from).bind(end).bind(rows - 1).fetch_optional(pool).await?
            });
            // Rows of one moment were written in one transaction, and go together.
            let to = last.map_or(end, |(last,)| last.plus_ms(1));
            let mut tx = db.begin_relaxed().await?;
            let began = Stopwatch::start();
            on_db!(&mut tx, |conn| sqlx::query(delete).bind(from).bind(to).execute(conn).await?.rows_affected());
            tx.commit().await?;
            slices.pause(began).await;
            from = to;
        }
    }
    Ok(())
}

/// Rows that are removed.
#[derive(Clone, Copy)]
enum Rows<'a> {
    /// Those of a table, with its key, whose column names one of these checks.
    OfChecks { table: &'static str, key: &'static str, column: &'static str, checks: &'a [CheckId] },
    /// By a statement that takes a monitor and a limit.
    OfMonitor(&'static str, MonitorId),
}

/// Removes up to so many of these rows.
async fn remove_some(tx: &mut Tx, rows: Rows<'_>, limit: i64) -> StoreResult<u64> {
    Ok(on_db!(tx, |conn| match rows {
        Rows::OfChecks { table, key, column, checks } => {
            let mut delete = sqlx::QueryBuilder::new("DELETE FROM ");
            delete.push(table).push(" WHERE (").push(key).push(") IN (SELECT ").push(key).push(" FROM ").push(table);
            delete.push(" WHERE ").push(column).push(" IN (");
            let mut list = delete.separated(", ");
            for check in checks {
                list.push_bind(*check);
            }
            delete.push(") LIMIT ").push_bind(limit).push(")");
            delete.build().persistent(false).execute(conn).await?.rows_affected()
        }
        Rows::OfMonitor(sql, monitor) => {
            sqlx::query(sql).bind(monitor).bind(limit).execute(conn).await?.rows_affected()
        }
    }))
}

/// The same until nothing of them is left.
async fn remove_all(db: &Db, slices: &mut Slices, rows: Rows<'_>) -> StoreResult<()> {
    loop {
        let limit = slices.rows();
        let mut tx = db.begin_relaxed().await?;
        let began = Stopwatch::start();
        let removed = remove_some(&mut tx, rows, limit).await?;
        tx.commit().await?;
        if removed > 0 {
            slices.pause(began).await;
        }
        if removed < limit.unsigned_abs() {
            return Ok(());
        }
    }
}

/// Removes checks with all that is theirs.
async fn remove_checks(db: &Db, slices: &mut Slices, checks: &[CheckId]) -> StoreResult<()> {
    // Deliveries hold the check where others have their job.
    const PARTS: [(&str, &str, &str); 4] = [
        ("monitor_page", "id", "check_id"),
        ("webhook_delivery", "id", "job_id"),
        ("webhook_attempt", "delivery_id, attempt", "job_id"),
        ("monitor_check", "id", "id"),
    ];
    if checks.is_empty() {
        return Ok(());
    }
    for (table, key, column) in PARTS {
        remove_all(db, slices, Rows::OfChecks { table, key, column, checks }).await?;
    }
    Ok(())
}

/// Monitors that were deleted, with everything that they had.
async fn remove_deleted(db: &Db, slices: &mut Slices) -> StoreResult<()> {
    const DELETED: &str = sql!("SELECT id FROM monitor WHERE status = ", MonitorStatus::Deleted.sql(), " LIMIT $1");
    let deleted: Vec<(MonitorId,)> =
        on_pool!(db, |pool| sqlx::query_as(DELETED).bind(MONITORS).fetch_all(pool).await?);
    for (monitor,) in deleted {
        remove_monitor(db, slices, monitor).await?;
    }
    Ok(())
}

/// The same of all that a team has deleted. Returns how many.
pub async fn remove_of_team(db: &Db, slices: &mut Slices, team: TeamId) -> StoreResult<u64> {
    const DELETED: &str =
        sql!("SELECT id FROM monitor WHERE team_id = $1 AND status = ", MonitorStatus::Deleted.sql(), " LIMIT $2");
    let mut gone = 0;
    loop {
        let deleted: Vec<(MonitorId,)> =
            on_pool!(db, |pool| sqlx::query_as(DELETED).bind(team).bind(MONITORS).fetch_all(pool).await?);
        if deleted.is_empty() {
            return Ok(gone);
        }
        for (monitor,) in deleted {
            remove_monitor(db, slices, monitor).await?;
            gone += 1;
        }
    }
}

async fn remove_monitor(db: &Db, slices: &mut Slices, monitor: MonitorId) -> StoreResult<()> {
    const CHECKS_OF: &str = "SELECT id FROM monitor_check WHERE monitor_id = $1 LIMIT $2";
    const ADDRESSES: &str = "DELETE FROM monitor_url WHERE (monitor_id, target_id, key) IN \
        (SELECT monitor_id, target_id, key FROM monitor_url WHERE monitor_id = $1 LIMIT $2)";
    const SNAPSHOTS: &str = "DELETE FROM page_snapshot WHERE (team_id, key) IN \
        (SELECT team_id, key FROM page_snapshot WHERE monitor_id = $1 LIMIT $2)";
    const MONITOR: &str = "DELETE FROM monitor WHERE id = $1";
    loop {
        let found: Vec<(CheckId,)> =
            on_pool!(db, |pool| sqlx::query_as(CHECKS_OF).bind(monitor).bind(CHECKS).fetch_all(pool).await?);
        if found.is_empty() {
            break;
        }
        let checks: Vec<CheckId> = found.into_iter().map(|row| row.0).collect();
        remove_checks(db, slices, &checks).await?;
    }
    for sql in [ADDRESSES, SNAPSHOTS] {
        remove_all(db, slices, Rows::OfMonitor(sql, monitor)).await?;
    }
    let mut tx = db.begin_relaxed().await?;
    on_db!(&mut tx, |conn| sqlx::query(MONITOR).bind(monitor).execute(conn).await?.rows_affected());
    tx.commit().await
}
