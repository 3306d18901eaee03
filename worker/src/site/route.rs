//! How a site is asked for its own files.

use std::sync::Arc;

use tokio::time::Instant;
use url::Url;
use weir_shared::domain::scrape::Certificates;
use weir_shared::domain::site_rules::SiteRules;

use crate::fetch::{CallerHeaders, Chosen, FetchError, FetchRequest, ProxyKind, ProxyPools};

/// How a site's own files are asked for. No caller's headers go with them: what is read is shared between callers.
#[derive(Clone, Default)]
pub struct SiteRoute {
    /// `Accept-Language`; absent: the fetcher's own.
    pub accept_language: Option<String>,
    /// The operator's proxies; absent: there are none.
    pub proxies: Option<Arc<ProxyPools>>,
    /// Where it is asked from; absent: from anywhere.
    pub country: Option<String>,
    /// Sites that are not asked for anything.
    pub sites: SiteRules,
}

impl SiteRoute {
    /// The way to ask for one file.
    pub fn way(&self) -> Way<'_> {
        let mut way = Way { route: self, chosen: None, failed: Vec::new() };
        way.chosen = way.choose();
        way
    }
}

/// The way of one file: through a proxy that does its work, where the operator has any.
pub struct Way<'a> {
    route: &'a SiteRoute,
    chosen: Option<Chosen>,
    /// Places of those that have not done their work.
    failed: Vec<usize>,
}

impl Way<'_> {
    fn choose(&self) -> Option<Chosen> {
        self.route.proxies.as_ref()?.choose(ProxyKind::Basic, self.route.country.as_deref(), &self.failed)
    }

    /// The request for the file. A certificate that does not verify is no matter where nothing secret goes along.
    pub fn request<'r>(&'r self, url: &'r Url, headers: &'r CallerHeaders, deadline: Instant) -> FetchRequest<'r> {
        FetchRequest {
            url,
            headers,
            accept_language: self.route.accept_language.clone(),
            mobile: false,
            certificates: Certificates::AnyWithoutSecrets,
            deadline,
            proxy: self.chosen.as_ref().map(|chosen| &chosen.proxy),
            sites: &self.route.sites,
        }
    }

    /// The place of its proxy among the operator's, for a browser; `None`: directly.
    pub fn place(&self) -> Option<usize> {
        self.chosen.as_ref().map(|chosen| chosen.place)
    }

    /// Whether it is not of the country that was asked for.
    pub fn is_elsewhere(&self) -> bool {
        self.chosen.as_ref().is_some_and(|chosen| chosen.is_elsewhere)
    }

    /// Notes how the proxy has done. `true`: it did not do its work, and the file is to be asked for through the next one.
    pub async fn leads_on<T>(&mut self, outcome: &Result<T, FetchError>) -> bool {
        let (Some(proxies), Some(chosen)) = (&self.route.proxies, &self.chosen) else { return false };
        if !matches!(outcome, Err(FetchError::Proxy { .. })) {
            proxies.worked(chosen.place);
            return false;
        }
        proxies.suspect(chosen).await;
        self.failed.push(chosen.place);
        let next = self.choose().filter(|_| self.failed.len() < ProxyPools::TRIES);
        let is_next = next.is_some();
        self.chosen = next.or(self.chosen.take());
        is_next
    }
}
