//! What the worker has to do at a moment, for its row and for the console's figures.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use weir_shared::domain::figures::Gauges;
use weir_shared::domain::node::Load;
use weir_shared::figures::memory_bytes;

use crate::context::Process;

/// Characters of what is told of a browser that cannot be started: Chromium's last words may be many.
const PROBLEM: usize = 500;

/// What it has to do now.
pub(super) fn load(process: &Process) -> Load {
    Load {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        busy: process.metrics.slots_busy.get(),
        browsers: browsers(process),
        browser_problem: browser_problem(process),
        takes_no_sessions: process.settings.worker.sessions == 0,
        sessions: process.sessions().map_or(0, |sessions| sessions.count() as i64),
        memory_bytes: memory_bytes(),
        pages: process.figures.total().pages,
    }
}

fn browsers(process: &Process) -> i64 {
    process.browsers.as_ref().map_or(0, |browsers| browsers.stats().alive as i64)
}

/// Why no browser for pages can be started, shortened to what people read at a glance.
fn browser_problem(process: &Process) -> Option<String> {
    process.browsers.as_ref()?.problem().map(|why| why.chars().take(PROBLEM).collect())
}

/// Writes a row of figures each minute until `over` is cancelled, where there is a console.
pub(super) async fn write_figures(process: Arc<Process>, over: CancellationToken) {
    if !process.settings.api.console.is_on {
        return;
    }
    let gauges = || {
        let gauges = Gauges {
            browsers: Some(browsers(&process)),
            sessions: Some(process.sessions().map_or(0, |sessions| sessions.count() as i64)),
            memory_bytes: memory_bytes(),
            ..Gauges::default()
        };
        std::future::ready(gauges)
    };
    process.figures.run(&process.db, gauges, over).await;
}
