//! What a session's directory holds, and its removal, whatever its user has made of it: names that add up to more than a
//! path may have, thousands of levels, folders that shut out their owner, folders that move while they are looked at.
//!
//! Both walk by descriptors, three or four at any depth, and by the names inside one folder: down by a name, up by `..`.
//! A folder that is not where it was found is looked for again from the top.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use weir_blocking as blocking;

/// What a session may fill, bytes and entries. An installed framework has some 50,000 files.
const MOST: DiskUse = DiskUse { bytes: 4 << 30, entries: 250_000 };
/// Time between two looks. What is written faster is bounded file by file.
const CHECK: Duration = Duration::from_secs(5);

/// What a directory holds, itself not counted. At most a little more than a session may fill: nobody needs to know how
/// much more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// Blocks that are taken, whatever the files' sizes say.
    pub bytes: u64,
    /// Files and folders.
    pub entries: u64,
}

impl DiskUse {
    /// Whether it is more than a session may fill.
    fn is_too_much(&self) -> bool {
        self.bytes > MOST.bytes || self.entries > MOST.entries
    }
}

/// A session's directory, for whoever looks after its size.
#[derive(Debug, Clone)]
pub struct Disk(PathBuf);

impl Disk {
    pub(super) fn of(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// What it holds now. Some milliseconds; at most about a second.
    pub async fn used(&self) -> DiskUse {
        let root = self.0.clone();
        blocking::run(move || measure(&root)).await.unwrap_or_default()
    }

    /// Resolves once it holds more than a session may.
    pub async fn overfull(&self) -> DiskUse {
        loop {
            let used = self.used().await;
            if used.is_too_much() {
                return used;
            }
            tokio::time::sleep(CHECK).await;
        }
    }
}

/// What is below `root`, as far as it matters.
pub(super) fn measure(root: &Path) -> DiskUse {
    let mut meter = UseCounter::default();
    // Errors mean that the entry is gone: folders that shut out their owner are opened by the walk.
    let _ = walk(root, &mut meter);
    meter.used
}

/// Removes `root` and everything below it, and goes on past what cannot be removed.
///
/// # Errors
/// The first of them. What remains is met by the next try.
pub(super) fn remove(root: &Path) -> io::Result<()> {
    let mut remover = Remover::default();
    walk(root, &mut remover)?;
    match remover.trouble {
        Some(trouble) => Err(trouble),
        None => std::fs::remove_dir(root),
    }
}

/// What is done on the way.
trait Visitor {
    /// Rights that a folder's owner needs.
    const RIGHTS: u32;

    /// An entry of the folder `dir`, which may be one that is entered next.
    fn meet(&mut self, dir: BorrowedFd<'_>, name: &CStr, is_dir: bool) -> ControlFlow<()>;

    /// The folder of this name in `dir` has been walked.
    fn leave(&mut self, dir: BorrowedFd<'_>, name: &CStr);

    /// A folder could not be entered or read.
    fn miss(&mut self, error: io::Error);
}

#[derive(Default)]
struct UseCounter {
    used: DiskUse,
    /// Files with several names, which take their blocks once.
    linked: HashSet<u64>,
}

impl Visitor for UseCounter {
    const RIGHTS: u32 = 0o500;

    fn meet(&mut self, dir: BorrowedFd<'_>, name: &CStr, is_dir: bool) -> ControlFlow<()> {
        self.used.entries += 1;
        if let Ok(stat) = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            && (is_dir || stat.st_nlink < 2 || self.linked.insert(stat.st_ino))
        {
            self.used.bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
        }
        if self.used.is_too_much() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn leave(&mut self, _: BorrowedFd<'_>, _: &CStr) {}

    fn miss(&mut self, _: io::Error) {}
}

#[derive(Default)]
struct Remover {
    trouble: Option<io::Error>,
}

impl Remover {
    fn done(&mut self, removed: rustix::io::Result<()>) {
        match removed {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => _ = self.trouble.get_or_insert(error.into()),
        }
    }
}

impl Visitor for Remover {
    const RIGHTS: u32 = 0o700;

    fn meet(&mut self, dir: BorrowedFd<'_>, name: &CStr, is_dir: bool) -> ControlFlow<()> {
        if !is_dir {
            self.done(rustix::fs::unlinkat(dir, name, AtFlags::empty()));
        }
        ControlFlow::Continue(())
    }

    fn leave(&mut self, dir: BorrowedFd<'_>, name: &CStr) {
        self.done(rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR));
    }

    fn miss(&mut self, error: io::Error) {
        self.trouble.get_or_insert(error);
    }
}

/// A folder on the way down.
struct Level {
    /// Device and number: a name may lead elsewhere by now.
    id: (u64, u64),
    /// The folders in it, each name with its zero.
    folders: Vec<u8>,
    /// Where the next name begins.
    next: usize,
    /// The one that is walked now.
    current: CString,
}

impl Level {
    /// Takes the next folder.
    fn advance(&mut self) -> bool {
        let Ok(name) = CStr::from_bytes_until_nul(&self.folders[self.next..]) else { return false };
        self.next += name.to_bytes_with_nul().len();
        self.current = name.to_owned();
        true
    }
}

/// Walks everything below `root`, a folder's files before the folders in it.
fn walk<V: Visitor>(root: &Path, visitor: &mut V) -> io::Result<()> {
    let top = enter(CWD, &CString::new(root.as_os_str().as_encoded_bytes())?, V::RIGHTS)?;
    let mut here = top.try_clone()?;
    let Some(first) = read(&here, visitor)? else { return Ok(()) };
    let mut levels = vec![first];
    while let Some(level) = levels.last_mut() {
        if level.advance() {
            match enter(&here, &level.current, V::RIGHTS).and_then(|inner| Ok((read(&inner, visitor)?, inner))) {
                Ok((Some(level), inner)) => {
                    levels.push(level);
                    here = inner;
                }
                Ok((None, _)) => return Ok(()),
                Err(error) => visitor.miss(error),
            }
            continue;
        }
        levels.pop();
        if levels.is_empty() {
            return Ok(());
        }
        let above = rustix::fs::openat(&here, c"..", FOLDER, Mode::empty()).map_err(io::Error::from);
        here = match above {
            Ok(above) if levels.last().is_some_and(|level| id_of(&above).is_ok_and(|id| id == level.id)) => above,
            _ => again(&top, &mut levels, V::RIGHTS)?,
        };
        if let Some(level) = levels.last() {
            visitor.leave(here.as_fd(), &level.current);
        }
    }
    Ok(())
}

/// Finds the way down again, as far as it is still there; the rest of `levels` is given up.
fn again(top: &OwnedFd, levels: &mut Vec<Level>, rights: u32) -> io::Result<OwnedFd> {
    let mut here = top.try_clone()?;
    let mut there = 1;
    while there < levels.len() {
        let Ok(inner) = enter(&here, &levels[there - 1].current, rights) else { break };
        if id_of(&inner)? != levels[there].id {
            break;
        }
        here = inner;
        there += 1;
    }
    levels.truncate(there);
    Ok(here)
}

/// Not through a link that has taken a folder's place.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a folder; one that shuts out its own owner is opened up. Root needs no rights.
fn enter(dir: impl AsFd, name: &CStr, rights: u32) -> io::Result<OwnedFd> {
    let folder = match rustix::fs::openat(dir.as_fd(), name, FOLDER, Mode::empty()) {
        Err(rustix::io::Errno::ACCESS) => {
            let shut = rustix::fs::openat(dir, name, FOLDER.union(OFlags::PATH), Mode::empty())?;
            // Of this very folder, whatever its name leads to by now.
            rustix::fs::chmod(format!("/proc/self/fd/{}", shut.as_raw_fd()), Mode::from_raw_mode(rights))?;
            rustix::fs::openat(&shut, c".", FOLDER, Mode::empty())?
        }
        opened => opened?,
    };
    if !rustix::process::geteuid().is_root() {
        let mode = rustix::fs::fstat(&folder)?.st_mode;
        if mode & rights != rights {
            // Fails for a folder of another user, which then stays as it is.
            let _ = rustix::fs::fchmod(&folder, Mode::from_raw_mode(mode & 0o7777 | rights));
        }
    }
    Ok(folder)
}

/// Meets everything in a folder. `None`: the visitor has seen enough.
fn read(folder: &OwnedFd, visitor: &mut impl Visitor) -> io::Result<Option<Level>> {
    let mut level = Level { id: id_of(folder)?, folders: Vec::new(), next: 0, current: CString::default() };
    let (device, mut entries) = (level.id.0, Dir::read_from(folder)?);
    while let Some(entry) = entries.read().transpose()? {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let stat = || rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        let is_dir = match entry.file_type() {
            FileType::Unknown => stat().is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir()),
            kind => kind.is_dir(),
        };
        // What is mounted here is not the session's.
        if is_dir && stat().is_ok_and(|stat| stat.st_dev != device) {
            continue;
        }
        if visitor.meet(folder.as_fd(), name, is_dir).is_break() {
            return Ok(None);
        }
        if is_dir {
            level.folders.extend_from_slice(name.to_bytes_with_nul());
        }
    }
    Ok(Some(level))
}

fn id_of(folder: &OwnedFd) -> io::Result<(u64, u64)> {
    let Stat { st_dev, st_ino, .. } = rustix::fs::fstat(folder)?;
    Ok((st_dev, st_ino))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    fn folder() -> PathBuf {
        let path = std::env::temp_dir().join(format!("weir-disk-{}", weir_shared::random::id()));
        fs::create_dir(&path).unwrap();
        path
    }

    /// Folders inside each other. Returns the innermost, which may be too deep for a path.
    fn nest(root: &Path, name: &str, depth: usize) -> OwnedFd {
        let name = CString::new(name).unwrap();
        let mut here = rustix::fs::openat(CWD, root, FOLDER, Mode::empty()).unwrap();
        for _ in 0..depth {
            rustix::fs::mkdirat(&here, &name, Mode::from_raw_mode(0o700)).unwrap();
            here = rustix::fs::openat(&here, &name, FOLDER, Mode::empty()).unwrap();
        }
        here
    }

    fn write(dir: &OwnedFd, bytes: usize) {
        let flags = OFlags::CREATE | OFlags::WRONLY;
        let file = rustix::fs::openat(dir, c"file", flags, Mode::from_raw_mode(0o600)).unwrap();
        io::Write::write_all(&mut fs::File::from(file), &vec![1; bytes]).unwrap();
    }

    #[test]
    fn what_lies_below_longer_names_than_a_path_may_have_is_counted_and_removed() {
        let root = folder();
        write(&nest(&root, &"x".repeat(255), 17), 1 << 20);
        let used = measure(&root);
        assert!(used.bytes >= 1 << 20 && used.entries == 18, "{used:?}");
        remove(&root).unwrap();
        assert!(!root.exists());
    }

    /// In a process of its own, because what a process may hold is its own.
    #[test]
    fn thousands_of_levels_take_a_handful_of_descriptors() {
        const ROOT: &str = "WEIR_TEST_DEEP_ROOT";
        let name = "disk::tests::thousands_of_levels_take_a_handful_of_descriptors";
        if let Ok(root) = std::env::var(ROOT) {
            let used = measure(Path::new(&root));
            assert!(used.bytes >= 100_000 && used.entries == 5_001, "{used:?}");
            return remove(Path::new(&root)).unwrap();
        }
        let root = folder();
        write(&nest(&root, "d", 5_000), 100_000);
        let run = "ulimit -n 48; exec \"$0\" --exact \"$1\" --test-threads 1";
        let program = std::env::current_exe().unwrap();
        let child = Command::new("sh").arg("-c").arg(run).arg(program).arg(name).env(ROOT, &root).output().unwrap();
        assert!(child.status.success() && !root.exists(), "{}", String::from_utf8_lossy(&child.stdout));
    }

    #[test]
    fn a_file_with_many_names_is_counted_once_and_holes_not_at_all() {
        let root = folder();
        fs::write(root.join("one"), vec![1; 1 << 20]).unwrap();
        for n in 0..20 {
            fs::hard_link(root.join("one"), root.join(format!("link-{n}"))).unwrap();
        }
        fs::File::create(root.join("hole")).unwrap().set_len(1 << 40).unwrap();
        std::os::unix::fs::symlink("/usr", root.join("elsewhere")).unwrap();
        let used = measure(&root);
        assert!(used.bytes < 2 << 20 && used.entries == 23, "{used:?}");
        remove(&root).unwrap();
        assert!(!root.exists() && Path::new("/usr").exists());
    }

    #[test]
    fn folders_that_shut_out_their_owner_are_counted_and_removed() {
        let root = folder();
        let inner = root.join("shut/in");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("file"), vec![1; 1 << 20]).unwrap();
        for shut in [&inner, &root.join("shut")] {
            fs::set_permissions(shut, fs::Permissions::from_mode(0o000)).unwrap();
        }
        assert!(measure(&root).bytes >= 1 << 20);
        remove(&root).unwrap();
        assert!(!root.exists());
    }

    #[test]
    fn more_than_a_session_may_fill_is_enough_to_know() {
        let root = folder();
        let here = rustix::fs::openat(CWD, &root, FOLDER, Mode::empty()).unwrap();
        let mut meter = UseCounter::default();
        meter.used.entries = MOST.entries - 3;
        for n in 0..20 {
            rustix::fs::mkdirat(&here, format!("{n}"), Mode::from_raw_mode(0o700)).unwrap();
        }
        walk(&root, &mut meter).unwrap();
        assert_eq!(meter.used.entries, MOST.entries + 1);
        assert!(meter.used.is_too_much());
        remove(&root).unwrap();
    }

    #[test]
    fn a_folder_that_moves_away_ends_neither_the_walk_nor_another_tree() {
        /// Moves the folder that it stands in when it first meets its file.
        struct Mover(UseCounter, PathBuf, PathBuf, Vec<CString>);
        impl Visitor for Mover {
            const RIGHTS: u32 = UseCounter::RIGHTS;

            fn meet(&mut self, dir: BorrowedFd<'_>, name: &CStr, is_dir: bool) -> ControlFlow<()> {
                if name == c"file" && self.1.exists() {
                    fs::rename(&self.1, &self.2).unwrap();
                }
                self.0.meet(dir, name, is_dir)
            }
            fn leave(&mut self, _: BorrowedFd<'_>, name: &CStr) {
                self.3.push(name.to_owned());
            }
            fn miss(&mut self, error: io::Error) {
                panic!("{error}");
            }
        }
        let (root, outside) = (folder(), folder());
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::write(root.join("a/b/c/file"), "x").unwrap();
        fs::create_dir(outside.join("b")).unwrap();
        let mut mover = Mover(UseCounter::default(), root.join("a/b"), outside.join("moved"), Vec::new());
        walk(&root, &mut mover).unwrap();
        // It is back where the way ends: in `a`, of which it then takes leave, and nowhere outside.
        assert_eq!(mover.3.last(), Some(&CString::from(c"a")), "{:?}", mover.3);
        assert!(!mover.3.contains(&CString::from(c"moved")));
        assert!(outside.join("b").exists() && outside.join("moved/c/file").exists());
        remove(&root).unwrap();
        remove(&outside).unwrap();
    }
}
