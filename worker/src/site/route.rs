//! How a site is asked for its own files.

use weir_shared::domain::site_rules::SiteRules;

use crate::fetch::ProxyUrl;

/// How a site's own files are asked for. No caller's headers go with them: what is read is shared between callers.
#[derive(Debug, Clone, Default)]
pub struct SiteRoute {
    /// `Accept-Language`; absent: the fetcher's own.
    pub accept_language: Option<String>,
    /// Upstream proxy to go through.
    pub proxy: Option<ProxyUrl>,
    /// Its place among the operator's, for a browser.
    pub upstream: Option<usize>,
    /// Sites that are not asked for anything.
    pub sites: SiteRules,
}
