//! The heartbeat: it has its own thread, runtime and connection, so that neither a full pool nor long CPU work silences it.
//!
//! A worker that cannot reach the database goes on with what it has: nobody else can, as a rule, and who drives a browser or
//! waits for a page need not know. The others say whether it counted as dead meanwhile; what it writes is fenced anyway.
//! After [`nodes::FENCE_MS`] without an answer of the database it gives up without a word of theirs. That the database takes no
//! writes is an answer: it takes nobody's, so nobody has taken over what the worker has.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use tokio_util::sync::CancellationToken;
use weir_shared::clock;
use weir_shared::config::DatabaseUrl;
use weir_shared::domain::node::NodeState;
use weir_shared::ids::WorkerId;
use weir_shared::store::work::nodes;
use weir_shared::store::{self, Db, PoolUse};

use super::load;
use crate::context::Process;

/// Starts it. It cancels `draining` when the operator asks for that, and `fenced` when the worker counts as dead, until
/// `over` is cancelled.
pub(super) fn start(
    process: &Arc<Process>,
    id: WorkerId,
    draining: CancellationToken,
    fenced: CancellationToken,
    over: CancellationToken,
) -> anyhow::Result<std::thread::JoinHandle<()>> {
    let (url, process) = (process.settings.database_url.clone(), Arc::clone(process));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("heartbeat runtime")?;
    std::thread::Builder::new()
        .name("heartbeat".to_owned())
        .spawn(move || runtime.block_on(beat(url, process, id, draining, fenced, over)))
        .context("heartbeat thread")
}

async fn beat(
    url: DatabaseUrl,
    process: Arc<Process>,
    id: WorkerId,
    draining: CancellationToken,
    fenced: CancellationToken,
    over: CancellationToken,
) {
    // However this ends, the worker does not go on without a heartbeat.
    let _gives_up = fenced.clone().drop_guard();
    let every = Duration::from_millis(nodes::HEARTBEAT_MS.unsigned_abs());
    let patience = Duration::from_millis(nodes::FENCE_MS.unsigned_abs());
    let mut last_good = clock::instant();
    // When the database said anything last.
    let mut heard = process.db.clock().instant();
    // What was before this life is not known.
    process.witness.could_not_write();
    let mut db: Option<Db> = None;
    while !over.is_cancelled() {
        let sign = async {
            if db.is_none() {
                db = Some(Db::connect(&url, 1, PoolUse::Heartbeats).await?);
            }
            let Some(db) = &db else { bail!("no connection") };
            Ok(sign(db, &process, id).await?)
        };
        match tokio::time::timeout(every, sign).await.unwrap_or_else(|_| Err(anyhow!("no answer in time"))) {
            Ok(Some(state)) => {
                heard = process.db.clock().instant();
                if last_good.elapsed() > every * 3 {
                    tracing::info!(after_s = last_good.elapsed().as_secs(), "heartbeats are taken again");
                }
                last_good = clock::instant();
                process.witness.wrote(last_good, process.db.now());
                if state == NodeState::Draining {
                    draining.cancel();
                }
            }
            Ok(None) => {
                tracing::warn!("the others declared this worker dead");
                return fenced.cancel();
            }
            Err(error) => {
                tracing::warn!(error = %format!("{error:#}"), "a heartbeat failed");
                process.witness.could_not_write();
                db = None;
                let now = process.db.clock().instant();
                if store::takes_no_writes(&error) {
                    heard = now;
                }
                if now.saturating_duration_since(heard) > patience {
                    return fenced.cancel();
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = over.cancelled() => {}
        }
    }
    if let Some(db) = db {
        db.close().await;
    }
}

async fn sign(db: &Db, process: &Process, id: WorkerId) -> store::StoreResult<Option<NodeState>> {
    let mut tx = db.begin_relaxed().await?;
    let state = nodes::heartbeat(&mut tx, id, db.now(), Some(&load::load(process))).await?;
    tx.commit().await?;
    Ok(state)
}
