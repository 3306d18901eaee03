//! What a worker does about wake-ups that it hears of, before the library fetches them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::wakeup_source::Due;
use crate::context::WorkerContext;
use crate::dispatch::direct;
use crate::jobs::{Job as _, ServePage, ServeTeam};

/// How much later a worker without a free slot looks for wake-ups that it hears of.
const COURTESY: Duration = Duration::from_millis(10);

/// Scrapes that wait for a free slot without having fetched their wake-up.
const TAKERS: usize = 64;

/// Serves wake-ups without the library where that is possible.
pub struct Ahead {
    worker: Weak<WorkerContext>,
    takers: Arc<Semaphore>,
    pages: Weak<Due>,
    teams: Weak<Due>,
}

impl Ahead {
    /// `pages` and `teams` hear of what is left to the library.
    pub fn new(context: &Arc<WorkerContext>, pages: Weak<Due>, teams: Weak<Due>) -> Self {
        Self { worker: Arc::downgrade(context), takers: Arc::new(Semaphore::new(TAKERS)), pages, teams }
    }

    /// Sees to `told` wake-ups of a queue as far as it can. Returns how many are left to the library.
    pub fn see_to(&self, queue: &str, told: u64) -> u64 {
        let Some(context) = self.worker.upgrade() else { return told };
        match queue {
            ServePage::QUEUE => self.take_pages(&context, told),
            ServeTeam::QUEUE if context.process.slots.is_full() => {
                self.leave_to_others(told);
                0
            }
            _ => told,
        }
    }

    /// Claims the pages somebody waits for without the library's round: its wake-ups are fetched, claimed and
    /// acknowledged in three steps, a page and its wake-up are taken in one. What cannot be claimed so goes the library's
    /// way, which also delivers what nobody was told of. Returns how many wake-ups are not tried.
    fn take_pages(&self, context: &Arc<WorkerContext>, told: u64) -> u64 {
        for tried in 0..told {
            let Ok(taker) = Arc::clone(&self.takers).try_acquire_owned() else { return told - tried };
            let (context, pages) = (Arc::clone(context), self.pages.clone());
            tokio::spawn(async move {
                let claimed = direct::serve_next(&context).await;
                if let Err(error) = &claimed {
                    tracing::debug!(%error, "the next scrape could not be claimed; its wake-up is fetched");
                }
                if !claimed.unwrap_or(false)
                    && let Some(due) = pages.upgrade()
                {
                    due.add(1);
                }
                drop(taker);
            });
        }
        0
    }

    /// Leaves wake-ups for a moment to workers with a free slot.
    fn leave_to_others(&self, told: u64) {
        let teams = self.teams.clone();
        tokio::spawn(async move {
            tokio::time::sleep(COURTESY).await;
            if let Some(due) = teams.upgrade() {
                due.add(told);
            }
        });
    }
}
