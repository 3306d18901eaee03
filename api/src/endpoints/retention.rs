//! Zero data retention (spec 4.7): who has it, and what of a request is written down then.

use std::time::Duration;

use weir_shared::clock;
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::domain::target::without_user;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::contents::retention;
use weir_shared::store::work::pages;

use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::error::{ApiError, ApiResult};

/// How long the end of a page is waited for that its caller does not wait for any more. It was told to end.
const AFTERMATH: Duration = Duration::from_secs(120);

/// Settles whether the request keeps nothing: the team has it for everything, and lockdown is treated so.
///
/// # Errors
/// 403 when it is asked for and the team does not have it.
pub fn settle(caller: &Caller, options: &mut ScrapeOptions) -> ApiResult<()> {
    let has_it = caller.team.zero_data_retention;
    if options.zero_retention && !has_it {
        let text = "Zero data retention is not enabled for this team. Ask the operator of this service.";
        return Err(ApiError::new(ErrorCode::Forbidden, text));
    }
    options.zero_retention = has_it || options.cache.lockdown;
    Ok(())
}

/// An address as lists and activity have it: without a name and a password, and `None` where nothing may be kept.
pub fn shown(options: &ScrapeOptions, url: &str) -> Option<String> {
    (!options.zero_retention).then(|| without_user(url))
}

/// Takes out of the rows what has been delivered. A failure is made good by the sweeper, some minutes later.
pub async fn forget(app: &App, job: JobId) {
    if let Err(error) = retention::forget(&app.db, &app.blobs, job).await {
        tracing::warn!(job.id = %job, %error, "what was delivered cannot be forgotten yet");
    }
}

/// The same for a scrape that was not answered with its document, if its page has ended. `None` written, nothing to forget.
/// Returns whether that is settled.
pub async fn forget_ended(app: &App, job: JobId, page: PageId) -> bool {
    match pages::load(&app.db, page).await {
        Ok(None) => true,
        Ok(Some(row)) if row.finished_at.is_some() => {
            forget(app, job).await;
            true
        }
        Ok(Some(_)) => false,
        Err(error) => {
            tracing::warn!(job.id = %job, %error, "the end of what is to be forgotten cannot be looked for");
            false
        }
    }
}

/// The same as soon as the page ends.
pub async fn forget_at_end(app: AppData, job: JobId, page: PageId) {
    let until = clock::deadline(AFTERMATH);
    loop {
        let mut end = app.wake.expect(page);
        if forget_ended(&app, job, page).await {
            return;
        }
        if clock::instant() >= until {
            tracing::warn!(job.id = %job, "a page that is to be forgotten does not end; the sweeper forgets it");
            return;
        }
        let again = clock::deadline(Duration::from_secs(5)).min(until);
        if end.ended(again).await.is_err() {
            tokio::time::sleep_until(again).await;
        }
    }
}
