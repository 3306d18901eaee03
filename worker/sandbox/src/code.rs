//! A program in a box: the runners of users' code.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, BufReader, copy_buf};
use tokio::net::unix::pipe;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::bwrap::Layout;
use super::cgroup::Bounds;
use super::running::Running;
use super::wire::{Kind, Order};
use super::{
    CDP, CDP_CONNECTIONS, CDP_PORT, Exit, HOME, PROXY, PROXY_PORT, SESSION_NICENESS, Sandbox, SandboxError, SessionDir,
};

/// Open connections of a session's code boxes to the egress proxy; further ones wait.
pub(super) const CONNECTIONS: usize = 128;
/// Read at once of a connection to the browser, bytes.
const PIECE: usize = 32 << 10;
/// How long a connection whose browser's side has ended is read to its end, so that its last words arrive.
const FAREWELL: Duration = Duration::from_secs(1);

/// What all code boxes of a session may have open together: each of them can fill its own part of the worker's descriptors.
#[derive(Debug)]
pub(super) struct Places {
    egress: Arc<Semaphore>,
    cdp: Arc<Semaphore>,
}

impl Default for Places {
    fn default() -> Self {
        Self { egress: Arc::new(Semaphore::new(CONNECTIONS)), cdp: Arc::new(Semaphore::new(CDP_CONNECTIONS)) }
    }
}

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
    let bounds = Bounds {
        memory: limits.memory,
        processes: limits.processes,
        cpus: Some(limits.cpus),
        niceness: SESSION_NICENESS,
    };
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
    let egress = door(listener(next()?)?, Arc::clone(&dir.places.egress), None);
    let cdp = match spec.cdp {
        Some(socket) => Some(forward(listener(next()?)?, socket, Arc::clone(&dir.places.cdp))),
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

/// Joins every connection to `listener` with one to `socket`, until the guard is dropped. Without a place nobody is
/// accepted: connections wait in the box's own kernel queue.
fn forward(listener: TcpListener, socket: PathBuf, places: Arc<Semaphore>) -> DropGuard {
    let stop = CancellationToken::new();
    let guard = stop.clone().drop_guard();
    let socket = Arc::new(socket);
    tokio::spawn(async move {
        let serve = async {
            loop {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                let Ok((inside, _)) = listener.accept().await else {
                    drop(place);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let (socket, stop) = (Arc::clone(&socket), stop.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = join(inside, &socket) => {}
                        () = stop.cancelled() => {}
                    }
                    drop(place);
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

/// Joins a connection out of a box with one to `socket`. A client may end its own half and still read the answer. When the
/// other side has ended nothing can come any more, and both ends are given back whatever the client does.
async fn join(mut inside: TcpStream, socket: &Path) {
    let _ = inside.set_nodelay(true);
    let Ok(mut outside) = UnixStream::connect(socket).await else { return };
    {
        let (from_box, mut to_box) = inside.split();
        let (from_host, mut to_host) = outside.split();
        let mut from_box = BufReader::with_capacity(PIECE, from_box);
        let mut from_host = BufReader::with_capacity(PIECE, from_host);
        let asking = async {
            let _ = copy_buf(&mut from_box, &mut to_host).await;
            let _ = to_host.shutdown().await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = asking => {}
            _ = copy_buf(&mut from_host, &mut to_box) => {}
        }
    }
    drop(outside);
    // What is still unread when a connection is closed would take along what was sent before.
    let leaving = async {
        let _ = inside.shutdown().await;
        let _ = tokio::io::copy(&mut inside, &mut tokio::io::sink()).await;
    };
    let _ = tokio::time::timeout(FAREWELL, leaving).await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use tokio::io::AsyncReadExt as _;
    use tokio::net::UnixListener;

    use super::*;

    fn descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").unwrap().count()
    }

    /// In a process of its own, because it counts what the process has open.
    #[tokio::test]
    async fn connections_to_the_browser_are_bounded_and_end_with_the_browsers_side() {
        const ALONE: &str = "WEIR_TEST_FORWARD_ALONE";
        let name = "code::tests::connections_to_the_browser_are_bounded_and_end_with_the_browsers_side";
        if std::env::var_os(ALONE).is_none() {
            let program = std::env::current_exe().unwrap();
            let child = std::process::Command::new(program).args(["--exact", name]).env(ALONE, "1").output().unwrap();
            assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
            return;
        }
        let path = std::env::temp_dir().join(format!("weir-forward-{}", weir_shared::random::hex::<4>()));
        let host = UnixListener::bind(&path).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let places = Arc::new(Semaphore::new(2));
        let guard = forward(listener, path.clone(), Arc::clone(&places));

        // A client that has said all it has to say still hears the answer.
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let (mut served, _) = host.accept().await.unwrap();
        let mut said = String::new();
        served.read_to_string(&mut said).await.unwrap();
        served.write_all(b"answer").await.unwrap();
        drop(served);
        let mut heard = String::new();
        client.read_to_string(&mut heard).await.unwrap();
        assert_eq!((said.as_str(), heard.as_str()), ("question", "answer"));
        drop(client);

        // Clients that keep their ends when they were refused: no more of them than there are places, and each for a moment.
        let mut clients = Vec::new();
        let before = descriptors();
        for _ in 0..6 {
            clients.push(TcpStream::connect(address).await.unwrap());
        }
        for client in &mut clients {
            let (refused, _) = host.accept().await.unwrap();
            // Theirs, and those of two connections at most.
            assert!(descriptors() <= before + 6 + 2 * 2 + 1, "{} and {before}", descriptors());
            drop(refused);
            let _ = client.read(&mut [0; 8]).await;
        }
        // One place is the listener's, which waits with it.
        while places.available_permits() < 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(descriptors() <= before + 6, "{} and {before}", descriptors());
        drop(guard);
        drop(clients);
        std::fs::remove_file(path).unwrap();
    }
}
