//! What the kernel says about processes: who lives, in which session, with what memory. Linux only (`/proc`).

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

/// A clock tick as programs are told of it, on every machine that runs a Chromium, milliseconds.
const TICK_MS: u64 = 10;

/// A process beyond doubt: pids are used again, a pid with its start time is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub pid: u32,
    /// Clock ticks since boot.
    pub started: u64,
}

impl Identity {
    /// This process.
    pub fn of_self() -> anyhow::Result<Self> {
        Self::of(std::process::id()).context("reading /proc/self/stat")
    }

    /// The process that has this number now.
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, started: Stat::read(pid)?.started })
    }

    /// From `<pid>-<start time>`, with or without a further `-…`: how directories name their owner.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        Some(Self { pid: parts.next()?.parse().ok()?, started: parts.next()?.parse().ok()? })
    }

    /// Whether exactly this process still runs.
    pub fn is_alive(&self) -> bool {
        Stat::read(self.pid).is_some_and(|s| s.started == self.started && s.state != b'Z')
    }
}

/// The fields of `/proc/<pid>/stat` that matter here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    state: u8,
    pub parent: u32,
    session: u32,
    /// Processor time of all its threads, clock ticks.
    worked: u64,
    pub threads: u64,
    pub started: u64,
    /// Pages in memory, those shared with others counted whole.
    pub resident: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The program's name stands in parentheses and may hold anything, so fields count from the last one.
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line[line.rfind(')')? + 1..].split_ascii_whitespace().collect();
        let number = |at: usize| -> Option<u64> { fields.get(at)?.parse().ok() };
        Some(Self {
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            worked: number(11)? + number(12)?,
            threads: number(17)?,
            started: number(19)?,
            resident: number(21)?,
        })
    }
}

/// Makes this process the parent of orphaned descendants. Those of a browser's session are reaped when
/// the session is ended; others are left to whoever started them.
pub(crate) fn adopt_orphans() {
    if let Err(e) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        tracing::debug!(error = %e, "orphans are not adopted");
    }
}

/// Whether this process is root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether `pid` runs and is not a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    Stat::read(pid).is_some_and(|s| s.state != b'Z' && s.state != b'X')
}

/// Kills one process. Nothing happens when it is gone already.
pub fn kill(pid: u32) {
    if let Some(pid) = to_pid(pid) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

/// Kills every process that works in `dir`: its profile or home lies there, or its box shows a part of it. Returns
/// how many were found.
pub(crate) fn kill_users_of(dir: &Path) -> usize {
    let own_mounts = fs::read_link("/proc/self/ns/mnt").ok();
    let Some(name) = dir.file_name() else { return 0 };
    // Mounts are listed by their path inside their file system, so only the last part is sure to be there.
    let mount = format!("/{}/", name.to_string_lossy());
    let inside = format!("{}/", dir.display());
    let marks = [format!("--user-data-dir={}/", dir.display()), format!("HOME={}/", dir.display())];
    let is_user = |pid: u32| {
        let words = |file: &str, mark: &str| {
            let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            text.split(|b| *b == 0).any(|word| word.starts_with(mark.as_bytes()))
        };
        let is_boxed = || {
            fs::read_link(format!("/proc/{pid}/ns/mnt")).is_ok_and(|mounts| Some(mounts) != own_mounts)
                && fs::read_to_string(format!("/proc/{pid}/mountinfo")).is_ok_and(|text| text.contains(&mount))
        };
        // A bubblewrap whose other half died while they built the box waits for it for ever, and shows nothing yet.
        let is_builder = || {
            let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = text.split(|b| *b == 0);
            words.next().is_some_and(|program| program.ends_with(b"bwrap"))
                && words.any(|word| word.starts_with(inside.as_bytes()))
        };
        words("cmdline", &marks[0]) || words("environ", &marks[1]) || is_boxed() || is_builder()
    };
    let mut found = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let users: Vec<u32> = pids().filter(|pid| is_alive(*pid) && is_user(*pid)).collect();
        if users.is_empty() {
            break;
        }
        for pid in users {
            found.insert(pid);
            kill(pid);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    found.len()
}

/// The users of all processes of this machine that we can see.
pub(crate) fn users() -> std::collections::BTreeSet<u32> {
    pids().filter_map(user_of).collect()
}

/// The real user of a process. (The owner of its `/proc` directory is root when it hides its memory.)
pub(crate) fn user_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().next()?.parse().ok()
}

/// Kills what descends from `ancestor` or runs in its session, until nothing of that is left, at most for two seconds;
/// `ancestor` itself stays. Reaps what has become ours. For programs without a box around them.
///
/// `ancestor` is this process or a child of it; nothing is done for any other.
pub(crate) fn kill_descendants(ancestor: u32) {
    let me = std::process::id();
    if ancestor != me && Stat::read(ancestor).is_none_or(|stat| stat.parent != me) {
        return;
    }
    kill_all(|stats| {
        let mut family = std::collections::BTreeSet::from([ancestor]);
        // Parents are not always listed before their children.
        while let Some((pid, _)) =
            stats.iter().find(|(pid, stat)| !family.contains(pid) && family.contains(&stat.parent))
        {
            family.insert(*pid);
        }
        // A session that it leads is its own.
        family.extend(stats.iter().filter(|(_, stat)| stat.session == ancestor).map(|(pid, _)| *pid));
        family.remove(&ancestor);
        family
    });
}

/// Kills all processes of a user that is neither root nor our own, until none is left, at most for two seconds.
pub(crate) fn kill_user(uid: u32) {
    if uid == 0 || uid == rustix::process::geteuid().as_raw() {
        return;
    }
    kill_all(|stats| stats.iter().map(|(pid, _)| *pid).filter(|pid| user_of(*pid) == Some(uid)).collect());
}

/// Kills what `choose` chooses, again and again until that is nothing. This process is never among it.
fn kill_all(choose: impl Fn(&[(u32, Stat)]) -> std::collections::BTreeSet<u32>) {
    let me = std::process::id();
    for _ in 0..100 {
        let stats = all();
        let chosen = choose(&stats);
        let mut left = false;
        for (pid, stat) in stats.iter().filter(|(pid, _)| *pid != me && chosen.contains(pid)) {
            // A dead one is ours to reap once its parent is gone, which may take until the next look.
            if stat.state != b'Z' {
                left = true;
                kill(*pid);
            } else if stat.parent != me {
                left = true;
            } else if let Some(pid) = to_pid(*pid) {
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
        if !left {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Every process that we can see.
pub(crate) fn all() -> Vec<(u32, Stat)> {
    pids().filter_map(|pid| Some((pid, Stat::read(pid)?))).collect()
}

/// Kills one process, and no other that has got its number meanwhile.
pub(crate) fn kill_exactly(identity: Identity) {
    let Some(handle) = to_pid(identity.pid).and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok())
    else {
        return;
    };
    if identity.is_alive() {
        let _ = rustix::process::pidfd_send_signal(&handle, Signal::KILL);
    }
}

/// Memory of one process, bytes: its own, and its part of what it shares in memory. `None`: the kernel does not tell.
pub(crate) fn own_and_shared_memory(pid: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(value.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
    };
    // Kernels before 5.4 do not tell them apart.
    field("Pss_Anon:").zip(field("Pss_Shmem:")).or_else(|| Some((field("Pss:")?, 0)))
}

/// A process and all that descend from it.
fn family(ancestor: u32) -> std::collections::BTreeSet<u32> {
    let mut rest: Vec<(u32, u32)> = pids().filter_map(|pid| Some((pid, Stat::read(pid)?.parent))).collect();
    let mut family = std::collections::BTreeSet::from([ancestor]);
    loop {
        // Parents are not always listed before their children.
        let before = rest.len();
        rest.retain(|(pid, parent)| {
            let belongs = family.contains(parent);
            if belongs {
                family.insert(*pid);
            }
            !belongs
        });
        if rest.len() == before {
            return family;
        }
    }
}

/// Proportional memory of a box's first process and all that descend from it, bytes. They are not known by their process
/// namespace: a browser gives pages one of their own.
pub(crate) fn box_memory(init: u32) -> u64 {
    family(init).into_iter().map(memory).sum()
}

/// Proportional memory of a session, bytes. Falls back to nothing where the kernel does not tell.
pub(crate) fn session_memory(session: u32) -> u64 {
    pids().filter(|pid| Stat::read(*pid).is_some_and(|s| s.session == session)).map(memory).sum()
}

/// A process in which a browser runs pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageProcess {
    pub pid: u32,
    /// What is its own, bytes.
    pub memory: u64,
}

/// The processes of pages among the descendants of a browser's box.
pub fn pages_of(browser: u32) -> Vec<PageProcess> {
    let pages = family(browser).into_iter().filter(|pid| role_of(*pid) == Role::Page);
    pages.map(|pid| PageProcess { pid, memory: own_memory(pid) }).collect()
}

/// What a process of a browser is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It runs pages.
    Page,
    /// The browser's own, which all pages need, or what stands around it.
    Own,
    /// Another one that it has started.
    Helper,
}

/// What a process of a browser has had of the processor since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkedProcess {
    pub pid: u32,
    pub role: Role,
    pub worked: Duration,
}

/// A browser's box and all that descends from it.
pub fn worked_in(browser: u32) -> Vec<WorkedProcess> {
    let worked = |pid| {
        let worked = Duration::from_millis(Stat::read(pid)?.worked * TICK_MS);
        Some(WorkedProcess { pid, role: role_of(pid), worked })
    };
    family(browser).into_iter().filter_map(worked).collect()
}

fn role_of(pid: u32) -> Role {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let says = |word: &[u8]| memchr::memmem::find(&command, word).is_some();
    if says(b"--type=renderer") {
        Role::Page
    } else if says(b"--type=") {
        Role::Helper
    } else {
        Role::Own
    }
}

/// What a process has that is not a file's, bytes.
fn own_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let of = |name: &str| -> Option<u64> {
        status.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse().ok())
    };
    ["RssAnon:", "RssShmem:"].into_iter().filter_map(of).sum::<u64>() * 1024
}

fn memory(pid: u32) -> u64 {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else { return 0 };
    text.lines()
        .find_map(|l| l.strip_prefix("Pss:"))
        .and_then(|v| v.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

/// Size of `/dev/shm`, bytes; 0 when there is none.
pub(crate) fn shm_size() -> u64 {
    rustix::fs::statvfs("/dev/shm").map_or(0, |s| s.f_blocks.saturating_mul(s.f_frsize))
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok())
}

fn to_pid(pid: u32) -> Option<Pid> {
    // Pid 1 and below are never ours.
    i32::try_from(pid).ok().filter(|p| *p > 1).and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let line = "42 (a b) c) S 1 42 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2";
        let expected =
            Stat { state: b'S', parent: 1, session: 41, worked: 11, threads: 1, started: 987_654, resident: 2 };
        assert_eq!(Stat::parse(line), Some(expected));
    }

    #[test]
    fn a_family_is_a_process_with_all_that_descend_from_it() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sh -c 'sleep 60; true' & read line"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let found = (0..12_000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            family(child.id()).len() == 3
        });
        let all = family(child.id());
        all.iter().for_each(|pid| kill(*pid));
        let _ = child.wait();
        assert!(found, "the shell, the one below it, and what that runs: {all:?}");
        assert!(!all.contains(&std::process::id()));
    }

    #[test]
    fn this_process_is_alive_and_its_pid_with_another_start_time_is_not() {
        let me = Identity::of_self().expect("proc");
        assert!(me.is_alive());
        assert!(!Identity { started: me.started + 1, ..me }.is_alive());
    }

    #[test]
    fn half_of_a_bubblewrap_goes_and_a_persons_editor_stays() {
        use std::os::unix::process::CommandExt as _;
        let dir = std::env::temp_dir().join(format!("weir-dir-{}", weir_shared::random::hex::<4>()));
        let start = |name: &str| {
            let mut command = std::process::Command::new("/bin/sh");
            command.arg0(name).args(["-c", "read line"]).arg(dir.join("home")).stdin(std::process::Stdio::piped());
            command.spawn().expect("sh")
        };
        let (mut builder, mut editor) = (start("/usr/bin/bwrap"), start("vim"));
        // Between fork and exec a process still has our name.
        while [&builder, &editor].iter().any(|child| {
            !fs::read(format!("/proc/{}/cmdline", child.id())).is_ok_and(|line| line.ends_with(b"/home\0"))
        }) {
            std::thread::yield_now();
        }
        assert_eq!(kill_users_of(&dir), 1);
        assert!(builder.wait().is_ok_and(|status| !status.success()));
        assert!(editor.try_wait().is_ok_and(|status| status.is_none()));
        drop(editor.stdin.take());
        let _ = editor.wait();
    }
}
