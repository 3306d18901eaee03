//! A parse of a file that was sent before, by its `uploadRef` (wire 21).
//!
//! A ref is good for one document. A parse that ends without one leaves it, unless the file itself is at fault, so that
//! the caller may ask again with other options or more time.

use actix_web::HttpRequest;
use actix_web::web::Payload;
use serde_json::Value;
use tracing::Instrument as _;
use weir_shared::domain::scrape_request::parse_upload_ref;
use weir_shared::domain::upload::Upload;
use weir_shared::domain::upload_right;
use weir_shared::domain::validation::{Path, refusal};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::store::contents::uploads::{self, Claimed};
use weir_shared::traces;

use super::file::scraped_file;
use super::{form, upload};
use crate::app::{App, AppData};
use crate::callers::auth::Caller;
use crate::endpoints::retention;
use crate::endpoints::scrape::run::Scraped;
use crate::error::{ApiError, ApiResult};
use crate::http::extract;

/// A parse takes this much longer than its `timeout` at most, milliseconds: when the process dies at it, the file may be
/// parsed again by then.
const LATE_MS: i64 = 60_000;

/// Parses the file that the body names.
///
/// # Errors
/// 400 for a ref that is wrong, over, or whose file has not come, 403 for another team's, 409 while it is being parsed; those
/// of a scrape.
pub async fn parse(app: &AppData, caller: Caller, request: &HttpRequest, payload: Payload) -> ApiResult<Scraped> {
    let read = |body: &Value| match body.get("uploadRef") {
        None if body.is_object() => Err(refusal(ErrorCode::BadRequest, Path::new(), form::MISSING)),
        _ => parse_upload_ref(body),
    };
    let ((mut parse, given), room) = extract::json(app, &caller, request, payload, read).await?;
    let id = upload_right::read_ref(app.internal_secret.as_bytes(), &given, caller.team_id(), app.db.now());
    let id = id.map_err(upload::refusal)?;
    retention::settle(&caller, &mut parse.options)?;
    let inner = app.clone();
    // What becomes of the file is settled when the page has ended, also where the caller has left.
    let work = async move {
        let (app, _room) = (inner, room);
        let until = app.db.now().plus_ms(i64::from(parse.options.timeout) + LATE_MS);
        let Some(claimed) = uploads::claim(&app.db, id, until).await? else {
            return Err(why_not(&app, id).await?);
        };
        let Claimed { blob, name, content_type, .. } = claimed.clone();
        let keeps_nothing = parse.options.zero_retention;
        let answered = scraped_file(&app, caller, parse, Upload { blob, name, content_type }).await;
        let is_over = match &answered {
            Ok(_) => true,
            Err(error) => keeps_nothing || is_the_files(error.code()),
        };
        settle(&app, &claimed, is_over).await;
        answered
    };
    app.runtime
        .spawn(traces::under(traces::current(), work.in_current_span()))
        .await
        .map_err(|error| ApiError::internal(&error))?
}

/// Whether the file is at fault, whatever is asked of it.
fn is_the_files(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::UnsupportedFile | ErrorCode::PageTooLarge | ErrorCode::PdfAntibot | ErrorCode::RetryLimit)
}

/// Why an upload cannot be parsed now.
async fn why_not(app: &App, id: JobId) -> ApiResult<ApiError> {
    Ok(match uploads::find(&app.db, id).await? {
        None => form::refused("This uploadRef has been used: its file was parsed, and is gone."),
        Some(row) if !row.is_there => form::refused("No file has been sent to the address of this uploadRef yet."),
        Some(_) => ApiError::new(ErrorCode::Conflict, "The file of this uploadRef is being parsed."),
    })
}

/// A failure is made good by itself: the claim ends, and the file expires.
async fn settle(app: &App, claimed: &Claimed, is_over: bool) {
    let settled = match is_over {
        true => uploads::done(&app.db, &app.blobs, claimed).await,
        false => uploads::release(&app.db, claimed).await,
    };
    if let Err(error) = settled {
        tracing::warn!(%error, "what became of an upload cannot be written yet");
    }
}
