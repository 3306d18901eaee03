//! `POST /v2/browser` (spec 4.1, wire 8.1): a browser of the caller's own.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::session::parse_create;
use weir_shared::ids::SessionId;
use weir_shared::store::sessions::SessionRow;

use super::opening::{self, Wanted};
use super::{Addresses, delete};
use crate::app::AppData;
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Body {
    success: bool,
    id: SessionId,
    #[serde(flatten)]
    addresses: Addresses,
    #[schemars(extend("format" = "date-time"))]
    expires_at: String,
    /// What was asked for and has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Starts a Chromium of the caller's own in a box. Drive it by code (execute) or connect Playwright or \
        Puppeteer to `cdpUrl`; watch or use it at the live views. The addresses are the only secret that they need. It costs \
        2 credits a minute, by the second.";
    let read = |body: &Value| parse_create(body).map(Reading::of);
    Operation::new(Group::Browser, "createBrowserSession", "Start a session", text)
        .optional_body(
            "BrowserRequest",
            read,
            vec![
                ("As it comes", json!({})),
                (
                    "With a profile",
                    json!({"ttl": 300, "activityTtl": 60, "profile": {"name": "work", "saveChanges": true}}),
                ),
            ],
        )
        .answer::<Body>("The session is open.")
        .errors(&[402, 409, 502])
}

/// Handles the request.
///
/// # Errors
/// 400 for the body, 402 without credits for the ttl, 409 while another session saves the profile, 429 over the team's
/// number of sessions, 502 when the browser did not start, 503 when no worker takes a session now.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Browser).await?;
    let (session, _room) = extract::optional_json(&app, &caller, &request, payload, parse_create).await?;
    let own_warning = session.warning.clone();
    let wanted = Wanted { session, scrape: None };
    let row = opened(app.clone(), caller, wanted).await?;
    let addresses = Addresses::new(&app.base_url(&request), &app.internal_secret, row.id);
    let expires_at = row.expires_at.to_iso();
    let warning = super::joined(own_warning, row.warning);
    Ok(HttpResponse::Ok().json(Body { success: true, id: row.id, addresses, expires_at, warning }))
}

/// Opens the session in a task of its own: a client that hangs up must not leave it half open. It was not told of one that is
/// open by then, so that one is ended.
async fn opened(app: AppData, caller: Caller, wanted: Wanted) -> ApiResult<SessionRow> {
    let (told, opened) = oneshot::channel();
    actix_web::rt::spawn(async move {
        let opened = opening::start(app.clone(), caller.clone(), wanted).await;
        let id = opened.as_ref().ok().map(|row| row.id);
        // What is sent may still be dropped unread: the handler says that it has it.
        let (heard, is_heard) = oneshot::channel();
        let _ = told.send((opened, heard));
        if let (Some(id), Err(_)) = (id, is_heard.await) {
            tracing::info!(session.id = %id, "nobody waits for the browser session any more");
            if let Err(error) = delete::end(&app, &caller, id).await {
                tracing::warn!(session.id = %id, %error, "cannot end a browser session that nobody waits for");
            }
        }
    });
    let (opened, heard) = opened.await.map_err(|e| ApiError::internal(&e))?;
    let _ = heard.send(());
    opened
}
