//! Puts the address guard between reqwest and DNS: a client that resolves through here can only
//! connect to addresses that were judged. Address literals never come here; whoever sends a request
//! checks those first with [`AddressGuard::check_url`].

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use weir_shared::guard::AddressGuard;
use weir_shared::lookups;

/// Resolver of the clients that connect to targets themselves: pages here, receivers of webhooks.
pub(super) struct GuardedResolver(pub AddressGuard);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        Box::pin(async move {
            let addresses = guard.resolve(name.as_str(), 0).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Resolver of clients behind an upstream proxy. The proxy's own host is the operator's choice and
/// may be private; every other name is a target and is judged.
pub(super) struct ProxiedResolver {
    pub guard: AddressGuard,
    /// Lower case, without brackets.
    pub proxy_host: String,
}

impl Resolve for ProxiedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.guard.clone();
        let is_proxy = name.as_str().eq_ignore_ascii_case(&self.proxy_host);
        Box::pin(async move {
            let addresses: Vec<_> = if is_proxy {
                let found = lookups::addresses(name.as_str()).await?;
                found.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect()
            } else {
                guard.resolve(name.as_str(), 0).await?
            };
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
