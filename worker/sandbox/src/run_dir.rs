//! The run directory: where boxes' directories are made, and the program that every box starts with.
//!
//! Whoever can put something else in its place runs it in the next box, with the next session's data. So it is ours and
//! nobody else may write to it nor to what leads to it. And the users of boxes must get through: a folder on the way
//! that shuts them out would look as if the machine forbade boxes.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rustix::fs::StatVfsMountFlags;

use crate::process;

/// The kernel shows files of users that it cannot name in this namespace as this one's; on the way to us these are the
/// machine's own.
const UNNAMED: u32 = 65_534;

/// The first of `places` that can be used, made if it is missing.
///
/// # Errors
/// Why none can, place by place.
pub(super) fn prepare(places: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let mut reasons = Vec::new();
    for place in places {
        match take(place, own, own == 0) {
            Ok(path) => {
                for reason in &reasons {
                    tracing::info!(reason, using = %path.display(), "another run directory is used");
                }
                return Ok(path);
            }
            Err(error) => reasons.push(format!("{error:#}")),
        }
    }
    bail!("no run directory for boxes can be used (WEIR_RUN_DIR names another): {}", reasons.join("; "))
}

/// Makes a place and judges it. `has_users`: boxes have users of their own, who must get through.
fn take(place: &Path, own: u32, has_users: bool) -> anyhow::Result<PathBuf> {
    let named = || place.display().to_string();
    make(place).with_context(named)?;
    if fs::symlink_metadata(place).with_context(named)?.is_symlink() {
        bail!("{} is a link", place.display());
    }
    let path = place.canonicalize().with_context(named)?;
    let found = fs::metadata(&path).with_context(named)?;
    if !found.is_dir() {
        bail!("{} is no folder", path.display());
    }
    if found.uid() != own {
        bail!("{} belongs to another user (uid {})", path.display(), found.uid());
    }
    if found.mode() & 0o022 != 0 {
        bail!("{} can be written to by other users: chmod go-w", path.display());
    }
    for folder in path.ancestors().skip(1) {
        let above = fs::metadata(folder).with_context(|| folder.display().to_string())?;
        if ![0, UNNAMED, own].contains(&above.uid()) {
            bail!("{} belongs to another user (uid {}), who could replace it", folder.display(), above.uid());
        }
        // In a sticky folder nobody replaces what is another's. A group is trusted: many systems give each user one.
        if above.mode() & 0o002 != 0 && above.mode() & 0o1000 == 0 {
            bail!("{} can be written to by every user", folder.display());
        }
        if has_users && above.mode() & 0o001 == 0 {
            bail!("{} shuts out the users of boxes: chmod o+x", folder.display());
        }
    }
    if found.mode() & 0o711 != 0o711 {
        let mode = found.mode() & 0o755 | 0o711;
        fs::set_permissions(&path, Permissions::from_mode(mode)).with_context(named)?;
    }
    let mount = rustix::fs::statvfs(&path).with_context(named)?;
    if mount.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        bail!("{} lies on a file system without programs (noexec)", path.display());
    }
    let most = longest()?;
    if path.as_os_str().len() > most {
        bail!("{} is too long for the paths of sockets in it: at most {most} bytes", path.display());
    }
    Ok(path)
}

/// Longest path of a run directory: this worker's name and a session's must fit behind it, then a socket's.
fn longest() -> anyhow::Result<usize> {
    let me = process::Identity::of_self()?;
    let names = format!("/x-{}-{}/s00000000", me.pid, me.started);
    Ok(super::dir::MAX_PATH.saturating_sub(names.len()))
}

/// Makes the folder, and those above it that are missing, so that others can pass whatever the process's mask says.
fn make(place: &Path) -> io::Result<()> {
    if let Some(above) = place.parent().filter(|above| !above.as_os_str().is_empty() && !above.exists()) {
        make(above)?;
    }
    match fs::DirBuilder::new().mode(0o711).create(place) {
        Ok(()) => fs::set_permissions(place, Permissions::from_mode(0o711)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("weir-run-{:08x}", rand::random::<u32>()));
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
            Self(path)
        }

        fn with(&self, name: &str, mode: u32) -> PathBuf {
            let path = self.0.join(name);
            fs::create_dir_all(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn own() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_folder_of_another_user_or_open_to_others_is_not_used() {
        let folder = Folder::new();
        let mine = folder.with("mine", 0o700);
        assert!(take(&mine, own() + 1, false).unwrap_err().to_string().contains("another user"));
        for (name, mode) in [("group", 0o775), ("world", 0o777), ("sticky", 0o1777)] {
            let error = take(&folder.with(name, mode), own(), false).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("chmod go-w"), "{error}");
        }
        let open = folder.with("open", 0o777);
        let error = take(&open.join("run"), own(), false).unwrap_err().to_string();
        assert!(error.contains("/open can be written to by every user"), "{error}");
        let link = folder.0.join("link");
        std::os::unix::fs::symlink(&mine, &link).unwrap();
        assert!(take(&link, own(), false).unwrap_err().to_string().contains("is a link"));
        if own() == 0 {
            let theirs = folder.with("theirs", 0o755);
            std::os::unix::fs::chown(&theirs, Some(61_183), None).unwrap();
            assert!(take(&theirs, 0, true).unwrap_err().to_string().contains("another user"));
            assert!(take(&theirs.join("run"), 0, true).unwrap_err().to_string().contains("who could replace it"));
        }
    }

    #[test]
    fn the_users_of_boxes_get_through_or_are_told_where_not() {
        let folder = Folder::new();
        let shut = folder.with("shut", 0o700);
        assert_eq!(take(&shut, own(), true).unwrap(), shut.canonicalize().unwrap());
        assert_eq!(mode(&shut), 0o711, "made enterable");
        let above = folder.with("above", 0o700);
        let error = take(&above.join("run"), own(), true).unwrap_err().to_string();
        assert!(error.contains("/above shuts out the users of boxes"), "{error}");
        take(&above.join("run"), own(), false).unwrap();
        let made = folder.0.join("a/b/run");
        take(&made, own(), true).unwrap();
        assert_eq!((mode(&made), mode(made.parent().unwrap())), (0o711, 0o711));
    }

    #[test]
    fn the_first_place_that_can_be_used_is_taken_and_all_are_named_when_none_can() {
        let folder = Folder::new();
        let (open, good) = (folder.with("open", 0o777), folder.0.join("good"));
        assert_eq!(prepare(&[open.clone(), good.clone()]).unwrap(), good.canonicalize().unwrap());
        let long = folder.0.join("x".repeat(90));
        let error = prepare(&[open, long]).unwrap_err().to_string();
        assert!(error.contains("WEIR_RUN_DIR") && error.contains("go-w") && error.contains("too long"), "{error}");
    }
}
