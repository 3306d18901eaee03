//! Somebody waits for a page: a direct scrape, a map.

use std::sync::Arc;

use weir_shared::ids::{PageId, TeamId};
use weir_shared::queue::{SCRAPE_QUEUE, Wakeup};
use weir_shared::store::StoreResult;

use super::job::Job;
use crate::context::WorkerContext;
use crate::dispatch::direct;

/// The page somebody waits for.
pub struct ServePage {
    team: TeamId,
    page: PageId,
}

impl Job for ServePage {
    const NAME: &'static str = "serve_page";
    const QUEUE: &'static str = SCRAPE_QUEUE;
    const AT_ONCE: usize = 256;

    fn of(wakeup: Wakeup) -> Option<Self> {
        match wakeup {
            Wakeup::Scrape { team, page, .. } => Some(Self { team, page }),
            _ => None,
        }
    }

    async fn run(self, context: Arc<WorkerContext>) -> StoreResult<()> {
        direct::serve(&context, self.team, self.page).await
    }
}
