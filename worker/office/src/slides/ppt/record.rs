//! The records of a presentation.

use crate::binary::{slice, u16_at, usize_at};

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub kind: u16,
    pub instance: u16,
    /// What is in it are records.
    pub is_container: bool,
    pub data: &'a [u8],
}

/// The record at a place, if all of it is there.
pub fn at(bytes: &[u8], at: usize) -> Option<Record<'_>> {
    let head = u16_at(bytes, at)?;
    let data = slice(bytes, at.checked_add(8)?, usize_at(bytes, at + 4)?)?;
    Some(Record { kind: u16_at(bytes, at + 2)?, instance: head >> 4, is_container: head & 0x0f == 0x0f, data })
}

/// The records in a run of bytes, as far as they are whole.
pub fn records(bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let record = at(bytes, next)?;
        next += 8 + record.data.len();
        Some(record)
    })
}
