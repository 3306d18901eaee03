//! The consuming side of the queue: one library worker a queue, fenced against the library's known defects.
//!
//! | defect of the library | fence |
//! |---|---|
//! | a poll timer that is never polled again loses wake-ups | [`crate::queue::wakeup_source`] fetches, and polls its source until it has our waker |
//! | fetched tickets wait in memory without heartbeat | one ticket a fetch; [`crate::node`] beats for every worker |
//! | no heartbeat while draining | the same independent heartbeat, until the drain ends |
//! | a delayed retry strands or storms | handlers never ask for one; retries are our own tickets |
//! | a plain error is retried at once | handlers answer an error only when a claim could not reach the database, after a pause |
//! | a panic leaves a ticket running for ever | a handler runs in its own task; its panic is an ordinary end |
//! | a payload that cannot be read kills the worker | payloads are bytes to the library; ours are parsed in the handler |
//! | rescued tickets have no ceiling | pages count their own claims |

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::time::Duration;

use apalis::prelude::*;
use apalis_core::backend::codec::Codec;
use apalis_core::backend::ext::BackendExt;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use weir_shared::queue::{self, LANE_QUEUE, SCRAPE_QUEUE, Ticket, WEBHOOK_QUEUE};
use weir_shared::store::{Db, StoreResult};
use weir_shared::wake::Wake;

use crate::context::WorkerContext;
use crate::dispatch::{direct, team};
use crate::jobs::deliver_webhook;
use crate::queue::wakeup_source::{Due, OnCall, PostgresTickets, SqliteTickets};

/// Tickets of each queue in work at once.
const QUEUES: [(&str, usize); 3] = [(SCRAPE_QUEUE, 64), (LANE_QUEUE, 16), (WEBHOOK_QUEUE, 8)];
/// Scrapes that wait for a free place without having fetched their ticket.
const TAKERS: usize = 64;
/// Backstop of the wake-up.
const TICK: Duration = Duration::from_secs(2);
/// From a look that found tickets, or from a signal that may stand for several, to the next look.
const LATE: Duration = Duration::from_millis(15);
/// How much later a worker without a free slot looks for what it is told of.
const COURTESY: Duration = Duration::from_millis(10);
/// Pause before an error is handed to the library, which tries again at once.
const ERROR_PAUSE: Duration = Duration::from_millis(500);

/// One library worker.
#[derive(Debug, Clone)]
pub struct Consumer {
    pub queue: &'static str,
    /// Tickets in work at once, 1 upwards.
    pub concurrency: usize,
    /// Unique for each start. The part before the first `/` is the worker's id, for the heartbeat.
    pub name: String,
    /// The library's own heartbeat: also how often it looks for orphans.
    pub heartbeat: Duration,
    /// Heartbeats missed before a ticket counts as an orphan.
    pub missed: usize,
}

/// Consumes every queue until the worker drains; each library worker is started again when it ends early.
pub fn start(context: &Arc<WorkerContext>, tickets: &Db) -> Vec<tokio::task::JoinHandle<()>> {
    let mut calls = HashMap::new();
    let mut tasks = Vec::new();
    for (queue, concurrency) in QUEUES {
        let due = Arc::new(Due::default());
        calls.insert(queue, Arc::downgrade(&due));
        tasks.push(tokio::spawn(supervise(Arc::clone(context), tickets.clone(), queue, concurrency, due)));
    }
    let scrapes = calls.get(SCRAPE_QUEUE).cloned().unwrap_or_default();
    let lanes = calls.get(LANE_QUEUE).cloned().unwrap_or_default();
    let (worker, takers) = (Arc::downgrade(context), Arc::new(Semaphore::new(TAKERS)));
    let ahead = move |queue: &str, told: u64| match worker.upgrade() {
        Some(context) if queue == SCRAPE_QUEUE => take_ahead(&context, &takers, &scrapes, told),
        Some(context) if queue == LANE_QUEUE && context.process.slots.is_full() => {
            give_way(lanes.clone(), told);
            0
        }
        _ => told,
    };
    tokio::spawn(look_out(tickets.clone(), context.process.wake.clone(), calls, ahead));
    tasks
}

/// Claims the pages somebody waits for without the library's round: its tickets are fetched, claimed and acknowledged
/// in three steps, a page and its ticket are taken in one. What cannot be claimed so goes the library's way, which also
/// delivers what nobody was told of. Returns how many tickets are not tried.
fn take_ahead(context: &Arc<WorkerContext>, takers: &Arc<Semaphore>, scrapes: &Weak<Due>, told: u64) -> u64 {
    for tried in 0..told {
        let Ok(taker) = Arc::clone(takers).try_acquire_owned() else { return told - tried };
        let (context, scrapes) = (Arc::clone(context), scrapes.clone());
        tokio::spawn(async move {
            let claimed = direct::serve_next(&context).await;
            if let Err(error) = &claimed {
                tracing::debug!(%error, "the next scrape could not be claimed; its ticket is fetched");
            }
            if !claimed.unwrap_or(false)
                && let Some(due) = scrapes.upgrade()
            {
                due.add(1);
            }
            drop(taker);
        });
    }
    0
}

/// Leaves tickets for a moment to workers with a free slot.
fn give_way(lanes: Weak<Due>, told: u64) {
    tokio::spawn(async move {
        tokio::time::sleep(COURTESY).await;
        if let Some(due) = lanes.upgrade() {
            due.add(told);
        }
    });
}

/// Calls a queue's worker when the queue holds a ticket that is due, so that only then it fetches: a fetch writes, and
/// on SQLite stands in line with every other write, while this look is one read whatever the number of queues. Of
/// tickets it is told of, `ahead` may see to some itself and says how many are left.
async fn look_out(
    tickets: Db,
    wake: Wake,
    calls: HashMap<&'static str, Weak<Due>>,
    ahead: impl Fn(&str, u64) -> u64 + Send,
) {
    let due_in = |queue: &str| calls.get(queue).and_then(Weak::upgrade);
    // Signals of a file that come together count as one; notifications do not.
    let may_be_more = matches!(tickets, Db::Sqlite(_));
    let mut signals = wake.subscribe();
    // What came before we listened.
    let mut next_look = Instant::now();
    while calls.values().any(|due| due.strong_count() > 0) {
        let _ = tokio::time::timeout_at(next_look, signals.changed()).await;
        signals.borrow_and_update();
        // Told of tickets, there is nothing to ask.
        let told = wake.take_told();
        if !told.is_empty() {
            for (queue, count) in told {
                let left = ahead(&queue, count);
                if left > 0
                    && let Some(due) = due_in(&queue)
                {
                    due.add(left);
                }
            }
            let now = Instant::now();
            if may_be_more {
                next_look = next_look.min(now + LATE);
            }
            if now < next_look {
                continue;
            }
        }
        match queue::due(&tickets).await {
            Ok(due) => {
                // A fetch under way may have looked too early for what is there now.
                next_look = Instant::now() + if due.is_empty() { TICK } else { LATE };
                for (queue, count) in due {
                    if let Some(due) = due_in(&queue) {
                        due.at_least(count.unsigned_abs());
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot look for tickets; it is tried again");
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }
}

async fn supervise(context: Arc<WorkerContext>, tickets: Db, queue: &'static str, concurrency: usize, due: Arc<Due>) {
    let mut life = 0_u32;
    while !context.draining.is_cancelled() && !context.fenced.is_cancelled() {
        let name = format!("{}/{queue}/{life}", context.id);
        let consumer = Consumer { queue, concurrency, name, heartbeat: Duration::from_secs(10), missed: 2 };
        life += 1;
        let stop = {
            let (draining, fenced) = (context.draining.clone(), context.fenced.clone());
            async move {
                tokio::select! {
                    () = draining.cancelled() => {}
                    () = fenced.cancelled() => {}
                }
            }
        };
        let worker = Arc::clone(&context);
        let handler = move |payload: Vec<u8>| dispatch(Arc::clone(&worker), payload);
        if let Err(error) = consume(tickets.clone(), consumer, Arc::clone(&due), stop, handler).await {
            tracing::warn!(queue, %error, "a queue worker ended; it is started again");
            tokio::time::sleep(ERROR_PAUSE).await;
        }
    }
}

/// Runs one library worker until `stop`, then waits for the tickets under way. It fetches what is `due`.
pub fn consume<Handler, Work>(
    tickets: Db,
    consumer: Consumer,
    due: Arc<Due>,
    stop: impl Future<Output = ()> + Send + 'static,
    handler: Handler,
) -> BoxFuture<'static, Result<(), WorkerError>>
where
    Handler: Fn(Vec<u8>) -> Work + Clone + Send + Sync + 'static,
    Work: Future<Output = StoreResult<()>> + Send + 'static,
{
    let stop = async move {
        stop.await;
        Ok::<(), WorkerError>(())
    };
    let handler = move |payload: Vec<u8>| isolated(handler(payload));
    // The two libraries share no type, so the assembly is written twice.
    match &tickets {
        Db::Sqlite(db) => {
            let config = apalis_sqlite::Config::default()
                .queue(consumer.queue)
                .batch_size(1)
                .lock_tasks(false)
                .heartbeat_interval(consumer.heartbeat)
                .missed_heartbeats(consumer.missed);
            let tickets = SqliteTickets { writes: db.writes.clone(), config: config.clone() };
            let backend =
                apalis_sqlite::SqliteStorage::<Vec<u8>>::new(&db.writes).with_config(config).with_codec(Bytes);
            let backend = OnCall::new(backend, tickets, due);
            let worker = WorkerBuilder::new(consumer.name).backend(backend).concurrency(consumer.concurrency);
            worker.build(handler).run_until(stop).boxed()
        }
        Db::Postgres(pool) => {
            let config = apalis_postgres::Config::default()
                .queue(consumer.queue)
                .batch_size(1)
                .lock_tasks(false)
                .heartbeat_interval(consumer.heartbeat)
                .missed_heartbeats(consumer.missed);
            let tickets = PostgresTickets { pool: pool.clone(), config: config.clone() };
            let backend = apalis_postgres::PostgresStorage::<Vec<u8>>::new(pool).with_config(config).with_codec(Bytes);
            let backend = OnCall::new(backend, tickets, due);
            let worker = WorkerBuilder::new(consumer.name).backend(backend).concurrency(consumer.concurrency);
            worker.build(handler).run_until(stop).boxed()
        }
    }
}

/// One ticket, in a task of its own: a panic in it is logged and the ticket acknowledged (our sweeper sends another
/// for work that was left), and the library's worker may end without taking the work down.
async fn isolated(work: impl Future<Output = StoreResult<()>> + Send + 'static) -> Result<(), BoxDynError> {
    match tokio::spawn(work).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            tracing::warn!(%error, "a ticket could not be served; it is delivered again");
            tokio::time::sleep(ERROR_PAUSE).await;
            Err(error.into())
        }
        Err(panic) => {
            tracing::error!(%panic, "a ticket's handler panicked; the ticket is dropped");
            Ok(())
        }
    }
}

async fn dispatch(context: Arc<WorkerContext>, payload: Vec<u8>) -> StoreResult<()> {
    let ticket = serde_json::from_slice(&payload).ok().and_then(|value| Ticket::parse(&value));
    match ticket {
        Some(Ticket::Scrape { team, page, .. }) => direct::serve(&context, team, page).await,
        Some(Ticket::Lane { team, .. }) => team::dispatch(&context, team).await,
        Some(Ticket::Webhook { job, .. }) => deliver_webhook::run(&context, job).await,
        None => {
            tracing::warn!(bytes = payload.len(), "a ticket that this version cannot read is dropped");
            Ok(())
        }
    }
}

/// Payloads pass through the library as they are: it never parses them.
#[derive(Debug, Clone, Copy)]
pub struct Bytes;

impl Codec<Vec<u8>> for Bytes {
    type Error = Infallible;
    type Compact = Vec<u8>;

    fn encode(&self, val: &Vec<u8>) -> Result<Vec<u8>, Infallible> {
        Ok(val.clone())
    }

    fn decode(&self, val: &Vec<u8>) -> Result<Vec<u8>, Infallible> {
        Ok(val.clone())
    }
}

#[cfg(test)]
#[path = "consumer_tests.rs"]
mod tests;
