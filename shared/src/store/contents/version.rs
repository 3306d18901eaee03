//! What a site has sent, ready to be stored, and where the compressed text of a content or a document lies.

use crate::domain::cache::CacheKey;

/// Compressed documents above this many bytes become blobs.
const INLINE_LIMIT: usize = 256 * 1024;

/// A compressed document: in the row, or in a blob that is already written.
#[derive(Debug, Clone)]
pub enum Body {
    Inline(Vec<u8>),
    Blob(String),
}

/// What a site has sent, ready to be stored for later requests.
#[derive(Debug, Clone)]
pub struct Version {
    /// Where it is found.
    pub places: Vec<CacheKey>,
    /// How long it counts, milliseconds.
    pub counts_ms: i64,
    /// As requested.
    pub url: String,
    /// Its registered domain.
    pub site: Option<String>,
    /// What its content is known by.
    pub digest: String,
    /// What else is known of it, JSON.
    pub head: String,
    /// Bytes of the content before and after compression.
    pub size: i64,
    pub packed: i64,
    pub body: Body,
}

impl Body {
    /// What lies in the row.
    pub(in crate::store) fn inline(&self) -> Option<&[u8]> {
        match self {
            Self::Inline(bytes) => Some(bytes),
            Self::Blob(_) => None,
        }
    }

    /// The key of the blob.
    pub(in crate::store) fn blob(&self) -> Option<&str> {
        match self {
            Self::Inline(_) => None,
            Self::Blob(key) => Some(key),
        }
    }

    /// What belongs into a blob, whose key is to be the body then. `None`: it is small, or in a blob.
    pub fn take_large(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Inline(packed) if packed.len() > INLINE_LIMIT => Some(std::mem::take(packed)),
            _ => None,
        }
    }
}
