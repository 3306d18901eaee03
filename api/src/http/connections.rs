//! The connections of clients: an upgraded one is kept open by the server until somebody hangs up, any other one as long as
//! its client reads what it asked for.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::dev::Extensions;
use weir_shared::hang_up::{HangUp, Line};

use crate::http::pace::{Paced, Upgraded};

/// Where the server listens that a connection has come to.
struct Server(SocketAddr);

/// After this time a client that reads nothing of its answer is cut off.
const UNREAD: Duration = Duration::from_secs(60);

/// Notes a new connection, for [`hang_up`], and where it has come to, for [`server`].
pub fn remember(connection: &Paced, address: SocketAddr, known: &mut Extensions) {
    Line::expect_readers(connection.line(), UNREAD);
    known.insert(Line::of(connection.line()));
    known.insert(connection.upgraded());
    known.insert(Server(address));
}

/// Where this machine reaches a server of its own that listens here: bound to every address, its own is one of them.
pub fn reached_here(bound: SocketAddr) -> SocketAddr {
    let loopback = if bound.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    SocketAddr::new(if bound.ip().is_unspecified() { loopback } else { bound.ip() }, bound.port())
}

/// The address that this process listens on, as the request's connection has it.
pub fn server(request: &HttpRequest) -> Option<SocketAddr> {
    Some(request.conn_data::<Server>()?.0)
}

/// What ends the connection of an upgraded request, once it is dropped with the answer. For the request's handler.
pub fn hang_up(request: &HttpRequest) -> Option<HangUp> {
    upgraded(request)?.hang_up(request.peer_addr())
}

/// The same where the client only reads, and is cut off as others are when it does not.
pub fn hang_up_on_reader(request: &HttpRequest) -> Option<HangUp> {
    upgraded(request)?.hang_up_on_reader(request.peer_addr())
}

fn upgraded(request: &HttpRequest) -> Option<Line> {
    if let Some(upgraded) = request.conn_data::<Upgraded>() {
        upgraded.say();
    }
    request.conn_data::<Line>().copied()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_server_of_every_address_is_reached_at_the_machines_own() {
        for (bound, reached) in [
            ("0.0.0.0:3002", "127.0.0.1:3002"),
            ("[::]:3002", "[::1]:3002"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("10.0.0.7:3002", "10.0.0.7:3002"),
        ] {
            assert_eq!(reached_here(bound.parse().unwrap()).to_string(), reached);
        }
    }
}
