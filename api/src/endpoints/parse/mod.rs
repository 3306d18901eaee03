//! `POST /v2/parse` (wire 21): a file that the caller sends, as a document.
//!
//! It is a scrape of one page whose bytes are at hand: they lie among the blobs until it has ended. Queue, limits,
//! credits, retries and retention are those of every scrape. The file comes with the call, or was sent before to an
//! address of its own.
//!
//! ```text
//! form      the parts of the request
//! sent      the file that an uploadRef names
//! file      the scrape of either
//! upload    POST /v2/parse/upload-url, PUT /v2/parse/upload/{id}
//! formats   which files are read; GET /v2/parse/formats
//! ```

mod file;
mod form;
pub mod formats;
mod sent;
pub mod upload;

use std::time::Duration;

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use tracing::Instrument as _;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::scrape_request::{parse_upload, parse_upload_ref};
use weir_shared::domain::upload::Upload;
use weir_shared::error_code::ErrorCode;
use weir_shared::store::contents::uploads;
use weir_shared::traces;

use self::file::scraped_file;
use self::form::Form;
use crate::app::AppData;
use crate::callers::auth::Caller;
use crate::callers::limits::Bucket;
use crate::endpoints::retention;
use crate::endpoints::scrape::run::Scraped;
use crate::endpoints::scrape::{Body, document_answer, document_example};
use crate::error::{ApiError, ApiResult, Shape};
use crate::http::{arriving, extract};
use crate::openapi::{self, Group, Operation};

/// How long a file may take to come, however steadily: less than what an expired one stays among the blobs.
const PATIENCE: Duration = Duration::from_secs(600);

/// What comes of a file that is received within [`PATIENCE`].
///
/// # Errors
/// Those of `receiving`, 408 when it takes longer.
async fn in_time<T>(receiving: impl Future<Output = ApiResult<T>>) -> ApiResult<T> {
    match tokio::time::timeout(PATIENCE, receiving).await {
        Ok(received) => received,
        Err(_) => Err(arriving::late()),
    }
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let read = |body: &Value| parse_upload(body).map(Reading::of);
    let read_ref = |body: &Value| parse_upload_ref(body).map(Reading::of);
    let text = "Reads a file that is sent in the part `file`: Word, OpenDocument, RTF, Excel, PowerPoint, EPUB, PDF, HTML, \
        CSV, pictures. `options` is a JSON text with the options of a scrape that mean something for a file. Up to 50 MB. \
        A file that was sent to an address of /v2/parse/upload-url is named by its `uploadRef`, in JSON.";
    Operation::new(Group::Scrape, "parse", "Parse a file", text)
        .form(
            "ParseOptions",
            read,
            vec![("Markdown", json!({})), ("Links too", json!({"formats": ["markdown", "links"]}))],
        )
        .or_body("ParseRefRequest", read_ref, vec![("A file that was sent", json!({"uploadRef": "AZf…"}))])
        .answer_with(200, "The document.", "application/json", openapi::either::<Body<'_>, Shape<'_>>)
        .example(document_example())
        .errors(&[402, 403, 408, 409])
}

/// Handles the request.
///
/// # Errors
/// 400 when the form is broken, the file is of no kind that is read, or an option means nothing for it; those of an
/// `uploadRef`; those of a scrape.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Scrape).await?;
    let answered = if form::has_type(&request, "multipart/form-data") {
        from_form(&app, caller, &request, payload).await?
    } else if form::has_type(&request, "application/json") {
        sent::parse(&app, caller, &request, payload).await?
    } else {
        return Err(form::missing());
    };
    Ok(document_answer(&answered.document, answered.named))
}

async fn from_form(app: &AppData, caller: Caller, request: &HttpRequest, payload: Payload) -> ApiResult<Scraped> {
    let Form { id, blob, name, content_type, options } = form::read(app, &caller, request, payload).await?;
    let parse = extract::parsed(options, parse_upload).map_err(|error| match error.code() {
        ErrorCode::InvalidJson => {
            ApiError::new(ErrorCode::BadRequest, format!("Invalid JSON in the 'options' field. {error}"))
        }
        _ => error,
    });
    let settled = parse.and_then(|mut parse| {
        retention::settle(&caller, &mut parse.options)?;
        Ok(parse)
    });
    let inner = app.clone();
    // The file goes when the page has ended, also where the caller has left.
    let work = async move {
        let app = inner;
        let answered = match settled {
            Ok(parse) => scraped_file(&app, caller, parse, Upload { blob, name, content_type }).await,
            Err(error) => Err(error),
        };
        uploads::remove(&app.blobs, id).await;
        answered
    };
    app.runtime
        .spawn(traces::under(traces::current(), work.in_current_span()))
        .await
        .map_err(|error| ApiError::internal(&error))?
}
