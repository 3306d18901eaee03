//! The producing side of the queue library. Its tables and its channel are also named where statements touch them: in
//! `store` (`mod`, `nodes`, `pages`) and `wake`.
//!
//! A wake-up is an invitation to look, never the truth: our rows own every state. It is pushed in the transaction that
//! changes the rows, so both commit or neither does. A wake-up delivered twice, late or for nothing is harmless,
//! because every claim is fenced in our tables; a lost one is sent again by the sweeper.
//!
//! | queue | a wake-up says |
//! |---|---|
//! | `scrape` | somebody waits for this page |
//! | `lane` | this team has pages to claim: take turns with the other teams' wake-ups |
//! | `webhook` | this job has deliveries to make |
//! | `task` | this extraction or agent may go on |

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use apalis_core::task::Task;
use apalis_core::task::builder::TaskBuilder;
use apalis_core::task::task_id::TaskId;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::clock;
use crate::ids::{JobId, PageId, TeamId, WorkerId};
use crate::random;
use crate::store::db::signals::Signal;
use crate::store::db::sql::sql;
use crate::store::{Db, PostgresDb, StoreError, StoreResult, Tx};
use crate::time::Timestamp;

/// A place in the line of pages that somebody waits for, in which teams take turns: a page has the turn of whoever is first
/// there, or the one after its team's last, so that a team with a thousand callers keeps no other's page waiting for more
/// than one of its own. Where nobody waits the turns begin anew.
///
/// The library serves what is due longest. So turn `n` is written as due `n` seconds after 1970, which is long ago for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, sqlx::Type)]
#[sqlx(transparent)]
pub struct Turn(i64);

impl Turn {
    /// The one after it.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The library's own statement for the wake-up of a page that somebody waits for, as a part of the one that writes a
/// scrape: its parameters are the fields of a [`PageWakeup`]. It answers with the turn. With the wake-up nothing is
/// promised yet, so on Postgres its transaction waits for no disk.
macro_rules! insert_wakeup {
    (sqlite $id:literal $queue:literal $payload:literal $attempts:literal $after:literal) => {
        concat!(
            "INSERT INTO Jobs (id, job_type, job, status, attempts, max_attempts, run_at, priority, metadata) SELECT ",
            $id, ", ", $queue, ", ", $payload, ", 'Pending', 0, ", $attempts,
            ", CASE WHEN first IS NULL THEN 0 ELSE MIN(unixepoch(), MAX(first, ", $after, ")) END, 0, '{}' \
             FROM (SELECT (SELECT run_at FROM Jobs WHERE job_type = 'scrape' AND status = 'Pending' AND lock_by IS NULL \
             AND priority = 0 ORDER BY run_at LIMIT 1) AS first) RETURNING run_at"
        )
    };
    (postgres $id:literal $queue:literal $payload:literal $attempts:literal $after:literal) => {
        concat!(
            "INSERT INTO apalis.jobs (id, job_type, job, status, attempts, max_attempts, run_at, priority) SELECT ",
            $id, ", ", $queue, ", ", $payload, ", 'Pending', 0, ", $attempts,
            ", CASE WHEN first IS NULL THEN to_timestamp(0) \
             ELSE LEAST(date_trunc('second', NOW()), GREATEST(first, to_timestamp(CAST(", $after, " AS BIGINT)))) END, 0 \
             FROM (SELECT (SELECT run_at FROM apalis.jobs WHERE job_type = 'scrape' AND status = 'Pending' \
             AND lock_by IS NULL ORDER BY priority DESC, run_at LIMIT 1) AS first) AS line, \
             set_config('synchronous_commit', 'off', TRUE) RETURNING CAST(EXTRACT(EPOCH FROM run_at) AS BIGINT) AS turn"
        )
    };
}
pub(crate) use insert_wakeup;

/// The next waiting wake-up of [`SCRAPE_QUEUE`] as the library would fetch it, as a part of the statement that claims
/// its page: `id`, `team` and `page` of it.
///
/// A wake-up that this version cannot read is an error of the statement, or names no page; the library delivers it.
macro_rules! next_wakeup {
    (sqlite $field:literal) => {
        concat!(
            "(SELECT ",
            $field,
            " FROM Jobs WHERE job_type = 'scrape' AND status = 'Pending' AND lock_by IS NULL \
             AND run_at <= unixepoch() ORDER BY priority DESC, run_at, id LIMIT 1)"
        )
    };
    (postgres) => {
        "(SELECT id, says ->> 'team' AS team, says ->> 'page' AS page FROM (SELECT id, \
         convert_from(job, 'UTF8')::json AS says FROM apalis.jobs WHERE job_type = 'scrape' AND status = 'Pending' \
         AND lock_by IS NULL AND run_at <= NOW() ORDER BY priority DESC, run_at LIMIT 1 FOR UPDATE SKIP LOCKED) AS next)"
    };
}
pub(crate) use next_wakeup;

/// Queue of [`Wakeup::Scrape`]. Names are fixed: renaming one would strand its wake-ups.
pub const SCRAPE_QUEUE: &str = "scrape";
/// Queue of [`Wakeup::Team`].
pub const TEAM_QUEUE: &str = "lane";
/// Queue of [`Wakeup::Webhook`].
pub const WEBHOOK_QUEUE: &str = "webhook";
/// Queue of [`Wakeup::Task`].
pub const TASK_QUEUE: &str = "task";

/// Wake-ups a new batch sends at most: enough for several workers to join in at once.
const TEAM_WAKEUPS_AT_START: usize = 4;

/// The signal that tells other processes of a wake-up.
pub(crate) const SIGNALS: [(&str, Signal); 4] = [
    (SCRAPE_QUEUE, Signal::Scrape),
    (TEAM_QUEUE, Signal::Team),
    (WEBHOOK_QUEUE, Signal::Webhook),
    (TASK_QUEUE, Signal::Task),
];

/// How much older a wake-up says it is. Postgres tells of a wake-up that is due when its transaction began, by its own
/// clock: of one that is a second younger nobody would hear.
const BACKDATED: Duration = Duration::from_secs(5);

/// Waiting wake-ups that a reminder compares itself with.
const WAITING_READ: i64 = 10_000;

/// Tries the library may make when a handler meets a dead database.
const WAKEUP_ATTEMPTS: usize = 5;

/// What a wake-up carries: ids only, with a version for the day the shape changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Wakeup {
    Scrape {
        v: u8,
        team: TeamId,
        page: PageId,
    },
    #[serde(rename = "lane")]
    Team {
        v: u8,
        team: TeamId,
    },
    Webhook {
        v: u8,
        job: JobId,
    },
    Task {
        v: u8,
        job: JobId,
    },
}

impl Wakeup {
    /// Reads a delivered payload. `None`: not ours or of a version we do not know; acknowledge and forget it.
    pub fn parse(payload: &serde_json::Value) -> Option<Self> {
        serde_json::from_value(payload.clone()).ok().filter(|t: &Wakeup| t.version() == 1)
    }

    fn version(&self) -> u8 {
        match self {
            Self::Scrape { v, .. } | Self::Team { v, .. } | Self::Webhook { v, .. } | Self::Task { v, .. } => *v,
        }
    }

    fn queue(&self) -> &'static str {
        match self {
            Self::Scrape { .. } => SCRAPE_QUEUE,
            Self::Team { .. } => TEAM_QUEUE,
            Self::Webhook { .. } => WEBHOOK_QUEUE,
            Self::Task { .. } => TASK_QUEUE,
        }
    }
}

/// The wake-up of a page that somebody waits for, for `insert_wakeup!`.
pub(crate) struct PageWakeup {
    pub id: String,
    pub queue: &'static str,
    pub payload: Vec<u8>,
    pub attempts: i64,
    /// No turn before this one is taken.
    pub not_before: Turn,
}

impl PageWakeup {
    pub fn new(team: TeamId, page: PageId, not_before: Turn) -> StoreResult<Self> {
        Ok(Self {
            id: Ulid::from(page.0.as_u128()).to_string(),
            queue: SCRAPE_QUEUE,
            payload: serde_json::to_vec(&Wakeup::Scrape { v: 1, team, page })?,
            attempts: WAKEUP_ATTEMPTS as i64,
            not_before,
        })
    }
}

/// For a page somebody waits for, after its rows are inserted; in the first turn from `not_before` on that its team may have.
/// Returns the turn.
pub async fn page_wakeup(tx: &mut Tx, team: TeamId, page: PageId, not_before: Turn) -> StoreResult<Turn> {
    tx.tell(Signal::Scrape);
    let wakeup = PageWakeup { id: random::wakeup_id().to_string(), ..PageWakeup::new(team, page, not_before)? };
    macro_rules! push {
        ($database:ident, $conn:expr) => {
            sqlx::query_scalar(insert_wakeup!($database "$1" "$2" "$3" "$4" "$5"))
                .bind(wakeup.id)
                .bind(wakeup.queue)
                .bind(wakeup.payload)
                .bind(wakeup.attempts)
                .bind(wakeup.not_before)
                .fetch_one($conn)
                .await?
        };
    }
    match tx {
        Tx::Sqlite(tx) => Ok(push!(sqlite, &mut **tx)),
        Tx::Postgres(tx) => Ok(push!(postgres, &mut **tx)),
    }
}

/// For a batch, after its rows are inserted: invitations for as many workers as could help.
pub async fn team_wakeups(tx: &mut Tx, team: TeamId, pages: usize) -> StoreResult<()> {
    push(tx, Wakeup::Team { v: 1, team }, pages.min(TEAM_WAKEUPS_AT_START), Duration::ZERO).await
}

/// One more invitation for a team, after `pause` (whole seconds, rounded up).
pub async fn team_wakeup(tx: &mut Tx, team: TeamId, pause: Duration) -> StoreResult<()> {
    push(tx, Wakeup::Team { v: 1, team }, 1, pause).await
}

/// For a job with deliveries to make, after `pause` (whole seconds, rounded up).
pub async fn webhook_wakeup(tx: &mut Tx, job: JobId, pause: Duration) -> StoreResult<()> {
    push(tx, Wakeup::Webhook { v: 1, job }, 1, pause).await
}

/// For a task that may go on, after `pause` (whole seconds, rounded up).
pub async fn task_wakeup(tx: &mut Tx, job: JobId, pause: Duration) -> StoreResult<()> {
    push(tx, Wakeup::Task { v: 1, job }, 1, pause).await
}

/// Invitations for teams, in case one was lost: to those that no wake-up that is due invites already, or a queue that is
/// slower than the reminders would grow by them.
pub async fn remind_teams(tx: &mut Tx, teams: &[TeamId]) -> StoreResult<()> {
    remind(tx, TEAM_QUEUE, teams.iter().map(|team| Wakeup::Team { v: 1, team: *team })).await
}

/// The same for jobs with deliveries to make.
pub async fn remind_webhooks(tx: &mut Tx, jobs: &[JobId]) -> StoreResult<()> {
    remind(tx, WEBHOOK_QUEUE, jobs.iter().map(|job| Wakeup::Webhook { v: 1, job: *job })).await
}

/// The same for tasks that may go on.
pub async fn remind_tasks(tx: &mut Tx, jobs: &[JobId]) -> StoreResult<()> {
    remind(tx, TASK_QUEUE, jobs.iter().map(|job| Wakeup::Task { v: 1, job: *job })).await
}

async fn remind(tx: &mut Tx, queue: &str, wakeups: impl ExactSizeIterator<Item = Wakeup>) -> StoreResult<()> {
    const SQLITE: &str = "SELECT job FROM Jobs WHERE job_type = $1 AND status = 'Pending' AND lock_by IS NULL \
        AND priority = 0 AND run_at <= unixepoch() LIMIT $2";
    const POSTGRES: &str = "SELECT job FROM apalis.jobs WHERE job_type = $1 AND (status = 'Pending' \
        OR (status = 'Failed' AND attempts < max_attempts)) AND priority = 0 AND run_at < NOW() LIMIT $2";
    if wakeups.len() == 0 {
        return Ok(());
    }
    let waiting: Vec<(Vec<u8>,)> = match tx {
        Tx::Sqlite(tx) => sqlx::query_as(SQLITE).bind(queue).bind(WAITING_READ).fetch_all(&mut **tx).await?,
        Tx::Postgres(tx) => sqlx::query_as(POSTGRES).bind(queue).bind(WAITING_READ).fetch_all(&mut **tx).await?,
    };
    if waiting.len() as i64 == WAITING_READ {
        // Those that wait already are served first, so a reminder would change nothing.
        return Ok(());
    }
    let waiting: HashSet<Vec<u8>> = waiting.into_iter().map(|row| row.0).collect();
    for wakeup in wakeups {
        if !waiting.contains(&serde_json::to_vec(&wakeup)?) {
            push(tx, wakeup, 1, Duration::ZERO).await?;
        }
    }
    Ok(())
}

/// The queues that hold wake-ups which are due, with how many; no more are counted than are served at once.
pub async fn due(db: &Db) -> StoreResult<Vec<(String, i64)>> {
    // The two libraries keep time and state differently, and each has an index of its own for it.
    macro_rules! one_queue {
        (sqlite $name:literal) => {
            concat!(
                "SELECT '",
                $name,
                "' AS name, (SELECT COUNT(*) FROM (SELECT 1 FROM Jobs WHERE job_type = '",
                $name,
                "' AND status = 'Pending' AND lock_by IS NULL AND priority = 0 AND run_at <= unixepoch() LIMIT 1000)) \
                 + (SELECT COUNT(*) FROM (SELECT 1 FROM Jobs WHERE job_type = '",
                $name,
                "' AND status = 'Failed' AND attempts < max_attempts AND priority = 0 AND run_at <= unixepoch() \
                 LIMIT 1000))"
            )
        };
        (postgres $name:literal) => {
            concat!(
                "SELECT '",
                $name,
                "' AS name, (SELECT COUNT(*) FROM (SELECT 1 FROM apalis.jobs WHERE job_type = '",
                $name,
                "' AND (status = 'Pending' OR (status = 'Failed' AND attempts < max_attempts)) AND priority = 0 \
                 AND run_at < NOW() LIMIT 1000) AS counted)"
            )
        };
    }
    macro_rules! all_queues {
        ($database:ident) => {
            concat!(
                one_queue!($database "scrape"),
                " UNION ALL ",
                one_queue!($database "lane"),
                " UNION ALL ",
                one_queue!($database "webhook"),
                " UNION ALL ",
                one_queue!($database "task")
            )
        };
    }
    let mut due: Vec<(String, i64)> = match db {
        Db::Sqlite(db) => sqlx::query_as(all_queues!(sqlite)).fetch_all(&db.pool).await?,
        Db::Postgres(PostgresDb { pool, .. }) => sqlx::query_as(all_queues!(postgres)).fetch_all(pool).await?,
    };
    due.retain(|(_, wakeups)| *wakeups > 0);
    Ok(due)
}

/// Gives back what a worker that has ended has in hand: wake-ups whose end could not be told, because the database was
/// away just then, would otherwise lie there until the library misses the worker. They carry the worker's id up to the
/// first `/` of their holder's name.
pub(crate) async fn give_back(tx: &mut Tx, worker: WorkerId) -> StoreResult<()> {
    const SQLITE: &str = "UPDATE Jobs SET status = 'Pending', done_at = NULL, lock_by = NULL, lock_at = NULL \
        WHERE lock_by IN (SELECT id FROM Workers WHERE id LIKE $1) AND status IN ('Queued', 'Running')";
    const POSTGRES: &str = "UPDATE apalis.jobs SET status = 'Pending', done_at = NULL, lock_by = NULL, lock_at = NULL \
        WHERE lock_by IN (SELECT id FROM apalis.workers WHERE id LIKE $1) AND status IN ('Queued', 'Running')";
    let names = format!("{worker}/%");
    match tx {
        Tx::Sqlite(tx) => sqlx::query(SQLITE).bind(names).execute(&mut **tx).await?.rows_affected(),
        Tx::Postgres(tx) => sqlx::query(POSTGRES).bind(names).execute(&mut **tx).await?.rows_affected(),
    };
    Ok(())
}

/// Wake-ups that are done with, given up ones among them: a table and its condition.
pub(crate) const DONE_ON_SQLITE: &str = "Jobs WHERE status IN ('Done', 'Failed', 'Killed') AND done_at < unixepoch() - 5 \
    AND (status <> 'Failed' OR attempts >= max_attempts)";
/// The same.
pub(crate) const DONE_ON_POSTGRES: &str = "apalis.jobs WHERE done_at < now() - interval '5 seconds' \
    AND (status IN ('Done', 'Killed') OR (status = 'Failed' AND attempts >= max_attempts))";

/// Removes up to `limit` of them. Returns how many.
pub(crate) async fn remove_done(tx: &mut Tx, limit: i64) -> StoreResult<u64> {
    const SQLITE: &str = sql!("DELETE FROM Jobs WHERE rowid IN (SELECT rowid FROM ", DONE_ON_SQLITE, " LIMIT $1)");
    const POSTGRES: &str = sql!(
        "DELETE FROM apalis.jobs WHERE id IN (SELECT id FROM ",
        DONE_ON_POSTGRES,
        " LIMIT $1 FOR UPDATE SKIP LOCKED)"
    );
    Ok(match tx {
        Tx::Sqlite(tx) => sqlx::query(SQLITE).bind(limit).execute(&mut **tx).await?.rows_affected(),
        Tx::Postgres(tx) => sqlx::query(POSTGRES).bind(limit).execute(&mut **tx).await?.rows_affected(),
    })
}

/// Removes the library's records of workers long gone that hold no wake-up.
pub(crate) async fn remove_workers(tx: &mut Tx) -> StoreResult<()> {
    const SQLITE: &str = "DELETE FROM Workers WHERE last_seen < strftime('%s', 'now') - 600 \
        AND NOT EXISTS (SELECT 1 FROM Jobs WHERE Jobs.lock_by = Workers.id)";
    const POSTGRES: &str = "DELETE FROM apalis.workers w WHERE last_seen < now() - interval '10 minutes' \
        AND NOT EXISTS (SELECT 1 FROM apalis.jobs j WHERE j.lock_by = w.id)";
    match tx {
        Tx::Sqlite(tx) => sqlx::query(SQLITE).execute(&mut **tx).await?.rows_affected(),
        Tx::Postgres(tx) => sqlx::query(POSTGRES).execute(&mut **tx).await?.rows_affected(),
    };
    Ok(())
}

/// The queue that a notification of the library about a new wake-up names.
pub(crate) fn named_in(notification: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Notification {
        job_type: String,
    }
    serde_json::from_str::<Notification>(notification).ok().map(|n| n.job_type)
}

async fn push(tx: &mut Tx, wakeup: Wakeup, count: usize, pause: Duration) -> StoreResult<()> {
    let payload = serde_json::to_vec(&wakeup)?;
    let at = run_at(clock::of_database(), pause);
    let tasks: Vec<Task<Vec<u8>>> =
        (0..count).map(|_| task(payload.clone()).max_attempts(WAKEUP_ATTEMPTS).run_at_time(at).build()).collect();
    push_raw(tx, wakeup.queue(), tasks).await
}

/// A wake-up whose id comes after those of the wake-ups before: of those that are due in the same second SQLite takes the
/// one with the first id, and the library's own ids are in no order within a millisecond.
fn task(payload: Vec<u8>) -> TaskBuilder<Vec<u8>> {
    TaskBuilder::new(payload).task_id(TaskId::from_string(random::wakeup_id().to_string()))
}

/// When a wake-up is due, by the database's clock: a machine whose clock is ahead would send it into the future.
fn run_at(now: Timestamp, pause: Duration) -> SystemTime {
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now.0.unsigned_abs());
    if pause.is_zero() { now - BACKDATED } else { now + pause + Duration::from_millis(999) }
}

/// Pushes any payload: tests send broken ones.
pub async fn push_raw(tx: &mut Tx, queue: &str, tasks: Vec<Task<Vec<u8>>>) -> StoreResult<()> {
    if let Some((_, signal)) = SIGNALS.iter().find(|(name, _)| *name == queue) {
        tx.tell(*signal);
    }
    // The two libraries differ in how they take the tasks.
    match tx {
        Tx::Sqlite(tx) => apalis_sqlite::queries::push_tasks(&mut **tx, queue, &tasks)
            .await
            .map_err(|e| StoreError::Unavailable(sqlx::Error::AnyDriverError(Box::new(e)))),
        Tx::Postgres(tx) => apalis_postgres::queries::push_tasks(&mut **tx, queue, tasks)
            .await
            .map_err(|e| StoreError::Unavailable(sqlx::Error::AnyDriverError(Box::new(e)))),
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
