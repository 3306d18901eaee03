//! A client's connection as the server reads it: a portion at a time, and nothing more while the client does not read.
//!
//! The server answers all requests that it has read of a connection in one go, and keeps the answers until they are sent.
//! Ten clients who sent requests of forty bytes without end, and read nothing, kept everybody else waiting for six seconds
//! and took ten megabytes each, without a key.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// Bytes that are read of a connection before it is the others' turn: some fifty requests of the smallest kind. A body is
/// read in larger portions, each twice the one before, as long as nothing is answered.
const PORTION: usize = 2 << 10;
const LARGEST_PORTION: usize = 64 << 10;

/// Once the process stops, a client that takes nothing for so long is cut off: its connection would keep the process, which
/// accepts nobody any more, for the whole of the time that calls have to be answered in.
const UNREAD_AT_STOP: Duration = Duration::from_secs(3);

/// A connection that is read as above, until it is upgraded.
pub struct Paced {
    line: TcpStream,
    upgraded: Upgraded,
    /// Bytes that are read in a turn.
    portion: usize,
    /// Those that were read in this one.
    read: usize,
    /// The system takes no more of what is written.
    is_unread: bool,
    /// Nothing was read because of that.
    is_owed: bool,
    /// Cancelled when the process has been told to stop.
    stopping: CancellationToken,
    /// Ends when the client has taken nothing for too long. There while it takes nothing.
    given_up: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

/// Said of a connection whose two directions have become independent.
#[derive(Debug, Clone, Default)]
pub struct Upgraded(Rc<Cell<bool>>);

impl Upgraded {
    pub fn say(&self) {
        self.0.set(true);
    }
}

impl Paced {
    pub fn new(line: TcpStream, stopping: CancellationToken) -> Self {
        let upgraded = Upgraded::default();
        Self { line, upgraded, portion: PORTION, read: 0, is_unread: false, is_owed: false, stopping, given_up: None }
    }

    pub fn line(&self) -> &TcpStream {
        &self.line
    }

    pub fn upgraded(&self) -> Upgraded {
        self.upgraded.clone()
    }
}

async fn given_up(stopping: CancellationToken) {
    stopping.cancelled_owned().await;
    tokio::time::sleep(UNREAD_AT_STOP).await;
}

impl AsyncRead for Paced {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.upgraded.0.get() {
            if this.is_unread {
                this.is_owed = true;
                return Poll::Pending;
            }
            if this.read >= this.portion {
                this.read = 0;
                this.portion = (this.portion * 2).min(LARGEST_PORTION);
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        let most = buffer.remaining().min(this.portion);
        let mut portion = ReadBuf::new(buffer.initialize_unfilled_to(most));
        let polled = Pin::new(&mut this.line).poll_read(context, &mut portion);
        let count = portion.filled().len();
        buffer.advance(count);
        this.read = if polled.is_pending() { 0 } else { this.read + count };
        polled
    }
}

impl AsyncWrite for Paced {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.line).poll_write(context, bytes);
        this.portion = PORTION;
        this.is_unread = polled.is_pending();
        if this.is_unread {
            let stopping = &this.stopping;
            let given_up = this.given_up.get_or_insert_with(|| Box::pin(given_up(stopping.clone())));
            ready!(given_up.as_mut().poll(context));
            this.given_up = None;
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        this.given_up = None;
        if std::mem::take(&mut this.is_owed) {
            // Nobody else tells of what has come meanwhile.
            context.waker().wake_by_ref();
        }
        polled
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().line).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().line).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use futures_util::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use weir_shared::clock::Stopwatch;

    use super::*;

    async fn pair() -> (Paced, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Paced::new(listener.accept().await.unwrap().0, CancellationToken::new()), client)
    }

    #[tokio::test]
    async fn others_have_their_turn_after_each_portion() {
        let (mut server, mut client) = pair().await;
        client.write_all(&[1; 20 * PORTION]).await.unwrap();
        // What is read before it is somebody else's turn.
        let portion = async |server: &mut Paced| {
            let (mut buffer, mut got) = ([0; 1_000], 0);
            server.line.readable().await.unwrap();
            while let Some(count) = server.read(&mut buffer).now_or_never() {
                got += count.unwrap();
            }
            got
        };
        let about = |bytes: usize| bytes..bytes + 1_000;
        assert!(about(PORTION).contains(&portion(&mut server).await));
        assert!(about(2 * PORTION).contains(&portion(&mut server).await));
        assert!(about(4 * PORTION).contains(&portion(&mut server).await));
        server.write_all(b"answer").await.unwrap();
        assert!(about(PORTION).contains(&portion(&mut server).await));
    }

    #[tokio::test]
    async fn nothing_is_read_of_who_does_not_read_until_it_does() {
        let (mut server, mut client) = pair().await;
        client.write_all(b"more").await.unwrap();
        server.line.readable().await.unwrap();
        while server.write(&[0; 1 << 16]).now_or_never().is_some() {}
        assert!(server.read(&mut [0; 8]).now_or_never().is_none());
        let upgraded = server.upgraded();
        let (mut reading, mut writing) = tokio::io::split(server);
        // It goes on by itself once the client reads.
        let writes = async { writing.write_all(&[0; 1 << 10]).await.unwrap() };
        let reads = async {
            let mut buffer = [0; 8];
            let count = reading.read(&mut buffer).await.unwrap();
            buffer[..count].to_vec()
        };
        let drains = async {
            let mut sink = vec![0; 1 << 20];
            while client.read(&mut sink).await.unwrap() > 0 {}
        };
        let all = async { tokio::join!(reads, writes).0 };
        let read = tokio::select! {
            read = all => read,
            () = drains => unreachable!("the server does not hang up"),
        };
        assert_eq!(read, b"more");
        // An upgraded one is read whatever its client does.
        upgraded.say();
        client.write_all(b"even so").await.unwrap();
        while writing.write(&[0; 1 << 16]).now_or_never().is_some() {}
        let mut buffer = [0; 16];
        assert_eq!(reading.read(&mut buffer).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn who_takes_nothing_while_the_process_stops_is_cut_off_and_who_takes_little_is_not() {
        let fill = async |server: &mut Paced| while server.write(&[0; 1 << 16]).now_or_never().is_some() {};
        let (mut silent, client) = pair().await;
        let (mut slow, mut reader) = pair().await;
        for server in [&mut silent, &mut slow] {
            fill(server).await;
            server.stopping.cancel();
        }
        let began = Stopwatch::start();
        let cut = silent.write(&[0]).await.unwrap_err();
        assert_eq!((cut.kind(), began.elapsed() >= UNREAD_AT_STOP), (io::ErrorKind::TimedOut, true), "{cut}");
        drop(client);
        // Its time begins anew with what it takes.
        assert!(slow.write(&[0]).now_or_never().is_none());
        let takes = async {
            tokio::time::sleep(UNREAD_AT_STOP / 2).await;
            let mut sink = vec![0; 1 << 20];
            while reader.read(&mut sink).await.unwrap() > 0 {}
        };
        tokio::select! {
            written = slow.write(&[0]) => assert_eq!(written.unwrap(), 1),
            () = takes => unreachable!("the server does not hang up"),
        }
        assert!(slow.given_up.is_none());
    }
}
