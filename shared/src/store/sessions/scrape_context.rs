//! What is kept of a scrape for the session that continues it (wire 8.4).

use serde::Deserialize;

use crate::blobs::Blobs;
use crate::domain::interact::ScrapeContext;
use crate::domain::job::{JobKind, PageState};
use crate::ids::PageId;
use crate::store::work::{documents, jobs, pages};
use crate::store::{Db, StoreError, StoreResult};
use crate::time::Timestamp;

/// The part of a document that says where the page was in the end, and through what.
#[derive(Deserialize)]
struct Ended {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    url: Option<String>,
    proxy_used: Option<String>,
}

/// What the scrape of this page was asked and where it ended. `None`: it did not succeed, or it is not kept any more.
pub async fn load(db: &Db, blobs: &Blobs, page: PageId, now: Timestamp) -> StoreResult<Option<ScrapeContext>> {
    let Some(row) = pages::load(db, page).await?.filter(|row| row.state == PageState::Done) else { return Ok(None) };
    let job = jobs::load(db, row.job_id).await?;
    if job.is_none_or(|job| job.kind == JobKind::Map || job.has_expired(now)) {
        return Ok(None);
    }
    let Some(spec) = jobs::spec(db, row.job_id).await? else { return Ok(None) };
    let Some(address) = pages::address(db, page).await? else { return Ok(None) };
    let end = match documents::by_page(db, blobs, page).await {
        Ok(Some(document)) => serde_json::from_str::<Ended>(document.json.get())?.metadata,
        Ok(None) => return Ok(None),
        // The address that was asked for is known from the row all the same.
        Err(StoreError::Lost(why)) => {
            tracing::warn!(why, page.id = %page, "a scrape whose document is lost is continued where it began");
            Metadata { url: None, proxy_used: None }
        }
        Err(error) => return Err(error),
    };
    let is_enhanced = end.proxy_used.as_deref() == Some("stealth");
    let final_url = end.url.filter(|url| !url.is_empty()).unwrap_or(row.url);
    let (url, named) = (spec.asked(&address).into_owned(), spec.named(&address).map(str::to_owned));
    Ok(Some(ScrapeContext { url, named, final_url, options: spec.options, is_enhanced }))
}
