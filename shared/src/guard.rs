//! Decides which network addresses this service may reach. HTTP fetching, the browsers' egress proxy
//! and webhooks all ask here and nowhere else.
//!
//! The rule is about **addresses**, never about names: a name is resolved, every answer is judged, and
//! the caller connects to the very addresses that were judged. A name that answers differently a
//! second later (DNS rebinding) gains nothing, because nobody resolves it again.
//!
//! Default: only global unicast. Everything else (loopback, private, link-local, carrier NAT, the
//! special-purpose registries of IANA, tunnels that embed an IPv4 address), and of the public addresses
//! those of this very machine and its IPv6 neighbours, needs an explicit range in `WEIR_ALLOW_NETS`.
//! Ports that browsers refuse need `WEIR_ALLOW_PORTS`. Nothing here may log or print a resolved address
//! to a client.

mod machine;
mod ports;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use tokio::time::Instant;
use url::{Host, Url};

use crate::clock;
use crate::lookups;
use machine::Machine;

/// Longest time one name resolution may take.
pub const DNS_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a checked answer is used again. Short, so that a moved site is found soon.
const CACHE_TTL: Duration = Duration::from_secs(30);

/// Most names remembered at once.
const CACHE_MAX: usize = 4096;

/// IPv4 ranges that are never global unicast: IANA special-purpose registry, multicast, reserved, and
/// the one public-looking address that is a cloud's host agent.
const DENIED_V4: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),        // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // carrier NAT
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // loopback
    (Ipv4Addr::new(168, 63, 129, 16), 32), // Azure host agent: public range, answers only inside
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link-local, cloud metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // 6to4 relay
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarking
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved, broadcast
];

/// The one IPv6 block global unicast addresses come from. What lies outside is denied without being
/// listed: `::/8` with loopback and NAT64, discard `100::/64`, SRv6 `5f00::/16`, ULA, link-local,
/// site-local, multicast.
const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Ranges inside [`GLOBAL_V6`] that are not global unicast, or that carry an IPv4 address to a tunnel.
const DENIED_V6: &[(Ipv6Addr, u8)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments: Teredo, benchmarking, ORCHID
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// What is said of an address that is not public, after these words: by whom that could be otherwise.
pub const NOT_REACHED: &str = "nor one that this service reaches. Its operator sets WEIR_ALLOW_NETS";

/// The same of a port that browsers refuse.
pub const PORT_NOT_REACHED: &str = "and so does this service. Its operator sets WEIR_ALLOW_PORTS";

/// Why a target is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// The host is, or resolves to, an address that is not allowed. The text leaves the address out:
    /// what a name means inside this network is nobody's business; `address` is for our own log.
    #[error("{host} is not a public address, {}", NOT_REACHED)]
    Blocked { host: String, address: IpAddr },
    /// No web page is served on this port, and browsers refuse it.
    #[error("port {port} of {host} is one that browsers refuse, {}", PORT_NOT_REACHED)]
    Port { host: String, port: u16 },
    /// The name has no address.
    #[error("{host} cannot be resolved")]
    Dns { host: String },
    /// The name could not be looked up, which may pass.
    #[error("{host} cannot be looked up at the moment")]
    NameServer { host: String },
    /// The resolver did not answer within [`DNS_TIMEOUT`].
    #[error("name resolution took too long")]
    Timeout,
    /// Not http or https, or no host in it.
    #[error("URL uses unsupported protocol")]
    Unsupported,
    /// The host is not a valid name or address.
    #[error("{host} is not a valid host")]
    InvalidHost { host: String },
}

/// The address rules of this process. A clone shares the rules and the cache.
#[derive(Clone)]
pub struct AddressGuard {
    inner: Arc<Inner>,
}

struct Inner {
    allow_nets: Vec<IpNet>,
    allow_hosts: HashMap<String, IpAddr>,
    /// Of the ports that browsers refuse, those that may be reached.
    allow_ports: Vec<u16>,
    machine: Machine,
    /// Answers that passed, by lower-case name. Refused names are asked again each time.
    cache: Mutex<HashMap<String, Checked>>,
    /// Stands in for DNS in tests.
    #[cfg(test)]
    fake_dns: Option<fn(&str) -> Vec<IpAddr>>,
}

struct Checked {
    addresses: Arc<[IpAddr]>,
    until: Instant,
}

impl std::fmt::Debug for AddressGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddressGuard")
            .field("allow_nets", &self.inner.allow_nets)
            .field("allow_hosts", &self.inner.allow_hosts)
            .finish_non_exhaustive()
    }
}

impl AddressGuard {
    /// `allow_nets` are reachable besides public addresses (`WEIR_ALLOW_NETS`); `allow_hosts` are
    /// names answered without DNS (`WEIR_ALLOW_HOSTS`), their addresses still subject to the rules.
    pub fn new(allow_nets: Vec<IpNet>, allow_hosts: HashMap<String, IpAddr>) -> Self {
        Self::with_ports(allow_nets, allow_hosts, Vec::new())
    }

    /// The same with ports that may be reached although browsers refuse them (`WEIR_ALLOW_PORTS`).
    pub fn with_ports(allow_nets: Vec<IpNet>, allow_hosts: HashMap<String, IpAddr>, allow_ports: Vec<u16>) -> Self {
        let allow_hosts =
            allow_hosts.into_iter().map(|(host, ip)| (bare_name(&host.to_ascii_lowercase()).to_owned(), ip));
        Self {
            inner: Arc::new(Inner {
                allow_nets,
                allow_hosts: allow_hosts.collect(),
                allow_ports,
                machine: Machine::default(),
                cache: Mutex::new(HashMap::new()),
                #[cfg(test)]
                fake_dns: None,
            }),
        }
    }

    /// Whether a connection to `ip` may be made.
    pub fn allows(&self, ip: IpAddr) -> bool {
        let judged = embedded_v4(ip);
        let opened = |ip: &IpAddr| self.inner.allow_nets.iter().any(|net| net.contains(ip));
        if !self.inner.allow_nets.is_empty() && (opened(&ip) || (judged != ip && opened(&judged))) {
            return true;
        }
        is_global_unicast(judged) && !self.inner.machine.has(judged)
    }

    /// Refuses ports that browsers refuse. 0 is not judged: so ask those who only want a name's addresses.
    fn judge_port(&self, host: &str, port: u16) -> Result<(), GuardError> {
        if port == 0 || !ports::is_refused_by_browsers(port) || self.inner.allow_ports.contains(&port) {
            return Ok(());
        }
        Err(GuardError::Port { host: host.to_owned(), port })
    }

    /// Checked addresses of `host`, a name or an address literal with or without brackets, joined
    /// with `port`. Never empty. Connect to these and to nothing else. Port 0: whoever asks has judged
    /// the port with [`AddressGuard::check_url`].
    ///
    /// Fails when the host is malformed, has no address or cannot be looked up, takes longer than [`DNS_TIMEOUT`], when
    /// **any** of its addresses is not allowed, or the port is not.
    pub async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, GuardError> {
        self.judge_port(host, port)?;
        let join = |addresses: &[IpAddr]| addresses.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
        let name = match parse_host(host)? {
            Host::Ipv4(ip) => return self.judge(host, &[ip.into()]).map(|()| vec![SocketAddr::new(ip.into(), port)]),
            Host::Ipv6(ip) => return self.judge(host, &[ip.into()]).map(|()| vec![SocketAddr::new(ip.into(), port)]),
            Host::Domain(name) => name,
        };
        if let Some(known) = self.without_dns(&name) {
            return known.map(|addresses| join(&addresses));
        }
        if let Some(addresses) = self.cached(&name) {
            // The machine may have got one of them meanwhile.
            self.judge(&name, &addresses)?;
            return Ok(join(&addresses));
        }
        let addresses = self.look_up(&name).await?;
        if addresses.is_empty() {
            return Err(GuardError::Dns { host: name });
        }
        self.judge(&name, &addresses)?;
        let answer = join(&addresses);
        self.remember(name, addresses.into());
        Ok(answer)
    }

    /// What can be said about a URL without DNS: the scheme is http or https, the port is not one that browsers
    /// refuse, and a host that is an address, `localhost` or in `WEIR_ALLOW_HOSTS` is allowed. Passing is not enough to connect:
    /// other names are judged when they are resolved.
    pub fn check_url(&self, url: &Url) -> Result<(), GuardError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(GuardError::Unsupported);
        }
        let host = url.host_str().unwrap_or_default();
        match url.port() {
            Some(0) => return Err(GuardError::Port { host: host.to_owned(), port: 0 }),
            Some(port) => self.judge_port(host, port)?,
            None => {}
        }
        match url.host().ok_or(GuardError::Unsupported)? {
            Host::Ipv4(ip) => self.judge(&ip.to_string(), &[ip.into()]),
            Host::Ipv6(ip) => self.judge(&format!("[{ip}]"), &[ip.into()]),
            Host::Domain(name) => self.without_dns(name).map_or(Ok(()), |known| known.map(drop)),
        }
    }

    /// Refuses when one of the addresses is not allowed: a mixed answer is how rebinding starts.
    fn judge(&self, host: &str, addresses: &[IpAddr]) -> Result<(), GuardError> {
        match addresses.iter().find(|ip| !self.allows(**ip)) {
            Some(address) => Err(GuardError::Blocked { host: host.to_owned(), address: *address }),
            None => Ok(()),
        }
    }

    /// The answer for names that never go to DNS: configured ones, and `localhost` with everything
    /// below it (RFC 6761). Of the two loopback addresses the allowed ones are used.
    fn without_dns(&self, name: &str) -> Option<Result<Vec<IpAddr>, GuardError>> {
        let bare = bare_name(name);
        if let Some(ip) = self.inner.allow_hosts.get(bare) {
            return Some(self.judge(name, &[*ip]).map(|()| vec![*ip]));
        }
        if bare != "localhost" && !bare.ends_with(".localhost") {
            return None;
        }
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let allowed: Vec<IpAddr> = loopback.into_iter().filter(|ip| self.allows(*ip)).collect();
        Some(if allowed.is_empty() { self.judge(name, &loopback).map(|()| allowed) } else { Ok(allowed) })
    }

    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, GuardError> {
        #[cfg(test)]
        if let Some(fake) = self.inner.fake_dns {
            return Ok(fake(name));
        }
        let host = || name.to_owned();
        let passing = match tokio::time::timeout(DNS_TIMEOUT, lookups::addresses(name)).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) => lookups::is_passing(&error).then(|| GuardError::NameServer { host: host() }),
            Err(_) => Some(GuardError::Timeout),
        };
        Err(passing.filter(|_| !lookups::is_reserved(name)).unwrap_or_else(|| GuardError::Dns { host: host() }))
    }

    fn cached(&self, name: &str) -> Option<Arc<[IpAddr]>> {
        let cache = self.cache();
        let entry = cache.get(name)?;
        (entry.until > clock::instant()).then(|| entry.addresses.clone())
    }

    fn remember(&self, name: String, addresses: Arc<[IpAddr]>) {
        let now = clock::instant();
        let mut cache = self.cache();
        if cache.len() >= CACHE_MAX {
            cache.retain(|_, entry| entry.until > now);
            if cache.len() >= CACHE_MAX {
                cache.clear();
            }
        }
        cache.insert(name, Checked { addresses, until: now + CACHE_TTL });
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<String, Checked>> {
        self.inner.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a host the way URLs do, so that `0x7f.1`, `2130706433` and `127.0.0.1` are the same thing.
/// A bare IPv6 literal is taken too.
fn parse_host(host: &str) -> Result<Host<String>, GuardError> {
    if let Ok(ip) = host.parse::<Ipv6Addr>() {
        return Ok(Host::Ipv6(ip));
    }
    let parsed = Host::parse(host).map_err(|_| GuardError::InvalidHost { host: host.to_owned() })?;
    match &parsed {
        // A name of dots only, or longer than DNS can carry, never reaches the resolver.
        Host::Domain(name) if bare_name(name).is_empty() || name.len() > 254 => {
            Err(GuardError::InvalidHost { host: host.to_owned() })
        }
        _ => Ok(parsed),
    }
}

/// The name without the dot that marks it as complete.
fn bare_name(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

/// The IPv4 address inside a mapped (`::ffff:a.b.c.d`) or compatible (`::a.b.c.d`) one, else `ip`.
/// `::` and `::1` become 0.0.0.0 and 0.0.0.1, which are denied as they are.
fn embedded_v4(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

fn is_global_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => !DENIED_V4.iter().any(|(net, len)| same_prefix_v4(v4, *net, *len)),
        IpAddr::V6(v6) => {
            same_prefix_v6(v6, GLOBAL_V6.0, GLOBAL_V6.1)
                && !DENIED_V6.iter().any(|(net, len)| same_prefix_v6(v6, *net, *len))
        }
    }
}

fn same_prefix_v4(a: Ipv4Addr, b: Ipv4Addr, len: u8) -> bool {
    (a.to_bits() ^ b.to_bits()) >> (32 - u32::from(len)) == 0
}

fn same_prefix_v6(a: Ipv6Addr, b: Ipv6Addr, len: u8) -> bool {
    (a.to_bits() ^ b.to_bits()) >> (128 - u32::from(len)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed() -> AddressGuard {
        AddressGuard::new(Vec::new(), HashMap::new())
    }

    fn open(nets: &[&str]) -> AddressGuard {
        AddressGuard::new(nets.iter().map(|net| net.parse().unwrap()).collect(), HashMap::new())
    }

    fn on_machine(of: &[&str], nets: &[&str], ports: &[u16]) -> AddressGuard {
        let nets = nets.iter().map(|net| net.parse().unwrap()).collect();
        let guard = AddressGuard::with_ports(nets, HashMap::new(), ports.to_vec());
        let mut inner = Arc::try_unwrap(guard.inner).unwrap_or_else(|_| unreachable!());
        inner.machine = Machine::of(of);
        AddressGuard { inner: Arc::new(inner) }
    }

    fn with_dns(nets: &[&str], fake: fn(&str) -> Vec<IpAddr>) -> AddressGuard {
        let mut inner = Arc::try_unwrap(open(nets).inner).unwrap_or_else(|_| unreachable!());
        inner.fake_dns = Some(fake);
        AddressGuard { inner: Arc::new(inner) }
    }

    #[test]
    fn only_global_unicast_addresses_are_allowed() {
        let denied = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "192.168.255.255",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::2",
            "::127.0.0.1",
            "::10.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::8.8.8.8",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::1",
            "100::1",
            "100:0:0:1::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:1::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2001:db8:ffff::1",
            "2002::1",
            "2002:7f00:1::",
            "3fff::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "ff00::1",
            "ff02::1",
            "ffff::1",
        ];
        let allowed = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "192.167.255.255",
            "192.169.0.1",
            "198.17.255.255",
            "198.20.0.0",
            "203.0.114.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "2000::1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00:1450:4001::200e",
            "3ffe::1",
            "3fff:1000::1",
        ];
        let guard = closed();
        for ip in denied {
            assert!(!guard.allows(ip.parse().unwrap()), "{ip} must be denied");
        }
        for ip in allowed {
            assert!(guard.allows(ip.parse().unwrap()), "{ip} must be allowed");
        }
    }

    #[test]
    fn an_opened_range_opens_no_more_than_itself() {
        let guard = open(&["127.0.0.0/8", "fd12::/16"]);
        for (ip, expected) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("::ffff:127.0.0.1", true),
            ("::1", false),
            ("10.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("169.254.169.254", false),
            ("fd12::1", true),
            ("fd13::1", false),
            ("0.0.0.0", false),
        ] {
            assert_eq!(guard.allows(ip.parse().unwrap()), expected, "{ip}");
        }
        assert!(open(&["::1/128"]).allows("::1".parse().unwrap()));
    }

    #[tokio::test]
    async fn the_machines_own_public_addresses_and_its_links_are_refused() {
        let own = ["198.41.0.4/32", "2a01:4f8::2/128", "2a01:4f8::/64"];
        let guard = on_machine(&own, &[], &[]);
        for ip in ["198.41.0.4", "::ffff:198.41.0.4", "2a01:4f8::2", "2a01:4f8::ffff"] {
            assert!(!guard.allows(ip.parse().unwrap()), "{ip}");
            let verdict = guard.resolve(ip, 80).await;
            assert!(matches!(verdict, Err(GuardError::Blocked { .. })), "{ip}: {verdict:?}");
        }
        for ip in ["198.41.0.5", "2a01:4f8:0:1::2"] {
            assert!(guard.allows(ip.parse().unwrap()), "{ip}");
        }
        let opened = on_machine(&own, &["198.41.0.0/24", "2a01:4f8::3/128"], &[]);
        for (ip, expected) in [("198.41.0.4", true), ("2a01:4f8::3", true), ("2a01:4f8::2", false)] {
            assert_eq!(opened.allows(ip.parse().unwrap()), expected, "{ip}");
        }
    }

    /// In a network of its own, where a public address is put on the loopback interface.
    #[test]
    fn an_address_that_the_machine_gets_is_refused_from_then_on() {
        const INSIDE: &str = "WEIR_TEST_GUARD_INSIDE";
        let public = "8.8.4.250";
        if std::env::var_os(INSIDE).is_some() {
            let guard = closed();
            assert!(guard.allows(public.parse().unwrap()), "not yet the machine's");
            let run = |words: &[&str]| std::process::Command::new("ip").args(words).status().is_ok_and(|s| s.success());
            assert!(run(&["link", "set", "lo", "up"]) && run(&["addr", "add", &format!("{public}/32"), "dev", "lo"]));
            let end = clock::deadline(Duration::from_secs(30));
            while guard.allows(public.parse().unwrap()) {
                assert!(clock::instant() < end, "the machine's own address stays reachable");
                std::thread::sleep(Duration::from_millis(50));
            }
            return;
        }
        let unshare = |words: &[&str]| {
            let mut command = std::process::Command::new("unshare");
            command.args(["-rn"]).args(words);
            command
        };
        if !unshare(&["ip", "link", "show", "lo"]).output().is_ok_and(|done| done.status.success()) {
            eprintln!("skipped: no network namespaces or no ip on this machine");
            return;
        }
        let me = std::env::current_exe().unwrap();
        let name = "guard::tests::an_address_that_the_machine_gets_is_refused_from_then_on";
        let done = unshare(&[me.to_str().unwrap(), "--exact", name, "--nocapture"]).env(INSIDE, "1").output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    #[tokio::test]
    async fn ports_that_browsers_refuse_are_refused_unless_opened() {
        let guard = on_machine(&[], &["127.0.0.0/8"], &[]);
        for port in [1, 22, 25, 110, 6000, 6667, 10080] {
            for host in ["127.0.0.1", "8.8.8.8", "example.com", "localhost"] {
                let url = Url::parse(&format!("http://{host}:{port}/")).unwrap();
                assert!(matches!(guard.check_url(&url), Err(GuardError::Port { .. })), "{url}");
                assert!(matches!(guard.resolve(host, port).await, Err(GuardError::Port { .. })), "{url}");
            }
        }
        assert!(matches!(guard.check_url(&"http://8.8.8.8:0/".parse().unwrap()), Err(GuardError::Port { .. })));
        for url in ["http://8.8.8.8/", "https://8.8.8.8:8443/", "http://127.0.0.1:9999/"] {
            assert_eq!(guard.check_url(&url.parse().unwrap()), Ok(()), "{url}");
        }
        let opened = on_machine(&[], &[], &[22]);
        assert!(opened.resolve("8.8.8.8", 22).await.is_ok());
        assert_eq!(opened.check_url(&"http://8.8.8.8:22/".parse().unwrap()), Ok(()));
        assert!(opened.resolve("8.8.8.8", 25).await.is_err());
        assert!(matches!(opened.resolve("10.0.0.1", 22).await, Err(GuardError::Blocked { .. })));
    }

    #[test]
    fn url_forms_of_inner_addresses_are_refused() {
        let guard = closed();
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://127.0.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://017700000001/",
            "http://0/",
            "http://0.0.0.0:80/",
            "http://[::]/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[::127.0.0.1]/",
            "http://[fe80::1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://localhost/",
            "http://LOCALHOST/",
            "http://localhost./",
            "http://a.b.localhost/",
            "http://a.localhost./",
            "http://user:pass@127.0.0.1/",
            "http://example.com@127.0.0.1/",
            "http://example.com:80@localhost/",
            "http://example.com%40@10.0.0.1/",
            "http:\\\\127.0.0.1\\",
            "http://①②⑦.0.0.1/",
            "http://127。0。0。1/",
            "http://%31%32%37.0.0.1/",
            "https://169.254.169.254/latest/",
            "http://0xa9fea9fe/",
            "http://192.168.1.1:8080/",
            "http://100.64.0.1/",
            "http://[fd00:ec2::254]/",
        ] {
            let verdict = guard.check_url(&Url::parse(url).unwrap());
            assert!(matches!(verdict, Err(GuardError::Blocked { .. })), "{url}: {verdict:?}");
        }
    }

    #[test]
    fn public_urls_and_names_pass_the_check_without_dns() {
        let guard = closed();
        for url in [
            "http://example.com/",
            "https://example.com:8443/",
            "http://8.8.8.8/",
            "http://[2606:4700::1111]/",
            "http://127.0.0.1.example.com/",
            "http://localhost.example.com/",
            "http://notlocalhost/",
            "http://127.0.0.1@example.com/",
        ] {
            assert_eq!(guard.check_url(&Url::parse(url).unwrap()), Ok(()), "{url}");
        }
    }

    #[test]
    fn other_schemes_are_refused() {
        for url in
            ["file:///etc/passwd", "ftp://example.com/", "data:text/html,x", "gopher://example.com/", "ws://a.b/"]
        {
            assert_eq!(closed().check_url(&Url::parse(url).unwrap()), Err(GuardError::Unsupported), "{url}");
        }
    }

    #[test]
    fn the_text_of_a_refusal_names_no_inner_address() {
        let refusal = GuardError::Blocked { host: "intranet.example".into(), address: "10.1.2.3".parse().unwrap() };
        assert!(!refusal.to_string().contains("10.1.2.3"));
    }

    #[test]
    fn a_refusal_names_the_setting_that_would_change_it() {
        let address = closed().check_url(&Url::parse("http://10.0.0.1/").unwrap()).unwrap_err().to_string();
        assert!(address.starts_with("10.0.0.1 is not a public address,"), "{address}");
        assert!(address.ends_with("Its operator sets WEIR_ALLOW_NETS"), "{address}");
        let port = closed().check_url(&Url::parse("http://8.8.8.8:22/").unwrap()).unwrap_err().to_string();
        assert!(port.ends_with("Its operator sets WEIR_ALLOW_PORTS"), "{port}");
    }

    #[tokio::test]
    async fn resolving_reads_every_form_of_a_literal() {
        let guard = open(&["127.0.0.0/8", "::1/128"]);
        let loopback: SocketAddr = "127.0.0.1:81".parse().unwrap();
        for host in ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "017700000001"] {
            assert_eq!(guard.resolve(host, 81).await, Ok(vec![loopback]), "{host}");
        }
        for host in ["::1", "[::1]"] {
            assert_eq!(guard.resolve(host, 81).await, Ok(vec!["[::1]:81".parse().unwrap()]), "{host}");
        }
        for host in ["127.1", "::1", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "localhost", "x.localhost."] {
            let verdict = closed().resolve(host, 81).await;
            assert!(matches!(verdict, Err(GuardError::Blocked { .. })), "{host}: {verdict:?}");
        }
    }

    #[tokio::test]
    async fn malformed_hosts_never_reach_the_resolver() {
        let guard = with_dns(&[], |host| unreachable!("asked for {host}"));
        for host in ["", ".", "[example.com]", "[::1", "a b", "1.2.3.4.5", "127.0.0.256", "a/b", "a@b", "a:80", "%00"] {
            let verdict = guard.resolve(host, 80).await;
            assert!(matches!(verdict, Err(GuardError::InvalidHost { .. })), "{host:?}: {verdict:?}");
        }
    }

    #[tokio::test]
    async fn localhost_uses_the_loopback_address_that_is_allowed() {
        assert_eq!(open(&["127.0.0.0/8"]).resolve("a.localhost", 81).await, Ok(vec!["127.0.0.1:81".parse().unwrap()]));
        assert_eq!(open(&["::1/128"]).resolve("LOCALHOST.", 81).await, Ok(vec!["[::1]:81".parse().unwrap()]));
        assert_eq!(open(&["127.0.0.0/8", "::1/128"]).resolve("localhost", 81).await.map(|all| all.len()), Ok(2));
    }

    #[tokio::test]
    async fn configured_hosts_skip_dns_and_keep_the_rules() {
        let hosts = HashMap::from([
            ("Shop.Test.".to_owned(), "127.0.0.1".parse().unwrap()),
            ("meta.test".to_owned(), "169.254.169.254".parse().unwrap()),
        ]);
        let guard = AddressGuard::new(vec!["127.0.0.0/8".parse().unwrap()], hosts);
        assert_eq!(guard.resolve("SHOP.test", 80).await, Ok(vec!["127.0.0.1:80".parse().unwrap()]));
        assert!(matches!(guard.resolve("meta.test", 80).await, Err(GuardError::Blocked { .. })));
        assert!(matches!(guard.check_url(&"http://meta.test/".parse().unwrap()), Err(GuardError::Blocked { .. })));
    }

    #[tokio::test]
    async fn one_inner_address_among_the_answers_refuses_the_name() {
        let guard = with_dns(&[], |host| match host {
            "mixed.test" => vec!["8.8.8.8".parse().unwrap(), "10.0.0.1".parse().unwrap()],
            "mapped.test" => vec!["::ffff:127.0.0.1".parse().unwrap()],
            "none.test" => vec![],
            _ => vec!["8.8.8.8".parse().unwrap(), "2606:4700::1111".parse().unwrap()],
        });
        assert!(matches!(guard.resolve("mixed.test", 80).await, Err(GuardError::Blocked { .. })));
        assert!(matches!(guard.resolve("mapped.test", 80).await, Err(GuardError::Blocked { .. })));
        assert_eq!(guard.resolve("none.test", 80).await, Err(GuardError::Dns { host: "none.test".into() }));
        assert_eq!(guard.resolve("good.test", 80).await.map(|all| all.len()), Ok(2));
    }

    #[tokio::test]
    async fn a_name_that_flips_is_refused_once_its_checked_answer_is_gone() {
        use std::sync::atomic::{AtomicU32, Ordering};
        static ASKED: AtomicU32 = AtomicU32::new(0);
        let guard = with_dns(&[], |_| match ASKED.fetch_add(1, Ordering::SeqCst) {
            0 => vec!["8.8.8.8".parse().unwrap()],
            _ => vec!["127.0.0.1".parse().unwrap()],
        });
        let first = guard.resolve("flip.test", 80).await;
        assert_eq!(guard.resolve("flip.test", 80).await, first, "answered from the cache");
        assert_eq!(ASKED.load(Ordering::SeqCst), 1);
        guard.cache().clear();
        assert!(matches!(guard.resolve("flip.test", 80).await, Err(GuardError::Blocked { .. })));
    }

    #[tokio::test]
    async fn the_cache_stays_bounded() {
        let guard = with_dns(&[], |_| vec!["8.8.8.8".parse().unwrap()]);
        for n in 0..CACHE_MAX + 10 {
            guard.resolve(&format!("h{n}.test"), 80).await.unwrap();
        }
        assert!(guard.cache().len() <= CACHE_MAX);
    }
}
