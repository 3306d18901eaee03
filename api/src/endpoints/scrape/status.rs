//! `GET /v2/scrape/{id}` (wire 3.1): the document of a page once more, of a direct scrape or of a batch.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use weir_shared::domain::job::{JobKind, PageState};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::PageId;
use weir_shared::store::work::{documents, jobs, pages};

use super::document_answer;
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::endpoints::direct::page_error;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;

/// Handles the request.
///
/// # Errors
/// 400 for a malformed id, 403 for another team's page, 404 when it is unknown, expired or not done; the page's own
/// error when it failed.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let id: PageId = extract::path_id(&id)?;
    let page = pages::load(&app.db, id).await?.ok_or_else(ApiError::job_not_found)?;
    if page.team_id != caller.team_id() {
        return Err(ApiError::new(ErrorCode::Forbidden, "You are not allowed to access this resource."));
    }
    let job = jobs::load(&app.db, page.job_id).await?;
    // A map's page is not a scrape.
    if job.is_none_or(|job| job.has_expired(app.db.now()) || job.kind == JobKind::Map) {
        return Err(ApiError::job_not_found());
    }
    match page.state {
        PageState::Done => {
            let packed = documents::packed(&app.db, id).await?.ok_or_else(ApiError::job_not_found)?;
            let (document, room) = app.unpack(caller.team_id(), packed).await?;
            room.keep_for_answer(&request);
            Ok(document_answer(&document.json, None))
        }
        // Where nothing is kept the address is empty, and the failure is not told either.
        PageState::Failed if !page.url.is_empty() => Err(page_error(&page, "The scrape")),
        PageState::Failed | PageState::Queued | PageState::Running | PageState::Cancelled => {
            Err(ApiError::job_not_found())
        }
    }
}
