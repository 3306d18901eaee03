//! The formats audio and video: the address of what a page offers (CONTRACT 3.4), or of the file itself.

use std::sync::Arc;

use tokio::time::Instant;
use weir_shared::domain::document::Document;
use weir_shared::domain::scrape::{Format, ScrapeOptions};
use weir_shared::error_code::ErrorCode;
use weir_shared::store::jobs::JobSpec;
use weir_shared::store::page::rows::Claimed;

use super::{Answer, Draft, PageError, Plan, Stage, Work, blocking, fetch_request, unsupported};
use crate::context::WorkerContext;
use crate::extract::media::{self, Offers};

/// Whether either is wanted.
pub(super) fn is_asked_for(options: &ScrapeOptions) -> bool {
    options.wants(&Format::Audio) || options.wants(&Format::Video)
}

/// Whether something that is wanted is not there.
pub(super) fn is_missing(options: &ScrapeOptions, offers: &Offers) -> bool {
    options.wants(&Format::Audio) && offers.audio.is_none() || options.wants(&Format::Video) && offers.video.is_none()
}

/// What is wanted of what a page offers.
///
/// # Errors
/// When the page does not offer it.
pub(super) fn taken(options: &ScrapeOptions, offers: Offers) -> Result<Offers, PageError> {
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
pub(super) fn file(work: Work, mut answer: Answer, media_type: &str) -> Result<Stage, PageError> {
    let options = &work.spec.options;
    let offers = media::of_address(media_type, &answer.url);
    if offers == Offers::default() {
        return Err(unsupported(media_type));
    }
    let offers = taken(options, offers)?;
    if options.formats.iter().any(|format| !matches!(format, Format::Audio | Format::Video)) {
        answer.warnings.push("The address gives a media file, so there are no other formats.".to_owned());
    }
    let document = Document { audio: offers.audio, video: offers.video, ..Document::default() };
    let harvest = work.harvest(&answer, Vec::new());
    let draft = Draft::new(answer, document, options);
    work.advance(draft, harvest)
}

/// The same for an address that is named like such a file, which may be long, from its head alone. `None`: it is something
/// else, or not asked for.
pub(super) async fn at_once(
    context: &Arc<WorkerContext>,
    page: &Claimed,
    spec: &Arc<JobSpec>,
    plan: &Plan,
    deadline: Instant,
) -> Result<Option<Stage>, PageError> {
    if !is_asked_for(&spec.options) || !media::is_named_like_media(&plan.url) {
        return Ok(None);
    }
    let opened = context.process.fetcher.open(fetch_request(plan, &spec.options, deadline)).await?;
    let media_type = opened.content_type.as_deref().unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if opened.status != 200 || media::of_address(&media_type, &opened.url) == Offers::default() {
        return Ok(None);
    }
    let answer = Answer {
        url: opened.url.clone(),
        status: opened.status,
        content_type: opened.content_type,
        timezone: None,
        screenshot: None,
        branding: None,
        actions: None,
        warnings: plan.warnings_at(&opened.url),
        proxy_used: plan.way.proxy_used,
        is_trusted: opened.is_trusted,
    };
    let work = Work { context: Arc::clone(context), page: page.clone(), spec: Arc::clone(spec) };
    blocking(move || file(work, answer, &media_type)).await.map(Some)
}
