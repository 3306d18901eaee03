//! The consuming side of the queue: one library worker a queue, fenced against the library's known defects.
//!
//! | defect of the library | fence |
//! |---|---|
//! | a poll timer that is never polled again loses wake-ups | [`crate::queue::wakeup_source`] fetches, and polls its source until it has our waker |
//! | fetched wake-ups wait in memory without heartbeat | one wake-up a fetch; [`crate::node`] beats for every worker |
//! | no heartbeat while draining | the same independent heartbeat, until the drain ends |
//! | its own statements stand still while it waits for the work in hand, with the connection that this work is acknowledged by | a stop waits for them ([`Statements`]) |
//! | a delayed retry strands or storms | handlers never ask for one; retries are our own wake-ups |
//! | a plain error is retried at once | handlers answer an error only when a claim could not reach the database, after a pause |
//! | a panic leaves a wake-up running for ever | a handler runs in its own task; its panic is an ordinary end |
//! | a payload that cannot be read kills the worker | payloads are bytes to the library; ours are parsed in the handler |
//! | rescued wake-ups have no ceiling | pages count their own claims |

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use apalis::prelude::*;
use apalis_core::backend::codec::Codec;
use apalis_core::backend::ext::BackendExt;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use weir_shared::fault::{FaultPoint, Faults};
use weir_shared::store::{Db, PostgresDb, StoreResult};

use super::wakeup_source::{Due, PostgresWakeups, SqliteWakeups, Statements, WakeupSource};

/// Pause before an error is handed to the library, which tries again at once.
const ERROR_PAUSE: Duration = Duration::from_millis(500);

/// One library worker.
#[derive(Debug, Clone)]
pub struct Consumer {
    pub queue: &'static str,
    /// Wake-ups in work at once, 1 upwards.
    pub concurrency: usize,
    /// Unique for each start. The part before the first `/` is the worker's id, for the heartbeat.
    pub name: String,
    /// The library's own heartbeat: also how often it looks for orphans.
    pub heartbeat: Duration,
    /// Heartbeats missed before a wake-up counts as an orphan.
    pub missed: usize,
}

/// Runs one library worker until `stop`, then waits for the wake-ups under way. It fetches what is `due`.
pub fn consume<Handler, Work>(
    db: Db,
    consumer: Consumer,
    due: Arc<Due>,
    stop: impl Future<Output = ()> + Send + 'static,
    handler: Handler,
) -> BoxFuture<'static, Result<(), WorkerError>>
where
    Handler: Fn(Vec<u8>) -> Work + Clone + Send + Sync + 'static,
    Work: Future<Output = StoreResult<()>> + Send + 'static,
{
    let statements = Arc::new(Statements::default());
    let running = Arc::clone(&statements);
    let stop = async move {
        stop.await;
        running.done().await;
        Ok::<(), WorkerError>(())
    };
    let faults = db.faults().clone();
    let handler = move |payload: Vec<u8>| isolated(handler(payload), faults.clone());
    // The two libraries share no type, so the assembly is written twice.
    match &db {
        Db::Sqlite(sqlite) => {
            let config = apalis_sqlite::Config::default()
                .queue(consumer.queue)
                .batch_size(1)
                .lock_tasks(false)
                .heartbeat_interval(consumer.heartbeat)
                .missed_heartbeats(consumer.missed);
            let queries = SqliteWakeups { pool: sqlite.pool.clone(), config: config.clone() };
            let backend =
                apalis_sqlite::SqliteStorage::<Vec<u8>>::new(&sqlite.pool).with_config(config).with_codec(Bytes);
            let backend = WakeupSource::new(backend, queries, due, statements);
            let worker = WorkerBuilder::new(consumer.name).backend(backend).concurrency(consumer.concurrency);
            worker.build(handler).run_until(stop).boxed()
        }
        Db::Postgres(PostgresDb { pool, .. }) => {
            let config = apalis_postgres::Config::default()
                .queue(consumer.queue)
                .batch_size(1)
                .lock_tasks(false)
                .heartbeat_interval(consumer.heartbeat)
                .missed_heartbeats(consumer.missed);
            let queries = PostgresWakeups { pool: pool.clone(), config: config.clone() };
            let backend = apalis_postgres::PostgresStorage::<Vec<u8>>::new(pool).with_config(config).with_codec(Bytes);
            let backend = WakeupSource::new(backend, queries, due, statements);
            let worker = WorkerBuilder::new(consumer.name).backend(backend).concurrency(consumer.concurrency);
            worker.build(handler).run_until(stop).boxed()
        }
    }
}

/// One wake-up, in a task of its own: a panic in it is logged and the wake-up acknowledged (our sweeper sends another
/// for work that was left), and the library's worker may end without taking the work down.
async fn isolated(
    work: impl Future<Output = StoreResult<()>> + Send + 'static,
    faults: Faults,
) -> Result<(), BoxDynError> {
    match tokio::spawn(work).await {
        Ok(Ok(())) => Ok(faults.reach(FaultPoint::BeforeAcknowledgement)?),
        Ok(Err(error)) => {
            tracing::warn!(%error, "a wake-up could not be served; it is delivered again");
            tokio::time::sleep(ERROR_PAUSE).await;
            Err(error.into())
        }
        Err(panic) => {
            tracing::error!(%panic, "a wake-up's handler panicked; the wake-up is dropped");
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
