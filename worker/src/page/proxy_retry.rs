//! Through which proxies a page is asked for: one of the kind that the options want, another one where it fails, and with
//! `proxy: auto` an enhanced one where the site refuses (spec 4.7).

use tokio::time::Instant;
use weir_shared::clock;
use weir_shared::domain::scrape::ProxyMode;

use super::error::PageError;
use super::load::{Loaded, load};
use super::request::{PageRequest, ProxyRoute};
use super::task::PageTask;
use crate::fetch::{ProxyKind, ProxyPools};

/// Asks for the page by the proxy routes that its options allow.
///
/// # Errors
/// What the last route has failed with.
pub async fn load_page(task: &PageTask, deadline: Instant) -> Result<Loaded, PageError> {
    let has_enhanced = task.context.process.proxies.has(ProxyKind::Enhanced);
    let mode = task.options().proxy;
    let kind = if mode == ProxyMode::Enhanced { ProxyKind::Enhanced } else { ProxyKind::Basic };
    let first = load_by(task, kind, deadline).await;
    let is_blocked = match &first {
        Ok(loaded) => loaded.is_blocked,
        Err(error) => error.may_be_refusal(),
    };
    if mode != ProxyMode::Auto || !is_blocked || !has_enhanced || task.attempted.has_acted() {
        return first;
    }
    match (load_by(task, ProxyKind::Enhanced, deadline).await, first) {
        // What the first kind has brought is better than nothing.
        (Err(_), Ok(first)) => Ok(first),
        // It may come later.
        (Err(second), Err(first)) if second.rest.is_none() && first.rest.is_some() => Err(first),
        (second, _) => second,
    }
}

/// The same by proxies of one kind.
async fn load_by(task: &PageTask, kind: ProxyKind, deadline: Instant) -> Result<Loaded, PageError> {
    let proxies = &task.context.process.proxies;
    let location = task.options().location.as_ref();
    let mut failed = Vec::new();
    loop {
        let route = ProxyRoute::choose(proxies, location, kind, &failed);
        let chosen = route.chosen.clone();
        let outcome = load(task, PageRequest::new(&task.page, &task.spec, route)?, deadline).await;
        let Some(chosen) = chosen else { return outcome };
        if !outcome.as_ref().is_err_and(PageError::is_of_proxy) {
            proxies.worked(chosen.place);
            return outcome;
        }
        proxies.suspect(&chosen).await;
        failed.push(chosen.place);
        let is_last = ProxyRoute::choose(proxies, location, kind, &failed).chosen.is_none();
        let is_over = failed.len() >= ProxyPools::TRIES || clock::instant() >= deadline;
        if is_last || is_over || task.attempted.has_acted() {
            return outcome;
        }
    }
}
