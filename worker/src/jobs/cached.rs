//! Pages that need not be asked for: what the cache has of them.
//!
//! A crawl's pages are not answered from it: what is kept of a page does not say where it leads.

use std::sync::Arc;

use weir_shared::domain::cache::{self, Hit};
use weir_shared::domain::map::site_of;
use weir_shared::error_code::ErrorCode;
use weir_shared::store::cache as store;
use weir_shared::store::documents;
use weir_shared::store::jobs::JobSpec;
use weir_shared::store::page::end::CacheEntry;
use weir_shared::store::page::rows::Claimed;
use weir_shared::time::Timestamp;

use super::scrape_page::{PageError, Product, blocking};
use crate::context::WorkerContext;

/// The page as the cache has it. `None`: it is to be asked for.
pub(super) async fn find(
    context: &Arc<WorkerContext>,
    page: &Claimed,
    spec: &Arc<JobSpec>,
) -> Result<Option<Product>, PageError> {
    let options = &spec.options.cache;
    let found = match lookup(context, page, spec) {
        None => None,
        Some(lookup) => match store::find(&context.process.db, &context.process.blobs, &lookup).await {
            Ok(found) => found,
            // The page can still be asked for.
            Err(error) if !options.is_only_cache() => {
                tracing::warn!(%error, page.id = %page.id, "the cache cannot be read");
                None
            }
            Err(error) => {
                tracing::warn!(%error, page.id = %page.id, "the cache cannot be read");
                return Err(PageError::again(ErrorCode::Unknown, "The cache could not be read."));
            }
        },
    };
    let Some(found) = found else {
        return match (options.lockdown, options.min_age) {
            (true, _) => Err(PageError::last(
                ErrorCode::LockdownCacheMiss,
                "The cache holds no such page, and in lockdown the site is not asked.",
            )),
            (false, Some(_)) => {
                Err(PageError::last(ErrorCode::NoCachedData, "The cache holds no such page of the age asked for."))
            }
            (false, None) => Ok(None),
        };
    };
    let (context, page, lockdown) = (Arc::clone(context), page.clone(), options.lockdown);
    blocking(move || {
        let waited = page.started_at.ms_since(page.queued_at);
        let hit = Hit {
            url: &page.url,
            page: page.id,
            cached_at: found.cached_at,
            lockdown,
            limited_ms: page.limited.then_some(waited),
        };
        let failed = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, page.id = %page.id, "a cached page cannot be answered");
            PageError::again(ErrorCode::Unknown, "The cached page could not be read.")
        };
        let (document, credits) = cache::answer(&found.json, hit).map_err(|error| failed(&error))?;
        let blobs = &context.process.blobs;
        let document =
            documents::encode(blobs, page.job_id, page.id, page.epoch, &document).map_err(|error| failed(&error))?;
        Ok(Some(Product { document, harvest: None, credits }))
    })
    .await
}

/// What is asked of the cache for this page, if anything is.
fn lookup(context: &WorkerContext, page: &Claimed, spec: &JobSpec) -> Option<cache::Lookup> {
    if context.process.settings.cache_size == 0 || spec.crawl.is_some() {
        return None;
    }
    cache::lookup(&page.url, &spec.options, page.team_id, Timestamp::now())
}

/// What the cache has to do with a page that the site has answered.
pub(super) struct Place {
    /// It was asked and had nothing.
    pub is_miss: bool,
    /// Where the page is kept if it was read whole.
    pub entry: Option<Box<CacheEntry>>,
}

/// The page's place.
pub(super) fn place(context: &WorkerContext, page: &Claimed, spec: &JobSpec) -> Place {
    let options = &spec.options.cache;
    let is_miss = options.is_asked() && spec.crawl.is_none();
    let has_cache = context.process.settings.cache_size > 0;
    let key = (has_cache && (is_miss || options.is_kept())).then(|| cache::key(&page.url, &spec.options, page.team_id));
    let Some(key) = key.flatten() else { return Place { is_miss: false, entry: None } };
    let entry = || Box::new(CacheEntry { key, url: page.url.clone(), site: site_of(&page.url) });
    Place { is_miss, entry: options.is_kept().then(entry) }
}
