//! Boxes for what is not trusted: every browser, and the code that users send.
//!
//! ```text
//! Sandbox        what this machine can do, this worker's directory, the users of sessions
//!   SessionDir (dir)         one session, or one browser of the scraping pool: its directory and its own user
//!   BrowserBox (browser)     Chromium in a box, its own sandbox on inside
//!     chromium               which program that is, its version, its flags
//!   CodeBox (code)           a program in a box, with a filter of system calls
//!     Running (running)      one box from start to end: bwrap, cgroup or else watch, wire
//!     boxed, seccomp         its first process, inside
//! process        what the kernel says about processes, and their end
//! ```
//!
//! A box has an unprivileged user, namespaces of its own, no network, no files but the system's programs and the
//! session's own directories, and bounds of memory, processes and time. Its one way out is the egress proxy, which
//! listens on its loopback at [`PROXY`]; code also finds the session's browser there, at [`CDP`].
//!
//! Nothing runs without a box unless [`SandboxMode::Off`] was configured. A machine that cannot make boxes says
//! why and starts nothing.
//!
//! The crate knows nothing of pages, sessions or the protocol that drives a browser: who starts a box gives it its way
//! out ([`EgressDoor`]) and drives what runs in it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::{OnceCell, Semaphore};
use tokio_util::sync::DropGuard;
use tokio_util::task::task_tracker::TaskTrackerToken;

mod boxed;
mod browser;
mod bwrap;
mod cgroup;
mod chromium;
mod code;
mod dir;
mod disk;
pub mod process;
mod run_dir;
mod running;
mod seccomp;
#[cfg(test)]
mod tests;
mod watch;
mod wire;

pub use boxed::main as box_main;
pub use browser::{BrowserBox, BrowserSpec, Exit, OwnExit, Purpose};
pub use cgroup::LimitsKind;
pub use chromium::{ChromiumKind, Found, Version, find_chromium};
pub use code::{CodeBox, CodeHandle, CodeLimits, CodeSpec};
pub use dir::SessionDir;
pub use disk::{Disk, DiskUse};

use cgroup::{Bounds, Cgroups};
use dir::{Users, WorkerDir};
use running::{Handed, Plan, Running, Wrapper};
use watch::Watcher;
use wire::{Order, ProcessLimits};

/// First argument of the worker's program that makes it the first process of a box.
pub const BOX_ARGUMENT: &str = "__box";

/// The session's `work` directory as its boxes see it, and the home of code.
pub const HOME: &str = "/home/user";

/// The egress proxy inside a box, `host:port`.
pub const PROXY: &str = "127.0.0.1:3128";

/// The browser's debugging port inside a box, `host:port`. In code boxes the worker answers there.
pub const CDP: &str = "127.0.0.1:9222";

const PROXY_PORT: u16 = 3128;
/// The proxy without ads, in the boxes of the scraping pool.
const AD_FREE_PORT: u16 = 3129;
/// The first of two for each of the operator's proxies, likewise.
const UPSTREAM_PORTS: u16 = 3200;
/// The first of those that a page takes for itself, likewise; they end below [`PROXY_PORT`].
const OWN_PORTS: u16 = 2800;
const CDP_PORT: u16 = 9222;

/// Connections that the boxes of a session may have open through this process, all together. Each takes two descriptors.
pub const SESSION_CONNECTIONS: usize = browser::CONNECTIONS + code::CONNECTIONS + CDP_CONNECTIONS;
/// Those among them that lead to the session's browser.
pub const CDP_CONNECTIONS: usize = 72;

/// How far the boxes of a session, which its owner may keep busy for hours, step back behind the worker and the pages of all
/// others: beside one of those that also wants a core they have a quarter of it, and all of one that nobody wants.
const SESSION_NICENESS: u8 = 5;

/// How long the probe at start may take.
const PROBE_LIMIT: Duration = Duration::from_secs(20);

/// Whether boxes are required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxMode {
    /// Required, with bounds for each box as a whole: nothing starts without a box, no session without the bounds.
    Strict,
    /// Required, but where a box cannot be bounded as a whole each of its processes is, by itself.
    Degraded,
    /// Off, for hosts that allow no user namespaces. Pages and code then run with the rights of an ordinary user.
    Off,
}

/// What serves the way out of a box. Called with a listener on the box's loopback and the places for connections through
/// it, which listeners may share, it serves that listener until the guard is dropped, without the hosts that are refused
/// to it. The egress proxy of `weir-fetch` hands out such doors.
pub type EgressDoor = Arc<dyn Fn(TcpListener, Arc<Semaphore>, Option<RefusedHosts>) -> DropGuard + Send + Sync>;

/// Which hosts one way out refuses whatever its door lets through, on which port: names in small letters.
pub type RefusedHosts = Arc<dyn Fn(&str, u16) -> bool + Send + Sync>;

/// How a sandbox is made.
pub struct SandboxConfig {
    /// Where directories of sessions are made: the first of these places that is ours alone and lets the users of boxes
    /// through.
    pub run_dirs: Vec<PathBuf>,
    /// Whether boxes are required.
    pub mode: SandboxMode,
    /// The proxy that is every box's way out.
    pub egress: EgressDoor,
    /// The same without the hosts of ads and trackers.
    pub ad_free: EgressDoor,
    /// Both again for each of the operator's proxies, which they go on through.
    pub upstreams: Vec<[EgressDoor; 2]>,
    /// Ports that browsers would refuse, and are not to.
    pub allow_ports: Vec<u16>,
    /// The browser's program; absent: searched for.
    pub chromium: Option<PathBuf>,
    /// The program that understands [`BOX_ARGUMENT`]; absent: this one.
    pub program: Option<PathBuf>,
}

impl SandboxConfig {
    /// The door of a way out. A proxy of the operator's that is not there is never replaced by none.
    fn door(&self, exit: Exit) -> Result<&EgressDoor, SandboxError> {
        let [open, ad_free] = match exit.upstream {
            None => [&self.egress, &self.ad_free],
            Some(place) => {
                let missing = || SandboxError::Failed("there is no proxy at this place".to_owned());
                self.upstreams.get(place).ok_or_else(missing)?.each_ref()
            }
        };
        Ok(if exit.refuses_ads { ad_free } else { open })
    }
}

/// What was found on this machine.
#[derive(Debug, Clone)]
pub struct SandboxStatus {
    /// What keeps boxes within their bounds.
    pub limits: LimitsKind,
    /// `false`: by configuration there are no boxes.
    pub boxed: bool,
    /// The browser's program.
    pub chromium: Option<PathBuf>,
}

/// Why a box was not started.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// This machine cannot; in a sentence for operators.
    #[error("{0}")]
    Refused(String),
    /// This time it did not work.
    #[error("{0}")]
    Failed(String),
    /// The system refused a descriptor, a directory or the like.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Starts boxes. One for a worker; dropping it does not end boxes.
pub struct Sandbox {
    config: SandboxConfig,
    status: SandboxStatus,
    worker_dir: WorkerDir,
    users: Arc<Users>,
    cgroups: Cgroups,
    /// Keeps boxes within their bounds where there are no cgroups.
    watcher: Watcher,
    /// bubblewrap, unless boxes are off or it is missing.
    bwrap: Option<PathBuf>,
    /// The first program of every box.
    program: PathBuf,
    /// The version that browsers of sessions are named by, once one was started.
    version: OnceCell<Option<Version>>,
    counter: AtomicU64,
}

impl Sandbox {
    /// Sweeps what dead workers left and finds out what this machine has. Takes some milliseconds, on a thread that
    /// may block. Whether boxes work is for [`Sandbox::probe`] to say.
    ///
    /// # Errors
    /// When the run directory cannot be used.
    pub fn prepare(config: SandboxConfig) -> anyhow::Result<Self> {
        // What a box that loses its outer process leaves comes to us.
        process::adopt_orphans();
        let worker_dir = WorkerDir::prepare(&config.run_dirs)?;
        let own = PathBuf::from("/proc/self/exe");
        let program = worker_dir.install(config.program.as_deref().unwrap_or(&own))?;
        let cgroups = Cgroups::detect();
        worker_dir.record_cgroups(cgroups.dirs())?;
        let boxed = config.mode != SandboxMode::Off;
        let found = find_chromium(config.chromium.as_deref());
        let status =
            SandboxStatus { limits: cgroups.kind(), boxed, chromium: found.as_ref().map(|found| found.path.clone()) };
        let bwrap =
            ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"].iter().map(PathBuf::from).find(|p| p.exists());
        let users = Arc::new(Users::prepare()?);
        if !boxed {
            tracing::warn!(
                "the sandbox is OFF by configuration: pages and users' code run with the rights of an ordinary user of this machine"
            );
        }
        match cgroups.kind() {
            LimitsKind::CgroupV2 | LimitsKind::CgroupV1 => {}
            LimitsKind::Watched => tracing::warn!(
                "no cgroup can be used: a watcher keeps boxes within their memory and processes, a moment late, and \
                 nothing bounds their processor time ({DELEGATE})"
            ),
            LimitsKind::Rlimits => tracing::warn!(
                "no cgroup can be used and processes cannot be watched: boxes are limited process by process only ({DELEGATE})"
            ),
        }
        Ok(Self {
            config,
            status,
            worker_dir,
            users,
            cgroups,
            watcher: Watcher::default(),
            bwrap,
            program,
            version: OnceCell::new(),
            counter: AtomicU64::new(0),
        })
    }

    /// Ends and removes what dead workers left in the first of these run directories that can be used, as `prepare` does,
    /// for a worker that cannot prepare its sandbox yet.
    ///
    /// # Errors
    /// When no run directory can be used.
    pub fn bury_the_dead(run_dirs: &[PathBuf]) -> anyhow::Result<()> {
        dir::bury_the_dead(run_dirs).map(drop)
    }

    /// What was found.
    pub fn status(&self) -> &SandboxStatus {
        &self.status
    }

    /// Where programs that boxes for code are given may be written; the folder is made by whoever does. It goes with
    /// the sandbox, whoever still holds what lies in it: a process that ends does not wait for all of its threads.
    /// Hold the token while writing. `None`: the sandbox is closing.
    pub fn programs(&self) -> Option<(PathBuf, TaskTrackerToken)> {
        let token = self.worker_dir.remains.token();
        (!self.worker_dir.remains.is_closed()).then(|| (self.worker_dir.programs(), token))
    }

    /// A directory of its own for a session, with a user of its own. `name`: letters, digits, `-` and `_`.
    ///
    /// # Errors
    /// When the name is taken, the run directory's path is too long, or no user is free.
    pub fn session_dir(&self, name: &str) -> anyhow::Result<SessionDir> {
        SessionDir::create(&self.worker_dir, &self.users, name)
    }

    /// Waits until every box and every directory of a session is gone, for `limit` at most. Their owners must have let
    /// go of them; no further directory can be had.
    pub async fn close(&self, limit: Duration) {
        let remains = &self.worker_dir.remains;
        remains.close();
        if tokio::time::timeout(limit, remains.wait()).await.is_err() {
            tracing::warn!(left = remains.len(), "boxes are left to the next worker of this machine");
            return;
        }
        // Now: threads that the process does not wait for may hold the sandbox to its end.
        self.cgroups.remove();
        self.worker_dir.remove();
    }

    /// Starts Chromium; it answers on its debugging port when this returns.
    ///
    /// # Errors
    /// When this machine cannot, or Chromium does not come up; the text says why as far as it can be found out.
    pub async fn start_browser(&self, dir: &SessionDir, spec: BrowserSpec) -> Result<BrowserBox, SandboxError> {
        browser::start(self, dir, spec).await
    }

    /// Gives a session's browser its way out, or another one than it had: connections by the former end. It never leads
    /// to the hosts that are `refused`.
    ///
    /// # Errors
    /// When there is no such way. The browser keeps the one that it had.
    pub fn let_out(&self, browser: &BrowserBox, exit: Exit, refused: Option<RefusedHosts>) -> Result<(), SandboxError> {
        browser.leave_by(self.config.door(exit)?, refused)?;
        Ok(())
    }

    /// A way out of a browser of the scraping pool for one page alone, which never leads to the hosts that are `refused`.
    ///
    /// # Errors
    /// When there is no such way, or all that the browser has are taken.
    pub fn own_exit(&self, browser: &BrowserBox, exit: Exit, refused: RefusedHosts) -> Result<OwnExit, SandboxError> {
        browser.lend_exit(self.config.door(exit)?, refused)
    }

    /// Starts a program in a code box.
    ///
    /// # Errors
    /// When this machine cannot, or the program cannot be started.
    pub async fn start_code(&self, dir: &SessionDir, spec: CodeSpec) -> Result<CodeBox, SandboxError> {
        code::start(self, dir, spec).await
    }

    /// Starts one box with its bounds around an order.
    async fn start(
        &self,
        dir: &SessionDir,
        layout: &bwrap::Layout<'_>,
        bounds: &Bounds,
        order: Order,
    ) -> Result<(Running, Handed), SandboxError> {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        let cgroup = self.cgroups.create(&format!("{}-{number}", dir.name), bounds)?;
        let wrapper = if self.status.boxed {
            let Some(bwrap) = self.bwrap.clone() else {
                cgroup.remove();
                return Err(SandboxError::Refused(NO_BWRAP.to_owned()));
            };
            Wrapper::Bubblewrap { bwrap, arguments: bwrap::arguments(&self.program, dir, layout) }
        } else {
            Wrapper::Nothing { program: self.program.clone() }
        };
        Running::start(Plan {
            wrapper,
            user: Arc::clone(&dir.user),
            order,
            cgroup,
            watcher: (self.cgroups.kind() == LimitsKind::Watched).then_some((&self.watcher, *bounds)),
            remains: self.worker_dir.remains.token(),
        })
        .await
    }

    /// Why there is no Chromium, in a sentence for operators.
    pub fn no_chromium(&self) -> String {
        match &self.config.chromium {
            Some(path) => format!("{} is not a program (WEIR_CHROMIUM)", path.display()),
            None => {
                "no Chromium was found: install chromium-headless-shell or chromium, or set WEIR_CHROMIUM".to_owned()
            }
        }
    }

    /// Limits of each process; memory and number only where the box as a whole has no limit.
    fn process_limits(&self, bounds: &Bounds, files: u64, file_size: u64) -> ProcessLimits {
        let alone = !self.cgroups.kind().is_cgroup();
        ProcessLimits {
            files: Some(files),
            file_size: Some(file_size),
            data: alone.then_some(RESERVED * bounds.memory),
            processes: alone.then_some(bounds.processes),
            niceness: bounds.niceness,
        }
    }

    /// Tries one box of each kind, with what will run in it.
    ///
    /// # Errors
    /// Why this machine cannot, in a sentence for operators.
    pub async fn probe(&self) -> Result<(), SandboxError> {
        #[expect(clippy::disallowed_methods, reason = "measured here alone: this crate knows nothing of the service")]
        let began = Instant::now();
        let refuse = |text: String| SandboxError::Refused(text);
        if self.status.boxed && self.bwrap.is_none() {
            return Err(refuse(NO_BWRAP.to_owned()));
        }
        if self.status.chromium.is_none() {
            return Err(refuse(self.no_chromium()));
        }
        if self.config.mode == SandboxMode::Strict && !self.cgroups.kind().is_bound() {
            return Err(refuse(format!(
                "memory and processes of a box cannot be bounded on this machine: {DELEGATE}, or go on without \
                 these bounds by WEIR_SANDBOX=degraded"
            )));
        }
        let dir = self.session_dir("probe").map_err(|e| refuse(format!("{e:#}")))?;
        let code = async {
            let spec = CodeSpec { program: vec!["true".into()], ..CodeSpec::default() };
            let code = code::start(self, &dir, spec).await.map_err(|e| refuse(explain(&e.to_string())))?;
            match code.exited().await {
                Some(0) => Ok(()),
                _ => Err(refuse("a box starts, but a program in it does not end well".to_owned())),
            }
        };
        let browser = async {
            let browser = browser::start(self, &dir, BrowserSpec::session()).await;
            let browser = browser.map_err(|e| refuse(explain(&e.to_string())))?;
            browser.kill().await;
            Ok(())
        };
        let outcome = tokio::time::timeout(PROBE_LIMIT, async { tokio::join!(code, browser) }).await;
        dir.remove().await;
        match outcome {
            Ok((code, browser)) => {
                code.and(browser)?;
                let duration_ms = began.elapsed().as_millis() as u64;
                tracing::info!(limits = self.status.limits.name(), duration_ms, "boxes work");
                Ok(())
            }
            Err(_) => {
                Err(refuse(format!("a trial box did not work within {PROBE_LIMIT:?}: the machine is overloaded")))
            }
        }
    }
}

/// Programs reserve more than they use, Node 633 MB before its first line: where no cgroup counts what a box uses, each of
/// its processes may reserve so many times the box's memory. What is used is bounded by [`watch`].
const RESERVED: u64 = 2;

/// How a worker gets cgroups.
const DELEGATE: &str = "give the worker a cgroup of its own: Delegate=yes in its systemd unit, or start it by \
    systemd-run --user --scope -p Delegate=yes";

const NO_BWRAP: &str = "bubblewrap is missing: install the package bubblewrap (program bwrap)";

/// An error of a start with what an operator can do about it.
pub fn explained(error: SandboxError) -> anyhow::Error {
    anyhow::anyhow!(explain(&error.to_string()))
}

/// What an operator can do about the words of bubblewrap or Chromium.
fn explain(words: &str) -> String {
    let has = |hints: &[&str]| hints.iter().any(|hint| words.contains(hint));
    if has(&["No usable sandbox", "credentials.cc", "setuid sandbox"]) {
        return format!(
            "Chromium's own sandbox cannot start inside a box: nested user namespaces are forbidden on this machine ({words})"
        );
    }
    if has(&["mount proc"]) {
        return format!(
            "this machine lets no box have a /proc of its own, because something is mounted over parts of /proc, as \
             container engines do by default (docker: systempaths=unconfined, podman: unmask=ALL, Kubernetes: procMount \
             Unmasked) ({words})"
        );
    }
    if has(&["namespace", "uid map", "Operation not permitted", "Permission denied"]) {
        return format!(
            "this machine forbids the user namespaces that boxes need, often by a container's seccomp profile, \
             kernel.apparmor_restrict_unprivileged_userns or user.max_user_namespaces ({words})"
        );
    }
    words.to_owned()
}
