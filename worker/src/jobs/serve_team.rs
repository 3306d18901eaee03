//! A team has pages to claim: those of its batches and crawls, in turns with the other teams.

use std::sync::Arc;

use weir_shared::ids::TeamId;
use weir_shared::queue::{TEAM_QUEUE, Wakeup};
use weir_shared::store::StoreResult;

use super::job::Job;
use crate::context::WorkerContext;
use crate::dispatch::team;

/// The team that has pages to claim.
pub struct ServeTeam {
    team: TeamId,
}

impl Job for ServeTeam {
    const NAME: &'static str = "serve_team";
    const QUEUE: &'static str = TEAM_QUEUE;
    const AT_ONCE: usize = 64;

    fn of(wakeup: Wakeup) -> Option<Self> {
        match wakeup {
            Wakeup::Team { team, .. } => Some(Self { team }),
            _ => None,
        }
    }

    async fn run(self, context: Arc<WorkerContext>) -> StoreResult<()> {
        team::dispatch(&context, self.team).await
    }
}
