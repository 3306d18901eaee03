//! OLE compound files, the container of the formats before 2007. Read with the chains checked against the file's size,
//! so that a loop ends and a stated length costs nothing; streams are read in one linear pass.

use crate::ConvertError;
use crate::binary::{slice, u16_at, u32_at, u64_at, usize_at};
use crate::text::utf16;

/// What a compound file begins with.
pub const MAGIC: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
/// Numbers from here on mean an end or no sector.
const LAST_SECTOR: u32 = 0xffff_fffa;
/// Places for sectors of the allocation table in the header.
const IN_HEADER: usize = 109;
/// Bytes of an entry of the directory.
const ENTRY: usize = 128;

#[derive(Debug)]
struct Entry {
    name: String,
    is_stream: bool,
    is_root: bool,
    first: u32,
    length: u64,
}

/// An open compound file.
#[derive(Debug)]
pub struct Compound<'a> {
    bytes: &'a [u8],
    sector: usize,
    table: Vec<u32>,
    small_table: Vec<u32>,
    small_sector: usize,
    /// Streams shorter than this lie in the root's own stream.
    small_below: u64,
    small: Vec<u8>,
    entries: Vec<Entry>,
}

fn broken() -> ConvertError {
    ConvertError::broken("its compound file is cut off or inconsistent")
}

impl<'a> Compound<'a> {
    /// Reads the tables and the directory.
    ///
    /// # Errors
    /// When they are not there.
    pub fn open(bytes: &'a [u8]) -> Result<Self, ConvertError> {
        Self::read(bytes).ok_or_else(broken)
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let sector = match u16_at(bytes, 30)? {
            9 => 512,
            12 => 4096,
            _ => return None,
        };
        let small_sector = if u16_at(bytes, 32)? == 6 { 64 } else { return None };
        let mut file = Self {
            bytes,
            sector,
            table: Vec::new(),
            small_table: Vec::new(),
            small_sector,
            small_below: u64::from(u32_at(bytes, 56)?),
            small: Vec::new(),
            entries: Vec::new(),
        };
        file.table = file.allocation_table()?;
        file.small_table = numbers(&file.chain(u32_at(bytes, 60)?, u64::MAX)).collect();
        let directory = file.chain(u32_at(bytes, 48)?, u64::MAX);
        file.entries = directory.chunks_exact(ENTRY).filter_map(entry).collect();
        let root = file.entries.iter().find(|entry| entry.is_root)?;
        file.small = file.chain(root.first, root.length);
        Some(file)
    }

    /// The bytes of a sector; the last one of a file may be short.
    fn sector(&self, number: u32) -> Option<&'a [u8]> {
        let from = usize::try_from(number).ok()?.checked_add(1)?.checked_mul(self.sector)?;
        let rest = self.bytes.get(from..)?;
        Some(rest.get(..self.sector).unwrap_or(rest)).filter(|sector| !sector.is_empty())
    }

    fn allocation_table(&self) -> Option<Vec<u32>> {
        let most = self.bytes.len() / self.sector + 1;
        let mut places: Vec<u32> = numbers(slice(self.bytes, 76, IN_HEADER * 4)?).collect();
        let mut next = u32_at(self.bytes, 68)?;
        for _ in 0..most {
            if next >= LAST_SECTOR {
                break;
            }
            let Some(sector) = self.sector(next) else { break };
            let mut further: Vec<u32> = numbers(sector).collect();
            next = further.pop()?;
            places.extend(further);
        }
        let mut table = Vec::new();
        for place in places.into_iter().filter(|place| *place < LAST_SECTOR).take(most) {
            table.extend(numbers(self.sector(place)?));
            if table.len() > most + self.sector {
                break;
            }
        }
        Some(table)
    }

    /// The bytes of a chain of sectors, as far as they are there. A chain longer than the file has sectors is a loop.
    fn chain(&self, first: u32, length: u64) -> Vec<u8> {
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(self.bytes.len());
        let mut out = Vec::new();
        let mut next = first;
        while next < LAST_SECTOR && out.len() < length {
            let Some(sector) = self.sector(next) else { break };
            out.extend_from_slice(sector);
            next = usize::try_from(next).ok().and_then(|n| self.table.get(n)).copied().unwrap_or(u32::MAX);
        }
        out.truncate(length);
        out
    }

    fn small_chain(&self, first: u32, length: u64) -> Vec<u8> {
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(self.small.len());
        let mut out = Vec::new();
        let mut next = first;
        while next < LAST_SECTOR && out.len() < length {
            let Ok(number) = usize::try_from(next) else { break };
            let from = number.saturating_mul(self.small_sector);
            let Some(rest) = self.small.get(from..).filter(|rest| !rest.is_empty()) else { break };
            out.extend_from_slice(rest.get(..self.small_sector).unwrap_or(rest));
            next = self.small_table.get(number).copied().unwrap_or(u32::MAX);
        }
        out.truncate(length);
        out
    }

    /// Whether there is a stream or storage of that name, at any depth.
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name.eq_ignore_ascii_case(name))
    }

    /// The first stream of that name.
    pub fn stream(&self, name: &str) -> Option<Vec<u8>> {
        let entry = self.entries.iter().find(|entry| entry.is_stream && entry.name.eq_ignore_ascii_case(name))?;
        Some(if entry.length < self.small_below {
            self.small_chain(entry.first, entry.length)
        } else {
            self.chain(entry.first, entry.length)
        })
    }
}

fn entry(bytes: &[u8]) -> Option<Entry> {
    let kind = *bytes.get(66)?;
    let name_length = usize::from(u16_at(bytes, 64)?).clamp(2, 64) - 2;
    // The upper half of a length is noise in files with small sectors; no file here is as large.
    let length = u64_at(bytes, 120)? & 0xffff_ffff;
    matches!(kind, 1 | 2 | 5).then_some(Entry {
        name: utf16(slice(bytes, 0, name_length)?),
        is_stream: kind == 2,
        is_root: kind == 5,
        first: u32_at(bytes, 116)?,
        length,
    })
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    (0..bytes.len() / 4).filter_map(|n| u32_at(bytes, n * 4))
}

/// The property set in a stream like `\u{5}SummaryInformation`: number of a property to where its value lies.
pub fn property(stream: &[u8], id: u32) -> Option<&[u8]> {
    let section = usize_at(stream, 44)?;
    let section = stream.get(section..)?;
    let count = usize_at(section, 4)?.min(256);
    (0..count).find_map(|n| {
        let at = 8 + n * 8;
        (u32_at(section, at)? == id).then(|| section.get(usize_at(section, at + 4)?..))?
    })
}
