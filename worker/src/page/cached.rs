//! A page without asking its site: made of what the site has sent before, as if it came now.

use tokio::time::Instant;
use weir_shared::domain::cache;
use weir_shared::domain::scrape::CacheOptions;
use weir_shared::error_code::ErrorCode;
use weir_shared::llm::Allowance;
use weir_shared::store::StoreError;
use weir_shared::store::contents::cache::Found;

use super::complete::{complete, refuse_unreadable};
use super::cpu::blocking;
use super::draft::Made;
use super::error::PageError;
use super::make::stored::from_stored;
use super::product::Product;
use super::sent::Kept;
use super::task::PageTask;

/// The page, of what is kept of it. `None`: its site is to be asked.
///
/// # Errors
/// When the options want what is kept and nothing else, and there is nothing, or it cannot be read; when nothing can be
/// made of it, as if it came now.
pub async fn from_store(task: &PageTask, time: &Allowance) -> Result<Option<Product>, PageError> {
    let process = &task.context.process;
    for found in look(task).await? {
        if !found.head.serves(task.options()) {
            continue;
        }
        if let Some(made) = make(task, &found, time.ends()).await? {
            process.uses.note(&found, process.db.now());
            return complete(task, made, time).await.map(Some);
        }
    }
    miss(&task.options().cache).map_or(Ok(None), Err)
}

/// What is kept, newest first.
async fn look(task: &PageTask) -> Result<Vec<Found>, PageError> {
    let process = &task.context.process;
    if process.settings.cache_size == 0 {
        return Ok(Vec::new());
    }
    let lookup = cache::lookup(&task.address(), task.options(), task.page.team_id, process.db.now());
    let Some(lookup) = lookup else { return Ok(Vec::new()) };
    refuse_unreadable(&task.context, task.options())?;
    match process.finder.find(lookup).await {
        Ok(found) => Ok(found),
        Err(error) => unread(task, &error).map(|()| Vec::new()),
    }
}

/// What is kept cannot be read now, but the site can still be asked, where the caller lets us.
fn unread(task: &PageTask, error: &StoreError) -> Result<(), PageError> {
    tracing::warn!(%error, page.id = %task.page.id, "what is kept of a page cannot be read");
    match task.options().cache.is_only_cache() {
        true => Err(PageError::again(ErrorCode::Unknown, "The cache could not be read.")),
        false => Ok(()),
    }
}

/// Why a page that is not kept is not asked for either. `None`: it is.
fn miss(options: &CacheOptions) -> Option<PageError> {
    if options.lockdown {
        let text = "The cache holds no such page, and in lockdown the site is not asked.";
        return Some(PageError::last(ErrorCode::LockdownCacheMiss, text));
    }
    options.min_age?;
    Some(PageError::last(ErrorCode::NoCachedData, "The cache holds no such page of the age asked for."))
}

/// Makes the page. `None`: what is asked for cannot be made of this.
async fn make(task: &PageTask, found: &Found, deadline: Instant) -> Result<Option<Made>, PageError> {
    let unpacked = match found.clone().bring(&task.context.process.blobs).await {
        Ok(brought) => blocking(task.holder(), move || Ok(brought.unpack())).await?,
        Err(error) => Err(error),
    };
    let kept = match unpacked {
        Ok(content) => Kept::new(found, content, task.options()),
        Err(StoreError::Lost(why)) => {
            // Its room may have been needed between the two reads.
            tracing::debug!(why, page.id = %task.page.id, "what is kept of a page is gone");
            None
        }
        Err(error) => {
            unread(task, &error)?;
            None
        }
    };
    match kept {
        None => Ok(None),
        Some(kept) => from_stored(task, found, kept, deadline).await,
    }
}
