//! Checks: made by the schedule or by a caller, then carried on by one worker at a time until they end. Every write of a
//! worker is fenced by the check's epoch, which counts claims.

use std::collections::HashSet;

use crate::domain::job::WebhookEvent;
use crate::domain::monitor::{Billing, Cause, CheckMove, CheckStatus, MonitorStatus, Progress, Summary};
use crate::domain::webhook::WebhookSpec;
use crate::ids::{CheckId, JobId, MonitorId, PageId, TeamId};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::MonitorRow;
use crate::store::{Db, StoreResult, Tx, webhooks};

const DAY_MS: i64 = 86_400_000;

/// A check to be written.
pub(super) struct NewCheck<'a> {
    pub id: CheckId,
    pub monitor: &'a MonitorRow,
    /// `Queued`, or what it is skipped for.
    pub status: CheckStatus,
    pub cause: Cause,
    pub scheduled_for: Option<Timestamp>,
    pub targets: &'a [Progress],
    pub webhook: Option<&'a WebhookSpec>,
}

/// Writes a check. `false`: there is one of the same moment, which stays.
pub(super) async fn insert(tx: &mut Tx, check: &NewCheck<'_>, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = "INSERT INTO monitor_check (id, monitor_id, team_id, status, cause, scheduled_for, finished_at, \
        estimated_credits, billing, targets, webhook, next_at, created_at, updated_at, expires_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14) \
        ON CONFLICT (monitor_id, scheduled_for) DO NOTHING";
    let is_open = check.status == CheckStatus::Queued;
    let targets = serde_json::to_string(check.targets)?;
    let webhook = check.webhook.map(serde_json::to_string).transpose()?;
    let done = on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(check.id)
            .bind(check.monitor.id)
            .bind(check.monitor.team_id)
            .bind(check.status)
            .bind(check.cause)
            .bind(check.scheduled_for)
            .bind((!is_open).then_some(now))
            .bind(check.monitor.estimated_credits)
            .bind(Billing::NotApplicable)
            .bind(targets)
            .bind(webhook)
            .bind(is_open.then_some(now))
            .bind(now)
            .bind(now.plus_ms(check.monitor.retention_days * DAY_MS))
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(done == 1)
}

/// Makes a check that somebody asks for. `None`: one runs. The caller has locked the monitor.
pub async fn run_now(tx: &mut Tx, monitor: &MonitorRow, now: Timestamp) -> StoreResult<Option<CheckId>> {
    const SQL: &str =
        "UPDATE monitor SET current_check_id = $2, last_run_at = $3 WHERE id = $1 AND current_check_id IS NULL";
    let id = CheckId::new();
    let done = on_db!(tx, |conn| {
        sqlx::query(SQL).bind(monitor.id).bind(id).bind(now).execute(conn).await?.rows_affected()
    });
    if done == 0 {
        return Ok(None);
    }
    let spec = monitor.spec()?;
    let targets: Vec<Progress> =
        spec.targets.iter().map(|target| Progress::new(target.id.clone(), target.kind())).collect();
    let check = NewCheck {
        id,
        monitor,
        status: CheckStatus::Queued,
        cause: Cause::Manual,
        scheduled_for: None,
        targets: &targets,
        webhook: spec.webhook.as_ref(),
    };
    insert(tx, &check, now).await?;
    Ok(Some(id))
}

/// A check as stored.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct CheckRow {
    pub id: CheckId,
    pub monitor_id: MonitorId,
    pub team_id: TeamId,
    pub status: CheckStatus,
    pub cause: Cause,
    pub scheduled_for: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub estimated_credits: i64,
    pub actual_credits: i64,
    pub billing: Billing,
    same_pages: i64,
    changed_pages: i64,
    new_pages: i64,
    removed_pages: i64,
    error_pages: i64,
    targets: String,
    webhook: Option<String>,
    pub error: Option<String>,
    /// Counts claims.
    pub epoch: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl CheckRow {
    /// Its pages by what became of them.
    pub const fn summary(&self) -> Summary {
        Summary {
            same: self.same_pages,
            changed: self.changed_pages,
            new: self.new_pages,
            removed: self.removed_pages,
            error: self.error_pages,
        }
    }

    /// How far its targets are.
    pub fn targets(&self) -> StoreResult<Vec<Progress>> {
        Ok(serde_json::from_str(&self.targets)?)
    }

    /// Who is told.
    pub fn webhook(&self) -> StoreResult<Option<WebhookSpec>> {
        Ok(self.webhook.as_deref().map(serde_json::from_str).transpose()?)
    }
}

/// The columns of [`CheckRow`].
macro_rules! check_columns {
    () => {
        "id, monitor_id, team_id, status, cause, scheduled_for, started_at, finished_at, estimated_credits, actual_credits, \
         billing, same_pages, changed_pages, new_pages, removed_pages, error_pages, targets, webhook, error, epoch, \
         created_at, updated_at"
    };
}

/// A check of a monitor.
pub async fn load(db: &Db, monitor: MonitorId, id: CheckId) -> StoreResult<Option<CheckRow>> {
    const SQL: &str = concat!("SELECT ", check_columns!(), " FROM monitor_check WHERE id = $1 AND monitor_id = $2");
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).bind(monitor).fetch_optional(pool).await?))
}

/// The check, whatever its monitor is.
pub async fn load_any(db: &Db, id: CheckId) -> StoreResult<Option<CheckRow>> {
    const SQL: &str = concat!("SELECT ", check_columns!(), " FROM monitor_check WHERE id = $1");
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?))
}

/// The checks of a monitor, newest first; `status`: those of this state.
pub async fn list(
    db: &Db,
    monitor: MonitorId,
    status: Option<CheckStatus>,
    limit: i64,
    offset: i64,
) -> StoreResult<Vec<CheckRow>> {
    const SQL: &str = concat!(
        "SELECT ",
        check_columns!(),
        " FROM monitor_check WHERE monitor_id = $1 AND ($2 IS NULL OR status = $2) ORDER BY id DESC LIMIT $3 OFFSET $4"
    );
    Ok(on_pool!(db, |pool| {
        sqlx::query_as(SQL)
            .bind(monitor)
            .bind(status.map(CheckStatus::as_str))
            .bind(limit)
            .bind(offset)
            .fetch_all(pool)
            .await?
    }))
}

/// Takes up to `limit` checks that somebody has to look after; they are ours until `lease`.
pub async fn claim(tx: &mut Tx, now: Timestamp, lease: Timestamp, limit: i64) -> StoreResult<Vec<CheckRow>> {
    macro_rules! claim {
        ($lock:literal) => {
            concat!(
                "UPDATE monitor_check SET epoch = epoch + 1, next_at = $2 WHERE id IN (SELECT id FROM monitor_check \
                 WHERE next_at <= $1 ORDER BY next_at LIMIT $3",
                $lock,
                ") AND next_at <= $1 RETURNING ",
                check_columns!()
            )
        };
    }
    let sql = match tx {
        Tx::Sqlite(_) => claim!(""),
        Tx::Postgres(_) => claim!(" FOR NO KEY UPDATE SKIP LOCKED"),
    };
    Ok(on_db!(tx, |conn| sqlx::query_as(sql).bind(now).bind(lease).bind(limit).fetch_all(conn).await?))
}

/// What a worker writes of a check that goes on.
pub struct Step<'a> {
    pub targets: &'a [Progress],
    pub summary: Summary,
    /// When it is to be looked after again.
    pub next_at: Timestamp,
}

/// Writes how far a check is. `false`: somebody else has it by now, or it was ended; then nothing of this transaction
/// may be committed.
pub async fn save(tx: &mut Tx, check: &CheckRow, step: &Step<'_>, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = "UPDATE monitor_check SET targets = $3, same_pages = $4, changed_pages = $5, new_pages = $6, \
        removed_pages = $7, error_pages = $8, next_at = $9, updated_at = $10 \
        WHERE id = $1 AND epoch = $2 AND next_at IS NOT NULL";
    let targets = serde_json::to_string(step.targets)?;
    let done = on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(check.id)
            .bind(check.epoch)
            .bind(targets)
            .bind(step.summary.same)
            .bind(step.summary.changed)
            .bind(step.summary.new)
            .bind(step.summary.removed)
            .bind(step.summary.error)
            .bind(step.next_at)
            .bind(now)
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(done == 1)
}

/// Puts off a check that cannot go on now.
pub async fn put_off(tx: &mut Tx, check: &CheckRow, until: Timestamp) -> StoreResult<()> {
    const SQL: &str = "UPDATE monitor_check SET next_at = $3 WHERE id = $1 AND epoch = $2 AND next_at IS NOT NULL";
    on_db!(tx, |conn| sqlx::query(SQL)
        .bind(check.id)
        .bind(check.epoch)
        .bind(until)
        .execute(conn)
        .await?
        .rows_affected());
    Ok(())
}

/// Writes that a check runs. `false`: as for [`save`].
pub async fn start(
    tx: &mut Tx,
    check: &CheckRow,
    targets: &[Progress],
    billing: Billing,
    next_at: Timestamp,
    now: Timestamp,
) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "UPDATE monitor_check SET status = ",
        CheckMove::Start.to().sql(),
        ", targets = $3, billing = $4, started_at = $5, next_at = $6, updated_at = $5 WHERE id = $1 AND epoch = $2 \
         AND next_at IS NOT NULL AND status = ",
        CheckMove::Start.from().sql()
    );
    let targets = serde_json::to_string(targets)?;
    let done = on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(check.id)
            .bind(check.epoch)
            .bind(targets)
            .bind(billing)
            .bind(now)
            .bind(next_at)
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(done == 1)
}

/// How a check ends.
pub struct End<'a> {
    pub by: CheckMove,
    pub targets: &'a [Progress],
    pub summary: Summary,
    pub credits: i64,
    pub billing: Billing,
    pub error: Option<&'a str>,
}

/// Ends a check, and frees its monitor for the next. `false`: as for [`save`].
pub async fn finish(tx: &mut Tx, check: &CheckRow, end: &End<'_>, now: Timestamp) -> StoreResult<bool> {
    // The monitor's row comes first, as everywhere.
    const FREE: &str = "UPDATE monitor SET current_check_id = NULL, last_summary = COALESCE($3, last_summary), \
        looked_before = CASE WHEN $4 IS NULL THEN looked_before ELSE looked_at END, looked_at = COALESCE($4, looked_at) \
        WHERE id = $1 AND current_check_id = $2 RETURNING retention_days";
    const END: &str = "UPDATE monitor_check SET status = $3, targets = $4, same_pages = $5, changed_pages = $6, \
        new_pages = $7, removed_pages = $8, error_pages = $9, actual_credits = $10, billing = $11, error = $12, \
        next_at = NULL, finished_at = $13, updated_at = $13, expires_at = COALESCE($14, expires_at) \
        WHERE id = $1 AND epoch = $2 AND next_at IS NOT NULL";
    let summary = (end.by != CheckMove::Skip).then(|| serde_json::to_string(&end.summary)).transpose()?;
    let targets = serde_json::to_string(end.targets)?;
    // One that could read nothing has met nothing.
    let looked_at = check.started_at.filter(|_| end.summary.total() > end.summary.error);
    let days: Option<(i64,)> = on_db!(tx, |conn| {
        sqlx::query_as(FREE)
            .bind(check.monitor_id)
            .bind(check.id)
            .bind(summary)
            .bind(looked_at)
            .fetch_optional(conn)
            .await?
    });
    let done = on_db!(tx, |conn| {
        sqlx::query(END)
            .bind(check.id)
            .bind(check.epoch)
            .bind(end.by.to())
            .bind(targets)
            .bind(end.summary.same)
            .bind(end.summary.changed)
            .bind(end.summary.new)
            .bind(end.summary.removed)
            .bind(end.summary.error)
            .bind(end.credits)
            .bind(end.billing)
            .bind(end.error)
            .bind(now)
            .bind(days.map(|(days,)| now.plus_ms(days * DAY_MS)))
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(done == 1)
}

/// Queues what the check's receiver wants to know: pages that have ended, and the check's own end.
pub async fn tell(tx: &mut Tx, check: &CheckRow, pages: &[PageId], ended: bool, now: Timestamp) -> StoreResult<()> {
    let Some(webhook) = check.webhook()? else { return Ok(()) };
    let mut events: Vec<(Option<PageId>, WebhookEvent)> = Vec::new();
    if webhook.wants(WebhookEvent::Page) {
        events.extend(pages.iter().map(|page| (Some(*page), WebhookEvent::Page)));
    }
    if ended && webhook.wants(WebhookEvent::Completed) {
        events.push((None, WebhookEvent::Completed));
    }
    if events.is_empty() {
        return Ok(());
    }
    webhooks::queue_all(tx, check.team_id, JobId(check.id.0), &events, now).await
}

/// The jobs of checks that have not ended: what they bring is not looked at yet, so none of it goes.
pub(in crate::store) async fn jobs_in_hand(db: &Db) -> StoreResult<HashSet<JobId>> {
    const SQL: &str = "SELECT targets FROM monitor_check WHERE next_at IS NOT NULL AND started_at IS NOT NULL";
    let rows: Vec<(String,)> = on_pool!(db, |pool| sqlx::query_as(SQL).fetch_all(pool).await?);
    let mut jobs = HashSet::new();
    for (targets,) in rows {
        let targets: Vec<Progress> = serde_json::from_str(&targets)?;
        jobs.extend(targets.into_iter().filter_map(|target| target.job));
    }
    Ok(jobs)
}

/// Whose check deliveries tell of, and who is told: a check stands where a job does there. Nobody is once the monitor is
/// deleted.
pub async fn receiver(db: &Db, id: JobId) -> StoreResult<Option<(TeamId, WebhookSpec)>> {
    const SQL: &str = sql!(
        "SELECT c.team_id, c.webhook FROM monitor_check c JOIN monitor m ON m.id = c.monitor_id WHERE c.id = $1 \
         AND m.status <> ",
        MonitorStatus::Deleted.sql()
    );
    let found: Option<(TeamId, Option<String>)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(CheckId(id.0)).fetch_optional(pool).await?);
    let Some((team, Some(webhook))) = found else { return Ok(None) };
    Ok(Some((team, serde_json::from_str(&webhook)?)))
}
