//! A blob that comes piece by piece, so that its sender's speed is not this process's memory.

use std::io::Result;

use bytes::Bytes;

use super::Storage;
use super::bucket::Bucket;
use super::draft::FileDraft;

/// What is written so far. Dropped before [`BlobWriter::finish`] it leaves nothing. Calls block.
#[derive(Debug)]
pub struct BlobWriter(Draft);

#[derive(Debug)]
enum Draft {
    File(FileDraft),
    /// A bucket takes a blob whole: what is to be in it waits here, once. Pieces should not be small.
    Bucket {
        bucket: Bucket,
        key: String,
        pieces: Vec<Bytes>,
    },
}

impl BlobWriter {
    pub(super) fn open(place: &Storage, key: &str) -> Result<Self> {
        Ok(Self(match place {
            Storage::Folder(root) => Draft::File(FileDraft::begin(&root.join(key))?),
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
            Draft::File(draft) => draft.write(&piece),
            Draft::Bucket { pieces, .. } => {
                pieces.push(piece);
                Ok(())
            }
        }
    }

    /// Stores the blob: it is there when this returns.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub fn finish(self) -> Result<()> {
        match self.0 {
            Draft::File(draft) => draft.finish(),
            Draft::Bucket { bucket, key, pieces } => bucket.put_pieces(&key, pieces),
        }
    }
}
