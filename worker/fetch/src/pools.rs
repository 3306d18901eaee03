//! The operator's proxies (`WEIR_PROXY_BASIC`, `WEIR_PROXY_ENHANCED`): which one a page goes through, and a rest for those
//! that fail.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use weir_shared::clock;
use weir_shared::config::{CountryProxy, NetSettings};

use super::upstream::ProxyUrl;

/// Rest after the first failure; doubles with each further one up to [`LONGEST`].
const REST: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(600);
/// How long a proxy may take to take a connection.
const ANSWER: Duration = Duration::from_secs(5);
/// Where a page appears from when nobody says (spec 2.5).
const COUNTRY: &str = "US";

/// What a proxy is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyKind {
    Basic,
    /// For sites that refuse the others.
    Enhanced,
}

/// A proxy that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub proxy: ProxyUrl,
    /// Its place among all proxies.
    pub place: usize,
    /// A country was asked for and could not be had.
    pub is_elsewhere: bool,
}

struct Entry {
    kind: ProxyKind,
    /// Upper case; `None`: any.
    country: Option<String>,
    proxy: ProxyUrl,
    rest: Mutex<Rest>,
}

#[derive(Debug, Default)]
struct Rest {
    /// Failures in a row.
    failures: u32,
    until: Option<Instant>,
}

impl Entry {
    fn rests_until(&self, now: Instant) -> Option<Instant> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner).until.filter(|until| *until > now)
    }
}

/// All of the operator's proxies, by their place.
pub struct ProxyPools {
    entries: Vec<Entry>,
}

impl ProxyPools {
    /// Proxies of one kind that are tried for a page, a session or a file of a site.
    pub const TRIES: usize = 3;

    /// Takes in what is configured.
    pub fn new(net: &NetSettings) -> Self {
        let all = |kind, list: &[CountryProxy]| -> Vec<Entry> {
            let entry = |configured: &CountryProxy| match configured.url.as_str().parse() {
                Ok(proxy) => Some(Entry { kind, country: configured.country.clone(), proxy, rest: Mutex::default() }),
                Err(error) => {
                    tracing::error!(%error, host = configured.url.host_str(), "a configured proxy is left out");
                    None
                }
            };
            list.iter().filter_map(entry).collect()
        };
        let mut entries = all(ProxyKind::Basic, &net.proxy_basic);
        entries.extend(all(ProxyKind::Enhanced, &net.proxy_enhanced));
        Self { entries }
    }

    /// Whether any of this kind is configured.
    pub fn has(&self, kind: ProxyKind) -> bool {
        self.entries.iter().any(|entry| entry.kind == kind)
    }

    /// The proxies in the order of their places.
    pub fn proxies(&self) -> impl Iterator<Item = &ProxyUrl> {
        self.entries.iter().map(|entry| &entry.proxy)
    }

    /// A proxy of this kind: of the wanted country, else one for any country, else another one; of those, one that does
    /// not rest and is not among `avoid`. When all rest, the one that rests shortest. `None`: none is left.
    pub fn choose(&self, kind: ProxyKind, country: Option<&str>, avoid: &[usize]) -> Option<Chosen> {
        let now = clock::instant();
        let wanted = country.unwrap_or(COUNTRY);
        let rank = |entry: &Entry| match entry.country.as_deref() {
            Some(own) if own == wanted => 0,
            None => 1,
            Some(_) => 2,
        };
        let of_kind = self.entries.iter().enumerate().filter(|(place, e)| e.kind == kind && !avoid.contains(place));
        let found: Vec<(usize, &Entry)> = of_kind.collect();
        let fresh = found.iter().filter(|(_, entry)| entry.rests_until(now).is_none());
        let best = fresh.clone().map(|(_, entry)| rank(entry)).min();
        let (place, entry) = match best {
            Some(best) => {
                let equal: Vec<_> = fresh.filter(|(_, entry)| rank(entry) == best).collect();
                *equal[weir_shared::random::index(equal.len())]
            }
            None => *found.iter().min_by_key(|(_, entry)| entry.rests_until(now))?,
        };
        let is_elsewhere = country.is_some() && rank(entry) != 0;
        Some(Chosen { proxy: entry.proxy.clone(), place, is_elsewhere })
    }

    /// A request got nowhere through a proxy, which rests if it takes no connections. If it does, the site may hang or
    /// hang up, and whoever names such a site is to take no proxy from others.
    pub async fn suspect(&self, chosen: &Chosen) {
        if !chosen.proxy.answers(ANSWER).await {
            self.failed(chosen.place);
        }
    }

    /// A proxy takes no connections: it rests.
    pub fn failed(&self, place: usize) {
        let Some(entry) = self.entries.get(place) else { return };
        let mut rest = entry.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::instant();
        // Pages that met the same failure at once count as one.
        if rest.until.is_some_and(|until| until > now) {
            return;
        }
        let pause = REST.saturating_mul(2_u32.saturating_pow(rest.failures.min(10))).min(LONGEST);
        rest.failures += 1;
        rest.until = Some(now + pause);
        tracing::warn!(proxy = %entry.proxy, rest_s = pause.as_secs(), "a proxy fails and rests");
    }

    /// A proxy has done its work.
    pub fn worked(&self, place: usize) {
        if let Some(entry) = self.entries.get(place) {
            *entry.rest.lock().unwrap_or_else(PoisonError::into_inner) = Rest::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pools(basic: &[&str], enhanced: &[&str]) -> ProxyPools {
        let list = |texts: &[&str]| -> Vec<CountryProxy> {
            let one = |text: &&str| {
                let (country, url) = text.split_once('=').map_or((None, *text), |(c, url)| (Some(c.to_owned()), url));
                CountryProxy { country, url: url.parse().expect("a URL") }
            };
            texts.iter().map(one).collect()
        };
        let (proxy_basic, proxy_enhanced) = (list(basic), list(enhanced));
        let net = NetSettings {
            allow_nets: Vec::new(),
            allow_hosts: Default::default(),
            allow_ports: Vec::new(),
            proxy_basic,
            proxy_enhanced,
            ad_lists: Vec::new(),
        };
        ProxyPools::new(&net)
    }

    fn told(pools: &ProxyPools, country: Option<&str>, avoid: &[usize]) -> Option<(usize, bool)> {
        pools.choose(ProxyKind::Basic, country, avoid).map(|chosen| (chosen.place, chosen.is_elsewhere))
    }

    #[test]
    fn the_wanted_country_comes_first_then_any_then_another() {
        let pools = pools(&["DE=http://de.test", "http://any.test", "US=http://us.test"], &["http://e.test"]);
        assert_eq!(told(&pools, Some("DE"), &[]), Some((0, false)));
        assert_eq!(told(&pools, Some("FR"), &[]), Some((1, true)));
        assert_eq!(told(&pools, None, &[]), Some((2, false)), "the default country");
        assert_eq!(told(&pools, Some("DE"), &[0, 1]), Some((2, true)));
        assert_eq!(told(&pools, None, &[0, 1, 2]), None);
        assert_eq!(pools.choose(ProxyKind::Enhanced, None, &[]).map(|c| c.place), Some(3));
        assert!(pools.has(ProxyKind::Enhanced) && !self::pools(&["http://a.test"], &[]).has(ProxyKind::Enhanced));
        assert_eq!(pools.proxies().count(), 4);
    }

    #[test]
    fn a_proxy_that_fails_rests_until_it_works_or_all_do() {
        let pools = pools(&["http://a.test", "http://b.test"], &[]);
        pools.failed(0);
        for _ in 0..20 {
            assert_eq!(told(&pools, None, &[]), Some((1, false)));
        }
        pools.failed(1);
        assert_eq!(told(&pools, None, &[]), Some((0, false)), "the one that rests shortest");
        pools.worked(1);
        assert_eq!(told(&pools, None, &[]), Some((1, false)));
        pools.failed(9);
    }
}
