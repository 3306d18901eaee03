//! The formats audio and video: the address of what a page offers (wire 3.4), or of the file itself.

use tokio::time::Instant;
use weir_shared::domain::document::Document;
use weir_shared::domain::scrape::{Format, ScrapeOptions};
use weir_shared::error_code::ErrorCode;

use crate::extract::media::{self, Offers};
use crate::page::cpu::blocking;
use crate::page::draft::{Draft, Made, SiteResponse};
use crate::page::error::PageError;
use crate::page::request::PageRequest;
use crate::page::task::PageTask;

/// Whether either is wanted.
pub fn is_asked_for(options: &ScrapeOptions) -> bool {
    options.wants(&Format::Audio) || options.wants(&Format::Video)
}

/// Whether something that is wanted is not there.
pub fn is_missing(options: &ScrapeOptions, offers: &Offers) -> bool {
    options.wants(&Format::Audio) && offers.audio.is_none() || options.wants(&Format::Video) && offers.video.is_none()
}

/// What is wanted of what a page offers.
///
/// # Errors
/// When the page does not offer it.
pub fn taken(options: &ScrapeOptions, offers: Offers) -> Result<Offers, PageError> {
    if options.wants(&Format::Audio) && offers.audio.is_none() {
        return Err(PageError::last(ErrorCode::AudioUnsupported, "The page offers no audio."));
    }
    if options.wants(&Format::Video) && offers.video.is_none() {
        return Err(PageError::last(ErrorCode::VideoUnsupported, "The page offers no video."));
    }
    Ok(Offers {
        audio: offers.audio.filter(|_| options.wants(&Format::Audio)),
        video: offers.video.filter(|_| options.wants(&Format::Video)),
    })
}

/// The document of a file that is a sound or a film: its address.
pub fn file(task: &PageTask, mut response: SiteResponse, media_type: &str) -> Result<Made, PageError> {
    let options = task.options();
    let offers = media::of_address(media_type, &response.url);
    if offers == Offers::default() {
        return Err(PageError::unsupported(media_type));
    }
    let offers = taken(options, offers)?;
    if options.formats.iter().any(|format| !matches!(format, Format::Audio | Format::Video)) {
        response.warnings.push("The address gives a media file, so there are no other formats.".to_owned());
    }
    let document = Document { audio: offers.audio, video: offers.video, ..Document::default() };
    let harvest = task.harvest(&response.url, Vec::new());
    Draft { harvest, ..Draft::new(response, document, options) }.advance(task)
}

/// The same for an address that is named like such a file, which may be long, from its head alone. `None`: it is something
/// else, or not asked for.
pub async fn at_once(task: &PageTask, request: &PageRequest, deadline: Instant) -> Result<Option<Made>, PageError> {
    if !is_asked_for(task.options()) || !media::is_named_like_media(&request.url) {
        return Ok(None);
    }
    let opened = task.context.process.fetcher.open(request.to_fetch(task.options(), deadline)).await?;
    let media_type = opened.media_type().unwrap_or_default();
    if opened.status != 200 || media::of_address(&media_type, &opened.url) == Offers::default() {
        return Ok(None);
    }
    let response = SiteResponse {
        is_trusted: opened.is_trusted,
        ..SiteResponse::new(request, opened.url, opened.status, opened.content_type)
    };
    let task = task.clone();
    blocking(task.holder(), move || file(&task, response, &media_type)).await.map(Some)
}
