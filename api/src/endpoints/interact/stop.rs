//! `DELETE /v2/scrape/{jobId}/interact` (spec 4.6): ends the scrape's session. Told again, it answers the same.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use tokio::time::Duration;
use weir_shared::clock;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::PageId;
use weir_shared::store::work::pages;

use super::{forbidden, opened};
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::endpoints::browser::delete;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};

/// How long a session that is just being opened is waited for.
const PATIENCE: Duration = Duration::from_secs(40);

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Ends the session that continues the scrape, and bills it. Told again, it answers the same.";
    delete::answers(Operation::new(Group::Interact, "stopInteraction", "End the interaction", text))
        .errors(&[400, 403, 404])
}

/// Handles the request.
///
/// # Errors
/// 400 for a malformed id, 403 for another team's scrape or session, 404 when there is no session of this scrape.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let id: PageId = extract::path_id(&id)?;
    let page = pages::load(&app.db, id).await?;
    if page.is_some_and(|page| page.team_id != caller.team_id()) {
        return Err(forbidden());
    }
    let Some(row) = opened(&app, id, clock::deadline(PATIENCE)).await? else {
        return Err(ApiError::new(ErrorCode::NotFound, "No browser session found for this scrape job."));
    };
    delete::end(&app, &caller, row.id).await
}
