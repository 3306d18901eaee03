//! What the runners ask of a box, and what they find in one.
//!
//! In a box: the root is read-only; [`HOME`] and [`TMP`] are writable and the same in all code boxes of a session;
//! `127.0.0.1:9222` is the session's filtered CDP; `127.0.0.1:3128` is the egress proxy; nothing else is on the network.

use std::path::PathBuf;

use async_trait::async_trait;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use crate::sandbox::CodeHandle;

/// Where code finds the session's DevTools protocol.
pub const CDP_URL: &str = "ws://127.0.0.1:9222/";
/// Where code finds the proxy, its only way out of the box.
pub const PROXY_URL: &str = "http://127.0.0.1:3128";
/// The home and working directory of code.
pub const HOME: &str = crate::sandbox::HOME;
/// Temporary files. agent-browser's daemon writes screenshots here from another box than the one that reads them, so all
/// boxes of a session must see the same. Outside it must lie where code cannot replace it by a link.
pub const TMP: &str = "/tmp";
/// What [`super::Assets`] binds lies here.
pub const ASSETS: &str = "/opt/weir";

/// A program to start in a box of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Program and arguments, as paths inside the box.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// Read-only binds, outside to inside.
    pub binds: Vec<(PathBuf, String)>,
}

/// Makes the code boxes of one session.
#[async_trait]
pub trait StartBox: Send + Sync + std::fmt::Debug {
    /// Starts `program` in a new box with its working directory at [`HOME`], standard input empty and a control socket
    /// as descriptor 3.
    ///
    /// # Errors
    /// When there is no box. Nothing of it is left then.
    async fn start(&self, program: Program) -> anyhow::Result<StartedBox>;
}

/// A box whose program runs.
#[derive(Debug)]
pub struct StartedBox {
    /// The other end of the program's descriptor 3.
    pub control: UnixStream,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
    pub handle: Box<dyn BoxHandle>,
}

/// Ends a box, or tells that it has ended. Dropping it ends the box as well.
#[async_trait]
pub trait BoxHandle: Send + Sync + std::fmt::Debug {
    /// Resolves when the program has ended: its exit code, 128 and the number of the signal that ended it, or `None`
    /// when that is not known.
    async fn exited(&self) -> Option<i32>;
    /// Kills everything in the box and returns when it is gone.
    async fn kill(&self);
}

#[async_trait]
impl BoxHandle for CodeHandle {
    async fn exited(&self) -> Option<i32> {
        Self::exited(self).await
    }

    async fn kill(&self) {
        Self::kill(self).await;
    }
}
