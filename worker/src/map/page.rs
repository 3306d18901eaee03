//! One page of a site, for its links and its title.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use url::Url;
use weir_shared::domain::map::MapOptions;
use weir_shared::domain::scrape::Certificates;
use weir_shared::guests::Urgency;
use weir_shared::ids::TeamId;

use crate::browser::{Acting, RenderRequest};
use crate::context::WorkerContext;
use crate::extract::{self, ExtractOptions, PageInput};
use crate::fetch::{CallerHeaders, FetchError};
use crate::page::cpu::blocking;
use crate::page::kind::{BodyKind, sniff};
use crate::page::xhtml;
use crate::site::SiteRoute;

/// What a page says.
#[derive(Debug, Clone)]
pub struct Visited {
    /// After redirects.
    pub url: Url,
    pub status: u16,
    pub title: Option<Box<str>>,
    pub description: Option<Box<str>>,
    /// As the page says itself.
    pub language: Option<String>,
    pub links: Vec<Url>,
    /// Its content is likely made by scripts.
    pub is_scripted: bool,
}

/// Fetches a page without a browser.
pub async fn visit(
    context: &WorkerContext,
    url: &Url,
    headers: &CallerHeaders,
    route: &SiteRoute,
    team: TeamId,
    deadline: Instant,
) -> Result<Visited, FetchError> {
    let mut way = route.way();
    let fetched = loop {
        let fetched = context.process.fetcher.fetch(way.request(url, headers, deadline)).await;
        if !way.leads_on(&fetched).await {
            break fetched?;
        }
    };
    let kind = sniff(&fetched.media_type().unwrap_or_default(), fetched.url.path(), &fetched.body);
    if kind != BodyKind::Html {
        return Ok(Visited {
            url: fetched.url,
            status: fetched.status,
            title: None,
            description: None,
            language: None,
            links: Vec::new(),
            is_scripted: false,
        });
    }
    let read = blocking((team, Urgency::Direct), move || {
        let text = extract::charset::decode(&fetched.body, fetched.http_charset.as_deref());
        let page_html = xhtml::as_html(&text, xhtml::is_sent_as(fetched.content_type.as_deref()));
        Ok(read(fetched.url, fetched.status, &page_html, false))
    });
    read.await.map_err(|_| FetchError::Internal)
}

/// The same with a browser; `None` when there is none or it fails.
pub async fn render(
    context: &Arc<WorkerContext>,
    url: &Url,
    headers: &CallerHeaders,
    options: &MapOptions,
    route: &SiteRoute,
    team: TeamId,
    deadline: Instant,
) -> Option<Visited> {
    let browsers = context.process.browsers.as_ref()?;
    let request = RenderRequest {
        url: url.clone(),
        headers: headers.clone(),
        wait_for: Duration::ZERO,
        mobile: false,
        certificates: Certificates::AnyWithoutSecrets,
        block_ads: true,
        location: options.location.as_ref().map(|l| (l.country.clone(), l.languages.clone())),
        screenshot: None,
        actions: Vec::new(),
        want_raw: false,
        want_branding: false,
        deadline,
        upstream: route.way().place(),
        in_profile: false,
        sites: route.sites.clone(),
        team: None,
        holder: Some((team, Urgency::Direct)),
        acting: Acting::default(),
    };
    let rendered = match browsers.render(request).await {
        Ok(rendered) => rendered,
        Err(error) => {
            tracing::debug!(code = error.code().code().unwrap_or(""), "the page of a map could not be rendered");
            return None;
        }
    };
    blocking((team, Urgency::Direct), move || Ok(read(rendered.url, rendered.status, &rendered.html, true))).await.ok()
}

fn read(url: Url, status: u16, html: &str, rendered: bool) -> Visited {
    let page = extract::parse(&PageInput { url: &url, html, rendered });
    let extracted = page.extract(&ExtractOptions { links: true, ..ExtractOptions::default() });
    let meta = |name: &str| match extracted.metadata.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(list)) => list.iter().find_map(|value| value.as_str().map(str::to_owned)),
        _ => None,
    };
    let links = extracted.links.unwrap_or_default();
    Visited {
        status,
        title: meta("title").map(String::into_boxed_str),
        description: meta("description").map(String::into_boxed_str),
        language: meta("language"),
        links: links.iter().filter_map(|link| Url::parse(link).ok()).collect(),
        is_scripted: !rendered && extracted.signals.looks_script_rendered,
        url,
    }
}
