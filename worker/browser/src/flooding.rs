//! Pages that keep the browser's own process busy end alone.
//!
//! All pages of a browser need its own process: it opens and closes them, and carries what they say. A few lines of script
//! that give it work without end stop all the others, and nothing tells it which page that is. So a browser with pages is
//! asked every second whether it answers. While it does not and works without a pause, the process of the page that works
//! most beside it is ended, if that one has worked without a pause, too.
//!
//! A machine that is slow as a whole ends no page: where processes wait for the processor none has much of it, and where
//! they wait for anything else the browser does not work.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt as _;
use weir_sandbox::process::{self, Role, WorkedProcess};
use weir_shared::blocking;
use weir_shared::clock::Stopwatch;

use super::browser_process::BrowserProcess;

/// How often a browser with pages is asked.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long it may take to answer before anybody looks.
const PATIENCE: Duration = Duration::from_millis(500);
/// For how long its processes are looked at then; the answer may still come.
const LOOK: Duration = Duration::from_millis(1_250);
/// The part of a core that the browser's own process has had, hundredths, if it is busy.
const BUSY: u128 = 50;
/// The same of a page that is to blame.
const TO_BLAME: u128 = 60;

/// Watches the pages of a browser until it is gone.
pub(super) async fn watch(process: Arc<BrowserProcess>) {
    loop {
        let next = async {
            tokio::time::sleep(ASK_EVERY).await;
            process.busy().await;
        };
        tokio::select! {
            () = process.cdp.closed().cancelled() => return,
            () = next => ask(&process).await,
        }
    }
}

/// Asks once, and ends a page that keeps it from answering.
async fn ask(process: &BrowserProcess) {
    let answer = process.answers();
    tokio::pin!(answer);
    if tokio::time::timeout(PATIENCE, &mut answer).await.is_ok() {
        return;
    }
    let mut before = look_at(process.pid).await;
    loop {
        let since = Stopwatch::start();
        if tokio::time::timeout(LOOK, &mut answer).await.is_ok() {
            return;
        }
        let after = look_at(process.pid).await;
        let page = to_blame(&before, &after, since.elapsed());
        // It may have answered while it was looked at.
        if answer.as_mut().now_or_never().is_some() {
            return;
        }
        let Some(page) = page else {
            before = after;
            continue;
        };
        tracing::warn!(browser.pid = process.pid, page.pid = page, "a page kept its browser from all others");
        // Told before it happens, so that its render knows when it hears of the crash.
        process.flooding.fetch_add(1, Ordering::AcqRel);
        process::kill(page);
        // What it has left behind is worked off before anybody else is looked at.
        let _ = answer.await;
        return;
    }
}

async fn look_at(browser: u32) -> Vec<WorkedProcess> {
    blocking::run(move || process::worked_in(browser)).await.unwrap_or_default()
}

/// The page that has to end after a browser has not answered for `elapsed`, if any has.
fn to_blame(before: &[WorkedProcess], after: &[WorkedProcess], elapsed: Duration) -> Option<u32> {
    let worked = |now: &WorkedProcess| {
        let then = before.iter().find(|then| then.pid == now.pid)?;
        Some(now.worked.saturating_sub(then.worked).as_millis() * 100 / elapsed.as_millis().max(1))
    };
    let most = |role: Role| {
        let all = after.iter().filter(|process| process.role == role);
        all.filter_map(|process| Some((worked(process)?, process.pid))).max()
    };
    let (browser, _) = most(Role::Own)?;
    let (page, pid) = most(Role::Page)?;
    (browser >= BUSY && page >= TO_BLAME).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_that_works_beside_a_busy_browser_ends_and_none_of_a_slow_machine_does() {
        let look = |worked: &[(Role, u64)]| -> Vec<WorkedProcess> {
            let all = worked.iter().zip(10..);
            all.map(|((role, ms), pid)| WorkedProcess { pid, role: *role, worked: Duration::from_millis(*ms) })
                .collect()
        };
        let ended = |own: u64, pages: [u64; 2]| {
            let at = |own, [one, other]: [u64; 2]| {
                look(&[(Role::Own, 0), (Role::Own, own), (Role::Helper, 0), (Role::Page, one), (Role::Page, other)])
            };
            let (before, after) = (at(5_000, [9_000, 100]), at(5_000 + own, [9_000 + pages[0], 100 + pages[1]]));
            to_blame(&before, &after, Duration::from_millis(1_000))
        };
        assert_eq!(ended(900, [100, 950]), Some(14), "what it has done before does not matter");
        assert_eq!(ended(600, [650, 0]), Some(13));
        assert_eq!(ended(400, [1_000, 0]), None, "the browser waits, and not for a page");
        assert_eq!(ended(900, [300, 350]), None, "all are short of the processor");
        assert_eq!(ended(0, [0, 0]), None);
        assert_eq!(to_blame(&[], &look(&[(Role::Own, 9_000), (Role::Page, 9_000)]), Duration::ZERO), None);
    }
}
