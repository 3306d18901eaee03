//! Bounds of a box as a whole where no cgroup can be used, as on most people's own machines: a watcher looks at the
//! boxes' processes several times a second, and what is over its bound is killed, as the kernel does in a cgroup.
//!
//! What it cannot do: stop a box between two looks. A box may be over its memory for that long, by as much as it can
//! fill meanwhile; the number of processes is bounded by the kernel as well ([`super::wire::ProcessLimits`]). Memory
//! that belongs to no process and no file system of the box would not be seen, so the filter of system calls keeps code
//! from having such.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::cgroup::Bounds;
use crate::process::{self, Identity, Stat};

/// Least time between two looks.
const EVERY: Duration = Duration::from_millis(100);

/// Looks may take this part of a core: where there are thousands of processes they come less often.
const SHARE: u32 = 20;

/// What the kernel calls a file system in memory.
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

/// File systems in memory of every box.
const TEMPORARY: [&str; 2] = ["tmp", "dev/shm"];

/// Looks after boxes until it is dropped.
#[derive(Debug, Default)]
pub(super) struct Watcher(Arc<Mutex<Boxes>>);

#[derive(Debug, Default)]
struct Boxes {
    all: BTreeMap<u64, Watched>,
    counter: u64,
    is_running: bool,
}

#[derive(Debug, Clone)]
struct Watched {
    /// The first process: all others of the box come of it.
    first: Identity,
    bounds: Bounds,
    /// Ends the box.
    kill: CancellationToken,
    is_boxed: bool,
}

/// A box that is watched, until this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    boxes: Weak<Mutex<Boxes>>,
    number: u64,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(boxes) = self.boxes.upgrade() {
            lock(&boxes).all.remove(&self.number);
        }
    }
}

impl Watcher {
    /// Whether this machine shows what has to be seen.
    pub fn is_possible() -> bool {
        process::own_and_shared_memory(std::process::id()).is_some()
    }

    /// Watches the box whose first process this is. `None`: it has ended already, or is being ended.
    pub fn watch(&self, pid: u32, bounds: Bounds, kill: CancellationToken, is_boxed: bool) -> Option<Watch> {
        let first = Identity::of(pid)?;
        let mut boxes = lock(&self.0);
        boxes.counter += 1;
        let number = boxes.counter;
        boxes.all.insert(number, Watched { first, bounds, kill, is_boxed });
        if !boxes.is_running {
            let looking = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("box-watcher".to_owned()).spawn(move || look_on(&looking));
            boxes.is_running = thread.is_ok();
            if let Err(error) = thread {
                tracing::error!(%error, "boxes cannot be watched; this one is ended");
                boxes.all.remove(&number)?.kill.cancel();
                return None;
            }
        }
        Some(Watch { boxes: Arc::downgrade(&self.0), number })
    }
}

fn lock(boxes: &Mutex<Boxes>) -> MutexGuard<'_, Boxes> {
    boxes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks until there is no box.
fn look_on(boxes: &Mutex<Boxes>) {
    loop {
        let watched: Vec<Watched> = {
            let mut boxes = lock(boxes);
            if boxes.all.is_empty() {
                boxes.is_running = false;
                return;
            }
            boxes.all.values().cloned().collect()
        };
        #[expect(clippy::disallowed_methods, reason = "measured here alone: this crate knows nothing of the service")]
        let began = Instant::now();
        let table = process::all();
        for watched in &watched {
            look(watched, &table);
        }
        std::thread::sleep(EVERY.max(began.elapsed() * SHARE));
    }
}

fn look(watched: &Watched, table: &[(u32, Stat)]) {
    let family = family(watched.first, table);
    let Bounds { memory, processes, .. } = watched.bounds;
    let threads: u64 = family.iter().map(|(_, stat)| stat.threads).sum();
    if threads > processes {
        tracing::warn!(threads, bound = processes, "a box has too many processes and is ended");
        watched.kill.cancel();
        return;
    }
    let temporary = temporary_files(watched);
    let page = rustix::param::page_size() as u64;
    // This counts what is shared as often as it is: never too little, and cheap.
    let most: u64 = family.iter().map(|(_, stat)| stat.resident * page).sum();
    if most + temporary <= memory {
        return;
    }
    let mut parts: Vec<(Identity, u64, u64)> = family
        .iter()
        .map(|(pid, stat)| {
            // What cannot be told is counted whole, unless the process has just ended.
            let (own, shared) = process::own_and_shared_memory(*pid).unwrap_or((stat.resident * page, 0));
            (Identity { pid: *pid, started: stat.started }, own, shared)
        })
        .collect();
    let own: u64 = parts.iter().map(|(_, own, _)| own).sum();
    let shared: u64 = parts.iter().map(|(_, _, shared)| shared).sum();
    // Files in memory that a process maps are seen twice.
    let mut used = own + shared.max(temporary);
    parts.sort_unstable_by_key(|(_, own, shared)| std::cmp::Reverse(own + shared));
    for (identity, own, shared) in parts {
        if used <= memory {
            break;
        }
        tracing::warn!(used, bound = memory, pid = identity.pid, "a box has too much memory: its largest process goes");
        if identity == watched.first {
            watched.kill.cancel();
        } else {
            process::kill_exactly(identity);
        }
        used = used.saturating_sub(own + shared);
    }
}

/// The first process with all that came of it: what loses its parent comes to the first one.
fn family(first: Identity, table: &[(u32, Stat)]) -> Vec<(u32, Stat)> {
    let mut children: BTreeMap<u32, Vec<&(u32, Stat)>> = BTreeMap::new();
    for entry in table {
        children.entry(entry.1.parent).or_default().push(entry);
    }
    let first = table.iter().find(|(pid, stat)| *pid == first.pid && stat.started == first.started);
    let mut found: Vec<(u32, Stat)> = first.copied().into_iter().collect();
    let mut seen: BTreeSet<u32> = found.iter().map(|(pid, _)| *pid).collect();
    let mut at = 0;
    while let Some((pid, _)) = found.get(at) {
        found.extend(children.get(pid).into_iter().flatten().filter(|(pid, _)| seen.insert(*pid)).map(|entry| **entry));
        at += 1;
    }
    found
}

/// What lies in the box's file systems in memory, bytes.
fn temporary_files(watched: &Watched) -> u64 {
    if !watched.is_boxed {
        return 0;
    }
    let root = Path::new("/proc").join(watched.first.pid.to_string()).join("root");
    let used = |name: &&str| {
        let found = rustix::fs::statfs(root.join(name)).ok().filter(|found| found.f_type == TMPFS)?;
        Some(found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_bsize.unsigned_abs()))
    };
    TEMPORARY.iter().filter_map(used).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(parent: u32, started: u64) -> Stat {
        let mut stat = Stat::default();
        (stat.parent, stat.started) = (parent, started);
        stat
    }

    #[test]
    fn a_box_is_its_first_process_and_what_came_of_it() {
        let table = [(40, stat(30, 9)), (30, stat(20, 8)), (20, stat(1, 5)), (21, stat(1, 6)), (31, stat(21, 7))];
        let found: Vec<u32> =
            family(Identity { pid: 20, started: 5 }, &table).into_iter().map(|(pid, _)| pid).collect();
        assert_eq!(found, [20, 30, 40]);
        assert!(family(Identity { pid: 20, started: 4 }, &table).is_empty(), "another process by now");
    }
}
