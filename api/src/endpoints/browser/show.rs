//! `GET /v2/browser/{id}` (wire 8.1): one session, with its bill once it takes no more calls.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::domain::session::SessionState;

use super::{Entry, load_own, not_found, session_id};
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::ApiResult;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Body {
    success: bool,
    #[serde(flatten)]
    session: Entry,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_duration_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credits_billed: Option<i64>,
    /// What was asked for and is not so.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    Operation::new(Group::Browser, "getBrowserSession", "Show a session", "A session, with its bill once it has ended.")
        .answer::<Body>("The session.")
        .errors(&[403, 404])
}

/// Handles the request.
///
/// # Errors
/// 404 for an unknown or forgotten session, 403 for another team's.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let row = load_own(&app, &caller, session_id(&id)?).await?;
    let session = Entry::new(&row, &app.base_url(&request), &app.internal_secret).ok_or_else(not_found)?;
    let bill = (row.state != SessionState::Active).then(|| row.bill(app.db.now()));
    Ok(HttpResponse::Ok().json(Body {
        success: true,
        session,
        session_duration_ms: bill.map(|b| b.duration_ms),
        credits_billed: bill.map(|b| b.credits),
        warning: row.warning,
    }))
}
