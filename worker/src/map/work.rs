//! One map from claim to end (spec 4.9).

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::Instant;
use url::Url;
use weir_shared::clock;
use weir_shared::domain::crawl::SitemapMode;
use weir_shared::domain::map::{CREDITS, Link, MAX_LIMIT, MapOptions, MapScope};
use weir_shared::domain::target::{Login, fetch_url};
use weir_shared::error_code::ErrorCode;
use weir_shared::guests::Urgency;
use weir_shared::ids::TeamId;
use weir_shared::store::work::maps;
use weir_shared::store::work::page::end::{Encoded, Outcome};

use super::answer::{Gathered, answer};
use super::error::MapError;
use super::links::LinkSet;
use super::page::Visited;
use super::walk::{Map, Sitemaps};
use crate::context::WorkerContext;
use crate::fetch::{CallerHeaders, FetchError};
use crate::page::cpu::blocking;
use crate::page::request::accept_language;
use crate::page::task::PageTask;
use crate::site::SiteRoute;

/// Bound on a map without a `timeout`: what is known by then is answered.
const PATIENCE: Duration = Duration::from_secs(240);
/// The parts of a map with a `timeout` may take this much longer, so that it is the map that times out.
const PAST_END: Duration = Duration::from_secs(1);
/// A map without a `timeout` may take this much longer than [`PATIENCE`], for its order and its answer.
const LAST_STEPS: Duration = Duration::from_secs(15);

/// Works on a map and says how it ended. Never fails for good because of us when another try may work: the claim's
/// owner then dies or gives it back.
pub async fn run(task: &PageTask) -> Outcome {
    let PageTask { context, page, .. } = task;
    let waited = Duration::from_millis(page.started_at.ms_since(page.queued_at).unsigned_abs());
    let started = clock::instant();
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
    let work = AssertUnwindSafe(map(task, options, soft)).catch_unwind();
    let hard = end.unwrap_or(started + PATIENCE + LAST_STEPS);
    let result = match tokio::time::timeout_at(hard, work).await {
        Err(_) => Err(MapError {
            code: ErrorCode::MapTimeout,
            message: "The map timed out. Raise timeout, or leave it out.".to_owned(),
        }),
        Ok(Err(_)) => Err(MapError::internal()),
        Ok(Ok(result)) => result,
    };
    let pages = &context.process.metrics.pages;
    match result {
        Ok(document) => {
            pages.with_label_values(&["map", "done"]).inc();
            let _ = task.attempted.engine.set("map");
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

async fn map(task: &PageTask, options: MapOptions, deadline: Instant) -> Result<Encoded, MapError> {
    let (context, page) = (&task.context, &task.page);
    answer(task, gather(context, page.team_id, &page.url, options, deadline).await?).await
}

/// The links of a site in their order, for a task of this worker.
///
/// # Errors
/// Why there are none.
pub async fn links(
    context: &Arc<WorkerContext>,
    team: TeamId,
    url: &str,
    options: MapOptions,
) -> Result<Vec<Link>, MapError> {
    let deadline = clock::deadline(options.timeout.map_or(PATIENCE, Duration::from_millis).min(PATIENCE));
    let gathered = gather(context, team, url, options, deadline).await?;
    blocking((team, Urgency::Background), move || Ok(gathered.ordered().0)).await.map_err(|_| MapError::internal())
}

/// Reads the site.
async fn gather(
    context: &Arc<WorkerContext>,
    team: TeamId,
    url: &str,
    options: MapOptions,
    deadline: Instant,
) -> Result<Gathered, MapError> {
    let mut warnings = Vec::new();
    let map = prepare(context, team, url, options, deadline, &mut warnings)?;
    let (sitemaps, visited, ()) =
        tokio::join!(map.read_sitemaps(&map.url, map.names_sitemap), map.visit_start(), map.recall());
    let start = judge_start(&map, &sitemaps, visited, &mut warnings).await?;
    let mut language = None;
    if let Some(start) = start {
        map.moved(&start, &mut warnings).await;
        if start.status >= 400 {
            warnings.push(format!("The page answered with status {}.", start.status));
        }
        if map.options.sitemap != SitemapMode::Only && !map.names_sitemap {
            map.go_further(&start, &sitemaps.rules).await;
        }
        language = start.language;
    }
    map.tell_of_sitemaps(&sitemaps, &mut warnings);
    map.keep(sitemaps.walk.fresh).await;
    let Map { options, links, .. } = map;
    let links = links.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Gathered { options, links, language, warnings })
}

fn prepare<'a>(
    context: &'a Arc<WorkerContext>,
    team: TeamId,
    asked: &str,
    options: MapOptions,
    deadline: Instant,
    warnings: &mut Vec<String>,
) -> Result<Map<'a>, MapError> {
    let url = fetch_url(asked).map_err(|error| MapError { code: ErrorCode::BadRequest, message: error.to_string() })?;
    if !options.sites.allows(&url) {
        let host = url.host_str().unwrap_or_default();
        let message = format!("The site {host} is blocked by the lists of threatProtection.");
        return Err(MapError { code: ErrorCode::AddressBlocked, message });
    }
    let route = SiteRoute {
        accept_language: accept_language(options.location.as_ref()),
        proxies: Some(Arc::clone(&context.process.proxies)),
        country: options.location.as_ref().map(|location| location.country.clone()),
        sites: options.sites.clone(),
    };
    if route.way().is_elsewhere() {
        warnings.push("No proxy in the asked country is configured; another was used.".to_owned());
    }
    let scope = MapScope::new(url.clone(), &options);
    let names_sitemap = is_sitemap(&url);
    // The path of a sitemap says nothing about the pages in it.
    let filter = if names_sitemap { Some(false) } else { options.filter_by_path };
    // To be ordered by relevance, more than what is asked for must be known.
    let enough = if options.search.is_some() { MAX_LIMIT as usize } else { options.limit };
    let links = Mutex::new(LinkSet::new(scope.clone(), filter, enough));
    let headers = Arc::new(CallerHeaders::new(Some(asked), &options.headers));
    let login = Login::of(asked);
    Ok(Map { context, team, url, login, names_sitemap, scope, route, headers, deadline, links, options })
}

/// The page itself, where it was read. Without it the sitemaps must do, and where nothing at all came of the site the
/// map fails.
async fn judge_start(
    map: &Map<'_>,
    sitemaps: &Sitemaps,
    visited: Option<Result<Visited, FetchError>>,
    warnings: &mut Vec<String>,
) -> Result<Option<Visited>, MapError> {
    match visited {
        Some(Ok(start)) => return Ok(Some(start)),
        None => {}
        // No sitemap of a forbidden address is answered either.
        Some(Err(error)) if error.code() == ErrorCode::AddressBlocked => return Err(error.into()),
        Some(Err(error)) if map.links().is_empty() => return Err(error.into()),
        Some(Err(error)) => warnings.push(format!("The page itself could not be read: {error}.")),
    }
    if sitemaps.walk.files == 0 && map.links().is_empty() {
        // Why nothing came, the page says best.
        map.visit(&map.url).await?;
    }
    Ok(None)
}

/// Whether an address is a sitemap by its name: then it is the one to read.
fn is_sitemap(url: &Url) -> bool {
    let file = url.path().rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    file.contains("sitemap") && [".xml", ".xml.gz", ".txt", ".txt.gz"].iter().any(|end| file.ends_with(end))
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
