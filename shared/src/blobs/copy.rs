//! What lies at a place of blobs, and bringing it to another one: backups.

use std::collections::BTreeMap;
use std::io::Result;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Blobs, Storage};

/// Blobs on their way at once: each waits for a disk or a server most of the time.
const AT_ONCE: usize = 8;

/// What copying came to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    pub blobs: usize,
    pub bytes: u64,
    /// Blobs that were gone when their turn came.
    pub gone: usize,
}

impl Blobs {
    /// The keys of everything that is stored, with sizes in bytes. Calls block.
    ///
    /// # Errors
    /// When the place does not answer.
    pub fn list(&self) -> Result<BTreeMap<String, u64>> {
        match &self.0 {
            Storage::Folder(root) => {
                let mut found = BTreeMap::new();
                list_folder(root, "", &mut found)?;
                Ok(found)
            }
            Storage::Bucket(bucket) => bucket.list(),
        }
    }

    /// Brings `keys` to another place, where what is there already in the same size is left: no key is ever written twice
    /// with another content. A blob that is gone by now is left out, because whoever removed it knew of no use for it.
    ///
    /// # Errors
    /// When one cannot be read or stored; those that were stored stay.
    pub fn copy_to(&self, to: &Self, keys: &BTreeMap<String, u64>, there: &BTreeMap<String, u64>) -> Result<Copied> {
        let wanted: Vec<&String> =
            keys.iter().filter(|(key, size)| there.get(*key) != Some(size)).map(|(key, _)| key).collect();
        let (next, outcome) = (AtomicUsize::new(0), Mutex::new(Ok(Copied::default())));
        let work = || {
            while let Some(key) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                let copied = self.get(key).and_then(|bytes| to.put(key, &bytes).map(|()| bytes.len() as u64));
                let mut outcome = outcome.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                match (&mut *outcome, copied) {
                    (Ok(sum), Ok(bytes)) => (sum.blobs, sum.bytes) = (sum.blobs + 1, sum.bytes + bytes),
                    (Ok(sum), Err(error)) if error.kind() == std::io::ErrorKind::NotFound => sum.gone += 1,
                    (Ok(_), Err(error)) => *outcome = Err(std::io::Error::new(error.kind(), format!("{key}: {error}"))),
                    (Err(_), _) => return,
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(wanted.len()) {
                scope.spawn(work);
            }
        });
        outcome.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Drafts, and what checks try, are no blobs.
fn is_blob(name: &str) -> bool {
    !name.starts_with('.') && Path::new(name).extension().is_none_or(|end| end != "tmp")
}

fn list_folder(folder: &Path, prefix: &str, found: &mut BTreeMap<String, u64>) -> Result<()> {
    let entries = match std::fs::read_dir(folder) {
        // Removed meanwhile, with its job.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !prefix.is_empty() => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        match entry.metadata() {
            Ok(about) if about.is_dir() => list_folder(&entry.path(), &format!("{prefix}{name}/"), found)?,
            Ok(about) if about.is_file() && is_blob(&name) => {
                found.insert(format!("{prefix}{name}"), about.len());
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_is_missing_is_brought_and_what_is_there_is_left() {
        let root = std::env::temp_dir().join(format!("weir-blobs-{}", crate::random::id()));
        let (from, to) = (Blobs::open(&root.join("from")).unwrap(), Blobs::open(&root.join("to")).unwrap());
        for key in ["ab/job/page-1.zst", "profiles/team/one.bin", "ab/job/page-2.tmp", ".probe-1"] {
            from.put(key, b"text").unwrap();
        }
        to.put("ab/job/page-1.zst", b"kept").unwrap();
        let mut keys = from.list().unwrap();
        assert_eq!(keys.keys().collect::<Vec<_>>(), ["ab/job/page-1.zst", "profiles/team/one.bin"]);
        keys.insert("ab/gone.zst".to_owned(), 9);
        let copied = from.copy_to(&to, &keys, &to.list().unwrap()).unwrap();
        assert_eq!(copied, Copied { blobs: 1, bytes: 4, gone: 1 });
        assert_eq!(
            (to.get("ab/job/page-1.zst").unwrap(), to.get("profiles/team/one.bin").unwrap()),
            (b"kept".into(), b"text".into())
        );
        std::fs::remove_dir_all(root).unwrap();
    }
}
