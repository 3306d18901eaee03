//! Through which proxies a page is asked for: one of the kind that the options want, another one where it fails, and with
//! `proxy: auto` an enhanced one where the site refuses (SPEC 4.7).

use std::sync::Arc;

use tokio::time::Instant;
use weir_shared::domain::scrape::{ProxyMode, ScrapeOptions};
use weir_shared::store::jobs::JobSpec;
use weir_shared::store::page::rows::Claimed;

use super::complete::Stage;
use super::scrape_page::{Engine, PageError, load, plan};
use crate::context::WorkerContext;
use crate::fetch::{Chosen, ProxyKind, ProxyUrl};

/// Proxies of one kind that are tried for a page.
const TRIES: usize = 3;

/// What came of asking for a page.
pub(super) struct Loaded {
    pub stage: Stage,
    pub engine: Engine,
    /// The site seems to refuse readers like us.
    pub is_blocked: bool,
}

/// A page's way out.
pub(super) struct Way {
    /// `None`: directly.
    pub chosen: Option<Chosen>,
    /// As clients know it: `basic` or `stealth`.
    pub proxy_used: &'static str,
    pub warning: Option<&'static str>,
}

/// The proxy for what belongs to a site and not to a page.
pub(super) fn basic(context: &WorkerContext, options: &ScrapeOptions) -> Option<ProxyUrl> {
    let country = options.location.as_ref().map(|location| location.country.as_str());
    context.process.proxies.choose(ProxyKind::Basic, country, &[]).map(|chosen| chosen.proxy)
}

/// Asks for the page by the ways that its options allow.
pub(super) async fn load_page(
    context: &Arc<WorkerContext>,
    page: &Claimed,
    spec: &Arc<JobSpec>,
    deadline: Instant,
) -> Result<Loaded, PageError> {
    let has_enhanced = context.process.proxies.has(ProxyKind::Enhanced);
    let mode = spec.options.proxy;
    let kind = if mode == ProxyMode::Enhanced { ProxyKind::Enhanced } else { ProxyKind::Basic };
    let first = load_by(context, page, spec, kind, deadline).await;
    let is_blocked = match &first {
        Ok(loaded) => loaded.is_blocked,
        Err(error) => error.may_be_refusal(),
    };
    if mode != ProxyMode::Auto || !is_blocked || !has_enhanced {
        return first;
    }
    match (load_by(context, page, spec, ProxyKind::Enhanced, deadline).await, first) {
        // What the first way has brought is better than nothing.
        (Err(_), Ok(first)) => Ok(first),
        (second, _) => second,
    }
}

/// The same by proxies of one kind.
async fn load_by(
    context: &Arc<WorkerContext>,
    page: &Claimed,
    spec: &Arc<JobSpec>,
    kind: ProxyKind,
    deadline: Instant,
) -> Result<Loaded, PageError> {
    let proxies = &context.process.proxies;
    let mut failed = Vec::new();
    loop {
        let way = way_of(context, &spec.options, kind, &failed);
        let place = way.chosen.as_ref().map(|chosen| chosen.place);
        let outcome = load(context, page, spec, plan(page, spec, way)?, deadline).await;
        let Some(place) = place else { return outcome };
        if !outcome.as_ref().is_err_and(PageError::is_of_proxy) {
            proxies.worked(place);
            return outcome;
        }
        proxies.failed(place);
        failed.push(place);
        let is_last = way_of(context, &spec.options, kind, &failed).chosen.is_none();
        if is_last || failed.len() >= TRIES || Instant::now() >= deadline {
            return outcome;
        }
    }
}

fn way_of(context: &WorkerContext, options: &ScrapeOptions, kind: ProxyKind, avoid: &[usize]) -> Way {
    let proxies = &context.process.proxies;
    let country = options.location.as_ref().map(|location| location.country.as_str());
    let is_enhanced = kind == ProxyKind::Enhanced && proxies.has(kind);
    let chosen = proxies.choose(if is_enhanced { kind } else { ProxyKind::Basic }, country, avoid);
    let warning = if kind == ProxyKind::Enhanced && !is_enhanced {
        Some("No enhanced proxy is configured (WEIR_PROXY_ENHANCED); the page was asked for without one.")
    } else if chosen.as_ref().is_some_and(|chosen| chosen.is_elsewhere) {
        Some("No proxy in the asked country is configured or at hand; another was used.")
    } else {
        None
    };
    Way { chosen, proxy_used: if is_enhanced { "stealth" } else { "basic" }, warning }
}

/// Texts that stand in pages which ask whether their reader is human.
const CHALLENGES: &[&str] = &[
    "_cf_chl_opt",
    "cf-browser-verification",
    "challenge-platform",
    "attention required! | cloudflare",
    "captcha-delivery.com",
    "px-captcha",
    "_incapsula_resource",
    "awswafintegration",
    "verify you are human",
    "are you a robot",
    "unusual traffic",
];
/// Where those are looked for, bytes, and how little such a page says, characters of text.
const LOOK_WITHIN: usize = 64 << 10;
const LITTLE: usize = 1_500;

/// Whether an answer looks like a refusal of readers like us.
pub(super) fn is_refusal(status: u16, html: &str, text_chars: usize) -> bool {
    if matches!(status, 403 | 429) {
        return true;
    }
    if text_chars > LITTLE || !(status == 503 || status == 401 || status < 300) {
        return false;
    }
    let start = html[..html.floor_char_boundary(LOOK_WITHIN)].to_ascii_lowercase();
    CHALLENGES.iter().any(|mark| start.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_by_status_or_by_what_they_ask() {
        for (status, html, chars, expected) in [
            (403, "", 0, true),
            (429, "<p>slow down", 10, true),
            (200, "<script>window._cf_chl_opt={}</script>", 40, true),
            (503, "Are you a ROBOT?", 16, true),
            (200, "Are you a robot? A film.", 4_000, false),
            (200, "<p>Hello", 5, false),
            (404, "g-recaptcha", 11, false),
            (500, "oops", 4, false),
        ] {
            assert_eq!(is_refusal(status, html, chars), expected, "{status} {html}");
        }
    }
}
