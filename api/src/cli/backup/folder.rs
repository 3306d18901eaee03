//! The folder of a backup: what lies in it under which name.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use weir_shared::blobs::Blobs;
use weir_shared::config::DatabaseUrl;
use weir_shared::ids::TeamId;
use weir_shared::private;

/// Counts up when older programs must not read the folder.
const VERSION: u32 = 1;

/// `backup.json`, which is written last.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    version: u32,
    /// The program that made it.
    pub weir: String,
    pub database: Kind,
    /// When the database was copied, as it told the time; RFC 3339.
    pub taken_at: String,
    pub blobs: usize,
    /// What the blobs take together.
    pub blob_bytes: u64,
    /// Whose backup it is: the id of the default team, which no other installation has and a restore keeps. None where it
    /// was made by a program that did not say so, or before the first start.
    #[serde(default)]
    pub installation: Option<TeamId>,
}

impl Manifest {
    /// Of a backup that was made now, by this program.
    pub fn new(installation: Option<TeamId>, database: Kind, taken_at: String, blobs: usize, blob_bytes: u64) -> Self {
        let weir = env!("CARGO_PKG_VERSION").to_owned();
        Self { version: VERSION, weir, database, taken_at, blobs, blob_bytes, installation }
    }
}

/// Which database it is of.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    /// Of the database at an address.
    pub fn of(url: &DatabaseUrl) -> Self {
        match url {
            DatabaseUrl::Sqlite(_) => Self::Sqlite,
            DatabaseUrl::Postgres(_) => Self::Postgres,
        }
    }

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "Postgres",
        }
    }

    fn file_name(self) -> &'static str {
        match self {
            Self::Sqlite => "weir.db",
            Self::Postgres => "weir.dump",
        }
    }
}

/// Keys that are kept with a backup.
#[derive(Debug, Clone, Copy)]
pub enum Key {
    /// Of the default team.
    Api,
    /// What API and workers know each other by, where it is not in the database.
    Internal,
}

impl Key {
    fn file_name(self) -> &'static str {
        match self {
            Self::Api => "api-key",
            Self::Internal => "internal-secret",
        }
    }
}

/// The folder, locked for this process.
pub struct BackupFolder {
    root: PathBuf,
    _lock: File,
}

impl BackupFolder {
    /// Opens the folder to write to it, making it where it is missing.
    ///
    /// # Errors
    /// When it cannot be made, holds something else, or another process is at it.
    pub fn make(root: &Path) -> anyhow::Result<Self> {
        private::make_folder(root).with_context(|| format!("cannot make {}", root.display()))?;
        let is_foreign = |name: &std::ffi::OsStr| {
            let own = ["weir.db", "weir.dump", "blobs", "api-key", "internal-secret", MANIFEST, LOCK];
            let drafts = ["api-key.new", "internal-secret.new", "backup.new"];
            !own.iter().chain(&drafts).chain(&DATABASE_DRAFTS).any(|own| name == *own)
        };
        for entry in std::fs::read_dir(root)? {
            let name = entry?.file_name();
            if is_foreign(&name) {
                bail!("{} holds {}, which is of no backup; name a new folder", root.display(), name.display());
            }
        }
        private::shut(root);
        let folder = Self::lock(root)?;
        // Before anything is written: of a backup that broke off on a full disk it may be what fills it.
        folder.forget_new_database().context("what a backup that broke off has left")?;
        Ok(folder)
    }

    /// Fails where the folder holds the backup of another installation, which one of this would replace.
    ///
    /// # Errors
    /// When it does, or what it holds cannot be read.
    pub fn check_is_of(&self, installation: Option<TeamId>) -> anyhow::Result<()> {
        if !self.root.join(MANIFEST).exists() {
            return Ok(());
        }
        let held = read_manifest(&self.root)?;
        if held.installation.is_some() && held.installation != installation {
            bail!(
                "{} holds the backup of another installation, of {}: name a new folder, or move that one away",
                self.root.display(),
                held.taken_at
            );
        }
        Ok(())
    }

    /// Opens the folder to read it.
    ///
    /// # Errors
    /// When it holds no whole backup, or another process is at it.
    pub fn open(root: &Path) -> anyhow::Result<(Self, Manifest)> {
        let manifest = read_manifest(root)?;
        Ok((Self::lock(root)?, manifest))
    }

    fn lock(root: &Path) -> anyhow::Result<Self> {
        let lock = private::open(&root.join(LOCK)).with_context(|| format!("cannot write to {}", root.display()))?;
        if lock.try_lock().is_err() {
            bail!("another process is at {}", root.display());
        }
        Ok(Self { root: root.to_owned(), _lock: lock })
    }

    /// The copy of the database.
    pub fn database(&self, kind: Kind) -> PathBuf {
        self.root.join(kind.file_name())
    }

    /// Where a new copy of the database is written, until [`BackupFolder::keep_database`]. Nothing is there yet.
    pub fn new_database(&self) -> PathBuf {
        self.root.join(DATABASE_DRAFTS[0])
    }

    /// Removes a copy that was not finished, with what SQLite has written beside it, which it would take for the next one's.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn forget_new_database(&self) -> std::io::Result<()> {
        DATABASE_DRAFTS.iter().try_for_each(|name| remove(&self.root.join(name)))
    }

    /// Puts the new copy in the place of the one before.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn keep_database(&self, kind: Kind) -> anyhow::Result<()> {
        std::fs::rename(self.new_database(), self.database(kind))?;
        Ok(())
    }

    /// Removes the copy of another kind of database, which an older backup has left.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn forget_other_database(&self, kind: Kind) -> anyhow::Result<()> {
        let other = if kind == Kind::Sqlite { Kind::Postgres } else { Kind::Sqlite };
        remove(&self.database(other)).context("an older backup's copy")
    }

    /// The copies of the blobs.
    ///
    /// # Errors
    /// When their folder cannot be made.
    pub fn blobs(&self) -> anyhow::Result<Blobs> {
        Blobs::open(&self.root.join("blobs"))
    }

    /// A key, if the backup has it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn key(&self, key: Key) -> anyhow::Result<Option<String>> {
        let path = self.root.join(key.file_name());
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Writes a key, or removes one that there is none of any more.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn keep_key(&self, key: Key, value: Option<&str>) -> anyhow::Result<()> {
        let path = self.root.join(key.file_name());
        match value {
            Some(value) => self.write(&path, &format!("{value}\n")),
            None => remove(&path).context("an older key"),
        }
    }

    /// Says that the backup is whole.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_manifest(&self, manifest: &Manifest) -> anyhow::Result<()> {
        self.write(&self.root.join(MANIFEST), &serde_json::to_string_pretty(manifest)?)?;
        File::open(&self.root)?.sync_all()?;
        Ok(())
    }

    /// Writes a file whole or not at all.
    fn write(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        let draft = path.with_extension("new");
        let write = || {
            let mut file = private::file_options().create(true).truncate(true).open(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&draft, path)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Removes a file; a missing one is fine.
fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn read_manifest(root: &Path) -> anyhow::Result<Manifest> {
    let path = root.join(MANIFEST);
    let text = std::fs::read_to_string(&path).with_context(|| format!("{}: no whole backup", path.display()))?;
    let manifest: Manifest = serde_json::from_str(&text).with_context(|| format!("{}", path.display()))?;
    if manifest.version > VERSION {
        bail!("{} was made by a newer program, weir {}", root.display(), manifest.weir);
    }
    Ok(manifest)
}

const MANIFEST: &str = "backup.json";

/// A copy of the database that is not finished, and what SQLite writes beside its own while it is at it.
const DATABASE_DRAFTS: [&str; 4] = ["weir.new", "weir.new-journal", "weir.new-wal", "weir.new-shm"];

/// Held by who works on the folder.
const LOCK: &str = ".lock";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_a_backup_that_broke_off_has_left_is_no_reason_to_refuse_the_next() {
        let root = std::env::temp_dir().join(format!("weir-backup-{}", weir_shared::random::id()));
        drop(BackupFolder::make(&root).unwrap());
        for name in DATABASE_DRAFTS {
            std::fs::write(root.join(name), "half").unwrap();
        }
        let folder = BackupFolder::make(&root).unwrap();
        assert!(DATABASE_DRAFTS.iter().all(|name| !root.join(name).exists()));
        assert_eq!(folder.new_database(), root.join("weir.new"));
        drop(folder);
        std::fs::write(root.join("weir.new-letter"), "dear").unwrap();
        assert!(BackupFolder::make(&root).is_err_and(|error| error.to_string().contains("weir.new-letter")));
        std::fs::remove_dir_all(root).unwrap();
    }
}
