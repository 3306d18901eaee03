//! Large documents outside the database: one folder a job, so that an expired job leaves in one piece.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::ids::{JobId, PageId};

/// A folder of blobs. Calls block: use them off the async threads.
#[derive(Debug, Clone)]
pub struct Blobs {
    root: PathBuf,
}

impl Blobs {
    /// Opens the folder, making it when it is missing.
    pub fn open(root: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(root).with_context(|| format!("cannot make the blob folder {}", root.display()))?;
        Ok(Self { root: root.to_owned() })
    }

    /// Whether the folder can be written.
    pub fn check(&self) -> anyhow::Result<()> {
        let probe = self.root.join(format!(".probe-{}", std::process::id()));
        std::fs::write(&probe, b"ok").with_context(|| format!("cannot write to {}", self.root.display()))?;
        std::fs::remove_file(&probe).context("cannot remove the probe file")
    }

    /// Where the blobs lie.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Key of one attempt's document. Attempts differ, so a fenced one never overwrites the winner's.
    pub fn key(job: JobId, page: PageId, epoch: i64) -> String {
        format!("{}/{job}/{page}-{epoch}.zst", &job.to_string()[24..26])
    }

    /// Stores `bytes` under `key`: on disk when this returns.
    pub fn put(&self, key: &str, bytes: &[u8]) -> std::io::Result<()> {
        let path = self.root.join(key);
        let folder = path.parent().unwrap_or(&self.root);
        std::fs::create_dir_all(folder)?;
        let draft = path.with_extension("tmp");
        let mut file = std::fs::File::create(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&draft, &path)
    }

    /// The bytes under `key`.
    pub fn get(&self, key: &str) -> std::io::Result<Vec<u8>> {
        std::fs::read(self.root.join(key))
    }

    /// Removes one blob; a missing one is fine.
    pub fn remove(&self, key: &str) {
        let _ = std::fs::remove_file(self.root.join(key));
    }

    /// Removes everything of a job.
    pub fn remove_job(&self, job: JobId) {
        let job = job.to_string();
        let _ = std::fs::remove_dir_all(self.root.join(&job[24..26]).join(&job));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_job_leaves_in_one_piece() {
        let root = std::env::temp_dir().join(format!("weir-blobs-{}", uuid::Uuid::now_v7()));
        let blobs = Blobs::open(&root).unwrap();
        blobs.check().unwrap();
        let (job, page) = (JobId::new(), PageId::new());
        let key = Blobs::key(job, page, 1);
        blobs.put(&key, b"text").unwrap();
        assert_eq!(blobs.get(&key).unwrap(), b"text");
        blobs.remove_job(job);
        assert!(blobs.get(&key).is_err());
        std::fs::remove_dir_all(root).unwrap();
    }
}
