//! Chromium in a box: the browser of one session, or one of the scraping pool.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::DropGuard;

use super::bwrap::Layout;
use super::cgroup::Bounds;
use super::chromium::{self, Found, Version, find_chromium};
use super::running::{Handed, Running};
use super::wire::{Kind, Order};
use super::{
    AD_FREE_PORT, CDP_PORT, EgressDoor, HOME, OWN_PORTS, PROXY_PORT, RefusedHosts, SESSION_NICENESS, Sandbox,
    SandboxError, SessionDir, UPSTREAM_PORTS,
};
use crate::process;

/// Bounds of a session's browser. A page that needs more loses its renderer first.
const SESSION_BOUNDS: Bounds = Bounds { memory: 1_536 << 20, processes: 300, cpus: None, niceness: SESSION_NICENESS };

/// Bounds of a browser that renders many pages at once. It is replaced at three quarters of the memory, and a page that
/// takes half of it ends before the box's bound is met.
const PAGES_BOUNDS: Bounds = Bounds { memory: 2 << 30, processes: 2_000, cpus: None, niceness: 0 };

/// `/dev/shm` smaller than this is not used, bytes. A box has one of its own.
const SHM_NEEDED: u64 = 512 << 20;

/// Open files of each process.
const FILES: u64 = 4096;

/// Largest file that a session may download or store, bytes.
const FILE_SIZE: u64 = 1 << 30;

/// Longest time from the start of Chromium to its readiness. Cold under load took up to 1.9 s.
const START_LIMIT: std::time::Duration = std::time::Duration::from_secs(20);

/// Open connections of a browser to the egress proxy; further ones wait. Chromium itself opens at most 32 to a
/// proxy, more by WebSockets.
pub(super) const CONNECTIONS: usize = 256;

/// The same of one page that has a way out of its own.
const PAGE_CONNECTIONS: usize = 64;

/// Ways out that one page each can take, at most.
const OWN_EXITS: u16 = 100;

/// The profile as the box sees it.
const PROFILE: &str = "/profile";

/// What a browser is for; it decides flags, bounds and ways out.
#[derive(Debug, Clone)]
pub enum Purpose {
    /// A session: its owner drives it.
    Session {
        /// Window, CSS pixels.
        window: (u32, u32),
    },
    /// Pages of the scraping pool.
    Pages {
        /// Whether pictures and fonts are loaded.
        has_pictures: bool,
        /// Ways out that pages can take for themselves ([`Sandbox::own_exit`]), 100 at most.
        own_exits: u16,
    },
}

/// Which way a session leaves its boxes by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exit {
    /// The place of the operator's proxy that it goes on through; `None`: it connects by itself.
    pub upstream: Option<usize>,
    /// The hosts of ads and trackers are refused.
    pub refuses_ads: bool,
}

/// A browser to start.
#[derive(Debug, Clone)]
pub struct BrowserSpec {
    /// What it is for.
    pub purpose: Purpose,
    /// A session's way out; `None`: it has none until [`Sandbox::let_out`].
    pub exit: Option<Exit>,
    /// Further flags, for tests and odd hosts.
    pub extra_flags: Vec<String>,
}

impl BrowserSpec {
    /// A session's, with the window most have.
    pub fn session() -> Self {
        let purpose = Purpose::Session { window: (1280, 720) };
        Self { purpose, exit: Some(Exit::default()), extra_flags: Vec::new() }
    }
}

/// A running Chromium in its box. Dropping it kills everything in the box.
#[derive(Debug)]
pub struct BrowserBox {
    pub(super) running: Running,
    port: u16,
    ws_path: String,
    egress: Egress,
}

/// The ways out of a browser's box.
#[derive(Debug)]
struct Egress {
    /// The one that lets everything public through, or a session's only one.
    proxy: SocketAddr,
    /// Those through the operator's proxies: two for each, the one without a filter first.
    upstreams: Vec<SocketAddr>,
    /// Those that pages take for themselves.
    own: Vec<Arc<OpenExit>>,
    _doors: Vec<DropGuard>,
    /// Of a session's browser, whose way out is chosen when the session is known.
    exit: Option<OpenExit>,
}

impl Egress {
    /// Serves what the box has handed out for each port; without a door, when there is one.
    fn open(ports: Vec<(u16, Option<&EgressDoor>)>, handed: &mut Handed) -> io::Result<Self> {
        let (mut proxy, mut exit) = (None, None);
        let (mut upstreams, mut own, mut doors) = (Vec::new(), Vec::new(), Vec::new());
        for (port, door) in ports {
            let socket = handed.next().ok_or_else(|| io::Error::other("the box handed out too little"))?;
            let listener = std::net::TcpListener::from(socket);
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            proxy = proxy.or(Some(address));
            if port >= UPSTREAM_PORTS {
                upstreams.push(address);
            }
            match door {
                Some(door) => doors.push(door(TcpListener::from_std(listener)?, places(CONNECTIONS), None)),
                None if port < PROXY_PORT => own.push(Arc::new(OpenExit { listener, door: Mutex::default() })),
                None => exit = Some(OpenExit { listener, door: Mutex::default() }),
            }
        }
        let proxy = proxy.ok_or_else(|| io::Error::other("a browser needs a way out"))?;
        Ok(Self { proxy, upstreams, own, _doors: doors, exit })
    }
}

fn places(connections: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(connections))
}

/// A way out that can be changed.
#[derive(Debug)]
struct OpenExit {
    listener: std::net::TcpListener,
    /// What serves it; `None`: nothing yet, and connections wait.
    door: Mutex<Option<DropGuard>>,
}

impl OpenExit {
    fn current(&self) -> MutexGuard<'_, Option<DropGuard>> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the next door serves.
    fn listener(&self) -> io::Result<TcpListener> {
        TcpListener::from_std(self.listener.try_clone()?)
    }
}

/// A way out of a browser that one page has for itself. Dropping it closes every connection by it.
#[derive(Debug)]
pub struct OwnExit {
    exit: Arc<OpenExit>,
    address: SocketAddr,
}

impl OwnExit {
    /// The proxy, as the browser sees it.
    pub fn proxy(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for OwnExit {
    fn drop(&mut self) {
        drop(self.exit.current().take());
    }
}

impl BrowserBox {
    /// A connection to the debugging port (HTTP and WebSocket).
    ///
    /// # Errors
    /// When Chromium has ended or does not answer.
    pub async fn connect(&self) -> io::Result<TcpStream> {
        let stream = self.running.connect(self.port).await?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        TcpStream::from_std(stream)
    }

    /// Path of the browser's own WebSocket, `/devtools/browser/<uuid>`.
    pub fn ws_path(&self) -> &str {
        &self.ws_path
    }

    /// The proxy that lets everything public through, as the browser sees it.
    pub fn proxy(&self) -> SocketAddr {
        self.egress.proxy
    }

    /// The proxy that goes on through the operator's at `place`, as the browser sees it.
    pub fn upstream(&self, place: usize, refuses_ads: bool) -> Option<SocketAddr> {
        self.egress.upstreams.get(2 * place + usize::from(refuses_ads)).copied()
    }

    /// Has `door` serve the browser's way out from now on.
    pub(super) fn leave_by(&self, door: &EgressDoor, refused: Option<RefusedHosts>) -> io::Result<()> {
        let exit = self.egress.exit.as_ref().ok_or_else(|| io::Error::other("this browser's ways out are fixed"))?;
        let listener = exit.listener()?;
        let mut current = exit.current();
        // The former one ends first, or it would take some of the connections.
        drop(current.take());
        *current = Some(door(listener, places(CONNECTIONS), refused));
        Ok(())
    }

    /// A way out for one page, served by `door`.
    pub(super) fn lend_exit(&self, door: &EgressDoor, refused: RefusedHosts) -> Result<OwnExit, SandboxError> {
        for exit in &self.egress.own {
            let mut current = exit.current();
            if current.is_none() {
                let (listener, address) = (exit.listener()?, exit.listener.local_addr()?);
                *current = Some(door(listener, places(PAGE_CONNECTIONS), Some(refused)));
                return Ok(OwnExit { exit: Arc::clone(exit), address });
            }
        }
        Err(SandboxError::Failed("every way out for one page is taken".to_owned()))
    }

    /// The same where the kernel counts it, which is cheap; `None` where it does not.
    pub async fn counted_memory(&self) -> Option<u64> {
        self.running.counted_memory().await
    }

    /// Memory of all in the box, bytes.
    pub async fn memory(&self) -> u64 {
        self.running.memory().await
    }

    /// Resolves when nothing of the box is left, by whatever cause. Many may wait.
    pub async fn exited(&self) {
        self.running.exited().await;
    }

    /// Whether the box has ended.
    pub fn has_exited(&self) -> bool {
        self.running.has_exited()
    }

    /// Kills everything in the box and waits until nothing of it is left.
    pub async fn kill(&self) {
        self.running.kill().await;
    }

    /// The box's first process as the host sees it, for fault tests.
    pub fn pid(&self) -> Option<u32> {
        self.running.pid()
    }
}

pub(super) async fn start(sandbox: &Sandbox, dir: &SessionDir, spec: BrowserSpec) -> Result<BrowserBox, SandboxError> {
    let found = find_chromium(sandbox.config.chromium.as_deref());
    let found = found.ok_or_else(|| SandboxError::Refused(sandbox.no_chromium()))?;
    let is_boxed = sandbox.status.boxed;
    let (profile, home) = if is_boxed {
        (PROFILE.to_owned(), HOME.to_owned())
    } else {
        (dir.home.display().to_string(), dir.work.display().to_string())
    };
    let config = &sandbox.config;
    let (flags, bounds, ports): (_, _, Vec<(u16, Option<&EgressDoor>)>) = match spec.purpose {
        Purpose::Session { window } => {
            let version = sandbox.version.get_or_init(|| Version::of_program(&found.path)).await;
            let name = version.as_ref().map(|version| version.user_agent(false));
            let flags = chromium::session_flags(found.kind, window, name.as_deref(), PROXY_PORT);
            (flags, &SESSION_BOUNDS, vec![(PROXY_PORT, None)])
        }
        Purpose::Pages { has_pictures, own_exits } => {
            let flags = chromium::page_flags(found.kind, has_pictures, AD_FREE_PORT);
            // The first is the one without a filter.
            let mut ports = vec![(PROXY_PORT, Some(&config.egress)), (AD_FREE_PORT, Some(&config.ad_free))];
            ports.extend((UPSTREAM_PORTS..).zip(config.upstreams.iter().flatten().map(Some)));
            ports.extend((OWN_PORTS..).take(own_exits.min(OWN_EXITS).into()).map(|port| (port, None)));
            (flags, &PAGES_BOUNDS, ports)
        }
    };
    let order = Order {
        is_boxed,
        kind: Kind::Browser,
        argv: command_line(sandbox, &found, flags, &profile, spec.extra_flags),
        env: [("PATH", "/usr/bin:/bin"), ("HOME", &*home), ("LANG", "C.UTF-8"), ("TMPDIR", "/tmp")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        cwd: home,
        limits: sandbox.process_limits(bounds, FILES, FILE_SIZE),
        proxy_ports: ports.iter().map(|(port, _)| *port).collect(),
        cdp_port: None,
    };
    let mut layout = Layout {
        read_only: Vec::new(),
        writable: vec![(dir.home.clone(), PROFILE.to_owned())],
        nests: true,
        tmp: 512 << 20,
        shm: 1 << 30,
        cwd: HOME,
    };
    if let Some(folder) = found.path.parent().filter(|folder| !folder.starts_with("/usr")) {
        layout.read_only.push((folder.to_owned(), folder.display().to_string()));
    }
    let (running, mut handed) = sandbox.start(dir, &layout, bounds, order).await?;
    let egress = Egress::open(ports, &mut handed)?;
    let Ok(address) = tokio::time::timeout(START_LIMIT, running.devtools()).await else {
        running.kill().await;
        return Err(SandboxError::Failed(format!("Chromium did not start within {START_LIMIT:?}")));
    };
    let place = address.as_deref().and_then(place_of);
    let Some((port, ws_path)) = place else {
        running.kill().await;
        return Err(SandboxError::Failed(format!("Chromium ended at start: {}", running.last_words().await)));
    };
    let browser = BrowserBox { running, port, ws_path, egress };
    if let Some(exit) = spec.exit {
        sandbox.let_out(&browser, exit, None)?;
    }
    Ok(browser)
}

/// The program with its flags: those of its purpose, those that follow from the machine and the configuration, `extra`.
fn command_line(
    sandbox: &Sandbox,
    found: &Found,
    flags: Vec<String>,
    profile: &str,
    extra: Vec<String>,
) -> Vec<String> {
    let is_boxed = sandbox.status.boxed;
    let mut argv = vec![found.path.display().to_string()];
    argv.extend(flags);
    argv.push(format!("--user-data-dir={profile}"));
    argv.push(format!("--remote-debugging-port={}", if is_boxed { CDP_PORT } else { 0 }));
    if !is_boxed {
        argv.push("--no-sandbox".to_owned());
        if process::shm_size() < SHM_NEEDED {
            // Containers often have 64 MiB of /dev/shm, which ends in crashed pages.
            argv.push("--disable-dev-shm-usage".to_owned());
        }
    }
    let ports = &sandbox.config.allow_ports;
    if !ports.is_empty() {
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        argv.push(format!("--explicitly-allowed-ports={}", ports.join(",")));
    }
    argv.extend(extra);
    argv.push("about:blank".to_owned());
    argv
}

/// Port and path of `ws://127.0.0.1:PORT/PATH`.
fn place_of(address: &str) -> Option<(u16, String)> {
    let (host, path) = address.strip_prefix("ws://")?.split_once('/')?;
    let (_, port) = host.rsplit_once(':')?;
    Some((port.parse().ok()?, format!("/{path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_and_path_come_from_the_announced_address() {
        let place = place_of("ws://127.0.0.1:9222/devtools/browser/a-b");
        assert_eq!(place, Some((9222, "/devtools/browser/a-b".to_owned())));
        assert!(place_of("http://127.0.0.1:9222/x").is_none());
    }
}
