//! Tasks: extractions and agents, driven step by step (wire 22, 23).
//!
//! A task belongs to its job. A worker that is woken claims it, goes on from its steps and lets it go again while pages are
//! on their way; their last end calls it back. Every write of a worker is fenced by the task's epoch and by its job, which
//! may have been cancelled. Locks are taken in the order of all writers: team, pages, jobs; then the task.

use std::time::Duration;

use uuid::Uuid;

use crate::domain::job::{JobKind, JobMove, JobStatus, PageMove, WebhookEvent};
use crate::domain::node::NodeState;
use crate::domain::task::{StepKind, TaskOutcome, TaskSpec};
use crate::ids::{JobId, KeyId, PageId, TeamId, WorkerId};
use crate::llm::Spent;
use crate::store::accounts::credits::{self, Charge, Funds};
use crate::store::accounts::{model_usage, team_lock};
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool, queue};

use super::jobs::{self, NewJob};
use super::page::rows;
use super::webhooks;

/// A task is looked at again after so long at the latest, milliseconds: a wake-up may be lost.
pub const LOOK_AGAIN_MS: i64 = 60_000;
/// Tasks that are reminded of in one sweep.
const REMINDED: i64 = 200;

/// A task to be written with its job.
pub struct NewTask<'a> {
    pub job: &'a NewJob<'a>,
    pub spec: &'a TaskSpec,
    /// Of an agent: its thread and its place there.
    pub thread: Option<(Uuid, i64)>,
}

/// Writes job and task, and calls a worker.
pub async fn insert(tx: &mut Tx, new: &NewTask<'_>) -> StoreResult<()> {
    const SQL: &str = "INSERT INTO task (job_id, team_id, api_key_id, kind, spec, thread_id, turn, due_at, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)";
    let job = new.job;
    jobs::insert(tx, job).await?;
    let spec = serde_json::to_string(new.spec)?;
    on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(job.id)
            .bind(job.team)
            .bind(job.key)
            .bind(job.kind.as_str())
            .bind(spec)
            .bind(new.thread.map(|thread| thread.0.to_string()))
            .bind(new.thread.map_or(1, |thread| thread.1))
            .bind(job.created_at)
            .execute(conn)
            .await?
            .rows_affected()
    });
    queue::task_wakeup(tx, job.id, Duration::ZERO).await
}

/// A task that this worker may drive now, fenced by `epoch`.
#[derive(Debug, Clone)]
pub struct ClaimedTask {
    pub job: JobId,
    pub team: TeamId,
    pub key: Option<KeyId>,
    pub kind: JobKind,
    pub spec: TaskSpec,
    pub epoch: i64,
    /// Tokens so far.
    pub spent: Spent,
    pub created_at: Timestamp,
}

/// Whose task it is. `None`: it is removed.
pub async fn team(db: &Db, job: JobId) -> StoreResult<Option<TeamId>> {
    const SQL: &str = "SELECT team_id FROM task WHERE job_id = $1";
    let found: Option<(TeamId,)> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).fetch_optional(pool).await?);
    Ok(found.map(|(team,)| team))
}

/// The addresses that a task was given; none where it is removed.
pub(super) async fn given(db: &Db, job: JobId) -> StoreResult<Vec<String>> {
    const SQL: &str = "SELECT spec FROM task WHERE job_id = $1";
    let found: Option<(String,)> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).fetch_optional(pool).await?);
    let Some((spec,)) = found else { return Ok(Vec::new()) };
    Ok(serde_json::from_str::<TaskSpec>(&spec)?.urls().to_vec())
}

/// Claims a task. `None`: it has ended, or somebody is at it, who then looks once more.
pub async fn claim(tx: &mut Tx, job: JobId, worker: WorkerId, now: Timestamp) -> StoreResult<Option<ClaimedTask>> {
    const TAKE: &str = "UPDATE task SET owner = $2, epoch = epoch + 1, called = FALSE, due_at = $3 \
        WHERE job_id = $1 AND owner IS NULL AND due_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM team \
        WHERE team.id = task.team_id AND team.removed_at IS NOT NULL) RETURNING team_id, api_key_id, kind, spec, epoch, sent, received, created_at";
    const CALL: &str = "UPDATE task SET called = TRUE WHERE job_id = $1 AND owner IS NOT NULL AND NOT called";
    type Row = (TeamId, Option<KeyId>, String, String, i64, i64, i64, Timestamp);
    let mut taken: Option<Row> =
        on_db!(tx, |conn| sqlx::query_as(TAKE).bind(job).bind(worker).bind(now).fetch_optional(conn).await?);
    if taken.is_none() {
        let told = on_db!(tx, |conn| sqlx::query(CALL).bind(job).execute(conn).await?.rows_affected());
        // Who was at it may have let it go between the two statements, and has not heard of this.
        if told == 0 {
            taken =
                on_db!(tx, |conn| sqlx::query_as(TAKE).bind(job).bind(worker).bind(now).fetch_optional(conn).await?);
        }
    }
    let Some((team, key, kind, spec, epoch, sent, received, created_at)) = taken else { return Ok(None) };
    Ok(Some(ClaimedTask {
        job,
        team,
        key,
        kind: kind.parse().map_err(StoreError::Corrupt)?,
        spec: serde_json::from_str(&spec)?,
        epoch,
        spent: Spent { sent, received },
        created_at,
    }))
}

/// Lets a task go; it is looked at again at `due_at`, or when it is called. `again`: call somebody for that time.
pub async fn release(tx: &mut Tx, task: &ClaimedTask, due_at: Timestamp, again: Option<Duration>) -> StoreResult<()> {
    const SQL: &str = "UPDATE task SET owner = NULL, due_at = CASE WHEN due_at IS NULL THEN NULL ELSE $3 END \
        WHERE job_id = $1 AND epoch = $2 AND owner IS NOT NULL RETURNING called";
    let called: Option<(bool,)> = on_db!(tx, |conn| {
        sqlx::query_as(SQL).bind(task.job).bind(task.epoch).bind(due_at).fetch_optional(conn).await?
    });
    let pause = match called {
        Some((true,)) => Some(Duration::ZERO),
        Some((false,)) => again,
        None => None,
    };
    match pause {
        Some(pause) => queue::task_wakeup(tx, task.job, pause).await,
        None => Ok(()),
    }
}

/// Whether the worker may still write: nobody has overtaken it, and the job runs.
pub async fn is_ours(db: &Db, task: &ClaimedTask) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "SELECT COUNT(*) FROM task JOIN job ON job.id = task.job_id WHERE task.job_id = $1 AND task.epoch = $2 \
         AND task.due_at IS NOT NULL AND job.status = ",
        JobStatus::Scraping.sql()
    );
    let found: (i64,) =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(task.job).bind(task.epoch).fetch_one(pool).await?);
    Ok(found.0 > 0)
}

/// Locks the task. `false`: it is not this worker's any more.
async fn fence(tx: &mut Tx, task: &ClaimedTask) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "UPDATE task SET called = called WHERE job_id = $1 AND epoch = $2 AND due_at IS NOT NULL \
         AND EXISTS (SELECT 1 FROM job WHERE job.id = $1 AND job.status = ",
        JobStatus::Scraping.sql(),
        ")"
    );
    let held = on_db!(tx, |conn| sqlx::query(SQL).bind(task.job).bind(task.epoch).execute(conn).await?.rows_affected());
    Ok(held == 1)
}

/// A step as stored.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct StepRow {
    pub key: String,
    pub id: String,
    pub number: i64,
    pub kind: String,
    pub state: String,
    pub tries: i64,
    pub says: String,
    pub outcome: Option<String>,
    pub sent: i64,
    pub received: i64,
    pub credits: i64,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// The steps of a task, in the order in which they were begun.
pub async fn steps(db: &Db, job: JobId) -> StoreResult<Vec<StepRow>> {
    const SQL: &str = "SELECT key, id, number, kind, state, tries, says, outcome, sent, received, credits, started_at, \
        ended_at FROM task_step WHERE job_id = $1 ORDER BY number, key";
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).fetch_all(pool).await?))
}

/// A step to be begun.
pub struct NewStep<'a> {
    pub key: &'a str,
    pub number: i64,
    pub kind: StepKind,
    /// JSON.
    pub says: String,
}

/// Writes down that a step begins, or that it begins again. `None`: the task is not this worker's any more. Returns how
/// often it was begun.
pub async fn begin_step(db: &Db, task: &ClaimedTask, step: &NewStep<'_>, now: Timestamp) -> StoreResult<Option<i64>> {
    let mut tx = db.begin().await?;
    if !fence(&mut tx, task).await? {
        return Ok(None);
    }
    let tries = insert_step(&mut tx, task, step, now).await?;
    tx.commit().await?;
    Ok(Some(tries))
}

async fn insert_step(tx: &mut Tx, task: &ClaimedTask, step: &NewStep<'_>, now: Timestamp) -> StoreResult<i64> {
    const SQL: &str = "INSERT INTO task_step (job_id, key, id, number, kind, state, says, started_at) \
        VALUES ($1, $2, $3, $4, $5, 'begun', $6, $7) \
        ON CONFLICT (job_id, key) DO UPDATE SET tries = task_step.tries + 1 RETURNING tries";
    let tries: (i64,) = on_db!(tx, |conn| {
        sqlx::query_as(SQL)
            .bind(task.job)
            .bind(step.key)
            .bind(crate::random::id().to_string())
            .bind(step.number)
            .bind(step.kind.as_str())
            .bind(step.says.as_str())
            .bind(now)
            .fetch_one(conn)
            .await?
    });
    Ok(tries.0)
}

/// What came of a step.
#[derive(Debug, Clone, Default)]
pub struct StepEnd {
    /// JSON.
    pub outcome: String,
    pub spent: Spent,
    /// To be billed.
    pub credits: i64,
    /// Billed already, by what it used.
    pub billed: i64,
    /// Receivers of webhooks are told of it.
    pub is_action: bool,
}

/// Writes down what came of a step: once, with what it cost. `false`: the task is not this worker's any more, or the step
/// has ended.
pub async fn end_step(db: &Db, task: &ClaimedTask, key: &str, end: &StepEnd, now: Timestamp) -> StoreResult<bool> {
    const STEP: &str = "UPDATE task_step SET state = 'done', outcome = $3, sent = $4, received = $5, credits = $6, \
        ended_at = $7 WHERE job_id = $1 AND key = $2 AND state = 'begun' RETURNING id";
    const TASK: &str = "UPDATE task SET sent = sent + $2, received = received + $3 WHERE job_id = $1";
    const JOB: &str = "UPDATE job SET credits_used = credits_used + $2 WHERE id = $1";
    let mut tx = db.begin().await?;
    team_lock::lock(&mut tx, task.team).await?;
    let job = jobs::lock(&mut tx, task.job).await?;
    if !fence(&mut tx, task).await? {
        return Ok(false);
    }
    let ended: Option<(String,)> = on_db!(&mut tx, |conn| {
        sqlx::query_as(STEP)
            .bind(task.job)
            .bind(key)
            .bind(end.outcome.as_str())
            .bind(end.spent.sent)
            .bind(end.spent.received)
            .bind(end.credits + end.billed)
            .bind(now)
            .fetch_optional(conn)
            .await?
    });
    let Some((id,)) = ended else { return Ok(false) };
    if end.spent != Spent::default() {
        on_db!(&mut tx, |conn| {
            sqlx::query(TASK)
                .bind(task.job)
                .bind(end.spent.sent)
                .bind(end.spent.received)
                .execute(conn)
                .await?
                .rows_affected()
        });
        model_usage::add(&mut tx, task.team, task.key, end.spent, now).await?;
    }
    if end.credits + end.billed > 0 {
        let more = end.credits + end.billed;
        on_db!(&mut tx, |conn| sqlx::query(JOB).bind(task.job).bind(more).execute(conn).await?.rows_affected());
    }
    if end.credits > 0 {
        let charge = Charge {
            entry: format!("task:{}:{key}", task.job),
            team: task.team,
            key: task.key,
            kind: task.kind.credit_kind(),
            amount: end.credits,
            at: now,
        };
        credits::charge(&mut tx, charge).await?;
    }
    let wants = |job: &jobs::JobRow| job.webhook.as_ref().is_some_and(|hook| hook.wants(WebhookEvent::Action));
    if end.is_action && job.as_ref().is_some_and(wants) {
        // A delivery of a step names the step where others name a page.
        let step: PageId = id.parse().map_err(|error: uuid::Error| StoreError::Corrupt(error.to_string()))?;
        webhooks::queue(&mut tx, task.team, task.job, Some(step), WebhookEvent::Action, now).await?;
    }
    tx.commit().await?;
    Ok(true)
}

/// What became of pages that a step asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Queued(Vec<PageId>),
    /// The team cannot pay for them.
    Short,
    NotOurs,
}

/// Queues the pages of a step, with the step, in one transaction: the step's text is what `says` makes of their ids.
pub async fn begin_pages(
    db: &Db,
    task: &ClaimedTask,
    step: NewStep<'_>,
    (urls, price, metered): (&[String], i64, bool),
    says: impl Fn(&[PageId]) -> String,
) -> StoreResult<Asked> {
    let now = db.now();
    let mut tx = db.begin().await?;
    let need = price * urls.len() as i64;
    team_lock::lock(&mut tx, task.team).await?;
    if credits::check_funds(&mut tx, task.team, need, metered).await? != Funds::Enough {
        return Ok(Asked::Short);
    }
    let Some(job) = jobs::lock(&mut tx, task.job).await? else { return Ok(Asked::NotOurs) };
    if !fence(&mut tx, task).await? || !jobs::grow(&mut tx, task.job, urls.len() as i64).await? {
        return Ok(Asked::NotOurs);
    }
    let ids = rows::insert_many(&mut tx, task.job, task.team, job.total, urls, now).await?;
    insert_step(&mut tx, task, &NewStep { says: says(&ids), ..step }, now).await?;
    queue::team_wakeups(&mut tx, task.team, urls.len()).await?;
    tx.commit().await?;
    Ok(Asked::Queued(ids))
}

/// Ends a task with its job: what waits of its pages is dropped, receivers of webhooks are told. `false`: it is not this
/// worker's any more.
pub async fn end(db: &Db, task: &ClaimedTask, outcome: &TaskOutcome) -> StoreResult<bool> {
    const JOB: &str = sql!(
        "UPDATE job SET status = $2, finished_at = $3, total = total - queued, queued = 0 WHERE id = $1 AND status = ",
        JobMove::Complete.from().sql()
    );
    const PAGES: &str = sql!(
        "UPDATE page SET state = ",
        PageMove::Drop.to().sql(),
        ", finished_at = $2, epoch = epoch + 1 WHERE job_id = $1 AND state = ",
        PageMove::Drop.from().sql()
    );
    const TASK: &str = "UPDATE task SET outcome = $2, due_at = NULL, owner = NULL WHERE job_id = $1";
    let now = db.now();
    let (status, event) = match outcome.error {
        None => (JobMove::Complete.to(), WebhookEvent::Completed),
        Some(_) => (JobMove::Fail.to(), WebhookEvent::Failed),
    };
    let mut tx = db.begin().await?;
    team_lock::lock(&mut tx, task.team).await?;
    on_db!(&mut tx, |conn| sqlx::query(PAGES).bind(task.job).bind(now).execute(conn).await?.rows_affected());
    let job = jobs::lock(&mut tx, task.job).await?;
    if !fence(&mut tx, task).await? {
        return Ok(false);
    }
    let text = serde_json::to_string(outcome)?;
    on_db!(&mut tx, |conn| {
        sqlx::query(JOB).bind(task.job).bind(status.as_str()).bind(now).execute(&mut *conn).await?;
        sqlx::query(TASK).bind(task.job).bind(text).execute(conn).await?.rows_affected()
    });
    if job.is_some_and(|job| job.webhook.is_some_and(|hook| hook.wants(event))) {
        webhooks::queue(&mut tx, task.team, task.job, None, event, now).await?;
    }
    jobs::notify_job(&mut tx, task.job).await?;
    tx.commit().await?;
    Ok(true)
}

/// A task as callers read it, without its steps.
#[derive(Debug, Clone)]
pub struct TaskRow {
    pub job: JobId,
    pub spec: TaskSpec,
    pub thread: Option<Uuid>,
    pub turn: i64,
    pub spent: Spent,
    pub outcome: Option<TaskOutcome>,
    pub created_at: Timestamp,
    /// The worker that is at it.
    pub owner: Option<WorkerId>,
}

type Columns = (JobId, String, Option<String>, i64, i64, i64, Option<String>, Timestamp, Option<WorkerId>);

macro_rules! select_task {
    ($rest:literal) => {
        sql!("SELECT job_id, spec, thread_id, turn, sent, received, outcome, created_at, owner FROM task ", $rest)
    };
}

fn row(c: Columns) -> StoreResult<TaskRow> {
    let thread = c.2.as_deref().map(Uuid::parse_str).transpose();
    Ok(TaskRow {
        job: c.0,
        spec: serde_json::from_str(&c.1)?,
        thread: thread.map_err(|error| StoreError::Corrupt(error.to_string()))?,
        turn: c.3,
        spent: Spent { sent: c.4, received: c.5 },
        outcome: c.6.as_deref().map(serde_json::from_str).transpose()?,
        created_at: c.7,
        owner: c.8,
    })
}

/// The task of a job.
pub async fn load(db: &Db, job: JobId) -> StoreResult<Option<TaskRow>> {
    const SQL: &str = select_task!("WHERE job_id = $1");
    let found: Option<Columns> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).fetch_optional(pool).await?);
    found.map(row).transpose()
}

/// A team's agents that began before a time, newest first.
pub async fn agents(db: &Db, team: TeamId, before: Timestamp, limit: i64) -> StoreResult<Vec<TaskRow>> {
    const SQL: &str =
        select_task!("WHERE team_id = $1 AND kind = 'agent' AND created_at < $2 ORDER BY job_id DESC LIMIT $3");
    let found: Vec<Columns> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(before).bind(limit).fetch_all(pool).await?);
    found.into_iter().map(row).collect()
}

/// The last runs of a team's thread, at most so many, oldest first.
pub async fn thread(db: &Db, team: TeamId, thread: Uuid, most: i64) -> StoreResult<Vec<TaskRow>> {
    const SQL: &str = select_task!("WHERE thread_id = $1 AND team_id = $2 ORDER BY turn DESC LIMIT $3");
    let found: Vec<Columns> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(thread.to_string()).bind(team).bind(most).fetch_all(pool).await?);
    found.into_iter().rev().map(row).collect()
}

/// Whether a place in a thread is taken. Under the lock of the thread's team it stays as it is until the transaction ends.
pub async fn is_taken(tx: &mut Tx, (thread, turn): (Uuid, i64)) -> StoreResult<bool> {
    const SQL: &str = "SELECT COUNT(*) FROM task WHERE thread_id = $1 AND turn >= $2";
    let (runs,): (i64,) =
        on_db!(tx, |conn| sqlx::query_as(SQL).bind(thread.to_string()).bind(turn).fetch_one(conn).await?);
    Ok(runs > 0)
}

/// The tasks that a worker has by the rows, each with the epoch of its claim.
pub async fn held_by(db: &Db, worker: WorkerId) -> StoreResult<Vec<(JobId, i64)>> {
    const SQL: &str = "SELECT job_id, epoch FROM task WHERE owner = $1 LIMIT 1000";
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(worker).fetch_all(pool).await?))
}

/// Lets tasks go that a worker has by the rows alone, and calls for them.
pub async fn put_back(tx: &mut Tx, worker: WorkerId, lost: &[(JobId, i64)], now: Timestamp) -> StoreResult<()> {
    const SQL: &str = "UPDATE task SET owner = NULL, due_at = CASE WHEN due_at IS NULL THEN NULL ELSE $4 END \
        WHERE job_id = $1 AND epoch = $2 AND owner = $3";
    let mut jobs = Vec::new();
    for (job, epoch) in lost {
        let freed = on_db!(tx, |conn| {
            sqlx::query(SQL).bind(job).bind(epoch).bind(worker).bind(now).execute(conn).await?.rows_affected()
        });
        jobs.extend((freed > 0).then_some(*job));
    }
    queue::remind_tasks(tx, &jobs).await
}

/// Takes back the tasks of dead workers, and calls for those that are due and that nobody has come for.
pub async fn remind(db: &Db, forgotten: Timestamp, now: Timestamp) -> StoreResult<()> {
    const ORPHANS: &str = sql!(
        "UPDATE task SET owner = NULL, due_at = CASE WHEN due_at IS NULL THEN NULL ELSE $1 END WHERE owner IS NOT NULL \
         AND NOT EXISTS (SELECT 1 FROM worker_node WHERE worker_node.id = task.owner AND worker_node.state <> ",
        NodeState::Dead.sql(),
        ") RETURNING job_id"
    );
    const DUE: &str =
        "SELECT job_id FROM task WHERE due_at IS NOT NULL AND due_at <= $1 AND owner IS NULL ORDER BY due_at LIMIT $2";
    const SOME: &str = "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM task WHERE owner IS NOT NULL LIMIT 1) AS held) + \
        (SELECT COUNT(*) FROM (SELECT 1 FROM task WHERE due_at IS NOT NULL LIMIT 1) AS due)";
    let some: (i64,) = on_pool!(db, |pool| sqlx::query_as(SOME).fetch_one(pool).await?);
    if some.0 == 0 {
        return Ok(());
    }
    let mut tx = db.begin().await?;
    let mut jobs: Vec<(JobId,)> = on_db!(&mut tx, |conn| sqlx::query_as(ORPHANS).bind(now).fetch_all(conn).await?);
    let due: Vec<(JobId,)> =
        on_db!(&mut tx, |conn| sqlx::query_as(DUE).bind(forgotten).bind(REMINDED).fetch_all(conn).await?);
    jobs.extend(due);
    let jobs: Vec<JobId> = jobs.into_iter().map(|row| row.0).collect();
    queue::remind_tasks(&mut tx, &jobs).await?;
    tx.commit().await
}

/// What is left of a run for the model of the next one: its answer, cut.
pub fn answer_of(outcome: Option<&TaskOutcome>, most: usize) -> String {
    let Some(outcome) = outcome else { return String::new() };
    let data = outcome.data.as_ref().or(outcome.partial.as_ref());
    let text = match (&outcome.message, data) {
        (Some(message), _) => message.clone(),
        (None, Some(data)) => data.to_string(),
        (None, None) => outcome.error.clone().unwrap_or_default(),
    };
    text[..text.floor_char_boundary(most)].to_owned()
}

#[cfg(test)]
#[path = "tasks_tests.rs"]
mod tests;
