//! One page from claim to end: which engine, what to make of the answer, retry or not.
//!
//! HTTP first. The browser when the options need one, when the answer looks script-rendered, or when the host's pages
//! lately did. A page that needs a browser and gets none fails with a code; it is never answered as an empty shell.

mod files;
mod markdown_html;
mod media;
mod pdf;
mod picture;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use url::Url;
use weir_shared::domain::document::{AttributeValues, Document};
use weir_shared::domain::job::{JobKind, MAX_CLAIMS, MAX_TRIES, retry_pause_ms};
use weir_shared::domain::price;
use weir_shared::domain::scrape::{AttributeSelector, Format, Location, ScrapeOptions};
use weir_shared::domain::scrape_request::fetch_url;
use weir_shared::domain::session::ProfileUse;
use weir_shared::error_code::ErrorCode;
use weir_shared::store::finish::{Encoded, Finished, Outcome};
use weir_shared::store::jobs::JobSpec;
use weir_shared::store::pages::Claimed;
use weir_shared::time::Timestamp;

use super::complete::{Answer, Draft, Stage, complete, refuse_unreadable};
use super::map_site;
use crate::browser::{RenderError, RenderRequest, Rendered, ScreenshotRequest, languages};
use crate::context::{HeldPage, WorkerContext};
use crate::extract::{self, ExtractOptions, PageInput};
use crate::fetch::{CallerHeaders, FetchError, FetchRequest, Fetched, ProxyUrl};
use crate::finisher::Told;
use crate::gate::Slot;
use crate::sessions;
use crate::sessions::page::{Exit, PageTrouble};

use super::ways::{self, Loaded, Way, is_refusal};
use super::{cached, crawl_page, serve_team};

/// Meta refreshes followed, each with a pause of at most this many seconds.
const REFRESHES: u32 = 5;
const REFRESH_SECONDS: u32 = 5;
/// How soon a page that waits for its profile looks again, milliseconds.
const LINE_MS: i64 = 500;
/// Time kept back for extraction and the commit.
const RESERVE: Duration = Duration::from_millis(50);

/// Why a page has no document.
#[derive(Debug)]
pub(super) struct PageError {
    code: ErrorCode,
    message: String,
    retry: bool,
    /// Nothing has failed: it is not its turn.
    is_early: bool,
    /// Whose doing it was, where that decides on the next way.
    by: By,
}

/// Who may be behind a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Anybody,
    /// The operator's proxy.
    Proxy,
    /// The site, perhaps because of who asks.
    Site,
}

impl PageError {
    pub(super) fn last(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry: false, is_early: false, by: By::Anybody }
    }

    /// Worth another try.
    pub(super) fn again(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { retry: true, ..Self::last(code, message) }
    }

    /// The operator's proxy failed.
    pub(super) fn is_of_proxy(&self) -> bool {
        self.by == By::Proxy
    }

    /// The site may have refused us, and answer another address.
    pub(super) fn may_be_refusal(&self) -> bool {
        self.by != By::Anybody
    }
}

impl From<FetchError> for PageError {
    fn from(error: FetchError) -> Self {
        let by = match error {
            FetchError::Proxy { .. } => By::Proxy,
            FetchError::Connect { .. } | FetchError::Cut { .. } | FetchError::Protocol { .. } => By::Site,
            _ => By::Anybody,
        };
        Self { code: error.code(), message: error.message(), retry: error.is_retryable(), is_early: false, by }
    }
}

impl From<RenderError> for PageError {
    fn from(error: RenderError) -> Self {
        let by = match error {
            RenderError::Proxy => By::Proxy,
            RenderError::Site(_) => By::Site,
            _ => By::Anybody,
        };
        Self { code: error.code(), message: error.message(), retry: error.is_retryable(), is_early: false, by }
    }
}

/// Which engine made the document, for the metrics.
#[derive(Debug, Clone, Copy)]
pub(super) enum Engine {
    Cache,
    Http,
    Browser,
}

impl Engine {
    fn as_str(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::Http => "http",
            Self::Browser => "browser",
        }
    }
}

/// Works on a claimed page and hands in its end, of which `told` hears. The slot is given back before the end is
/// committed; the page is `held` until it is.
pub async fn run(context: &Arc<WorkerContext>, page: Claimed, held: HeldPage, slot: Slot, told: Option<Told>) {
    let spec = match context.spec(page.job_id).await {
        Ok(Some(spec)) => spec,
        // The job is gone with its pages, or the sweeper takes the page back.
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(%error, page.id = %page.id, "a job's options cannot be read; the page goes back");
            let end = Finished { page, kind: None, key: None, outcome: Outcome::GivenBack };
            return context.finisher.submit(end, held, None).await;
        }
    };
    let started = Instant::now();
    let outcome = if page.claims > MAX_CLAIMS {
        Outcome::Failed { code: ErrorCode::RetryLimit, error: "The page was given up.".to_owned(), credits: 0 }
    } else if spec.kind == JobKind::Map {
        tokio::select! {
            biased;
            () = context.fenced.cancelled() => return,
            outcome = map_site::run(context, &page) => outcome,
        }
    } else {
        let work = async {
            match &spec.crawl {
                Some(crawl) => crawl_page::work(context, &page, &spec, &crawl.scope).await,
                None => judge(context, &page, &spec, attempt(context, &page, &spec).await),
            }
        };
        tokio::select! {
            biased;
            () = context.fenced.cancelled() => return,
            outcome = work => outcome,
        }
    };
    drop(slot);
    context.process.metrics.page_seconds.observe(started.elapsed().as_secs_f64());
    let (team, again) = (page.team_id, outcome.run_at());
    let end = Finished { page, kind: Some(spec.kind), key: spec.key, outcome };
    context.finisher.submit(end, held, told).await;
    if let Some(at) = again {
        serve_team::look_again(context, team, at);
    }
}

/// One try, within the page's time.
pub(super) async fn attempt(
    context: &Arc<WorkerContext>,
    page: &Claimed,
    spec: &Arc<JobSpec>,
) -> Result<(Product, Engine), PageError> {
    let deadline = deadline(page, spec, Instant::now());
    if let Some(product) = cached::find(context, page, spec).await? {
        return Ok((product, Engine::Cache));
    }
    let work = std::panic::AssertUnwindSafe(scrape(context, page, spec, deadline)).catch_unwind();
    match tokio::time::timeout_at(deadline + RESERVE, work).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(PageError::again(ErrorCode::Unknown, "Internal error.")),
        Err(_) => Err(timed_out(&spec.options)),
    }
}

/// What came of a page.
pub(super) struct Product {
    pub document: Encoded,
    /// What it costs; its metadata says the same.
    pub credits: i64,
    /// For a crawl: what the page leads to.
    pub harvest: Option<Harvest>,
}

/// Where a page of a crawl leads.
pub(super) struct Harvest {
    /// Its address after redirects.
    pub url: Url,
    /// What it calls itself.
    pub canonical: Option<Url>,
    /// Absolute, in order, without repeats.
    pub links: Vec<String>,
}

/// Once claimed a page has its whole `timeout`, however long it was in the queue. For a caller on the line further tries
/// are within the time that is left since the call, and have a third of it at least.
fn deadline(page: &Claimed, spec: &JobSpec, started: Instant) -> Instant {
    let timeout = Duration::from_millis(u64::from(spec.options.timeout));
    if page.tries == 0 || page.limited || spec.kind != JobKind::Scrape {
        return started + timeout;
    }
    let waited = Duration::from_millis(page.started_at.ms_since(page.queued_at).unsigned_abs());
    started + timeout.saturating_sub(waited).max(timeout / 3)
}

fn timed_out(options: &ScrapeOptions) -> PageError {
    let text = format!("The page timed out: it was not done within {} ms.", options.timeout);
    PageError::last(ErrorCode::Timeout, text)
}

/// Turns a result into the end of the attempt: done, failed for good, or another try after a pause.
pub(super) fn judge(
    context: &WorkerContext,
    page: &Claimed,
    spec: &JobSpec,
    result: Result<(Product, Engine), PageError>,
) -> Outcome {
    let pages = &context.process.metrics.pages;
    match result {
        Ok((product, engine)) => {
            pages.with_label_values(&[engine.as_str(), "done"]).inc();
            Outcome::Done { document: product.document, credits: product.credits }
        }
        Err(error) if error.is_early => Outcome::Postponed { run_at: Timestamp::now().plus_ms(LINE_MS) },
        Err(error) => {
            let again = error.retry && page.tries + 1 < MAX_TRIES;
            let outcome = if again { "retry" } else { "failed" };
            pages.with_label_values(&["none", outcome]).inc();
            tracing::info!(
                page.id = %page.id, job.id = %page.job_id, job.attempt = page.claims,
                code = error.code.code().unwrap_or(""), outcome, "a page failed"
            );
            if again {
                // A caller on the line gets its retries at once.
                let background = spec.kind != JobKind::Scrape;
                let pause = if background { retry_pause_ms(page.tries + 1) } else { 100 };
                let jitter = rand::random_range(0..=pause / 4);
                let run_at = Timestamp::now().plus_ms(pause + jitter);
                return Outcome::Retry { code: error.code, error: error.message, run_at };
            }
            Outcome::Failed { code: error.code, error: error.message, credits: price::of_failure(error.code) }
        }
    }
}

/// Where a page is asked for, and how.
pub(super) struct Plan {
    url: Url,
    /// What the caller gave to be sent along, and where it may go.
    caller: CallerHeaders,
    /// Everything that came over TLS so far came over certificates that verify.
    is_trusted: bool,
    /// The caller's headers went along with the first request.
    begins_at_home: bool,
    way: Way,
    /// What the caller should know, beyond what the way says.
    warnings: Vec<String>,
}

impl Plan {
    fn proxy(&self) -> Option<&ProxyUrl> {
        self.way.chosen.as_ref().map(|chosen| &chosen.proxy)
    }

    /// What the caller should know about a page that ended at `end`.
    fn warnings_at(&self, end: &Url) -> Vec<String> {
        let of_way = self.way.warning.iter().map(|text| (*text).to_owned());
        let is_elsewhere = self.begins_at_home && !self.caller.names(end);
        let of_headers = is_elsewhere.then(|| {
            let end = end.origin().ascii_serialization();
            format!("The page led to {end}, where the request's headers were not sent: they go to the origin of the URL alone.")
        });
        of_way.chain(self.warnings.iter().cloned()).chain(of_headers).collect()
    }
}

async fn scrape(
    context: &Arc<WorkerContext>,
    page: &Claimed,
    spec: &Arc<JobSpec>,
    deadline: Instant,
) -> Result<(Product, Engine), PageError> {
    refuse_unreadable(context, &spec.options)?;
    let loaded = ways::load_page(context, page, spec, deadline).await?;
    Ok((complete(context, page, spec, loaded.stage, deadline).await?, loaded.engine))
}

/// Asks for the page, with a browser where it needs one.
pub(super) async fn load(
    context: &Arc<WorkerContext>,
    page: &Claimed,
    spec: &Arc<JobSpec>,
    mut plan: Plan,
    deadline: Instant,
) -> Result<Loaded, PageError> {
    let options = &spec.options;
    let host = format!("{}:{}", plan.url.host_str().unwrap_or_default(), plan.url.port_or_known_default().unwrap_or(0));
    if !options.needs_browser() && !context.process.scripted_hosts.is_scripted(&host) {
        if let Some(stage) = media::at_once(context, page, spec, &plan, deadline).await? {
            return Ok(Loaded { stage, engine: Engine::Http, is_blocked: false });
        }
        for _ in 0..=REFRESHES {
            let fetched = fetch(context, &mut plan, options, deadline).await?;
            match from_fetched(context, page, spec, &plan, fetched, deadline).await? {
                Made::Page { stage, is_blocked } => {
                    context.process.scripted_hosts.record(&host, false);
                    return Ok(Loaded { stage, engine: Engine::Http, is_blocked });
                }
                Made::Refresh(target) => plan.url = target,
                Made::NeedsBrowser => {
                    context.process.scripted_hosts.record(&host, true);
                    break;
                }
            }
        }
    }
    if plan.proxy().is_some() {
        // The browser would only tell that its proxy refused.
        context.process.fetcher.check(&plan.url).await?;
    }
    let rendered = match &options.profile {
        Some(profile) => on_profile(context, page, spec, &mut plan, profile, deadline).await?,
        None => render(context, &plan, options, deadline).await,
    };
    match rendered {
        Ok(rendered) => from_rendered(context, page, spec, &plan, rendered).await,
        Err(error @ RenderError::NotHtml { .. }) if !options.actions.is_empty() => {
            let text = format!("{} No actions can be performed on it.", error.message());
            Err(PageError::last(ErrorCode::ActionsNotSupported, text))
        }
        Err(RenderError::NotHtml { .. }) if options.wants(&Format::Branding) => {
            let text = "The branding format needs a web page; the address gives a file.";
            Err(PageError::last(ErrorCode::BrandingNotSupported, text))
        }
        // What a browser would only download may be a file that needs none.
        Err(RenderError::NotHtml { .. }) if options.formats.iter().any(|f| !matches!(f, Format::Screenshot(_))) => {
            if options.screenshot().is_some() {
                plan.warnings.push("There is no screenshot: the address gives a file and not a page.".to_owned());
            }
            if options.profile.is_some() {
                plan.warnings.push("The address gives a file; it was asked for without the profile.".to_owned());
            }
            let fetched = fetch(context, &mut plan, options, deadline).await?;
            match from_fetched(context, page, spec, &plan, fetched, deadline).await? {
                Made::Page { stage, is_blocked } => Ok(Loaded { stage, engine: Engine::Http, is_blocked }),
                Made::Refresh(_) | Made::NeedsBrowser => Err(unsupported("")),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// The address of a claimed page, by a way.
pub(super) fn plan(page: &Claimed, spec: &JobSpec, way: Way) -> Result<Plan, PageError> {
    let url = fetch_url(&page.url).map_err(|_| PageError::last(ErrorCode::Site, "The URL is not valid."))?;
    let caller = CallerHeaders::new(spec.named(&page.url), &spec.options.headers);
    let begins_at_home = caller.has_secrets_for(&url);
    Ok(Plan { url, caller, is_trusted: true, begins_at_home, way, warnings: Vec::new() })
}

async fn fetch(
    context: &WorkerContext,
    plan: &mut Plan,
    options: &ScrapeOptions,
    deadline: Instant,
) -> Result<Fetched, PageError> {
    let fetched = context.process.fetcher.fetch(fetch_request(plan, options, deadline)).await?;
    plan.is_trusted &= fetched.is_trusted;
    Ok(fetched)
}

fn fetch_request<'a>(plan: &'a Plan, options: &'a ScrapeOptions, deadline: Instant) -> FetchRequest<'a> {
    FetchRequest {
        url: &plan.url,
        headers: &plan.caller,
        accept_language: accept_language(options.location.as_ref()),
        mobile: options.mobile,
        certificates: options.certificates(),
        deadline,
        proxy: plan.proxy(),
    }
}

/// `de-DE,de;q=0.9`: the languages in falling weight; those of the country when none are named.
pub(super) fn accept_language(location: Option<&Location>) -> Option<String> {
    let location = location?;
    let languages = languages(&location.country, &location.languages);
    if languages.is_empty() {
        return None;
    }
    let weigh = |(i, tag): (usize, &String)| {
        if i == 0 { tag.clone() } else { format!("{tag};q=0.{}", 9_usize.saturating_sub(i - 1).max(1)) }
    };
    Some(languages.iter().take(10).enumerate().map(weigh).collect::<Vec<_>>().join(","))
}

/// The page in a browser of its own, with what the profile holds. Fails where no such browser was to be had.
async fn on_profile(
    context: &WorkerContext,
    page: &Claimed,
    spec: &JobSpec,
    plan: &mut Plan,
    profile: &ProfileUse,
    deadline: Instant,
) -> Result<Result<Rendered, RenderError>, PageError> {
    let Some(keeper) = context.process.keeper.get() else {
        return Err(PageError::again(
            ErrorCode::AllEnginesFailed,
            "No browser for profiles is available at the moment.",
        ));
    };
    let busy = "Another session is currently writing to this profile. Try again when it has ended, or set saveChanges \
        to false.";
    let upstream = plan.way.chosen.as_ref().map(|chosen| chosen.place);
    let proxy = upstream.and_then(|place| context.process.upstreams.get(place)).map(|[open, _]| open);
    let exit = Exit { egress: proxy.unwrap_or(&context.process.egress).addr(), upstream };
    // The whole browser goes that way, and not this page alone.
    let request = RenderRequest { upstream: None, ..render_request(plan, &spec.options, deadline) };
    match sessions::page::render(keeper, exit, page, profile, request).await {
        Ok((rendered, is_kept)) => {
            if !is_kept {
                plan.warnings.push("The profile could not be saved; its last version stays.".to_owned());
            }
            Ok(Ok(rendered))
        }
        Err(PageTrouble::InLine) => Err(PageError { is_early: true, ..PageError::last(ErrorCode::ProfileBusy, busy) }),
        Err(PageTrouble::Busy) if spec.kind == JobKind::Scrape => Err(PageError::last(ErrorCode::ProfileBusy, busy)),
        Err(PageTrouble::Busy) => Err(PageError::again(ErrorCode::ProfileBusy, busy)),
        Err(PageTrouble::Render(error)) => Ok(Err(error)),
    }
}

async fn render(
    context: &WorkerContext,
    plan: &Plan,
    options: &ScrapeOptions,
    deadline: Instant,
) -> Result<Rendered, RenderError> {
    let Some(browsers) = &context.process.browsers else {
        return Err(RenderError::Unavailable("this worker has no browsers (WEIR_PAGE_BROWSERS=0)".to_owned()));
    };
    browsers.render(render_request(plan, options, deadline)).await
}

fn render_request(plan: &Plan, options: &ScrapeOptions, deadline: Instant) -> RenderRequest {
    let screenshot = options.screenshot().map(|shot| ScreenshotRequest {
        full_page: shot.full_page,
        quality: shot.quality,
        viewport: shot.viewport.map(|v| (v.width, v.height)),
    });
    RenderRequest {
        url: plan.url.clone(),
        headers: plan.caller.clone(),
        wait_for: Duration::from_millis(u64::from(options.wait_for)),
        mobile: options.mobile,
        certificates: options.certificates(),
        block_ads: options.block_ads,
        location: options.location.as_ref().map(|l| (l.country.clone(), l.languages.clone())),
        screenshot,
        actions: options.actions.clone(),
        want_raw: options.wants(&Format::RawHtml),
        want_branding: options.wants(&Format::Branding),
        deadline,
        in_profile: false,
        upstream: plan.way.chosen.as_ref().map(|chosen| chosen.place),
    }
}

/// What came of a fetched answer.
enum Made {
    Page { stage: Stage, is_blocked: bool },
    NeedsBrowser,
    Refresh(Url),
}

impl Made {
    /// A file, which nobody gives to readers who are refused.
    fn file(stage: Stage) -> Self {
        Self::Page { stage, is_blocked: false }
    }
}

async fn from_fetched(
    context: &Arc<WorkerContext>,
    page: &Claimed,
    spec: &Arc<JobSpec>,
    plan: &Plan,
    fetched: Fetched,
    deadline: Instant,
) -> Result<Made, PageError> {
    let media = fetched.media_type().unwrap_or_default();
    let kind = sniff(&media, &fetched.body);
    if kind == Kind::FalsePdf {
        let text = "The site answered with a web page where a PDF was announced, most likely to keep robots out.";
        return Err(PageError::last(ErrorCode::PdfAntibot, text));
    }
    let mut answer = Answer {
        url: fetched.url.clone(),
        status: fetched.status,
        content_type: fetched.content_type.clone(),
        timezone: None,
        screenshot: None,
        branding: None,
        actions: None,
        warnings: plan.warnings_at(&fetched.url),
        proxy_used: plan.way.proxy_used,
        is_trusted: plan.is_trusted,
    };
    if fetched.incomplete {
        answer.warnings.push("The page's compressed body was cut off; this is the readable part.".to_owned());
    }
    let (may_refresh, incomplete) = (plan.url.clone(), fetched.incomplete);
    let work = Work { context: Arc::clone(context), page: page.clone(), spec: Arc::clone(spec) };
    if kind == Kind::Pdf {
        return pdf::document(work, answer, fetched.body, deadline).await.map(Made::file);
    }
    if kind == Kind::Other && picture::is_one(&work, &media) {
        return picture::document(work, answer, fetched.body, deadline).await.map(Made::file);
    }
    if kind == Kind::Other && media::is_asked_for(&spec.options) {
        return blocking(move || media::file(work, answer, &media).map(Made::file)).await;
    }
    if kind == Kind::Other {
        return Err(unsupported(&media));
    }
    let has_browser = context.process.browsers.is_some();
    blocking(move || {
        let text = extract::charset::decode(&fetched.body, fetched.http_charset.as_deref());
        if kind != Kind::Html {
            let is_blocked = is_refusal(answer.status, "", 0);
            return files::document(work, answer, &text, kind).map(|stage| Made::Page { stage, is_blocked });
        }
        let parsed = extract::parse(&PageInput { url: &answer.url, html: &text, rendered: false });
        let signals = parsed.signals();
        if let Some((seconds, target)) = signals.meta_refresh.clone()
            && seconds <= REFRESH_SECONDS
            && target != answer.url
            && target != may_refresh
            && matches!(target.scheme(), "http" | "https")
        {
            return Ok(Made::Refresh(target));
        }
        if incomplete && signals.text_chars == 0 {
            return Err(PageError::last(ErrorCode::Site, "The page's compressed body was cut off before its text."));
        }
        if signals.looks_script_rendered {
            return Ok(Made::NeedsBrowser);
        }
        let is_blocked = is_refusal(answer.status, &text, signals.text_chars);
        let extracted = parsed.extract(&extract_options(&work.spec));
        // A player may come with the page's scripts.
        if has_browser && media::is_missing(&work.spec.options, &extracted.media) {
            return Ok(Made::NeedsBrowser);
        }
        work.document(answer, extracted, &text).map(|stage| Made::Page { stage, is_blocked })
    })
    .await
}

async fn from_rendered(
    context: &Arc<WorkerContext>,
    page: &Claimed,
    spec: &Arc<JobSpec>,
    plan: &Plan,
    rendered: Rendered,
) -> Result<Loaded, PageError> {
    let screenshot = rendered.screenshot.map(|shot| format!("data:{};base64,{}", shot.mime, shot.data));
    let warnings = plan.warnings_at(&rendered.url);
    let answer = Answer {
        url: rendered.url,
        status: rendered.status,
        content_type: rendered.content_type,
        timezone: rendered.timezone,
        screenshot,
        branding: rendered.branding,
        actions: rendered.actions,
        warnings,
        proxy_used: plan.way.proxy_used,
        is_trusted: plan.is_trusted && rendered.is_trusted,
    };
    let (html, raw) = (rendered.html, rendered.raw_html);
    let work = Work { context: Arc::clone(context), page: page.clone(), spec: Arc::clone(spec) };
    blocking(move || {
        let input = PageInput { url: &answer.url, html: &html, rendered: true };
        let extracted = extract::parse(&input).extract(&extract_options(&work.spec));
        let is_blocked = is_refusal(answer.status, &html, extracted.signals.text_chars);
        let stage = work.document(answer, extracted, raw.as_deref().unwrap_or(&html))?;
        Ok(Loaded { stage, engine: Engine::Browser, is_blocked })
    })
    .await
}

/// Pieces of CPU work at once: more threads would not be faster, and each keeps memory of its own.
static CORES: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(2 * std::thread::available_parallelism().map_or(2, std::num::NonZero::get)));

/// CPU work off the async threads.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PageError> + Send + 'static,
) -> Result<T, PageError> {
    // The semaphore is never closed.
    let _turn = CORES.acquire().await;
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "extraction panicked");
        Err(PageError::last(ErrorCode::Unknown, "Internal error while reading the page."))
    })
}

fn extract_options(spec: &JobSpec) -> ExtractOptions {
    let options = &spec.options;
    ExtractOptions {
        markdown: options.wants(&Format::Markdown) || options.needs_text(),
        html: options.wants(&Format::Html),
        links: options.wants(&Format::Links) || spec.crawl.is_some(),
        images: options.wants(&Format::Images),
        attributes: options.attributes().unwrap_or_default().iter().map(attribute_selector).collect(),
        media: media::is_asked_for(options),
        structured: options.needs_text(),
        only_main_content: options.only_main_content,
        include_tags: options.include_tags.clone(),
        exclude_tags: options.exclude_tags.clone(),
        remove_base64_images: options.remove_base64_images,
        block_ads: options.block_ads,
    }
}

/// A wanted attribute in the extraction's own terms.
fn attribute_selector(wanted: &AttributeSelector) -> extract::AttributeSelector {
    extract::AttributeSelector { selector: wanted.selector.clone(), attribute: wanted.attribute.clone() }
}

/// The document's `attributes`: what was wanted with the values found for each.
pub(super) fn attribute_values(wanted: &[AttributeSelector], found: Vec<Vec<String>>) -> Vec<AttributeValues> {
    let pair = |(wanted, values): (&AttributeSelector, Vec<String>)| AttributeValues {
        selector: wanted.selector.clone(),
        attribute: wanted.attribute.clone(),
        values,
    };
    wanted.iter().zip(found).map(pair).collect()
}

/// What a body is, by its type and its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Html,
    /// Plain text, and what is written in it.
    Text,
    Json,
    /// Rows with delimiters.
    Table,
    /// XML, feeds among it.
    Xml,
    Pdf,
    /// HTML that is announced as a PDF.
    FalsePdf,
    Other,
}

pub(super) fn sniff(media: &str, body: &[u8]) -> Kind {
    let start = &body[..body.len().min(512)];
    let text_start = String::from_utf8_lossy(start).trim_start().to_ascii_lowercase();
    if start.starts_with(b"%PDF-") {
        return Kind::Pdf;
    }
    let is_html = text_start.starts_with("<!doctype html") || text_start.starts_with("<html");
    let holds_pdf = || memchr::memmem::find(&body[..body.len().min(pdf::WITHIN)], b"%PDF-").is_some();
    match media {
        "application/pdf" | "application/x-pdf" if is_html => Kind::FalsePdf,
        "application/pdf" | "application/x-pdf" => Kind::Pdf,
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "application/json" | "text/json" => Kind::Json,
        m if m.ends_with("+json") => Kind::Json,
        "text/csv" | "application/csv" | "text/tab-separated-values" => Kind::Table,
        "text/xml" | "application/xml" if is_html => Kind::Html,
        "text/xml" | "application/xml" => Kind::Xml,
        m if m.ends_with("+xml") && m != "image/svg+xml" => Kind::Xml,
        m if m.starts_with("text/") => Kind::Text,
        "application/javascript" | "application/yaml" | "application/x-ndjson" => Kind::Text,
        "" | "application/octet-stream" | "binary/octet-stream" | "application/force-download" => {
            if is_html {
                Kind::Html
            } else if holds_pdf() {
                Kind::Pdf
            } else if media.is_empty() && !start.contains(&0) && std::str::from_utf8(start).is_ok() {
                if text_start.starts_with('<') { Kind::Html } else { Kind::Text }
            } else {
                Kind::Other
            }
        }
        _ => Kind::Other,
    }
}

fn unsupported(media: &str) -> PageError {
    let what = if media.is_empty() { "this kind of file".to_owned() } else { format!("files of type {media}") };
    PageError::last(ErrorCode::UnsupportedFile, format!("Weir cannot turn {what} into a document yet."))
}

/// What the making of a document needs on its thread.
struct Work {
    context: Arc<WorkerContext>,
    page: Claimed,
    spec: Arc<JobSpec>,
}

impl Work {
    fn document(self, mut answer: Answer, extracted: extract::Extracted, raw: &str) -> Result<Stage, PageError> {
        let offers = media::taken(&self.spec.options, extracted.media)?;
        answer.warnings.extend(extracted.warning);
        let wants_raw = self.spec.options.wants(&Format::RawHtml);
        let wants_links = self.spec.options.wants(&Format::Links);
        let harvest = self.spec.crawl.is_some().then(|| Harvest {
            url: answer.url.clone(),
            canonical: extracted.signals.canonical,
            links: extracted.links.clone().unwrap_or_default(),
        });
        let document = Document {
            markdown: extracted.markdown,
            html: extracted.html,
            raw_html: wants_raw.then(|| raw.to_owned()),
            links: extracted.links.filter(|_| wants_links),
            images: extracted.images,
            attributes: self.spec.options.attributes().map(|wanted| attribute_values(wanted, extracted.attributes)),
            audio: offers.audio,
            video: offers.video,
            metadata: extracted.metadata,
            ..Document::default()
        };
        let draft = Draft { structured: extracted.structured, ..Draft::new(answer, document, &self.spec.options) };
        self.advance(draft, harvest)
    }

    /// Where a file of a crawl leads; `None` when the page belongs to none.
    fn harvest(&self, answer: &Answer, links: Vec<String>) -> Option<Harvest> {
        self.spec.crawl.is_some().then(|| Harvest { url: answer.url.clone(), canonical: None, links })
    }

    /// Whether a file's text is to be made markdown: it is asked for, or something is read out of it.
    fn wants_markdown(&self) -> bool {
        self.spec.options.wants(&Format::Markdown) || self.spec.options.needs_text()
    }

    /// The next step of a page that has its document.
    fn advance(self, mut draft: Draft, harvest: Option<Harvest>) -> Result<Stage, PageError> {
        draft.harvest = harvest;
        let media = [&draft.document.audio, &draft.document.video];
        draft.bill.media = media.into_iter().flatten().count() as i64;
        draft.advance(&self.context, &self.page, &self.spec)
    }
}

#[cfg(test)]
mod tests {
    use weir_shared::ids::{JobId, PageId, TeamId};

    use super::*;

    #[test]
    fn a_body_is_told_by_type_then_by_its_first_bytes() {
        for (media, body, kind) in [
            ("text/html", "x", Kind::Html),
            ("application/json", "{}", Kind::Json),
            ("application/ld+json", "{}", Kind::Json),
            ("application/rss+xml", "<rss>", Kind::Xml),
            ("text/csv", "a,b", Kind::Table),
            ("text/xml", "<html>", Kind::Html),
            ("text/yaml", "a: b", Kind::Text),
            ("image/svg+xml", "<svg>", Kind::Other),
            ("text/html", "%PDF-1.4", Kind::Pdf),
            ("application/octet-stream", "\r\n%PDF-1.4", Kind::Pdf),
            ("application/pdf", "<!DOCTYPE html><title>", Kind::FalsePdf),
            ("application/pdf", "junk", Kind::Pdf),
            ("", "<!DOCTYPE html>", Kind::Html),
            ("", "plain", Kind::Text),
            ("application/octet-stream", "\0\0", Kind::Other),
            ("application/pdf", "%PDF-", Kind::Pdf),
        ] {
            assert_eq!(sniff(media, body.as_bytes()), kind, "{media} {body}");
        }
    }

    #[test]
    fn a_page_claimed_late_has_its_whole_timeout() {
        let spec = |kind| {
            let options = ScrapeOptions { timeout: 9_000, ..ScrapeOptions::default() };
            JobSpec { kind, key: None, options, webhook: None, crawl: None }
        };
        let page = |waited: i64, tries: i64| Claimed {
            id: PageId::new(),
            job_id: JobId::new(),
            team_id: TeamId::new(),
            idx: 0,
            url: String::new(),
            depth: 0,
            epoch: 1,
            claims: tries + 1,
            tries,
            queued_at: Timestamp(1_000),
            started_at: Timestamp(1_000 + waited),
            owner: None,
            limited: false,
            handed: false,
        };
        let started = Instant::now();
        let left = |page: &Claimed, kind| (deadline(page, &spec(kind), started) - started).as_millis();
        for kind in [JobKind::Scrape, JobKind::Batch, JobKind::Map] {
            assert_eq!(left(&page(0, 0), kind), 9_000);
            assert_eq!(left(&page(5_900, 0), kind), 9_000, "{kind:?}");
        }
        assert_eq!(left(&page(2_000, 1), JobKind::Scrape), 7_000, "the time of the tries before is gone");
        assert_eq!(left(&page(8_000, 2), JobKind::Scrape), 3_000);
        assert_eq!(left(&page(8_000, 2), JobKind::Batch), 9_000);
        assert_eq!(left(&Claimed { limited: true, ..page(8_000, 1) }, JobKind::Scrape), 9_000);
    }

    #[test]
    fn languages_fall_in_weight() {
        let location = Location {
            country: "DE".to_owned(),
            languages: vec!["de-DE".to_owned(), "de".to_owned(), "en".to_owned()],
        };
        assert_eq!(accept_language(Some(&location)).as_deref(), Some("de-DE,de;q=0.9,en;q=0.8"));
        let country = Location { country: "FR".to_owned(), languages: Vec::new() };
        assert_eq!(accept_language(Some(&country)).as_deref(), Some("fr-FR,fr;q=0.9"));
    }
}
