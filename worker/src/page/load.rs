//! A page by one proxy route: asked for over HTTP, and in a browser where it needs one.
//!
//! HTTP first. The browser when the options need one, when the answer looks script-rendered, or when the host's pages
//! lately did. A page that needs a browser and gets none fails with a code; it is never answered as an empty shell.

use tokio::time::Instant;
use weir_shared::domain::scrape::Format;
use weir_shared::error_code::ErrorCode;
use weir_shared::traces::{self, Side};

use super::browse::browse;
use super::draft::Made;
use super::error::PageError;
use super::make::fetched::{FromFetched, from_fetched};
use super::make::media;
use super::make::rendered::from_rendered;
use super::product::Engine;
use super::request::PageRequest;
use super::rest;
use super::task::PageTask;
use crate::browser::{FileAt, RenderError, Rendered};

/// Meta refreshes followed.
const REFRESHES: u32 = 5;

/// What came of asking for a page.
pub struct Loaded {
    pub made: Made,
    pub engine: Engine,
    /// The site seems to refuse readers like us.
    pub is_blocked: bool,
}

/// Asks for the page, with a browser where it needs one.
///
/// # Errors
/// When the page does not come, or no document can be made of it.
pub async fn load(task: &PageTask, mut request: PageRequest, deadline: Instant) -> Result<Loaded, PageError> {
    if let Some(loaded) = over_http(task, &mut request, deadline).await? {
        return Ok(loaded);
    }
    if request.proxy().is_some() {
        // Checked here, because the browser would only tell that its proxy refused.
        task.context.process.fetcher.check(&request.url).await?;
    }
    let options = task.options();
    // In a box, because few pages need a browser, and each would carry the state of driving one.
    match Box::pin(rendered(task, &mut request, deadline)).await? {
        Ok(rendered) => {
            rest::respect_rendered(task, &request, rendered.status, deadline).await?;
            let (span, step) = (traces::below(task.trace, "extract", Side::Internal), task.attempted.step("extract"));
            let (made, is_blocked) = from_rendered(task, &request, rendered).await?;
            drop((span, step));
            Ok(Loaded { made, engine: Engine::Browser, is_blocked })
        }
        Err(error @ RenderError::NotHtml { .. }) if !options.actions.is_empty() => {
            let text = format!("{} No actions can be performed on it.", error.message());
            Err(PageError::last(ErrorCode::ActionsNotSupported, text))
        }
        Err(RenderError::NotHtml { .. }) if options.wants(&Format::Branding) => {
            let text = "The branding format needs a web page; the address gives a file.";
            Err(PageError::last(ErrorCode::BrandingNotSupported, text))
        }
        // What a browser would only download may be a file that needs none.
        Err(RenderError::NotHtml { at, .. }) if options.formats.iter().any(|f| !matches!(f, Format::Screenshot(_))) => {
            Box::pin(file_after_all(task, request, at, deadline)).await
        }
        Err(error) => Err(error.into()),
    }
}

/// The page without a browser. `None`: it needs one.
async fn over_http(task: &PageTask, request: &mut PageRequest, deadline: Instant) -> Result<Option<Loaded>, PageError> {
    let scripted_hosts = &task.context.process.scripted_hosts;
    let port = request.url.port_or_known_default().unwrap_or(0);
    let host = format!("{}:{port}", request.url.host_str().unwrap_or_default());
    let options = task.options();
    let is_scripted = scripted_hosts.is_scripted(&host) && !options.wants(&Format::RawBase64);
    if options.needs_browser() || is_scripted {
        return Ok(None);
    }
    if let Some(made) = media::at_once(task, request, deadline).await? {
        return Ok(Some(Loaded { made, engine: Engine::Http, is_blocked: false }));
    }
    for _ in 0..=REFRESHES {
        match fetch(task, request, &[], deadline).await? {
            FromFetched::Page { made, is_blocked } => {
                scripted_hosts.record(&host, false);
                return Ok(Some(Loaded { made, engine: Engine::Http, is_blocked }));
            }
            FromFetched::Refresh(target) => request.url = target,
            FromFetched::NeedsBrowser => {
                scripted_hosts.record(&host, true);
                break;
            }
        }
    }
    Ok(None)
}

/// A file that a browser was asked for, or that it was led to.
async fn file_after_all(
    task: &PageTask,
    mut request: PageRequest,
    at: FileAt,
    deadline: Instant,
) -> Result<Loaded, PageError> {
    let options = task.options();
    let cookies = match at {
        FileAt::Asked => Vec::new(),
        // As after a redirect: every rule about addresses and the caller's headers holds for where it leads.
        FileAt::Led(file) => {
            request.url = file.url;
            file.cookies
        }
        FileAt::Nowhere => return Err(PageError::unsupported("")),
    };
    if options.screenshot().is_some() {
        request.warnings.push("There is no screenshot: the address gives a file and not a page.".to_owned());
    }
    if options.profile.is_some() {
        request.warnings.push("The address gives a file; it was asked for without the profile.".to_owned());
    }
    match fetch(task, &mut request, &cookies, deadline).await? {
        FromFetched::Page { made, is_blocked } => Ok(Loaded { made, engine: Engine::Http, is_blocked }),
        FromFetched::Refresh(_) | FromFetched::NeedsBrowser => Err(PageError::unsupported("")),
    }
}

/// `cookies`: what a browser has for the address already.
async fn fetch(
    task: &PageTask,
    request: &mut PageRequest,
    cookies: &[String],
    deadline: Instant,
) -> Result<FromFetched, PageError> {
    let (mut span, step) = (traces::below(task.trace, "fetch", Side::Client), task.attempted.step("fetch"));
    let fetched = task.context.process.fetcher.fetch_with(request.to_fetch(task.options(), deadline), cookies).await;
    match &fetched {
        Ok(fetched) => span.number("http.response.status_code", fetched.status.into()),
        Err(_) => span.fail("FETCH"),
    }
    drop((span, step));
    let fetched = fetched?;
    request.is_trusted &= fetched.is_trusted;
    rest::respect(task, &fetched, deadline).await?;
    let _ends = (traces::below(task.trace, "extract", Side::Internal), task.attempted.step("extract"));
    from_fetched(task, request, fetched, deadline).await
}

async fn rendered(
    task: &PageTask,
    request: &mut PageRequest,
    deadline: Instant,
) -> Result<Result<Rendered, RenderError>, PageError> {
    let (mut span, _step) = (traces::below(task.trace, "render", Side::Client), task.attempted.step("render"));
    let rendered = browse(task, request, deadline).await?;
    match &rendered {
        Ok(rendered) => span.number("http.response.status_code", rendered.status.into()),
        Err(_) => span.fail("RENDER"),
    }
    Ok(rendered)
}
