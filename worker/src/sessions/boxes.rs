//! The boxes of a session, as those who run code need them.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use weir_shared::descriptors;

use crate::exec::{self, Program, StartBox, StartedBox};
use crate::relay;
use crate::sandbox::{self, CodeBox, CodeSpec, Exit, Sandbox, SessionDir};

/// Descriptors of the boxes themselves: pipes, sockets and listeners.
const OWN: usize = 64;
// What a session's boxes, clients and viewers may hold is no more than machines are asked for: a connection through a box
// takes two, and so does a client of the relay.
const _: () = assert!(
    OWN + 2 * (sandbox::SESSION_CONNECTIONS + relay::CLIENTS) + relay::live::VIEWERS
        <= descriptors::PER_SESSION as usize
        && sandbox::CDP_CONNECTIONS > relay::CLIENTS
);

/// The code boxes of one session.
pub(super) struct Boxes {
    pub sandbox: Arc<Sandbox>,
    pub dir: Arc<SessionDir>,
    /// Where code cannot replace it by a link.
    pub tmp: PathBuf,
    pub cdp: PathBuf,
    pub exit: Exit,
}

impl std::fmt::Debug for Boxes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Boxes")
    }
}

#[async_trait]
impl StartBox for Boxes {
    async fn start(&self, program: Program) -> anyhow::Result<StartedBox> {
        let spec = CodeSpec {
            program: program.argv,
            env: program.env,
            binds: program.binds,
            sockets: vec![(self.tmp.clone(), exec::TMP.to_owned())],
            cdp: Some(self.cdp.clone()),
            exit: self.exit,
            ..CodeSpec::default()
        };
        let CodeBox { control, stdout, stderr, handle } = self.sandbox.start_code(&self.dir, spec).await?;
        Ok(StartedBox { control, stdout, stderr, handle: Box::new(handle) })
    }
}
