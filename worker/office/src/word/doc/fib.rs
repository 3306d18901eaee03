//! Where everything lies in a document: its information block, and the pieces of its text.

use encoding_rs::WINDOWS_1252;

use crate::binary::{slice, u8_at, u16_at, u32_at, usize_at};

/// Where the list of structures begins in the information block.
const STRUCTURES: usize = 0x9a;
/// Number of the structure that has the pieces.
const PIECES: usize = 33;

/// A run of text.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Characters before it, and before the next one.
    from: usize,
    to: usize,
    /// Where its bytes begin.
    at: usize,
    /// One byte a character, not two.
    is_narrow: bool,
}

/// The two streams of a document.
#[derive(Debug)]
pub struct Fib<'a> {
    pub stream: &'a [u8],
    pub table: &'a [u8],
    pieces: Vec<Piece>,
}

impl<'a> Fib<'a> {
    /// Finds the pieces.
    pub fn read(stream: &'a [u8], table: &'a [u8]) -> Option<Self> {
        let mut fib = Self { stream, table, pieces: Vec::new() };
        let mut list = fib.structure(PIECES);
        // Changes to properties stand before the pieces.
        while u8_at(list, 0)? == 1 {
            list = list.get(3 + usize::from(u16_at(list, 1)?)..)?;
        }
        if u8_at(list, 0)? != 2 {
            return None;
        }
        let list = list.get(5..)?;
        let count = list.len().checked_sub(4)? / 12;
        for n in 0..count {
            let (from, to) = (usize_at(list, n * 4)?, usize_at(list, n * 4 + 4)?);
            let place = u32_at(list, (count + 1) * 4 + n * 8 + 2)?;
            let is_narrow = place & 0x4000_0000 != 0;
            let at = usize::try_from(place & 0x3fff_ffff).ok()?;
            let is_after = fib.pieces.last().is_none_or(|last| last.to <= from);
            // An honest document has no more characters than bytes.
            if is_after && from < to && to <= stream.len() {
                fib.pieces.push(Piece { from, to, at: if is_narrow { at / 2 } else { at }, is_narrow });
            }
        }
        Some(fib)
    }

    /// A structure of the table stream; nothing if it is not there.
    pub fn structure(&self, number: usize) -> &'a [u8] {
        let at = STRUCTURES + number * 8;
        let found = usize_at(self.stream, at).zip(usize_at(self.stream, at + 4));
        found.and_then(|(from, length)| slice(self.table, from, length)).unwrap_or_default()
    }

    /// The table stream from where a structure ends.
    pub fn after(&self, number: usize) -> &'a [u8] {
        let at = STRUCTURES + number * 8;
        let found = usize_at(self.stream, at).zip(usize_at(self.stream, at + 4));
        found.and_then(|(from, length)| self.table.get(from.checked_add(length)?..)).unwrap_or_default()
    }

    /// A structure that is a list of places of characters, in order.
    pub fn places(&self, number: usize) -> Vec<usize> {
        let list = self.structure(number);
        let mut last = 0;
        let places = (0..list.len() / 4).map_while(|n| usize_at(list, n * 4));
        // Places that go back would read the same again and again.
        let is_after = |place: &usize| *place >= std::mem::replace(&mut last, *place) && *place <= self.stream.len();
        places.take_while(is_after).collect()
    }

    /// The places that refer to notes; each has two bytes more.
    pub fn notes(&self, number: usize) -> Vec<usize> {
        let list = self.structure(number);
        let count = list.len().saturating_sub(4) / 6;
        (0..count).filter_map(|n| usize_at(list, n * 4)).collect()
    }

    /// Characters from a place to another, each with its own place and that of its bytes.
    pub fn characters(&self, from: usize, to: usize) -> impl Iterator<Item = (usize, usize, u16)> {
        let first = self.pieces.partition_point(|piece| piece.to <= from);
        self.pieces.get(first..).unwrap_or_default().iter().take_while(move |piece| piece.from < to).flat_map(
            move |piece| {
                (piece.from.max(from)..piece.to.min(to)).map_while(move |place| {
                    let offset = place - piece.from;
                    let width = if piece.is_narrow { 1 } else { 2 };
                    let at = piece.at.checked_add(offset.checked_mul(width)?)?;
                    let unit = if piece.is_narrow { narrow(u8_at(self.stream, at)?) } else { u16_at(self.stream, at)? };
                    Some((place, at, unit))
                })
            },
        )
    }
}

/// A character of one byte, in Windows' code page.
fn narrow(byte: u8) -> u16 {
    if !(0x80..0xa0).contains(&byte) {
        return u16::from(byte);
    }
    let decoded = WINDOWS_1252.decode_without_bom_handling(&[byte]).0.chars().next();
    decoded.and_then(|c| u16::try_from(u32::from(c)).ok()).unwrap_or(u16::from(b'?'))
}
