//! How connections end that a server would keep: of clients that read nothing, that have vanished without a word, or that were
//! upgraded. For both HTTP servers.
//!
//! The server holds a connection whose request has not ended open for about a second after its answer, to read on what
//! the client may still send. The request of a WebSocket never ends, so every one of them would stay open that long
//! after its closing handshake. With its reading side shut, the server finds that the client has nothing more to say,
//! writes what it still holds and ends the connection at once. Where it cannot write, it does not come to that end:
//! [`HangUp::cut`] takes the connection away.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use rustix::net::sockopt::{
    set_socket_keepalive, set_socket_linger, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_user_timeout,
};

/// How long nothing has come from a connection's other side until the system asks whether it is there, how often it asks
/// again, and how many questions may be left without an answer.
const QUIET: Duration = Duration::from_secs(60);
const ASK_AGAIN: Duration = Duration::from_secs(15);
const QUESTIONS: u32 = 4;

/// A connection that the server has accepted, by its descriptor: kept with the connection, and good only as long.
#[derive(Debug, Clone, Copy)]
pub struct Line(RawFd);

impl Line {
    /// The line of a connection.
    pub fn of(connection: &impl AsFd) -> Self {
        Self(connection.as_fd().as_raw_fd())
    }

    /// Has the system end the connection when nothing of what was written to it has been read for this time: who asks for
    /// much and reads nothing would keep it for ever.
    pub fn expect_readers(connection: &impl AsFd, patience: Duration) {
        let patience = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
        // Fails on what is no TCP connection.
        let _ = set_tcp_user_timeout(connection, patience);
    }

    /// Has the system end connections of a listening socket whose other side has vanished without a word, as a machine without
    /// power does: nothing is written to who is waited for. They have this from the socket that accepts them.
    pub fn expect_presence(socket: &impl AsFd) {
        // Fails on what is no TCP socket.
        let _ = set_tcp_keepidle(socket, QUIET)
            .and_then(|()| set_tcp_keepintvl(socket, ASK_AGAIN))
            .and_then(|()| set_tcp_keepcnt(socket, QUESTIONS))
            .and_then(|()| set_socket_keepalive(socket, true));
    }

    /// What ends the line when dropped. The time of [`Line::expect_readers`] is over: what an upgraded connection carries
    /// may be stopped at a breakpoint. To be called by the handler of a request on it, from `peer`. `None`: no
    /// descriptor is left, and the line ends when the server ends it.
    pub fn hang_up(self, peer: Option<SocketAddr>) -> Option<HangUp> {
        let line = self.hang_up_on_reader(peer)?;
        let _ = set_tcp_user_timeout(&line.0, 0);
        Some(line)
    }

    /// The same where the client has to read all the same: the time of [`Line::expect_readers`] goes on.
    pub fn hang_up_on_reader(self, peer: Option<SocketAddr>) -> Option<HangUp> {
        #[expect(unsafe_code, reason = "a request is handled only while its server holds the connection it came on")]
        let line = unsafe { BorrowedFd::borrow_raw(self.0) };
        let line = TcpStream::from(line.try_clone_to_owned().ok()?);
        if peer.is_none() || line.peer_addr().ok() != peer {
            return None;
        }
        Some(HangUp(line))
    }
}

/// Held by the answer's body: shuts the connection's reading side when dropped.
#[derive(Debug)]
pub struct HangUp(TcpStream);

impl HangUp {
    /// Ends the connection at once, with what its client has not read: a server that cannot write does not come to its end
    /// by itself.
    pub fn cut(&self) {
        // Both fail when the client has closed the connection already, which is as good.
        let _ = set_socket_linger(&self.0, Some(Duration::ZERO));
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Drop for HangUp {
    fn drop(&mut self) {
        // Fails when the client has closed the connection already, which is as good.
        let _ = self.0.shutdown(Shutdown::Read);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_line_that_is_hung_up_reads_its_end_and_still_writes() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (mut server, peer) = listener.accept().expect("the connection");
        assert!(Line::of(&server).hang_up(listener.local_addr().ok()).is_none(), "another's line is left alone");
        drop(Line::of(&server).hang_up(Some(peer)).expect("the line"));
        assert_eq!(server.read(&mut [0; 8]).expect("the end"), 0);
        server.write_all(b"goodbye").expect("the last word");
        drop(server);
        let mut heard = String::new();
        client.read_to_string(&mut heard).expect("all of it");
        assert_eq!(heard, "goodbye");
    }

    #[test]
    fn a_line_that_nobody_reads_from_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (mut server, _) = listener.accept().expect("the connection");
        Line::expect_readers(&server, Duration::from_millis(300));
        server.set_write_timeout(Some(Duration::from_secs(20))).expect("a setting");
        let error = std::iter::repeat_with(|| server.write_all(&[0; 1 << 16])).find_map(Result::err).expect("an end");
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{error}");
        drop(client);
        // One that is upgraded has no such end.
        let _client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (server, peer) = listener.accept().expect("the connection");
        Line::expect_readers(&server, Duration::from_millis(300));
        let _hang_up = Line::of(&server).hang_up(Some(peer)).expect("the line");
        assert_eq!(rustix::net::sockopt::tcp_user_timeout(&server).expect("a setting"), 0);
        Line::expect_readers(&server, Duration::from_millis(300));
        let _hang_up = Line::of(&server).hang_up_on_reader(Some(peer)).expect("the line");
        assert_eq!(rustix::net::sockopt::tcp_user_timeout(&server).expect("a setting"), 300);
    }

    #[test]
    fn a_line_that_is_cut_takes_nothing_more_and_its_client_learns_of_it() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (mut server, peer) = listener.accept().expect("the connection");
        let line = Line::of(&server).hang_up_on_reader(Some(peer)).expect("the line");
        server.set_nonblocking(true).expect("a setting");
        while server.write(&[0; 1 << 16]).is_ok() {}
        line.cut();
        let error = server.write(&[0]).expect_err("it is over");
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{error}");
        drop((server, line));
        assert!(client.read_to_end(&mut Vec::new()).is_err(), "what was not read is gone");
    }

    #[test]
    fn a_line_whose_client_vanishes_ends_within_two_minutes() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        Line::expect_presence(&listener);
        let _client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (server, _) = listener.accept().expect("the connection");
        assert!(rustix::net::sockopt::socket_keepalive(&server).expect("a setting"));
        let idle = rustix::net::sockopt::tcp_keepidle(&server).expect("a setting");
        let again = rustix::net::sockopt::tcp_keepintvl(&server).expect("a setting");
        let questions = rustix::net::sockopt::tcp_keepcnt(&server).expect("a setting");
        assert!(idle + again * questions <= Duration::from_secs(120));
    }
}
