//! Walks a site's sitemaps: those that robots.txt names or the usual one, and every index below, several at once.
//!
//! ```text
//! queue ──> file task: cache, or fetch ──> blocking thread: unpack, read ──> batches ──> the caller
//!   ^                                                          │
//!   └──────────────── sitemaps that an index lists ────────────┘
//! ```
//!
//! Nothing is held whole: a file's bytes and entries pass through channels of a few pieces. The walk ends at its bounds,
//! at its deadline, and as soon as the caller stops receiving.

use std::collections::{HashSet, VecDeque};
use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use url::Url;
use weir_shared::domain::map::site_of;
use weir_shared::domain::target::Login;
use weir_shared::ids::TeamId;
use weir_shared::shares::{Common, Shares};
use weir_shared::{blocking, clock};

pub use super::sitemap_reader::{Ending, MAX_ENTRIES, SitemapEntry};

use super::robots::Robots;
use super::route::SiteRoute;
use super::sitemap_cache::{Packed, SitemapCache};
use super::sitemap_reader::{self, Item};
use crate::fetch::{CallerHeaders, HttpFetcher, Opened};

/// Entries in one batch.
const BATCH: usize = 1_000;
/// Bytes of a file collected before a thread is spent on it; most files are smaller.
const AHEAD: usize = 512 * 1024;
/// Bytes of one file on the wire.
const MAX_WIRE: usize = 50 << 20;
/// Bound on one file.
const FILE_PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of new files kept for the cache until the walk ends.
const MAX_FRESH: usize = 8 << 20;

/// Files read at once that are in memory, and files that still arrive while they are read: the latter hold a thread for
/// as long as a site likes, so they must not keep the others waiting, and no site has more than two of their places.
static READERS: LazyLock<Shares> = LazyLock::new(|| Shares::new(4, 3));
static STREAMS: LazyLock<Shares> = LazyLock::new(|| Shares::new(8, 2));
/// A team has three of the former, and of the latter four: it may have many sites.
static OF_TEAMS: LazyLock<Common<TeamId, Shares>> = LazyLock::new(Common::default);
const OF_TEAM: usize = 4;

/// Where sitemaps come from.
#[derive(Clone)]
pub struct Source {
    /// Who reads them.
    pub team: TeamId,
    pub fetcher: HttpFetcher,
    pub route: SiteRoute,
    /// A caller's own headers; with any, nothing is cached.
    pub headers: Arc<CallerHeaders>,
    /// What the caller's address says of it: the files of its origin are asked for with that, and kept so.
    pub login: Option<Login>,
    /// Absent: every file is fetched.
    pub cache: Option<SitemapCache>,
    pub asking: Asking,
}

/// Whether the site is asked for what is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    Always,
    /// What is not there is not asked for again in the next hour.
    OnceAnHour,
    Nobody,
}

/// How far a walk goes.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Files, indexes included.
    pub files: usize,
    /// Indexes inside each other.
    pub depth: u32,
    /// Files at once.
    pub at_once: usize,
    pub deadline: Instant,
}

impl Bounds {
    /// The usual bounds with an end.
    pub fn until(deadline: Instant) -> Self {
        Self { files: 2_000, depth: 4, at_once: 8, deadline }
    }
}

/// Entries of one file. Files are numbered in the order in which they became known.
#[derive(Debug)]
pub struct Batch {
    pub file: usize,
    pub entries: Vec<SitemapEntry>,
    /// Nothing more comes of this file.
    pub ended: bool,
}

/// What a walk came to.
#[derive(Debug, Default)]
pub struct Walk {
    /// Sitemaps that were read, from the site or the cache.
    pub files: usize,
    /// Files that were read to a bound or a break only, or that could not be had though an index or robots.txt names
    /// them.
    pub incomplete: usize,
    /// The walk met its own bounds or the deadline.
    pub cut: bool,
    /// Files to put into the cache.
    pub fresh: Vec<(Url, Packed)>,
    /// Addresses where there is none.
    pub absent: Vec<Url>,
}

/// The sitemaps to begin with: those of robots.txt, or else the usual places.
pub fn starts(robots: &Robots, site: &Url) -> Vec<Url> {
    let named: Vec<Url> = robots.sitemaps.iter().filter_map(|address| site.join(address).ok()).collect();
    if !named.is_empty() {
        return named;
    }
    ["/sitemap.xml", "/sitemap_index.xml", "/sitemap.txt"].iter().filter_map(|path| site.join(path).ok()).collect()
}

/// One file to read.
struct Todo {
    number: usize,
    url: Url,
    depth: u32,
}

/// Walks from `starts` and sends what is listed to `sink`, file by file in pieces; files interleave. Returns when all is
/// read, at the bounds, or soon after the receiver is gone.
pub async fn collect(source: &Source, starts: Vec<Url>, bounds: Bounds, sink: mpsc::Sender<Batch>) -> Walk {
    let mut walk = Walk::default();
    let mut seen = HashSet::new();
    let mut queue = VecDeque::new();
    let mut number = 0;
    for url in starts {
        if seen.len() < bounds.files && seen.insert(url.to_string()) {
            queue.push_back(Todo { number, url, depth: 0 });
            number += 1;
        }
    }
    let mut tasks = JoinSet::new();
    let mut kept = 0;
    loop {
        while tasks.len() < bounds.at_once.max(1)
            && let Some(todo) = queue.pop_front()
        {
            tasks.spawn(read_file(source.clone(), todo, bounds, sink.clone()));
        }
        let next = tokio::select! {
            next = tasks.join_next() => next,
            () = sink.closed() => break,
            () = tokio::time::sleep_until(bounds.deadline) => {
                walk.cut = true;
                break;
            }
        };
        let end = match next {
            None => break,
            Some(Ok(end)) => end,
            Some(Err(error)) => {
                tracing::error!(%error, "the reading of a sitemap panicked");
                walk.incomplete += 1;
                continue;
            }
        };
        match end.ending {
            // Only what is named must be there; the usual places are a guess.
            None => walk.incomplete += usize::from(end.depth > 0),
            Some(Ending::Whole) => walk.files += 1,
            Some(Ending::Cut) => {
                walk.files += 1;
                walk.incomplete += 1;
            }
            Some(Ending::NoSitemap) => walk.incomplete += usize::from(end.depth > 0),
        }
        if let Some((url, packed)) = end.fresh
            && kept + packed.len() <= MAX_FRESH
        {
            kept += packed.len();
            walk.fresh.push((url, packed));
        }
        walk.absent.extend(end.absent);
        for url in end.children {
            if seen.contains(url.as_str()) {
                continue;
            }
            if end.depth >= bounds.depth || seen.len() >= bounds.files {
                walk.cut = true;
                break;
            }
            seen.insert(url.to_string());
            queue.push_back(Todo { number, url, depth: end.depth + 1 });
            number += 1;
        }
        if sink.send(Batch { file: end.number, entries: Vec::new(), ended: true }).await.is_err() {
            break;
        }
    }
    walk
}

/// What came of one file.
struct FileEnd {
    number: usize,
    depth: u32,
    /// `None`: it could not be had.
    ending: Option<Ending>,
    children: Vec<Url>,
    fresh: Option<(Url, Packed)>,
    /// There is none.
    absent: Option<Url>,
}

async fn read_file(source: Source, todo: Todo, bounds: Bounds, sink: mpsc::Sender<Batch>) -> FileEnd {
    let Todo { number, url, depth } = todo;
    let url = match &source.login {
        Some(login) => login.put(url),
        None => url,
    };
    let mut end = FileEnd { number, depth, ending: None, children: Vec::new(), fresh: None, absent: None };
    let cache = source.cache.as_ref().filter(|_| source.headers.is_empty());
    if let Some(cache) = cache
        && let Some(packed) = cache.get(&url).await
    {
        if packed.is_empty() {
            // There is none. Who asks for it always finds out anew.
            if source.asking != Asking::Always {
                return end;
            }
        } else {
            return read_kept(source.team, packed, end, sink).await;
        }
    }
    if source.asking == Asking::Nobody {
        return end;
    }
    let deadline = bounds.deadline.min(clock::deadline(FILE_PATIENCE));
    let mut way = source.route.way();
    let opened = loop {
        let opened = source.fetcher.open(way.request(&url, &source.headers, deadline)).await;
        if !way.leads_on(&opened).await {
            break opened;
        }
    };
    let opened = match opened {
        Ok(opened) if (200..300).contains(&opened.status) => opened,
        Ok(opened) => {
            let is_absent = matches!(opened.status, 404 | 410) && cache.is_some() && opened.is_trusted;
            end.absent = (is_absent && source.asking == Asking::OnceAnHour).then_some(url);
            return end;
        }
        Err(error) => {
            tracing::debug!(host = url.host_str().unwrap_or_default(), %error, "a sitemap could not be fetched");
            return end;
        }
    };
    // What an untrusted certificate gave may have come from anybody.
    let packer = cache.filter(|_| opened.is_trusted).map(|_| Packed::writer());
    let Some((ending, collector)) = read_answer(source.team, opened, Collector::new(number, sink, packer)).await else {
        return end;
    };
    end.ending = Some(ending);
    if ending == Ending::Whole {
        end.fresh = collector.packer.and_then(|packer| packer.finish()).map(|packed| (url, packed));
    }
    end.children = collector.children;
    end
}

/// Reads a file that was kept.
async fn read_kept(team: TeamId, packed: Packed, mut end: FileEnd, sink: mpsc::Sender<Batch>) -> FileEnd {
    let mut collector = Collector::new(end.number, sink, None);
    let _turn = READERS.take(&team.to_string()).await;
    let read = blocking::run(move || {
        let whole = packed.read(|item| collector.take(item));
        collector.flush();
        (whole, collector.children)
    });
    // Where it cannot be read: entries already sent come again; who receives them drops repeats.
    if let Ok((true, children)) = read.await {
        (end.ending, end.children) = (Some(Ending::Whole), children);
    }
    end
}

/// Reads an answer's body on a blocking thread while it arrives.
async fn read_answer(team: TeamId, mut opened: Opened, mut collector: Collector) -> Option<(Ending, Collector)> {
    let mut ahead = Vec::new();
    let mut taken = 0;
    let mut is_whole = false;
    let mut is_torn = false;
    while taken < AHEAD {
        match opened.chunk().await {
            Ok(Some(chunk)) => {
                taken += chunk.len();
                ahead.push(chunk);
            }
            Ok(None) => {
                is_whole = true;
                break;
            }
            // What came before may still be readable.
            Err(_) => {
                (is_whole, is_torn) = (true, true);
                break;
            }
        }
    }
    let (_reader, _stream) = if is_whole {
        (Some(READERS.take(&team.to_string()).await), None)
    } else {
        let site = site_of(opened.url.as_str()).unwrap_or_default();
        let own = OF_TEAMS.of(&team, || Shares::new(OF_TEAM, 2));
        let of_team = own.take(&site).await;
        (None, Some((STREAMS.take(&site).await, of_team, own)))
    };
    let (wire, pieces) = mpsc::channel(8);
    let base = opened.url.clone();
    let start = Cursor::new(ahead.concat());
    let decoder = opened.decoder(Box::new(start.chain(Pieces { pieces, piece: Cursor::default() }))).ok()?;
    let reading = blocking::run(move || {
        let ending = sitemap_reader::read(decoder, &base, |item| collector.take(item));
        collector.flush();
        (ending, collector)
    });
    if !is_whole {
        while taken < MAX_WIRE {
            match opened.chunk().await {
                Ok(Some(chunk)) => {
                    taken += chunk.len();
                    // The reader has seen enough.
                    if wire.send(chunk).await.is_err() {
                        break;
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    is_torn = true;
                    break;
                }
            }
        }
        is_torn |= taken >= MAX_WIRE;
    }
    drop(wire);
    let (ending, collector) = reading.await.ok()?;
    let ending = if is_torn && ending == Ending::Whole { Ending::Cut } else { ending };
    Some((ending, collector))
}

/// Pieces from the wire as a reader, for a blocking thread.
struct Pieces {
    pieces: mpsc::Receiver<Bytes>,
    piece: Cursor<Bytes>,
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let read = self.piece.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            match self.pieces.blocking_recv() {
                Some(piece) => self.piece = Cursor::new(piece),
                None => return Ok(0),
            }
        }
    }
}

/// Gathers what a file lists into batches, on its blocking thread.
struct Collector {
    number: usize,
    entries: Vec<SitemapEntry>,
    children: Vec<Url>,
    sink: mpsc::Sender<Batch>,
    packer: Option<super::sitemap_cache::Packer>,
}

impl Collector {
    fn new(number: usize, sink: mpsc::Sender<Batch>, packer: Option<super::sitemap_cache::Packer>) -> Self {
        Self { number, entries: Vec::new(), children: Vec::new(), sink, packer }
    }

    fn take(&mut self, item: Item) -> ControlFlow<()> {
        if let Some(packer) = &mut self.packer {
            packer.add(&item);
        }
        match item {
            Item::Sitemap(url) => self.children.push(url),
            Item::Page(entry) => {
                self.entries.push(entry);
                if self.entries.len() >= BATCH && !self.flush() {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Sends what is gathered. `false`: nobody receives any more.
    fn flush(&mut self) -> bool {
        if self.entries.is_empty() {
            return true;
        }
        let entries = std::mem::take(&mut self.entries);
        self.sink.blocking_send(Batch { file: self.number, entries, ended: false }).is_ok()
    }
}

#[cfg(test)]
#[path = "sitemap_tests.rs"]
mod tests;
