//! What lies at a place of blobs, and bringing it to another one: backups.

use std::collections::BTreeMap;
use std::io::Result;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::draft::is_draft;
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
                walk(root, "", &mut |key, name, size| {
                    if is_blob(name) {
                        found.insert(key, size);
                    }
                })?;
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

    /// Removes every other blob, and what writes that were broken off have left. Nobody else may write here meanwhile. What
    /// cannot be removed is told of in the log, and stays.
    ///
    /// # Errors
    /// When the place does not answer.
    pub fn keep_only(&self, keys: &BTreeMap<String, u64>) -> Result<()> {
        let others = match &self.0 {
            Storage::Folder(root) => {
                let mut others = Vec::new();
                walk(root, "", &mut |key, name, _| {
                    if is_draft(name) || is_blob(name) && !keys.contains_key(&key) {
                        others.push(key);
                    }
                })?;
                others
            }
            Storage::Bucket(bucket) => bucket.list()?.into_keys().filter(|key| !keys.contains_key(key)).collect(),
        };
        for key in others {
            if self.remove(&key)
                && let Storage::Folder(root) = &self.0
            {
                // Folders of jobs of which nothing is left, too.
                let mut above = Path::new(&key).ancestors().skip(1).take_while(|above| !above.as_os_str().is_empty());
                let _ = above.try_for_each(|folder| std::fs::remove_dir(root.join(folder)));
            }
        }
        Ok(())
    }
}

/// Drafts, and what checks try, are no blobs.
fn is_blob(name: &str) -> bool {
    !name.starts_with('.') && !is_draft(name)
}

/// Shows each file with its key, its name and its size.
fn walk(folder: &Path, prefix: &str, show: &mut impl FnMut(String, &str, u64)) -> Result<()> {
    let entries = match std::fs::read_dir(folder) {
        // Removed meanwhile, with its job.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !prefix.is_empty() => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        match entry.metadata() {
            Ok(about) if about.is_dir() => walk(&entry.path(), &format!("{prefix}{name}/"), show)?,
            Ok(about) if about.is_file() => show(format!("{prefix}{name}"), &name, about.len()),
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

    #[test]
    fn nothing_stays_but_what_is_kept() {
        let root = std::env::temp_dir().join(format!("weir-blobs-{}", crate::random::id()));
        let blobs = Blobs::open(&root).unwrap();
        for key in ["ab/job/page-1.zst", "ab/job/page-2.zst", "cd/old/page-1.zst", "ef/left/page-1.tmp", ".used-by-1"] {
            blobs.put(key, b"text").unwrap();
        }
        // As a process leaves it that was killed: of a blob that is there, of one that is gone, and of one that never was.
        for draft in ["ab/job/page-1.tmp", "ab/job/page-2.tmp", "cd/old/page-3.tmp"] {
            std::fs::write(root.join(draft), b"te").unwrap();
        }
        let kept = BTreeMap::from([("ab/job/page-1.zst".to_owned(), 4)]);
        blobs.keep_only(&kept).unwrap();
        let mut left = Vec::new();
        walk(&root, "", &mut |key, _, _| left.push(key)).unwrap();
        left.sort();
        assert_eq!(left, [".used-by-1", "ab/job/page-1.zst"]);
        assert!(!root.join("cd").exists() && !root.join("ef").exists(), "folders with nothing in them go, too");
        std::fs::remove_dir_all(root).unwrap();
    }
}
