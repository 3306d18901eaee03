//! `GET /v2/batch/scrape/{id}/errors` (CONTRACT 5.4): the pages that failed for good.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::pages::{self, PageRow};

use super::load;
use crate::app::State;
use crate::error::{ApiError, ApiResult};
use crate::extract;
use crate::limits::Bucket;

/// Failed pages in one answer: there is no paging for them.
const MOST: i64 = 10_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    success: bool,
    errors: Vec<Entry>,
    /// Pages that robots.txt forbids: batches do not read it (CONTRACT 5.9).
    robots_blocked: [String; 0],
}

#[derive(Serialize)]
struct Entry {
    id: PageId,
    timestamp: Option<String>,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    error: String,
}

impl From<PageRow> for Entry {
    fn from(page: PageRow) -> Self {
        Self {
            id: page.id,
            timestamp: page.finished_at.map(|at| at.to_iso()),
            url: page.url,
            code: page.error_code,
            error: page.error.unwrap_or_else(|| "The scrape failed.".to_owned()),
        }
    }
}

/// Handles the request.
///
/// # Errors
/// 404 for an unknown or expired batch, 403 for another team's (CONTRACT 14).
pub async fn handle(app: State, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let id: JobId = extract::path_id(&id)?;
    let job = load(&app, id).await?;
    if job.team_id != caller.team_id() {
        return Err(ApiError::new(ErrorCode::Forbidden, "Forbidden"));
    }
    let failed = match job.failed {
        0 => Vec::new(),
        _ => pages::failed_of(&app.db, id, MOST).await?,
    };
    let errors = failed.into_iter().map(Entry::from).collect();
    Ok(HttpResponse::Ok().json(Body { success: true, errors, robots_blocked: [] }))
}
