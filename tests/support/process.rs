//! Processes of a test: started in a group of their own, found again through /proc, and ended for certain.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_shared::clock;

/// A port that nobody listens on now. Taken from below the range that outgoing connections use, and
/// from another place in each process, so that tests which run side by side do not meet.
pub fn free_port() -> u16 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..1000 {
        let step = COUNT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + (std::process::id().wrapping_mul(61) + step * 7) % 22_000;
        let port = u16::try_from(port).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port");
}

/// One child in its own process group, with its output in a file.
pub struct Process {
    child: Child,
    pub name: String,
    log: PathBuf,
}

impl Process {
    /// Starts `command`; both outputs are appended to `log`.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Self {
        let output = File::options().create(true).append(true).open(log).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error} ({command:?})"));
        Self { child, name: name.to_owned(), log: log.to_owned() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// SIGKILL to this process alone, as the kernel's memory killer does; its children are on their own.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM.
    pub fn ask_to_end(&self) {
        signal("TERM", &self.child.id().to_string());
    }

    /// SIGTERM, then waits for the end. Panics when it takes longer than `bound`.
    pub fn terminate(&mut self, bound: Duration) -> ExitStatus {
        self.ask_to_end();
        self.await_end(bound)
    }

    /// Waits for the end. Panics when it takes longer than `bound`.
    pub fn await_end(&mut self, bound: Duration) -> ExitStatus {
        let deadline = clock::deadline(bound);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(clock::instant() < deadline, "{} did not end within {bound:?}\n{}", self.name, self.tail(40));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The last lines that it wrote.
    pub fn tail(&self, lines: usize) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<_> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_running() {
            signal("KILL", &format!("-{}", self.child.id()));
            let _ = self.child.wait();
        }
    }
}

/// Sends a signal to a process, or with `-N` to a group; one that is gone already is fine.
pub fn signal(name: &str, target: &str) {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};
    let signal = match name {
        "TERM" => Signal::TERM,
        "KILL" => Signal::KILL,
        "STOP" => Signal::STOP,
        "CONT" => Signal::CONT,
        _ => panic!("no test sends {name}"),
    };
    let number: i32 = target.parse().unwrap();
    let pid = Pid::from_raw(number.abs()).unwrap();
    let sent = if number < 0 { kill_process_group(pid, signal) } else { kill_process(pid, signal) };
    if let Err(error) = sent {
        assert_eq!(error, rustix::io::Errno::SRCH, "{name} to {target}");
    }
}

/// Whether no thread of the process runs any more, since it was told to stop.
pub fn threads_have_stopped(process: &str) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return false };
    threads.flatten().all(|thread| {
        // The state follows the last `)`, because the name before it may hold anything.
        fs::read_to_string(thread.path().join("stat"))
            .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
    })
}

/// What /proc tells about one process.
#[derive(Debug, Clone)]
pub struct ProcessInfo {
    pub id: u32,
    pub parent: u32,
    pub state: char,
    pub command: String,
}

impl ProcessInfo {
    fn read(id: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let command = fs::read(format!("/proc/{id}/cmdline")).ok()?;
        Some(Self { id, parent, state, command: String::from_utf8_lossy(&command).replace('\0', " ") })
    }

    /// True for a Chromium process of any kind.
    pub fn is_browser(&self) -> bool {
        let program = self.command.split(' ').next().unwrap_or_default();
        program.contains("chrom") && !program.contains("weir")
    }

    /// True for the process that owns the others of one Chromium.
    pub fn is_browser_main(&self) -> bool {
        self.is_browser() && !self.command.contains("--type=") && !self.command.contains("crashpad")
    }

    /// True for what belongs to the boxes of browser sessions.
    pub fn is_boxed(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/mountinfo", self.id)).is_ok_and(|mounts| mounts.contains("/x-"))
    }

    pub fn kill(&self) {
        signal("KILL", &self.id.to_string());
    }
}

/// Every live process that carries `word` in its command line or environment, and their descendants.
/// With the test's own folder as the word this finds all that a service started, whoever its parent is now.
pub fn processes_mentioning(word: &str) -> Vec<ProcessInfo> {
    let all: Vec<_> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| ProcessInfo::read(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect();
    let mentions = |info: &ProcessInfo| {
        info.command.contains(word)
            || fs::read(format!("/proc/{}/environ", info.id))
                .is_ok_and(|environment| String::from_utf8_lossy(&environment).contains(word))
            // What runs in a box names nothing of the host, but has its directories mounted.
            || fs::read_to_string(format!("/proc/{}/mountinfo", info.id)).is_ok_and(|mounts| mounts.contains(word))
    };
    let mut found: Vec<u32> = all.iter().filter(|info| mentions(info)).map(|info| info.id).collect();
    loop {
        let before = found.len();
        let children = all.iter().filter(|info| found.contains(&info.parent) && !found.contains(&info.id));
        let children: Vec<u32> = children.map(|info| info.id).collect();
        found.extend(children);
        if found.len() == before {
            break;
        }
    }
    all.into_iter().filter(|info| found.contains(&info.id)).collect()
}

/// What the children of a process that mention a word have used, looked at all the time until it is asked for.
pub struct ChildWatch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<ChildUse>,
}

/// The most that any one child used.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChildUse {
    /// Resident at its highest, bytes.
    pub memory: u64,
    /// Of its processor, to a hundredth of a second.
    pub cpu: Duration,
}

impl ChildWatch {
    pub fn start(parent: u32, word: &'static str) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut most = ChildUse::default();
            while !over.load(Ordering::Relaxed) {
                for child in children_of(parent) {
                    let Some(used) = used_by(child, word) else { continue };
                    most.memory = most.memory.max(used.memory);
                    most.cpu = most.cpu.max(used.cpu);
                }
                // The highest mark and the time only grow: what is lost is what the last moment added.
                std::thread::sleep(Duration::from_millis(1));
            }
            most
        });
        Self { is_over, thread }
    }

    pub fn stop(self) -> ChildUse {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn children_of(parent: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// `None`: it is gone, or another program yet.
fn used_by(child: u32, word: &str) -> Option<ChildUse> {
    let command = fs::read_to_string(format!("/proc/{child}/cmdline")).ok()?;
    if !command.contains(word) {
        return None;
    }
    let status = fs::read_to_string(format!("/proc/{child}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let peak: u64 = peak.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(ChildUse { memory: peak << 10, cpu: cpu_of(child)? })
}

/// Processor time of a process so far, to a hundredth of a second.
pub fn cpu_of(process: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}
