//! ZIP packages, within budgets that a bomb cannot exceed: parts are counted before any is read, and bytes while they
//! are unpacked.

use std::collections::HashMap;
use std::io::{Cursor, Read as _};

use memchr::memmem;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::{ConvertError, Limits, compound};

/// What a ZIP file begins with.
pub const MAGIC: &[u8] = b"PK\x03\x04";
/// What the directory at its end has before each part.
const ENTRY: &[u8] = b"PK\x01\x02";
/// Parts up to this size may be packed as tightly as they like, bytes.
const SMALL: u64 = 8 << 20;

/// A name as it is looked up: some writers differ in case between names and references, some write backslashes.
fn folded(name: &str) -> String {
    name.to_ascii_lowercase().replace('\\', "/")
}

/// An open package.
#[derive(Debug)]
pub struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    /// Names by themselves in lower case and with slashes.
    lower: HashMap<String, String>,
    ratio: u64,
    limit: u64,
    left: u64,
}

impl<'a> Archive<'a> {
    /// Reads the directory.
    ///
    /// # Errors
    /// When there is none, it lists too much, or the file is an encrypted package.
    pub fn open(bytes: &'a [u8], limits: &Limits) -> Result<Self, ConvertError> {
        // An encrypted OOXML package is a compound file around the real one.
        if bytes.starts_with(compound::MAGIC) {
            let file = compound::Compound::open(bytes)?;
            return Err(if file.has("EncryptedPackage") {
                ConvertError::Encrypted
            } else {
                ConvertError::broken("it is a compound file and not a package")
            });
        }
        // The library makes room for every part that the directory lists.
        if memmem::find_iter(bytes, ENTRY).nth(limits.parts).is_some() {
            return Err(ConvertError::too_large("parts", limits.parts));
        }
        let zip = ZipArchive::new(Cursor::new(bytes))
            .map_err(|_| ConvertError::broken("its package has no readable directory"))?;
        let lower = zip.file_names().map(|name| (folded(name), name.to_owned())).collect();
        Ok(Self { zip, lower, ratio: limits.ratio, limit: limits.unpacked, left: limits.unpacked })
    }

    /// The names of the parts, in lower case.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.lower.keys().map(String::as_str)
    }

    /// Whether there is such a part.
    pub fn has(&self, name: &str) -> bool {
        self.lower.contains_key(&folded(name))
    }

    /// Unpacks a part; `None` if there is none of that name.
    ///
    /// # Errors
    /// When it is damaged, encrypted or too large.
    pub fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, ConvertError> {
        let broken = |_| ConvertError::broken(format!("{name} cannot be unpacked"));
        let Some(index) = self.zip.index_for_name(name) else {
            let found = self.lower.get(&folded(name)).filter(|found| *found != name).cloned();
            return match found {
                Some(found) => self.read(&found),
                None => Ok(None),
            };
        };
        let mut part = match self.zip.by_index(index) {
            Ok(part) => part,
            Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => return Err(ConvertError::Encrypted),
            Err(_) => return Err(ConvertError::broken(format!("{name} cannot be unpacked"))),
        };
        let by_ratio = part.compressed_size().saturating_mul(self.ratio).max(SMALL);
        let most = by_ratio.min(self.left);
        let mut content = Vec::new();
        (&mut part).take(most + 1).read_to_end(&mut content).map_err(broken)?;
        if content.len() as u64 > most {
            return Err(if by_ratio < self.left {
                ConvertError::too_large("times its packed size", usize::try_from(self.ratio).unwrap_or(usize::MAX))
            } else {
                ConvertError::too_large("unpacked bytes", usize::try_from(self.limit).unwrap_or(usize::MAX))
            });
        }
        self.left -= content.len() as u64;
        Ok(Some(content))
    }

    /// The same, for a part that must be there.
    ///
    /// # Errors
    /// As [`Archive::read`], and when it is missing.
    pub fn need(&mut self, name: &str) -> Result<Vec<u8>, ConvertError> {
        self.read(name)?.ok_or_else(|| ConvertError::broken(format!("{name} is missing")))
    }
}

/// A package of these parts.
#[cfg(test)]
pub fn packed(parts: &[(&str, &str)]) -> Vec<u8> {
    use std::io::Write as _;
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in parts {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}
