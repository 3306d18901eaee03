//! Which blocks stand on which of the last pages of a site.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::blocks::Blocks;

/// Pages that are known at most: a bit each.
const PAGES: usize = 64;
/// From so many on, what most of them have is template.
const LEAST: u32 = 10;
/// So many pages of one part of the site find a place at once.
const PART: usize = 16;
/// Blocks that are known at most.
const BLOCKS: usize = 2_048;
/// Seconds between two pages that take the place of another, once all places are taken.
const TURN: u64 = 60;
/// Seconds after which a page that comes again is looked at again.
const AGAIN: u64 = 3_600;
/// The form of the bytes.
const FORM: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    name: u64,
    whole: u64,
    section: u32,
    /// When, seconds since 1970.
    at: u64,
}

/// Numbers of blocks are spread already. Who makes them alike on purpose makes a search through all that are known of the
/// own site, which are not many.
#[derive(Clone, Copy, Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What is known of the pages of one site: a small number of its last pages, and where their blocks stand. Its size is
/// bounded whatever the pages are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    pages: Vec<Seen>,
    /// Number of a block, and a bit for each page that it stands on.
    blocks: HashMap<u64, u64, BuildHasherDefault<AsItIs>>,
}

impl Site {
    /// Pages that are known, each once, whatever its addresses.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Whether enough is known to tell what is template.
    pub fn is_of_use(&self) -> bool {
        self.pages.len() >= LEAST as usize
    }

    /// Whether anything is to be learned from a page that was seen at this time, seconds since 1970.
    pub fn has_place(&self, page: &Blocks, now: u64) -> bool {
        self.place_for(page, now).is_some()
    }

    /// Learns from a page, if anything is to be learned from it.
    pub fn learn(&mut self, page: &Blocks, now: u64) {
        if let Some(place) = self.place_for(page, now) {
            let seen = Seen { name: page.name, whole: page.whole, section: page.section, at: now };
            self.put(place, seen, &page.numbers);
        }
    }

    fn place_for(&self, page: &Blocks, now: u64) -> Option<usize> {
        match self.place_of(page.name, page.whole) {
            Some(place) => (now >= self.pages[place].at.saturating_add(AGAIN)).then_some(place),
            None => self.room_for(page, now),
        }
    }

    fn place_of(&self, name: u64, whole: u64) -> Option<usize> {
        self.pages.iter().position(|seen| seen.name == name || seen.whole == whole)
    }

    /// A place for a page that is not known yet. Once all are taken, pages have one in turn, so that a crawl's pages are
    /// not judged differently from moment to moment; those of a part that is hardly known have one at once.
    fn room_for(&self, page: &Blocks, now: u64) -> Option<usize> {
        if self.pages.len() < PAGES {
            return Some(self.pages.len());
        }
        let of = |section: u32| self.pages.iter().filter(|seen| seen.section == section).count();
        let oldest = |pages: &mut dyn Iterator<Item = usize>| pages.min_by_key(|&place| self.pages[place].at);
        if of(page.section) < PART {
            let largest = self.pages.iter().map(|seen| seen.section).max_by_key(|&section| of(section))?;
            if of(largest) > PART {
                return oldest(&mut (0..PAGES).filter(|&place| self.pages[place].section == largest));
            }
        }
        let newest = self.pages.iter().map(|seen| seen.at).max()?;
        if now >= newest.saturating_add(TURN) { oldest(&mut (0..PAGES)) } else { None }
    }

    fn put(&mut self, place: usize, seen: Seen, numbers: &[u64]) {
        let bit = 1 << place;
        if place < self.pages.len() {
            self.pages[place] = seen;
            self.blocks.retain(|_, pages| {
                *pages &= !bit;
                *pages != 0
            });
        } else {
            self.pages.push(seen);
        }
        for &number in numbers {
            *self.blocks.entry(number).or_default() |= bit;
        }
        if self.blocks.len() > BLOCKS {
            // What stands on one page alone is of use only once it stands on another.
            self.blocks.retain(|_, pages| pages.count_ones() > 1);
        }
    }

    /// What is template for pages of this part of the site. `None`: too little is known.
    pub(super) fn template(&self, section: u32) -> Option<Template<'_>> {
        let all = self.pages.len() as u32;
        if all < LEAST {
            return None;
        }
        let part = |(place, seen): (usize, &Seen)| if seen.section == section { 1 << place } else { 0 };
        let part = self.pages.iter().enumerate().map(part).fold(0, |part: u64, bit| part | bit);
        let is_part = section != 0 && part.count_ones() >= LEAST;
        Some(Template { site: self, all, part: if is_part { part } else { 0 } })
    }

    /// Adds what another has learned of the same site.
    pub fn merge(&mut self, other: &Self) {
        for (theirs, seen) in other.pages.iter().enumerate() {
            let place = match self.place_of(seen.name, seen.whole) {
                Some(place) => place,
                None if self.pages.len() < PAGES => self.pages.len(),
                None => (0..PAGES).min_by_key(|&place| self.pages[place].at).unwrap_or_default(),
            };
            if self.pages.get(place).is_none_or(|ours| ours.at < seen.at) {
                let stands = other.blocks.iter().filter(|(_, pages)| **pages & (1 << theirs) != 0);
                let numbers: Vec<u64> = stands.map(|(number, _)| *number).collect();
                self.put(place, *seen, &numbers);
            }
        }
    }

    /// What is known. Once there are some pages, without the blocks that stand on one alone, which are most of it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORM, self.pages.len() as u8];
        for Seen { name, whole, section, at } in &self.pages {
            bytes.extend(name.to_le_bytes());
            bytes.extend(whole.to_le_bytes());
            bytes.extend(section.to_le_bytes());
            bytes.extend(at.to_le_bytes());
        }
        let least = if self.pages.len() > PART { 2 } else { 1 };
        let mut blocks: Vec<_> = self.blocks.iter().filter(|(_, pages)| pages.count_ones() >= least).collect();
        blocks.sort_unstable();
        for (number, pages) in blocks {
            bytes.extend(number.to_le_bytes());
            bytes.extend(pages.to_le_bytes());
        }
        bytes
    }

    /// Reads what was written. `None`: it is something else, or of another release.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&[form, pages], mut rest) = bytes.split_first_chunk()?;
        if form != FORM || usize::from(pages) > PAGES {
            return None;
        }
        let mut site = Self::default();
        for _ in 0..pages {
            let name = u64::from_le_bytes(*taken(&mut rest)?);
            let whole = u64::from_le_bytes(*taken(&mut rest)?);
            let section = u32::from_le_bytes(*taken(&mut rest)?);
            let at = u64::from_le_bytes(*taken(&mut rest)?);
            site.pages.push(Seen { name, whole, section, at });
        }
        if rest.len() > BLOCKS * 16 {
            return None;
        }
        let known = u64::MAX.checked_shr(64 - u32::from(pages)).unwrap_or(0);
        while !rest.is_empty() {
            let number = u64::from_le_bytes(*taken(&mut rest)?);
            let stands = u64::from_le_bytes(*taken(&mut rest)?);
            site.blocks.insert(number, stands & known);
        }
        Some(site)
    }
}

fn taken<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(first)
}

/// What most pages have in common.
pub(super) struct Template<'s> {
    site: &'s Site,
    /// Pages that are known.
    all: u32,
    /// A bit for each of those in the page's part of the site; 0: too few are.
    part: u64,
}

impl Template<'_> {
    /// Whether most pages, of the site or of this part of it, have this block.
    pub fn has(&self, number: u64) -> bool {
        let pages = self.site.blocks.get(&number).copied().unwrap_or_default();
        pages.count_ones() * 2 > self.all
            || self.part != 0 && (pages & self.part).count_ones() * 2 > self.part.count_ones()
    }
}
