//! How many connections one address may have. Who has said no key yet is known by nothing else, and whoever opens connections
//! and sends nothing on them, or heads a byte at a time, would otherwise have all that a process takes, over and over again.
//!
//! Behind a proxy on the same machine all callers have the machine's own address, so nothing is counted of that one.

use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;
use weir_shared::clock;
use weir_shared::shares::{Share, Shares};

/// One in so many connections is left to other addresses: a proxy on another machine is one address, too, and needs many.
const OTHERS: usize = 4;
/// That an address has all it may have is told this often.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// The connections of a process by where they come from.
pub struct Peers {
    of_address: Shares<IpAddr>,
    told: Option<Instant>,
}

/// Held as long as a connection lives.
#[derive(Debug)]
pub struct Place {
    /// None is counted of this machine.
    _share: Option<Share>,
}

impl Peers {
    /// Those of a process that takes so many connections.
    pub fn among(connections: usize) -> Self {
        let each = (connections - connections / OTHERS).max(1);
        Self { of_address: Shares::new(connections, each), told: None }
    }

    /// A place for one more connection of this address. `None`: it has as many as it may have.
    pub fn admit(&mut self, address: IpAddr) -> Option<Place> {
        if address.to_canonical().is_loopback() {
            return Some(Place { _share: None });
        }
        if let Some(share) = self.of_address.try_take(&network(address)) {
            return Some(Place { _share: Some(share) });
        }
        let now = clock::instant();
        if self.told.is_none_or(|told| now.duration_since(told) >= TELL_EVERY) {
            self.told = Some(now);
            tracing::warn!(%address, "an address has three quarters of all connections; further ones of it are closed");
        }
        None
    }
}

/// What counts as one address: of IPv6 the whole network, because who has one address has them all.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => {
            let [a, b, c, d, ..] = six.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        four => four,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn no_address_has_all_connections_but_this_machines_own() {
        let mut peers = Peers::among(8);
        let mut open = |address: &str, count: usize| {
            let address = address.parse().unwrap();
            (0..count).filter_map(|_| peers.admit(address)).collect::<Vec<_>>()
        };
        let mut held = open("203.0.113.7", 9);
        assert_eq!(held.len(), 6);
        assert!(open("::ffff:203.0.113.7", 1).is_empty(), "the same address by another socket");
        assert_eq!(open("203.0.113.8", 1).len(), 1);
        held.pop();
        assert_eq!(open("203.0.113.7", 2).len(), 1, "what has ended makes room");
        drop(held);
        let network = open("2001:db8::1", 4);
        assert_eq!(open("2001:db8::ffff:1", 9).len(), 2, "a network counts as one address");
        assert_eq!(open("2001:db8:0:1::1", 1).len(), 1);
        for own in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(open(own, 20).len(), 20, "{own}: a proxy brings everybody");
        }
        drop(network);
        // However few there are, everybody is served.
        assert!(Peers::among(1).admit([203, 0, 113, 7].into()).is_some());
    }
}
