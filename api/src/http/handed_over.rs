//! A listening socket from whoever started this process: systemd's `weir.socket`, which holds it while one API process
//! is replaced by the next. Who calls in between waits in its line and is refused by nobody.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, bail};
use listenfd::ListenFd;

/// The socket that was handed over, if there is one.
///
/// # Errors
/// When it is no TCP socket, or listens elsewhere than `WEIR_BIND` says: what may be open to whom is judged by that.
pub fn socket(bind: SocketAddr) -> anyhow::Result<Option<TcpListener>> {
    let mut sockets = ListenFd::from_env();
    if sockets.len() > 1 {
        bail!("{} sockets were handed over, and the API has one address", sockets.len());
    }
    let Some(socket) = sockets.take_tcp_listener(0).context("the socket that was handed over")? else {
        return Ok(None);
    };
    let address = socket.local_addr().context("the socket that was handed over")?;
    if address != bind {
        bail!("the socket that was handed over listens on {address}, WEIR_BIND says {bind}: set both alike");
    }
    Ok(Some(socket))
}
