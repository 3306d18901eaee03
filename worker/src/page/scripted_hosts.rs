//! Which hosts lately answered with pages that scripts make: theirs go to the browser at once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The hosts that need a browser, for a while.
#[derive(Debug, Default)]
pub struct ScriptedHosts {
    hosts: Mutex<HashMap<String, (Instant, u32)>>,
}

/// How long a verdict stands.
const VERDICT: Duration = Duration::from_secs(600);
/// Verdicts kept.
const VERDICTS: usize = 10_000;
/// Scripted pages in a row before a host goes straight to the browser.
const CERTAIN: u32 = 3;

impl ScriptedHosts {
    /// Whether pages of this host (`host:port`) should go straight to the browser.
    pub fn is_scripted(&self, host: &str) -> bool {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.get(host).is_some_and(|(at, count)| *count >= CERTAIN && at.elapsed() < VERDICT)
    }

    /// Records what a fetched page of this host looked like. One static page takes the verdict back, so a site with
    /// both kinds is fetched first each time.
    pub fn record(&self, host: &str, scripted: bool) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if !scripted {
            hosts.remove(host);
            return;
        }
        if hosts.len() >= VERDICTS {
            hosts.clear();
        }
        let entry = hosts.entry(host.to_owned()).or_insert((Instant::now(), 0));
        *entry = (Instant::now(), entry.1.saturating_add(1));
    }
}
