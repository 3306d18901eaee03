//! `POST /v2/search/{id}/feedback` and `POST /v2/feedback` (wire 25): what callers say of results. It is kept for the
//! operator (`weir feedback list`); nothing is refunded for it.

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::feedback::{Feedback, JobFeedback, Subject, parse_feedback, parse_search_feedback};
use weir_shared::ids::JobId;
use weir_shared::store::accounts::feedback::{self, NewFeedback, Noted};

use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FeedbackNoted")]
struct Body {
    success: bool,
    #[schemars(extend("format" = "uuid"))]
    feedback_id: String,
    /// Always 0.
    credits_refunded: i64,
    /// Something was said of the result before; that stays.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    already_submitted: bool,
}

/// What the API's document says of a search's.
pub fn doc_of_search() -> Operation {
    let read = |body: &Value| parse_search_feedback(body).map(Reading::of);
    let good =
        json!({"rating": "good", "valuableSources": [{"url": "https://example.com", "reason": "It has the numbers."}]});
    let text = "What was good or bad about a search of the last day. One word is kept for each search, the first.";
    Operation::new(Group::Search, "searchFeedback", "Rate a search", text)
        .body("SearchFeedbackRequest", read, vec![("Briefly", json!({"rating": "bad"})), ("A good hit", good)])
        .answer::<Body>("It is noted.")
        .errors(&[404])
}

/// What the API's document says of any result's.
pub fn doc() -> Operation {
    let read = |body: &Value| parse_feedback(body).map(Reading::of);
    let id = "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f";
    let brief = json!({"endpoint": "scrape", "jobId": id, "rating": "bad"});
    let whole =
        json!({"endpoint": "parse", "jobId": id, "rating": "partial", "issues": ["missing_table"], "pageNumbers": [3]});
    let text =
        "What was good or bad about a search, scrape, parse or map of the team. One word is kept for each, the first.";
    Operation::new(Group::Team, "feedback", "Rate a result", text)
        .body("FeedbackRequest", read, vec![("Briefly", brief), ("A parse", whole)])
        .answer::<Body>("It is noted.")
        .errors(&[403, 404])
}

/// Handles `POST /v2/search/{id}/feedback`.
///
/// # Errors
/// 404 for a search that is unknown, or another team's.
pub async fn of_search(
    app: AppData,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let id: JobId = extract::path_id(&id)?;
    let (feedback, _room) = extract::json(&app, &caller, &request, payload, parse_search_feedback).await?;
    note(&app, &caller, Subject::Search, id.0, &feedback).await
}

/// Handles `POST /v2/feedback`.
///
/// # Errors
/// 404 for a result that is unknown, or another team's; 403 for those of products that are not served here.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let (said, _room) = extract::json(&app, &caller, &request, payload, parse_feedback).await?;
    let JobFeedback { subject, job, feedback } = said;
    note(&app, &caller, subject, job, &feedback).await
}

async fn note(app: &App, caller: &Caller, subject: Subject, job: Uuid, said: &Feedback) -> ApiResult<HttpResponse> {
    let team = caller.team_id();
    if !feedback::knows(&app.db, team, subject, job).await? {
        return Err(ApiError::job_not_found());
    }
    // A word may name what was looked for and found.
    let is_kept = !caller.team.zero_data_retention && !said.said.is_empty();
    let body = is_kept.then(|| Value::Object(said.said.clone()).to_string());
    let new = NewFeedback { team, subject, job, rating: said.rating, body: body.as_deref() };
    let mut tx = app.db.begin().await?;
    let Noted { id, is_repeated } = feedback::note(&mut tx, &new, app.db.now()).await?;
    tx.commit().await?;
    let body = Body { success: true, feedback_id: id.to_string(), credits_refunded: 0, already_submitted: is_repeated };
    Ok(HttpResponse::Ok().json(body))
}
