//! An answer whose body is read piece by piece: for files that may be large and are never held whole.
//!
//! The pieces are what came over the wire; [`Opened::decoder`] undoes the content codings around any reader of them, on
//! whatever thread that is read.

use std::io::{self, Cursor, Read};

use brotli_decompressor::Decompressor;
use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use reqwest::header;
use tokio::time::Instant;
use url::Url;

use super::content_type;
use super::decode::{Coding, ZSTD_WINDOW_LOG, is_zlib_header};
use super::error::{FetchError, is_missing_close_notify};
use super::http::{Arrived, FetchRequest, ends_by_close, host};

/// A reader of decoded bytes, for a blocking thread.
pub type Decoded = Box<dyn Read + Send>;

/// Input and output of one step of a decoder, bytes.
const BUFFER: usize = 8 * 1024;

/// The head of an answer, its body still to come.
pub struct Opened {
    /// Where the redirects ended.
    pub url: Url,
    pub status: u16,
    /// As sent; of several lines all, with commas.
    pub content_type: Option<String>,
    /// Every site of the chain that was asked over TLS has shown a certificate that verifies.
    pub is_trusted: bool,
    response: reqwest::Response,
    codings: Vec<Coding>,
    deadline: Instant,
    is_proxied: bool,
    ends_by_close: bool,
}

impl Opened {
    pub(super) fn new(arrived: Arrived, request: &FetchRequest<'_>) -> Result<Self, FetchError> {
        let Arrived { url, response, is_trusted, .. } = arrived;
        let head = response.headers();
        let values = head.get_all(header::CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        let codings = Coding::list(values).map_err(|error| FetchError::from_body(error, host(&url)))?;
        Ok(Self {
            status: response.status().as_u16(),
            content_type: content_type::of(head),
            ends_by_close: ends_by_close(&response),
            url,
            is_trusted,
            response,
            codings,
            deadline: request.deadline,
            is_proxied: request.proxy.is_some(),
        })
    }

    /// What the body is called: see [`content_type::media_type`].
    pub fn media_type(&self) -> Option<String> {
        content_type::media_type(self.content_type.as_deref()?)
    }

    /// The next bytes as they came over the wire; `None` at the end. Fails when the connection does, and at the
    /// deadline.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        match tokio::time::timeout_at(self.deadline, self.response.chunk()).await {
            Err(_) => Err(FetchError::Timeout),
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) if self.ends_by_close && is_missing_close_notify(&error) => Ok(None),
            Ok(Err(error)) => {
                let is_tls = self.url.scheme() == "https";
                Err(FetchError::from_reqwest(&error, host(&self.url), is_tls, self.is_proxied))
            }
        }
    }

    /// Undoes the content codings of what `wire` reads. An error while reading is the end of what is readable.
    pub fn decoder(&self, wire: Decoded) -> io::Result<Decoded> {
        self.codings.iter().rev().try_fold(wire, |reader, coding| undo(*coding, reader))
    }

    /// The first bytes of the body, at most `limit`, content codings undone. What breaks off is kept as far as it came.
    pub async fn read_up_to(mut self, limit: usize) -> Result<Vec<u8>, FetchError> {
        let mut wire = Vec::new();
        while wire.len() < limit {
            match self.chunk().await {
                Ok(Some(chunk)) => wire.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) if wire.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        wire.truncate(limit);
        if self.codings.is_empty() {
            return Ok(wire);
        }
        let mut body = Vec::new();
        if let Ok(decoder) = self.decoder(Box::new(Cursor::new(wire))) {
            // Its error is the end of what is readable.
            let _ = decoder.take(limit as u64).read_to_end(&mut body);
        }
        Ok(body)
    }
}

/// Undoes gzip, one member after another.
pub fn gunzip(reader: Decoded) -> Decoded {
    Box::new(MultiGzDecoder::new(reader))
}

fn undo(coding: Coding, mut reader: Decoded) -> io::Result<Decoded> {
    Ok(match coding {
        Coding::Gzip => gunzip(reader),
        Coding::Deflate => {
            // Some servers send the raw form.
            let mut start = Vec::with_capacity(2);
            reader.by_ref().take(2).read_to_end(&mut start)?;
            let is_zlib = matches!(start.as_slice(), [first, second] if is_zlib_header(*first, *second));
            let whole = Cursor::new(start).chain(reader);
            if is_zlib { Box::new(ZlibDecoder::new(whole)) } else { Box::new(DeflateDecoder::new(whole)) }
        }
        Coding::Brotli => Box::new(Decompressor::new(reader, BUFFER)),
        Coding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(reader)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(decoder)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    #[test]
    fn every_coding_is_undone_as_it_is_read() {
        let text: Vec<u8> = (0..5_000_u32).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&text).expect("memory");
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text).expect("memory");
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(&text).expect("memory");
        for (coding, wire) in [
            (Coding::Gzip, gzip.finish().expect("memory")),
            (Coding::Deflate, zlib.finish().expect("memory")),
            (Coding::Deflate, raw.finish().expect("memory")),
            (Coding::Zstd, zstd::stream::encode_all(text.as_slice(), 3).expect("memory")),
        ] {
            let mut whole = Vec::new();
            let mut decoder = undo(coding, Box::new(Cursor::new(wire.clone()))).expect("a decoder");
            decoder.read_to_end(&mut whole).expect("it is whole");
            assert!(whole == text, "{coding:?}");
            let mut part = Vec::new();
            let cut = wire[..wire.len() / 2].to_vec();
            let mut decoder = undo(coding, Box::new(Cursor::new(cut))).expect("a decoder");
            assert!(decoder.read_to_end(&mut part).is_err() || part.len() < text.len());
            assert!(text.starts_with(&part), "{coding:?}");
        }
    }
}
