//! What a fetched response comes to: a document, another address to ask, or the need for a browser.

use tokio::time::Instant;
use url::Url;
use weir_shared::domain::scrape::Format;
use weir_shared::error_code::ErrorCode;

use super::{files, goods, html, media, office, pdf, picture, raw};
use crate::extract::{self, PageInput};
use crate::fetch::Fetched;
use crate::learn::Lookout;
use crate::page::cpu::blocking;
use crate::page::draft::{Made, SiteResponse};
use crate::page::error::PageError;
use crate::page::kind::{BodyKind, sniff};
use crate::page::refusal::is_refusal;
use crate::page::request::PageRequest;
use crate::page::sent::Sent;
use crate::page::task::PageTask;
use crate::page::templates::KnownSite;
use crate::page::xhtml;

/// Longest pause of a meta refresh that is followed, seconds.
const REFRESH_SECONDS: u32 = 5;

/// What came of a fetched response.
pub enum FromFetched {
    Page {
        made: Made,
        /// The site seems to refuse readers like us.
        is_blocked: bool,
    },
    NeedsBrowser,
    /// The page sends its readers on at once.
    Refresh(Url),
}

impl FromFetched {
    /// A file, which nobody gives to readers who are refused.
    fn file(made: Made) -> Self {
        Self::Page { made, is_blocked: false }
    }
}

/// Makes a document of a fetched response, if it has what is asked for.
///
/// # Errors
/// When no document can be made of it, and a browser could not either.
pub async fn from_fetched(
    task: &PageTask,
    request: &PageRequest,
    fetched: Fetched,
    deadline: Instant,
) -> Result<FromFetched, PageError> {
    let media_type = fetched.media_type().unwrap_or_default();
    let kind = sniff(&media_type, fetched.url.path(), &fetched.body);
    if kind == BodyKind::FalsePdf && !task.options().wants(&Format::RawBase64) {
        let text = "The site answered with a web page where a PDF was announced, most likely to keep robots out.";
        return Err(PageError::last(ErrorCode::PdfAntibot, text));
    }
    let content_type = fetched.content_type.clone();
    let mut response = SiteResponse::new(request, fetched.url.clone(), fetched.status, content_type);
    if fetched.incomplete {
        response.warnings.push("The page's compressed body was cut off; this is the readable part.".to_owned());
    }
    response.sent = Sent::fetched(task, request, &fetched, kind);
    let task = task.clone();
    if task.options().wants(&Format::RawBase64) {
        return blocking(task.holder(), move || raw::document(&task, response, &fetched, kind).map(FromFetched::file))
            .await;
    }
    // Files in boxes: most pages are none, and each would carry the state of reading one.
    if weir_office::begins_as_office(&fetched.body) {
        let name = office::name_in(&response.url);
        return Box::pin(office::document(task, response, fetched.body, name, deadline)).await.map(FromFetched::file);
    }
    match kind {
        BodyKind::Pdf => Box::pin(pdf::document(task, response, fetched.body, deadline)).await.map(FromFetched::file),
        BodyKind::Other if picture::is_one(&task, &media_type) => {
            Box::pin(picture::document(task, response, fetched.body, deadline)).await.map(FromFetched::file)
        }
        BodyKind::Other if media::is_asked_for(task.options()) => {
            blocking(task.holder(), move || media::file(&task, response, &media_type).map(FromFetched::file)).await
        }
        BodyKind::Other => Err(PageError::unsupported(&media_type)),
        BodyKind::Html => {
            let (asked, site) = (request.url.clone(), KnownSite::of(&task, &response.url).await);
            let lookout = Lookout::of(&task).await?;
            blocking(task.holder(), move || from_html(&task, response, &fetched, (&asked, site, lookout))).await
        }
        _ => {
            blocking(task.holder(), move || {
                let text = extract::charset::decode(&fetched.body, fetched.http_charset.as_deref());
                let is_blocked = is_refusal(response.status, "", 0);
                let made = files::document(&task, response, &text, kind)?;
                Ok(FromFetched::Page { made, is_blocked })
            })
            .await
        }
    }
}

/// `asked`: the address that was asked for; `site`: what is known of the site that answered; `lookout`: what is to be learned
/// from the page. Computes and blocks.
fn from_html(
    task: &PageTask,
    response: SiteResponse,
    fetched: &Fetched,
    (asked, site, lookout): (&Url, Option<KnownSite>, Option<Lookout>),
) -> Result<FromFetched, PageError> {
    let text = extract::charset::decode(&fetched.body, fetched.http_charset.as_deref());
    let page_html = xhtml::as_html(&text, xhtml::is_sent_as(fetched.content_type.as_deref()));
    let parsed = extract::parse(&PageInput { url: &response.url, html: &page_html, rendered: false });
    let signals = parsed.signals();
    let by_header = || {
        let join = |target: &str| response.url.join(target).ok().map(String::from);
        fetched.refresh.as_deref().and_then(|content| extract::refresh_to(content, join))
    };
    if let Some((seconds, target)) = signals.meta_refresh.clone().or_else(by_header)
        && seconds <= REFRESH_SECONDS
        && target != response.url
        && target != *asked
        && matches!(target.scheme(), "http" | "https")
    {
        return Ok(FromFetched::Refresh(target));
    }
    if fetched.incomplete && signals.text_chars == 0 {
        return Err(PageError::last(ErrorCode::Site, "The page's compressed body was cut off before its text."));
    }
    if signals.looks_script_rendered {
        return Ok(FromFetched::NeedsBrowser);
    }
    let is_blocked = is_refusal(response.status, &text, signals.text_chars);
    let mut options = html::extract_options(&task.spec);
    if let Some(site) = &site {
        site.apply(&mut options);
    }
    let extracted = parsed.extract(&options);
    // A player may come with the page's scripts, and so may the description of a product.
    let is_missing =
        media::is_missing(task.options(), &extracted.media) || goods::is_missing(task.options(), &extracted);
    let may_render = task.context.process.browsers.is_some() && !task.options().cache.is_only_cache();
    if may_render && is_missing {
        return Ok(FromFetched::NeedsBrowser);
    }
    if let Some(site) = site.filter(|_| !is_blocked) {
        site.learn(task, &response, &extracted);
    }
    let source = lookout.map(|lookout| lookout.look(&parsed, &page_html, false));
    let made = html::document(task, response, extracted, &text, source)?;
    Ok(FromFetched::Page { made, is_blocked })
}
