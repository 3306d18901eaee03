//! Limits of a box as a whole: cgroup v2, else the v1 controllers, else a watcher ([`super::watch`]) beside
//! [`super::wire::ProcessLimits`].
//!
//! ```text
//! <the worker's own cgroup>/weir-<worker pid>-<its start time>/<box>
//! ```
//!
//! Below the worker's own cgroup, so that limits set on the service hold for its boxes too. The name is the owner's
//! record, as in the run directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::watch::Watcher;
use crate::process;

/// What keeps a box within its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitsKind {
    /// One hierarchy; memory and processes of a box are counted together.
    CgroupV2,
    /// The same by the older controllers.
    CgroupV1,
    /// No cgroup: a watcher over the box's processes, and limits of each.
    Watched,
    /// Each process for itself. Weaker: a box may use its limit several times.
    Rlimits,
}

impl LimitsKind {
    /// As operators read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CgroupV2 => "cgroup v2",
            Self::CgroupV1 => "cgroup v1",
            Self::Watched => "no cgroup, a watcher over the processes",
            Self::Rlimits => "none as a whole, each process for itself",
        }
    }

    /// Whether memory and processes of a box are bounded as a whole.
    pub fn is_bound(self) -> bool {
        self != Self::Rlimits
    }

    /// Whether a cgroup does it.
    pub fn is_cgroup(self) -> bool {
        matches!(self, Self::CgroupV2 | Self::CgroupV1)
    }
}

/// Bounds of one box.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Memory with the box's temporary files, bytes.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Processor time, cores; absent: what is there.
    pub cpus: Option<f64>,
    /// By how much it is nicer than the worker: who is less so goes first where the processor does not suffice.
    pub niceness: u8,
}

/// Period over which processor time is shared out, microseconds.
const CPU_PERIOD: f64 = 100_000.0;

/// What a group has of the processor beside others where the older controller shares it out (`cpu.shares`).
const CPU_SHARES: f64 = 1_024.0;

/// How much less of the processor one more step of niceness means, as the kernel has it.
const NICE_STEP: f64 = 1.25;

/// Where boxes get their cgroups.
#[derive(Debug)]
pub(super) struct Cgroups {
    kind: LimitsKind,
    /// This worker's directory in each hierarchy, made already.
    roots: Vec<Root>,
}

#[derive(Debug, Clone)]
struct Root {
    controller: Controller,
    dir: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Controller {
    /// v2: all of them.
    Unified,
    Memory,
    Pids,
    Cpu,
}

impl Cgroups {
    /// Removes this worker's groups, which have no boxes any more.
    pub fn remove(&self) {
        for root in &self.roots {
            let _ = fs::remove_dir(&root.dir);
        }
    }

    /// Finds what this machine lets the worker use, and removes what dead workers left there.
    pub fn detect() -> Self {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let name = match process::Identity::of_self() {
            Ok(me) => format!("weir-{}-{}", me.pid, me.started),
            Err(_) => return Self::without(),
        };
        if let Some(parent) = unified_dir(&own, &mounts) {
            remove_leftovers(&parent);
            if let Some(dir) = prepare_unified(&parent, &name) {
                return Self { kind: LimitsKind::CgroupV2, roots: vec![Root { controller: Controller::Unified, dir }] };
            }
        }
        let mut roots = Vec::new();
        for (controller, word) in [(Controller::Memory, "memory"), (Controller::Pids, "pids"), (Controller::Cpu, "cpu")]
        {
            let Some(parent) = controller_dir(&own, &mounts, word) else { continue };
            remove_leftovers(&parent);
            let dir = parent.join(&name);
            if fs::create_dir(&dir).is_ok() || dir.is_dir() {
                roots.push(Root { controller, dir });
            }
        }
        // Removes what it made again when it is dropped unused.
        let found = Self { kind: LimitsKind::CgroupV1, roots };
        if found.has(Controller::Memory) && found.has(Controller::Pids) && works(&found.roots) {
            found
        } else {
            Self::without()
        }
    }

    /// Of a machine that has none to use.
    pub fn without() -> Self {
        let kind = if Watcher::is_possible() { LimitsKind::Watched } else { LimitsKind::Rlimits };
        Self { kind, roots: Vec::new() }
    }

    /// Of a machine that shows no memory of processes either.
    #[cfg(test)]
    pub fn without_watcher() -> Self {
        Self { kind: LimitsKind::Rlimits, roots: Vec::new() }
    }

    fn has(&self, controller: Controller) -> bool {
        self.roots.iter().any(|root| root.controller == controller)
    }

    pub fn kind(&self) -> LimitsKind {
        self.kind
    }

    /// The directories of this worker, for the record that a later worker cleans up by.
    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.dir.as_path())
    }

    /// A cgroup with these bounds; where there are none to use one that does nothing.
    ///
    /// # Errors
    /// When the kernel refuses a bound.
    pub fn create(&self, name: &str, bounds: &Bounds) -> io::Result<Cgroup> {
        create_in(&self.roots, name, bounds)
    }
}

fn create_in(roots: &[Root], name: &str, bounds: &Bounds) -> io::Result<Cgroup> {
    let mut group = Cgroup { parts: Vec::new() };
    for root in roots {
        let dir = root.dir.join(name);
        let made = fs::create_dir(&dir).and_then(|()| {
            group.parts.push(Root { controller: root.controller, dir: dir.clone() });
            write_bounds(root.controller, &dir, bounds)
        });
        if let Err(error) = made {
            group.remove();
            return Err(error);
        }
    }
    Ok(group)
}

/// Whether limits can really be written here.
fn works(roots: &[Root]) -> bool {
    let bounds = Bounds { memory: 64 << 20, processes: 8, cpus: None, niceness: 0 };
    create_in(roots, "probe", &bounds).is_ok_and(|group| group.remove())
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        self.remove();
    }
}

fn write_bounds(controller: Controller, dir: &Path, bounds: &Bounds) -> io::Result<()> {
    let write = |file: &str, value: String| fs::write(dir.join(file), value);
    // Swap would only make a box that is too large slow instead of ended. Not every kernel counts it.
    match controller {
        Controller::Unified => {
            write("memory.max", bounds.memory.to_string())?;
            write("pids.max", bounds.processes.to_string())?;
            let _ = write("memory.swap.max", "0".into());
            let _ = write("cpu.weight.nice", bounds.niceness.to_string());
            if let Some(cpus) = bounds.cpus {
                let _ = write("cpu.max", format!("{:.0} {CPU_PERIOD:.0}", cpus * CPU_PERIOD));
            }
        }
        Controller::Memory => {
            write("memory.limit_in_bytes", bounds.memory.to_string())?;
            let _ = write("memory.memsw.limit_in_bytes", bounds.memory.to_string());
            let _ = write("memory.swappiness", "0".into());
        }
        Controller::Pids => write("pids.max", bounds.processes.to_string())?,
        Controller::Cpu => {
            let shares = CPU_SHARES / NICE_STEP.powi(bounds.niceness.into());
            let _ = write("cpu.shares", format!("{shares:.0}"));
            if let Some(cpus) = bounds.cpus {
                let _ = write("cpu.cfs_period_us", format!("{CPU_PERIOD:.0}"));
                let _ = write("cpu.cfs_quota_us", format!("{:.0}", cpus * CPU_PERIOD));
            }
        }
    }
    Ok(())
}

/// The cgroup of one box. Dropping it removes it only when nothing is in it.
#[derive(Debug)]
pub(super) struct Cgroup {
    parts: Vec<Root>,
}

impl Cgroup {
    /// Puts a process, and all it will start, under the bounds.
    pub fn add(&self, pid: u32) -> io::Result<()> {
        self.parts.iter().try_for_each(|part| fs::write(part.dir.join("cgroup.procs"), pid.to_string()))
    }

    /// Memory that belongs to the box, bytes: its processes' own and its temporary files. `None`: not known.
    pub fn memory(&self) -> Option<u64> {
        let (part, names): (_, &[&str]) = self.parts.iter().find_map(|part| match part.controller {
            Controller::Unified => Some((part, ["anon", "shmem"].as_slice())),
            Controller::Memory => Some((part, ["total_rss", "total_shmem"].as_slice())),
            _ => None,
        })?;
        let stat = fs::read_to_string(part.dir.join("memory.stat")).ok()?;
        Some(stat_sum(&stat, names))
    }

    /// Kills all of the box until nothing is left, at most for two seconds.
    pub fn kill(&self) {
        for _ in 0..100 {
            let pids: Vec<u32> = self.parts.iter().flat_map(|part| members(&part.dir)).collect();
            if pids.is_empty() {
                return;
            }
            for pid in pids {
                process::kill(pid);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether it is gone in all hierarchies.
    pub fn remove(&self) -> bool {
        let left = self.parts.iter().filter(|part| !remove_group(&part.dir)).count();
        left == 0
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for part in &self.parts {
            let _ = fs::remove_dir(&part.dir);
        }
    }
}

fn members(group: &Path) -> Vec<u32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The kernel may count a process for a moment after its end.
fn remove_group(dir: &Path) -> bool {
    for _ in 0..100 {
        match fs::remove_dir(dir) {
            Ok(()) => return true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return true,
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    tracing::warn!(cgroup = %dir.display(), "a cgroup could not be removed");
    false
}

fn stat_sum(stat: &str, names: &[&str]) -> u64 {
    stat.lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| names.contains(name))
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum()
}

/// Ends and removes the boxes of dead workers under `parent`.
fn remove_leftovers(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(|name| process::Identity::from_name(name.strip_prefix("weir-")?))
        else {
            continue;
        };
        if !owner.is_alive() {
            remove_tree(&entry.path());
        }
    }
}

/// Ends and removes a dead worker's directory with its boxes. Nothing but such a directory is touched.
pub(super) fn remove_tree(dir: &Path) {
    let is_ours = dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with("weir-"));
    if !is_ours || !dir.join("cgroup.procs").exists() {
        return;
    }
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let part = Root { controller: Controller::Unified, dir: entry.path() };
            let group = Cgroup { parts: vec![part] };
            group.kill();
            group.remove();
        }
    }
    remove_group(dir);
}

/// This worker's directory of the unified hierarchy with memory and process limits on for its children.
fn prepare_unified(parent: &Path, name: &str) -> Option<PathBuf> {
    let has_controllers = |file: &str| {
        let text = fs::read_to_string(parent.join(file)).unwrap_or_default();
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        ["memory", "pids"].iter().all(|word| words.contains(word))
    };
    if !has_controllers("cgroup.controllers") {
        return None;
    }
    let enable = |dir: &Path| {
        let _ = fs::write(dir.join("cgroup.subtree_control"), "+cpu");
        fs::write(dir.join("cgroup.subtree_control"), "+memory +pids")
    };
    if !has_controllers("cgroup.subtree_control") && enable(parent).is_err() {
        // A group with children under limits may hold no processes itself: the worker steps aside.
        let aside = parent.join("weir-worker");
        let moved = (fs::create_dir(&aside).is_ok() || aside.is_dir())
            && fs::write(aside.join("cgroup.procs"), std::process::id().to_string()).is_ok();
        if !moved || enable(parent).is_err() {
            return None;
        }
    }
    let dir = parent.join(name);
    fs::create_dir(&dir).ok()?;
    let root = Root { controller: Controller::Unified, dir: dir.clone() };
    if enable(&dir).is_ok() && works(&[root]) {
        return Some(dir);
    }
    let _ = fs::remove_dir(&dir);
    None
}

/// Directory of the worker's own cgroup in the unified hierarchy.
fn unified_dir(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (root, mount) = mounts.lines().find_map(|line| mount_of(line, "cgroup2", None))?;
    below(&mount, &root, path)
}

/// Directory of the worker's own cgroup in the v1 hierarchy of one controller.
fn controller_dir(own: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let has = fields.next()?.split(',').any(|word| word == controller);
        fields.next().filter(|_| has)
    })?;
    let (root, mount) = mounts.lines().find_map(|line| mount_of(line, "cgroup", Some(controller)))?;
    below(&mount, &root, path)
}

/// Root and place of a mount of this kind, from a line of `mountinfo`.
fn mount_of(line: &str, kind: &str, option: Option<&str>) -> Option<(PathBuf, PathBuf)> {
    let (place, source) = line.split_once(" - ")?;
    let source: Vec<&str> = source.split(' ').collect();
    let place: Vec<&str> = place.split(' ').collect();
    let is_it = *source.first()? == kind
        && option.is_none_or(|word| source.get(2).is_some_and(|options| options.split(',').any(|o| o == word)));
    if is_it { Some((PathBuf::from(place.get(3)?), PathBuf::from(place.get(4)?))) } else { None }
}

/// Where a cgroup's path lies under a mount that may show only a part of the hierarchy.
fn below(mount: &Path, root: &Path, path: &str) -> Option<PathBuf> {
    let inner = Path::new(path).strip_prefix(root).unwrap_or(Path::new(path));
    let dir = mount.join(inner.strip_prefix("/").unwrap_or(inner));
    [dir, mount.to_owned()].into_iter().find(|dir| dir.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_found_by_controller_and_mount() {
        let line = "38 30 0:33 / /sys/fs/cgroup/memory rw,relatime shared:5 - cgroup cgroup rw,memory";
        assert_eq!(
            mount_of(line, "cgroup", Some("memory")),
            Some((PathBuf::from("/"), PathBuf::from("/sys/fs/cgroup/memory")))
        );
        assert!(mount_of(line, "cgroup", Some("mem")).is_none());
        assert!(mount_of(line, "cgroup2", None).is_none());
        let unified = "40 30 0:35 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(
            mount_of(unified, "cgroup2", None),
            Some((PathBuf::from("/docker/abc"), PathBuf::from("/sys/fs/cgroup")))
        );
    }

    #[test]
    fn a_part_of_the_hierarchy_is_found_under_its_own_mount() {
        let mount = std::env::temp_dir();
        let sub = mount.join(format!("weir-cgroup-{}", weir_shared::random::hex::<4>()));
        fs::create_dir(&sub).unwrap();
        let name = sub.file_name().unwrap().to_str().unwrap();
        assert_eq!(below(&mount, Path::new("/docker/abc"), &format!("/docker/abc/{name}")), Some(sub.clone()));
        assert_eq!(below(&mount, Path::new("/"), &format!("/{name}")), Some(sub.clone()));
        assert_eq!(below(&mount, Path::new("/docker/abc"), "/elsewhere/gone"), Some(mount));
        fs::remove_dir(&sub).unwrap();
    }

    #[test]
    fn memory_is_the_sum_of_what_belongs_to_the_box() {
        let stat = "cache 9\ntotal_rss 100\ntotal_shmem 20\ntotal_cache 50\n";
        assert_eq!(stat_sum(stat, &["total_rss", "total_shmem"]), 120);
    }

    #[test]
    fn only_a_workers_own_directory_is_removed() {
        let dir = std::env::temp_dir().join(format!("other-{}", weir_shared::random::hex::<4>()));
        fs::create_dir(&dir).unwrap();
        remove_tree(&dir);
        assert!(dir.exists());
        fs::remove_dir(&dir).unwrap();
    }
}
