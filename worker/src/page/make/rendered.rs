//! The document of a page that a browser has rendered.

use bytes::Bytes;

use super::html;
use crate::browser::Rendered;
use crate::extract::{self, PageInput};
use crate::learn::Lookout;
use crate::page::cpu::blocking;
use crate::page::draft::{Made, SiteResponse};
use crate::page::error::PageError;
use crate::page::refusal::is_refusal;
use crate::page::request::PageRequest;
use crate::page::sent::Sent;
use crate::page::task::PageTask;
use crate::page::templates::KnownSite;

/// Makes the document. With it, whether the site seems to refuse readers like us.
///
/// # Errors
/// As for [`html::document`].
pub async fn from_rendered(
    task: &PageTask,
    request: &PageRequest,
    mut rendered: Rendered,
) -> Result<(Made, bool), PageError> {
    let page_html = Bytes::from(std::mem::take(&mut rendered.html));
    let raw = rendered.raw_html.take().map(Bytes::from);
    let sent = Sent::rendered(task, request, &rendered, (&page_html, raw.as_ref()));
    let response = SiteResponse {
        timezone: rendered.timezone,
        screenshot: rendered.screenshot.map(|shot| shot.data_uri()),
        branding: rendered.branding,
        actions: rendered.actions,
        is_trusted: request.is_trusted && rendered.is_trusted,
        sent,
        ..SiteResponse::new(request, rendered.url, rendered.status, rendered.content_type)
    };
    let (task, site, lookout) = (task.clone(), KnownSite::of(task, &response.url).await, Lookout::of(task).await?);
    blocking(task.holder(), move || {
        let page_html = text(&page_html);
        let input = PageInput { url: &response.url, html: page_html, rendered: true };
        let mut options = html::extract_options(&task.spec);
        if let Some(site) = &site {
            site.apply(&mut options);
        }
        let parsed = extract::parse(&input);
        let extracted = parsed.extract(&options);
        let is_blocked = is_refusal(response.status, page_html, extracted.signals.text_chars);
        if let Some(site) = site.filter(|_| !is_blocked) {
            site.learn(&task, &response, &extracted);
        }
        let source = lookout.map(|lookout| lookout.look(&parsed, page_html, true));
        let made = html::document(&task, response, extracted, raw.as_ref().map_or(page_html, text), source)?;
        Ok((made, is_blocked))
    })
    .await
}

/// What was text a moment ago.
fn text(bytes: &Bytes) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
