//! The child's side: it shuts itself in before it looks at the file.

use std::collections::BTreeMap;
use std::io::{Read as _, StdoutLock, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use libc::c_long;
use rustix::process::{Resource, Rlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Bounds;

/// All that a reader needs once it runs; every other system call is refused. No file, socket or process can be opened.
const ALLOWED: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// What a child says, line by line.
pub struct Said<'a>(StdoutLock<'a>);

impl Said<'_> {
    /// A line ahead of the answer. Nobody may listen any more: that shows at the answer.
    pub fn ahead(&mut self, what: &impl Serialize) {
        let _ = self.line(what);
    }

    fn line(&mut self, what: &impl Serialize) -> anyhow::Result<()> {
        serde_json::to_writer(&mut self.0, what)?;
        writeln!(self.0)?;
        Ok(self.0.flush()?)
    }
}

/// The whole life of a child: `work` makes the answer of the request and the file.
pub fn main<R: DeserializeOwned, A: Serialize>(work: impl FnOnce(R, &[u8], &mut Said<'_>) -> A) -> ExitCode {
    match run(work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run<R: DeserializeOwned, A: Serialize>(work: impl FnOnce(R, &[u8], &mut Said<'_>) -> A) -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(2);
    let bounds: Bounds = serde_json::from_str(&arguments.next().context("no bounds")?)?;
    let request: R = serde_json::from_str(&arguments.next().context("no request")?)?;
    shut_in(bounds)?;
    let mut file = Vec::new();
    std::io::stdin().lock().read_to_end(&mut file)?;
    let mut said = Said(std::io::stdout().lock());
    let answer = work(request, &file, &mut said);
    said.line(&answer)
}

fn shut_in(bounds: Bounds) -> anyhow::Result<()> {
    let limits = [
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Data, bounds.memory),
        (Resource::Cpu, bounds.cpu_seconds.max(1)),
    ];
    for (resource, limit) in limits {
        let ceiling = rustix::process::getrlimit(resource).maximum;
        let limit = Some(ceiling.map_or(limit, |ceiling| ceiling.min(limit)));
        rustix::process::setrlimit(resource, Rlimit { current: limit, maximum: limit })?;
    }
    seccompiler::apply_filter(&filter()?).context("the filter of system calls")
}

fn filter() -> anyhow::Result<BpfProgram> {
    let allowed: BTreeMap<c_long, Vec<_>> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let arch = std::env::consts::ARCH.try_into()?;
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    Ok(SeccompFilter::new(allowed, refused, SeccompAction::Allow, arch)?.try_into()?)
}
