//! The robots.txt of sites lately visited, shared by the process.
//!
//! RFC 9309 §2.3.1: a file that is not there (4xx) allows everything; one that the site cannot give at the moment (5xx)
//! forbids everything, and is asked for again soon. Where there is no answer at all nothing is forbidden either: the page
//! itself says better why it is out of reach.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;
use url::{Position, Url};
use weir_shared::clock;

use super::robots::{self, Robots};
use super::route::SiteRoute;
use crate::fetch::{CallerHeaders, FetchError, HttpFetcher};

/// How long a file counts (RFC 9309 §2.4: at most a day).
const FRESH: Duration = Duration::from_secs(4 * 3_600);
/// How long a failure counts.
const FAILED: Duration = Duration::from_secs(120);
/// Bound on one fetch.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a file is looked for in the place of one that others could not have.
const TRIES: usize = 3;
/// Bytes of all files kept, about.
const MAX_WEIGHT: usize = 24 << 20;

/// Fetches and keeps robots.txt files; cheap to clone.
#[derive(Clone)]
pub struct RobotsStore {
    fetcher: HttpFetcher,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    files: HashMap<String, Entry>,
    weight: usize,
}

struct Entry {
    file: Arc<OnceCell<Known>>,
    /// Counted in [`Kept::weight`].
    weight: usize,
}

/// A file and how long it counts.
#[derive(Clone)]
struct Known {
    robots: Arc<Robots>,
    until: Instant,
    /// The host that it was not fetched from, because whoever asked had blocked it.
    refused: Option<Arc<str>>,
}

impl Kept {
    fn remove(&mut self, origin: &str) {
        if let Some(entry) = self.files.remove(origin) {
            self.weight -= entry.weight;
        }
    }
}

impl RobotsStore {
    /// An empty store that asks through `fetcher`.
    pub fn new(fetcher: HttpFetcher) -> Self {
        Self { fetcher, kept: Arc::default() }
    }

    /// The robots.txt of the origin of `url`, from memory when it was read in the last hours. Many who ask at once
    /// wait for one fetch. Never fails: see the module. One that is asked for with a name and a password is for those alone.
    pub async fn get(&self, url: &Url, route: &SiteRoute) -> Arc<Robots> {
        let origin = place_of(url);
        for _ in 0..TRIES {
            let cell = self.cell(origin);
            let known = cell.get_or_init(|| self.fetch(url, route)).await.clone();
            if known.refused.is_none_or(|host| !route.sites.allows_host(&host)) {
                self.weigh(origin, &cell, known.robots.weight());
                return known.robots;
            }
            // Somebody else has blocked where it lies.
            self.forget_file(origin, &cell);
        }
        self.fetch(url, route).await.robots
    }

    /// The same where it is known already, without asking the site.
    pub fn known(&self, url: &Url, route: &SiteRoute) -> Option<Arc<Robots>> {
        let kept = self.lock();
        let known = kept.files.get(place_of(url))?.file.get()?;
        let is_allowed = known.refused.as_ref().is_none_or(|host| !route.sites.allows_host(host));
        (is_allowed && known.until > clock::instant()).then(|| Arc::clone(&known.robots))
    }

    /// Forgets the origin's file, so that the next one who asks gets a fresh one.
    pub fn forget(&self, url: &Url) {
        self.lock().remove(place_of(url));
    }

    fn forget_file(&self, origin: &str, file: &Arc<OnceCell<Known>>) {
        let mut kept = self.lock();
        if kept.files.get(origin).is_some_and(|entry| Arc::ptr_eq(&entry.file, file)) {
            kept.remove(origin);
        }
    }

    fn cell(&self, origin: &str) -> Arc<OnceCell<Known>> {
        let mut kept = self.lock();
        let now = clock::instant();
        if kept.weight > MAX_WEIGHT {
            kept.files.clear();
            kept.weight = 0;
        }
        if let Some(entry) = kept.files.get(origin) {
            if entry.file.get().is_none_or(|known| known.until > now) {
                return Arc::clone(&entry.file);
            }
            kept.weight -= entry.weight;
        }
        // What an entry without a file takes.
        let weight = 256 + origin.len();
        kept.weight += weight;
        let file = Arc::new(OnceCell::new());
        kept.files.insert(origin.to_owned(), Entry { file: Arc::clone(&file), weight });
        file
    }

    fn weigh(&self, origin: &str, cell: &Arc<OnceCell<Known>>, weight: usize) {
        let mut kept = self.lock();
        let Kept { files, weight: sum } = &mut *kept;
        if let Some(entry) = files.get_mut(origin).filter(|entry| Arc::ptr_eq(&entry.file, cell)) {
            *sum = *sum - entry.weight + weight;
            entry.weight = weight;
        }
    }

    async fn fetch(&self, url: &Url, route: &SiteRoute) -> Known {
        let robots = match self.ask(url, route).await {
            Ok(robots) => robots,
            // A redirect that is not followed is as good as no file.
            Err(FetchError::SiteRefused { host }) => {
                let refused = Some(host.into());
                return Known { robots: Arc::new(Robots::open()), until: clock::deadline(FRESH), refused };
            }
            Err(error) => {
                tracing::debug!(host = url.host_str().unwrap_or_default(), %error, "no robots.txt could be had");
                // `ask` tells a 5xx answer by this error; the others mean that there was no answer.
                let is_answered = matches!(error, FetchError::Internal);
                let robots = if is_answered { Robots::closed() } else { Robots::open() };
                // What the proxies of one place, this machine or its name servers cannot do tells nothing about the site.
                let of_others =
                    matches!(error, FetchError::Proxy { .. } | FetchError::NoRoom | FetchError::NameServer { .. });
                let counts = if of_others { Duration::ZERO } else { FAILED };
                return Known { robots: Arc::new(robots), until: clock::deadline(counts), refused: None };
            }
        };
        Known { robots: Arc::new(robots), until: clock::deadline(FRESH), refused: None }
    }

    async fn ask(&self, url: &Url, route: &SiteRoute) -> Result<Robots, FetchError> {
        let Ok(at) = url.join("/robots.txt") else { return Ok(Robots::open()) };
        let headers = CallerHeaders::default();
        let deadline = clock::deadline(PATIENCE);
        let mut way = route.way();
        let answer = loop {
            let answer = self.fetcher.open(way.request(&at, &headers, deadline)).await;
            if !way.leads_on(&answer).await {
                break answer?;
            }
        };
        match answer.status {
            200..=299 => {}
            // Redirects that lead nowhere are as good as no file.
            300..=499 => return Ok(Robots::open()),
            _ => return Err(FetchError::Internal),
        }
        let file = answer.read_up_to(robots::MAX_BYTES).await?;
        // Parsing half a megabyte takes some milliseconds at most.
        Ok(Robots::parse(&file))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a file is kept by: the origin, and the name and the password that it is asked for with.
fn place_of(url: &Url) -> &str {
    &url[..Position::BeforePath]
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use weir_shared::guard::AddressGuard;

    use super::*;
    use crate::fetch::FetchConfig;

    /// Answers every request with `answer` and counts them.
    async fn site(answer: String) -> (Url, Arc<AtomicUsize>) {
        site_at("127.0.0.1", answer).await
    }

    async fn site_at(host: &str, answer: String) -> (Url, Arc<AtomicUsize>) {
        let listener = tokio::net::TcpListener::bind((host, 0)).await.expect("a port");
        let url = format!("http://{}/deep/page", listener.local_addr().expect("an address"));
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                let mut head = [0; 2_048];
                let read = stream.read(&mut head).await.unwrap_or(0);
                assert!(head[..read].starts_with(b"GET /robots.txt "));
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        (url.parse().expect("a URL"), asked)
    }

    fn store() -> RobotsStore {
        let guard = AddressGuard::new(vec!["127.0.0.0/8".parse().expect("a net")], HashMap::new());
        RobotsStore::new(HttpFetcher::new(guard, FetchConfig::default()).expect("a fetcher"))
    }

    fn answer(status: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn an_answers_status_decides_as_the_standard_says() {
        let shut = "User-agent: *\nDisallow: /";
        for (status, body, allowed) in [
            ("200 OK", shut, false),
            ("200 OK", "", true),
            ("404 Not Found", shut, true),
            ("403 Forbidden", shut, true),
            ("503 Service Unavailable", "", false),
        ] {
            let (url, _) = site(answer(status, body)).await;
            let robots = store().get(&url, &SiteRoute::default()).await;
            assert_eq!(robots.rules("x").allows("/page"), allowed, "{status}");
        }
        let nobody: Url = "http://127.0.0.1:2/".parse().expect("a URL");
        assert!(store().get(&nobody, &SiteRoute::default()).await.rules("x").allows("/"), "the page says why");
    }

    #[tokio::test]
    async fn a_blocked_site_is_not_asked_for_the_robots_txt_of_another() {
        let (other, asked) = site_at("127.0.0.2", answer("200 OK", "User-agent: *\nDisallow: /shut")).await;
        let head = "HTTP/1.1 301 Moved\r\nContent-Length: 0\r\nConnection: close";
        let (url, _) = site(format!("{head}\r\nLocation: {}\r\n\r\n", other.join("/robots.txt").expect("a URL"))).await;
        let store = store();
        let mut strict = SiteRoute::default();
        strict.sites.blocked = vec!["127.0.0.2".to_owned()];
        for _ in 0..2 {
            assert!(store.get(&url, &strict).await.rules("x").allows("/shut"), "as good as no file");
            assert_eq!(asked.load(Ordering::SeqCst), 0);
        }
        // Whoever has not blocked it gets the file, and it is everybody's from then on: nobody is asked for it.
        for route in [&SiteRoute::default(), &strict] {
            assert!(!store.get(&url, route).await.rules("x").allows("/shut"));
            assert_eq!(asked.load(Ordering::SeqCst), 1);
        }
    }

    #[tokio::test]
    async fn a_file_that_was_asked_for_with_a_password_is_for_nobody_else() {
        let (url, asked) = site(answer("200 OK", "User-agent: *\nDisallow: /shut")).await;
        let (store, route) = (store(), SiteRoute::default());
        let with = |user: &str| {
            let mut url = url.clone();
            url.set_username(user).and_then(|()| url.set_password(Some("secret"))).expect("an address of the web");
            url
        };
        for (of, count) in [(with("me"), 1), (with("me"), 1), (url.clone(), 2), (with("you"), 3), (url.clone(), 3)] {
            store.get(&of, &route).await;
            assert_eq!(asked.load(Ordering::SeqCst), count, "{of}");
        }
    }

    #[tokio::test]
    async fn many_who_ask_at_once_cost_one_fetch_and_a_long_file_is_cut() {
        let body = format!("User-agent: *\nDisallow: /shut\n{}", "# filling\n".repeat(70_000));
        let (url, asked) = site(answer("200 OK", &body)).await;
        let store = store();
        let route = SiteRoute::default();
        let all = futures_util::future::join_all((0..20).map(|_| store.get(&url, &route))).await;
        assert!(all.iter().all(|robots| !robots.rules("x").allows("/shut")));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        store.forget(&url);
        store.get(&url, &route).await;
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }
}
