//! Zero data retention (SPEC 4.7): who has it, and what of a request is written down then.

use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::store::retention;

use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};

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

/// An address as lists and activity show it: `None` where nothing may be kept.
pub fn shown(options: &ScrapeOptions, url: &str) -> Option<String> {
    (!options.zero_retention).then(|| url.to_owned())
}

/// Takes out of the rows what has been delivered. A failure is made good by the sweeper, some minutes later.
pub async fn forget(app: &App, job: JobId) {
    if let Err(error) = retention::forget(&app.db, &app.blobs, job).await {
        tracing::warn!(job.id = %job, %error, "what was delivered cannot be forgotten yet");
    }
}
