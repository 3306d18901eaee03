//! Files that come apart from the call that parses them (wire 21): who can call, but has no file to send, hands an address
//! to who has. The address itself is the right to send one file: no key travels with it.
//!
//! `POST /v2/parse/upload-url` gives out address and `uploadRef`, `PUT /v2/parse/upload/{id}` takes the file. The first one
//! that comes whole stays.

use std::collections::BTreeMap;

use actix_web::error::PayloadError;
use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use weir_shared::blocking;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::scrape_request::parse_announced;
use weir_shared::domain::upload::{MAX_BYTES, TOO_LARGE};
use weir_shared::domain::upload_right::{self, Refused};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::store::contents::uploads::{self, NewUpload, Offered, Receiving};
use weir_shared::time::Timestamp;

use super::formats::check_kind;
use super::{form, in_time};
use crate::app::{App, AppData};
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::http::arriving::{Arriving, announced};
use crate::http::bodies::Room;
use crate::http::extract;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UploadUrl")]
struct Body {
    success: bool,
    data: Address,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "UploadAddress")]
struct Address {
    /// Where the file is sent, once, without a key. Whoever has it may send one.
    upload_url: String,
    /// What the file is parsed by, once, by the same team.
    upload_ref: String,
    #[schemars(extend("const" = "PUT"))]
    method: &'static str,
    /// To be sent with the file.
    headers: BTreeMap<&'static str, String>,
    /// When neither is good any more.
    #[schemars(extend("format" = "date-time"))]
    expires_at: String,
    max_size_bytes: usize,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UploadTaken")]
struct Taken {
    success: bool,
}

/// What the API's document says of the address.
pub fn doc_url() -> Operation {
    let read = |body: &Value| parse_announced(body).map(Reading::of);
    let text = "An address that a file can be sent to without a key, and the `uploadRef` that POST /v2/parse reads it by. \
        Both are good for an hour; a team has ten of them in a day whose files were not parsed.";
    let file = json!({"filename": "report.docx"});
    let whole = json!({"filename": "report.pdf", "contentType": "application/pdf", "declaredSizeBytes": 120_000});
    Operation::new(Group::Scrape, "createUploadUrl", "Get an address for a file", text)
        .body("UploadUrlRequest", read, vec![("A file", file), ("With its type and size", whole)])
        .answer::<Body>("The address and the ref.")
}

/// What the API's document says of the file.
pub fn doc_put() -> Operation {
    let text = "Takes a file at the address that POST /v2/parse/upload-url answered, as it was answered. No key is needed. \
        One file is taken; the first that comes whole stays.";
    Operation::public("putUpload", "Send a file", text)
        .group(Group::Scrape)
        .bytes()
        .query("expires", json!({"type": "integer"}), "Of the address.")
        .query("signature", json!({"type": "string"}), "Of the address.")
        .answer::<Taken>("The file is there.")
        .errors(&[400, 403, 408, 409, 429, 500, 503])
}

/// Handles `POST /v2/parse/upload-url`.
///
/// # Errors
/// 400 for a file that is too large or of no kind that is read, 429 when the team has too many that were not parsed.
pub async fn url(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let (file, _room) = extract::json(&app, &caller, &request, payload, parse_announced).await?;
    check_kind(&file.name, file.content_type.as_deref())?;
    let (team, key) = (caller.team_id(), caller.key);
    let new = NewUpload { team, key, name: &file.name, content_type: file.content_type.as_deref() };
    let (id, expires) = match uploads::offer(&app.db, &new).await? {
        Offered::Given { id, expires_at } => (id, expires_at),
        Offered::TooMany { until } => {
            let text =
                "The team has as many uploads that were not parsed as it may within 24 hours: parse one of them first.";
            let seconds = until.ms_since(app.db.now()).unsigned_abs() / 1_000 + 1;
            return Err(ApiError::new(ErrorCode::UnparsedUploads, text).retry_after(seconds));
        }
    };
    let secret = app.internal_secret.as_bytes();
    let signature = upload_right::address_signature(secret, id, expires);
    let base = app.base_url(&request);
    let data = Address {
        upload_url: format!("{base}/v2/parse/upload/{id}?expires={}&signature={signature}", expires.0),
        upload_ref: upload_right::make_ref(secret, id, team, expires),
        method: "PUT",
        headers: file.content_type.map(|kind| ("Content-Type", kind)).into_iter().collect(),
        expires_at: expires.to_iso(),
        max_size_bytes: MAX_BYTES,
    };
    Ok(HttpResponse::Ok().json(Body { success: true, data }))
}

/// Handles `PUT /v2/parse/upload/{id}`.
///
/// # Errors
/// 400 for an address that was not given out or is over, and a file that is compressed, empty or too large; 408 when it does
/// not come; 409 when there is one; 429 when the bodies of the key that asked for the address take up too much room, or
/// too many files of its team are on their way.
pub async fn put(app: AppData, request: HttpRequest, id: Path<String>, payload: Payload) -> ApiResult<HttpResponse> {
    let id: JobId = extract::path_id(&id)?;
    extract::refuse_compressed(&request)?;
    check_address(&app, id, request.query_string())?;
    let Some(row) = uploads::find(&app.db, id).await? else {
        return Err(form::refused("This address has been used: its file was parsed, and is gone."));
    };
    if row.is_there {
        return Err(taken());
    }
    let announced = announced(&request);
    if announced > MAX_BYTES {
        return Err(form::refused(TOO_LARGE));
    }
    let _place = app.places.socket(row.team)?;
    let mut room = app.bodies.room(row.key);
    room.reach(announced)?;
    let receiving = Receiving::begin(&app.blobs, id).await?;
    let blob = in_time(receive(Arriving::new(&request, payload), receiving, &mut room)).await?;
    if !uploads::arrived(&app.db, id, &blob).await? {
        let blobs = app.blobs.clone();
        let _ = blocking::run(move || blobs.remove(&blob)).await;
        return Err(taken());
    }
    Ok(HttpResponse::Ok().json(Taken { success: true }))
}

/// The query of an address: what signs it.
fn check_address(app: &App, id: JobId, query: &str) -> ApiResult<()> {
    let (mut expires, mut signature) = (None, String::new());
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match name.as_ref() {
            "expires" => expires = value.parse().ok().map(Timestamp),
            "signature" => signature = value.into_owned(),
            _ => {}
        }
    }
    let expires = expires.ok_or(Refused::Signature).map_err(refusal)?;
    upload_right::check_address(app.internal_secret.as_bytes(), id, expires, &signature, app.db.now()).map_err(refusal)
}

/// Stores the file as it comes. Returns where it lies among the blobs.
async fn receive(mut arriving: Arriving, mut receiving: Receiving, room: &mut Room) -> ApiResult<String> {
    let broken = |error: &PayloadError| form::refused(&format!("The file did not come whole: {error}."));
    let mut length = 0;
    while let Some(chunk) = arriving.next().await.map_err(|end| end.or(broken))? {
        length += chunk.len();
        if length > MAX_BYTES {
            return Err(form::refused(TOO_LARGE));
        }
        room.reach(length)?;
        receiving.push(&chunk).await?;
    }
    if length == 0 {
        return Err(form::refused(form::EMPTY));
    }
    Ok(receiving.end().await?)
}

fn taken() -> ApiError {
    ApiError::new(ErrorCode::Conflict, "A file has been sent to this address before, and stays.")
}

/// Why an address or a ref is not taken.
pub fn refusal(why: Refused) -> ApiError {
    let code = match why {
        Refused::Team => ErrorCode::Forbidden,
        Refused::Signature | Refused::Expired => ErrorCode::BadRequest,
    };
    ApiError::new(code, why.to_string())
}
