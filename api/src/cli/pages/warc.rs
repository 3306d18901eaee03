//! The archive's standard form: WARC 1.1 (ISO 28500:2017). A site's answer is a `response`, whose head is made of what is
//! known of it; what a browser has made of it a `conversion`, and a picture of it a `resource`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use actix_web::http::StatusCode;
use anyhow::Context as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use weir_shared::random;
use weir_shared::store::contents::cache::Found;
use weir_shared::time::Timestamp;

/// A file with records.
pub struct Archive {
    file: BufWriter<File>,
    length: u64,
    is_packed: bool,
}

/// What a record says of its block.
struct Record<'a> {
    kind: &'static str,
    /// `None`: it is of the file itself.
    about: Option<(&'a str, Timestamp)>,
    content_type: &'a str,
    refers_to: Option<&'a str>,
    block: [&'a [u8]; 2],
}

impl Archive {
    /// Begins a file, which must not be there.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let file = weir_shared::private::file_options().create_new(true).open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        let is_packed = path.extension().is_some_and(|end| end == "gz");
        let mut archive = Self { file: BufWriter::new(file), length: 0, is_packed };
        let version = env!("CARGO_PKG_VERSION");
        let info = format!("software: weir/{version}\r\nformat: WARC File Format 1.1\r\n");
        archive.write(&Record {
            kind: "warcinfo",
            about: None,
            content_type: "application/warc-fields",
            refers_to: None,
            block: [info.as_bytes(), b""],
        })?;
        Ok(archive)
    }

    /// Bytes written so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Writes all that is kept of a page: body, document after its scripts, picture, looks.
    pub fn page(&mut self, found: &Found, parts: [Option<Vec<u8>>; 4]) -> anyhow::Result<()> {
        let [body, dom, shot, looks] = parts;
        let (head, url) = (&found.head, found.head.url.as_str());
        let about = Some((url, found.stored_at));
        let response = match &body {
            Some(body) => {
                let http = http_head(head.status, &content_type(found, dom.is_some()), body.len());
                Some(self.write(&Record {
                    kind: "response",
                    about,
                    content_type: "application/http; msgtype=response",
                    refers_to: None,
                    block: [http.as_bytes(), body],
                })?)
            }
            None => None,
        };
        if let Some(dom) = &dom {
            self.write(&Record {
                kind: if response.is_some() { "conversion" } else { "resource" },
                about,
                content_type: "text/html; charset=utf-8",
                refers_to: response.as_deref(),
                block: [dom, b""],
            })?;
        }
        if let Some((mime, picture)) = shot.as_deref().and_then(picture) {
            let view = format!("urn:view:{url}");
            let (about, block) = (Some((view.as_str(), found.stored_at)), [picture.as_slice(), b""]);
            self.write(&Record { kind: "resource", about, content_type: mime, refers_to: None, block })?;
        }
        if let Some(looks) = &looks {
            let name = format!("urn:weir:branding:{url}");
            let (about, block) = (Some((name.as_str(), found.stored_at)), [looks.as_slice(), b""]);
            let content_type = "application/json";
            self.write(&Record { kind: "resource", about, content_type, refers_to: None, block })?;
        }
        Ok(())
    }

    /// Brings everything to the disk.
    pub fn finish(self) -> anyhow::Result<()> {
        let file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(())
    }

    /// Writes a record, compressed by itself where the file is. Returns its id.
    fn write(&mut self, record: &Record<'_>) -> anyhow::Result<String> {
        let id = format!("<urn:uuid:{}>", random::id());
        let date = record.about.map_or_else(weir_shared::clock::of_machine, |about| about.1).to_iso();
        let mut head = format!(
            "WARC/1.1\r\nWARC-Type: {}\r\nWARC-Record-ID: {id}\r\nWARC-Date: {date}\r\nContent-Type: {}\r\n",
            record.kind, record.content_type
        );
        if let Some((url, _)) = record.about {
            head.push_str(&format!("WARC-Target-URI: {url}\r\n"));
        }
        if let Some(other) = record.refers_to {
            head.push_str(&format!("WARC-Refers-To: {other}\r\n"));
        }
        let length: usize = record.block.iter().map(|part| part.len()).sum();
        head.push_str(&format!("Content-Length: {length}\r\n\r\n"));
        let mut out = Counted { file: &mut self.file, count: 0 };
        let parts = [head.as_bytes(), record.block[0], record.block[1], b"\r\n\r\n"];
        if self.is_packed {
            let mut packed = GzEncoder::new(&mut out, Compression::default());
            parts.iter().try_for_each(|part| packed.write_all(part))?;
            packed.finish()?;
        } else {
            parts.iter().try_for_each(|part| out.write_all(part))?;
        }
        self.length += out.count;
        Ok(id)
    }
}

/// Counts what goes through it.
struct Counted<'a> {
    file: &'a mut BufWriter<File>,
    count: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.count += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// The type of the answer's body. What a browser was sent is text by now.
fn content_type(found: &Found, is_rendered: bool) -> String {
    let said = found.head.content_type.as_deref().unwrap_or("application/octet-stream");
    let said: String = said.chars().filter(|c| !c.is_control()).collect();
    if is_rendered { format!("{}; charset=utf-8", said.split(';').next().unwrap_or_default()) } else { said }
}

/// The head of an answer, of what is known of it.
fn http_head(status: u16, content_type: &str, length: usize) -> String {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Unknown");
    format!("HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n")
}

/// A picture out of its data URI, with its type.
fn picture(uri: &[u8]) -> Option<(&str, Vec<u8>)> {
    use base64::Engine as _;
    let (mime, data) = std::str::from_utf8(uri).ok()?.strip_prefix("data:")?.split_once(";base64,")?;
    Some((mime, base64::engine::general_purpose::STANDARD.decode(data).ok()?))
}
