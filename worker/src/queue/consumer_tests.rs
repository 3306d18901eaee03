//! The queue library's known defects, each against its fence: the tests run the consuming side as the worker does,
//! on both databases, with handlers of their own.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apalis_core::task::builder::TaskBuilder;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use weir_shared::clock;
use weir_shared::ids::{TeamId, WorkerId};
use weir_shared::queue;
use weir_shared::store::work::nodes;
use weir_shared::store::{self, Db, PoolUse, StoreError, StoreResult};
use weir_shared::wake::Wake;

use super::{Consumer, Due, consume};
use crate::queue::lookout::look_out;
use crate::testing;

const QUEUE: &str = "lane";

/// A fresh, migrated database with its wake-up.
struct Bench {
    db: Db,
    queue_db: Db,
    wake: Wake,
    seen: Arc<Mutex<Vec<(Instant, String)>>>,
    stop: CancellationToken,
}

async fn benches() -> Vec<Bench> {
    let mut urls = vec![testing::sqlite().await];
    urls.extend(testing::postgres().await);
    let mut all = Vec::new();
    for url in urls {
        let db = Db::connect(&url, 4, PoolUse::Rows).await.unwrap();
        let connections = if matches!(db, Db::Sqlite(_)) { 1 } else { 6 };
        let queue_db = Db::connect(&url, connections, PoolUse::Wakeups).await.unwrap();
        let wake = Wake::start_for_worker(&url, None, &db).await.unwrap();
        all.push(Bench { db, queue_db, wake, seen: Arc::default(), stop: CancellationToken::new() });
    }
    all
}

impl Bench {
    /// Another worker beside, with an end of its own.
    fn another(&self) -> Bench {
        Bench {
            stop: CancellationToken::new(),
            wake: self.wake.clone(),
            seen: Arc::clone(&self.seen),
            db: self.db.clone(),
            queue_db: self.queue_db.clone(),
        }
    }

    async fn push(&self, payload: &str, pause: Duration) {
        let mut task = TaskBuilder::new(payload.as_bytes().to_vec()).max_attempts(5);
        if !pause.is_zero() {
            task = task.run_after(pause);
        }
        let mut tx = self.db.begin().await.unwrap();
        queue::push_raw(&mut tx, QUEUE, vec![task.build()]).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Starts a consumer whose handler notes the payload and then does `work`.
    fn consume<F>(&self, concurrency: usize, heartbeat: Duration, work: F) -> (WorkerId, tokio::task::JoinHandle<()>)
    where
        F: Fn(String) -> std::pin::Pin<Box<dyn Future<Output = StoreResult<()>> + Send>>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        self.consume_with(concurrency, heartbeat, 2, work)
    }

    fn consume_with<F>(
        &self,
        concurrency: usize,
        heartbeat: Duration,
        missed: usize,
        work: F,
    ) -> (WorkerId, tokio::task::JoinHandle<()>)
    where
        F: Fn(String) -> std::pin::Pin<Box<dyn Future<Output = StoreResult<()>> + Send>>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let id = WorkerId::new();
        let consumer = Consumer { queue: QUEUE, concurrency, name: format!("{id}/{QUEUE}/0"), heartbeat, missed };
        let due = Arc::new(Due::default());
        let calls = HashMap::from([(QUEUE, Arc::downgrade(&due))]);
        tokio::spawn(look_out(self.queue_db.clone(), self.wake.clone(), calls, |_, told| told));
        let queue_db = self.queue_db.clone();
        let (seen, stop) = (Arc::clone(&self.seen), self.stop.clone());
        let task = tokio::spawn(async move {
            let handler = move |payload: Vec<u8>| {
                let text = String::from_utf8_lossy(&payload).into_owned();
                seen.lock().unwrap().push((clock::instant(), text.clone()));
                work(text)
            };
            consume(queue_db, consumer, due, async move { stop.cancelled().await }, handler).await.unwrap();
        });
        (id, task)
    }

    async fn wait_for(&self, count: usize, patience: Duration) -> usize {
        let end = clock::deadline(patience);
        loop {
            let seen = self.seen.lock().unwrap().len();
            if seen >= count || clock::instant() > end {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn starts(&self) -> HashMap<String, usize> {
        let mut starts = HashMap::new();
        for (_, text) in self.seen.lock().unwrap().iter() {
            *starts.entry(text.clone()).or_default() += 1;
        }
        starts
    }

    async fn undone(&self) -> i64 {
        match &self.db {
            Db::Sqlite(store::SqliteDb { pool, .. }) => {
                sqlx::query_scalar("SELECT COUNT(*) FROM Jobs WHERE status <> 'Done'").fetch_one(pool).await.unwrap()
            }
            Db::Postgres(store::PostgresDb { pool, .. }) => {
                sqlx::query_scalar("SELECT COUNT(*) FROM apalis.jobs WHERE status <> 'Done'")
                    .fetch_one(pool)
                    .await
                    .unwrap()
            }
        }
    }

    async fn wait_until_done(&self, patience: Duration) {
        let end = clock::deadline(patience);
        while self.undone().await > 0 {
            assert!(clock::instant() < end, "{} wake-ups are not done", self.undone().await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

const LONG: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_consumer_is_woken_by_each_wake_up_at_once() {
    for bench in benches().await {
        let (_, task) = bench.consume(4, LONG, |_| Box::pin(async { Ok(()) }));
        let mut waits = Vec::new();
        for n in 1..=20 {
            tokio::time::sleep(Duration::from_millis(60)).await;
            let pushed = clock::instant();
            bench.push(&format!("{n}"), Duration::ZERO).await;
            assert_eq!(bench.wait_for(n, LONG).await, n);
            waits.push(bench.seen.lock().unwrap()[n - 1].0.saturating_duration_since(pushed));
        }
        waits.sort_unstable();
        // The faster ones: the machine may be busy. Without a wake-up each would wait for the next look.
        assert!(waits[5] < Duration::from_millis(400), "they waited for {waits:?}");
        bench.stop.cancel();
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wake_ups_do_not_wait_in_memory_where_nobody_beats_for_them() {
    for bench in benches().await {
        for n in 0..24 {
            bench.push(&format!("{n}"), Duration::ZERO).await;
        }
        let slow = |_| -> std::pin::Pin<Box<dyn Future<Output = StoreResult<()>> + Send>> {
            Box::pin(async {
                tokio::time::sleep(Duration::from_millis(1_000)).await;
                Ok(())
            })
        };
        // Ten in memory, as the library would fetch them, would outlast the patience of the others; a slow machine
        // does not.
        let tasks: Vec<_> = (0..3).map(|_| bench.consume_with(1, Duration::from_secs(2), 4, slow).1).collect();
        bench.wait_until_done(Duration::from_secs(60)).await;
        assert!(bench.starts().values().all(|n| *n == 1), "{:?}", bench.starts());
        bench.stop.cancel();
        for task in tasks {
            task.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_consumer_keeps_its_wake_ups_while_the_heartbeat_goes_on() {
    for bench in benches().await {
        bench.push("long", Duration::ZERO).await;
        let long = |_| -> std::pin::Pin<Box<dyn Future<Output = StoreResult<()>> + Send>> {
            Box::pin(async {
                tokio::time::sleep(Duration::from_secs(8)).await;
                Ok(())
            })
        };
        // Longer than the patience of the other, which is longer than a machine stands still.
        let (id, draining) = bench.consume_with(2, Duration::from_secs(1), 5, long);
        assert_eq!(bench.wait_for(1, LONG).await, 1);
        bench.stop.cancel();
        let other = bench.another();
        let (_, idle) = other.consume_with(2, Duration::from_secs(1), 5, long);
        let beating = tokio::spawn({
            let db = bench.db.clone();
            async move {
                loop {
                    let mut tx = db.begin().await.unwrap();
                    nodes::heartbeat(&mut tx, id, db.now(), None).await.unwrap();
                    tx.commit().await.unwrap();
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
            }
        });
        draining.await.unwrap();
        beating.abort();
        other.stop.cancel();
        idle.await.unwrap();
        assert_eq!(bench.starts()["long"], 1);
    }
}

/// What a worker could not acknowledge, because the database was away just then, waits for nobody to miss the worker.
#[tokio::test(flavor = "multi_thread")]
async fn wake_ups_of_a_worker_that_is_declared_dead_are_anybodys_at_once() {
    for bench in benches().await {
        bench.push("held", Duration::ZERO).await;
        let held =
            |_| -> std::pin::Pin<Box<dyn Future<Output = StoreResult<()>> + Send>> { Box::pin(std::future::pending()) };
        let (id, holding) = bench.consume(1, Duration::from_secs(600), held);
        assert_eq!(bench.wait_for(1, LONG).await, 1);
        let other = bench.another();
        let (_, serving) = other.consume(2, Duration::from_secs(600), |_| Box::pin(async { Ok(()) }));
        let mut tx = bench.db.begin().await.unwrap();
        nodes::declare_dead(&mut tx, id).await.unwrap();
        tx.commit().await.unwrap();
        other.wait_until_done(2 * LONG).await;
        assert_eq!(bench.starts()["held"], 2);
        holding.abort();
        other.stop.cancel();
        serving.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_wake_up_is_delivered_once_and_not_before_its_time() {
    for bench in benches().await {
        let (_, task) = bench.consume(4, LONG, |_| Box::pin(async { Ok(()) }));
        let mut tx = bench.db.begin().await.unwrap();
        queue::team_wakeup(&mut tx, TeamId::new(), Duration::from_millis(1_500)).await.unwrap();
        tx.commit().await.unwrap();
        let pushed = clock::instant();
        assert_eq!(bench.wait_for(1, LONG).await, 1);
        let waited = bench.seen.lock().unwrap()[0].0 - pushed;
        assert!(waited >= Duration::from_millis(1_400), "it came after {waited:?}");
        bench.wait_until_done(LONG).await;
        assert_eq!(bench.seen.lock().unwrap().len(), 1);
        bench.stop.cancel();
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_not_tried_again_at_once() {
    for bench in benches().await {
        bench.push("x", Duration::ZERO).await;
        let failing = |_| -> std::pin::Pin<Box<dyn Future<Output = StoreResult<()>> + Send>> {
            Box::pin(async { Err(StoreError::Conflict("not now".to_owned())) })
        };
        let (_, task) = bench.consume(4, LONG, failing);
        assert!(bench.wait_for(3, LONG).await >= 3, "it is delivered again");
        let seen: Vec<Instant> = bench.seen.lock().unwrap().iter().map(|s| s.0).collect();
        assert!(seen.windows(2).all(|w| w[1] - w[0] >= Duration::from_millis(450)));
        bench.stop.cancel();
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_a_handler_ends_the_wake_up_and_nothing_else() {
    for bench in benches().await {
        let work = |text: String| -> std::pin::Pin<Box<dyn Future<Output = StoreResult<()>> + Send>> {
            Box::pin(async move {
                assert_ne!(text, "bad", "a test's own panic");
                Ok(())
            })
        };
        let (_, task) = bench.consume(4, LONG, work);
        bench.push("bad", Duration::ZERO).await;
        bench.push("good", Duration::ZERO).await;
        bench.wait_until_done(LONG).await;
        assert_eq!((bench.starts()["bad"], bench.starts()["good"]), (1, 1));
        bench.stop.cancel();
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_nobody_can_read_does_not_end_the_consumer() {
    for bench in benches().await {
        let (_, task) = bench.consume(4, LONG, |_| Box::pin(async { Ok(()) }));
        bench.push("\u{0}{not json", Duration::ZERO).await;
        bench.push("fine", Duration::ZERO).await;
        bench.wait_until_done(LONG).await;
        assert_eq!(bench.starts()["fine"], 1);
        assert!(!task.is_finished());
        bench.stop.cancel();
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_up_of_a_slow_transaction_is_told_of_too() {
    for bench in benches().await {
        let mut tx = bench.db.begin().await.unwrap();
        // Into the next second, so that the wake-up is younger than its transaction.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        queue::team_wakeups(&mut tx, TeamId::new(), 1).await.unwrap();
        tx.commit().await.unwrap();
        let end = clock::deadline(LONG);
        while !bench.wake.take_told().contains_key(QUEUE) {
            assert!(clock::instant() < end, "nobody was told of the wake-up");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The heartbeat stands in line for the queue's one connection to SQLite when the stop comes. Polled no further it would
/// be handed the connection and keep it, while the work in hand waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_the_library_end_the_statement_that_holds_the_one_connection() {
    const BEAT: Duration = Duration::from_millis(20);
    for bench in benches().await {
        let Db::Sqlite(sqlite) = &bench.queue_db else { continue };
        let (pool, go) = (sqlite.pool.clone(), CancellationToken::new());
        let work = {
            let (pool, go) = (pool.clone(), go.clone());
            move |_| -> std::pin::Pin<Box<dyn Future<Output = StoreResult<()>> + Send>> {
                let (pool, go) = (pool.clone(), go.clone());
                Box::pin(async move {
                    go.cancelled().await;
                    pool.acquire().await?;
                    Ok(())
                })
            }
        };
        let (_, mut task) = bench.consume(1, BEAT, work);
        bench.push("one", Duration::ZERO).await;
        assert_eq!(bench.wait_for(1, LONG).await, 1);
        let held = pool.acquire().await.unwrap();
        // Time is what brings the heartbeat into the line.
        tokio::time::sleep(BEAT * 10).await;
        bench.stop.cancel();
        tokio::time::sleep(BEAT).await;
        go.cancel();
        drop(held);
        let ended = tokio::time::timeout(LONG, &mut task).await;
        assert!(ended.is_ok(), "the worker did not stop");
    }
}
