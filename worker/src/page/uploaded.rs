//! A page that is a file which the caller has sent (wire 21): its bytes are at hand, and nothing is asked of any site.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use url::Url;
use weir_office::{Format, Kind, begins_as_office, detect};
use weir_shared::domain::upload::Upload;
use weir_shared::error_code::ErrorCode;
use weir_shared::{blocking, clock};

use super::cpu::blocking;
use super::draft::{Made, SiteResponse};
use super::error::PageError;
use super::load::Loaded;
use super::make::{html, office, pdf, picture};
use super::product::Engine;
use super::task::PageTask;
use super::xhtml;
use crate::extract::{self, PageInput};

/// Pause between two tries to read a file whose place is away.
const PAUSE: Duration = Duration::from_secs(1);

/// Makes the document of the file.
///
/// # Errors
/// When it is gone, or cannot be read.
pub async fn from_upload(task: &PageTask, upload: &Upload, deadline: Instant) -> Result<Loaded, PageError> {
    let file = bytes_of(task, upload, deadline).await?;
    let mut response = response(upload)?;
    let task = task.clone();
    let (name, said) = (Some(upload.name.as_str()), upload.content_type.as_deref());
    // What has parts inside is looked into by its reader alone.
    let format = if begins_as_office(&file) { None } else { detect(&file, name, said) };
    // The readers of the others say it themselves.
    if let Some(format) = format.filter(|format| matches!(format.kind(), Kind::Image | Kind::Html)) {
        let usual = || format.info().mime_types.first().map(|kind| (*kind).to_owned());
        response.content_type = response.content_type.or_else(usual);
    }
    let is_named_xhtml =
        name.and_then(|name| name.rsplit_once('.')).is_some_and(|(_, e)| e.eq_ignore_ascii_case("xhtml"));
    let is_xml = is_named_xhtml || xhtml::is_sent_as(said);
    let made = match format.map(Format::kind) {
        Some(Kind::Pdf) => pdf::document(task, response, file, deadline).await,
        Some(Kind::Image) => picture::document(task, response, file, deadline).await,
        Some(Kind::Html) => blocking(task.holder(), move || from_html(&task, response, &file, is_xml)).await,
        _ => office::document(task, response, file, Some(upload.name.clone()), deadline).await,
    };
    Ok(Loaded { made: made?, engine: Engine::Upload, is_blocked: false })
}

/// The file's bytes. A place of blobs that is away is waited for, as long as the page has time.
async fn bytes_of(task: &PageTask, upload: &Upload, deadline: Instant) -> Result<Bytes, PageError> {
    loop {
        let (blobs, key) = (task.context.process.blobs.clone(), upload.blob.clone());
        let read = blocking::run(move || blobs.get(&key).map_err(|error| (blobs.is_away(&error), error)));
        match read.await {
            Ok(Ok(bytes)) => return Ok(Bytes::from(bytes)),
            Ok(Err((false, _))) => return Err(PageError::last(ErrorCode::Unknown, "The uploaded file is gone.")),
            Ok(Err((true, error))) => {
                tracing::warn!(%error, page.id = %task.page.id, "an uploaded file cannot be read");
                if clock::instant() + PAUSE >= deadline {
                    return Err(PageError::again(ErrorCode::Unknown, "The uploaded file could not be read."));
                }
                tokio::time::sleep(PAUSE).await;
            }
            Err(_) => return Err(PageError::again(ErrorCode::Unknown, "Internal error.")),
        }
    }
}

fn response(upload: &Upload) -> Result<SiteResponse, PageError> {
    // A file's address is its name alone; what it links to is relative to nothing that could be reached.
    let url = Url::from_file_path(format!("/{}", upload.name));
    let url = url.map_err(|()| PageError::last(ErrorCode::UnsupportedFile, "The file's name cannot be used."))?;
    Ok(SiteResponse::of_file(url, upload.content_type.clone()))
}

/// Computes and blocks.
fn from_html(task: &PageTask, mut response: SiteResponse, file: &[u8], is_xml: bool) -> Result<Made, PageError> {
    let text = extract::charset::decode(file, None);
    // No site stands behind a file to say what it is, so what the file says counts.
    let page_html = xhtml::as_html(&text, is_xml || text.trim_start_matches('\u{feff}').starts_with("<?xml"));
    let parsed = extract::parse(&PageInput { url: &response.url, html: &page_html, rendered: false });
    if parsed.signals().looks_script_rendered {
        let text = "The page seems to make its content by script, and no script of an uploaded file is run.";
        response.warnings.push(text.to_owned());
    }
    let extracted = parsed.extract(&html::extract_options(&task.spec));
    html::document(task, response, extracted, &text, None)
}
