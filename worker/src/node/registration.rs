//! A worker's row: written when a life begins, with those of this machine whose process is gone declared dead; and given
//! up when it ends.

use std::time::Duration;

use weir_shared::blocking;
use weir_shared::domain::node::NodeState;
use weir_shared::ids::WorkerId;
use weir_shared::store;
use weir_shared::store::work::nodes;

use super::load::load;
use crate::context::Process;

/// Announces the worker under its id of this life, reachable at `address`.
pub(super) async fn announce(process: &Process, id: WorkerId, address: &str) -> anyhow::Result<()> {
    let now = process.db.now();
    let pid = std::process::id();
    let host_name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_else(|_| "worker".to_owned());
    let node = nodes::NodeRow {
        id,
        name: format!("{}-{pid}", host_name.trim()),
        host: host_identity(),
        pid: i64::from(pid),
        address: address.to_owned(),
        state: NodeState::Live,
        slots: process.settings.worker.concurrency as i64,
        // Offered when the sandbox has been tried.
        session_slots: 0,
        sessions_refused: None,
        started_at: now,
        heartbeat_at: now,
    };
    let mut tx = process.db.begin().await?;
    bury_neighbours(&mut tx, &node).await?;
    nodes::insert(&mut tx, &node).await?;
    // Whether it may offer sessions at all is known from the first moment on.
    nodes::heartbeat(&mut tx, id, now, Some(&load(process))).await?;
    let found = process.sandbox.status();
    let limits = if found.boxed { found.limits.name() } else { "there are no boxes (WEIR_SANDBOX=off)" };
    nodes::say_box_limits(&mut tx, id, limits).await?;
    tx.commit().await?;
    let (blobs, host) = (process.blobs.clone(), node.host);
    // `weir doctor` looks for it; without it the worker works all the same.
    if let Ok(Err(error)) = blocking::run(move || blobs.leave_sign(&host)).await {
        tracing::warn!(%error, "blobs cannot be written");
    }
    store::sessions::end_orphans(&process.db).await?;
    Ok(())
}

/// Tells machines and their boots apart.
fn host_identity() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

/// Workers of this machine whose process is gone are dead now, not after their heartbeat's time.
async fn bury_neighbours(tx: &mut store::Tx, me: &nodes::NodeRow) -> anyhow::Result<()> {
    for other in nodes::neighbours(tx, &me.host).await? {
        if other.pid == me.pid || !std::path::Path::new(&format!("/proc/{}", other.pid)).exists() {
            tracing::info!(worker = other.name, "a worker of this machine died; its pages go back to the queue");
            nodes::declare_dead(tx, other.id).await?;
        }
    }
    Ok(())
}

/// Declares the worker dead and gives back at once what it still held, within `patience`.
pub(super) async fn retire(process: &Process, id: WorkerId, patience: Duration) {
    let work = async {
        let mut tx = process.db.begin().await?;
        nodes::declare_dead(&mut tx, id).await?;
        store::work::page::rescue::give_back(&mut tx, id, process.db.now()).await?;
        tx.commit().await?;
        store::sessions::end_orphans(&process.db).await
    };
    match tokio::time::timeout(patience, work).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the worker could not sign off; the others will notice"),
        Err(_) => tracing::warn!("the worker could not sign off in time; the others will notice"),
    }
}
