//! Webhook deliveries: an outbox of rows, written with the event, tried until delivered or dead.
//!
//! Inside a job the stages go in order: `started`, then pages, then the end; a stage begins when the one before has
//! no delivery left that may still be tried.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::domain::job::WebhookEvent;
use crate::domain::webhook::{DeliveryMove, DeliveryState};
use crate::ids::{DeliveryId, JobId, PageId, TeamId};
use crate::store::db::parts::parts;
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool, queue as wakeups};

/// Writes a delivery and its wake-up.
pub async fn queue(
    tx: &mut Tx,
    team: TeamId,
    job: JobId,
    page: Option<PageId>,
    event: WebhookEvent,
    now: Timestamp,
) -> StoreResult<()> {
    queue_all(tx, &[Event { team, job, page, event }], now).await
}

/// Something that a receiver is told of.
pub(in crate::store) struct Event {
    pub team: TeamId,
    /// The job, or the check of a monitor.
    pub job: JobId,
    pub page: Option<PageId>,
    pub event: WebhookEvent,
}

/// Writes the deliveries of several events, and a wake-up for each job that they are of.
pub(in crate::store) async fn queue_all(tx: &mut Tx, events: &[Event], now: Timestamp) -> StoreResult<()> {
    for part in parts(events) {
        on_db!(tx, |conn| {
            let mut insert = sqlx::QueryBuilder::new(
                "INSERT INTO webhook_delivery \
                 (id, team_id, job_id, page_id, event, stage, state, next_at, created_at) ",
            );
            insert.push_values(part, |mut values, event| {
                values
                    .push_bind(DeliveryId::new())
                    .push_bind(event.team)
                    .push_bind(event.job)
                    .push_bind(event.page)
                    .push_bind(event.event.as_str())
                    .push_bind(event.event.stage())
                    .push(DeliveryState::Waiting.sql())
                    .push_bind(now)
                    .push_bind(now);
            });
            insert.build().execute(conn).await?.rows_affected()
        });
    }
    let jobs: BTreeSet<JobId> = events.iter().map(|event| event.job).collect();
    for job in jobs {
        wakeups::webhook_wakeup(tx, job, Duration::ZERO).await?;
    }
    Ok(())
}

/// Puts off an event of a job that nobody was told of yet.
pub(super) async fn hold(tx: &mut Tx, job: JobId, event: WebhookEvent, until: Timestamp) -> StoreResult<()> {
    move_untold(tx, job, event, until).await.map(drop)
}

/// Makes an event due that was put off by [`hold`], with its wake-up.
pub(super) async fn release(tx: &mut Tx, job: JobId, event: WebhookEvent, now: Timestamp) -> StoreResult<()> {
    if move_untold(tx, job, event, now).await? {
        wakeups::webhook_wakeup(tx, job, Duration::ZERO).await?;
    }
    Ok(())
}

/// Has an event that nobody was told of yet due at another time. `false`: there is none.
async fn move_untold(tx: &mut Tx, job: JobId, event: WebhookEvent, at: Timestamp) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "UPDATE webhook_delivery SET next_at = $4 WHERE job_id = $1 AND stage = $2 AND event = $3 AND attempt = 0 \
         AND next_at <> $4 AND state = ",
        DeliveryState::Waiting.sql()
    );
    let moved = on_db!(tx, |conn| {
        let update = sqlx::query(SQL).bind(job).bind(event.stage()).bind(event.as_str()).bind(at);
        update.execute(conn).await?.rows_affected()
    });
    Ok(moved > 0)
}

/// Whether an end of this kind was told of before: the job has then run again for pages that were replayed.
pub(super) async fn was_told(tx: &mut Tx, job: JobId, end: WebhookEvent) -> StoreResult<bool> {
    const SQL: &str = "SELECT COUNT(*) FROM webhook_delivery WHERE job_id = $1 AND stage = $2 AND event = $3";
    let found: (i64,) = on_db!(tx, |conn| {
        sqlx::query_as(SQL).bind(job).bind(end.stage()).bind(end.as_str()).fetch_one(conn).await?
    });
    Ok(found.0 > 0)
}

/// A delivery this worker may try now, fenced by `attempt`.
#[derive(Debug, Clone)]
pub struct ClaimedDelivery {
    pub id: DeliveryId,
    pub team_id: TeamId,
    pub job_id: JobId,
    pub page_id: Option<PageId>,
    pub event: WebhookEvent,
    /// Tries so far, this one included.
    pub attempt: i64,
    /// The same, counted from the last replay: where on the retry schedule it is.
    pub retry: i64,
}

/// Takes up to `limit` due deliveries of the job's current stage; each is ours until `lease`.
pub async fn claim(
    tx: &mut Tx,
    job: JobId,
    now: Timestamp,
    lease: Timestamp,
    limit: i64,
) -> StoreResult<Vec<ClaimedDelivery>> {
    // What another worker is just taking is left to it: to wait for it would be a deadlock when it waits for ours.
    macro_rules! claim {
        ($lock:literal) => {
            sql!(
                "UPDATE webhook_delivery SET attempt = attempt + 1, next_at = $3 WHERE id IN (\
                 SELECT id FROM webhook_delivery WHERE job_id = $1 AND state = ",
                DeliveryState::Waiting.sql(),
                " AND next_at <= $2 AND stage = (\
                 SELECT MIN(stage) FROM webhook_delivery WHERE job_id = $1 AND state = ",
                DeliveryState::Waiting.sql(),
                ") ORDER BY next_at, id LIMIT $4",
                $lock,
                ") AND state = ",
                DeliveryState::Waiting.sql(),
                " AND next_at <= $2 RETURNING id, team_id, job_id, page_id, event, attempt, retry_from"
            )
        };
    }
    let sql = match tx {
        Tx::Sqlite(_) => claim!(""),
        Tx::Postgres(_) => claim!(" FOR NO KEY UPDATE SKIP LOCKED"),
    };
    type Row = (DeliveryId, TeamId, JobId, Option<PageId>, String, i64, i64);
    let rows: Vec<Row> =
        on_db!(tx, |conn| sqlx::query_as(sql).bind(job).bind(now).bind(lease).bind(limit).fetch_all(conn).await?);
    rows.into_iter()
        .map(|r| {
            Ok(ClaimedDelivery {
                id: r.0,
                team_id: r.1,
                job_id: r.2,
                page_id: r.3,
                event: r.4.parse().map_err(StoreError::Corrupt)?,
                attempt: r.5,
                retry: r.5 - r.6,
            })
        })
        .collect()
}

/// What a try brought.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub at: Timestamp,
    pub duration_ms: i64,
    /// Status of the receiver's answer, when there was one.
    pub status: Option<i64>,
    pub error: Option<String>,
    /// When to try again; `None` with an error: given up.
    pub next_at: Option<Timestamp>,
}

/// Records a try, unless another has overtaken it. Of a delivery that is gone nothing is written down: nobody would remove
/// it.
pub async fn record(tx: &mut Tx, delivery: &ClaimedDelivery, attempt: &Attempt, now: Timestamp) -> StoreResult<()> {
    const HISTORY: &str = "INSERT INTO webhook_attempt (delivery_id, attempt, job_id, at, duration_ms, status, error) \
        SELECT $1, $2, $3, $4, $5, $6, $7 WHERE EXISTS (SELECT 1 FROM webhook_delivery WHERE id = $1) \
        ON CONFLICT (delivery_id, attempt) DO NOTHING";
    const STATE: &str = sql!(
        "UPDATE webhook_delivery SET state = $3, next_at = COALESCE($4, next_at), finished_at = $5, \
         last_status = $6, last_error = $7 WHERE id = $1 AND attempt = $2 AND state = ",
        DeliveryState::Waiting.sql()
    );
    let state = DeliveryMove::after_try(attempt.error.is_some(), attempt.next_at.is_some()).to();
    let finished = (state != DeliveryState::Waiting).then_some(now);
    on_db!(tx, |conn| {
        // First, because the delivery cannot be removed any more then.
        sqlx::query(STATE)
            .bind(delivery.id)
            .bind(delivery.attempt)
            .bind(state.as_str())
            .bind(attempt.next_at)
            .bind(finished)
            .bind(attempt.status)
            .bind(attempt.error.as_deref())
            .execute(&mut *conn)
            .await?;
        sqlx::query(HISTORY)
            .bind(delivery.id)
            .bind(delivery.attempt)
            .bind(delivery.job_id)
            .bind(attempt.at)
            .bind(attempt.duration_ms)
            .bind(attempt.status)
            .bind(attempt.error.as_deref())
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(())
}

/// Puts off a delivery whose receiver was not asked: nothing is taken from its schedule.
pub async fn put_off(tx: &mut Tx, delivery: &ClaimedDelivery, until: Timestamp) -> StoreResult<()> {
    const SQL: &str = sql!(
        "UPDATE webhook_delivery SET next_at = $3, retry_from = retry_from + 1 \
         WHERE id = $1 AND attempt = $2 AND state = ",
        DeliveryState::Waiting.sql()
    );
    on_db!(tx, |conn| {
        sqlx::query(SQL).bind(delivery.id).bind(delivery.attempt).bind(until).execute(conn).await?.rows_affected()
    });
    Ok(())
}

/// When the job's current stage next has something to do; `None`: nothing waits.
pub async fn next_due(tx: &mut Tx, job: JobId) -> StoreResult<Option<Timestamp>> {
    const SQL: &str = sql!(
        "SELECT MIN(next_at) FROM webhook_delivery WHERE job_id = $1 AND state = ",
        DeliveryState::Waiting.sql(),
        " AND stage = (SELECT MIN(stage) FROM webhook_delivery WHERE job_id = $1 AND state = ",
        DeliveryState::Waiting.sql(),
        ")"
    );
    let row: (Option<Timestamp>,) = on_db!(tx, |conn| sqlx::query_as(SQL).bind(job).fetch_one(conn).await?);
    Ok(row.0)
}

/// Jobs with deliveries of their current stage that were due before `before`: each gets a wake-up, in case one was lost,
/// unless it has one. Returns how many.
pub async fn remind(tx: &mut Tx, before: Timestamp) -> StoreResult<usize> {
    // From job to job, for one may have very many deliveries behind a stage that fails.
    const SQL: &str = sql!(
        "WITH RECURSIVE waiting (job_id) AS (SELECT MIN(job_id) FROM webhook_delivery WHERE state = ",
        DeliveryState::Waiting.sql(),
        " UNION ALL SELECT (SELECT MIN(d.job_id) FROM webhook_delivery d WHERE d.state = ",
        DeliveryState::Waiting.sql(),
        " AND d.job_id > waiting.job_id) FROM waiting WHERE waiting.job_id IS NOT NULL) \
         SELECT w.job_id FROM waiting w WHERE w.job_id IS NOT NULL AND EXISTS (SELECT 1 FROM webhook_delivery d \
         WHERE d.job_id = w.job_id AND d.state = ",
        DeliveryState::Waiting.sql(),
        " AND d.next_at <= $1 AND d.stage = (SELECT MIN(s.stage) \
         FROM webhook_delivery s WHERE s.job_id = w.job_id AND s.state = ",
        DeliveryState::Waiting.sql(),
        ")) LIMIT 200"
    );
    let jobs: Vec<(JobId,)> = on_db!(tx, |conn| sqlx::query_as(SQL).bind(before).fetch_all(conn).await?);
    let jobs: Vec<JobId> = jobs.into_iter().map(|row| row.0).collect();
    wakeups::remind_webhooks(tx, &jobs).await?;
    Ok(jobs.len())
}

/// Which deliveries to list; `None` means any.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    pub id: Option<DeliveryId>,
    pub job: Option<JobId>,
    pub team: Option<TeamId>,
    pub state: Option<DeliveryState>,
    pub limit: i64,
}

/// A delivery as operators see it.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct DeliveryRow {
    pub id: DeliveryId,
    pub job_id: JobId,
    pub page_id: Option<PageId>,
    pub event: String,
    #[sqlx(try_from = "String")]
    pub state: DeliveryState,
    pub attempt: i64,
    pub next_at: Timestamp,
    pub last_status: Option<i64>,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
}

/// Deliveries, newest first.
pub async fn deliveries(db: &Db, filter: &DeliveryFilter) -> StoreResult<Vec<DeliveryRow>> {
    const SQL: &str = "SELECT id, job_id, page_id, event, state, attempt, next_at, last_status, last_error, created_at \
        FROM webhook_delivery WHERE ($1 IS NULL OR job_id = $1) AND ($2 IS NULL OR team_id = $2) \
        AND ($3 IS NULL OR state = $3) AND ($5 IS NULL OR id = $5) ORDER BY created_at DESC, id DESC LIMIT $4";
    Ok(on_pool!(db, |pool| {
        sqlx::query_as(SQL)
            .bind(filter.job.map(|j| j.to_string()))
            .bind(filter.team.map(|t| t.to_string()))
            .bind(filter.state.map(DeliveryState::as_str))
            .bind(filter.limit)
            .bind(filter.id.map(|id| id.to_string()))
            .fetch_all(pool)
            .await?
    }))
}

/// Deliveries of a job after one of them, in the order in which they were made.
pub async fn of_job(
    db: &Db,
    job: JobId,
    after: Option<DeliveryId>,
    state: Option<DeliveryState>,
    limit: i64,
) -> StoreResult<Vec<DeliveryRow>> {
    const SQL: &str = "SELECT id, job_id, page_id, event, state, attempt, next_at, last_status, last_error, created_at \
        FROM webhook_delivery WHERE job_id = $1 AND id > $2 AND ($3 IS NULL OR state = $3) ORDER BY id LIMIT $4";
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    Ok(on_pool!(db, |pool| {
        sqlx::query_as(SQL)
            .bind(job)
            .bind(after)
            .bind(state.map(DeliveryState::as_str))
            .bind(limit)
            .fetch_all(pool)
            .await?
    }))
}

/// One try of a delivery.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct TryRow {
    pub delivery_id: DeliveryId,
    pub attempt: i64,
    pub at: Timestamp,
    pub duration_ms: i64,
    pub status: Option<i64>,
    pub error: Option<String>,
}

/// The tries of these deliveries, oldest first.
pub async fn tries(db: &Db, deliveries: &[DeliveryId]) -> StoreResult<Vec<TryRow>> {
    if deliveries.is_empty() {
        return Ok(Vec::new());
    }
    Ok(on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new(
            "SELECT delivery_id, attempt, at, duration_ms, status, error FROM webhook_attempt WHERE delivery_id IN (",
        );
        let mut list = select.separated(", ");
        for id in deliveries {
            list.push_bind(*id);
        }
        select.push(") ORDER BY delivery_id, attempt LIMIT 2000");
        select.build_query_as().persistent(false).fetch_all(pool).await?
    }))
}

/// Whose job a delivery tells of; `None`: there is no such delivery.
pub async fn job_of(db: &Db, id: DeliveryId) -> StoreResult<Option<JobId>> {
    const SQL: &str = "SELECT job_id FROM webhook_delivery WHERE id = $1";
    let found: Option<(JobId,)> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?);
    Ok(found.map(|row| row.0))
}

/// Dead deliveries whose receiver may do better later, oldest first: it could not be reached, was busy or had a failure
/// of its own. Each at most `most` times.
pub async fn worth_replaying(db: &Db, most: i64, now: Timestamp, limit: i64) -> StoreResult<Vec<DeliveryId>> {
    const SQL: &str = sql!(
        "SELECT id FROM webhook_delivery WHERE state = ",
        DeliveryState::Dead.sql(),
        " AND replays < $1 AND (last_status IS NULL \
         OR last_status >= 500 OR last_status IN (408, 425, 429)) AND (EXISTS (SELECT 1 FROM job WHERE \
         job.id = webhook_delivery.job_id AND job.expires_at > $2) OR EXISTS (SELECT 1 FROM monitor_check WHERE \
         monitor_check.id = webhook_delivery.job_id AND monitor_check.expires_at > $2)) ORDER BY created_at, id LIMIT $3"
    );
    let rows: Vec<(DeliveryId,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(most).bind(now).bind(limit).fetch_all(pool).await?);
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// Tries a dead delivery again, with the whole schedule before it. `false`: it is not dead.
pub async fn replay(tx: &mut Tx, id: DeliveryId, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "UPDATE webhook_delivery SET state = ",
        DeliveryMove::Replay.to().sql(),
        ", next_at = $2, finished_at = NULL, retry_from = attempt, replays = replays + 1 WHERE id = $1 AND state = ",
        DeliveryMove::Replay.from().sql(),
        " RETURNING job_id"
    );
    let job: Option<(JobId,)> = on_db!(tx, |conn| sqlx::query_as(SQL).bind(id).bind(now).fetch_optional(conn).await?);
    let Some((job,)) = job else { return Ok(false) };
    wakeups::webhook_wakeup(tx, job, Duration::ZERO).await?;
    Ok(true)
}

/// Deliveries that wait and that are dead.
pub async fn counts(db: &Db) -> StoreResult<(i64, i64)> {
    const SQL: &str = sql!(
        "SELECT (SELECT COUNT(*) FROM webhook_delivery WHERE state = ",
        DeliveryState::Waiting.sql(),
        "), (SELECT COUNT(*) FROM webhook_delivery WHERE state = ",
        DeliveryState::Dead.sql(),
        ")"
    );
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).fetch_one(pool).await?))
}
