//! Which public addresses are this machine's own, or its neighbours' on a link.
//!
//! A service that listens on a public address of this machine, or on every address, trusts more than the internet
//! does, often by a firewall that a connection from the machine itself never meets. IPv6 networks at home and in
//! companies have public addresses throughout, so what is on the same link is as inner as `192.168.0.0/16` is in IPv4.
//!
//! The kernel's tables are read again after some seconds, by whoever asks next: addresses come and go with leases.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::time::Instant;

use crate::clock;

/// How long what was read is trusted.
const TRUSTED: Duration = Duration::from_secs(2);

/// Most that is read of one table. Only routers of whole providers have larger ones.
const MOST: u64 = 1 << 20;

/// A prefix shorter than this is a way to much of the internet (a tunnel's, say), not a link.
const SHORTEST_LINK: u8 = 32;

const RTF_UP: u32 = 0x1;
const RTF_REJECT: u32 = 0x200;
const RTF_LOCAL: u32 = 0x8000_0000;

/// What is known of the machine's networks.
#[derive(Debug, Default)]
pub(super) struct Machine(Mutex<Option<Known>>);

#[derive(Debug, Clone)]
struct Known {
    /// Public networks only: all others are refused anyway. Empty on most machines.
    nets: Arc<[IpNet]>,
    /// `false`: a table could not be read to its end, so the kernel is asked for each address.
    is_whole: bool,
    until: Instant,
}

impl Machine {
    /// One whose networks never change, for tests.
    #[cfg(test)]
    pub fn of(nets: &[&str]) -> Self {
        let nets = nets.iter().map(|net| net.parse().unwrap()).collect();
        let until = clock::deadline(Duration::from_secs(3600));
        Self(Mutex::new(Some(Known { nets, is_whole: true, until })))
    }

    /// Whether a public address is the machine's own or a neighbour's.
    pub fn has(&self, ip: IpAddr) -> bool {
        let known = self.known();
        known.nets.iter().any(|net| net.contains(&ip)) || (!known.is_whole && is_own_by_route(ip))
    }

    fn known(&self) -> Known {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(known) if known.until > clock::instant() => known.clone(),
            _ => known.insert(read()).clone(),
        }
    }
}

fn read() -> Known {
    let tables = [
        ("/proc/self/net/fib_trie", own_v4 as fn(&str) -> Vec<IpNet>),
        ("/proc/self/net/if_inet6", interfaces_v6),
        ("/proc/self/net/ipv6_route", routes_v6),
    ];
    let (mut nets, mut is_whole) = (Vec::new(), true);
    for (path, parse) in tables {
        match read_table(path) {
            Ok((text, whole)) => {
                nets.extend(parse(&text).into_iter().filter(|net| super::is_global_unicast(net.network())));
                is_whole &= whole;
            }
            // Without IPv6 its tables do not exist.
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.ends_with('6') => {}
            Err(_) if path.ends_with("ipv6_route") => {}
            Err(_) => is_whole = false,
        }
    }
    nets.sort_unstable();
    nets.dedup();
    Known { nets: nets.into(), is_whole, until: clock::deadline(TRUSTED) }
}

/// The table's text, and whether that is all of it.
fn read_table(path: &str) -> io::Result<(String, bool)> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST).read_to_end(&mut bytes)?;
    let whole = (bytes.len() as u64) < MOST;
    if !whole {
        // The last line may have lost its end.
        bytes.truncate(bytes.iter().rposition(|b| *b == b'\n').unwrap_or(0));
    }
    Ok((String::from_utf8_lossy(&bytes).into_owned(), whole))
}

/// Local addresses out of `fib_trie`: a line with the address, then one a kind of route with its length.
fn own_v4(text: &str) -> Vec<IpNet> {
    let mut address = None;
    let mut nets = Vec::new();
    for line in text.lines().map(str::trim_start) {
        if let Some(rest) = line.strip_prefix("|-- ") {
            address = rest.trim().parse::<Ipv4Addr>().ok();
        } else if let Some(rest) = line.strip_prefix('/')
            && rest.split_ascii_whitespace().last() == Some("LOCAL")
        {
            let length = rest.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
            let net = address.zip(length).and_then(|(address, length)| Ipv4Net::new(address, length).ok());
            nets.extend(net.map(IpNet::V4));
        }
    }
    nets
}

/// Addresses of interfaces with the links that they are on: address, index, prefix length and so on, in hexadecimal.
fn interfaces_v6(text: &str) -> Vec<IpNet> {
    let mut nets = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [address, _, length, ..] = words[..] else { continue };
        let (Some(address), Ok(length)) = (hex_v6(address), u8::from_str_radix(length, 16)) else { continue };
        nets.push(IpNet::from(IpAddr::V6(address)));
        nets.extend(link(address, length));
    }
    nets
}

/// Local addresses, and networks that are reached without a gateway, out of `ipv6_route`: destination, its length,
/// source, its length, gateway, metric, two counters, flags, interface. Routers announce links that no address of
/// the machine is in.
fn routes_v6(text: &str) -> Vec<IpNet> {
    let mut nets = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [to, length, _, _, gateway, _, _, _, flags, interface] = words[..] else { continue };
        let (Some(to), Some(gateway)) = (hex_v6(to), hex_v6(gateway)) else { continue };
        let (Ok(length), Ok(flags)) = (u8::from_str_radix(length, 16), u32::from_str_radix(flags, 16)) else {
            continue;
        };
        if flags & RTF_LOCAL != 0 {
            nets.extend(Ipv6Net::new(to, length).ok().map(IpNet::V6));
        } else if gateway.is_unspecified() && interface != "lo" && flags & (RTF_UP | RTF_REJECT) == RTF_UP {
            nets.extend(link(to, length));
        }
    }
    nets
}

fn link(address: Ipv6Addr, length: u8) -> Option<IpNet> {
    (length >= SHORTEST_LINK).then(|| Ipv6Net::new(address, length).ok().map(|net| IpNet::V6(net.trunc())))?
}

fn hex_v6(text: &str) -> Option<Ipv6Addr> {
    (text.len() == 32).then(|| u128::from_str_radix(text, 16).ok().map(Ipv6Addr::from_bits))?
}

/// Whether the kernel would send to this address from the address itself, which it does for its own only. Nothing is
/// sent.
fn is_own_by_route(ip: IpAddr) -> bool {
    let any: IpAddr = if ip.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let local = UdpSocket::bind(SocketAddr::new(any, 0)).and_then(|socket| {
        socket.connect(SocketAddr::new(ip, 9))?;
        socket.local_addr()
    });
    local.is_ok_and(|local| local.ip() == ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(list: &[&str]) -> Vec<IpNet> {
        list.iter().map(|net| net.parse().unwrap()).collect()
    }

    #[test]
    fn own_addresses_are_read_out_of_the_kernels_tables() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     \
            |-- 198.41.0.0\n        /24 link UNICAST\nLocal:\n     |-- 198.41.0.4\n        /32 host LOCAL\n     \
            |-- 198.41.0.255\n        /32 link BROADCAST\n     |-- 45.0.0.0\n        /24 link UNICAST\n        \
            /24 host LOCAL\n";
        assert_eq!(own_v4(trie), nets(&["198.41.0.4/32", "45.0.0.0/24"]));

        let interfaces = "2a0104f8000000000000000000000002 04 40 00 80     eth0\n\
            00000000000000000000000000000001 01 80 10 80       lo\nnonsense\n";
        assert_eq!(interfaces_v6(interfaces)[..2], nets(&["2a01:4f8::2/128", "2a01:4f8::/64"])[..]);

        let zero = "0".repeat(32);
        let routes = format!(
            "2a0104f8000100000000000000000000 40 {zero} 00 {zero} 00000100 00000001 00000000 00000001     eth0\n\
             2a0104f8000200000000000000000000 40 {zero} 00 fe800000000000000000000000000001 00000100 00000001 00000000 00000003     eth0\n\
             20000000000000000000000000000000 03 {zero} 00 {zero} 00000100 00000001 00000000 00000001     wg0\n\
             2a0104f8000300000000000000000000 40 {zero} 00 {zero} 00000100 00000001 00000000 00200200     lo\n\
             2a0104f8000000000000000000000002 80 {zero} 00 {zero} 00000000 00000002 00000000 80200001       lo\n"
        );
        assert_eq!(routes_v6(&routes), nets(&["2a01:4f8:1::/64", "2a01:4f8::2/128"]));
    }

    #[test]
    fn the_kernel_tells_its_own_addresses_by_the_way_it_would_send() {
        assert!(is_own_by_route(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_own_by_route(Ipv4Addr::new(8, 8, 8, 8).into()));
    }

    #[test]
    fn the_tables_of_this_machine_are_read_whole_and_not_at_every_question() {
        let machine = Machine::default();
        let first = machine.known();
        assert!(first.is_whole);
        assert!(Arc::ptr_eq(&first.nets, &machine.known().nets));
    }
}
