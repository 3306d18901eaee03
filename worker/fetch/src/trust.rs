//! Origins whose TLS lately did not verify, so that each of their pages does not cost a handshake that is known to fail.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use url::{Origin, Url};

/// How long one is remembered: a site that has mended its certificate is soon taken at its word.
const FOR: Duration = Duration::from_secs(60);
/// Most of them.
const MAX: usize = 4_096;

/// The origins, shared by all fetches.
#[derive(Debug, Default)]
pub(super) struct Untrusted {
    until: Mutex<HashMap<Origin, Instant>>,
}

impl Untrusted {
    /// Whether the origin of `url` is among them.
    pub fn holds(&self, url: &Url, now: Instant) -> bool {
        let until = self.lock();
        !until.is_empty() && until.get(&url.origin()).is_some_and(|until| *until > now)
    }

    /// Puts the origin of `url` among them.
    pub fn note(&self, url: &Url, now: Instant) {
        let mut until = self.lock();
        if until.len() >= MAX {
            until.retain(|_, until| *until > now);
        }
        if until.len() < MAX {
            until.insert(url.origin(), now + FOR);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Origin, Instant>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_remembered_for_a_while_and_their_number_is_bounded() {
        let (known, now) = (Untrusted::default(), Instant::now());
        let url = |n: usize| Url::parse(&format!("https://{n}.test/x")).expect("a URL");
        known.note(&url(0), now);
        assert!(known.holds(&url(0), now) && !known.holds(&url(1), now));
        for n in 0..2 * MAX {
            known.note(&url(n), now);
        }
        assert_eq!(known.lock().len(), MAX);
        assert!(!known.holds(&url(0), now + FOR));
        known.note(&url(9_999), now + FOR);
        assert_eq!(known.lock().len(), 1);
    }
}
