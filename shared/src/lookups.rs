//! Asks the system for the addresses of names. It answers on a thread, and nobody can end a question that is not answered:
//! a name server that says nothing would take thread after thread, until none is left for anything else. So questions have
//! a number of threads, and the names of one site a few of these.

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::LazyLock;

use crate::blocking;
use crate::shares::Shares;

/// Questions at once: a quarter of the threads that the runtime has for what blocks.
const AT_ONCE: usize = 128;
/// Of these, for the names below one registered domain.
const PER_SITE: usize = 8;

static PLACES: LazyLock<Shares> = LazyLock::new(|| Shares::new(AT_ONCE, PER_SITE));

/// The addresses of a name. May wait for as long as others' questions are not answered; callers have their own bounds.
///
/// # Errors
/// What the system says.
pub async fn addresses(name: &str) -> io::Result<Vec<IpAddr>> {
    ask(&PLACES, name.to_owned(), |name| Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())).await
}

/// Whether nobody can have this name (RFC 6761): without a name server it does not exist, either.
pub fn is_reserved(name: &str) -> bool {
    let last = name.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    ["example", "invalid", "test"].iter().any(|reserved| last.eq_ignore_ascii_case(reserved))
}

/// Whether a name could not be looked up and may be another time, as while no name server answers or this process has no
/// descriptor or thread left. Otherwise it does not exist, or has no address.
pub fn is_passing(error: &io::Error) -> bool {
    // Of what the resolver says itself the standard library hands on the text alone: glibc's, and musl's.
    const AGAIN: [&str; 2] = ["Temporary failure in name resolution", "Try again"];
    let has_text = |text: &&str| error.to_string().ends_with(*text);
    error.raw_os_error().is_some() || error.kind() == io::ErrorKind::ResourceBusy || AGAIN.iter().any(has_text)
}

async fn ask(
    places: &Shares,
    name: String,
    answer: impl FnOnce(&str) -> io::Result<Vec<IpAddr>> + Send + 'static,
) -> io::Result<Vec<IpAddr>> {
    let bare = name.trim_end_matches('.');
    let place = places.take(weir_suffixes::registered_domain(bare).unwrap_or(bare)).await;
    let asking = blocking::run(move || {
        // Given back when there is an answer, whether or not somebody still waits for it.
        let _place = place;
        answer(&name)
    });
    asking.await?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Condvar, Mutex, PoisonError};
    use std::time::Duration;

    use super::*;

    /// Names that are not answered until it opens.
    #[derive(Default)]
    struct Silence {
        is_over: Mutex<bool>,
        over: Condvar,
        asked: AtomicUsize,
    }

    impl Silence {
        fn keep(&self) -> io::Result<Vec<IpAddr>> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let guard = self.is_over.lock().unwrap();
            drop(self.over.wait_while(guard, |is_over| !*is_over).unwrap());
            Ok(Vec::new())
        }

        fn end(&self) {
            *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.over.notify_all();
        }
    }

    /// Lets the threads of a test that fails end as well.
    struct Ending(Arc<Silence>);

    impl Drop for Ending {
        fn drop(&mut self) {
            self.0.end();
        }
    }

    #[test]
    fn a_name_server_that_is_away_is_no_name_that_does_not_exist() {
        let said = |text: &str| io::Error::other(format!("failed to lookup address information: {text}"));
        for away in [
            said("Temporary failure in name resolution"),
            said("Try again"),
            rustix::io::Errno::MFILE.into(),
            io::ErrorKind::ResourceBusy.into(),
        ] {
            assert!(is_passing(&away), "{away}");
        }
        for text in ["Name or service not known", "No address associated with hostname", "Name does not resolve"] {
            assert!(!is_passing(&said(text)), "{text}");
        }
        for (name, expected) in
            [("no-such-host.invalid", true), ("a.TEST.", true), ("example", true), ("a.example.com", false)]
        {
            assert_eq!(is_reserved(name), expected, "{name}");
        }
    }

    #[tokio::test]
    async fn names_that_are_not_answered_take_a_few_threads_and_never_those_of_others() {
        let (places, silence) = (Arc::new(Shares::new(6, 2)), Arc::new(Silence::default()));
        let _ending = Ending(Arc::clone(&silence));
        let given_up = |name: String| {
            let (places, silence) = (Arc::clone(&places), Arc::clone(&silence));
            async move {
                let asking = ask(&places, name, move |_| silence.keep());
                tokio::time::timeout(Duration::from_millis(50), asking).await.unwrap_err();
            }
        };
        // A thread begins when the machine has a moment for it.
        let asked = async |expected: usize| {
            let end = crate::clock::deadline(Duration::from_secs(60));
            while silence.asked.load(Ordering::SeqCst) < expected && crate::clock::instant() < end {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            silence.asked.load(Ordering::SeqCst)
        };
        // All that wait are given up; the questions themselves are not.
        let site = (0..200).map(|n| given_up(format!("n{n}.hanging.com")));
        futures_util::future::join_all(site).await;
        assert_eq!(asked(2).await, 2, "the site has its own places only");
        let one = IpAddr::from([192, 0, 2, 1]);
        let answered = ask(&places, "good.com".to_owned(), move |_| Ok(vec![one])).await.unwrap();
        assert_eq!(answered, [one]);
        let sites = (0..200).map(|n| given_up(format!("hanging{n}.com")));
        futures_util::future::join_all(sites).await;
        assert_eq!(asked(6).await, 6, "many sites have no more than all places");
        // Threads for other work are there, and the places come back with the answers.
        assert_eq!(blocking::run(|| 5).await.unwrap(), 5);
        silence.end();
        ask(&places, "n1.hanging.com".to_owned(), move |_| Ok(vec![one])).await.unwrap();
    }
}
