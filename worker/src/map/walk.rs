//! How a map comes to its links: what a site's sitemaps, its page, some further pages and earlier jobs of the team say.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::time::Instant;
use url::Url;
use weir_shared::clock;
use weir_shared::domain::crawl::SitemapMode;
use weir_shared::domain::crawl::scope::is_other_file;
use weir_shared::domain::map::{MapOptions, MapScope, site_of};
use weir_shared::domain::target::Login;
use weir_shared::ids::TeamId;
use weir_shared::store::StoreError;
use weir_shared::store::contents::cache;
use weir_shared::store::work::maps::{self, KnownPage};

use super::links::{LinkSet, Origin};
use super::page::{self, Visited};
use crate::context::WorkerContext;
use crate::fetch::{CallerHeaders, FetchError};
use crate::site::sitemap::{self, Asking, Batch, Bounds, Source, Walk};
use crate::site::sitemap_cache::{Packed, SitemapCache};
use crate::site::{ROBOTS_AGENT, RobotsRules, SiteRoute};

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

/// What all parts of a map share.
pub struct Map<'a> {
    pub context: &'a Arc<WorkerContext>,
    pub team: TeamId,
    pub options: MapOptions,
    /// As asked for.
    pub url: Url,
    /// What that says of the caller, for all that is asked of its origin.
    pub login: Option<Login>,
    /// The address is a sitemap by its name: then it is the one to read, and no page is.
    pub names_sitemap: bool,
    pub scope: MapScope,
    pub route: SiteRoute,
    /// The options' headers.
    pub headers: Arc<CallerHeaders>,
    pub deadline: Instant,
    pub links: Mutex<LinkSet>,
}

/// What the sitemaps came to.
#[derive(Default)]
pub struct Sitemaps {
    pub walk: Walk,
    /// Robots.txt names some.
    pub named: bool,
    pub rules: RobotsRules,
}

impl Map<'_> {
    /// The links so far.
    pub fn links(&self) -> MutexGuard<'_, LinkSet> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads robots.txt and the sitemaps of a site into the links.
    pub async fn read_sitemaps(&self, site: &Url, names_sitemap: bool) -> Sitemaps {
        let robots = &self.context.process.robots;
        if self.options.ignore_cache {
            robots.forget(site);
        }
        let robots = robots.get(site, &self.route).await;
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
            team: self.team,
            fetcher: self.context.process.fetcher.clone(),
            route: self.route.clone(),
            headers: Arc::clone(&self.headers),
            login: self.login.clone(),
            cache: self.cache(),
            asking: Asking::Always,
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

    /// Keeps sitemaps that were fetched, unless nothing may be kept.
    pub async fn keep(&self, fresh: Vec<(Url, Packed)>) {
        if let Some(cache) = self.cache() {
            cache.put(fresh).await;
        }
    }

    /// Reads the page itself into the links, unless only sitemaps are wanted.
    pub async fn visit_start(&self) -> Option<Result<Visited, FetchError>> {
        if self.options.sitemap == SitemapMode::Only || self.names_sitemap {
            return None;
        }
        let visited = self.visit(&self.url).await;
        if let Ok(start) = &visited {
            self.add_page(start, Origin::Start, Origin::Page);
        }
        Some(visited)
    }

    /// Reads a page of the site.
    pub async fn visit(&self, url: &Url) -> Result<Visited, FetchError> {
        let deadline = self.deadline.min(clock::deadline(PAGE_PATIENCE));
        page::visit(self.context, &self.signed(url), &self.headers, &self.route, self.team, deadline).await
    }

    /// An address as it is asked for.
    fn signed(&self, url: &Url) -> Url {
        self.login.as_ref().map_or_else(|| url.clone(), |login| login.put(url.clone()))
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
    pub async fn moved(&self, start: &Visited, warnings: &mut Vec<String>) {
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
    pub async fn recall(&self) {
        let options = &self.options;
        let is_wanted = options.use_index && !options.zero_retention && options.headers.is_empty();
        if !is_wanted || options.sitemap == SitemapMode::Only || self.names_sitemap {
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
    pub async fn go_further(&self, start: &Visited, rules: &RobotsRules) {
        let thin = |map: &Self| {
            let links = map.links();
            links.wanted() < THIN.min(links.enough())
        };
        if !thin(self) || start.status >= 400 || rules.crawl_delay.is_some_and(|delay| delay > Duration::ZERO) {
            return;
        }
        let until = self.deadline.min(clock::deadline(FURTHER_PATIENCE));
        if start.is_scripted
            && let Some(rendered) = page::render(
                self.context,
                &self.signed(&start.url),
                &self.headers,
                &self.options,
                &self.route,
                self.team,
                until,
            )
            .await
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
            if round.is_empty() || clock::instant() >= until {
                return;
            }
            visited += round.len();
            let pages = join_all(round.iter().map(|url| self.visit(url)));
            let Ok(pages) = tokio::time::timeout_at(until, pages).await else { return };
            for page in pages.into_iter().flatten() {
                // A redirect may lead to another site, whose pages do not belong here.
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

    /// What the caller should know of the sitemaps.
    pub fn tell_of_sitemaps(&self, sitemaps: &Sitemaps, warnings: &mut Vec<String>) {
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
