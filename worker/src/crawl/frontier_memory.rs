//! Addresses that are known to be in a crawl's frontier: most links of a page are, and need not be written to find out.
//!
//! What is here was committed (or turned away by a crawl without room), and nothing leaves a frontier while its crawl
//! runs; so an address may be missing here, never wrongly present.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use weir_shared::ids::JobId;
use weir_shared::store::work::page::end::{Discovery, Found};

/// Addresses kept for all crawls together.
const MOST: usize = 300_000;

/// The addresses by crawl, as the numbers that their keys are.
#[derive(Debug, Default)]
pub struct FrontierMemory(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    jobs: HashMap<JobId, HashSet<u128>>,
    count: usize,
}

impl FrontierMemory {
    /// Takes known addresses out of what a page leads to.
    pub fn forget_known(&self, job: JobId, discovery: &mut Discovery) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = known.jobs.get(&job) {
            let is_new = |found: &Found| number(found).is_none_or(|key| !keys.contains(&key));
            discovery.found.retain(is_new);
            discovery.blocked.retain(is_new);
        }
    }

    /// Remembers what was committed.
    pub fn learn<'a>(&self, job: JobId, found: impl Iterator<Item = &'a Found>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.count > MOST {
            *known = Known::default();
        }
        let keys = known.jobs.entry(job).or_default();
        let before = keys.len();
        keys.extend(found.filter_map(number));
        let learned = keys.len() - before;
        known.count += learned;
    }
}

fn number(found: &Found) -> Option<u128> {
    u128::from_str_radix(&found.key, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_committed_is_not_written_again() {
        let memory = FrontierMemory::default();
        let (job, other) = (JobId::new(), JobId::new());
        let found = |n: u32| Found { key: format!("{n:032x}"), url: format!("http://x.test/{n}") };
        let page = Discovery { found: vec![found(1), found(2)], blocked: vec![found(3)], ..Discovery::default() };
        memory.learn(job, page.addresses());
        let mut next = Discovery { found: vec![found(2), found(4)], blocked: vec![found(3)], ..Discovery::default() };
        let mut elsewhere = next.clone();
        memory.forget_known(job, &mut next);
        assert_eq!((next.found, next.blocked), (vec![found(4)], vec![]));
        memory.forget_known(other, &mut elsewhere);
        assert_eq!(elsewhere.found.len(), 2);
    }
}
