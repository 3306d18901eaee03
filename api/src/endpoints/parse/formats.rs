//! The kinds of files that are read, and `GET /v2/parse/formats` (wire 21), which lists them.

use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use weir_office::{FORMATS, Format};
use weir_shared::error_code::ErrorCode;

use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ParseFormats")]
struct Body {
    success: bool,
    data: Formats,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ParseFormatList")]
struct Formats {
    formats: Vec<Row>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ParseFormat")]
struct Row {
    format: &'static str,
    /// What it is for: word, sheet, slides, book, table, html, pdf, image.
    kind: &'static str,
    /// With the dot.
    extensions: Vec<String>,
    mime_types: Vec<&'static str>,
    /// Whether it is read here. Whether pictures are depends on the workers' machines, and shows when one is sent.
    available: bool,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Files that can be parsed, by name or type. Their bytes decide in the end.";
    Operation::new(Group::Scrape, "listParseFormats", "Files that can be parsed", text).answer::<Body>("The formats.")
}

/// Handles the request.
///
/// # Errors
/// 401 without a key.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    app.authorize(&request, Bucket::Status).await?;
    let row = |info: &weir_office::FormatInfo| Row {
        format: info.name,
        kind: info.kind.name(),
        extensions: info.extensions.iter().map(|extension| format!(".{extension}")).collect(),
        mime_types: info.mime_types.to_vec(),
        available: true,
    };
    let formats = FORMATS.iter().map(row).collect();
    Ok(HttpResponse::Ok().json(Body { success: true, data: Formats { formats } }))
}

/// Refuses a file whose name and type say nothing that is read.
///
/// # Errors
/// The kinds that are.
pub fn check_kind(name: &str, content_type: Option<&str>) -> ApiResult<()> {
    if Format::of_name(name).or_else(|| content_type.and_then(Format::of_type)).is_some() {
        return Ok(());
    }
    let extensions: Vec<String> =
        FORMATS.iter().flat_map(|info| info.extensions).map(|extension| format!(".{extension}")).collect();
    let text = format!("Unsupported upload type. Supported file extensions: {}.", extensions.join(", "));
    Err(ApiError::new(ErrorCode::UnsupportedUpload, text))
}
