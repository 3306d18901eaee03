//! Pages under which a browser was lost are opened once more alone, each in a browser that starts for it.
//!
//! Nobody can tell which of a browser's pages took it down: what a page has in the browser's own process is nowhere put down
//! to it. So each of them is a suspect. Those that did nothing lose a moment; the one that did it takes down a browser that is
//! nobody else's, and costs the others one try at most. A suspect may be alone for as long as its page takes, so those of one
//! team do not stand before those of another.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::task_tracker::TaskTrackerToken;
use weir_shared::clock;
use weir_shared::guests::Holder;
use weir_shared::slots::{Slot, Slots};

use super::super::browser_process::BrowserProcess;
use super::super::error::RenderError;
use super::super::{RenderRequest, Rendered, page};
use super::{Inner, Kind};

/// For how long a page is opened alone, unless it has been done meanwhile.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Pages that are remembered at once.
const MOST: usize = 1_000;
/// Browsers that may die under a page alone before it is to blame: one may have been ended from outside.
const DEATHS: u8 = 2;
/// Pages that are alone at once; as many again may begin beside them where those take long. Each is one browser more.
const PLACES: usize = 2;

/// The pages that are opened alone.
pub(super) struct Suspects {
    places: Slots,
    /// By whose page it is and where, of which nothing can be read here.
    known: Mutex<HashMap<u64, Suspect>>,
    keys: RandomState,
}

#[derive(Debug, Clone, Copy)]
struct Suspect {
    since: Instant,
    /// Browsers that have died under it alone.
    deaths: u8,
}

impl Default for Suspects {
    fn default() -> Self {
        Self { places: Slots::new(PLACES), known: Mutex::default(), keys: RandomState::new() }
    }
}

impl Suspects {
    /// Whether a browser was lost under the page before.
    pub fn hold(&self, request: &RenderRequest, now: Instant) -> bool {
        self.lock().get(&self.key(request)).is_some_and(|suspect| now < suspect.since + REMEMBERED)
    }

    /// A browser was lost under the page and others.
    pub fn note(&self, request: &RenderRequest, now: Instant) {
        let mut known = self.lock();
        if known.len() >= MOST {
            known.retain(|_, suspect| now < suspect.since + REMEMBERED);
        }
        if known.len() >= MOST {
            let oldest = known.iter().min_by_key(|(_, suspect)| suspect.since).map(|(key, _)| *key);
            if let Some(key) = oldest {
                known.remove(&key);
            }
        }
        let fresh = Suspect { since: now, deaths: 0 };
        let suspect = known.entry(self.key(request)).or_insert(fresh);
        if now >= suspect.since + REMEMBERED {
            *suspect = fresh;
        }
    }

    /// A browser has died under the page alone. Whether it is to blame for that.
    fn died(&self, request: &RenderRequest) -> bool {
        self.lock().get_mut(&self.key(request)).is_some_and(|suspect| {
            suspect.deaths = suspect.deaths.saturating_add(1);
            suspect.deaths >= DEATHS
        })
    }

    /// A place to be alone in, for one of the holder's pages.
    async fn place(&self, holder: Option<Holder>) -> Slot {
        loop {
            let place = match holder {
                Some(holder) => Some(self.places.acquire(holder).await),
                None => self.places.acquire_for_anybody().await,
            };
            if let Some(place) = place {
                return place;
            }
        }
    }

    fn forget(&self, request: &RenderRequest) {
        self.lock().remove(&self.key(request));
    }

    fn key(&self, request: &RenderRequest) -> u64 {
        self.keys.hash_one((request.holder.map(|(team, _)| team), request.url.as_str()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Suspect>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renders a suspect, if there is a place for it by `until`.
pub(super) async fn render(
    inner: &Arc<Inner>,
    kind: Kind,
    request: &RenderRequest,
    until: Instant,
) -> Result<Rendered, RenderError> {
    let alone = Alone::start(inner, kind, request, until).await?;
    let outcome = tokio::select! {
        biased;
        () = inner.stop.cancelled() => return Err(stopping()),
        outcome = page::render(&alone.process, request) => outcome,
    };
    inner.counters.renders.fetch_add(1, Ordering::Relaxed);
    match outcome {
        // It no longer obeys, which harms nobody else.
        Err(RenderError::Timeout) if clock::instant() < request.deadline => Err(RenderError::BrowserLost),
        Err(error) if error.is_retryable() && alone.process.cdp.closed().is_cancelled() => {
            inner.counters.crashes.fetch_add(1, Ordering::Relaxed);
            let is_to_blame = inner.suspects.died(request);
            tracing::warn!(browser.pid = alone.process.pid, is_to_blame, "browser died under a page alone");
            Err(if is_to_blame { RenderError::TakesBrowserDown } else { RenderError::BrowserLost })
        }
        Ok(rendered) => {
            inner.suspects.forget(request);
            Ok(rendered)
        }
        Err(error) => Err(error),
    }
}

/// A browser with one page. It ends when this is dropped, and its place is free when nothing of it is left.
struct Alone {
    process: Arc<BrowserProcess>,
    inner: Arc<Inner>,
    place: Option<Slot>,
    /// The pool's end waits for it.
    _tracked: TaskTrackerToken,
}

impl Alone {
    async fn start(
        inner: &Arc<Inner>,
        kind: Kind,
        request: &RenderRequest,
        until: Instant,
    ) -> Result<Self, RenderError> {
        if clock::instant() >= until {
            return Err(RenderError::AloneLater);
        }
        let Ok(place) = timeout_at(until, inner.suspects.place(request.holder)).await else {
            return Err(RenderError::AloneLater);
        };
        let maker = Arc::clone(inner);
        // In a task of its own, so that a start that nobody waits for any more leaves nothing behind.
        let started = inner.tasks.spawn(async move {
            let started = maker.start_browser(kind).await?;
            Some(started.map(|process| Self::of(process, maker, place)))
        });
        match timeout_at(request.deadline, started).await {
            Ok(Ok(Some(Ok(alone)))) => Ok(alone),
            Ok(Ok(Some(Err(error)))) => {
                tracing::error!(error = format!("{error:#}"), "browser for one page cannot be started");
                Err(RenderError::Unavailable(format!("{error:#}")))
            }
            Ok(_) => Err(stopping()),
            Err(_) => Err(RenderError::Timeout),
        }
    }

    fn of(process: Arc<BrowserProcess>, inner: Arc<Inner>, place: Slot) -> Self {
        // Its memory is looked at as that of any browser with pages.
        process.open.store(1, Ordering::Release);
        process.lent.notify_waiters();
        let tracked = inner.tasks.token();
        Self { process, inner, place: Some(place), _tracked: tracked }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let (process, place) = (Arc::clone(&self.process), self.place.take());
        let Ok(runtime) = Handle::try_current() else { return };
        let stop = async move {
            process.retire();
            process.stop().await;
            drop(place);
        };
        self.inner.tasks.spawn_on(stop, &runtime);
    }
}

fn stopping() -> RenderError {
    RenderError::Unavailable("the worker is stopping".into())
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    #[test]
    fn a_page_under_which_a_browser_was_lost_is_alone_until_it_is_done_and_to_blame_when_it_takes_down_two() {
        let request = |path: &str| {
            RenderRequest::new(Url::parse("http://site.test").and_then(|site| site.join(path)).expect("an address"))
        };
        let (suspects, now) = (Suspects::default(), clock::instant());
        let (hostile, calm) = (request("/hostile"), request("/calm"));
        assert!(!suspects.hold(&hostile, now));
        suspects.note(&hostile, now);
        suspects.note(&calm, now);
        assert!(suspects.hold(&hostile, now) && suspects.hold(&calm, now) && !suspects.hold(&request("/other"), now));
        suspects.forget(&calm);
        assert!(!suspects.hold(&calm, now));
        assert!(!suspects.died(&hostile), "once may be from outside");
        assert!(suspects.died(&hostile));
        assert!(!suspects.hold(&hostile, now + REMEMBERED));
        for n in 0..2 * MOST {
            suspects.note(&request(&format!("/{n}")), now + Duration::from_millis(1));
        }
        assert_eq!(suspects.lock().len(), MOST);
    }
}
