//! Collects a body while it arrives: counts bytes on the wire, undoes content codings, and stops at
//! the caps before memory is spent. A bomb costs at most the cap, whatever it would unpack to.

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use bytes::{Bytes, BytesMut};
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};

/// Largest window a zstd body may ask for: 2^23 bytes, the limit of RFC 9659.
pub(super) const ZSTD_WINDOW_LOG: u32 = 23;

/// Most codings one body may be wrapped in.
const MAX_CODINGS: usize = 3;

/// Input handed to a decoder at a time, bytes: bounds what one call can unpack.
const SLICE: usize = 8 * 1024;

/// Capacity reserved ahead on a site's word about its length, bytes.
const MAX_RESERVE: usize = 1024 * 1024;

/// Why a body cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BodyError {
    /// Larger than the cap, in bytes.
    TooLarge(usize),
    /// Not what its `Content-Encoding` says, from the first byte on.
    Corrupt,
}

/// A finished body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub bytes: Bytes,
    /// The coding broke off or became unreadable; `bytes` is what came before.
    pub incomplete: bool,
}

/// A body in the making.
pub(super) struct Collector {
    sink: Sink,
    /// Codings still to undo after the streamed one, in the order to undo them.
    inner: Vec<Coding>,
    wire: usize,
    max_wire: usize,
    max_body: usize,
    /// The decoder failed after something readable: the rest of the wire is skipped.
    broken: bool,
}

enum Sink {
    /// No coding. One chunk stays as it is, without a copy.
    Plain {
        first: Option<Bytes>,
        rest: BytesMut,
        reserve: usize,
    },
    Coded(Box<Unpacker>),
}

/// A content coding that is undone here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    /// `None` for a word that stands for no coding at all; unknown words are met in the wild
    /// (`utf-8`, `none`) on bodies that are not coded, so they count as none.
    fn from_word(word: &str) -> Option<Self> {
        let is = |known: &str| word.eq_ignore_ascii_case(known);
        if is("gzip") || is("x-gzip") {
            Some(Self::Gzip)
        } else if is("deflate") {
            Some(Self::Deflate)
        } else if is("br") {
            Some(Self::Brotli)
        } else if is("zstd") {
            Some(Self::Zstd)
        } else {
            None
        }
    }

    /// The codings that the values of a `Content-Encoding` header name, in the order they were applied. Fails on more
    /// than anybody has reason to apply.
    pub fn list<'h>(content_encoding: impl Iterator<Item = &'h str>) -> Result<Vec<Self>, BodyError> {
        let codings: Vec<Self> = content_encoding
            .flat_map(|value| value.split(','))
            .filter_map(|word| Self::from_word(word.trim()))
            .take(MAX_CODINGS + 1)
            .collect();
        if codings.len() > MAX_CODINGS { Err(BodyError::Corrupt) } else { Ok(codings) }
    }
}

impl Collector {
    /// `content_encoding` holds the values of that header in order; `announced` is the announced
    /// length on the wire. Fails at once when the announced length is over `max_wire`.
    pub fn new<'h>(
        content_encoding: impl Iterator<Item = &'h str>,
        announced: Option<u64>,
        max_wire: usize,
        max_body: usize,
    ) -> Result<Self, BodyError> {
        let announced = announced.map_or(0, |length| usize::try_from(length).unwrap_or(usize::MAX));
        if announced > max_wire {
            return Err(BodyError::TooLarge(max_wire));
        }
        let mut codings = Coding::list(content_encoding)?;
        let sink = match codings.pop() {
            None => Sink::Plain { first: None, rest: BytesMut::new(), reserve: announced.min(MAX_RESERVE) },
            Some(outermost) => Sink::Coded(Box::new(Unpacker::new(outermost, max_body)?)),
        };
        codings.reverse();
        Ok(Self { sink, inner: codings, wire: 0, max_wire, max_body, broken: false })
    }

    /// Whether adding bytes means work beyond storing them.
    pub fn is_coded(&self) -> bool {
        matches!(self.sink, Sink::Coded(_))
    }

    /// Bytes taken from the wire so far.
    pub fn wire(&self) -> u64 {
        self.wire as u64
    }

    /// Adds bytes as they came from the wire.
    pub fn push(&mut self, chunk: Bytes) -> Result<(), BodyError> {
        self.wire += chunk.len();
        if self.wire > self.max_wire {
            return Err(BodyError::TooLarge(self.max_wire));
        }
        match &mut self.sink {
            Sink::Plain { first, rest, reserve } => {
                if self.wire > self.max_body {
                    return Err(BodyError::TooLarge(self.max_body));
                }
                if self.wire == chunk.len() {
                    *first = Some(chunk);
                    return Ok(());
                }
                if let Some(first) = first.take() {
                    rest.reserve(self.wire.max(*reserve));
                    rest.extend_from_slice(&first);
                }
                rest.extend_from_slice(&chunk);
                Ok(())
            }
            Sink::Coded(_) if self.broken => Ok(()),
            Sink::Coded(unpacker) => match unpacker.feed(&chunk) {
                Err(BodyError::Corrupt) if unpacker.has_output() => {
                    self.broken = true;
                    Ok(())
                }
                other => other,
            },
        }
    }

    /// The whole body. A coding that breaks off keeps what was readable; fails when nothing was.
    pub fn finish(self) -> Result<Body, BodyError> {
        let unpacker = match self.sink {
            Sink::Plain { first: Some(bytes), .. } => return Ok(Body { bytes, incomplete: false }),
            Sink::Plain { rest, .. } => return Ok(Body { bytes: rest.freeze(), incomplete: false }),
            // An empty body with a Content-Encoding is an empty body.
            Sink::Coded(_) if self.wire == 0 => return Ok(Body { bytes: Bytes::new(), incomplete: false }),
            Sink::Coded(unpacker) => unpacker,
        };
        let mut body = unpacker.finish(self.broken)?;
        for coding in self.inner {
            let mut unpacker = Unpacker::new(coding, self.max_body)?;
            let fed = unpacker.feed(&body.bytes);
            if !matches!(fed, Ok(()) | Err(BodyError::Corrupt)) {
                return fed.map(|()| body);
            }
            let below = unpacker.finish(fed.is_err())?;
            body = Body { bytes: below.bytes, incomplete: body.incomplete || below.incomplete };
        }
        Ok(body)
    }
}

/// Where decoders write: refuses to grow past its cap.
struct Capped {
    bytes: Vec<u8>,
    cap: usize,
    is_over: bool,
}

impl Write for Capped {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if part.len() > self.cap - self.bytes.len() {
            self.is_over = true;
            return Err(io::Error::other("over the cap"));
        }
        self.bytes.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One content coding being undone.
enum Unpacker {
    Gzip(MultiGzDecoder<Capped>),
    /// `deflate` before its first two bytes told zlib from the raw form that some servers send.
    Undecided(Vec<u8>, Capped),
    Deflate(Inflate),
    Brotli(Box<DecompressorWriter<Capped>>),
    Zstd(zstd::stream::write::Decoder<'static, Capped>),
}

impl Unpacker {
    fn new(coding: Coding, cap: usize) -> Result<Self, BodyError> {
        let sink = Capped { bytes: Vec::new(), cap, is_over: false };
        Ok(match coding {
            Coding::Gzip => Self::Gzip(MultiGzDecoder::new(sink)),
            Coding::Deflate => Self::Undecided(Vec::with_capacity(2), sink),
            Coding::Brotli => Self::Brotli(Box::new(DecompressorWriter::new(sink, SLICE))),
            Coding::Zstd => {
                let mut decoder = zstd::stream::write::Decoder::new(sink).map_err(|_| BodyError::Corrupt)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(|_| BodyError::Corrupt)?;
                Self::Zstd(decoder)
            }
        })
    }

    fn feed(&mut self, input: &[u8]) -> Result<(), BodyError> {
        for part in input.chunks(SLICE) {
            if self.write_all(part).is_err() {
                return Err(self.verdict());
            }
        }
        Ok(())
    }

    fn write_all(&mut self, part: &[u8]) -> io::Result<()> {
        if let Self::Undecided(held, sink) = self {
            held.extend_from_slice(part);
            if held.len() < 2 {
                return Ok(());
            }
            let held = std::mem::take(held);
            let sink = std::mem::replace(sink, Capped { bytes: Vec::new(), cap: 0, is_over: false });
            *self = Self::Deflate(Inflate {
                state: Decompress::new(is_zlib_header(held[0], held[1])),
                buffer: vec![0; 4 * SLICE].into(),
                sink,
                is_ended: false,
            });
            return self.write_all(&held);
        }
        match self {
            Self::Gzip(decoder) => decoder.write_all(part),
            Self::Undecided(..) => Ok(()),
            Self::Deflate(decoder) => decoder.write_all(part),
            Self::Brotli(decoder) => decoder.write_all(part),
            Self::Zstd(decoder) => decoder.write_all(part),
        }
    }

    /// Ends the coding. `is_broken`: it failed before, so only what is there counts.
    fn finish(mut self, is_broken: bool) -> Result<Body, BodyError> {
        let ended = match &mut self {
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Undecided(..) => Err(io::ErrorKind::UnexpectedEof.into()),
            Self::Deflate(decoder) if decoder.is_ended => Ok(()),
            Self::Deflate(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Self::Brotli(decoder) => decoder.close(),
            Self::Zstd(decoder) => decoder.do_finish(),
        };
        let incomplete = ended.is_err() || is_broken;
        let sink = self.sink();
        if sink.is_over {
            return Err(BodyError::TooLarge(sink.cap));
        }
        if incomplete && sink.bytes.is_empty() {
            return Err(BodyError::Corrupt);
        }
        let bytes = std::mem::take(&mut self.sink_mut().bytes).into();
        Ok(Body { bytes, incomplete })
    }

    fn has_output(&self) -> bool {
        !self.sink().bytes.is_empty()
    }

    fn verdict(&self) -> BodyError {
        let sink = self.sink();
        if sink.is_over { BodyError::TooLarge(sink.cap) } else { BodyError::Corrupt }
    }

    fn sink(&self) -> &Capped {
        match self {
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Undecided(_, sink) => sink,
            Self::Deflate(decoder) => &decoder.sink,
            Self::Brotli(decoder) => decoder.get_ref(),
            Self::Zstd(decoder) => decoder.get_ref(),
        }
    }

    fn sink_mut(&mut self) -> &mut Capped {
        match self {
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Undecided(_, sink) => sink,
            Self::Deflate(decoder) => &mut decoder.sink,
            Self::Brotli(decoder) => decoder.get_mut(),
            Self::Zstd(decoder) => decoder.get_mut(),
        }
    }
}

/// A deflate stream, with or without the zlib frame.
struct Inflate {
    state: Decompress,
    buffer: Box<[u8]>,
    sink: Capped,
    /// The stream said it is over; what follows is ignored.
    is_ended: bool,
}

impl Inflate {
    fn write_all(&mut self, mut part: &[u8]) -> io::Result<()> {
        while !self.is_ended {
            let (read, written) = (self.state.total_in(), self.state.total_out());
            let status = self.state.decompress(part, &mut self.buffer, FlushDecompress::None)?;
            let (read, written) = (self.state.total_in() - read, self.state.total_out() - written);
            let (read, written) = (read as usize, written as usize); // both at most a buffer's length
            self.sink.write_all(&self.buffer[..written])?;
            part = &part[read..];
            self.is_ended = status == Status::StreamEnd;
            if written < self.buffer.len() && (part.is_empty() || read == 0) {
                break;
            }
        }
        Ok(())
    }
}

/// Whether two bytes open a zlib stream (RFC 1950): method 8, window up to 32 KiB, check bits.
pub(super) fn is_zlib_header(first: u8, second: u8) -> bool {
    first & 0x0f == 8 && first >> 4 <= 7 && (u16::from(first) << 8 | u16::from(second)) % 31 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    fn text() -> Vec<u8> {
        (0..10_000u32).flat_map(|n| format!("line {n} of the page\n").into_bytes()).collect()
    }

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(data: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn raw(data: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn zstandard(data: &[u8]) -> Vec<u8> {
        zstd::stream::encode_all(data, 3).unwrap()
    }

    /// `hello hello hello` ten times, made by the reference encoder.
    const BROTLI: &[u8] = &[
        0x1b, 0xb3, 0x00, 0xf8, 0x8d, 0x94, 0x6e, 0xde, 0x44, 0x55, 0x86, 0x96, 0x6c, 0x20, 0x6f, 0x21, 0x5b, 0x1c,
        0x00, 0x8d, 0x03,
    ];

    fn collect(encoding: &str, wire: &[u8], chunk: usize, cap: usize) -> Result<Body, BodyError> {
        let mut collector = Collector::new(encoding.split(';').filter(|e| !e.is_empty()), None, 1 << 20, cap)?;
        for part in wire.chunks(chunk) {
            collector.push(Bytes::copy_from_slice(part))?;
        }
        collector.finish()
    }

    #[test]
    fn every_coding_is_undone_however_the_bytes_arrive() {
        let text = text();
        let both = zlib(&gzip(&text));
        let members = [gzip(&text[..1000]), gzip(&text[1000..])].concat();
        for chunk in [1, 7, 1000, usize::MAX] {
            for (encoding, wire) in [
                ("", text.clone()),
                ("identity", text.clone()),
                ("utf-8", text.clone()),
                ("gzip", gzip(&text)),
                ("X-GZIP", gzip(&text)),
                ("gzip", members.clone()),
                ("deflate", zlib(&text)),
                ("deflate", raw(&text)),
                ("zstd", zstandard(&text)),
                ("gzip, deflate", both.clone()),
                ("gzip;deflate", both.clone()),
            ] {
                let body = collect(encoding, &wire, chunk, 1 << 20).unwrap();
                assert!(body.bytes == text && !body.incomplete, "{encoding} in chunks of {chunk}");
            }
        }
    }

    #[test]
    fn a_broken_off_coding_keeps_what_was_readable() {
        let text = text();
        for (encoding, wire) in
            [("gzip", gzip(&text)), ("deflate", zlib(&text)), ("deflate", raw(&text)), ("zstd", zstandard(&text))]
        {
            let body = collect(encoding, &wire[..wire.len() - 5], 100, 1 << 20).unwrap();
            assert!(body.incomplete, "{encoding} must say that it is incomplete");
            assert!(text.starts_with(&body.bytes) && !body.bytes.is_empty(), "{encoding}");
        }
    }

    #[test]
    fn garbage_under_a_coding_is_an_error_and_an_empty_body_is_not() {
        for encoding in ["gzip", "deflate", "br", "zstd"] {
            let garbage = [0xffu8; 64];
            assert_eq!(collect(encoding, &garbage, 64, 1 << 20), Err(BodyError::Corrupt), "{encoding}");
            assert_eq!(collect(encoding, b"", 64, 1 << 20).unwrap().bytes, Bytes::new(), "{encoding}");
        }
        assert_eq!(collect("gzip", &gzip(b""), 64, 10).unwrap(), Body { bytes: Bytes::new(), incomplete: false });
        assert_eq!(collect("gzip,gzip,gzip,gzip", b"x", 64, 10), Err(BodyError::Corrupt));
    }

    #[test]
    fn rest_after_garbage_is_skipped_not_kept() {
        let mut wire = gzip(&text());
        wire.extend_from_slice(&[0; 5000]);
        let body = collect("gzip", &wire, 512, 1 << 20).unwrap();
        assert_eq!(body.bytes, text());
    }

    #[test]
    fn bombs_stop_at_the_cap() {
        let bomb = vec![b'A'; 900_000];
        for (encoding, wire) in [
            ("", bomb.clone()),
            ("gzip", gzip(&bomb)),
            ("deflate", zlib(&bomb)),
            ("deflate", raw(&bomb)),
            ("zstd", zstandard(&bomb)),
            ("gzip, gzip", gzip(&gzip(&bomb))),
        ] {
            for chunk in [64, usize::MAX] {
                assert_eq!(collect(encoding, &wire, chunk, 100_000), Err(BodyError::TooLarge(100_000)), "{encoding}");
                assert_eq!(collect(encoding, &wire, chunk, 900_000).unwrap().bytes.len(), 900_000, "{encoding}");
            }
        }
    }

    #[test]
    fn the_wire_has_its_own_cap() {
        let long = vec![b'A'; (1 << 20) + 1];
        assert_eq!(collect("", &long, 1000, usize::MAX), Err(BodyError::TooLarge(1 << 20)));
        let announced = Collector::new(std::iter::empty(), Some(11), 10, 100);
        assert_eq!(announced.err(), Some(BodyError::TooLarge(10)));
    }

    #[test]
    fn brotli_is_undone_and_capped() {
        let body = collect("br", BROTLI, 3, 1 << 20).unwrap();
        assert_eq!(body.bytes, "hello hello hello ".repeat(10).as_bytes());
        assert_eq!(collect("br", BROTLI, 100, 100), Err(BodyError::TooLarge(100)));
    }
}
