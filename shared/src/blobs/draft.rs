//! A file that is not there under its name before it is whole, and leaves nothing where it never is: on a full disk what
//! broken writes leave behind would keep it full.

use std::fs::File;
use std::io::{ErrorKind, Result, Write as _};
use std::path::{Path, PathBuf};

use crate::private;

/// What is written so far, beside the place where it will be. Dropped before [`FileDraft::finish`] it is removed.
#[derive(Debug)]
pub(super) struct FileDraft {
    file: File,
    /// Where it lies now.
    at: PathBuf,
    path: PathBuf,
    is_finished: bool,
}

impl FileDraft {
    /// Begins a file, making the folders above it that are missing.
    pub(super) fn begin(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent() {
            private::make_folder(folder)?;
        }
        let at = beside(path);
        let file = private::file_options().create(true).truncate(true).open(&at)?;
        Ok(Self { file, at, path: path.to_owned(), is_finished: false })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes)
    }

    /// Gives the file its name: it is on disk when this returns.
    pub(super) fn finish(mut self) -> Result<()> {
        std::fs::rename(&self.at, &self.path)?;
        self.at.clone_from(&self.path);
        self.file.sync_all()?;
        // The name is on disk with its folder only: a row that names the file may be on another machine's disk. After the
        // file, because there is nothing left to be written then on most file systems.
        match self.path.parent().map(|folder| File::open(folder)?.sync_all()) {
            // Some file systems of networks cannot, and need not.
            Some(Err(error)) if !matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Err(error),
            _ => {
                self.is_finished = true;
                Ok(())
            }
        }
    }
}

/// How the name of a draft ends.
const DRAFT: &str = "tmp";

fn beside(path: &Path) -> PathBuf {
    path.with_extension(DRAFT)
}

/// Whether this is the name of a draft.
pub(super) fn is_draft(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == DRAFT)
}

/// Removes a file, and what a process that was killed has left of it.
pub(super) fn remove(path: &Path) -> Result<()> {
    let _ = std::fs::remove_file(beside(path));
    std::fs::remove_file(path)
}

impl Drop for FileDraft {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = std::fs::remove_file(&self.at);
        }
    }
}
