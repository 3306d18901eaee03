//! Browsers that wait started, so that a session without a profile begins within milliseconds.
//!
//! One is started at a time, and only while the machine is not busy with something else; a browser serves one session
//! and is never used again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use weir_shared::lasting;

use super::start::{Started, start_cold};
use crate::sandbox::Sandbox;

/// Pause after a start that failed.
const PAUSE: Duration = Duration::from_secs(5);
/// Quiet time after a browser was taken before the next is warmed: its page is loading now.
const SETTLE: Duration = Duration::from_millis(500);

/// The waiting browsers of one worker.
pub(super) struct WarmPool {
    shared: Arc<Shared>,
    filler: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

struct Shared {
    waiting: Mutex<VecDeque<Started>>,
    taken: Notify,
    size: usize,
}

impl WarmPool {
    /// Keeps `size` browsers waiting until `stop`.
    pub(super) fn start(sandbox: Arc<Sandbox>, size: usize, stop: CancellationToken) -> Self {
        let shared = Arc::new(Shared { waiting: Mutex::default(), taken: Notify::new(), size });
        let of_filler = Arc::clone(&shared);
        let filling = move || fill(Arc::clone(&sandbox), Arc::clone(&of_filler), stop.clone());
        let filler = (size > 0).then(|| tokio::spawn(lasting::again("browsers that wait", filling)));
        Self { shared, filler: Mutex::new(filler) }
    }

    /// A browser that is alive, if one waits.
    pub(super) fn take(&self) -> Option<Started> {
        loop {
            let started = self.shared.lock().pop_front()?;
            self.shared.taken.notify_one();
            if started.is_alive() {
                return Some(started);
            }
            // It died while it waited; its remains are removed off this path.
            tokio::spawn(async move { started.discard().await });
        }
    }

    /// How many wait.
    pub(super) fn count(&self) -> usize {
        self.shared.lock().len()
    }

    /// Ends the waiting browsers.
    pub(super) async fn stop(&self) {
        let filler = self.filler.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(filler) = filler {
            // It ends at `stop` by itself; a start under way is finished and then found below.
            let _ = tokio::time::timeout(Duration::from_secs(15), filler).await;
        }
        let waiting: Vec<Started> = self.shared.lock().drain(..).collect();
        for started in waiting {
            started.discard().await;
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Started>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn fill(sandbox: Arc<Sandbox>, shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        let missing = shared.lock().len() < shared.size;
        let pause = if missing {
            match start_cold(&sandbox, None).await {
                Ok(started) => {
                    shared.lock().push_back(started);
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%error, "a browser could not be started ahead of time; it is tried again");
                    PAUSE
                }
            }
        } else {
            tokio::select! {
                () = shared.taken.notified() => SETTLE,
                () = stop.cancelled() => return,
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
    }
}
