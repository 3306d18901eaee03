//! A profile's archive: what a browser keeps of its owner's logins, packed after it has closed in good order.
//!
//! ```text
//! "WEIRPRO1" | nonce, 12 bytes | AES-256-GCM over zstd over tar; the team and the name are authenticated with it
//! ```
//!
//! The tar holds the browser's data directory without caches, and `cookies.json`: Chromium forgets session cookies
//! when it ends, and most logins live in them. What is packed was written by a stranger's browser, and what is
//! unpacked may have been: symbolic links and special files are neither followed nor made, sizes and counts are
//! bounded.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::path::{Component, Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::Sha256;

/// First bytes of an archive; the number is the version of its shape.
const MAGIC: &[u8] = b"WEIRPRO1";
/// The files of a profile together, bytes.
pub const SIZE_LIMIT: u64 = 100 << 20;
/// Files and folders of a profile.
const ENTRY_LIMIT: usize = 20_000;
/// Folders inside each other.
const DEPTH_LIMIT: usize = 24;
/// Name of the exported cookies in the archive.
const COOKIES: &str = "cookies.json";
/// Folder of the browser's data in the archive.
const DATA: &str = "data";

/// Files and folders that the browser makes again, anywhere in its directory.
const SKIPPED: &[&str] = &[
    "Cache",
    "Code Cache",
    "GPUCache",
    "GrShaderCache",
    "GraphiteDawnCache",
    "DawnCache",
    "DawnGraphiteCache",
    "DawnWebGPUCache",
    "ShaderCache",
    "CacheStorage-tmp",
    "Crashpad",
    "Crash Reports",
    "BrowserMetrics",
    "DeferredBrowserMetrics",
    "component_crx_cache",
    "extensions_crx_cache",
    "Safe Browsing",
    "optimization_guide_model_store",
    "segmentation_platform",
    "GCM Store",
    "SingletonLock",
    "SingletonCookie",
    "SingletonSocket",
    "DevToolsActivePort",
    "lockfile",
];

/// Why a profile could not be packed or unpacked. The text is for the log and the caller.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("the profile is larger than {} MiB", SIZE_LIMIT >> 20)]
    TooLarge,
    #[error("the profile has more than {ENTRY_LIMIT} files or too many nested folders")]
    TooMany,
    #[error("the profile's archive is damaged or belongs to another installation")]
    Damaged,
    #[error("the profile's files: {0}")]
    Io(#[from] io::Error),
}

/// Seals and opens the archives of one installation.
#[derive(Clone)]
pub struct Vault {
    key: LessSafeKey,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault")
    }
}

impl Vault {
    /// `secret`: the installation's internal secret. Another secret cannot open what this one sealed.
    pub fn new(secret: &[u8]) -> Self {
        #[allow(clippy::expect_used, reason = "HMAC takes keys of any length, AES-256 the 32 bytes it gives")]
        let key = {
            let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("any length");
            mac.update(b"profile archives");
            UnboundKey::new(&AES_256_GCM, &mac.finalize().into_bytes()).expect("32 bytes")
        };
        Self { key: LessSafeKey::new(key) }
    }

    /// Packs `home`, the data directory of a browser that has ended, with `cookies` (a JSON array). `owner` says whose
    /// profile it is; only the same text opens the archive. Blocks and computes.
    pub fn pack(&self, home: &Path, cookies: &[u8], owner: &str) -> Result<Vec<u8>, ProfileError> {
        let mut archive = tar::Builder::new(zstd::Encoder::new(Vec::new(), 3)?);
        archive.mode(tar::HeaderMode::Deterministic);
        let mut left = Budget { bytes: SIZE_LIMIT, entries: ENTRY_LIMIT };
        left.take(cookies.len() as u64)?;
        append(&mut archive, Path::new(COOKIES), cookies.len() as u64, cookies)?;
        pack_folder(&mut archive, home, Path::new(DATA), 0, &mut left)?;
        let mut packed = archive.into_inner()?.finish()?;
        let nonce: [u8; NONCE_LEN] = rand::random();
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(owner), &mut packed)
            .map_err(|_| ProfileError::TooLarge)?;
        let mut sealed = Vec::with_capacity(MAGIC.len() + NONCE_LEN + packed.len());
        sealed.extend_from_slice(MAGIC);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&packed);
        Ok(sealed)
    }

    /// Fills the empty `home` from an archive, each file owned by `user`, and returns the cookies. Blocks and computes.
    pub fn unpack(
        &self,
        mut archive: Vec<u8>,
        home: &Path,
        owner: &str,
        user: (u32, u32),
    ) -> Result<Vec<u8>, ProfileError> {
        let head = MAGIC.len() + NONCE_LEN;
        if archive.len() < head || !archive.starts_with(MAGIC) {
            return Err(ProfileError::Damaged);
        }
        let nonce: [u8; NONCE_LEN] = archive[MAGIC.len()..head].try_into().map_err(|_| ProfileError::Damaged)?;
        let plain = self
            .key
            .open_within(Nonce::assume_unique_for_key(nonce), Aad::from(owner), &mut archive, head..)
            .map_err(|_| ProfileError::Damaged)?;
        let mut tar = tar::Archive::new(zstd::Decoder::new(&*plain)?.take(2 * SIZE_LIMIT));
        let mut left = Budget { bytes: SIZE_LIMIT, entries: ENTRY_LIMIT };
        let mut cookies = Vec::new();
        for entry in tar.entries()? {
            let mut entry = entry?;
            left.take(entry.size())?;
            let path = entry.path()?.into_owned();
            if path == Path::new(COOKIES) {
                entry.read_to_end(&mut cookies)?;
                continue;
            }
            let inside = safe_path(&path).ok_or(ProfileError::Damaged)?;
            let target = home.join(inside);
            match entry.header().entry_type() {
                tar::EntryType::Directory => make_folder(&target, home, user)?,
                tar::EntryType::Regular => {
                    if let Some(folder) = target.parent() {
                        make_folder(folder, home, user)?;
                    }
                    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target)?;
                    io::copy(&mut entry, &mut file)?;
                    give(&target, user)?;
                }
                _ => return Err(ProfileError::Damaged),
            }
        }
        Ok(cookies)
    }
}

/// What may still be packed or unpacked.
struct Budget {
    bytes: u64,
    entries: usize,
}

impl Budget {
    fn take(&mut self, bytes: u64) -> Result<(), ProfileError> {
        self.entries = self.entries.checked_sub(1).ok_or(ProfileError::TooMany)?;
        self.bytes = self.bytes.checked_sub(bytes).ok_or(ProfileError::TooLarge)?;
        Ok(())
    }
}

fn append(archive: &mut tar::Builder<impl Write>, name: &Path, size: u64, data: impl Read) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(0o600);
    header.set_size(size);
    archive.append_data(&mut header, name, data)
}

fn pack_folder(
    archive: &mut tar::Builder<impl Write>,
    folder: &Path,
    name: &Path,
    depth: usize,
    left: &mut Budget,
) -> Result<(), ProfileError> {
    if depth > DEPTH_LIMIT {
        return Err(ProfileError::TooMany);
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let file_name = entry.file_name();
        if SKIPPED.iter().any(|skipped| file_name == **skipped) {
            continue;
        }
        let (kind, path, inner) = (entry.file_type()?, entry.path(), name.join(&file_name));
        if kind.is_dir() {
            left.take(0)?;
            pack_folder(archive, &path, &inner, depth + 1, left)?;
        } else if kind.is_file() {
            // Opened without following a link, which code may have put in the file's place.
            let file =
                fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&path)?;
            let size = file.metadata()?.len();
            left.take(size)?;
            append(archive, &inner, size, file.take(size))?;
        }
    }
    Ok(())
}

/// The path below [`DATA`], if it stays there.
fn safe_path(path: &Path) -> Option<PathBuf> {
    let inside = path.strip_prefix(DATA).ok()?;
    let plain = inside.components().all(|part| matches!(part, Component::Normal(_)));
    (plain && inside.components().count() <= DEPTH_LIMIT + 2).then(|| inside.to_owned())
}

fn make_folder(folder: &Path, home: &Path, user: (u32, u32)) -> io::Result<()> {
    if folder == home || folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_folder(parent, home, user)?;
    }
    fs::create_dir(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    give(folder, user)
}

fn give(path: &Path, (uid, gid): (u32, u32)) -> io::Result<()> {
    chown(path, Some(uid), Some(gid))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn me() -> (u32, u32) {
        (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
    }

    fn folder() -> PathBuf {
        let path = std::env::temp_dir().join(format!("weir-profile-{}", uuid::Uuid::now_v7()));
        fs::create_dir(&path).unwrap();
        path
    }

    fn packed(vault: &Vault) -> Vec<u8> {
        let home = folder();
        fs::create_dir_all(home.join("Default/IndexedDB/site")).unwrap();
        fs::create_dir_all(home.join("Default/Cache/Cache_Data")).unwrap();
        fs::write(home.join("Default/Cookies"), b"sqlite").unwrap();
        fs::write(home.join("Default/IndexedDB/site/000003.log"), b"rows").unwrap();
        fs::write(home.join("Default/Cache/Cache_Data/f_1"), b"picture").unwrap();
        fs::write(home.join("DevToolsActivePort"), b"1").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", home.join("Default/link")).unwrap();
        let archive = vault.pack(&home, b"[{\"name\":\"sid\"}]", "team/shop").unwrap();
        fs::remove_dir_all(home).unwrap();
        archive
    }

    #[test]
    fn a_profile_comes_back_without_caches_and_links() {
        let vault = Vault::new(b"secret");
        let archive = packed(&vault);
        assert!(!archive.windows(6).any(|w| w == b"sqlite"), "it is sealed");
        let home = folder();
        let cookies = vault.unpack(archive, &home, "team/shop", me()).unwrap();
        assert_eq!(cookies, b"[{\"name\":\"sid\"}]");
        assert_eq!(fs::read(home.join("Default/Cookies")).unwrap(), b"sqlite");
        assert_eq!(fs::read(home.join("Default/IndexedDB/site/000003.log")).unwrap(), b"rows");
        for gone in ["Default/Cache", "DevToolsActivePort", "Default/link"] {
            assert!(fs::symlink_metadata(home.join(gone)).is_err(), "{gone}");
        }
        fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn only_its_owner_and_installation_open_it() {
        let vault = Vault::new(b"secret");
        let archive = packed(&vault);
        let home = folder();
        let other = |vault: &Vault, archive: Vec<u8>, owner: &str| vault.unpack(archive, &home, owner, me()).is_err();
        assert!(other(&vault, archive.clone(), "other-team/shop"));
        assert!(other(&Vault::new(b"another"), archive.clone(), "team/shop"));
        let mut bent = archive.clone();
        let middle = bent.len() / 2;
        bent[middle] ^= 1;
        assert!(other(&vault, bent, "team/shop"));
        assert!(other(&vault, archive[..10].to_vec(), "team/shop"));
        assert_eq!(fs::read_dir(&home).unwrap().count(), 0, "nothing of it was written");
        fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn paths_out_of_the_profile_are_refused() {
        for bad in ["data/../x", "/etc/passwd", "x/y", "data/./../../y"] {
            assert_eq!(safe_path(Path::new(bad)), None, "{bad}");
        }
        assert_eq!(safe_path(Path::new("data/Default/Cookies")), Some(PathBuf::from("Default/Cookies")));
    }

    #[test]
    fn a_profile_that_is_too_large_is_refused() {
        let home = folder();
        let file = fs::File::create(home.join("big")).unwrap();
        file.set_len(SIZE_LIMIT + 1).unwrap();
        assert!(matches!(Vault::new(b"s").pack(&home, b"[]", "t"), Err(ProfileError::TooLarge)));
        fs::remove_dir_all(home).unwrap();
    }
}
