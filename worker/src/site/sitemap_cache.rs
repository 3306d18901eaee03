//! Sitemaps that were read lately, kept for a team in the database, so that every worker has them.
//!
//! A file is kept as the entries read from it, one line each, compressed. Teams do not share: what one may read (by its
//! place or its time) tells nothing to another.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::ops::ControlFlow;

use sha2::{Digest as _, Sha256};
use url::Url;
use weir_shared::ids::TeamId;
use weir_shared::store::Db;
use weir_shared::store::contents::sitemaps;

use super::sitemap_reader::{Item, SitemapEntry};

/// How long a file counts (spec 4.9), milliseconds.
const FRESH_MS: i64 = 7 * 86_400_000;
/// How long it counts that there is none, milliseconds.
const ABSENT_MS: i64 = 3_600_000;
/// A larger file is fetched each time, bytes compressed.
const MAX_PACKED: usize = 2 << 20;
/// A kept file unpacks to this many bytes at most.
const MAX_UNPACKED: u64 = 64 << 20;
const LEVEL: i32 = 1;

/// The kept sitemaps of one team, as seen from one place.
#[derive(Clone)]
pub struct SitemapCache {
    db: Db,
    team: TeamId,
    /// What the answers depend on besides the address: the location asked from.
    variant: String,
    reads: bool,
}

impl SitemapCache {
    /// `reads: false` writes only: the caller wants fresh files.
    pub fn new(db: Db, team: TeamId, variant: String, reads: bool) -> Self {
        Self { db, team, variant, reads }
    }

    /// The kept file. A database that cannot be asked is as good as an empty one.
    pub async fn get(&self, url: &Url) -> Option<Packed> {
        if !self.reads {
            return None;
        }
        match sitemaps::get(&self.db, self.team, &self.key(url), self.db.now()).await {
            Ok(found) => found.map(Packed),
            Err(error) => {
                tracing::debug!(%error, "a kept sitemap could not be read");
                None
            }
        }
    }

    /// Keeps in mind for an hour that there are no such files.
    pub async fn put_absent(&self, urls: Vec<Url>) {
        let files = urls.into_iter().map(|url| (url, Packed(Vec::new()))).collect();
        self.put_for(files, ABSENT_MS).await;
    }

    /// Keeps files; a failure costs the next reader a fetch and is logged only.
    pub async fn put(&self, files: Vec<(Url, Packed)>) {
        self.put_for(files, FRESH_MS).await;
    }

    async fn put_for(&self, files: Vec<(Url, Packed)>, counts_ms: i64) {
        if files.is_empty() {
            return;
        }
        let now = self.db.now();
        let rows: Vec<(String, Vec<u8>)> = files.into_iter().map(|(url, packed)| (self.key(&url), packed.0)).collect();
        let write = async {
            let mut tx = self.db.begin_relaxed().await?;
            sitemaps::put(&mut tx, self.team, &rows, now, now.plus_ms(counts_ms)).await?;
            tx.commit().await
        };
        if let Err(error) = write.await {
            tracing::warn!(%error, "sitemaps could not be kept");
        }
    }

    fn key(&self, url: &Url) -> String {
        let mut digest = Sha256::new();
        digest.update(url.as_str());
        digest.update([0]);
        digest.update(&self.variant);
        hex::encode(digest.finalize())
    }
}

/// A file's entries, compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed(Vec<u8>);

impl Packed {
    /// An empty file to be filled.
    pub fn writer() -> Packer {
        Packer { encoder: zstd::stream::write::Encoder::new(Vec::new(), LEVEL).ok(), line: Vec::new() }
    }

    /// Bytes it takes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it holds nothing at all, not even an empty file.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Hands out the entries in order until `take` breaks. `false`: it cannot be read. Blocks.
    pub fn read(&self, mut take: impl FnMut(Item) -> ControlFlow<()>) -> bool {
        let Ok(decoder) = zstd::stream::read::Decoder::new(self.0.as_slice()) else { return false };
        for line in BufReader::new(decoder.take(MAX_UNPACKED)).split(b'\n') {
            let Some(item) = line.ok().and_then(|line| unpack(&line)) else { return false };
            if take(item).is_break() {
                break;
            }
        }
        true
    }
}

/// Compresses entries one by one.
pub struct Packer {
    /// `None` after a failure, or past [`MAX_PACKED`].
    encoder: Option<zstd::stream::write::Encoder<'static, Vec<u8>>>,
    line: Vec<u8>,
}

impl Packer {
    /// Adds an entry.
    pub fn add(&mut self, item: &Item) {
        let Some(encoder) = &mut self.encoder else { return };
        self.line.clear();
        pack(item, &mut self.line);
        let written = encoder.write_all(&self.line);
        if written.is_err() || encoder.get_ref().len() > MAX_PACKED {
            self.encoder = None;
        }
    }

    /// The file, unless it is too large to keep.
    pub fn finish(self) -> Option<Packed> {
        let packed = self.encoder?.finish().ok()?;
        (packed.len() <= MAX_PACKED).then_some(Packed(packed))
    }
}

/// `p` for a page or `s` for a sitemap, then the fields between tabs. Addresses hold neither tabs nor line ends, texts
/// have been cleaned of them.
fn pack(item: &Item, line: &mut Vec<u8>) {
    let field = |line: &mut Vec<u8>, text: &str| {
        line.push(b'\t');
        line.extend(text.bytes().map(|byte| if matches!(byte, b'\t' | b'\n') { b' ' } else { byte }));
    };
    match item {
        Item::Sitemap(url) => {
            line.push(b's');
            field(line, url.as_str());
        }
        Item::Page(entry) => {
            line.push(b'p');
            field(line, entry.url.as_str());
            for text in [&entry.lastmod, &entry.title, &entry.description] {
                field(line, text.as_deref().unwrap_or_default());
            }
        }
    }
    line.push(b'\n');
}

fn unpack(line: &[u8]) -> Option<Item> {
    let mut fields = std::str::from_utf8(line).ok()?.split('\t');
    let kind = fields.next()?;
    let url = Url::parse(fields.next()?).ok()?;
    let mut text = || fields.next().filter(|text| !text.is_empty()).map(Box::from);
    match kind {
        "s" => Some(Item::Sitemap(url)),
        "p" => Some(Item::Page(SitemapEntry { url, lastmod: text(), title: text(), description: text() })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let page = |url: &str, title: Option<&str>| {
            let url = Url::parse(url).expect("a URL");
            Item::Page(SitemapEntry {
                url,
                lastmod: Some("2024".into()),
                title: title.map(Box::from),
                description: None,
            })
        };
        let items = [
            page("https://x.test/1?a=%09b", Some("A title")),
            Item::Sitemap(Url::parse("https://x.test/s.xml").expect("a URL")),
            page("https://x.test/%C3%A9", None),
        ];
        let mut packer = Packed::writer();
        items.iter().for_each(|item| packer.add(item));
        let packed = packer.finish().expect("small");
        let mut back = Vec::new();
        let read = |packed: &Packed, back: &mut Vec<Item>| {
            packed.read(|item| {
                back.push(item);
                ControlFlow::Continue(())
            })
        };
        assert!(read(&packed, &mut back));
        assert_eq!(back, items);
        assert!(!read(&Packed(packed.0[..packed.0.len() / 2].to_vec()), &mut Vec::new()));
        let empty = Packed::writer().finish().expect("small");
        let mut none = Vec::new();
        assert!(read(&empty, &mut none) && none.is_empty());
    }

    #[test]
    fn a_file_too_large_to_keep_is_not_kept() {
        let mut packer = Packed::writer();
        for _ in 0..60_000 {
            let url = format!("https://x.test/{}", weir_shared::random::hex::<48>());
            packer.add(&Item::Sitemap(Url::parse(&url).expect("a URL")));
        }
        assert_eq!(packer.finish(), None);
    }
}
