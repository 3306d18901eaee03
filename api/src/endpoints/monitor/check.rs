//! `GET /v2/monitor/{id}/checks/{check}` (wire 24): one check with its pages, as far as it has come.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use weir_shared::blocking;
use weir_shared::domain::monitor::PageStatus;
use weir_shared::ids::{CheckId, MonitorId};
use weir_shared::store::StoreResult;
use weir_shared::store::monitors::pages::{self, CheckPageRow};

use super::wire::{Check, CheckPage};
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};

/// About how many bytes of pages an answer has; at least one page is in it.
const MOST: i64 = 10 << 20;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MonitorCheckAnswer")]
struct Body {
    success: bool,
    data: CheckWithPages,
    /// Where the next pages are; null at the end.
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MonitorCheckWithPages")]
struct CheckWithPages {
    #[serde(flatten)]
    check: Check,
    pages: Vec<CheckPage>,
    next: Option<String>,
}

fn statuses() -> Vec<&'static str> {
    PageStatus::ALL.iter().map(|status| status.as_str()).collect()
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "One check with what it found of each page, in the order in which they ended: same, new, changed, removed or \
        error, with the difference where there is one.";
    let operation = Operation::new(Group::Monitor, "getMonitorCheck", "Show a check", text);
    super::doc_listing(operation, "skip")
        .query("status", json!({"type": "string", "enum": statuses()}), "Only pages of which this became.")
        .answer::<Body>("The check.")
        .errors(&[404])
}

/// Handles the request.
///
/// # Errors
/// 404 for a check that no monitor of the team has, 400 for parameters that are wrong.
pub async fn handle(app: AppData, request: HttpRequest, ids: Path<(String, String)>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let (monitor, check): (MonitorId, CheckId) = (extract::path_id(&ids.0)?, extract::path_id(&ids.1)?);
    let check = super::owned_check(&app, &caller, monitor, check).await?;
    let listing = super::listing(request.query_string(), "skip", &statuses())?;
    let status: Option<PageStatus> = listing.status.as_deref().and_then(|word| word.parse().ok());
    // One more than asked for tells whether there is more.
    let mut rows = pages::list(&app.db, check.id, status, listing.skip, listing.limit + 1).await?;
    let fits = fitting(&rows).min(usize::try_from(listing.limit).unwrap_or(1));
    let has_more = rows.len() > fits;
    rows.truncate(fits);
    let next = has_more.then(|| {
        let (base, skip, limit) = (app.base_url(&request), listing.skip + fits as i64, listing.limit);
        let filter = status.map(|status| format!("&status={}", status.as_str())).unwrap_or_default();
        format!("{base}/v2/monitor/{monitor}/checks/{}?skip={skip}&limit={limit}{filter}", check.id)
    });
    let check = Check::of(&check)?;
    let read = move || rows.iter().map(CheckPage::of).collect::<StoreResult<Vec<_>>>();
    let pages = blocking::run(read).await.map_err(|error| ApiError::internal(&error))??;
    let data = CheckWithPages { check, pages, next: next.clone() };
    Ok(HttpResponse::Ok().json(Body { success: true, data, next }))
}

/// How many of these pages go into one answer.
fn fitting(rows: &[CheckPageRow]) -> usize {
    let mut bytes = 0;
    let fit = rows.iter().take_while(|row| {
        let is_first = bytes == 0;
        bytes += row.detail_size() + 500;
        is_first || bytes <= MOST
    });
    fit.count()
}
