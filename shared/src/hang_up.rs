//! The end of an upgraded connection, for both HTTP servers.
//!
//! The server holds a connection whose request has not ended open for about a second after its answer, to read on what
//! the client may still send. The request of a WebSocket never ends, so every one of them would stay open that long
//! after its closing handshake. With its reading side shut, the server finds that the client has nothing more to say,
//! writes what it still holds and ends the connection at once.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// A connection that the server has accepted, by its descriptor: kept with the connection, and good only as long.
#[derive(Debug, Clone, Copy)]
pub struct Line(RawFd);

impl Line {
    /// The line of a connection.
    pub fn of(connection: &impl AsFd) -> Self {
        Self(connection.as_fd().as_raw_fd())
    }

    /// What ends the line when dropped. To be called by the handler of a request on it, from `peer`. `None`: no
    /// descriptor is left, and the line ends when the server ends it.
    pub fn hang_up(self, peer: Option<SocketAddr>) -> Option<HangUp> {
        #[expect(unsafe_code, reason = "a request is handled only while its server holds the connection it came on")]
        let line = unsafe { BorrowedFd::borrow_raw(self.0) };
        let line = TcpStream::from(line.try_clone_to_owned().ok()?);
        (peer.is_some() && line.peer_addr().ok() == peer).then_some(HangUp(line))
    }
}

/// Held by the answer's body: shuts the connection's reading side when dropped.
#[derive(Debug)]
pub struct HangUp(TcpStream);

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
}
