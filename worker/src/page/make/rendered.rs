//! The document of a page that a browser has rendered.

use super::html;
use crate::browser::Rendered;
use crate::extract::{self, PageInput};
use crate::page::cpu::blocking;
use crate::page::draft::{Made, SiteResponse};
use crate::page::error::PageError;
use crate::page::refusal::is_refusal;
use crate::page::request::PageRequest;
use crate::page::task::PageTask;

/// Makes the document. With it, whether the site seems to refuse readers like us.
///
/// # Errors
/// As for [`html::document`].
pub async fn from_rendered(
    task: &PageTask,
    request: &PageRequest,
    rendered: Rendered,
) -> Result<(Made, bool), PageError> {
    let screenshot = rendered.screenshot.map(|shot| format!("data:{};base64,{}", shot.mime, shot.data));
    let response = SiteResponse {
        timezone: rendered.timezone,
        screenshot,
        branding: rendered.branding,
        actions: rendered.actions,
        is_trusted: request.is_trusted && rendered.is_trusted,
        ..SiteResponse::new(request, rendered.url, rendered.status, rendered.content_type)
    };
    let (page_html, raw) = (rendered.html, rendered.raw_html);
    let task = task.clone();
    blocking(move || {
        let input = PageInput { url: &response.url, html: &page_html, rendered: true };
        let extracted = extract::parse(&input).extract(&html::extract_options(&task.spec));
        let is_blocked = is_refusal(response.status, &page_html, extracted.signals.text_chars);
        let source = Some((page_html.as_str(), true));
        let made = html::document(&task, response, extracted, raw.as_deref().unwrap_or(&page_html), source)?;
        Ok((made, is_blocked))
    })
    .await
}
