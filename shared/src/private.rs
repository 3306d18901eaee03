//! Files and folders that only the user of our processes may read: database, blobs, keys.
//!
//! The process's umask is not relied on: the usual one lets every user of the machine read what is made. What earlier
//! releases left open is shut at the start. File systems without modes are told of in the log, and used.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use crate::blocking;

/// Where everything lies unless it is told otherwise. It is ours alone, whoever made it.
pub const DATA: &str = "data";

/// What group and others may do.
const OTHERS: u32 = 0o077;

/// Makes a folder, and those above it that are missing, for our user only. One that is there keeps its mode, except for
/// [`DATA`].
///
/// # Errors
/// When it cannot be made.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    if path.starts_with(DATA) {
        shut(Path::new(DATA));
    }
    Ok(())
}

/// How a file is opened to be written for our user only, when it is made by that.
pub fn file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Opens a file to write to it without cutting it off; makes it where it is missing, and shuts one that was open to others.
///
/// # Errors
/// When it cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    match make(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let file = file_options().create(true).truncate(false).open(path)?;
    shut(path);
    Ok(file)
}

/// Makes a file for our user only. One that root makes belongs to whom its folder belongs to, as SQLite has it with the
/// files beside its own: a command that an operator gives as root takes nothing away from the service.
///
/// # Errors
/// When it cannot be made, or is there.
pub fn make(path: &Path) -> io::Result<File> {
    let file = file_options().create_new(true).open(path)?;
    if own_uid() == 0 {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let owner = fs::metadata(folder)?;
        if owner.uid() != 0 {
            // Where root may not do that, the file is made all the same.
            if let Err(error) = fchown(&file, Some(owner.uid()), Some(owner.gid())) {
                tracing::warn!(%error, path = %path.display(), "this belongs to root, and not to its folder's owner");
            }
        }
    }
    Ok(file)
}

/// Takes from group and others what they may do with a file or folder of ours. A missing one is fine; one of another
/// user's is left to that user.
pub fn shut(path: &Path) {
    let Ok(found) = fs::metadata(path) else { return };
    if found.mode() & OTHERS == 0 || found.uid() != own_uid() {
        return;
    }
    if let Err(error) = fs::set_permissions(path, Permissions::from_mode(found.mode() & 0o7700)) {
        tracing::warn!(%error, path = %path.display(), "other users of this machine may read this");
    }
}

/// Shuts a folder at once, then everything in it in the background, which nobody else can reach by then. Nothing is
/// done for one that is shut already.
pub fn shut_all(folder: &Path) {
    let Ok(found) = fs::symlink_metadata(folder) else { return };
    if !found.is_dir() || found.mode() & OTHERS == 0 || found.uid() != own_uid() {
        return;
    }
    shut(folder);
    let folder = folder.to_owned();
    blocking::detach("shut", move || {
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    Ok(kind) if kind.is_file() => {}
                    _ => continue,
                }
                shut(&entry.path());
            }
        }
    });
}

/// The user of this process; without `/proc` nobody's.
pub fn own_uid() -> u32 {
    fs::metadata("/proc/self").map_or(u32::MAX, |own| own.uid())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_ours_alone_and_what_was_open_is_shut() {
        let root = std::env::temp_dir().join(format!("weir-private-{}", crate::random::id()));
        make_folder(&root.join("a/b")).unwrap();
        assert_eq!((mode(&root), mode(&root.join("a/b"))), (0o700, 0o700));
        open(&root.join("new")).unwrap();
        assert_eq!(mode(&root.join("new")), 0o600);

        let old = root.join("old");
        fs::write(&old, "kept").unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o664)).unwrap();
        open(&old).unwrap();
        assert_eq!((mode(&old), fs::read_to_string(&old).unwrap().as_str()), (0o600, "kept"));

        if own_uid() == 0 {
            std::os::unix::fs::chown(root.join("a"), Some(65_534), Some(65_534)).unwrap();
            open(&root.join("a/theirs")).unwrap();
            open(&root.join("a/theirs")).unwrap();
            let theirs = fs::metadata(root.join("a/theirs")).unwrap();
            assert_eq!((theirs.uid(), theirs.gid(), mode(&root.join("a/theirs"))), (65_534, 65_534, 0o600));
            std::os::unix::fs::chown(root.join("a"), Some(0), Some(0)).unwrap();
        }

        for folder in [root.join("a"), root.join("a/b")] {
            fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(root.join("a/b/file"), "x").unwrap();
        fs::set_permissions(root.join("a/b/file"), Permissions::from_mode(0o644)).unwrap();
        shut_all(&root.join("a"));
        assert_eq!(mode(&root.join("a")), 0o700, "at once");
        let end = crate::clock::deadline(std::time::Duration::from_secs(60));
        while (mode(&root.join("a/b")), mode(&root.join("a/b/file"))) != (0o700, 0o600) {
            assert!(crate::clock::instant() < end, "the rest is shut soon");
            std::thread::yield_now();
        }
        fs::remove_dir_all(root).unwrap();
    }
}
