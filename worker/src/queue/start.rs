//! Starts the consuming side of the queue: a consumer for each kind of job, and the lookout that tells them what is due.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;
use weir_shared::lasting;
use weir_shared::store::Db;

use super::ahead::Ahead;
use super::consumer::{Consumer, consume};
use super::lookout::look_out;
use super::wakeup_source::Due;
use crate::context::WorkerContext;
use crate::jobs::{Job as _, KINDS, Kind, ServePage, ServeTeam};

/// Pause before a consumer that has failed is started again.
const ERROR_PAUSE: Duration = Duration::from_millis(500);
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
        if let Err(error) = consume(db.clone(), consumer, Arc::clone(&due), stop, handler).await {
            tracing::warn!(queue, %error, "a queue worker ended; it is started again");
            tokio::time::sleep(ERROR_PAUSE).await;
        }
    }
}
