//! The producing side of the queue: the only file here that knows the queue library.
//!
//! A ticket is an invitation to look, never the truth: our rows own every state. It is pushed in the transaction that
//! changes the rows, so both commit or neither does. A ticket delivered twice, late or for nothing is harmless,
//! because every claim is fenced in our tables; a lost one is sent again by the sweeper.
//!
//! | queue | a ticket says |
//! |---|---|
//! | `scrape` | somebody waits for this page |
//! | `lane` | this team has pages to claim: take turns with the other teams' tickets |
//! | `webhook` | this job has deliveries to make |

use std::time::{Duration, SystemTime};

use apalis_core::task::Task;
use apalis_core::task::builder::TaskBuilder;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::ids::{JobId, PageId, TeamId};
use crate::store::signals::Signal;
use crate::store::{Db, StoreError, StoreResult, Tx};

/// The library's own statement for a ticket, as a part of the one that writes a scrape: `$21` to `$24` are the fields of a
/// [`ScrapeTicket`]. Times are whole seconds, so that a fetch that began just before takes it too. With the ticket
/// nothing is promised yet, so on Postgres its transaction waits for no disk.
macro_rules! insert_ticket {
    (sqlite) => {
        "INSERT INTO Jobs (id, job_type, job, status, attempts, max_attempts, run_at, priority, metadata) \
         VALUES ($21, $22, $23, 'Pending', 0, $24, unixepoch(), 0, '{}')"
    };
    (postgres) => {
        "INSERT INTO apalis.jobs (id, job_type, job, status, attempts, max_attempts, run_at, priority) \
         SELECT $21, $22, $23, 'Pending', 0, $24, date_trunc('second', NOW()), 0 \
         FROM set_config('synchronous_commit', 'off', TRUE)"
    };
}
pub(crate) use insert_ticket;

/// The next waiting ticket of [`SCRAPE_QUEUE`] as the library would fetch it, as a part of the statement that claims
/// its page: `id`, `team` and `page` of it.
///
/// A ticket that this version cannot read is an error of the statement, or names no page; the library delivers it.
macro_rules! next_ticket {
    (sqlite $field:literal) => {
        concat!(
            "(SELECT ",
            $field,
            " FROM Jobs WHERE job_type = 'scrape' AND status = 'Pending' AND lock_by IS NULL \
             AND run_at <= unixepoch() ORDER BY run_at LIMIT 1)"
        )
    };
    (postgres) => {
        "(SELECT id, says ->> 'team' AS team, says ->> 'page' AS page FROM (SELECT id, \
         convert_from(job, 'UTF8')::json AS says FROM apalis.jobs WHERE job_type = 'scrape' AND status = 'Pending' \
         AND lock_by IS NULL AND run_at <= NOW() ORDER BY priority DESC, run_at LIMIT 1 FOR UPDATE SKIP LOCKED) AS next)"
    };
}
pub(crate) use next_ticket;

/// Queue of [`Ticket::Scrape`]. Names are fixed: renaming one would strand its tickets.
pub const SCRAPE_QUEUE: &str = "scrape";
/// Queue of [`Ticket::Lane`].
pub const LANE_QUEUE: &str = "lane";
/// Queue of [`Ticket::Webhook`].
pub const WEBHOOK_QUEUE: &str = "webhook";

/// Tickets a new batch sends at most: enough for several workers to join in at once.
const LANES_AT_START: usize = 4;

/// The signal that tells other processes of a ticket.
pub(crate) const SIGNALS: [(&str, Signal); 3] =
    [(SCRAPE_QUEUE, Signal::Scrape), (LANE_QUEUE, Signal::Lane), (WEBHOOK_QUEUE, Signal::Webhook)];

/// How much older a ticket says it is. Postgres tells of a ticket that is due when its transaction began, by its own
/// clock: of one that is a second younger nobody would hear.
const BACKDATED: Duration = Duration::from_secs(5);

/// Tries the library may make when a handler meets a dead database.
const TICKET_ATTEMPTS: usize = 5;

/// What a ticket carries: ids only, with a version for the day the shape changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ticket {
    Scrape { v: u8, team: TeamId, page: PageId },
    Lane { v: u8, team: TeamId },
    Webhook { v: u8, job: JobId },
}

impl Ticket {
    /// Reads a delivered payload. `None`: not ours or of a version we do not know; acknowledge and forget it.
    pub fn parse(payload: &serde_json::Value) -> Option<Self> {
        serde_json::from_value(payload.clone()).ok().filter(|t: &Ticket| t.version() == 1)
    }

    fn version(&self) -> u8 {
        match self {
            Self::Scrape { v, .. } | Self::Lane { v, .. } | Self::Webhook { v, .. } => *v,
        }
    }

    fn queue(&self) -> &'static str {
        match self {
            Self::Scrape { .. } => SCRAPE_QUEUE,
            Self::Lane { .. } => LANE_QUEUE,
            Self::Webhook { .. } => WEBHOOK_QUEUE,
        }
    }
}

/// The ticket of a direct scrape, for `insert_ticket!`.
pub(crate) struct ScrapeTicket {
    pub id: String,
    pub queue: &'static str,
    pub payload: Vec<u8>,
    pub attempts: i64,
}

impl ScrapeTicket {
    pub fn new(team: TeamId, page: PageId) -> StoreResult<Self> {
        Ok(Self {
            id: Ulid::from(page.0.as_u128()).to_string(),
            queue: SCRAPE_QUEUE,
            payload: serde_json::to_vec(&Ticket::Scrape { v: 1, team, page })?,
            attempts: TICKET_ATTEMPTS as i64,
        })
    }
}

/// For a page somebody waits for, after its rows are inserted.
pub async fn scrape_ticket(tx: &mut Tx, team: TeamId, page: PageId) -> StoreResult<()> {
    push(tx, Ticket::Scrape { v: 1, team, page }, 1, Duration::ZERO).await
}

/// For a batch, after its rows are inserted: invitations for as many workers as could help.
pub async fn page_tickets(tx: &mut Tx, team: TeamId, pages: usize) -> StoreResult<()> {
    push(tx, Ticket::Lane { v: 1, team }, pages.min(LANES_AT_START), Duration::ZERO).await
}

/// One more invitation for a team, after `pause` (whole seconds, rounded up).
pub async fn lane_ticket(tx: &mut Tx, team: TeamId, pause: Duration) -> StoreResult<()> {
    push(tx, Ticket::Lane { v: 1, team }, 1, pause).await
}

/// For a job with deliveries to make, after `pause` (whole seconds, rounded up).
pub async fn webhook_ticket(tx: &mut Tx, job: JobId, pause: Duration) -> StoreResult<()> {
    push(tx, Ticket::Webhook { v: 1, job }, 1, pause).await
}

/// The queues that hold tickets which are due, with how many.
pub async fn due(db: &Db) -> StoreResult<Vec<(String, i64)>> {
    // The two libraries keep time and state differently.
    const SQLITE: &str = "SELECT job_type, COUNT(*) FROM Jobs WHERE status IN ('Pending', 'Failed') \
        AND attempts < max_attempts AND run_at <= unixepoch() \
        GROUP BY job_type";
    const POSTGRES: &str = "SELECT job_type, COUNT(*) FROM apalis.jobs WHERE status IN ('Pending', 'Failed') \
        AND attempts < max_attempts AND run_at < NOW() \
        GROUP BY job_type";
    Ok(match db {
        Db::Sqlite(db) => sqlx::query_as(SQLITE).fetch_all(&db.reads).await?,
        Db::Postgres(pool) => sqlx::query_as(POSTGRES).fetch_all(pool).await?,
    })
}

/// The queue that a notification of the library about a new ticket names.
pub(crate) fn named_in(notification: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Notification {
        job_type: String,
    }
    serde_json::from_str::<Notification>(notification).ok().map(|n| n.job_type)
}

async fn push(tx: &mut Tx, ticket: Ticket, count: usize, pause: Duration) -> StoreResult<()> {
    let payload = serde_json::to_vec(&ticket)?;
    let tasks: Vec<Task<Vec<u8>>> = (0..count)
        .map(|_| {
            let task = TaskBuilder::new(payload.clone()).max_attempts(TICKET_ATTEMPTS);
            if pause.is_zero() {
                task.run_at_time(SystemTime::now() - BACKDATED).build()
            } else {
                task.run_after(pause + Duration::from_millis(999)).build()
            }
        })
        .collect();
    push_raw(tx, ticket.queue(), tasks).await
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
