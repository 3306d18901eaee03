//! What the cache has to do with a page: its answer where the page need not be asked for, and its entry afterwards.
//!
//! A crawl's pages are not answered from it: what is kept of a page does not say where it leads.

use serde_json::value::RawValue;
use weir_shared::domain::cache::{self, Hit};
use weir_shared::domain::map::site_of;
use weir_shared::domain::scrape::CacheOptions;
use weir_shared::error_code::ErrorCode;
use weir_shared::store::cache as store;
use weir_shared::store::documents;
use weir_shared::store::page::end::CacheEntry;
use weir_shared::time::Timestamp;

use super::cpu::blocking;
use super::error::PageError;
use super::product::Product;
use super::task::PageTask;

/// The page as the cache has it. `None`: it is to be asked for.
///
/// # Errors
/// When the options want what the cache has and nothing else, and it has nothing; when what it has cannot be read.
pub async fn find(task: &PageTask) -> Result<Option<Product>, PageError> {
    let process = &task.context.process;
    let options = &task.options().cache;
    let found = match lookup(task) {
        None => None,
        Some(lookup) => match store::find(&process.db, &process.blobs, &lookup).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, page.id = %task.page.id, "the cache cannot be read");
                if options.is_only_cache() {
                    return Err(PageError::again(ErrorCode::Unknown, "The cache could not be read."));
                }
                // What is kept cannot be read now, but the site can still be asked.
                None
            }
        },
    };
    let Some(found) = found else { return miss(options).map_or(Ok(None), Err) };
    let task = task.clone();
    blocking(move || answer(&task, &found.json, found.cached_at).map(Some)).await
}

/// Why a page that the cache does not have is not asked for either. `None`: it is.
fn miss(options: &CacheOptions) -> Option<PageError> {
    if options.lockdown {
        let text = "The cache holds no such page, and in lockdown the site is not asked.";
        return Some(PageError::last(ErrorCode::LockdownCacheMiss, text));
    }
    options.min_age?;
    Some(PageError::last(ErrorCode::NoCachedData, "The cache holds no such page of the age asked for."))
}

/// Makes this page's document of a cached one. Computes and blocks.
fn answer(task: &PageTask, json: &RawValue, cached_at: Timestamp) -> Result<Product, PageError> {
    let page = &task.page;
    let waited = page.started_at.ms_since(page.queued_at);
    let hit = Hit {
        url: &page.url,
        page: page.id,
        cached_at,
        lockdown: task.options().cache.lockdown,
        limited_ms: page.limited.then_some(waited),
    };
    let failed = |error: &dyn std::fmt::Display| {
        tracing::error!(%error, page.id = %page.id, "a cached page cannot be answered");
        PageError::again(ErrorCode::Unknown, "The cached page could not be read.")
    };
    let (document, credits) = cache::answer(json, hit).map_err(|error| failed(&error))?;
    let blobs = &task.context.process.blobs;
    let document =
        documents::encode(blobs, page.job_id, page.id, page.epoch, &document).map_err(|error| failed(&error))?;
    Ok(Product { document, harvest: None, credits })
}

/// What is asked of the cache for this page, if anything is.
fn lookup(task: &PageTask) -> Option<cache::Lookup> {
    if task.context.process.settings.cache_size == 0 || task.spec.crawl.is_some() {
        return None;
    }
    cache::lookup(&task.page.url, task.options(), task.page.team_id, task.context.process.db.now())
}

/// What the cache has to do with a page that the site has answered.
pub struct CacheUse {
    /// It was asked and had nothing.
    pub is_miss: bool,
    /// Where the page is kept if it was read whole.
    pub entry: Option<Box<CacheEntry>>,
}

/// The page's use of the cache.
pub fn cache_use(task: &PageTask) -> CacheUse {
    let PageTask { context, page, spec, .. } = task;
    let options = &spec.options.cache;
    let is_miss = options.is_asked() && spec.crawl.is_none();
    let has_cache = context.process.settings.cache_size > 0;
    let key = (has_cache && (is_miss || options.is_kept())).then(|| cache::key(&page.url, &spec.options, page.team_id));
    let Some(key) = key.flatten() else { return CacheUse { is_miss: false, entry: None } };
    let entry = || Box::new(CacheEntry { key, url: page.url.clone(), site: site_of(&page.url) });
    CacheUse { is_miss, entry: options.is_kept().then(entry) }
}
