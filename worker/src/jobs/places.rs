//! How much of one kind of job a worker does at once, and how much of that for one team.
//!
//! What a wake-up asks for may take long: a model that thinks. So no team has all places, and
//! its wake-ups that wait for one of its own keep none of the others' from being served.

use weir_shared::ids::TeamId;
use weir_shared::shares::{Share, Shares};
use weir_shared::store::StoreResult;

use crate::context::{WorkerContext, stopping};

/// Places of one kind of job.
#[derive(Debug)]
pub struct Places(Shares);

impl Places {
    /// `all` places, of which one team has `each` at most.
    pub fn new(all: usize, each: usize) -> Self {
        Self(Shares::new(all, each))
    }

    /// A place for a job of the team, as soon as there is one.
    ///
    /// # Errors
    /// When the worker stops first: the wake-up goes back.
    pub async fn take(&self, team: TeamId, context: &WorkerContext) -> StoreResult<Share> {
        let team = team.to_string();
        tokio::select! {
            biased;
            () = context.draining.cancelled() => Err(stopping()),
            () = context.fenced.cancelled() => Err(stopping()),
            place = self.0.take(&team) => Ok(place),
        }
    }
}
