//! How bodies are written and compressed in the database and in blobs: JSON and zstd, with what they need kept between two
//! uses.
//!
//! A crate of its own, because every page goes through it byte by byte: a build that hardly optimizes the crate it is used in
//! optimizes this one. So that the writing of JSON is compiled here and nowhere else, what is written comes as an object.

use std::sync::{Mutex, PoisonError};

use erased_serde::Serialize;

/// Speed over size: the pages are written once and mostly read once.
const LEVEL: i32 = 1;

/// What packs and unpacks at rest: making one costs more than a small document does with it, and memory that was just used
/// is nearer than fresh memory.
struct Resting<T>(Mutex<Vec<T>>);

static PACKERS: Resting<Packer> = Resting(Mutex::new(Vec::new()));
static UNPACKERS: Resting<zstd::bulk::Decompressor<'static>> = Resting(Mutex::new(Vec::new()));
/// Kept of each kind.
const KEPT: usize = 4;

impl<T> Resting<T> {
    /// Lets one do this, and keeps it for the next one's use where it is still as wanted.
    fn with<R>(
        &self,
        make: impl FnOnce() -> std::io::Result<T>,
        work: impl FnOnce(&mut T) -> std::io::Result<R>,
        is_wanted: impl FnOnce(&T) -> bool,
    ) -> std::io::Result<R> {
        let idle = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let resting = idle().pop();
        let mut one = match resting {
            Some(one) => one,
            None => make()?,
        };
        let done = work(&mut one)?;
        let mut idle = idle();
        if idle.len() < KEPT && is_wanted(&one) {
            idle.push(one);
        }
        Ok(done)
    }
}

/// A document from here on is large to its packer, bytes.
const LARGE: usize = 256 << 10;

/// Writes and compresses in memory of its own, so that what is given away is as large as it has to be.
struct Packer {
    compressor: zstd::bulk::Compressor<'static>,
    json: Vec<u8>,
    packed: Vec<u8>,
}

impl Packer {
    /// Lets one do this.
    fn with<T>(work: impl FnOnce(&mut Self) -> std::io::Result<T>) -> std::io::Result<T> {
        let make =
            || Ok(Self { compressor: zstd::bulk::Compressor::new(LEVEL)?, json: Vec::new(), packed: Vec::new() });
        // One that has grown with a large document is let go.
        PACKERS.with(make, work, |packer| packer.json.capacity().max(packer.packed.capacity()) <= 2 * LARGE)
    }

    fn compress(&mut self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        self.compressor.compress_to_buffer(bytes, &mut self.packed)?;
        Ok(self.packed.as_slice().to_vec())
    }
}

/// Packs bytes as one frame of zstd. Computes.
///
/// # Errors
/// Where there is no memory for a packer.
pub fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    Packer::with(|packer| packer.compress(bytes))
}

/// What was compressed, of `size` bytes at most. Computes.
///
/// # Errors
/// Where it is no frame of zstd, is cut, or is longer.
pub fn decompress(packed: &[u8], size: usize) -> std::io::Result<Vec<u8>> {
    UNPACKERS.with(zstd::bulk::Decompressor::new, |unpacker| unpacker.decompress(packed, size), |_| true)
}

/// The length of its JSON in bytes, and that packed. Computes.
///
/// # Errors
/// Where it cannot be written as JSON, as a map whose keys are no text.
pub fn pack(document: &dyn Serialize) -> std::io::Result<(usize, Vec<u8>)> {
    Packer::with(|packer| {
        let mut json = std::mem::take(&mut packer.json);
        json.clear();
        let mut writer = serde_json::Serializer::new(&mut json);
        erased_serde::serialize(document, &mut writer).map_err(std::io::Error::other)?;
        let packed = packer.compress(&json)?;
        let length = json.len();
        packer.json = json;
        Ok((length, packed))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::value::{RawValue, to_raw_value};

    use super::*;

    /// What a document holds as JSON already stands in it as it is, though it is written as an object.
    #[test]
    fn a_document_is_packed_as_the_json_that_serde_would_write() {
        #[derive(serde::Serialize)]
        struct Document<'a> {
            markdown: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            html: Option<String>,
            raw: Box<RawValue>,
            list: Vec<(u8, f64)>,
        }
        let document = Document {
            markdown: "\u{1}\"Grüße\\\n",
            html: None,
            raw: to_raw_value(&[1, 2]).unwrap(),
            list: vec![(1, 0.5)],
        };
        let json = serde_json::to_vec(&document).unwrap();
        let (size, packed) = pack(&document).unwrap();
        assert_eq!((size, decompress(&packed, size).unwrap()), (json.len(), json.clone()));
        assert!(decompress(&packed, size - 1).is_err(), "longer than was said");
        assert_eq!(decompress(&compress(&json).unwrap(), size).unwrap(), json);
    }

    #[test]
    fn what_cannot_be_written_is_an_error_and_leaves_nothing_to_the_next_one() {
        let keys = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(pack(&keys).is_err());
        let (size, packed) = pack(&"next").unwrap();
        assert_eq!(decompress(&packed, size).unwrap(), b"\"next\"");
    }
}
