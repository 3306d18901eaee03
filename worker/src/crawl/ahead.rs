//! What a page with very many links leads to is entered before the page ends, slice by slice: in one transaction with the
//! end it would keep everybody who writes waiting for seconds. What sitemaps list goes the same way ([`Entry`]).
//!
//! The page is in work meanwhile, so its crawl does not end; a worker that dies over it leaves what it has entered, and the
//! next one goes through the same addresses again.

use std::time::Duration;

use weir_shared::clock::Stopwatch;
use weir_shared::store::db::slices::Slices;
use weir_shared::store::work::frontier::{Ahead, Wanted, enter_ahead};
use weir_shared::store::work::page::end::{Discovery, Found};
use weir_shared::store::work::page::rows::Claimed;
use weir_shared::store::{StoreError, StoreResult};

use crate::context::WorkerContext;
use crate::page::task::PageTask;

/// Addresses that are entered with the end of their page; more go ahead of it.
const WITH_THE_END: usize = 500;
/// The first and the longest pause before the database is asked again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Enters what the page leads to where it is much, and takes it out of `discovery`. What cannot be entered stays there.
pub async fn enter(task: &PageTask, discovery: &mut Discovery) {
    if discovery.addresses().count() <= WITH_THE_END {
        return;
    }
    let (found, blocked) = (std::mem::take(&mut discovery.found), std::mem::take(&mut discovery.blocked));
    let (mut found, mut blocked) = (found.as_slice(), blocked.as_slice());
    let base = discovery.base_of(&task.page);
    let mut entry = Entry::new(&task.context, &task.page, task.page.depth + 1, base);
    let entered = entry.enter(&mut found, &mut blocked).await;
    if let Err(error) = entered {
        tracing::warn!(%error, page.id = %task.page.id, "what a page leads to cannot be entered before its end");
        (discovery.found, discovery.blocked) = (found.to_vec(), blocked.to_vec());
    }
}

/// The way in of addresses from a page, or from the step that reads the sitemaps, while it is in work.
pub struct Entry<'a> {
    context: &'a WorkerContext,
    page: &'a Claimed,
    /// Of the addresses: links from the start page.
    depth: i64,
    base: Option<&'a str>,
    slices: Slices,
}

impl<'a> Entry<'a> {
    /// `base`: see [`Ahead`].
    pub fn new(context: &'a WorkerContext, page: &'a Claimed, depth: i64, base: Option<&'a str>) -> Self {
        Self { context, page, depth, base, slices: Slices::default() }
    }

    /// Enters addresses slice by slice, and waits while the database is away; both lists lose what is entered or not wanted any
    /// more. What the crawl still takes in.
    pub async fn enter(&mut self, found: &mut &[Found], blocked: &mut &[Found]) -> StoreResult<Wanted> {
        let (process, page) = (&self.context.process, self.page);
        let mut pause = SHORTEST_PAUSE;
        let mut wanted = Wanted { found: true, blocked: true };
        while !(found.is_empty() && blocked.is_empty()) {
            let rows = usize::try_from(self.slices.rows()).unwrap_or(1);
            let (these, others) = found.split_at(rows.min(found.len()));
            let (forbidden, rest) = blocked.split_at((rows - these.len()).min(blocked.len()));
            let turn = process.db.bulk_turn(page.team_id).await;
            let began = Stopwatch::start();
            let slice = Ahead { found: these, blocked: forbidden, depth: self.depth, base: self.base };
            wanted = match enter_ahead(&process.db, page, slice, process.db.now()).await {
                Ok(wanted) => wanted,
                // As with the end itself: it is tried until the database is back, or the worker counts as dead.
                Err(StoreError::Unavailable(error)) => {
                    drop(turn);
                    tracing::debug!(%error, page.id = %page.id, "what a page leads to waits for the database");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.slices.give_way(turn, began).await;
            process.frontiers.learn(page.job_id, these.iter().chain(forbidden));
            *found = if wanted.found { others } else { &[] };
            *blocked = if wanted.blocked { rest } else { &[] };
        }
        Ok(wanted)
    }
}
