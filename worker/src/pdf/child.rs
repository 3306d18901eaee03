//! The process that reads one PDF: the worker's own program under another argument. It shuts itself in before it looks
//! at the file, and ends when it has answered.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use libc::c_long;
use rustix::process::{Resource, Rlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use super::{Opened, PdfError, PdfRequest, read};

/// Memory of a reader, bytes: the file, what its streams unpack to, and the text.
const MEMORY: u64 = 1 << 30;

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

/// The whole life of a reader: the request is its second argument, the file its standard input. It answers with the
/// number of pages on one line and the outcome on the next.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run() -> anyhow::Result<()> {
    let request = std::env::args().nth(2).context("no request")?;
    let request: PdfRequest = serde_json::from_str(&request)?;
    shut_in(&request)?;
    let mut file = Vec::new();
    std::io::stdin().lock().read_to_end(&mut file)?;
    let mut stdout = std::io::stdout().lock();
    let outcome = read::read(&file, request.max_pages, |total| {
        let _ = serde_json::to_writer(&mut stdout, &Opened { total });
        let _ = writeln!(stdout);
        let _ = stdout.flush();
    });
    let outcome: Result<_, PdfError> = outcome;
    serde_json::to_writer(&mut stdout, &outcome)?;
    writeln!(stdout)?;
    stdout.flush()?;
    Ok(())
}

fn shut_in(request: &PdfRequest) -> anyhow::Result<()> {
    let limits = [
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Data, MEMORY),
        (Resource::Cpu, request.cpu_seconds.max(1)),
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
