//! The lists of a document: their kinds by level, and the numbers reached so far.

use std::collections::HashMap;

use super::fib::Fib;
use crate::binary::{slice, u8_at, u16_at, u32_at, usize_at};

/// Levels of a list.
const LEVELS: usize = 9;
/// Numbers of the structures: definitions, and the lists that use them.
const DEFINITIONS: usize = 73;
const USES: usize = 74;
/// Kinds of numbers that are none.
const BULLET: u8 = 23;
const NOTHING: u8 = 255;

#[derive(Clone, Copy, Debug)]
struct Level {
    ordered: bool,
    start: u64,
}

/// All lists.
#[derive(Debug, Default)]
pub struct Lists {
    definitions: HashMap<u32, Vec<Level>>,
    /// The definition of each list, by its number less one.
    uses: Vec<u32>,
    reached: HashMap<u32, [u64; LEVELS]>,
}

/// The place of a paragraph in its list.
#[derive(Clone, Copy, Debug)]
pub struct ListItem {
    pub ordered: bool,
    pub number: u64,
    pub list: u64,
}

impl Lists {
    /// Reads them, as far as they go.
    pub fn read(fib: &Fib<'_>) -> Self {
        let mut out = Self::default();
        let _ = out.read_definitions(fib.structure(DEFINITIONS), fib.after(DEFINITIONS));
        let uses = fib.structure(USES);
        let count = usize_at(uses, 0).unwrap_or(0).min(uses.len() / 16);
        out.uses = (0..count).filter_map(|n| u32_at(uses, 4 + n * 16)).collect();
        out
    }

    fn read_definitions(&mut self, heads: &[u8], mut levels: &[u8]) -> Option<()> {
        for n in 0..usize::from(u16_at(heads, 0)?) {
            let head = slice(heads, 2 + n * 28, 28)?;
            let count = if u8_at(head, 26)? & 1 != 0 { 1 } else { LEVELS };
            let mut out = Vec::with_capacity(count);
            for _ in 0..count {
                let kind = u8_at(levels, 4)?;
                let start = u64::from(u32_at(levels, 0)?);
                out.push(Level { ordered: !matches!(kind, BULLET | NOTHING), start });
                let properties = usize::from(u8_at(levels, 24)?) + usize::from(u8_at(levels, 25)?);
                let text = usize::from(u16_at(levels, 28 + properties)?);
                levels = levels.get(30 + properties + text * 2..)?;
            }
            self.definitions.insert(u32_at(head, 0)?, out);
        }
        Some(())
    }

    /// The place of the next paragraph of a list at a level.
    pub fn next(&mut self, list: u16, level: usize) -> Option<ListItem> {
        let id = *self.uses.get(usize::from(list).checked_sub(1)?)?;
        let levels = self.definitions.get(&id)?;
        let here = *levels.get(level).or(levels.first())?;
        let before = |n: usize| levels.get(n).map_or(0, |level| level.start.saturating_sub(1));
        let reached = self.reached.entry(id).or_insert_with(|| std::array::from_fn(before));
        for (n, number) in reached.iter_mut().enumerate() {
            if n == level {
                *number = number.saturating_add(1);
            } else if n > level {
                *number = before(n);
            }
        }
        let number = reached.get(level).copied().unwrap_or(1);
        Some(ListItem { ordered: here.ordered, number, list: u64::from(id) * 2 + u64::from(here.ordered) })
    }
}
