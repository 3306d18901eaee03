//! One map from claim to end (SPEC 4.9): what a site's sitemaps, its page, some further pages and earlier jobs of the
//! team say about its addresses.
//!
//! ```text
//! robots.txt ─> sitemaps, streamed ─┐
//! the page itself ──────────────────┼─> one set of links ─> further pages when it is thin ─> order ─> answer
//! what the team knows of the site ──┘
//! ```

mod links;
mod page;
mod rank;

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::time::Instant;
use url::Url;
use weir_shared::domain::crawl::SitemapMode;
use weir_shared::domain::crawl::scope::is_other_file;
use weir_shared::domain::map::{CREDITS, MAX_LIMIT, MapAnswer, MapOptions, MapScope, site_of};
use weir_shared::domain::target::fetch_url;
use weir_shared::error_code::ErrorCode;
use weir_shared::store::finish::{Encoded, Outcome};
use weir_shared::store::maps::KnownPage;
use weir_shared::store::pages::Claimed;
use weir_shared::store::{StoreError, cache, documents, maps};

use self::links::{LinkSet, Origin};
use self::page::Visited;
use super::scrape_page::{accept_language, blocking};
use crate::context::WorkerContext;
use crate::fetch::{CallerHeaders, FetchError, ProxyKind};
use crate::site::sitemap::{self, Batch, Bounds, Source, Walk};
use crate::site::sitemap_cache::SitemapCache;
use crate::site::{ROBOTS_AGENT, RobotsRules, Way};

/// Bound on a map without a `timeout`: what is known by then is answered.
const PATIENCE: Duration = Duration::from_secs(240);
/// The parts of a map with a `timeout` may take this much longer, so that it is the map that times out.
const PAST_END: Duration = Duration::from_secs(1);
/// Links below which further pages are read.
const THIN: usize = 100;
/// Further pages at most, how many at once, and the time for all of them.
const FURTHER: usize = 20;
const AT_ONCE: usize = 5;
const FURTHER_PATIENCE: Duration = Duration::from_secs(15);
/// Pages that the team knows, and for how many of them titles are looked up.
const KNOWN: i64 = 10_000;
const KNOWN_TITLED: i64 = 300;
/// Largest earlier map that is read again, bytes.
const KNOWN_MAP: i64 = 128 << 10;
/// Bound on one page.
const PAGE_PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no map.
#[derive(Debug)]
struct MapError {
    code: ErrorCode,
    message: String,
}

impl From<FetchError> for MapError {
    /// A name that does not exist and an address that is forbidden are told as for pages (CONTRACT 2.3).
    fn from(error: FetchError) -> Self {
        let code = match error.code() {
            code @ (ErrorCode::DnsResolution | ErrorCode::AddressBlocked | ErrorCode::BadRequest) => code,
            _ => ErrorCode::MapFailed,
        };
        Self { code, message: error.message() }
    }
}

impl From<StoreError> for MapError {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a map could not be read or stored");
        Self { code: ErrorCode::Unknown, message: "Internal error.".to_owned() }
    }
}

/// Works on a map and says how it ended. Never fails for good because of us when another try may work: the claim's
/// owner then dies or gives it back.
pub async fn run(context: &Arc<WorkerContext>, page: &Claimed) -> Outcome {
    let waited = Duration::from_millis(page.started_at.ms_since(page.queued_at).unsigned_abs());
    let started = Instant::now();
    let options = match maps::options(&context.process.db, page.job_id).await {
        Ok(Some(options)) => options,
        Ok(None) => return Outcome::Lost { reason: "the map is gone" },
        Err(error) => {
            tracing::warn!(%error, "a map's options cannot be read; it goes back");
            return Outcome::GivenBack;
        }
    };
    let end = options.timeout.map(|ms| started + Duration::from_millis(ms).saturating_sub(waited));
    // What is given up at the soft end is left out of the answer; past a caller's own end there is no answer.
    let soft = end.map_or(started + PATIENCE, |end| end + PAST_END).min(started + PATIENCE);
    let work = std::panic::AssertUnwindSafe(map(context, page, options, soft)).catch_unwind();
    let hard = end.unwrap_or(started + PATIENCE + FURTHER_PATIENCE);
    let result = match tokio::time::timeout_at(hard, work).await {
        Err(_) => Err(MapError {
            code: ErrorCode::MapTimeout,
            message: "The map timed out. Raise timeout, or leave it out.".to_owned(),
        }),
        Ok(Err(_)) => Err(MapError { code: ErrorCode::Unknown, message: "Internal error.".to_owned() }),
        Ok(Ok(result)) => result,
    };
    let pages = &context.process.metrics.pages;
    match result {
        Ok(document) => {
            pages.with_label_values(&["map", "done"]).inc();
            Outcome::Done { document, credits: CREDITS }
        }
        Err(error) => {
            pages.with_label_values(&["map", "failed"]).inc();
            let code = error.code.code().unwrap_or("");
            tracing::info!(job.id = %page.job_id, job.attempt = page.claims, code, "a map failed");
            let credits = i64::from(error.code == ErrorCode::DnsResolution);
            Outcome::Failed { code: error.code, error: error.message, credits }
        }
    }
}

/// What all parts of a map share.
struct Map<'a> {
    context: &'a Arc<WorkerContext>,
    team: weir_shared::ids::TeamId,
    options: MapOptions,
    /// As asked for.
    url: Url,
    scope: MapScope,
    way: Way,
    /// The options' headers.
    headers: Arc<CallerHeaders>,
    deadline: Instant,
    links: Mutex<LinkSet>,
}

/// What the sitemaps came to.
#[derive(Default)]
struct Sitemaps {
    walk: Walk,
    /// Robots.txt names some.
    named: bool,
    rules: RobotsRules,
}

async fn map(
    context: &Arc<WorkerContext>,
    page: &Claimed,
    options: MapOptions,
    deadline: Instant,
) -> Result<Encoded, MapError> {
    let url =
        fetch_url(&page.url).map_err(|error| MapError { code: ErrorCode::BadRequest, message: error.to_string() })?;
    let mut warnings = Vec::new();
    let country = options.location.as_ref().map(|location| location.country.as_str());
    let chosen = context.process.proxies.choose(ProxyKind::Basic, country, &[]);
    if chosen.as_ref().is_some_and(|chosen| chosen.is_elsewhere) {
        warnings.push("No proxy in the asked country is configured; another was used.".to_owned());
    }
    let (proxy, upstream) = chosen.map(|chosen| (chosen.proxy, chosen.place)).unzip();
    let way = Way { accept_language: accept_language(options.location.as_ref()), proxy, upstream };
    let scope = MapScope::new(url.clone(), &options);
    let names_sitemap = is_sitemap(&url);
    // The path of a sitemap says nothing about the pages in it.
    let filter = if names_sitemap { Some(false) } else { options.filter_by_path };
    // To be ordered by relevance, more than what is asked for must be known.
    let enough = if options.search.is_some() { MAX_LIMIT as usize } else { options.limit };
    let links = Mutex::new(LinkSet::new(scope.clone(), filter, enough));
    let headers = Arc::new(CallerHeaders::new(&page.url, &options.headers));
    let map = Map { context, team: page.team_id, url, scope, way, headers, deadline, links, options };

    let (sitemaps, visited, ()) = tokio::join!(
        map.read_sitemaps(&map.url, names_sitemap),
        map.visit_start(names_sitemap),
        map.recall(names_sitemap),
    );
    let visited = match visited {
        None => None,
        Some(Ok(start)) => Some(start),
        // No sitemap of a forbidden address is answered either.
        Some(Err(error)) if error.code() == ErrorCode::AddressBlocked => return Err(error.into()),
        Some(Err(error)) if map.links().is_empty() => return Err(error.into()),
        // The sitemaps may do.
        Some(Err(error)) => {
            warnings.push(format!("The page itself could not be read: {error}."));
            None
        }
    };
    let mut language = None;
    if let Some(start) = &visited {
        language.clone_from(&start.language);
        map.moved(start, &mut warnings).await;
        if start.status >= 400 {
            warnings.push(format!("The page answered with status {}.", start.status));
        }
    } else if sitemaps.walk.files == 0 && map.links().is_empty() {
        // Nothing at all came of the site. Why, its page says best.
        if let Err(error) = map.visit(&map.url).await {
            return Err(error.into());
        }
    }
    if let Some(start) = &visited
        && map.options.sitemap != SitemapMode::Only
        && !names_sitemap
    {
        map.go_further(start, &sitemaps.rules).await;
    }
    map.tell_of_sitemaps(&sitemaps, &mut warnings);
    map.keep(sitemaps.walk.fresh).await;

    let Map { options, links, .. } = map;
    let links = links.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (job, claimed, worker) = (page.job_id, page.clone(), Arc::clone(context));
    blocking(move || {
        let (mut links, unfiltered) = links.finish();
        if unfiltered {
            warnings.push("Nothing but the page itself lies below its path, so links of the whole site are given. Set filterByPath to true to leave them out.".to_owned());
        }
        if let Some(words) = &options.search {
            let languages = options.location.iter().flat_map(|location| location.languages.clone());
            let languages: Vec<String> = language.into_iter().chain(languages).collect();
            links = rank::order(links, words, &languages);
        }
        links.truncate(options.limit);
        if links.len() <= 1 {
            warnings.push(few(links.len()).to_owned());
        }
        let warning = (!warnings.is_empty()).then(|| warnings.join(" "));
        let answer = MapAnswer { success: true, id: job, links: &links, warning };
        let blobs = &worker.process.blobs;
        Ok(documents::encode(blobs, job, claimed.id, claimed.epoch, &answer))
    })
    .await
    .map_err(|_| MapError { code: ErrorCode::Unknown, message: "Internal error.".to_owned() })?
    .map_err(|error| {
        tracing::error!(%error, job.id = %page.job_id, "a map cannot be stored");
        MapError { code: ErrorCode::Unknown, message: "The map could not be stored.".to_owned() }
    })
}

fn few(count: usize) -> &'static str {
    match count {
        0 => "No link was found. If the site has pages, try its start page, or sitemap \"include\".",
        _ => "Only one link was found. If the site has more pages, try its start page, or crawl it.",
    }
}

/// Whether an address is a sitemap by its name: then it is the one to read.
fn is_sitemap(url: &Url) -> bool {
    let file = url.path().rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    file.contains("sitemap") && [".xml", ".xml.gz", ".txt", ".txt.gz"].iter().any(|end| file.ends_with(end))
}

impl Map<'_> {
    fn links(&self) -> MutexGuard<'_, LinkSet> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads robots.txt and the sitemaps of a site into the links.
    async fn read_sitemaps(&self, site: &Url, names_sitemap: bool) -> Sitemaps {
        let robots = &self.context.process.robots;
        if self.options.ignore_cache {
            robots.forget(site);
        }
        let robots = robots.get(site, &self.way).await;
        let mut sitemaps = Sitemaps { rules: robots.rules(ROBOTS_AGENT), ..Sitemaps::default() };
        if self.options.sitemap == SitemapMode::Skip && !names_sitemap {
            return sitemaps;
        }
        let starts = if names_sitemap {
            sitemaps.named = true;
            vec![site.clone()]
        } else {
            sitemaps.named = !robots.sitemaps.is_empty();
            sitemap::starts(&robots, site)
        };
        let source = Source {
            fetcher: self.context.process.fetcher.clone(),
            way: self.way.clone(),
            headers: Arc::clone(&self.headers),
            cache: self.cache(),
        };
        let (sink, batches) = mpsc::channel(8);
        let mut bounds = Bounds::until(self.deadline);
        if sitemaps.rules.crawl_delay.is_some() {
            bounds.at_once = 1;
        }
        let (walk, ()) = tokio::join!(sitemap::collect(&source, starts, bounds, sink), self.take_batches(batches));
        sitemaps.walk = walk;
        sitemaps
    }

    /// Adds what sitemaps list until it is enough. Files are taken in their order: a later one counts only when those
    /// before it have ended, so that a small `limit` gives the same links each time.
    async fn take_batches(&self, mut batches: mpsc::Receiver<Batch>) {
        let mut files: Vec<(usize, bool)> = Vec::new();
        let mut settled = 0;
        let mut first_open = 0;
        while let Some(batch) = batches.recv().await {
            if files.len() <= batch.file {
                files.resize(batch.file + 1, (0, false));
            }
            let mut links = self.links();
            let mut added = 0;
            for entry in batch.entries {
                added += usize::from(links.add(entry.url, entry.title, entry.description, Origin::Sitemap(batch.file)));
            }
            files[batch.file].0 += added;
            files[batch.file].1 |= batch.ended;
            while let Some((count, true)) = files.get(first_open) {
                settled += count;
                first_open += 1;
            }
            let begun = files.get(first_open).map_or(0, |file| file.0);
            if settled + begun >= links.enough() || links.is_full() {
                return;
            }
        }
    }

    /// The kept sitemaps, unless nothing may be kept.
    fn cache(&self) -> Option<SitemapCache> {
        let options = &self.options;
        let variant = || {
            let location = options.location.as_ref()?;
            Some(format!("{} {}", location.country, location.languages.join(",")))
        };
        (!options.zero_retention && options.headers.is_empty()).then(|| {
            let db = self.context.process.db.clone();
            SitemapCache::new(db, self.team, variant().unwrap_or_default(), !options.ignore_cache)
        })
    }

    async fn keep(&self, fresh: Vec<(Url, crate::site::sitemap_cache::Packed)>) {
        if let Some(cache) = self.cache() {
            cache.put(fresh).await;
        }
    }

    /// Reads the page itself into the links, unless only sitemaps are wanted.
    async fn visit_start(&self, names_sitemap: bool) -> Option<Result<Visited, FetchError>> {
        if self.options.sitemap == SitemapMode::Only || names_sitemap {
            return None;
        }
        let visited = self.visit(&self.url).await;
        if let Ok(start) = &visited {
            self.add_page(start, Origin::Start, Origin::Page);
        }
        Some(visited)
    }

    async fn visit(&self, url: &Url) -> Result<Visited, FetchError> {
        let deadline = self.deadline.min(Instant::now() + PAGE_PATIENCE);
        page::visit(self.context, url, &self.headers, &self.way, deadline).await
    }

    fn add_page(&self, page: &Visited, own: Origin, linked: Origin) {
        let mut links = self.links();
        if page.status < 400 {
            links.add(page.url.clone(), page.title.clone(), page.description.clone(), own);
        }
        for url in &page.links {
            links.add(url.clone(), None, None, linked);
        }
    }

    /// A page that redirects to another site takes the map there.
    async fn moved(&self, start: &Visited, warnings: &mut Vec<String>) {
        if self.scope.is_site(&start.url) {
            return;
        }
        warnings
            .push(format!("The page redirects to {}; its links are given too.", start.url.host_str().unwrap_or("")));
        self.links().widen(MapScope::new(start.url.clone(), &self.options));
        self.add_page(start, Origin::Start, Origin::Page);
        let sitemaps = self.read_sitemaps(&start.url, false).await;
        self.keep(sitemaps.walk.fresh).await;
    }

    /// Adds pages that the team's jobs have seen.
    async fn recall(&self, names_sitemap: bool) {
        let options = &self.options;
        let is_wanted = options.use_index && !options.zero_retention && options.headers.is_empty();
        if !is_wanted || options.sitemap == SitemapMode::Only || names_sitemap {
            return;
        }
        let Some(site) = site_of(self.url.as_str()) else { return };
        let process = &self.context.process;
        let pages = async {
            let mut known = maps::known_pages(&process.db, self.team, &site, KNOWN, KNOWN_TITLED).await?;
            // An earlier map holds addresses of sitemaps. Where there are many, they are read again anyway.
            if options.sitemap == SitemapMode::Include {
                let (db, blobs) = (&process.db, &process.blobs);
                known.extend(maps::known_links(db, blobs, self.team, &site, KNOWN_MAP).await?);
            }
            // Pages whose jobs have expired are known as long as the cache has them.
            let cached = cache::known_urls(&process.db, self.team, &site, KNOWN).await?;
            known.extend(cached.into_iter().map(|url| KnownPage { url, title: None, description: None }));
            Ok::<_, StoreError>(known)
        };
        match pages.await {
            Ok(known) => {
                let mut links = self.links();
                for page in known {
                    if let Ok(url) = Url::parse(&page.url) {
                        links.add(url, page.title.map(Into::into), page.description.map(Into::into), Origin::Known);
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "what the team knows of a site could not be read"),
        }
    }

    /// Reads some of the pages found so far when they are few, as robots.txt allows. A site that wants pauses is left
    /// alone: somebody waits.
    async fn go_further(&self, start: &Visited, rules: &RobotsRules) {
        let thin = |map: &Self| {
            let links = map.links();
            links.wanted() < THIN.min(links.enough())
        };
        if !thin(self) || start.status >= 400 || rules.crawl_delay.is_some_and(|delay| delay > Duration::ZERO) {
            return;
        }
        let until = self.deadline.min(Instant::now() + FURTHER_PATIENCE);
        if start.is_scripted
            && let Some(rendered) =
                page::render(self.context, &start.url, &self.headers, &self.options, &self.way, until).await
        {
            self.add_page(&rendered, Origin::Start, Origin::Page);
        }
        let mut seen: HashSet<String> = [start.url.to_string(), self.url.to_string()].into();
        let mut queue: VecDeque<Url> = VecDeque::new();
        let mut visited = 0;
        loop {
            if queue.is_empty() {
                // What was found last is looked at next.
                let found = self.links().ordered();
                queue.extend(
                    found.into_iter().filter(|url| self.may_visit(url, start, rules) && !seen.contains(url.as_str())),
                );
            }
            let mut round = Vec::new();
            while round.len() < AT_ONCE.min(FURTHER - visited)
                && let Some(url) = queue.pop_front()
            {
                if seen.insert(url.to_string()) {
                    round.push(url);
                }
            }
            if round.is_empty() || Instant::now() >= until {
                return;
            }
            visited += round.len();
            let pages = join_all(round.iter().map(|url| self.visit(url)));
            let Ok(pages) = tokio::time::timeout_at(until, pages).await else { return };
            for page in pages.into_iter().flatten() {
                // A redirect to another site is none of this one's pages.
                if self.scope.is_site(&page.url) {
                    self.add_page(&page, Origin::Further, Origin::Further);
                }
            }
            if !thin(self) {
                return;
            }
        }
    }

    /// Whether a further page may be asked for: of the same origin as the page, which is where the rules come from.
    fn may_visit(&self, url: &Url, start: &Visited, rules: &RobotsRules) -> bool {
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        self.scope.is_site(url)
            && url.origin() == start.url.origin()
            && !is_other_file(url)
            && rules.allows(&format!("{}{query}", url.path()))
    }

    fn tell_of_sitemaps(&self, sitemaps: &Sitemaps, warnings: &mut Vec<String>) {
        let walk = &sitemaps.walk;
        if self.options.sitemap == SitemapMode::Only && walk.files == 0 {
            warnings.push("No sitemap was found.".to_owned());
        } else if walk.incomplete > 0 || sitemaps.named && walk.files == 0 && !walk.cut {
            warnings.push("Some sitemaps could not be read to their end; what was readable is included.".to_owned());
        }
        if walk.cut {
            warnings.push("The site has more sitemaps than were read.".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sitemap_is_told_by_its_name() {
        for (path, expected) in [
            ("/sitemap.xml", true),
            ("/maps/Sitemap-2.XML.gz", true),
            ("/sitemap.txt", true),
            ("/sitemap", false),
            ("/sitemap.html", false),
            ("/feed.xml", false),
            ("/", false),
        ] {
            let url = Url::parse(&format!("https://x.test{path}")).expect("a URL");
            assert_eq!(is_sitemap(&url), expected, "{path}");
        }
    }
}
