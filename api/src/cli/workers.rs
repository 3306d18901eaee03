//! `weir workers …`.

use std::collections::HashMap;

use anyhow::bail;
use clap::Subcommand;
use serde_json::json;
use weir_shared::domain::node::NodeState;
use weir_shared::ids::WorkerId;
use weir_shared::store::work::nodes::{self, DEAD_MS, NodeStory};
use weir_shared::store::{Db, sessions};

use super::output::Output;

#[derive(Subcommand)]
pub enum WorkersCommand {
    /// Show worker processes, newest first.
    List,
    /// Ask a worker, by name or id, to finish what it has and stop.
    Drain {
        /// Its name or id, as `weir workers list` has them.
        name: String,
    },
}

/// Runs `weir workers …`.
pub async fn run(command: WorkersCommand, db: &Db, output: Output) -> anyhow::Result<()> {
    match command {
        WorkersCommand::List => list(db, output).await,
        WorkersCommand::Drain { name } => {
            let mut tx = db.begin().await?;
            if !nodes::drain(&mut tx, &name).await? {
                bail!("there is no live worker named {name}");
            }
            tx.commit().await?;
            output.show(&json!({"name": name, "draining": true}), || format!("worker {name} drains"));
            Ok(())
        }
    }
}

async fn list(db: &Db, output: Output) -> anyhow::Result<()> {
    let now = db.now();
    let taken: HashMap<WorkerId, i64> = sessions::by_worker(db).await?.into_iter().collect();
    let rows = nodes::stories(db).await?.into_iter().map(|NodeStory { node, load, .. }| {
        let taken = taken.get(&node.id).copied().unwrap_or(0);
        let silent_ms = now.ms_since(node.heartbeat_at);
        // The sweeper writes it down later.
        let state = if silent_ms > DEAD_MS { NodeState::Dead } else { node.state }.as_str();
        let json = json!({
            "id": node.id,
            "name": node.name,
            "address": node.address,
            "state": state,
            "slots": node.slots,
            "sessionSlots": node.session_slots,
            "sessionsTaken": taken,
            "sessionsRefused": node.sessions_refused,
            "browserProblem": load.and_then(|load| load.browser_problem),
            "startedAt": node.started_at.to_iso(),
            "heartbeatAt": node.heartbeat_at.to_iso(),
        });
        let heard = format!("{:.1}s ago", silent_ms as f64 / 1_000.0);
        let slots = node.slots.to_string();
        let sessions = match node.sessions_refused {
            Some(_) => "refused".to_owned(),
            None => format!("{taken}/{}", node.session_slots),
        };
        (
            json,
            vec![
                node.name,
                state.to_owned(),
                slots,
                sessions,
                node.address,
                node.started_at.to_iso(),
                heard,
                node.id.to_string(),
            ],
        )
    });
    output.list(&["NAME", "STATE", "SLOTS", "SESSIONS", "ADDRESS", "STARTED", "HEARD", "ID"], rows.collect());
    Ok(())
}
