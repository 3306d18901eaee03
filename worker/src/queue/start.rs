//! Starts the consuming side of the queue: a consumer for each kind of job, and the lookout that tells them what is due.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;
use weir_shared::clock::Stopwatch;
use weir_shared::lasting;
use weir_shared::store::Db;

use super::ahead::Ahead;
use super::consumer::{Consumer, consume};
use super::lookout::look_out;
use super::wakeup_source::Due;
use crate::context::WorkerContext;
use crate::jobs::{Job as _, KINDS, Kind, ServePage, ServeTeam};

/// Pause before a consumer that has failed is started again: the first one, and the longest of those that follow, each twice as
/// long as the one before.
const ERROR_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A consumer that has lived for so long had found the database well.
const WELL: Duration = Duration::from_secs(30);
/// The library's own heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Consumes every queue until the worker drains; each library worker is started again when it ends early. `db` is for the
/// queue alone.
pub fn start(context: &Arc<WorkerContext>, db: &Db) -> Vec<JoinHandle<()>> {
    let mut calls: HashMap<&'static str, Weak<Due>> = HashMap::new();
    let mut tasks = Vec::new();
    for kind in KINDS {
        let due = Arc::new(Due::default());
        calls.insert(kind.queue, Arc::downgrade(&due));
        let (context, db) = (Arc::clone(context), db.clone());
        let consuming = move || supervise(Arc::clone(&context), db.clone(), kind, Arc::clone(&due));
        tasks.push(tokio::spawn(lasting::again(kind.queue, consuming)));
    }
    let due = |queue: &str| calls.get(queue).cloned().unwrap_or_default();
    let ahead = Arc::new(Ahead::new(context, due(ServePage::QUEUE), due(ServeTeam::QUEUE)));
    let (db, wake) = (db.clone(), context.process.wake.clone());
    tokio::spawn(lasting::again("lookout", move || {
        let ahead = Arc::clone(&ahead);
        let ahead = move |queue: &str, told: u64| ahead.see_to(queue, told);
        look_out(db.clone(), wake.clone(), calls.clone(), ahead)
    }));
    tasks
}

async fn supervise(context: Arc<WorkerContext>, db: Db, kind: Kind, due: Arc<Due>) {
    let queue = kind.queue;
    let mut life = 0_u32;
    // In a row.
    let mut failures = 0_u32;
    while !context.draining.is_cancelled() && !context.fenced.is_cancelled() {
        let name = format!("{}/{queue}/{life}", context.id);
        let consumer = Consumer { queue, concurrency: kind.at_once, name, heartbeat: HEARTBEAT, missed: 2 };
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
        let handler = move |payload: Vec<u8>| kind.serve(Arc::clone(&worker), payload);
        let lived = Stopwatch::start();
        if let Err(error) = consume(db.clone(), consumer, Arc::clone(&due), stop, handler).await {
            failures = if lived.elapsed() < WELL { failures + 1 } else { 1 };
            // A database that is away for long would fill the log with it.
            if failures.is_power_of_two() {
                tracing::warn!(queue, failures, %error, "a queue worker ended; it is started again");
            }
            tokio::select! {
                () = tokio::time::sleep(pause_after(failures)) => {}
                () = context.draining.cancelled() => {}
                () = context.fenced.cancelled() => {}
            }
        }
    }
}

/// How long a consumer rests that has failed so many times in a row.
fn pause_after(failures: u32) -> Duration {
    (ERROR_PAUSE * (1 << failures.saturating_sub(1).min(8))).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound() {
        let seconds = [1, 2, 3, 4, 5, 600, u32::MAX].map(|failures| pause_after(failures).as_secs_f64());
        assert_eq!(seconds, [0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0]);
    }
}
