//! Directories and users of sessions, and what is left of them when a worker dies.
//!
//! ```text
//! <run dir>/x-<worker pid>-<its start time>/       711, this worker's
//!     box            the program that every box starts with
//!     cgroups        where this worker's cgroups are, for whoever cleans up after it
//!     programs/      755, what boxes for code are given of the worker's own
//!     <name>/        710, a session: nobody but its user gets past this
//!         home/      700, the browser's profile
//!         work/      700, the user's files: home of code, and the same path for the browser
//!         io/        700, the worker's own sockets
//!         etc/       755, the user's name and the like
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::fs::FlockOperation;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use weir_blocking as blocking;

use super::code::Places;
use super::disk::{self, Disk};
use super::run_dir;
use crate::process;

/// Users of sessions when the worker is root. systemd and Debian leave this range to local use.
const UIDS: std::ops::RangeInclusive<u32> = 61_000..=61_183;

/// Longest path of a session's directory: a socket's whole path must fit into 107 bytes.
pub(super) const MAX_PATH: usize = 107 - "/io/".len() - 16;

/// This worker's directory in the run directory.
#[derive(Debug)]
pub(super) struct WorkerDir {
    pub path: PathBuf,
    /// Directories and boxes of sessions that are not gone yet.
    pub remains: TaskTracker,
    left: Arc<Left>,
    _held: Option<File>,
}

/// Directories of ended sessions that could not be removed, as when this process has no descriptor left. Each is tried again
/// when a further session begins or ends, and when the worker stops. Their users are nobody else's as long.
#[derive(Debug, Default)]
struct Left(Mutex<Vec<(PathBuf, Arc<User>)>>);

impl Left {
    fn add(&self, root: &Path, user: &Arc<User>) {
        self.lock().push((root.to_owned(), Arc::clone(user)));
    }

    /// Removes what can be removed by now.
    fn tidy(&self) {
        let tried = std::mem::take(&mut *self.lock());
        let still: Vec<_> = tried.into_iter().filter(|(root, _)| try_remove(root).is_err()).collect();
        self.lock().extend(still);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(PathBuf, Arc<User>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkerDir {
    /// Cleans up after dead workers and makes the directory, in the first of these places that can be used.
    pub fn prepare(places: &[PathBuf]) -> anyhow::Result<Self> {
        let run_dir = bury_the_dead(places)?;
        let me = process::Identity::of_self()?;
        // Several in one process happen in tests only.
        for n in 0..1000 {
            let tail = if n == 0 { String::new() } else { format!("-{n}") };
            let path = run_dir.join(format!("x-{}-{}{tail}", me.pid, me.started));
            match make_dir(&path, 0o711, false) {
                Ok(()) => {
                    let held = hold(&path).ok();
                    return Ok(Self { path, remains: TaskTracker::new(), left: Arc::default(), _held: held });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e).with_context(|| format!("creating {}", path.display())),
            }
        }
        bail!("{} is full of this worker's directories", run_dir.display())
    }

    /// Puts the program that boxes start with where every user can run it, by a link or else as a copy.
    pub fn install(&self, program: &Path) -> anyhow::Result<PathBuf> {
        let place = self.path.join("box");
        let is_open = fs::metadata(program).is_ok_and(|m| m.permissions().mode() & 0o005 == 0o005);
        // `/proc/self/exe` itself cannot be linked, and a replaced program has no name any more.
        let named = program.canonicalize().unwrap_or_else(|_| program.to_owned());
        if !is_open || fs::hard_link(&named, &place).is_err() {
            fs::copy(program, &place).with_context(|| format!("copying {}", program.display()))?;
            fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
        }
        Ok(place)
    }

    /// Records where this worker's cgroups are.
    pub fn record_cgroups<'a>(&self, dirs: impl Iterator<Item = &'a Path>) -> io::Result<()> {
        let lines: String = dirs.map(|dir| format!("{}\n", dir.display())).collect();
        fs::write(self.path.join("cgroups"), lines)
    }
}

impl WorkerDir {
    /// The folder of programs that boxes for code are given, for whoever has some to make.
    pub fn programs(&self) -> PathBuf {
        self.path.join("programs")
    }

    /// Removes what is in the directory for all boxes, and the directory itself unless a session's is in it.
    pub fn remove(&self) {
        for file in ["box", "cgroups"] {
            let _ = fs::remove_file(self.path.join(file));
        }
        let _ = fs::remove_dir_all(self.programs());
        self.left.tidy();
        let _ = fs::remove_dir(&self.path);
    }
}

impl Drop for WorkerDir {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Has those that clear away old files (`systemd-tmpfiles`, in `/tmp` after ten days) leave the directory alone for as long as
/// this is held: what a worker at rest does not use for long is no less needed later.
fn hold(dir: &Path) -> io::Result<File> {
    let held = File::open(dir)?;
    rustix::fs::flock(&held, FlockOperation::NonBlockingLockShared)?;
    Ok(held)
}

/// Cleans up after the dead workers of this machine; the run directory, which is the first of these places that can be
/// used.
///
/// # Errors
/// When none can.
pub(super) fn bury_the_dead(places: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let run_dir = run_dir::prepare(places)?;
    remove_leftovers(&run_dir);
    Ok(run_dir)
}

/// Ends what dead workers left and removes their directories. Errors are logged: a leftover must not keep a
/// worker from starting.
fn remove_leftovers(run_dir: &Path) {
    for entry in fs::read_dir(run_dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(|name| process::Identity::from_name(name.strip_prefix("x-")?)) else {
            continue;
        };
        if owner.is_alive() {
            continue;
        }
        let dir = entry.path();
        for group in fs::read_to_string(dir.join("cgroups")).unwrap_or_default().lines() {
            super::cgroup::remove_tree(Path::new(group));
        }
        let killed = process::kill_users_of(&dir);
        match remove_dir(&dir) {
            Ok(()) => tracing::info!(worker.pid = owner.pid, processes = killed, "removed the boxes of a dead worker"),
            Err(error) => tracing::warn!(
                worker.pid = owner.pid, %error, "what a dead worker left is not gone; the next worker tries again"
            ),
        }
    }
}

/// The users that sessions get: one each, so that neither files nor processes of one are another's.
#[derive(Debug)]
pub(super) struct Users {
    /// `None`: the worker is not root, so all sessions are its own user.
    locks: Option<PathBuf>,
    held: Mutex<BTreeMap<u32, File>>,
}

impl Users {
    pub fn prepare() -> anyhow::Result<Self> {
        let locks = if process::is_root() {
            // One place for the machine: users are shared by all run directories.
            let dir = PathBuf::from("/run/weir-users");
            make_dir(&dir, 0o700, true).with_context(|| format!("creating {}", dir.display()))?;
            Some(dir)
        } else {
            None
        };
        Ok(Self { locks, held: Mutex::default() })
    }

    /// A user that no other session on this machine has.
    ///
    /// # Errors
    /// When all are taken.
    fn claim(self: &Arc<Self>) -> anyhow::Result<User> {
        let Some(locks) = &self.locks else {
            let ids = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
            return Ok(User { uid: ids.0, gid: ids.1, users: None });
        };
        let mut held = self.lock();
        let in_use = process::users();
        for uid in UIDS.filter(|uid| !in_use.contains(uid)) {
            if held.contains_key(&uid) {
                continue;
            }
            let path = locks.join(uid.to_string());
            let file = File::options().create(true).truncate(false).write(true).open(&path)?;
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                held.insert(uid, file);
                return Ok(User { uid, gid: uid, users: Some(Arc::clone(self)) });
            }
        }
        bail!("all users of sessions ({} to {}) are taken on this machine", UIDS.start(), UIDS.end())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, File>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A claimed user; given back when dropped.
#[derive(Debug)]
pub(super) struct User {
    pub uid: u32,
    pub gid: u32,
    users: Option<Arc<Users>>,
}

impl User {
    /// Whether processes of this user are this session's and nobody else's.
    pub fn is_own(&self) -> bool {
        self.users.is_some()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if let Some(users) = &self.users {
            users.lock().remove(&self.uid);
        }
    }
}

/// A session's directory and user.
#[derive(Debug)]
pub struct SessionDir {
    /// All of it.
    pub root: PathBuf,
    /// The browser's profile.
    pub home: PathBuf,
    /// The user's files, shared by all boxes of the session: [`super::HOME`] in each of them.
    pub work: PathBuf,
    /// For sockets of the worker; not seen by any box.
    pub io: PathBuf,
    pub(super) name: String,
    pub(super) user: Arc<User>,
    pub(super) places: Places,
    /// Held until nothing of it is left.
    remains: TaskTrackerToken,
    left: Arc<Left>,
    is_removed: bool,
}

impl SessionDir {
    pub(super) fn create(worker: &WorkerDir, users: &Arc<Users>, name: &str) -> anyhow::Result<Self> {
        let is_plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        if !is_plain || ["box", "cgroups"].contains(&name) {
            bail!("{name:?} cannot name a session's directory");
        }
        if worker.remains.is_closed() {
            bail!("the worker is stopping");
        }
        let root = worker.path.join(name);
        if root.as_os_str().len() > MAX_PATH {
            bail!("{} is too long for sockets in it: choose a shorter run directory", root.display());
        }
        worker.left.tidy();
        let user = Arc::new(users.claim()?);
        make_dir(&root, 0o710, false).with_context(|| format!("creating {}", root.display()))?;
        let dir = Self {
            home: root.join("home"),
            work: root.join("work"),
            io: root.join("io"),
            root,
            name: name.to_owned(),
            user,
            places: Places::default(),
            remains: worker.remains.token(),
            left: Arc::clone(&worker.left),
            is_removed: false,
        };
        dir.fill().with_context(|| format!("filling {}", dir.root.display()))?;
        Ok(dir)
    }

    fn fill(&self) -> io::Result<()> {
        let User { uid, gid, .. } = *self.user;
        for (path, mode) in [(&self.home, 0o700), (&self.work, 0o700), (&self.io, 0o700)] {
            make_dir(path, mode, false)?;
        }
        if self.user.is_own() {
            chown(&self.root, None, Some(gid))?;
            chown(&self.home, Some(uid), Some(gid))?;
            chown(&self.work, Some(uid), Some(gid))?;
        }
        let etc = self.root.join("etc");
        make_dir(&etc, 0o755, false)?;
        let files = [
            ("passwd", format!("user:x:{uid}:{gid}::{}:/bin/bash\n", super::HOME)),
            ("group", format!("user:x:{gid}:\n")),
            ("hosts", "127.0.0.1 localhost\n::1 localhost\n".to_owned()),
            ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n".to_owned()),
        ];
        for (name, text) in files {
            fs::write(etc.join(name), text)?;
            fs::set_permissions(etc.join(name), fs::Permissions::from_mode(0o644))?;
        }
        Ok(())
    }

    /// User and group of the session's processes and files.
    pub fn owner(&self) -> (u32, u32) {
        (self.user.uid, self.user.gid)
    }

    /// For whoever looks after its size.
    pub fn disk(&self) -> Disk {
        Disk::of(&self.root)
    }

    /// Removes the directory with everything in it and gives the user back. The boxes must be gone; whatever else
    /// runs as the session's own user is killed.
    pub async fn remove(mut self) {
        self.is_removed = true;
        // In a task of its own, for whoever asked may be gone before there is a thread for it.
        let removing = tokio::spawn(blocking::run_at_last(self.ending()));
        let _ = removing.await;
    }

    /// What ends the session, on a thread that may block.
    fn ending(&self) -> impl FnOnce() + Send + use<> {
        let (root, user) = (self.root.clone(), Arc::clone(&self.user));
        let (remains, left) = (self.remains.clone(), Arc::clone(&self.left));
        move || {
            if user.is_own() {
                // Programs without a box may have left some.
                process::kill_user(user.uid);
            }
            left.tidy();
            if let Err(error) = remove_dir(&root) {
                tracing::warn!(%error, "a session's directory cannot be removed yet; it is tried again");
                left.add(&root, &user);
            }
            drop(remains);
        }
    }
}

impl Drop for SessionDir {
    fn drop(&mut self) {
        if !self.is_removed {
            blocking::detach("session-end", self.ending());
        }
    }
}

fn make_dir(path: &Path, mode: u32, recursive: bool) -> io::Result<()> {
    fs::DirBuilder::new().recursive(recursive).mode(mode).create(path)?;
    // The process's mask may have taken bits away; a directory that existed keeps its own.
    if recursive { Ok(()) } else { fs::set_permissions(path, fs::Permissions::from_mode(mode)) }
}

/// Removes a directory against dying processes that still write into it, and against modes that shut out their
/// own owner. Follows no links.
///
/// # Errors
/// When something of it is still there after a second.
pub(super) fn remove_dir(dir: &Path) -> io::Result<()> {
    for _ in 0..49 {
        if try_remove(dir).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    try_remove(dir)
}

fn try_remove(dir: &Path) -> io::Result<()> {
    disk::remove(dir).or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn run_dir() -> PathBuf {
        std::env::temp_dir().join(format!("weir-dir-{}", weir_shared::random::hex::<4>()))
    }

    #[tokio::test]
    async fn sessions_have_their_own_user_and_leave_nothing() {
        let run_dir = run_dir();
        let worker = WorkerDir::prepare(std::slice::from_ref(&run_dir)).unwrap();
        let users = Arc::new(Users::prepare().unwrap());
        let one = SessionDir::create(&worker, &users, "s-1").unwrap();
        let two = SessionDir::create(&worker, &users, "s-2").unwrap();
        if process::is_root() {
            // Another worker of this machine.
            let others = Arc::new(Users::prepare().unwrap());
            let theirs = others.claim().unwrap();
            assert!(one.owner() != two.owner() && theirs.uid != one.owner().0 && theirs.uid != two.owner().0);
            assert!(one.owner().0 != 0);
            assert_eq!(fs::metadata(&one.home).unwrap().uid(), one.owner().0);
        }
        assert!(SessionDir::create(&worker, &users, "s-1").is_err());
        for name in ["", "../x", "a/b", "box", "a.b"] {
            assert!(SessionDir::create(&worker, &users, name).is_err(), "{name}");
        }
        fs::write(one.work.join("file"), vec![1; 100_000]).unwrap();
        assert!(one.disk().used().await.bytes >= 100_000);
        fs::create_dir_all(one.work.join("shut/in")).unwrap();
        fs::set_permissions(one.work.join("shut"), fs::Permissions::from_mode(0o000)).unwrap();
        let root = one.root.clone();
        one.remove().await;
        two.remove().await;
        assert!(!root.exists());
        let path = worker.path.clone();
        drop(worker);
        assert!(!path.exists());
        fs::remove_dir_all(&run_dir).unwrap();
    }

    /// `systemd-tmpfiles` asks in the same way, and passes over what it does not get.
    #[test]
    fn who_clears_away_old_files_leaves_the_directory_of_a_living_worker() {
        let run_dir = run_dir();
        let worker = WorkerDir::prepare(std::slice::from_ref(&run_dir)).unwrap();
        let lock = File::open(&worker.path).unwrap();
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap_err();
        drop(worker);
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        remove_dir(&run_dir).unwrap();
    }

    #[test]
    fn without_a_further_thread_a_directory_is_looked_at_in_vain_and_nothing_panics() {
        let run_dir = run_dir();
        let worker = WorkerDir::prepare(std::slice::from_ref(&run_dir)).unwrap();
        let users = Arc::new(Users::prepare().unwrap());
        // Nowhere is room for such a stack.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().thread_stack_size(1 << 60).build();
        runtime.unwrap().block_on(async {
            let one = SessionDir::create(&worker, &users, "s-1").unwrap();
            assert_eq!(one.disk().used().await, disk::DiskUse::default());
        });
        drop(worker);
        remove_dir(&run_dir).unwrap();
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_removed_goes_with_a_later_session_or_the_worker() {
        let run_dir = run_dir();
        let worker = WorkerDir::prepare(std::slice::from_ref(&run_dir)).unwrap();
        let users = Arc::new(Users::prepare().unwrap());
        // No directory, which the removal of one cannot take away, as it cannot without descriptors.
        let block = |dir: &SessionDir| {
            fs::rename(&dir.root, dir.root.with_extension("away")).unwrap();
            fs::write(&dir.root, "in the way").unwrap();
        };
        let unblock = |root: &Path| {
            fs::remove_file(root).unwrap();
            fs::rename(root.with_extension("away"), root).unwrap();
        };
        let one = SessionDir::create(&worker, &users, "s-1").unwrap();
        let (root, uid) = (one.root.clone(), one.owner().0);
        block(&one);
        one.remove().await;
        assert!(root.exists());
        let two = SessionDir::create(&worker, &users, "s-2").unwrap();
        assert!(!process::is_root() || two.owner().0 != uid, "the user's files are still there");
        unblock(&root);
        block(&two);
        let last = two.root.clone();
        two.remove().await;
        assert!(!root.exists() && last.exists());
        unblock(&last);
        drop(worker);
        assert_eq!(fs::read_dir(&run_dir).unwrap().count(), 0);
        fs::remove_dir(&run_dir).unwrap();
    }

    #[test]
    fn directories_of_dead_workers_go_and_those_of_living_ones_stay() {
        let root = run_dir();
        let me = process::Identity::of_self().unwrap();
        let mine = root.join(format!("x-{}-{}", me.pid, me.started));
        let stale = root.join(format!("x-{}-{}", me.pid, me.started + 1));
        for dir in [&mine, &stale] {
            fs::create_dir_all(dir.join("s-1/home")).unwrap();
        }
        remove_leftovers(&root);
        assert!(mine.exists() && !stale.exists());
        remove_dir(&root).unwrap();
    }
}
