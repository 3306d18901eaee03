//! Large documents and profiles outside the database: in a folder, or in an S3-compatible bucket that several machines
//! share. What belongs to a job lies under one prefix, so that an expired job leaves in one piece.

mod bucket;
mod copy;
mod draft;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, bail};
use uuid::Uuid;

use self::bucket::Bucket;
pub use self::copy::Copied;
use self::draft::FileDraft;
pub use self::writer::BlobWriter;
use crate::ids::{JobId, PageId};
use crate::private;
use crate::random;

/// Where profiles lie.
const PROFILES: &str = "profiles";
/// Where what sites have sent lies.
const VERSIONS: &str = "versions";

/// `WEIR_BLOBS`: where blobs lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobsUrl {
    /// `file://PATH`
    Folder(PathBuf),
    /// `s3://BUCKET/PREFIX`; the prefix may be empty. Endpoint, region and credentials are those of `AWS_*`.
    Bucket { name: String, prefix: String },
}

impl FromStr for BlobsUrl {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let text = text.trim();
        if let Some(path) = text.strip_prefix("file://").filter(|path| !path.is_empty()) {
            return Ok(Self::Folder(path.into()));
        }
        let (name, prefix) = text
            .strip_prefix("s3://")
            .map(|rest| rest.split_once('/').unwrap_or((rest, "")))
            .with_context(|| format!("WEIR_BLOBS={text}: allowed are file://PATH and s3://BUCKET/PREFIX"))?;
        let is_plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        let has_plain_ends = name.bytes().next().is_some_and(is_plain) && name.bytes().last().is_some_and(is_plain);
        if !(3..=63).contains(&name.len())
            || !has_plain_ends
            || !name.bytes().all(|c| is_plain(c) || matches!(c, b'-' | b'.'))
        {
            bail!(
                "WEIR_BLOBS={text}: allowed are names of buckets of 3 to 63 lower-case letters, digits, - and ., a letter \
                 or digit at both ends"
            );
        }
        if prefix.starts_with('/') || prefix.contains("//") {
            bail!("WEIR_BLOBS={text}: allowed is a prefix without empty parts, as in s3://{name}/pages");
        }
        Ok(Self::Bucket { name: name.to_owned(), prefix: prefix.trim_matches('/').to_owned() })
    }
}

impl BlobsUrl {
    /// Fails where a setting that belongs to it is wrong (`AWS_*`).
    ///
    /// # Errors
    /// As said; no secret is.
    pub fn check_settings(&self, get: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<()> {
        match self {
            Self::Folder(_) => Ok(()),
            Self::Bucket { .. } => bucket::endpoint(get).map(drop),
        }
    }
}

impl fmt::Display for BlobsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "file://{}", path.display()),
            Self::Bucket { name, prefix } => write!(f, "s3://{name}/{prefix}"),
        }
    }
}

/// A place of blobs. Calls block: use them off the async threads.
#[derive(Debug, Clone)]
pub struct Blobs(Storage);

#[derive(Debug, Clone)]
enum Storage {
    Folder(PathBuf),
    Bucket(Bucket),
}

impl Blobs {
    /// Opens the place, making a folder that is missing.
    ///
    /// # Errors
    /// When the folder cannot be made, or the bucket's settings are wrong. Whether a bucket answers, [`Blobs::check`]
    /// tells.
    pub fn at(url: &BlobsUrl) -> anyhow::Result<Self> {
        match url {
            BlobsUrl::Folder(root) => Self::open(root),
            BlobsUrl::Bucket { name, prefix } => Ok(Self(Storage::Bucket(Bucket::open(name, prefix)?))),
        }
    }

    /// Opens a folder, making it when it is missing.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(root: &Path) -> anyhow::Result<Self> {
        private::make_folder(root).with_context(|| format!("cannot make the blob folder {}", root.display()))?;
        shut_old(root);
        Ok(Self(Storage::Folder(root.to_owned())))
    }

    /// Whether blobs can be written and removed.
    ///
    /// # Errors
    /// When they cannot.
    pub fn check(&self) -> anyhow::Result<()> {
        let probe = format!(".probe-{}", random::id());
        self.put(&probe, b"ok").with_context(|| format!("cannot write to {self}"))?;
        self.remove(&probe);
        Ok(())
    }

    /// Leaves a sign that processes of this machine use this folder. A bucket is the same one for all by its name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn leave_sign(&self, machine: &str) -> std::io::Result<()> {
        match &self.0 {
            // An empty file, and not by way of a draft: two processes that start at once would take each other's.
            Storage::Folder(root) => {
                private::file_options().create(true).truncate(false).open(root.join(sign_of(machine))).map(drop)
            }
            Storage::Bucket(_) => Ok(()),
        }
    }

    /// Whether a machine's processes use the folder that is seen here.
    pub fn has_sign(&self, machine: &str) -> bool {
        match &self.0 {
            Storage::Folder(root) => root.join(sign_of(machine)).exists(),
            Storage::Bucket(_) => true,
        }
    }

    /// Key of one attempt's document. Attempts differ, so a fenced one never overwrites the winner's.
    pub fn key(job: JobId, page: PageId, epoch: i64) -> String {
        format!("{}{page}-{epoch}.zst", job_prefix(job))
    }

    /// Key of an uploaded file, which has an id like a job's. Each time that one is sent has its own, so that what is sent
    /// twice at once does not mix.
    pub fn upload_key(id: JobId) -> String {
        format!("{}{}.file", job_prefix(id), random::id().simple())
    }

    /// Key of what a site has sent, which outlives every job.
    pub fn version_key(id: Uuid) -> String {
        let id = id.to_string();
        format!("{VERSIONS}/{}/{id}.zst", &id[24..26])
    }

    /// Stores `bytes` under `key`: on disk when this returns.
    ///
    /// # Errors
    /// When they cannot be stored.
    pub fn put(&self, key: &str, bytes: &[u8]) -> std::io::Result<()> {
        match &self.0 {
            Storage::Folder(root) => {
                let mut draft = FileDraft::begin(&root.join(key))?;
                draft.write(bytes)?;
                draft.finish()
            }
            Storage::Bucket(bucket) => bucket.put(key, bytes),
        }
    }

    /// Begins a blob that comes piece by piece. There is none under `key` before [`BlobWriter::finish`].
    ///
    /// # Errors
    /// When it cannot be stored.
    pub fn writer(&self, key: &str) -> std::io::Result<BlobWriter> {
        BlobWriter::open(&self.0, key)
    }

    /// The bytes under `key`.
    ///
    /// # Errors
    /// `NotFound` when there are none; others when the place does not answer.
    pub fn get(&self, key: &str) -> std::io::Result<Vec<u8>> {
        match &self.0 {
            Storage::Folder(root) => std::fs::read(root.join(key)),
            Storage::Bucket(bucket) => bucket.get(key),
        }
    }

    /// Whether a blob for which [`Blobs::get`] has this error may be read later. It is gone for good where the place says that
    /// it has none; a folder that is not mounted has none either, and cannot be listed.
    pub fn is_away(&self, error: &std::io::Error) -> bool {
        error.kind() != std::io::ErrorKind::NotFound
            || match &self.0 {
                Storage::Folder(root) => std::fs::read_dir(root).is_err(),
                Storage::Bucket(_) => false,
            }
    }

    /// Removes one blob; a missing one is fine. `false`: it could not be done now.
    pub fn remove(&self, key: &str) -> bool {
        let removed = match &self.0 {
            Storage::Folder(root) => draft::remove(&root.join(key)),
            Storage::Bucket(bucket) => bucket.remove(key),
        };
        tell_failure(removed, key)
    }

    /// Removes everything of a job. `false`: it could not be done now.
    #[must_use]
    pub fn remove_job(&self, job: JobId) -> bool {
        let prefix = job_prefix(job);
        let removed = match &self.0 {
            Storage::Folder(root) => std::fs::remove_dir_all(root.join(&prefix)),
            Storage::Bucket(bucket) => bucket.remove_all(&prefix),
        };
        tell_failure(removed, &prefix)
    }
}

impl fmt::Display for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Storage::Folder(root) => write!(f, "{}", root.display()),
            Storage::Bucket(bucket) => write!(f, "{bucket}"),
        }
    }
}

fn job_prefix(job: JobId) -> String {
    let job = job.to_string();
    format!("{}/{job}/", &job[24..26])
}

/// Shuts what earlier releases left open to other users of the machine. The folder may hold other things beside ours,
/// so of it only those are touched that we make, unless it is the default one.
fn shut_old(root: &Path) {
    if root == Path::new(private::DATA).join("blobs") {
        private::shut(root);
    }
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_of_jobs = name.len() == 2 && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit);
        if is_of_jobs || name == PROFILES {
            private::shut_all(&entry.path());
        }
    }
}

/// Where a machine leaves its sign.
fn sign_of(machine: &str) -> String {
    use sha2::{Digest as _, Sha256};
    format!(".used-by-{}", &hex::encode(Sha256::digest(machine.as_bytes()))[..16])
}

/// What could not be removed stays behind as waste, which nobody can find by itself. `true`: it is gone.
fn tell_failure(removed: std::io::Result<()>, key: &str) -> bool {
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(%error, key, "a blob cannot be removed");
            false
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_job_leaves_in_one_piece() {
        let root = std::env::temp_dir().join(format!("weir-blobs-{}", random::id()));
        let blobs = Blobs::open(&root).unwrap();
        blobs.check().unwrap();
        let (job, page) = (JobId::new(), PageId::new());
        let key = Blobs::key(job, page, 1);
        blobs.put(&key, b"text").unwrap();
        assert_eq!(blobs.get(&key).unwrap(), b"text");
        assert!(blobs.remove_job(job));
        assert_eq!(blobs.get(&key).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_blob_is_lost_where_there_is_none_and_away_where_it_cannot_be_read() {
        let root = std::env::temp_dir().join(format!("weir-blobs-{}", random::id()));
        let blobs = Blobs::open(&root).unwrap();
        let (job, page) = (JobId::new(), PageId::new());
        let key = Blobs::key(job, page, 1);
        let away = || blobs.is_away(&blobs.get(&key).unwrap_err());
        assert!(!away(), "nobody has stored it");
        // What root is not refused either: its name leads to what has no bytes.
        std::fs::create_dir_all(root.join(&key)).unwrap();
        assert!(away(), "{:?}", blobs.get(&key));
        std::fs::remove_dir(root.join(&key)).unwrap();
        std::os::unix::fs::symlink(root.join(&key), root.join(&key)).unwrap();
        assert!(away(), "{:?}", blobs.get(&key));
        for kind in [std::io::ErrorKind::PermissionDenied, std::io::ErrorKind::StaleNetworkFileHandle] {
            assert!(blobs.is_away(&kind.into()), "{kind}");
        }
        std::fs::remove_dir_all(&root).unwrap();
        assert!(away(), "the folder is not mounted");
    }

    #[test]
    fn what_comes_in_pieces_is_there_when_it_is_whole() {
        let root = std::env::temp_dir().join(format!("weir-blobs-{}", random::id()));
        let blobs = Blobs::open(&root).unwrap();
        let job = JobId::new();
        let key = Blobs::upload_key(job);
        assert_ne!(key, Blobs::upload_key(job));
        let mut writer = blobs.writer(&key).unwrap();
        for piece in ["one ", "", "two"] {
            writer.write(piece.as_bytes().into()).unwrap();
        }
        assert_eq!(blobs.get(&key).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        writer.finish().unwrap();
        assert_eq!(blobs.get(&key).unwrap(), b"one two");
        // What breaks off leaves nothing, and neither does what cannot be stored: here a folder has its name.
        let folder = root.join(&key).parent().unwrap().to_owned();
        let mut broken = blobs.writer(&Blobs::upload_key(job)).unwrap();
        broken.write(b"half".as_slice().into()).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        drop(broken);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        // So does what a killed process has not ended, when the blob is removed that it was to be.
        let unfinished = Blobs::upload_key(job);
        std::mem::forget(blobs.writer(&unfinished).unwrap());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        assert!(blobs.remove(&unfinished));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::create_dir_all(folder.join("taken/inside")).unwrap();
        let taken = format!("{}/taken", key.rsplit_once('/').unwrap().0);
        blobs.put(&taken, b"whole").unwrap_err();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn blobs_are_their_users_alone() {
        use std::os::unix::fs::PermissionsExt;
        let root = std::env::temp_dir().join(format!("weir-blobs-{}", random::id()));
        let blobs = Blobs::open(&root).unwrap();
        let key = Blobs::key(JobId::new(), PageId::new(), 1);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let levels = || {
            let file = root.join(&key);
            [file.clone(), file.parent().unwrap().to_owned(), file.ancestors().nth(2).unwrap().to_owned()]
        };
        for key in [key.as_str(), "profiles/a/b.bin"] {
            blobs.put(key, b"text").unwrap();
        }
        assert_eq!(levels().map(|path| mode(&path)), [0o600, 0o700, 0o700]);
        assert_eq!((mode(&root), mode(&root.join("profiles/a/b.bin"))), (0o700, 0o600));
        // As an earlier release has left them: shut from the top at once.
        let foreign = root.join("foreign");
        std::fs::create_dir(&foreign).unwrap();
        for path in levels().into_iter().chain([root.join("profiles"), foreign.clone()]) {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        Blobs::open(&root).unwrap();
        assert_eq!((mode(&levels()[2]), mode(&root.join("profiles")), mode(&foreign)), (0o700, 0o700, 0o755));
        let end = crate::clock::deadline(std::time::Duration::from_secs(60));
        while levels().iter().any(|path| mode(path) & 0o077 != 0) {
            assert!(crate::clock::instant() < end, "the rest is shut soon");
            std::thread::yield_now();
        }
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_place_is_a_folder_or_a_bucket() {
        let bucket = |name: &str, prefix: &str| BlobsUrl::Bucket { name: name.into(), prefix: prefix.into() };
        for (text, expected) in [
            ("file://data/blobs", BlobsUrl::Folder("data/blobs".into())),
            ("file:///var/blobs", BlobsUrl::Folder("/var/blobs".into())),
            ("s3://pages", bucket("pages", "")),
            ("s3://pages/weir/a/", bucket("pages", "weir/a")),
        ] {
            assert_eq!(text.parse::<BlobsUrl>().unwrap(), expected, "{text}");
        }
        for text in [
            "",
            "file://",
            "data/blobs",
            "s3://",
            "s3://a/b",
            "s3://Pages/x",
            "s3://pages//x",
            "s3://-pages/x",
            "gs://pages",
        ] {
            assert!(text.parse::<BlobsUrl>().is_err(), "{text}");
        }
    }
}
