//! How a session goes out and appears: as its caller has asked, or as the scrape did that it continues. By the rules that
//! pages have.
//!
//! The route is chosen once, before the browser has one at all: a session keeps its proxy for as long as it lives, and
//! without one that can be reached it does not open.

use std::time::Duration;

use weir_shared::domain::location::Location;
use weir_shared::domain::scrape::ProxyMode;
use weir_shared::domain::site_rules::RefusedHosts;
use weir_shared::store::sessions::SessionRow;

use super::continuation::Scrape;
use super::resources::{OpenError, SessionResources};
use crate::fetch::{ProxyKind, ProxyPools};
use crate::page::request::ProxyRoute;
use crate::sandbox::Exit;

/// How long a proxy may take to accept a connection.
const ANSWER: Duration = Duration::from_secs(5);

/// What is wanted of a session.
pub(super) struct Wanted {
    pub location: Option<Location>,
    pub kind: ProxyKind,
    pub refuses_ads: bool,
    /// The scrape that it continues.
    pub scrape: Option<Scrape>,
}

impl Wanted {
    /// Of a row in state `opening`.
    pub async fn of(resources: &SessionResources, row: &SessionRow) -> Result<Self, OpenError> {
        let Some(page) = row.page_id else {
            let (location, refuses_ads) = (row.location.clone(), row.block_ads);
            return Ok(Self { location, kind: ProxyKind::Basic, refuses_ads, scrape: None });
        };
        let scrape = Scrape::load(resources, page).await?;
        let options = &scrape.kept.options;
        let kind = match options.proxy {
            ProxyMode::Enhanced => ProxyKind::Enhanced,
            // The site has refused the others.
            ProxyMode::Auto if scrape.kept.is_enhanced => ProxyKind::Enhanced,
            ProxyMode::Auto | ProxyMode::Basic => ProxyKind::Basic,
        };
        let is_free_of_ads = [&scrape.url, &scrape.end].into_iter().all(|url| resources.ads.are_refused_to(url));
        let (location, refuses_ads) = (options.location.clone(), options.block_ads && is_free_of_ads);
        Ok(Self { location, kind, refuses_ads, scrape: Some(scrape) })
    }
}

/// How a session goes out.
pub(super) struct SessionRoute {
    pub proxy: ProxyRoute,
    pub exit: Exit,
    /// Sites that the scrape was kept from.
    pub refused: Option<RefusedHosts>,
}

impl SessionRoute {
    /// A route as it is wanted, whose proxy takes connections.
    ///
    /// # Errors
    /// When there are proxies to go through and none of them does.
    pub async fn choose(resources: &SessionResources, wanted: &Wanted) -> Result<Self, OpenError> {
        let proxies = &resources.proxies;
        let refused = wanted.scrape.as_ref().and_then(|scrape| scrape.kept.options.sites.refused());
        let mut failed = Vec::new();
        loop {
            let route = ProxyRoute::choose(proxies, wanted.location.as_ref(), wanted.kind, &failed);
            let exit = Exit { upstream: route.place(), refuses_ads: wanted.refuses_ads };
            let Some(chosen) = &route.chosen else {
                return if failed.is_empty() {
                    Ok(Self { proxy: route, exit, refused })
                } else {
                    Err(OpenError::NoProxy)
                };
            };
            if chosen.proxy.answers(ANSWER).await {
                return Ok(Self { proxy: route, exit, refused });
            }
            proxies.failed(chosen.place);
            failed.push(chosen.place);
            if failed.len() >= ProxyPools::TRIES {
                return Err(OpenError::NoProxy);
            }
        }
    }
}
