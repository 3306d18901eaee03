//! Checks: made by the schedule or by a caller, then carried on by one worker at a time until they end. Every write of a
//! worker is fenced by the check's epoch, which counts claims.

use std::collections::{HashMap, HashSet};

use crate::domain::job::WebhookEvent;
use crate::domain::monitor::{Billing, Cause, CheckMove, CheckStatus, MonitorStatus, Progress, Summary};
use crate::domain::webhook::WebhookSpec;
use crate::ids::{CheckId, JobId, MonitorId, PageId, TeamId};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::MonitorRow;
use super::turns::{Turns, teams_with};
use crate::store::db::parts::parts;
use crate::store::work::webhooks::{self, Event};
use crate::store::{Db, StoreResult, Tx};

pub(super) const DAY_MS: i64 = 86_400_000;

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

/// Writes checks. Returns those that are written: where there is one of the same moment, that one stays.
pub(super) async fn insert(tx: &mut Tx, checks: &[NewCheck<'_>], now: Timestamp) -> StoreResult<HashSet<CheckId>> {
    let mut written = HashSet::with_capacity(checks.len());
    for part in parts(checks) {
        let mut texts = Vec::with_capacity(part.len());
        for check in part {
            let webhook = check.webhook.map(serde_json::to_string).transpose()?;
            texts.push((check, serde_json::to_string(check.targets)?, webhook));
        }
        let rows: Vec<(CheckId,)> = on_db!(&mut *tx, |conn| {
            let mut insert = sqlx::QueryBuilder::new(
                "INSERT INTO monitor_check (id, monitor_id, team_id, status, cause, scheduled_for, finished_at, \
                 estimated_credits, billing, targets, webhook, next_at, created_at, updated_at, expires_at) ",
            );
            insert.push_values(&texts, |mut row, (check, targets, webhook)| {
                let is_open = check.status == CheckStatus::Queued;
                row.push_bind(check.id)
                    .push_bind(check.monitor.id)
                    .push_bind(check.monitor.team_id)
                    .push_bind(check.status)
                    .push_bind(check.cause)
                    .push_bind(check.scheduled_for)
                    .push_bind((!is_open).then_some(now))
                    .push_bind(check.monitor.estimated_credits)
                    .push_bind(Billing::NotApplicable)
                    .push_bind(targets.as_str())
                    .push_bind(webhook.as_deref())
                    .push_bind(is_open.then_some(now))
                    .push_bind(now)
                    .push_bind(now)
                    .push_bind(now.plus_ms(check.monitor.retention_days * DAY_MS));
            });
            insert.push(" ON CONFLICT (monitor_id, scheduled_for) DO NOTHING RETURNING id");
            insert.build_query_as().fetch_all(conn).await?
        });
        written.extend(rows.into_iter().map(|row| row.0));
    }
    Ok(written)
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
    let targets = Progress::all(&spec.targets);
    let check = NewCheck {
        id,
        monitor,
        status: CheckStatus::Queued,
        cause: Cause::Manual,
        scheduled_for: None,
        targets: &targets,
        webhook: spec.webhook.as_ref(),
    };
    insert(tx, &[check], now).await?;
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

/// Takes up to `limit` checks that somebody has to look after, teams in turn; they are ours until `lease`.
pub async fn claim(tx: &mut Tx, now: Timestamp, lease: Timestamp, limit: i64) -> StoreResult<Vec<CheckRow>> {
    macro_rules! claim {
        ($lock:literal) => {
            concat!(
                "UPDATE monitor_check SET epoch = epoch + 1, next_at = $3 WHERE id IN (SELECT id FROM monitor_check \
                 WHERE team_id = $1 AND next_at <= $2 ORDER BY next_at LIMIT $4",
                $lock,
                ") AND next_at <= $2 RETURNING ",
                check_columns!()
            )
        };
    }
    const TEAMS: &str = teams_with!("monitor_check", "next_at");
    let sql = match tx {
        Tx::Sqlite(_) => claim!(""),
        Tx::Postgres(_) => claim!(" FOR NO KEY UPDATE SKIP LOCKED"),
    };
    let mut turns = Turns::begin(tx, TEAMS, now, limit).await?;
    let mut all = Vec::new();
    while let Some((team, share)) = turns.next() {
        let mut rows: Vec<CheckRow> = on_db!(&mut *tx, |conn| {
            sqlx::query_as(sql).bind(team).bind(now).bind(lease).bind(share).fetch_all(conn).await?
        });
        turns.took(team, share, rows.len());
        all.append(&mut rows);
    }
    Ok(all)
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

/// Puts off checks that cannot go on now, as far as they are ours.
pub async fn put_off(tx: &mut Tx, checks: &[&CheckRow], until: Timestamp) -> StoreResult<()> {
    for part in parts(checks) {
        on_db!(&mut *tx, |conn| {
            let mut update = sqlx::QueryBuilder::new("UPDATE monitor_check SET next_at = ");
            update.push_bind(until).push(" WHERE next_at IS NOT NULL AND (id, epoch) IN (VALUES ");
            let mut list = update.separated(", ");
            for check in part {
                list.push("(").push_bind_unseparated(check.id).push_unseparated(", ");
                list.push_bind_unseparated(check.epoch).push_unseparated(")");
            }
            update.push(")");
            update.build().execute(conn).await?.rows_affected()
        });
    }
    Ok(())
}

/// A check that begins.
pub struct Start<'a> {
    pub check: &'a CheckRow,
    pub targets: &'a [Progress],
    pub billing: Billing,
}

/// Writes that checks run. Returns those that do: somebody else has the others by now, or they were ended.
pub async fn start(
    tx: &mut Tx,
    starts: &[Start<'_>],
    next_at: Timestamp,
    now: Timestamp,
) -> StoreResult<HashSet<CheckId>> {
    let mut started = HashSet::with_capacity(starts.len());
    for part in parts(starts) {
        let texts: Vec<String> =
            part.iter().map(|start| serde_json::to_string(start.targets)).collect::<Result<_, _>>()?;
        let rows: Vec<(CheckId,)> = on_db!(&mut *tx, |conn| {
            let mut update = sqlx::QueryBuilder::new("WITH begun (id, epoch, targets, billing) AS (VALUES ");
            for (n, (start, targets)) in part.iter().zip(&texts).enumerate() {
                update.push(if n == 0 { "(CAST(" } else { ", (CAST(" }).push_bind(start.check.id);
                update.push(" AS TEXT), CAST(").push_bind(start.check.epoch);
                update.push(" AS BIGINT), CAST(").push_bind(targets.as_str());
                update.push(" AS TEXT), CAST(").push_bind(start.billing);
                update.push(" AS TEXT))");
            }
            update.push(sql!(
                ") UPDATE monitor_check SET status = ",
                CheckMove::Start.to().sql(),
                ", targets = begun.targets, billing = begun.billing, next_at = "
            ));
            update.push_bind(next_at).push(", started_at = ").push_bind(now).push(", updated_at = ").push_bind(now);
            update.push(sql!(
                " FROM begun WHERE monitor_check.id = begun.id AND monitor_check.epoch = begun.epoch \
                 AND monitor_check.next_at IS NOT NULL AND monitor_check.status = ",
                CheckMove::Start.from().sql(),
                " RETURNING monitor_check.id"
            ));
            update.build_query_as().fetch_all(conn).await?
        });
        started.extend(rows.into_iter().map(|row| row.0));
    }
    Ok(started)
}

/// How a check ends.
pub struct End<'a> {
    pub check: &'a CheckRow,
    pub by: CheckMove,
    pub targets: &'a [Progress],
    pub summary: Summary,
    pub credits: i64,
    pub billing: Billing,
    pub error: Option<&'a str>,
}

/// Ends checks, and frees their monitors for the next. Returns those that have ended: somebody else has the others by now,
/// or they were ended before.
pub async fn finish(tx: &mut Tx, ends: &[End<'_>], now: Timestamp) -> StoreResult<HashSet<CheckId>> {
    let held = hold(tx, ends).await?;
    let ours: Vec<&End<'_>> = ends.iter().filter(|end| held.contains(&end.check.id)).collect();
    for part in parts(&ours) {
        let days = free(tx, part).await?;
        end(tx, part, &days, now).await?;
    }
    Ok(held)
}

/// Locks those of these checks that are still ours, and their monitors. The monitors' rows come first, as everywhere, and
/// both in the order of their ids, as whoever else takes several has them.
async fn hold(tx: &mut Tx, ends: &[End<'_>]) -> StoreResult<HashSet<CheckId>> {
    let epochs: HashMap<CheckId, i64> = ends.iter().map(|end| (end.check.id, end.check.epoch)).collect();
    let locks = matches!(tx, Tx::Postgres(_));
    let mut held = HashSet::with_capacity(ends.len());
    let mut ends: Vec<&End<'_>> = ends.iter().collect();
    ends.sort_unstable_by_key(|end| end.check.monitor_id);
    for part in parts(&ends) {
        let rows: Vec<(CheckId, i64)> = on_db!(&mut *tx, |conn| {
            // SQLite holds the whole file already.
            if locks {
                let mut lock = sqlx::QueryBuilder::new("SELECT id FROM monitor WHERE id IN (");
                let mut list = lock.separated(", ");
                for end in part {
                    list.push_bind(end.check.monitor_id);
                }
                lock.push(") ORDER BY id FOR NO KEY UPDATE");
                lock.build().execute(&mut *conn).await?;
            }
            let mut select =
                sqlx::QueryBuilder::new("SELECT id, epoch FROM monitor_check WHERE next_at IS NOT NULL AND id IN (");
            let mut list = select.separated(", ");
            for end in part {
                list.push_bind(end.check.id);
            }
            select.push(if locks { ") ORDER BY id FOR NO KEY UPDATE" } else { ")" });
            select.build_query_as().fetch_all(conn).await?
        });
        held.extend(rows.into_iter().filter(|(id, epoch)| epochs.get(id) == Some(epoch)).map(|row| row.0));
    }
    Ok(held)
}

/// Frees the monitors of checks that end; gives for how many days what those have looked at stays.
async fn free(tx: &mut Tx, ends: &[&End<'_>]) -> StoreResult<HashMap<MonitorId, i64>> {
    let mut summaries = Vec::with_capacity(ends.len());
    for end in ends {
        summaries.push((end.by != CheckMove::Skip).then(|| serde_json::to_string(&end.summary)).transpose()?);
    }
    let rows: Vec<(MonitorId, i64)> = on_db!(tx, |conn| {
        let mut update = sqlx::QueryBuilder::new("WITH ended (id, checked, summary, looked_at) AS (VALUES ");
        for (n, (end, summary)) in ends.iter().zip(&summaries).enumerate() {
            // One that could read nothing has met nothing.
            let looked_at = end.check.started_at.filter(|_| end.summary.total() > end.summary.error);
            update.push(if n == 0 { "(CAST(" } else { ", (CAST(" }).push_bind(end.check.monitor_id);
            update.push(" AS TEXT), CAST(").push_bind(end.check.id);
            update.push(" AS TEXT), CAST(").push_bind(summary.as_deref());
            update.push(" AS TEXT), CAST(").push_bind(looked_at);
            update.push(" AS BIGINT))");
        }
        update.push(
            ") UPDATE monitor SET current_check_id = NULL, last_summary = COALESCE(ended.summary, monitor.last_summary), \
             looked_before = CASE WHEN ended.looked_at IS NULL THEN monitor.looked_before ELSE monitor.looked_at END, \
             looked_at = COALESCE(ended.looked_at, monitor.looked_at) FROM ended \
             WHERE monitor.id = ended.id AND monitor.current_check_id = ended.checked \
             RETURNING monitor.id, monitor.retention_days",
        );
        update.build_query_as().fetch_all(conn).await?
    });
    Ok(rows.into_iter().collect())
}

/// Writes the ends of checks that are locked; `days`: for how many days those of these monitors stay.
async fn end(tx: &mut Tx, ends: &[&End<'_>], days: &HashMap<MonitorId, i64>, now: Timestamp) -> StoreResult<()> {
    let texts: Vec<String> = ends.iter().map(|end| serde_json::to_string(end.targets)).collect::<Result<_, _>>()?;
    on_db!(tx, |conn| {
        let mut update = sqlx::QueryBuilder::new(
            "WITH ended (id, status, targets, same, changed, new, removed, error_count, credits, billing, error, expires_at) \
             AS (VALUES ",
        );
        for (n, (end, targets)) in ends.iter().zip(&texts).enumerate() {
            let expires_at = days.get(&end.check.monitor_id).map(|days| now.plus_ms(days * DAY_MS));
            update.push(if n == 0 { "(CAST(" } else { ", (CAST(" }).push_bind(end.check.id);
            update.push(" AS TEXT), CAST(").push_bind(end.by.to());
            update.push(" AS TEXT), CAST(").push_bind(targets.as_str());
            update.push(" AS TEXT), CAST(").push_bind(end.summary.same);
            update.push(" AS BIGINT), CAST(").push_bind(end.summary.changed);
            update.push(" AS BIGINT), CAST(").push_bind(end.summary.new);
            update.push(" AS BIGINT), CAST(").push_bind(end.summary.removed);
            update.push(" AS BIGINT), CAST(").push_bind(end.summary.error);
            update.push(" AS BIGINT), CAST(").push_bind(end.credits);
            update.push(" AS BIGINT), CAST(").push_bind(end.billing);
            update.push(" AS TEXT), CAST(").push_bind(end.error);
            update.push(" AS TEXT), CAST(").push_bind(expires_at);
            update.push(" AS BIGINT))");
        }
        update.push(
            ") UPDATE monitor_check SET status = ended.status, targets = ended.targets, same_pages = ended.same, \
             changed_pages = ended.changed, new_pages = ended.new, removed_pages = ended.removed, \
             error_pages = ended.error_count, actual_credits = ended.credits, billing = ended.billing, \
             error = ended.error, next_at = NULL, expires_at = COALESCE(ended.expires_at, monitor_check.expires_at), \
             finished_at = ",
        );
        update.push_bind(now).push(", updated_at = ").push_bind(now);
        update.push(" FROM ended WHERE monitor_check.id = ended.id");
        update.build().execute(conn).await?.rows_affected()
    });
    Ok(())
}

/// What the receiver of a check hears of.
pub struct News<'a> {
    pub check: &'a CheckRow,
    /// Pages that have ended.
    pub pages: &'a [PageId],
    /// The check has.
    pub ended: bool,
}

/// Queues what the receivers of checks want to know.
pub async fn tell(tx: &mut Tx, news: &[News<'_>], now: Timestamp) -> StoreResult<()> {
    let mut events = Vec::new();
    for News { check, pages, ended } in news {
        let Some(webhook) = check.webhook()? else { continue };
        let event = |page, event| Event { team: check.team_id, job: JobId(check.id.0), page, event };
        if webhook.wants(WebhookEvent::Page) {
            events.extend(pages.iter().map(|page| event(Some(*page), WebhookEvent::Page)));
        }
        if *ended && webhook.wants(WebhookEvent::Completed) {
            events.push(event(None, WebhookEvent::Completed));
        }
    }
    webhooks::queue_all(tx, &events, now).await
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
