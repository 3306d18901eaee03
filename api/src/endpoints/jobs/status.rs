//! The status of a batch or crawl (spec 4.8, wire 5.3 and 5.7): counts, and a page of documents.
//!
//! Documents are spliced in as they were stored, never parsed. The read costs the same for five pages and fifty
//! thousand: one row (two for a crawl), and the documents of the page asked for.

use std::borrow::Cow;
use std::time::Duration;

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use weir_shared::clock;
use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::document::Document;
use weir_shared::domain::job::{JobKind, JobStatus};
use weir_shared::ids::JobId;
use weir_shared::store::work::documents::{self, Part, StoredDocument};
use weir_shared::store::work::jobs::JobRow;
use weir_shared::store::work::{crawls, pages};

use super::{Names, Served, load_own, remembered_own, served_by};
use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::endpoints::outage::patiently;
use crate::endpoints::v1;
use crate::error::ApiResult;
use crate::http::answers::Room;
use crate::http::extract::{self, Paging};
use crate::openapi::{MakeSchema, Operation};

/// Documents in a page when the caller names no number.
pub(super) const DEFAULT_LIMIT: i64 = 100;
/// Bytes of documents in a page, about (spec 2.4).
pub(super) const PAGE_BYTES: usize = 10 * 1024 * 1024;
/// How long a request for documents that do not exist yet is held: the JavaScript client asks again without a pause.
const LONG_POLL: Duration = Duration::from_millis(1_000);

/// The status body of wire 5.3.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    pub success: bool,
    #[schemars(extend("enum" = JobStatus::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>()))]
    pub status: &'static str,
    /// Pages known so far; at the end, those that were scraped.
    pub total: i64,
    /// Pages scraped: documents that can be read.
    pub completed: i64,
    pub credits_used: i64,
    /// From then on the job is unknown.
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: String,
    /// Where the next documents are, or will be; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    #[schemars(with = "Vec<Document>")]
    pub data: Vec<Cow<'a, RawValue>>,
    /// Why the job failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Of a crawl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// Counts by state, for people who watch.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CrawlProgress")]
pub(super) struct Progress {
    /// Addresses met that belong to the crawl.
    pub discovered: i64,
    pub queued: i64,
    pub running: i64,
    pub done: i64,
    pub failed: i64,
    /// Addresses that robots.txt forbids.
    pub blocked: i64,
}

impl<'a> Body<'a> {
    /// The body for a job as read, with these documents.
    ///
    /// # Errors
    /// When the database is away.
    pub(super) async fn new(
        app: &App,
        version: ApiVersion,
        job: &JobRow,
        documents: &'a [StoredDocument],
        next: Option<String>,
    ) -> ApiResult<Self> {
        let mut body = Self {
            success: true,
            status: job.status.as_str(),
            total: job.total_shown(),
            completed: job.completed,
            credits_used: job.credits_used,
            expires_at: job.expires_at.to_iso(),
            next,
            data: documents.iter().map(|document| shown(version, &document.json)).collect(),
            error: None,
            warning: None,
            progress: None,
        };
        if job.kind == JobKind::Crawl {
            body.add_crawl(app, job).await?;
        }
        Ok(body)
    }

    async fn add_crawl(&mut self, app: &App, job: &JobRow) -> ApiResult<()> {
        if let Some(counts) = crawls::counts(&app.db, job.id).await? {
            let waiting = job.waiting();
            self.progress = Some(Progress {
                discovered: counts.discovered,
                queued: waiting.queued,
                running: waiting.running,
                done: job.completed,
                failed: job.failed,
                blocked: counts.blocked,
            });
            self.warning = counts.warning;
        }
        if job.status == JobStatus::Failed {
            let first = pages::first_failure(&app.db, job.id).await?;
            self.success = false;
            self.error = Some(first.unwrap_or_else(|| "The crawl failed.".to_owned()));
        }
        Ok(())
    }
}

/// A document as answers of this version show it.
pub(super) fn shown(version: ApiVersion, document: &RawValue) -> Cow<'_, RawValue> {
    match version {
        ApiVersion::V1 => v1::document::shaped(document),
        ApiVersion::V2 => Cow::Borrowed(document),
    }
}

/// What the API's document says of it, for the jobs of a route.
pub fn doc(served: Served) -> Operation {
    let names = Names::of(served);
    let text = "Counts, and documents in the order in which they were done: up to 100 and about 10 MB, then `next` is \
        where to read on. While the job runs there is always a `next`; a read that has seen everything is held for about a \
        second. Asked for as a WebSocket, with the key in `Authorization` or as the subprotocol, the same address sends \
        `catchup`, then each `document`, then `done`.";
    let operation = Operation::new(names.group, names.status, "Status and documents", text)
        .query("skip", json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}), "Documents already read.")
        .query("limit", json!({"type": "integer", "minimum": 1, "maximum": extract::MAX_PAGE}), "Documents at most.")
        .bare_answer(101, "The WebSocket, where one was asked for.")
        .errors(&[400, 404]);
    let schema: MakeSchema = match served.version {
        ApiVersion::V1 => |generator| v1::document::in_answer(generator, Body::json_schema),
        ApiVersion::V2 => Body::json_schema,
    };
    operation.answer_with(200, "The job as it is.", "application/json", schema)
}

/// Handles the request.
///
/// # Errors
/// 400 for a malformed id or paging, 404 for an unknown, expired or foreign job.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let (served, id): (_, JobId) = (served_by(&request)?, extract::path_id(&id)?);
    let paging = extract::paging(request.query_string())?;
    let (job, documents, room) = match read_remembered(&app, &caller, served, id, paging).await? {
        Some(read) => read,
        None => read(&app, &caller, served, id, paging).await?,
    };
    room.keep_for_answer(&request);
    let end = paging.skip.unwrap_or(0) + documents.len() as i64;
    let more = job.status == JobStatus::Scraping || end < job.completed;
    let next = more.then(|| next_url(&app.base_url(&request), &served.path(id), end, paging));
    Ok(HttpResponse::Ok().json(Body::new(&app, served.version, &job, &documents, next).await?))
}

/// The documents that a body about this job holds; `None`: there are none.
fn part(job: &JobRow, paging: Paging) -> Option<Part> {
    let skip = paging.skip.unwrap_or(0);
    // No more documents than the counts in this body tell of, although more may be there by now.
    let limit = paging.limit.unwrap_or(DEFAULT_LIMIT).min(job.completed - skip);
    (limit > 0).then_some(Part { skip, limit, max_bytes: PAGE_BYTES })
}

/// A job, documents of it, and the room that they take.
type Read = (JobRow, Vec<StoredDocument>, Room);

/// A job that had ended a moment ago, if it has still, and its documents. That it has is said with them, so where there are
/// none its row is to be read.
async fn read_remembered(
    app: &App,
    caller: &Caller,
    served: Served,
    id: JobId,
    paging: Paging,
) -> ApiResult<Option<Read>> {
    let Some(job) = remembered_own(app, caller, served, id)? else { return Ok(None) };
    let Some(part) = part(&job, paging) else { return Ok(None) };
    let found = documents::find_of_ended(&app.db, &job, part).await?;
    let (documents, room) = app.open(job.team_id, found).await?;
    Ok((!documents.is_empty()).then_some((job, documents, room)))
}

/// The job as it is, and its documents.
async fn read(app: &App, caller: &Caller, served: Served, id: JobId, paging: Paging) -> ApiResult<Read> {
    let mut job = load_own(app, caller, served, id).await?;
    app.ended_jobs.remember(&job, app.db.clock().instant());
    if let Some(skip) = paging.skip {
        job = wait_for_documents(app, caller, served, job, skip).await?;
    }
    let (documents, room) = match part(&job, paging) {
        Some(part) => app.open(job.team_id, documents::find(&app.db, id, part).await?).await?,
        None => (Vec::new(), Room::default()),
    };
    Ok((job, documents, room))
}

/// The next page's address. An empty page of a running job repeats the one just asked for, letter by letter: the
/// Python client stops at that.
fn next_url(base: &str, path: &str, skip: i64, paging: Paging) -> String {
    match paging.limit {
        Some(limit) => format!("{base}{path}?skip={skip}&limit={limit}"),
        None => format!("{base}{path}?skip={skip}"),
    }
}

/// Holds a request that has run ahead of a running job, until there is a document or about a second has passed.
async fn wait_for_documents(
    app: &App,
    caller: &Caller,
    served: Served,
    mut job: JobRow,
    skip: i64,
) -> ApiResult<JobRow> {
    let until = clock::deadline(LONG_POLL);
    while job.status == JobStatus::Scraping && job.completed <= skip && clock::instant() < until {
        let seen = (job.completed, job.failed, job.status);
        let changed = patiently(until, || async {
            app.wake.job_changed(job.id, seen, until).await?;
            load_own(app, caller, served, job.id).await
        });
        let changed = tokio::select! {
            changed = changed => changed?,
            () = app.stopping.cancelled() => break,
        };
        job = changed;
    }
    Ok(job)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_repeats_the_limit_only_when_it_was_given() {
        let path = "/v2/crawl/x";
        let with = Paging { skip: Some(0), limit: Some(7) };
        assert_eq!(next_url("http://h:1", path, 5, with), "http://h:1/v2/crawl/x?skip=5&limit=7");
        let without = Paging { skip: None, limit: None };
        assert_eq!(next_url("http://h:1", path, 5, without), "http://h:1/v2/crawl/x?skip=5");
    }
}
