//! Monitors (wire 24): what is watched, its checks, and what they found.
//!
//! ```text
//! mod      what callers change and read of a monitor
//! due      whose time has come: one claim makes one check
//! checks   a check, claimed by one worker at a time
//! pages    what a check found, and the addresses that a target knows
//! turns    whose rows are taken next
//! removal  what has expired or was deleted
//! ```
//!
//! Rows of a monitor are locked in this order: team, monitor, check.

pub mod checks;
pub mod due;
pub mod pages;
pub mod removal;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::HashMap;

use crate::domain::monitor::schedule::{Clockwork, Timing};
use crate::domain::monitor::{CheckStatus, MonitorSpec, MonitorStatus, Progress, Summary};
use crate::ids::{CheckId, KeyId, MonitorId, TeamId};
use crate::store::accounts::team_lock;
use crate::store::db::parts::parts;
use crate::store::work::cancel;
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use checks::CheckRow;

/// A monitor as stored.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct MonitorRow {
    pub id: MonitorId,
    pub team_id: TeamId,
    pub api_key_id: Option<KeyId>,
    pub name: String,
    pub status: MonitorStatus,
    pub cron: String,
    pub timezone: String,
    pub spread_ms: i64,
    spec: String,
    pub retention_days: i64,
    pub next_due_at: Option<Timestamp>,
    pub last_run_at: Option<Timestamp>,
    pub current_check_id: Option<CheckId>,
    last_summary: Option<String>,
    /// Credits of one check, and checks in 30 days.
    pub estimated_credits: i64,
    pub runs_a_month: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl MonitorRow {
    /// What it is for.
    pub fn spec(&self) -> StoreResult<MonitorSpec> {
        Ok(serde_json::from_str(&self.spec)?)
    }

    /// Counts of the last check that ended.
    pub fn last_summary(&self) -> StoreResult<Option<Summary>> {
        Ok(self.last_summary.as_deref().map(serde_json::from_str).transpose()?)
    }

    /// When it looks.
    pub fn timing(&self) -> Timing {
        Timing { cron: self.cron.clone(), timezone: self.timezone.clone(), spread_ms: self.spread_ms }
    }
}

/// The column list of [`MonitorRow`], in a macro so that each statement stays one literal.
macro_rules! select_monitor {
    ($($rest:expr),+) => {
        sql!(
            "SELECT id, team_id, api_key_id, name, status, cron, timezone, spread_ms, spec, retention_days, next_due_at, \
             last_run_at, current_check_id, last_summary, estimated_credits, runs_a_month, created_at, updated_at \
             FROM monitor ",
            $($rest),+
        )
    };
}
use select_monitor;

/// A monitor as it is to be.
pub struct Settings<'a> {
    pub name: &'a str,
    pub status: MonitorStatus,
    pub timing: &'a Timing,
    pub spec: &'a MonitorSpec,
    pub retention_days: i64,
    /// When it is due next; `None` where it is paused.
    pub next_due_at: Option<Timestamp>,
    pub runs_a_month: i64,
}

impl Settings<'_> {
    /// When a monitor of this state is due after `now`, and how often in a month.
    pub fn due(clockwork: &Clockwork, status: MonitorStatus, now: Timestamp) -> (Option<Timestamp>, i64) {
        let next = clockwork.next_after(now).filter(|_| status == MonitorStatus::Active);
        (next, clockwork.runs_a_month(now))
    }
}

/// Makes a monitor.
pub async fn insert(
    tx: &mut Tx,
    id: MonitorId,
    team: TeamId,
    key: Option<KeyId>,
    new: &Settings<'_>,
    now: Timestamp,
) -> StoreResult<()> {
    const SQL: &str = "INSERT INTO monitor (id, team_id, api_key_id, name, status, cron, timezone, spread_ms, spec, \
        retention_days, next_due_at, estimated_credits, runs_a_month, created_at, updated_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14)";
    let spec = serde_json::to_string(new.spec)?;
    on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(id)
            .bind(team)
            .bind(key)
            .bind(new.name)
            .bind(new.status)
            .bind(&new.timing.cron)
            .bind(&new.timing.timezone)
            .bind(new.timing.spread_ms)
            .bind(spec)
            .bind(new.retention_days)
            .bind(new.next_due_at)
            .bind(new.spec.estimated_credits())
            .bind(new.runs_a_month)
            .bind(now)
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(())
}

/// Changes a monitor, whose row the caller has locked. Where checks are to stay for a shorter time than before, those that
/// have ended are shortened by [`removal::shorten`].
pub async fn update(tx: &mut Tx, id: MonitorId, to: &Settings<'_>, now: Timestamp) -> StoreResult<()> {
    const SQL: &str = "UPDATE monitor SET name = $2, status = $3, cron = $4, timezone = $5, spread_ms = $6, spec = $7, \
        shortens = shortens OR retention_days > $8, retention_days = $8, next_due_at = $9, estimated_credits = $10, \
        runs_a_month = $11, updated_at = $12 WHERE id = $1";
    let spec = serde_json::to_string(to.spec)?;
    on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(id)
            .bind(to.name)
            .bind(to.status)
            .bind(&to.timing.cron)
            .bind(&to.timing.timezone)
            .bind(to.timing.spread_ms)
            .bind(spec)
            .bind(to.retention_days)
            .bind(to.next_due_at)
            .bind(to.spec.estimated_credits())
            .bind(to.runs_a_month)
            .bind(now)
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(())
}

const VISIBLE: &str = sql!(" AND status <> ", MonitorStatus::Deleted.sql());

/// A team's monitor. `None`: it has none of this id.
pub async fn load(db: &Db, team: TeamId, id: MonitorId) -> StoreResult<Option<MonitorRow>> {
    const SQL: &str = select_monitor!("WHERE id = $1 AND team_id = $2", VISIBLE);
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).bind(team).fetch_optional(pool).await?))
}

/// The monitor, whoever owns it.
pub async fn load_any(db: &Db, id: MonitorId) -> StoreResult<Option<MonitorRow>> {
    const SQL: &str = select_monitor!("WHERE id = $1", VISIBLE);
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?))
}

/// The monitors of these checks, whoever owns them.
pub async fn of_checks(db: &Db, checks: &[CheckRow]) -> StoreResult<HashMap<MonitorId, MonitorRow>> {
    let mut found = HashMap::with_capacity(checks.len());
    for part in parts(checks) {
        let rows: Vec<MonitorRow> = on_pool!(db, |pool| {
            let mut select = sqlx::QueryBuilder::new(select_monitor!("WHERE id IN ("));
            let mut list = select.separated(", ");
            for check in part {
                list.push_bind(check.monitor_id);
            }
            select.push(sql!(")", VISIBLE));
            select.build_query_as().fetch_all(pool).await?
        });
        found.extend(rows.into_iter().map(|row| (row.id, row)));
    }
    Ok(found)
}

/// The same with its row locked until the transaction ends.
pub async fn lock(tx: &mut Tx, team: TeamId, id: MonitorId) -> StoreResult<Option<MonitorRow>> {
    const SQL: &str = select_monitor!("WHERE id = $1 AND team_id = $2", VISIBLE);
    Ok(match tx {
        Tx::Sqlite(tx) => sqlx::query_as(SQL).bind(id).bind(team).fetch_optional(&mut **tx).await?,
        Tx::Postgres(tx) => {
            const LOCKED: &str = sql!(SQL, " FOR NO KEY UPDATE");
            sqlx::query_as(LOCKED).bind(id).bind(team).fetch_optional(&mut **tx).await?
        }
    })
}

/// A team's monitors, newest first.
pub async fn list(db: &Db, team: TeamId, limit: i64, offset: i64) -> StoreResult<Vec<MonitorRow>> {
    const SQL: &str = select_monitor!("WHERE team_id = $1", VISIBLE, " ORDER BY id DESC LIMIT $2 OFFSET $3");
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(limit).bind(offset).fetch_all(pool).await?))
}

/// Monitors of all teams, newest first, for operators; `team`: of this one.
pub async fn list_all(db: &Db, team: Option<TeamId>, limit: i64) -> StoreResult<Vec<MonitorRow>> {
    const SQL: &str = select_monitor!("WHERE id > ''", VISIBLE, " ORDER BY id DESC LIMIT $1");
    match team {
        Some(team) => list(db, team, limit, 0).await,
        None => Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(limit).fetch_all(pool).await?)),
    }
}

/// Pauses a monitor or has it go on; `false`: there is none that is in another state.
pub async fn set_paused(tx: &mut Tx, row: &MonitorRow, paused: bool, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = "UPDATE monitor SET status = $2, next_due_at = $3, updated_at = $4 WHERE id = $1 AND status = $5";
    let (from, to) = match paused {
        true => (MonitorStatus::Active, MonitorStatus::Paused),
        false => (MonitorStatus::Paused, MonitorStatus::Active),
    };
    let clockwork = row.timing().clockwork().map_err(StoreError::Corrupt)?;
    let next = clockwork.next_after(now).filter(|_| !paused);
    let done = on_db!(tx, |conn| {
        sqlx::query(SQL).bind(row.id).bind(to).bind(next).bind(now).bind(from).execute(conn).await?.rows_affected()
    });
    Ok(done == 1)
}

/// Deletes a monitor for everybody, and ends the check that runs; its rows go later. `false`: there is none.
pub async fn delete(tx: &mut Tx, team: TeamId, id: MonitorId, now: Timestamp) -> StoreResult<bool> {
    const MONITOR: &str = sql!(
        "UPDATE monitor SET status = ",
        MonitorStatus::Deleted.sql(),
        ", next_due_at = NULL, current_check_id = NULL, updated_at = $2 WHERE id = $1"
    );
    const CHECK: &str = sql!(
        "UPDATE monitor_check SET status = ",
        CheckStatus::Failed.sql(),
        ", next_at = NULL, epoch = epoch + 1, finished_at = $2, updated_at = $2, error = 'The monitor was deleted.' \
         WHERE id = $1 AND next_at IS NOT NULL RETURNING targets"
    );
    team_lock::lock(tx, team).await?;
    let Some(row) = lock(tx, team, id).await? else { return Ok(false) };
    on_db!(tx, |conn| sqlx::query(MONITOR).bind(id).bind(now).execute(conn).await?.rows_affected());
    let Some(check) = row.current_check_id else { return Ok(true) };
    let targets: Option<(String,)> =
        on_db!(tx, |conn| sqlx::query_as(CHECK).bind(check).bind(now).fetch_optional(conn).await?);
    let Some((targets,)) = targets else { return Ok(true) };
    let targets: Vec<Progress> = serde_json::from_str(&targets)?;
    for job in targets.iter().filter(|target| !target.is_over).filter_map(|target| target.job) {
        cancel::job(tx, job, now).await?;
    }
    Ok(true)
}
