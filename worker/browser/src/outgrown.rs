//! Pages that take too much of a browser's memory end alone.
//!
//! What bounds the box as a whole, a cgroup or the limits of single processes, ends whatever process it finds: the one
//! that asked last, perhaps the browser itself with all its pages. So the processes of pages are watched, and one that
//! is too large is ended before the box's own bound is met. Its page fails with that reason, the others go on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use weir_sandbox::process::{self, PageProcess};
use weir_shared::blocking;

use super::browser_process::BrowserProcess;

/// How often a browser with pages is weighed where the kernel counts for us, which is one small file to read.
const WEIGH_EVERY: Duration = Duration::from_millis(200);
/// In how many of these looks its processes are weighed one by one where it does not.
const WITHOUT_COUNT: u32 = 5;

/// Bounds of pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageBounds {
    /// Memory of one page's process, bytes.
    pub page: u64,
    /// Memory of all processes of pages, bytes: past it, the largest one ends.
    pub all: u64,
}

impl PageBounds {
    /// The page that has to end, if any has.
    fn outgrown(self, pages: &[PageProcess]) -> Option<PageProcess> {
        let largest = pages.iter().max_by_key(|page| page.memory).copied()?;
        let all: u64 = pages.iter().map(|page| page.memory).sum();
        // Many ordinary pages may be too much together: then the browser is replaced, and none of them is to blame.
        let is_to_blame = largest.memory > self.page || all > self.all && largest.memory > self.page / 2;
        is_to_blame.then_some(largest)
    }
}

/// Watches the pages of a browser until it is gone.
pub(super) async fn watch(process: Arc<BrowserProcess>, bounds: PageBounds) {
    let mut tick = tokio::time::interval(WEIGH_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looks = 0_u32;
    loop {
        tokio::select! {
            () = process.cdp.closed().cancelled() => return,
            _ = tick.tick() => {}
        }
        // Without pages there is nothing to weigh, however long that lasts.
        tokio::select! {
            () = process.cdp.closed().cancelled() => return,
            () = process.busy() => {}
        }
        looks = looks.wrapping_add(1);
        let is_due = match process.counted_memory().await {
            Some(counted) => counted > bounds.page,
            None => looks.is_multiple_of(WITHOUT_COUNT),
        };
        if !is_due {
            continue;
        }
        let browser = process.pid;
        let weighed = blocking::run(move || process::pages_of(browser)).await;
        let Some(page) = bounds.outgrown(&weighed.unwrap_or_default()) else { continue };
        tracing::warn!(
            browser.pid = browser,
            page.pid = page.pid,
            page.bytes = page.memory,
            "a page took too much memory"
        );
        // Told before it happens, so that its render knows when it hears of the crash.
        process.outgrown.fetch_add(1, Ordering::AcqRel);
        process::kill(page.pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_that_is_to_blame_ends_and_many_ordinary_ones_do_not() {
        let bounds = PageBounds { page: 1_000, all: 1_500 };
        let pages = |memory: &[u64]| -> Vec<PageProcess> {
            memory.iter().zip(10..).map(|(memory, pid)| PageProcess { pid, memory: *memory }).collect()
        };
        let ended = |memory: &[u64]| bounds.outgrown(&pages(memory)).map(|page| page.pid);
        assert_eq!(ended(&[]), None);
        assert_eq!(ended(&[900, 100]), None);
        assert_eq!(ended(&[100, 1_001]), Some(11));
        assert_eq!(ended(&[600, 800, 300]), Some(11));
        assert_eq!(ended(&[400, 400, 400, 400]), None);
    }
}
