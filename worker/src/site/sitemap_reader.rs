//! One sitemap or feed, read as it arrives: XML sitemaps and indexes (sitemaps.org), RSS, Atom and plain text.
//!
//! Which of them it is, and whether it is gzip, is told by its content, never by its name or type. Everything is bounded:
//! the file, an element, the nesting and the number of entries. Entities of a document type are never expanded.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::ops::{ControlFlow, Range};

use encoding_rs::{CoderResult, Encoding};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;
use url::Url;

use crate::fetch::{Decoded, gunzip};

/// Unpacked bytes of a file that are read (sitemaps.org: 50 MB).
pub const MAX_BYTES: u64 = 52_428_800;
/// Entries of a file that are read (sitemaps.org).
pub const MAX_ENTRIES: usize = 50_000;
/// Bytes of an address.
const MAX_ADDRESS: usize = 8 * 1024;
/// Bytes of a title or description that are kept.
const MAX_TEXT: usize = 400;
/// Bytes between two tags. A longer piece ends the reading.
const MAX_EVENT: usize = 256 * 1024;
/// Elements inside each other; the formats need six.
const MAX_DEPTH: usize = 64;
/// Mistakes in the markup that are read over.
const MAX_MISTAKES: usize = 1_000;
/// Lines without an address after which a text is not taken for a sitemap any more.
const MAX_IDLE_LINES: usize = 1_000;

/// A page that a sitemap or feed lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SitemapEntry {
    /// http or https, without a fragment.
    pub url: Url,
    /// When the page last changed, as written.
    pub lastmod: Option<Box<str>>,
    /// From feeds and news sitemaps, plain text.
    pub title: Option<Box<str>>,
    /// From feeds, plain text.
    pub description: Option<Box<str>>,
}

/// What a file lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    Page(SitemapEntry),
    /// A further sitemap, from an index.
    Sitemap(Url),
}

/// How the reading of a file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Whole,
    /// It broke off, was not well-formed, or was over a bound: what came before counts.
    Cut,
    /// Something else: a web page, for instance.
    NoSitemap,
}

/// Reads a file to its end and hands out what it lists, in order, until `take` breaks. Relative addresses are read
/// relative to `base`. Blocks.
pub fn read(input: Decoded, base: &Url, mut take: impl FnMut(Item) -> ControlFlow<()>) -> Ending {
    let Ok(mut input) = unpacked(input) else { return Ending::NoSitemap };
    let start = match input.start() {
        Ok(start) => start,
        Err(_) => return Ending::NoSitemap,
    };
    match start {
        None => Ending::NoSitemap,
        Some(b'<') => Xml::new(base, &mut take).read(input),
        Some(_) => read_text(input, &mut take),
    }
}

/// Undoes gzip when the first bytes say so (twice when the file was packed twice), then the file's charset.
fn unpacked(mut input: Decoded) -> io::Result<Bounded> {
    let mut packings = 0;
    let encoding = loop {
        let mut start = Vec::with_capacity(128);
        // What cannot be read on is judged by what came.
        let _ = input.by_ref().take(128).read_to_end(&mut start);
        let (is_gzip, encoding) = (start.starts_with(&[0x1f, 0x8b]), charset(&start));
        input = Box::new(Cursor::new(start).chain(input));
        if !is_gzip || packings == 2 {
            break encoding;
        }
        packings += 1;
        input = gunzip(input);
    };
    let text = Utf8 {
        inner: input,
        decoder: encoding.new_decoder(),
        raw: vec![0; 16 * 1024].into(),
        there: 0..0,
        ended: false,
        flushed: false,
    };
    Ok(Bounded { inner: BufReader::with_capacity(32 * 1024, text), left: MAX_BYTES, event: MAX_EVENT, is_over: false })
}

/// The charset that a byte order mark or an XML declaration names; UTF-8 without one.
fn charset(start: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(start) {
        return encoding;
    }
    let declared = || {
        let start = start.trim_ascii_start();
        let declaration = start.strip_prefix(b"<?xml")?.split(|byte| *byte == b'>').next()?;
        let declaration = std::str::from_utf8(declaration).ok()?;
        let value = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        Encoding::for_label(value[1..].split(quote).next()?.as_bytes())
    };
    // A declaration that can be read byte by byte is not in UTF-16.
    declared().filter(|encoding| encoding.is_ascii_compatible()).unwrap_or(encoding_rs::UTF_8)
}

/// Turns any charset into UTF-8; bytes that are not in it become replacement characters.
struct Utf8 {
    inner: Decoded,
    decoder: encoding_rs::Decoder,
    raw: Box<[u8]>,
    /// The part of `raw` that is not decoded yet.
    there: Range<usize>,
    /// The input has ended; and so has the decoder.
    ended: bool,
    flushed: bool,
}

impl Read for Utf8 {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.there.is_empty() && !self.ended {
                let read = self.inner.read(&mut self.raw)?;
                self.there = 0..read;
                self.ended = read == 0;
            }
            if self.flushed {
                return Ok(0);
            }
            let (state, read, written, _) = self.decoder.decode_to_utf8(&self.raw[self.there.clone()], out, self.ended);
            self.there.start += read;
            self.flushed = self.ended && state == CoderResult::InputEmpty;
            if written > 0 {
                return Ok(written);
            }
        }
    }
}

/// A reader that ends at the bounds of the file and of an event.
struct Bounded {
    inner: BufReader<Utf8>,
    left: u64,
    event: usize,
    is_over: bool,
}

impl Bounded {
    /// Steps over blanks. The first byte behind them; `None`: there is none.
    fn start(&mut self) -> io::Result<Option<u8>> {
        loop {
            let Some(byte) = self.fill_buf()?.first().copied() else { return Ok(None) };
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
            self.consume(1);
        }
    }
}

impl Read for Bounded {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut there = self.fill_buf()?;
        let read = there.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Bounded {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let bound = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.event);
        if bound == 0 {
            self.is_over = true;
            return Ok(&[]);
        }
        let there = self.inner.fill_buf()?;
        Ok(&there[..there.len().min(bound)])
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
        self.left = self.left.saturating_sub(amount as u64);
        self.event = self.event.saturating_sub(amount);
    }
}

/// One address a line.
fn read_text(mut input: Bounded, take: &mut impl FnMut(Item) -> ControlFlow<()>) -> Ending {
    let (mut found, mut idle) = (0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        input.event = MAX_EVENT;
        let ended = match input.read_until(b'\n', &mut line) {
            Ok(0) => true,
            Ok(_) => false,
            Err(_) => return if found > 0 { Ending::Cut } else { Ending::NoSitemap },
        };
        if ended || input.is_over {
            return match (found, input.is_over) {
                (0, _) => Ending::NoSitemap,
                (_, true) => Ending::Cut,
                _ => Ending::Whole,
            };
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        let is_absolute = text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("http"));
        match Url::parse(text).ok().filter(|_| is_absolute).and_then(page_url) {
            Some(url) => {
                idle = 0;
                found += 1;
                let entry = SitemapEntry { url, lastmod: None, title: None, description: None };
                if take(Item::Page(entry)).is_break() || found >= MAX_ENTRIES {
                    return Ending::Cut;
                }
            }
            None => idle += 1,
        }
        if idle > MAX_IDLE_LINES {
            return if found > 0 { Ending::Cut } else { Ending::NoSitemap };
        }
    }
}

/// An address that a page can have; its fragment is dropped.
fn page_url(mut url: Url) -> Option<Url> {
    if !matches!(url.scheme(), "http" | "https") || url.as_str().len() > MAX_ADDRESS {
        return None;
    }
    url.set_fragment(None);
    Some(url)
}

/// What the root element makes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// `urlset` and `sitemapindex`: entries are `url` and `sitemap`.
    Sitemap,
    /// `rss`, `RDF` and `feed`: entries are `item` and `entry`.
    Feed,
}

/// The part of an entry that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Address,
    /// An address if there is no better one.
    Guid,
    Changed,
    Title,
    Description,
}

/// What is known of the entry that is being read.
#[derive(Debug, Default)]
struct Draft {
    address: String,
    guid: String,
    changed: String,
    title: String,
    description: String,
}

struct Xml<'a, F> {
    base: &'a Url,
    take: &'a mut F,
    mode: Option<Mode>,
    depth: usize,
    /// Depth of the open entry, and whether it is one of an index.
    entry: Option<(usize, bool)>,
    field: Option<(Field, usize)>,
    draft: Draft,
    found: usize,
}

impl<'a, F: FnMut(Item) -> ControlFlow<()>> Xml<'a, F> {
    fn new(base: &'a Url, take: &'a mut F) -> Self {
        Self { base, take, mode: None, depth: 0, entry: None, field: None, draft: Draft::default(), found: 0 }
    }

    fn read(mut self, input: Bounded) -> Ending {
        let mut reader = Reader::from_reader(input);
        let config = reader.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        config.allow_dangling_amp = true;
        let mut buffer = Vec::new();
        let mut mistakes = 0;
        loop {
            buffer.clear();
            reader.get_mut().event = MAX_EVENT;
            let flow = match reader.read_event_into(&mut buffer) {
                Ok(Event::Start(tag)) => self.start(&tag, false),
                Ok(Event::Empty(tag)) => self.start(&tag, true),
                Ok(Event::End(tag)) => {
                    let name = tag.name();
                    self.end(local(name.as_ref()))
                }
                Ok(Event::Text(text)) => {
                    self.text(&text);
                    ControlFlow::Continue(())
                }
                Ok(Event::CData(text)) => {
                    self.text(&text);
                    ControlFlow::Continue(())
                }
                Ok(Event::GeneralRef(reference)) => {
                    self.reference(&reference);
                    ControlFlow::Continue(())
                }
                Ok(Event::DocType(text)) if is_html(&text) => {
                    return Ending::NoSitemap;
                }
                Ok(Event::Eof) => break,
                Ok(_) => ControlFlow::Continue(()),
                Err(quick_xml::Error::IllFormed(_)) if mistakes < MAX_MISTAKES => {
                    mistakes += 1;
                    ControlFlow::Continue(())
                }
                // The rest cannot be read.
                Err(_) => {
                    let _ = self.flush();
                    return self.ending(true);
                }
            };
            if let ControlFlow::Break(ending) = flow {
                return ending;
            }
        }
        let is_open = self.entry.is_some();
        let _ = self.flush();
        self.ending(is_open || mistakes > 0 || reader.get_ref().is_over)
    }

    fn ending(&self, is_cut: bool) -> Ending {
        match self.mode {
            None => Ending::NoSitemap,
            Some(_) if is_cut => Ending::Cut,
            Some(_) => Ending::Whole,
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>, is_empty: bool) -> ControlFlow<Ending> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return ControlFlow::Break(self.ending(true));
        }
        let name = tag.name();
        let name: &str = name.as_ref();
        let own = local(name);
        match (self.mode, own) {
            (None, "urlset" | "sitemapindex") => self.mode = Some(Mode::Sitemap),
            (None, "rss" | "RDF" | "feed") => self.mode = Some(Mode::Feed),
            (None, _) => return ControlFlow::Break(Ending::NoSitemap),
            (Some(Mode::Sitemap), "url" | "sitemap") if name == own || own == "sitemap" || !self.is_in_entry() => {
                return self.open(own == "sitemap", is_empty);
            }
            (Some(Mode::Feed), "item" | "entry") => return self.open(false, is_empty),
            (Some(mode), _) => self.begin_field(mode, name, own, tag),
        }
        if is_empty { self.end(own) } else { ControlFlow::Continue(()) }
    }

    fn is_in_entry(&self) -> bool {
        self.entry.is_some()
    }

    /// A new entry; one still open has lost its end.
    fn open(&mut self, of_index: bool, is_empty: bool) -> ControlFlow<Ending> {
        if let Some((depth, _)) = self.entry {
            self.flush()?;
            self.depth = depth;
        }
        if is_empty {
            self.depth -= 1;
        } else {
            self.entry = Some((self.depth, of_index));
        }
        ControlFlow::Continue(())
    }

    fn begin_field(&mut self, mode: Mode, name: &str, own: &str, tag: &BytesStart<'_>) {
        let Some((entry, _)) = self.entry else { return };
        let is_direct = self.depth == entry + 1;
        let field = match (mode, own) {
            (Mode::Sitemap, "loc") if is_direct => Field::Address,
            (Mode::Sitemap, "lastmod") if is_direct => Field::Changed,
            (Mode::Sitemap, "title") if name == "news:title" => Field::Title,
            (Mode::Feed, "link") if is_direct => {
                self.link(tag);
                Field::Address
            }
            (Mode::Feed, "guid") if is_direct => Field::Guid,
            (Mode::Feed, "pubDate" | "updated" | "date") if is_direct => Field::Changed,
            (Mode::Feed, "title") if is_direct && name == own => Field::Title,
            (Mode::Feed, "description" | "summary") if is_direct && name == own => Field::Description,
            _ => return,
        };
        self.field = Some((field, self.depth));
    }

    /// Atom's `<link rel="alternate" href="…"/>`; other relations are not the page.
    fn link(&mut self, tag: &BytesStart<'_>) {
        let (mut href, mut is_page) = (None, true);
        for attribute in tag.attributes().with_checks(false).flatten() {
            let value: &str = attribute.value.as_ref();
            match local(attribute.key.as_ref()) {
                "href" => href = Some(quick_xml::escape::unescape(value).map_or(value.to_owned(), |v| v.into_owned())),
                "rel" => is_page = value.eq_ignore_ascii_case("alternate"),
                _ => {}
            }
        }
        if let Some(href) = href.filter(|_| is_page && self.draft.address.is_empty()) {
            self.draft.address = href;
        }
    }

    fn end(&mut self, own: &str) -> ControlFlow<Ending> {
        let is_entry = match self.mode {
            Some(Mode::Sitemap) => matches!(own, "url" | "sitemap"),
            Some(Mode::Feed) => matches!(own, "item" | "entry"),
            None => false,
        };
        if self.field.is_some_and(|(_, depth)| depth >= self.depth) {
            self.field = None;
        }
        if is_entry && let Some((depth, _)) = self.entry {
            self.flush()?;
            self.depth = depth;
        }
        self.depth = self.depth.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn text(&mut self, text: &str) {
        let Some((field, _)) = self.field else { return };
        let bound = match field {
            Field::Address | Field::Guid => MAX_ADDRESS + 1,
            _ => 4 * MAX_TEXT,
        };
        let draft = &mut self.draft;
        let place = match field {
            Field::Address => &mut draft.address,
            Field::Guid => &mut draft.guid,
            Field::Changed => &mut draft.changed,
            Field::Title => &mut draft.title,
            Field::Description => &mut draft.description,
        };
        let room = bound.saturating_sub(place.len());
        place.push_str(&text[..text.floor_char_boundary(room)]);
    }

    fn reference(&mut self, reference: &BytesRef<'_>) {
        let plain = match reference.resolve_char_ref() {
            Ok(Some(character)) => character.to_string(),
            _ => {
                let name: &str = reference;
                quick_xml::escape::resolve_predefined_entity(name).map_or_else(|| format!("&{name};"), str::to_owned)
            }
        };
        self.text(&plain);
    }

    /// Hands out the open entry, if its address is one.
    fn flush(&mut self) -> ControlFlow<Ending> {
        // An address that was still being read is not known.
        let is_torn = matches!(self.field.take(), Some((Field::Address, _)));
        let draft = std::mem::take(&mut self.draft);
        let Some((_, of_index)) = self.entry.take() else { return ControlFlow::Continue(()) };
        if is_torn {
            return ControlFlow::Continue(());
        }
        let written = if draft.address.trim().is_empty() { draft.guid.trim() } else { draft.address.trim() };
        let is_guid = draft.address.trim().is_empty();
        let url = if is_guid { Url::parse(written).ok() } else { self.base.join(written).ok() };
        let Some(url) = url.filter(|_| !written.is_empty()).and_then(page_url) else {
            return ControlFlow::Continue(());
        };
        self.found += 1;
        let item = if of_index {
            Item::Sitemap(url)
        } else {
            Item::Page(SitemapEntry {
                url,
                lastmod: plain(&draft.changed),
                title: plain(&draft.title),
                description: plain(&draft.description),
            })
        };
        if (self.take)(item).is_break() || self.found >= MAX_ENTRIES {
            return ControlFlow::Break(Ending::Cut);
        }
        ControlFlow::Continue(())
    }
}

/// Whether a document type is a web page's.
fn is_html(text: &str) -> bool {
    text.trim_ascii_start().get(..4).is_some_and(|word| word.eq_ignore_ascii_case("html"))
}

/// The name without its prefix.
fn local(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, own)| own)
}

/// Text without markup, control characters and runs of blanks, cut at [`MAX_TEXT`]; `None` when nothing is left.
fn plain(text: &str) -> Option<Box<str>> {
    let mut out = String::new();
    let mut is_tag = false;
    for character in text.chars() {
        match character {
            '<' => is_tag = true,
            '>' if is_tag => {
                is_tag = false;
                out.push(' ');
            }
            _ if is_tag => {}
            c if c.is_whitespace() || c.is_control() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c if out.len() + c.len_utf8() <= MAX_TEXT => out.push(c),
            _ => break,
        }
    }
    let words: Vec<&str> = out.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" ").into_boxed_str())
}

#[cfg(test)]
#[path = "sitemap_reader_tests.rs"]
mod tests;
