//! A program in a box: the runners of users' code.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::unix::pipe;
use tokio::net::{TcpListener, UnixStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::bwrap::Layout;
use super::cgroup::Bounds;
use super::running::Running;
use super::wire::{Kind, Order};
use super::{CDP, CDP_PORT, Exit, HOME, PROXY, PROXY_PORT, Sandbox, SandboxError, SessionDir};

/// Open connections of a code box to the egress proxy; further ones wait.
const CONNECTIONS: usize = 128;

/// Bounds of a code box.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CodeLimits {
    /// Memory with temporary files, bytes.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Processor time, cores.
    pub cpus: f64,
    /// Largest file, bytes.
    pub file_size: u64,
    /// Size of `/tmp`, bytes; counts as memory.
    pub tmp: u64,
}

impl Default for CodeLimits {
    fn default() -> Self {
        Self { memory: 640 << 20, processes: 96, cpus: 1.0, file_size: 512 << 20, tmp: 256 << 20 }
    }
}

/// A program to run in a box.
#[derive(Debug, Clone, Default)]
pub struct CodeSpec {
    /// Program and arguments, as the box sees them. It gets descriptor 3 as its control socket.
    pub program: Vec<String>,
    /// Environment beside the box's own (`PATH`, `HOME`, `LANG`, `TMPDIR`, the proxy's variables and `WEIR_CDP`), which it may
    /// replace.
    pub env: Vec<(String, String)>,
    /// Read-only, host to box.
    pub binds: Vec<(PathBuf, String)>,
    /// Its way out. Ads are let through: what code asks for is what its author wants.
    pub exit: Exit,
    /// Unix socket of the host that appears as [`CDP`] in the box.
    pub cdp: Option<PathBuf>,
    /// Writable, host to box. The session's user must be able to reach them.
    pub sockets: Vec<(PathBuf, String)>,
    /// Bounds.
    pub limits: CodeLimits,
}

/// A running program in its box.
#[derive(Debug)]
pub struct CodeBox {
    /// The other end of the program's descriptor 3.
    pub control: UnixStream,
    /// The program's standard output, and that of what it starts.
    pub stdout: pipe::Receiver,
    /// Its standard error.
    pub stderr: pipe::Receiver,
    /// Ends it, or tells that it has ended.
    pub handle: CodeHandle,
}

impl std::ops::Deref for CodeBox {
    type Target = CodeHandle;

    fn deref(&self) -> &CodeHandle {
        &self.handle
    }
}

/// The box of a program without its pipes. Dropping it kills everything in the box.
#[derive(Debug)]
pub struct CodeHandle {
    pub(super) running: Running,
    _egress: DropGuard,
    _cdp: Option<DropGuard>,
}

impl CodeHandle {
    /// Resolves when nothing of the box is left: with the program's exit code, 128 + n when a signal n ended it, or
    /// `None` when the box was killed. Many may wait.
    pub async fn exited(&self) -> Option<i32> {
        self.running.exited().await.code
    }

    /// Kills everything in the box and waits until nothing of it is left.
    pub async fn kill(&self) {
        self.running.kill().await;
    }

    /// Memory of all in the box, bytes.
    pub async fn memory(&self) -> u64 {
        self.running.memory().await
    }
}

pub(super) async fn start(sandbox: &Sandbox, dir: &SessionDir, spec: CodeSpec) -> Result<CodeBox, SandboxError> {
    let limits = spec.limits;
    let door = sandbox.config.door(spec.exit)?;
    let bounds = Bounds { memory: limits.memory, processes: limits.processes, cpus: Some(limits.cpus) };
    let is_boxed = sandbox.status.boxed;
    let home = if is_boxed { HOME.to_owned() } else { dir.work.display().to_string() };
    let mut order = Order {
        is_boxed,
        kind: Kind::Code,
        argv: spec.program,
        env: environment(&home, spec.cdp.is_some()).chain(spec.env).collect(),
        cwd: home,
        limits: sandbox.process_limits(&bounds, 1024, limits.file_size),
        proxy_ports: vec![PROXY_PORT],
        cdp_port: spec.cdp.is_some().then_some(CDP_PORT),
    };
    if !is_boxed {
        // What a box would show elsewhere stays where it is.
        let work = (dir.work.clone(), HOME.to_owned());
        for (host, inside) in spec.binds.iter().chain(&spec.sockets).chain([&work]) {
            let host = host.to_string_lossy();
            for word in order.argv.iter_mut().chain(order.env.iter_mut().map(|(_, value)| value)) {
                *word = word.replace(inside.as_str(), &host);
            }
        }
    }
    let layout = Layout {
        read_only: spec.binds,
        writable: spec.sockets,
        nests: false,
        tmp: limits.tmp,
        shm: 64 << 20,
        cwd: HOME,
    };
    let (running, mut handed) = sandbox.start(dir, &layout, &bounds, order).await?;
    let mut next = || handed.next().ok_or_else(|| io::Error::other("the box handed out too little"));
    let egress = door(listener(next()?)?, CONNECTIONS, None);
    let cdp = match spec.cdp {
        Some(socket) => Some(forward(listener(next()?)?, socket)),
        None => None,
    };
    let control = std::os::unix::net::UnixStream::from(next()?);
    control.set_nonblocking(true)?;
    Ok(CodeBox {
        control: UnixStream::from_std(control)?,
        stdout: pipe::Receiver::from_owned_fd(next()?)?,
        stderr: pipe::Receiver::from_owned_fd(next()?)?,
        handle: CodeHandle { running, _egress: egress, _cdp: cdp },
    })
}

/// What every program finds. The browser's address is not for the proxy.
fn environment(home: &str, has_cdp: bool) -> impl Iterator<Item = (String, String)> + use<> {
    let proxy = format!("http://{PROXY}");
    let mut env = vec![
        ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("HOME".to_owned(), home.to_owned()),
        ("USER".to_owned(), "user".to_owned()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("TMPDIR".to_owned(), "/tmp".to_owned()),
    ];
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        env.push((name.to_owned(), proxy.clone()));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        env.push((name.to_owned(), "127.0.0.1,localhost".to_owned()));
    }
    if has_cdp {
        env.push(("WEIR_CDP".to_owned(), format!("http://{CDP}")));
    }
    env.into_iter()
}

/// A listening socket out of a box, as the runtime's.
pub(super) fn listener(fd: std::os::fd::OwnedFd) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::from(fd);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Joins every connection to `listener` with one to `socket`, until the guard is dropped.
fn forward(listener: TcpListener, socket: PathBuf) -> DropGuard {
    let stop = CancellationToken::new();
    let guard = stop.clone().drop_guard();
    let socket = Arc::new(socket);
    tokio::spawn(async move {
        let serve = async {
            loop {
                let Ok((mut inside, _)) = listener.accept().await else {
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    continue;
                };
                let (socket, stop) = (Arc::clone(&socket), stop.clone());
                tokio::spawn(async move {
                    let _ = inside.set_nodelay(true);
                    let Ok(mut outside) = UnixStream::connect(&*socket).await else { return };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional_with_sizes(&mut inside, &mut outside, 32 << 10, 32 << 10) => {}
                        () = stop.cancelled() => {}
                    }
                });
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = serve => {}
        }
    });
    guard
}
