//! A scrape that the cache can answer: no worker, and the same rows as for any other, all of them done, in one
//! transaction.

use actix_web::web;
use serde_json::value::{RawValue, to_raw_value};
use weir_shared::clock::Stopwatch;
use weir_shared::domain::activity::Endpoint;
use weir_shared::domain::cache::{self, Hit};
use weir_shared::domain::figures::PageEnd;
use weir_shared::domain::scrape_request::ScrapeRequest;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::activity::{self, Entry};
use weir_shared::store::cache as store;
use weir_shared::store::page::end::{Body, Encoded};
use weir_shared::store::retention::expiry;
use weir_shared::store::{StoreError, credits, documents, pages};
use weir_shared::time::Timestamp;

use crate::app::App;
use crate::auth::Caller;
use crate::endpoints::direct::refuse_short_funds;
use crate::endpoints::retention;
use crate::error::{ApiError, ApiResult};

/// The document, if the cache has one, and the page that it is of.
///
/// # Errors
/// 402 when the team cannot pay for it.
pub async fn answer(app: &App, caller: &Caller, scrape: &ScrapeRequest) -> ApiResult<Option<(Box<RawValue>, PageId)>> {
    let (now, began) = (app.db.now(), Stopwatch::start());
    if app.settings.cache_size == 0 {
        return Ok(None);
    }
    let Some(lookup) = cache::lookup(&scrape.url, &scrape.options, caller.team_id(), now) else { return Ok(None) };
    let found = match store::find(&app.db, &app.blobs, &lookup).await {
        // What is kept cannot be read now, but the site can still be asked.
        Err(StoreError::BlobsAway(error)) if !scrape.options.cache.is_only_cache() => {
            tracing::warn!(%error, "the cache cannot be read");
            None
        }
        found => found?,
    };
    let Some(found) = found else { return Ok(None) };
    let (job, page) = (JobId::new(), PageId::new());
    let made = make(app, scrape, found, job, page).await?;
    let blob = match &made.document.body {
        Body::Blob(key) => Some(key.clone()),
        Body::Inline(_) => None,
    };
    let written = write(app, caller, scrape, job, page, made.document, made.credits, now).await;
    // An answer to the commit that is lost says nothing of the rows: these do, and what is written is answered.
    let is_unknown = written.as_ref().is_err_and(|error| error.code() == ErrorCode::Unavailable);
    let written = match written {
        Err(_) if is_unknown && pages::load(&app.db, page).await?.is_some() => Ok(()),
        written => written,
    };
    // No row refers to the blob: the rows were refused, or nothing of this request is kept.
    if (scrape.options.zero_retention || (written.is_err() && !is_unknown))
        && let Some(blob) = blob
    {
        let blobs = app.blobs.clone();
        let _ = web::block(move || blobs.remove(&blob)).await;
    }
    written?;
    let duration = began.elapsed();
    app.figures.page(PageEnd { team: caller.team_id(), engine: "cache", code: None, duration, credits: made.credits });
    Ok(Some((made.json, page)))
}

struct Made {
    json: Box<RawValue>,
    document: Encoded,
    credits: i64,
}

async fn make(
    app: &App,
    scrape: &ScrapeRequest,
    found: store::CachedPage,
    job: JobId,
    page: PageId,
) -> ApiResult<Made> {
    let (url, lockdown, blobs) = (scrape.url.clone(), scrape.options.cache.lockdown, app.blobs.clone());
    let work = move || -> anyhow::Result<Made> {
        let hit = Hit { url: &url, page, cached_at: found.cached_at, lockdown, limited_ms: None };
        let (fields, credits) = cache::answer(&found.json, hit)?;
        let document = documents::encode(&blobs, job, page, 0, &fields)?;
        Ok(Made { json: to_raw_value(&fields)?, document, credits })
    };
    web::block(work).await.map_err(|error| ApiError::internal(&error))?.map_err(|error| ApiError::internal(&error))
}

#[expect(clippy::too_many_arguments, reason = "one row, in one place")]
async fn write(
    app: &App,
    caller: &Caller,
    scrape: &ScrapeRequest,
    job: JobId,
    page: PageId,
    document: Encoded,
    credits: i64,
    now: Timestamp,
) -> ApiResult<()> {
    let mut tx = app.db.begin().await?;
    let funds = credits::check_funds(&mut tx, caller.team_id(), credits, app.settings.limits.metered).await?;
    refuse_short_funds(funds, credits)?;
    let row = store::Answered {
        job,
        page,
        team: caller.team_id(),
        key: caller.key,
        options: &scrape.options,
        url: &scrape.url,
        origin: scrape.origin.as_deref(),
        document,
        credits,
        now,
        expires_at: match scrape.options.zero_retention {
            true => expiry(now, 0),
            false => now.plus_ms(app.settings.result_ttl.as_millis() as i64),
        },
    };
    store::write_answered(&mut tx, row).await?;
    let target = retention::shown(&scrape.options, &scrape.url);
    let entry = Entry { id: page.0, endpoint: Endpoint::Scrape, version: scrape.version, target, created_at: now };
    activity::record(&mut tx, caller.team_id(), &entry).await?;
    tx.commit().await?;
    Ok(())
}
