//! A file that is not there under its name before it is whole, and leaves nothing where it never is: on a full disk what
//! broken writes leave behind would keep it full.

use std::fs::File;
use std::io::{Result, Write as _};
use std::path::{Path, PathBuf};

use crate::private;

/// What is written so far, beside the place where it will be. Dropped before [`FileDraft::finish`] it is removed.
#[derive(Debug)]
pub(super) struct FileDraft {
    file: File,
    /// Where it lies meanwhile.
    beside: PathBuf,
    path: PathBuf,
    is_finished: bool,
}

impl FileDraft {
    /// Begins a file, making the folders above it that are missing.
    pub(super) fn begin(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent() {
            private::make_folder(folder)?;
        }
        let beside = beside(path);
        let file = private::file_options().create(true).truncate(true).open(&beside)?;
        Ok(Self { file, beside, path: path.to_owned(), is_finished: false })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes)
    }

    /// Gives the file its name: it is on disk when this returns.
    pub(super) fn finish(mut self) -> Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.beside, &self.path)?;
        self.is_finished = true;
        // The name is on disk with its folder only: a row that names the file may be on another machine's disk.
        self.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }
}

fn beside(path: &Path) -> PathBuf {
    path.with_extension("tmp")
}

/// Removes a file, and what a process that was killed has left of it.
pub(super) fn remove(path: &Path) -> Result<()> {
    let _ = std::fs::remove_file(beside(path));
    std::fs::remove_file(path)
}

impl Drop for FileDraft {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = std::fs::remove_file(&self.beside);
        }
    }
}
