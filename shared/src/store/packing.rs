//! How bodies are compressed in the database and in blobs: zstd, with what it needs kept between two uses.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;

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

/// JSON as it is written. A type of our own: what is generic over a plain `Vec` has been compiled for others already, and
/// where that was a crate that no page waits for, documents would be written by its unoptimized code.
#[derive(Default)]
struct Json(Vec<u8>);

impl std::io::Write for Json {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes and compresses in memory of its own, so that what is given away is as large as it has to be.
struct Packer {
    compressor: zstd::bulk::Compressor<'static>,
    json: Json,
    packed: Vec<u8>,
}

impl Packer {
    /// Lets one do this.
    fn with<T>(work: impl FnOnce(&mut Self) -> std::io::Result<T>) -> std::io::Result<T> {
        let make =
            || Ok(Self { compressor: zstd::bulk::Compressor::new(LEVEL)?, json: Json::default(), packed: Vec::new() });
        // One that has grown with a large document is let go.
        PACKERS.with(make, work, |packer| packer.json.0.capacity().max(packer.packed.capacity()) <= 2 * LARGE)
    }

    fn compress(&mut self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        self.compressor.compress_to_buffer(bytes, &mut self.packed)?;
        Ok(self.packed.as_slice().to_vec())
    }
}

/// Computes.
pub(super) fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    Packer::with(|packer| packer.compress(bytes))
}

/// What was compressed, of `size` bytes at most. Computes.
pub(super) fn decompress(packed: &[u8], size: usize) -> std::io::Result<Vec<u8>> {
    UNPACKERS.with(zstd::bulk::Decompressor::new, |unpacker| unpacker.decompress(packed, size), |_| true)
}

/// The length of its JSON in bytes, and that packed. Computes.
pub(super) fn pack(document: &impl Serialize) -> std::io::Result<(usize, Vec<u8>)> {
    Packer::with(|packer| {
        let mut json = std::mem::take(&mut packer.json);
        json.0.clear();
        serde_json::to_writer(&mut json, document).map_err(std::io::Error::other)?;
        let packed = packer.compress(&json.0)?;
        let length = json.0.len();
        packer.json = json;
        Ok((length, packed))
    })
}
