//! `GET …/{id}/errors` of a batch or crawl (wire 5.4): the pages that failed for good, and those that robots.txt
//! forbids.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::domain::job::JobKind;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::work::crawls;
use weir_shared::store::work::jobs::JobRow;
use weir_shared::store::work::pages::{self, PageRow};

use super::{Names, Served, load, served_by};
use crate::app::{App, AppData};
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::Operation;

/// Failed pages in one answer: there is no paging for them.
const MOST: i64 = 10_000;
/// What one of either takes in the answer beside its own texts, about, bytes.
const ABOUT: i64 = 192;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Body {
    success: bool,
    errors: Vec<Entry>,
    /// Pages that robots.txt forbids. Batches do not read it (wire 5.9).
    robots_blocked: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FailedPage")]
struct Entry {
    id: PageId,
    #[schemars(extend("format" = "date-time"))]
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

const TEXT: &str = "The pages that failed for good, and those that robots.txt forbids.";

/// What the API's document says of it, for the jobs of a route.
pub fn doc(served: Served) -> Operation {
    let names = Names::of(served);
    document(Operation::new(names.group, names.errors, "Failed pages", TEXT))
}

/// The same by `DELETE`, as a client of version 1 reads it (wire 26): nothing is removed.
pub fn doc_by_delete(served: Served) -> Operation {
    let names = Names::of(served);
    let id = match served.kind {
        JobKind::Crawl => "readCrawlErrorsV1",
        _ => "readBatchScrapeErrorsV1",
    };
    document(Operation::new(names.group, id, "Failed pages, as an older client reads them", TEXT))
}

fn document(operation: Operation) -> Operation {
    operation.answer::<Body>("The pages; up to 10,000 of each.").errors(&[400, 403, 404])
}

/// Handles the request.
///
/// # Errors
/// 404 for an unknown or expired job, 403 for another team's (wire 14).
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let id: JobId = extract::path_id(&id)?;
    let job = load(&app, served_by(&request)?, id).await?;
    if job.team_id != caller.team_id() {
        return Err(ApiError::new(ErrorCode::Forbidden, "Forbidden"));
    }
    app.answers.room(job.team_id, bytes(&app, &job).await?).await?.keep_for_answer(&request);
    let failed = match job.failed {
        0 => Vec::new(),
        _ => pages::failed_of(&app.db, id, MOST).await?,
    };
    let robots_blocked = match job.kind {
        JobKind::Crawl => crawls::blocked(&app.db, id, MOST).await?,
        _ => Vec::new(),
    };
    let errors = failed.into_iter().map(Entry::from).collect();
    Ok(HttpResponse::Ok().json(Body { success: true, errors, robots_blocked }))
}

/// What the answer about a job takes, about: addresses may be long.
async fn bytes(app: &App, job: &JobRow) -> ApiResult<usize> {
    let failed = match job.failed {
        0 => 0,
        count => pages::bytes_of_failed(&app.db, job.id, MOST).await? + count.min(MOST) * ABOUT,
    };
    let blocked = match job.kind {
        JobKind::Crawl => {
            let (count, bytes) = crawls::bytes_of_blocked(&app.db, job.id, MOST).await?;
            bytes + count * ABOUT
        }
        _ => 0,
    };
    Ok(usize::try_from(failed + blocked).unwrap_or(usize::MAX))
}
