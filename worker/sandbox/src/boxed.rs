//! The first process of every box, as the worker's own program under another argument. It has no runtime and two
//! threads that sleep: what it costs is its few private pages.
//!
//! It takes its order from the worker, makes the box's sockets and hands them out, starts the program, answers
//! requests for connections, reaps what dies, and ends when the program ends. When the worker goes away it ends
//! too. As process 1 it takes the whole box with it.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{DumpableBehavior, Resource, Rlimit, WaitOptions};

use super::seccomp;
use super::wire::{Kind, Order, ProcessLimits, Reply, reply};
use crate::process;

/// Where code expects its control socket.
const CONTROL_FD: i32 = 3;

/// How often, and how long after the try before, the kernel is told of the box's place among others.
const AUTOGROUP_TRIES: u32 = 100;
const AUTOGROUP_PAUSE: Duration = Duration::from_millis(70);

/// The whole life of a box's first process. Its exit code is the program's, 128 + n when a signal n ended it.
pub fn main() -> ExitCode {
    close_inherited();
    // Before anything else opens a descriptor: the program's control socket is to be a certain one.
    let Ok(control) = control_pair() else { return ExitCode::from(125) };
    let Ok(worker) = io::stdin().as_fd().try_clone_to_owned() else { return ExitCode::from(125) };
    let mut worker = UnixStream::from(worker);
    match run(&mut worker, control) {
        Ok(code) => code,
        Err(error) => {
            let _ = reply(&mut worker, &Reply::Failed(format!("{error:#}")), &[]);
            ExitCode::from(125)
        }
    }
}

/// Closes whatever whoever started the worker left open: the program would inherit it.
fn close_inherited() {
    #[expect(unsafe_code, reason = "nothing in this process has opened a descriptor yet, so none is owned by anybody")]
    // SAFETY: as above; a failure (a kernel before 5.9) leaves them open, which the flag of each normally prevents.
    unsafe {
        libc::close_range(3, libc::c_uint::MAX, 0);
    }
}

fn run(worker: &mut UnixStream, (control, inherited): (UnixStream, UnixStream)) -> anyhow::Result<ExitCode> {
    // While the file is ours, which the next step ends.
    let autogroup = OpenOptions::new().write(true).open("/proc/self/autogroup").ok();
    // Nobody of the same user may look into this process: it holds the line to the worker.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut order = Order::read(worker).context("no order")?;
    let mut is_own_session = order.is_boxed;
    if !order.is_boxed {
        // What the program leaves behind comes to us, to be ended with it.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        is_own_session = rustix::process::setsid().is_ok();
    }
    set_limits(&order.limits).context("setting limits")?;
    step_back(order.limits.niceness, autogroup.filter(|_| is_own_session))?;

    let mut sockets = Vec::new();
    for port in order.proxy_ports.clone().into_iter().chain(order.cdp_port) {
        let listener = listen(order.is_boxed, port)?;
        order.replace(&format!("127.0.0.1:{port}"), &listener.local_addr()?.to_string());
        sockets.push(listener);
    }
    let [name, args @ ..] = order.argv.as_slice() else { bail!("no program") };
    let mut command = Command::new(name);
    command
        .args(args)
        .env_clear()
        .envs(order.env.iter().map(|(k, v)| (k, v)))
        .current_dir(&order.cwd)
        .stdin(Stdio::null());

    // Descriptors that go to the worker; ours are closed when the program has started.
    let handed: Handed = match order.kind {
        Kind::Browser => {
            command.stdout(Stdio::null()).stderr(Stdio::inherit());
            Handed { sockets, control: None, pipes: Vec::new(), _inherited: None }
        }
        Kind::Code => {
            rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty())?;
            let (stdout, stdout_end) = io::pipe()?;
            let (stderr, stderr_end) = io::pipe()?;
            command.stdout(stdout_end).stderr(stderr_end);
            // Where a cgroup bounds the box, its processes have no bounds of their own.
            seccomp::install(order.limits.data.is_some())?;
            Handed { sockets, control: Some(control), pipes: vec![stdout, stderr], _inherited: Some(inherited) }
        }
    };
    // Before the program can use up what the box may have.
    let is_boxed = order.is_boxed;
    let requests = worker.try_clone()?;
    std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
        serve(requests);
        // The worker has closed the line, or is gone.
        end(is_boxed, 137);
    })?;
    let child = command.spawn().with_context(|| format!("starting {name}"))?;
    reply(worker, &Reply::Ready, &handed.fds())?;
    drop((command, handed));

    let code = reap_until_end_of(child.id())?;
    end(is_boxed, code);
}

/// Ends the box: as process 1 by going, otherwise by killing what has come of the program.
fn end(is_boxed: bool, code: u8) -> ! {
    if !is_boxed {
        process::kill_descendants(std::process::id());
    }
    std::process::exit(i32::from(code))
}

struct Handed {
    sockets: Vec<TcpListener>,
    control: Option<UnixStream>,
    pipes: Vec<PipeReader>,
    /// Not handed out: the program's end of `control`.
    _inherited: Option<UnixStream>,
}

impl Handed {
    /// Sockets, control, standard output, standard error.
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let sockets = self.sockets.iter().map(AsFd::as_fd);
        sockets.chain(self.control.iter().map(AsFd::as_fd)).chain(self.pipes.iter().map(AsFd::as_fd)).collect()
    }
}

impl Order {
    /// Puts the address that there is in the place of the one that was ordered.
    fn replace(&mut self, ordered: &str, actual: &str) {
        if ordered != actual {
            let words = self.argv.iter_mut().chain(self.env.iter_mut().map(|(_, value)| value));
            words.for_each(|word| *word = word.replace(ordered, actual));
        }
    }
}

fn listen(is_boxed: bool, port: u16) -> anyhow::Result<TcpListener> {
    let port = if is_boxed { port } else { 0 };
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).with_context(|| format!("listening on loopback port {port}"))
}

/// The control socket: the worker's end, and the program's as [`CONTROL_FD`], which it is to inherit.
fn control_pair() -> io::Result<(UnixStream, UnixStream)> {
    let (inside, outside) = UnixStream::pair()?;
    if inside.as_raw_fd() == CONTROL_FD { Ok((outside, inside)) } else { Err(io::ErrorKind::AddrInUse.into()) }
}

fn set_limits(limits: &ProcessLimits) -> io::Result<()> {
    let wanted = [
        (Resource::Core, Some(0)),
        (Resource::Nofile, limits.files),
        (Resource::Fsize, limits.file_size),
        (Resource::Data, limits.data),
        (Resource::Nproc, limits.processes),
    ];
    for (resource, limit) in wanted {
        let Some(limit) = limit else { continue };
        let ceiling = rustix::process::getrlimit(resource).maximum;
        let limit = Some(ceiling.map_or(limit, |ceiling| ceiling.min(limit)));
        rustix::process::setrlimit(resource, Rlimit { current: limit, maximum: limit })?;
    }
    Ok(())
}

/// Lets those go first that are less nice. Where no cgroup shares out the processor, Linux as desktops have it compares the
/// groups that it makes of sessions, and the processes inside one with each other only: so `autogroup` is told, too. It
/// belongs to a session of the box's own.
fn step_back(niceness: u8, autogroup: Option<File>) -> io::Result<()> {
    if niceness == 0 {
        return Ok(());
    }
    rustix::process::nice(niceness.into())?;
    let Some(mut autogroup) = autogroup else { return Ok(()) };
    let mut tell = move || autogroup.write_all(niceness.to_string().as_bytes());
    let is_early = |told: io::Result<()>| told.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
    if is_early(tell()) {
        // The kernel hears of one group in a tenth of a second, and many boxes may start at a time.
        let later = move || {
            for _ in 0..AUTOGROUP_TRIES {
                std::thread::sleep(AUTOGROUP_PAUSE);
                if !is_early(tell()) {
                    return;
                }
            }
        };
        let _ = std::thread::Builder::new().stack_size(64 << 10).spawn(later);
    }
    Ok(())
}

/// Makes connections inside the box for the worker, until it closes the line.
fn serve(mut worker: UnixStream) {
    let mut port = [0; 2];
    while worker.read_exact(&mut port).is_ok() {
        let outcome = match TcpStream::connect((Ipv4Addr::LOCALHOST, u16::from_be_bytes(port))) {
            Ok(stream) => reply(&mut worker, &Reply::Connected, &[stream.as_fd()]),
            Err(error) => reply(&mut worker, &Reply::Failed(error.to_string()), &[]),
        };
        if outcome.is_err() {
            return;
        }
    }
}

/// Reaps everything that ends; returns how the program ended.
fn reap_until_end_of(program: u32) -> io::Result<u8> {
    loop {
        match rustix::process::waitpid(None, WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().unsigned_abs() == program => {
                let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
                return Ok(u8::try_from(code.unwrap_or(255)).unwrap_or(255));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
