//! `POST /v2/parse` (wire 21): a file that the caller sends, as a document.
//!
//! It is a scrape of one page whose bytes are at hand: they lie among the blobs until it has ended. Queue, limits,
//! credits, retries and retention are those of every scrape.
//!
//! ```text
//! form      the parts of the request
//! formats   GET /v2/parse/formats
//! ```

mod form;
pub mod formats;

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use tracing::Instrument as _;
use weir_office::Format;
use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::scrape_request::{ScrapeRequest, parse_upload};
use weir_shared::domain::upload::Upload;
use weir_shared::error_code::ErrorCode;
use weir_shared::store::uploads;

use self::form::Form;
use crate::app::AppData;
use crate::endpoints::retention;
use crate::endpoints::scrape::run::scraped;
use crate::endpoints::scrape::{Body, document_answer, document_example};
use crate::error::{ApiError, ApiResult, Shape};
use crate::extract;
use crate::limits::Bucket;
use crate::openapi::{self, Group, Operation};

/// What the API's document says of it.
pub fn doc() -> Operation {
    let read = |body: &Value| parse_upload(body).map(|request| format!("{request:?}"));
    let text = "Reads a file that is sent in the part `file`: Word, OpenDocument, RTF, Excel, PowerPoint, EPUB, PDF, HTML, \
        CSV, pictures. `options` is a JSON text with the options of a scrape that mean something for a file. Up to 50 MB.";
    Operation::new(Group::Scrape, "parse", "Parse a file", text)
        .form(
            "ParseOptions",
            read,
            vec![("Markdown", json!({})), ("Links too", json!({"formats": ["markdown", "links"]}))],
        )
        .answer_with(200, "The document.", "application/json", openapi::either::<Body<'_>, Shape<'_>>)
        .example(document_example())
        .errors(&[402, 403, 408])
}

/// Handles the request.
///
/// # Errors
/// 400 when the form is broken, the file is of no kind that is read, or an option means nothing for it; those of a
/// scrape.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Scrape).await?;
    let (Form { file, name, content_type, options }, room) = form::read(&app, &caller, &request, payload).await?;
    let mut parse = extract::parsed(options, parse_upload).map_err(|error| match error.code() {
        ErrorCode::InvalidJson => {
            ApiError::new(ErrorCode::BadRequest, format!("Invalid JSON in the 'options' field. {error}"))
        }
        _ => error,
    })?;
    if Format::of_name(&name).or_else(|| content_type.as_deref().and_then(Format::of_type)).is_none() {
        return Err(unsupported());
    }
    retention::settle(&caller, &mut parse.options)?;
    let app_of_work = app.clone();
    // The file goes when the page has ended, also where the caller has left.
    let work = async move {
        let app = app_of_work;
        let id = uploads::store(&app.db, &app.blobs, file).await?;
        drop(room);
        let blob = weir_shared::blobs::Blobs::upload_key(id);
        parse.options.upload = Some(Upload { blob, name: name.clone(), content_type });
        let (origin, integration) = (parse.origin, parse.integration);
        let scrape = ScrapeRequest { url: name, options: parse.options, origin, integration, version: ApiVersion::V2 };
        let answered = scraped(&app, caller, scrape).await;
        uploads::remove(&app.blobs, id).await;
        answered
    };
    let answered = app.runtime.spawn(work.in_current_span()).await.map_err(|error| ApiError::internal(&error))??;
    Ok(document_answer(&answered.document, answered.named))
}

fn unsupported() -> ApiError {
    let extensions: Vec<String> =
        weir_office::FORMATS.iter().flat_map(|info| info.extensions).map(|extension| format!(".{extension}")).collect();
    let text = format!("Unsupported upload type. Supported file extensions: {}.", extensions.join(", "));
    ApiError::new(ErrorCode::UnsupportedUpload, text)
}
