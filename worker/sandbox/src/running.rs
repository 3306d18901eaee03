//! One running box: from the start of its processes to the moment when nothing of it is left.
//!
//! ```text
//! worker ── spawns ──> bubblewrap (outside) ── clones ──> box's first process ──> program
//!   │                       │                                    │
//!   │<── pid of the first process (status pipe)                  │
//!   ├── cgroup, then the order (socket, descriptor 0) ──────────>│
//!   │<── sockets and pipes ──────────────────────────────────────┤
//!   └── waits for bubblewrap, which waits for the first process, whose end is the end of all in the box
//! ```
//!
//! A box ends by its line: when the worker hangs up or is gone, however it went, the first process goes, and all with it.
//! bubblewrap is not killed while it starts the first process, neither by the worker nor by the kernel
//! (`--die-with-parent`, a status pipe without a reader): that one would wait for bubblewrap's word for ever.

use std::fs::File;
use std::io::{self, PipeReader};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;
use weir_blocking as blocking;

use super::SandboxError;
use super::cgroup::{Bounds, Cgroup};
use super::dir::User;
use super::watch::{Watch, Watcher};
use super::wire::{self, Order, Reply};
use crate::process;

/// Longest time from the start of a box to its first answer. 20 to 50 ms are usual.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How long a killed box may take to be gone before its processes are killed one by one.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Longest time for a connection into the box.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// What of a box's diagnostics is kept, bytes.
const TAIL: usize = 4096;

/// Environment of the first process alone: its allocator is not to reserve memory for more than it needs.
pub(super) const FIRST_ENV: [(&str, &str); 1] = [("MIMALLOC_ARENA_RESERVE", "0")];

/// How Chromium says where it listens.
const DEVTOOLS: &str = "DevTools listening on ";

/// What starts a box.
pub(super) enum Wrapper {
    /// bubblewrap with these arguments.
    Bubblewrap { bwrap: PathBuf, arguments: Vec<String> },
    /// Nothing: the first program itself, by configuration.
    Nothing { program: PathBuf },
}

/// A box that is to be started.
pub(super) struct Plan<'a> {
    pub wrapper: Wrapper,
    pub user: Arc<User>,
    pub order: Order,
    pub cgroup: Cgroup,
    /// What keeps the bounds in the cgroup's place.
    pub watcher: Option<(&'a Watcher, Bounds)>,
    /// Held until nothing of the box is left.
    pub remains: TaskTrackerToken,
}

/// What the first process has handed out.
pub(super) type Handed = std::vec::IntoIter<OwnedFd>;

/// A box. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Running {
    shared: Arc<Shared>,
    ended: watch::Receiver<Option<BoxEnd>>,
    said: watch::Receiver<Said>,
}

#[derive(Debug)]
struct Shared {
    /// The first process, once it is known; without a box around it the only one that is.
    init: Mutex<Option<Init>>,
    /// The line to the first process, which ends without it.
    line: tokio::sync::Mutex<Option<UnixStream>>,
    /// The same line, to end it whoever is talking.
    hang_up: StdUnixStream,
    cgroup: Cgroup,
    /// Until the box has ended, where a watcher keeps its bounds.
    watch: Mutex<Option<Watch>>,
    is_boxed: bool,
    kill: CancellationToken,
}

#[derive(Debug)]
struct Init {
    pid: u32,
    /// Stands for this process even when its number is used again.
    handle: OwnedFd,
}

/// How a box ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BoxEnd {
    /// The program's exit code, 128 + n for a signal n; `None`: it was killed by us.
    pub code: Option<i32>,
}

/// What a box has said on its diagnostics.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    /// The address that Chromium announced.
    pub devtools: Option<String>,
    /// The last lines.
    pub tail: String,
    /// Nothing more will come.
    pub is_over: bool,
}

impl Running {
    /// Starts the box; the program has been started when this returns.
    pub async fn start(plan: Plan<'_>) -> Result<(Self, Handed), SandboxError> {
        let order = plan.order.encode()?;
        let (line, theirs) = StdUnixStream::pair()?;
        line.set_nonblocking(true)?;
        let (status, status_end) = lasting_pipe()?;
        let (messages, messages_end) = io::pipe()?;
        let is_boxed = matches!(plan.wrapper, Wrapper::Bubblewrap { .. });
        let mut command = match &plan.wrapper {
            Wrapper::Bubblewrap { bwrap, arguments } => {
                let mut command = Command::new(bwrap);
                // A terminal's interrupt is meant for the worker, which ends its boxes in order.
                command.args(arguments).process_group(0);
                command
            }
            Wrapper::Nothing { program } => {
                let mut command = Command::new(program);
                command.arg(super::BOX_ARGUMENT);
                command
            }
        };
        command.env_clear().envs(FIRST_ENV).current_dir("/");
        command.stdin(OwnedFd::from(theirs)).stdout(status_end).stderr(messages_end);
        if plan.user.is_own() {
            command.uid(plan.user.uid).gid(plan.user.gid);
        }
        // What can fail is done before there is a process.
        let hang_up = line.try_clone()?;
        let line = UnixStream::from_std(line)?;
        let status = pipe::Receiver::from_owned_fd(status.into())?;
        let messages = pipe::Receiver::from_owned_fd(messages.into())?;
        let started = spawn(command, plan.remains).await;
        let started = started.map_err(|error| SandboxError::Failed(format!("the box cannot be started: {error}")))?;
        let (child, remains) = started.claim().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let pid = child.id();
        let shared = Arc::new(Shared {
            init: Mutex::default(),
            line: tokio::sync::Mutex::new(Some(line)),
            hang_up,
            cgroup: plan.cgroup,
            watch: Mutex::default(),
            is_boxed,
            kill: CancellationToken::new(),
        });
        let ((ended_tx, ended), (said_tx, said), (first_tx, first)) =
            (watch::channel(None), watch::channel(Said::default()), oneshot::channel());
        let life = look_after(child, status, first_tx, Arc::clone(&shared), ended_tx);
        tokio::spawn(async move {
            life.await;
            drop(remains);
        });
        tokio::spawn(listen(messages, said_tx));
        let running = Self { shared, ended, said };

        let first = async { if is_boxed { first.await.ok() } else { Some(pid) } };
        let outcome = timeout(START_LIMIT, running.order(first, &order, plan.watcher)).await;
        let why = match outcome {
            Ok(Ok(fds)) => return Ok((running, fds.into_iter())),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("the box did not start within {START_LIMIT:?}"),
        };
        running.kill().await;
        let said = running.last_words().await;
        Err(SandboxError::Failed(if said.is_empty() { why } else { said }))
    }

    /// Puts the first process under its bounds, tells it what to do, and takes what it hands out.
    async fn order(
        &self,
        pid: impl Future<Output = Option<u32>>,
        order: &[u8],
        watcher: Option<(&Watcher, Bounds)>,
    ) -> io::Result<Vec<OwnedFd>> {
        let pid = pid.await.ok_or(io::ErrorKind::UnexpectedEof)?;
        let handle = rustix::process::pidfd_open(to_pid(pid)?, PidfdFlags::empty())?;
        *self.shared.init() = Some(Init { pid, handle });
        self.shared.cgroup.add(pid)?;
        let mut line = self.shared.line.lock().await;
        let line = line.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        line.write_all(order).await?;
        match wire::receive(line).await? {
            (Reply::Ready, fds) => {
                // Before, its file systems may still be the machine's. A short program may have ended by now, and the box
                // with it: nothing is left to be watched, and the end is told as any other.
                if let Some((watcher, bounds)) = watcher {
                    *self.shared.watch() = watcher.watch(pid, bounds, self.shared.kill.clone(), self.shared.is_boxed);
                }
                Ok(fds)
            }
            (Reply::Failed(text), _) => Err(io::Error::other(text)),
            (Reply::Connected, _) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// What the box said last, when it has ended.
    pub async fn last_words(&self) -> String {
        let mut said = self.said.clone();
        let _ = timeout(Duration::from_millis(500), said.wait_for(|said| said.is_over)).await;
        said.borrow().tail.trim().replace('\n', " | ")
    }

    /// The address that Chromium announces, `ws://127.0.0.1:PORT/devtools/browser/ID`. `None`: it ended before.
    pub async fn devtools(&self) -> Option<String> {
        let mut said = self.said.clone();
        let said = said.wait_for(|said| said.devtools.is_some() || said.is_over).await.ok()?;
        said.devtools.clone()
    }

    /// A connection to a port of the box's loopback.
    pub async fn connect(&self, port: u16) -> io::Result<std::net::TcpStream> {
        let shared = Arc::clone(&self.shared);
        // A caller that gives up must not leave an answer behind for the next one.
        let connecting: JoinHandle<io::Result<_>> = tokio::spawn(async move {
            let mut line = shared.line.lock().await;
            let outcome = match line.as_mut() {
                Some(line) => timeout(CONNECT_LIMIT, connect(line, port)).await,
                None => return Err(io::ErrorKind::NotConnected.into()),
            };
            match outcome {
                Ok(Ok(Ok(stream))) => Ok(stream),
                Ok(Ok(Err(refused))) => Err(io::Error::new(io::ErrorKind::ConnectionRefused, refused)),
                // After a message that cannot be read the two sides do not understand each other any more: end the box.
                Ok(Err(error)) => {
                    *line = None;
                    Err(error)
                }
                Err(_) => {
                    *line = None;
                    Err(io::ErrorKind::TimedOut.into())
                }
            }
        });
        connecting.await.map_err(io::Error::other)?
    }

    /// The same as [`Running::memory`] where the kernel counts it, which is cheap; `None` where it does not.
    pub async fn counted_memory(&self) -> Option<u64> {
        let shared = Arc::clone(&self.shared);
        blocking::run(move || shared.cgroup.memory()).await.ok().flatten()
    }

    /// Memory of all in the box, bytes.
    pub async fn memory(&self) -> u64 {
        let shared = Arc::clone(&self.shared);
        blocking::run(move || {
            let pid = shared.init().as_ref().map_or(0, |init| init.pid);
            match (shared.cgroup.memory(), shared.is_boxed) {
                (Some(bytes), _) => bytes,
                (None, true) => process::box_memory(pid),
                (None, false) => process::session_memory(pid),
            }
        })
        .await
        .unwrap_or(0)
    }

    /// Resolves when nothing of the box is left.
    pub async fn exited(&self) -> BoxEnd {
        match self.ended.clone().wait_for(Option::is_some).await {
            Ok(end) => end.unwrap_or(BoxEnd { code: None }),
            Err(_) => BoxEnd { code: None },
        }
    }

    pub fn has_exited(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Kills all in the box and waits until nothing of it is left.
    pub async fn kill(&self) {
        self.shared.kill.cancel();
        self.exited().await;
    }

    /// The first process as the host sees it.
    pub fn pid(&self) -> Option<u32> {
        self.shared.init().as_ref().map(|init| init.pid)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.kill.cancel();
    }
}

impl Shared {
    fn init(&self) -> MutexGuard<'_, Option<Init>> {
        self.init.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) -> MutexGuard<'_, Option<Watch>> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills the box as a whole. The processes end a moment later.
    fn kill_all(&self) {
        match self.init().as_ref() {
            Some(init) if self.is_boxed => {
                // With the first process its namespace goes, and all in it.
                let _ = rustix::process::pidfd_send_signal(&init.handle, Signal::KILL);
            }
            // A box that is not up yet ends by its line. Without a box the first process kills and reaps what came of it.
            _ => {
                let _ = self.hang_up.shutdown(std::net::Shutdown::Both);
            }
        }
    }

    /// Kills and reaps what may be left when bubblewrap itself has ended.
    fn kill_rest(&self) {
        if let Some(init) = self.init().as_ref().filter(|_| self.is_boxed) {
            let _ = rustix::process::pidfd_send_signal(&init.handle, Signal::KILL);
            // It is our child only when bubblewrap died first.
            let options = WaitIdOptions::EXITED;
            let _ = rustix::process::waitid(WaitId::PidFd(std::os::fd::AsFd::as_fd(&init.handle)), options);
        }
        *self.watch() = None;
        self.cgroup.kill();
        self.cgroup.remove();
    }
}

/// A process that nobody looks after yet. Dropped, it is waited for: who asked for it has hung up, and so it ends.
struct Unclaimed(Option<(Child, TaskTrackerToken)>);

impl Unclaimed {
    fn claim(mut self) -> Option<(Child, TaskTrackerToken)> {
        self.0.take()
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some((mut child, remains)) = self.0.take() {
            let wait = move || {
                let _ = child.wait();
                drop(remains);
            };
            // Without a thread it is reaped when the worker ends.
            let _ = std::thread::Builder::new().name("box-end".to_owned()).spawn(wait);
        }
    }
}

/// Starts the program of a box off the runtime's threads, for a fork takes its time.
async fn spawn(mut command: Command, remains: TaskTrackerToken) -> io::Result<Unclaimed> {
    let started = blocking::run(move || {
        let child = command.spawn();
        // The command holds the worker's copies of the box's descriptors: they must not stay open.
        drop(command);
        child.map(|child| Unclaimed(Some((child, remains))))
    });
    started.await?
}

/// Waits for the end of a box, or for the word to kill it, and sees to it that nothing is left. Tells the pid of
/// the first process when bubblewrap has told it.
async fn look_after(
    mut child: Child,
    status: pipe::Receiver,
    first: oneshot::Sender<u32>,
    shared: Arc<Shared>,
    ended: watch::Sender<Option<BoxEnd>>,
) {
    let mut gone = Box::pin(read_status(status, first));
    let is_gone = tokio::select! {
        () = &mut gone => true,
        () = shared.kill.cancelled() => false,
    };
    let killer = Arc::clone(&shared);
    if !is_gone {
        let Some(back) = off_thread(child, move |_| killer.kill_all()).await else { return };
        child = back;
        if timeout(KILL_LIMIT, gone).await.is_err() {
            tracing::warn!("a killed box does not end; its processes are killed one by one");
            let killer = Arc::clone(&shared);
            let back = off_thread(child, move |child| {
                killer.cgroup.kill();
                process::kill_descendants(child.id());
                let _ = child.kill();
            });
            let Some(back) = back.await else { return };
            child = back;
        }
    }
    let last = Arc::clone(&shared);
    let end = blocking::run_at_last(move || {
        let code = child.wait().ok().and_then(|status| status.code());
        last.kill_rest();
        BoxEnd { code: code.filter(|_| !last.kill.is_cancelled()) }
    })
    .await;
    *shared.line.lock().await = None;
    ended.send_replace(Some(end.unwrap_or(BoxEnd { code: None })));
}

/// `None`: the runtime is ending. Then the line to the box ends too, and with it the box. Without a thread it is done on
/// this one: with the box its processes go, and there are threads again.
async fn off_thread(mut child: Child, work: impl FnOnce(&mut Child) + Send + 'static) -> Option<Child> {
    let work = move || {
        work(&mut child);
        child
    };
    match blocking::begin(work) {
        Ok(begun) => begun.await.ok(),
        Err(work) => Some(work()),
    }
}

/// Reads bubblewrap's status: the first line names the first process. Ends with bubblewrap, which alone holds the
/// pipe's other end. (Without a box that is the first process itself, which writes nothing.)
async fn read_status(status: pipe::Receiver, first: oneshot::Sender<u32>) {
    let mut status = BufReader::new(status);
    let mut line = String::new();
    let _ = (&mut status).take(TAIL as u64).read_line(&mut line).await;
    let pid = serde_json::from_str::<serde_json::Value>(&line).ok();
    let pid = pid.and_then(|status| status.get("child-pid")?.as_u64());
    if let Some(pid) = pid.and_then(|pid| u32::try_from(pid).ok()) {
        let _ = first.send(pid);
    }
    let mut rest = [0; 256];
    while let Ok(1..) = status.read(&mut rest).await {}
}

/// A pipe whose writing end can be written to when nobody reads any more, for it is another reader.
fn lasting_pipe() -> io::Result<(PipeReader, File)> {
    let (reader, writer) = io::pipe()?;
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    Ok((reader, File::options().read(true).write(true).open(path)?))
}

/// Asks for a connection; the inner error is the box's refusal.
async fn connect(line: &mut UnixStream, port: u16) -> io::Result<Result<std::net::TcpStream, String>> {
    line.write_all(&port.to_be_bytes()).await?;
    match wire::receive(line).await? {
        (Reply::Connected, fds) => {
            let fd = fds.into_iter().next().ok_or(io::ErrorKind::InvalidData)?;
            Ok(Ok(std::net::TcpStream::from(fd)))
        }
        (Reply::Failed(text), _) => Ok(Err(text)),
        (Reply::Ready, _) => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Reads a box's diagnostics to their end; keeps the last of them and the address that Chromium announces.
async fn listen(mut messages: pipe::Receiver, said: watch::Sender<Said>) {
    let mut part = vec![0; TAIL];
    while let Ok(read @ 1..) = messages.read(&mut part).await {
        let text = String::from_utf8_lossy(&part[..read]);
        said.send_modify(|said| {
            said.tail.push_str(&text);
            if said.devtools.is_none() {
                said.devtools = announced(&said.tail);
            }
            let mut surplus = said.tail.len().saturating_sub(TAIL);
            while !said.tail.is_char_boundary(surplus) {
                surplus += 1;
            }
            said.tail.drain(..surplus);
        });
    }
    said.send_modify(|said| said.is_over = true);
}

/// The address in a whole line that announces one.
fn announced(text: &str) -> Option<String> {
    let (_, rest) = text.split_once(DEVTOOLS)?;
    let (address, _) = rest.split_once('\n')?;
    Some(address.trim().to_owned())
}

fn to_pid(pid: u32) -> io::Result<Pid> {
    let number = i32::try_from(pid).ok().filter(|pid| *pid > 1);
    number.and_then(Pid::from_raw).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_from_a_whole_line_only() {
        let whole = "noise\nDevTools listening on ws://127.0.0.1:9222/devtools/browser/ab-c\nmore";
        assert_eq!(announced(whole).as_deref(), Some("ws://127.0.0.1:9222/devtools/browser/ab-c"));
        assert!(announced("DevTools listening on ws://127.0.0.1:92").is_none());
    }
}
