//! A blob that comes piece by piece, so that its sender's speed is not this process's memory.

use std::fs::File;
use std::io::{Result, Write as _};
use std::path::PathBuf;

use bytes::Bytes;

use super::bucket::Bucket;
use super::{Storage, begin_file, end_file};

/// What is written so far. Dropped before [`BlobWriter::finish`] it leaves nothing. Calls block.
#[derive(Debug)]
pub struct BlobWriter(Draft);

#[derive(Debug)]
enum Draft {
    File {
        file: File,
        draft: PathBuf,
        path: PathBuf,
    },
    /// A bucket takes a blob whole: what is to be in it waits here, once. Pieces should not be small.
    Bucket {
        bucket: Bucket,
        key: String,
        pieces: Vec<Bytes>,
    },
    Done,
}

impl BlobWriter {
    pub(super) fn open(place: &Storage, key: &str) -> Result<Self> {
        Ok(Self(match place {
            Storage::Folder(root) => {
                let path = root.join(key);
                let (file, draft) = begin_file(&path)?;
                Draft::File { file, draft, path }
            }
            Storage::Bucket(bucket) => {
                Draft::Bucket { bucket: bucket.clone(), key: key.to_owned(), pieces: Vec::new() }
            }
        }))
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, piece: Bytes) -> Result<()> {
        match &mut self.0 {
            Draft::File { file, .. } => file.write_all(&piece),
            Draft::Bucket { pieces, .. } => {
                pieces.push(piece);
                Ok(())
            }
            Draft::Done => Ok(()),
        }
    }

    /// Stores the blob: it is there when this returns.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub fn finish(mut self) -> Result<()> {
        match &mut self.0 {
            Draft::File { file, draft, path } => end_file(file, draft, path)?,
            Draft::Bucket { bucket, key, pieces } => bucket.put_pieces(key, std::mem::take(pieces))?,
            Draft::Done => {}
        }
        self.0 = Draft::Done;
        Ok(())
    }
}

impl Drop for BlobWriter {
    fn drop(&mut self) {
        if let Draft::File { draft, .. } = &self.0 {
            let _ = std::fs::remove_file(draft);
        }
    }
}
