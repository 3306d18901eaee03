//! Connections to Postgres that have fallen silent.
//!
//! A server, or a proxy before it, that stands still without ending its connections leaves whoever asked it waiting: its
//! kernel goes on acknowledging what is sent, so keepalives find nothing. Here every statement has a bound. The server
//! is asked to keep to it (`statement_timeout`); of a server that does not, the kernel knows when this side last spoke
//! and when it last heard anything, and a connection that has asked for too long without a word is shut. Its statement
//! then fails as on any broken connection, and the pool makes another one. This costs the statements nothing.
//!
//! A process that is watched must have no statement without a bound: migrations come before the watch begins, and the
//! operator's commands have none.

use std::collections::HashSet;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::net::{Shutdown, getpeername, shutdown, sockopt};
use sqlx::postgres::PgPool;

use crate::{blocking, clock, lasting};

/// The longest that a statement may take, as the server is told, ms.
pub const STATEMENT: &str = "12000";
/// What the server is told where a statement may take as long as it needs.
pub const UNBOUNDED: &str = "0";
/// A question without a word of an answer for this long is given up on this side.
const SILENCE: Duration = Duration::from_millis(12_500);
/// The least pause between two looks.
const SOONEST: Duration = Duration::from_millis(500);
/// The server's addresses are asked for again after this long.
const RESOLVE_AFTER: Duration = Duration::from_secs(30);
/// What the other side's kernel does not acknowledge for this long ends the connection, ms.
const UNACKNOWLEDGED_MS: u32 = 12_000;

/// Watches this process's connections to the server of `pool`, of other pools too, until the pool is closed.
pub fn watch(pool: &PgPool) {
    let options = pool.connect_options();
    let (host, port) = (options.get_host().to_owned(), options.get_port());
    // A socket file leads to this machine's own server.
    if options.get_socket().is_some() || host.starts_with('/') {
        return;
    }
    let pool = pool.clone();
    tokio::spawn(lasting::again("lines to Postgres", move || look_on(pool.clone(), host.clone(), port)));
}

async fn look_on(pool: PgPool, host: String, port: u16) {
    let mut server = HashSet::new();
    let mut resolved_at = clock::instant();
    while !pool.is_closed() {
        if (server.is_empty() || resolved_at.elapsed() >= RESOLVE_AFTER)
            && let Ok(found) = addresses(host.clone(), port).await
        {
            server = found;
            resolved_at = clock::instant();
        }
        let peers = server.clone();
        // Reading the list of descriptors is a system call for each.
        let looked = blocking::run(move || look(&peers, SILENCE)).await;
        let pause = match looked {
            Ok(Ok(look)) if !server.is_empty() => {
                if look.shut > 0 {
                    tracing::warn!(connections = look.shut, "Postgres does not answer; its connections are made anew");
                }
                // Who asks from now on may wait for as long, and none that waits has done so before then.
                SILENCE.saturating_sub(look.longest).max(SOONEST)
            }
            _ => SOONEST,
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = pool.close_event() => return,
        }
    }
}

/// The addresses of the server. Not by way of [`crate::lookups`], whose places the names of sites may take.
async fn addresses(host: String, port: u16) -> io::Result<HashSet<SocketAddr>> {
    blocking::run(move || Ok((host.as_str(), port).to_socket_addrs()?.collect())).await?
}

/// What a look has found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Look {
    /// Connections that were shut.
    shut: usize,
    /// For how long one of the others has waited at most.
    longest: Duration,
}

/// Shuts this process's connections to `server` that have waited for `bound`.
fn look(server: &HashSet<SocketAddr>, bound: Duration) -> io::Result<Look> {
    let mut found = Look::default();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()) else { continue };
        #[expect(unsafe_code, reason = "the number is asked of the kernel alone, for which a closed one is an error")]
        let line = unsafe { BorrowedFd::borrow_raw(number) };
        if !leads_to(line, server) {
            continue;
        }
        // From here on a handle of our own: what is judged is what is shut, also when the number is another's by then.
        let Ok(line) = line.try_clone_to_owned() else { continue };
        match leads_to(line.as_fd(), server).then(|| judge(&line, bound)) {
            Some(Ok(Some(waited))) if waited >= bound => found.shut += 1,
            Some(Ok(Some(waited))) => found.longest = found.longest.max(waited),
            Some(Err(error)) => tracing::debug!(%error, "a connection to Postgres cannot be judged"),
            Some(Ok(None)) | None => {}
        }
    }
    Ok(found)
}

fn leads_to(line: BorrowedFd<'_>, server: &HashSet<SocketAddr>) -> bool {
    let peer = getpeername(line).ok().and_then(|peer| SocketAddr::try_from(peer?).ok());
    peer.is_some_and(|peer| server.contains(&peer))
}

/// Shuts the connection when it has waited for `bound`. Returns for how long it has, if it waits.
fn judge(line: &OwnedFd, bound: Duration) -> io::Result<Option<Duration>> {
    sockopt::set_tcp_user_timeout(line, UNACKNOWLEDGED_MS)?;
    let waited = waits(line)?;
    if waited.is_some_and(|waited| waited >= bound) {
        shutdown(line, Shutdown::Both)?;
    }
    Ok(waited)
}

/// For how long this side has waited for a first word; `None`: the last word was the other side's.
fn waits(line: &OwnedFd) -> io::Result<Option<Duration>> {
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    #[expect(unsafe_code, reason = "no library has this option; a `tcp_info` is numbers, for which zero is fine")]
    let (result, info) = unsafe {
        let mut info: libc::tcp_info = std::mem::zeroed();
        let place = (&raw mut info).cast();
        let result = libc::getsockopt(line.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, place, &raw mut length);
        (result, info)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // How long ago, ms. The kernel's steps are coarse: of a question and an answer in one step, the question was later where
    // it was acknowledged after the answer. The acknowledgement of a question that is answered comes with the answer.
    let (sent, heard, acknowledged) = (info.tcpi_last_data_sent, info.tcpi_last_data_recv, info.tcpi_last_ack_recv);
    let is_waiting = sent < heard || (sent == heard && acknowledged < heard);
    Ok(is_waiting.then(|| Duration::from_millis(sent.into())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_that_asks_in_vain_is_shut_and_no_other() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = HashSet::from([listener.local_addr().unwrap()]);
        let open = || {
            let line = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (line, listener.accept().unwrap().0)
        };
        let pause = || std::thread::sleep(Duration::from_millis(30));
        let (mut asks, _silent) = open();
        let (mut answered, mut answers) = open();
        let (idle, _rests) = open();
        // The kernel counts in milliseconds of its own clock's steps.
        pause();
        asks.write_all(b"?").unwrap();
        answered.write_all(b"?").unwrap();
        pause();
        answers.write_all(b"!").unwrap();
        pause();
        let found = look(&server, Duration::from_secs(60)).unwrap();
        assert_eq!(found.shut, 0, "nobody has waited so long");
        assert!((30..10_000).contains(&found.longest.as_millis()), "one waits: {found:?}");
        assert_eq!(look(&HashSet::new(), Duration::ZERO).unwrap(), Look::default(), "none of them is the server's");
        let found = look(&server, Duration::from_millis(20)).unwrap();
        assert_eq!(found, Look { shut: 1, longest: Duration::ZERO });
        assert_eq!(asks.read(&mut [0]).unwrap(), 0, "its reader learns that it is over");
        assert_eq!(answered.read(&mut [0]).unwrap(), 1);
        assert!(answered.write_all(b"?").is_ok() && idle.peer_addr().is_ok());
    }
}
