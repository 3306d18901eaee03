//! Titles, authors and dates that files say of themselves.

use crate::binary::{slice, u32_at, u64_at, usize_at};
use crate::compound::{Compound, property};
use crate::text::{code_page, decode_xml, utf16};
use crate::xml::{Element, Tree};
use crate::{Converted, Limits};

fn kept(text: String) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.chars().take(1000).collect())
}

fn text_in(root: Element<'_>, name: &str) -> Option<String> {
    root.find(name).and_then(|element| kept(element.text()))
}

/// Of the two parts of an OOXML package; what cannot be read is left out.
pub fn of_ooxml(core: Option<Vec<u8>>, app: Option<Vec<u8>>, limits: &Limits) -> Converted {
    let mut out = Converted::default();
    if let Some(source) = core.map(decode_xml)
        && let Ok(tree) = Tree::read(&source, "core", limits)
    {
        out.title = text_in(tree.root(), "title");
        out.author = text_in(tree.root(), "creator");
        out.created = text_in(tree.root(), "created");
        out.modified = text_in(tree.root(), "modified");
    }
    if let Some(source) = app.map(decode_xml)
        && let Ok(tree) = Tree::read(&source, "app", limits)
    {
        let number = |name| text_in(tree.root(), name)?.parse::<u64>().ok().filter(|n| *n > 0);
        out.pages = number("Pages").and_then(|n| u32::try_from(n).ok());
        out.words = number("Words");
    }
    out
}

/// Of `meta.xml` of an OpenDocument file; what cannot be read is left out.
pub fn of_odf(meta: Option<Vec<u8>>, limits: &Limits) -> Converted {
    let mut out = Converted::default();
    if let Some(source) = meta.map(decode_xml)
        && let Ok(tree) = Tree::read(&source, "meta", limits)
    {
        let root = tree.root();
        out.title = text_in(root, "title");
        out.author = text_in(root, "initial-creator").or_else(|| text_in(root, "creator"));
        out.created = text_in(root, "creation-date");
        out.modified = text_in(root, "date");
        if let Some(statistic) = root.find("document-statistic") {
            out.pages = statistic.number("page-count");
            out.words = statistic.number("word-count");
        }
    }
    out
}

/// Of the summary of a compound file.
pub fn of_compound(file: &Compound<'_>) -> Converted {
    const TITLE: u32 = 2;
    const AUTHOR: u32 = 4;
    const CREATED: u32 = 12;
    const MODIFIED: u32 = 13;
    const PAGES: u32 = 14;
    const WORDS: u32 = 15;
    let Some(stream) = file.stream("\u{5}SummaryInformation") else { return Converted::default() };
    let page = property(&stream, 1).and_then(|value| u32_at(value, 4)).map_or(1252, |page| page & 0xffff);
    let string = |id| {
        let value = property(&stream, id)?;
        let length = usize_at(value, 4)?;
        let text = match u32_at(value, 0)? {
            0x1e => code_page(page).decode_without_bom_handling(slice(value, 8, length)?).0.into_owned(),
            0x1f => utf16(slice(value, 8, length.checked_mul(2)?)?),
            _ => return None,
        };
        kept(text.trim_end_matches('\0').to_owned())
    };
    let number = |id| u32_at(property(&stream, id)?, 4).filter(|n| *n > 0 && *n < 10_000_000);
    let time = |id| file_time(u64_at(property(&stream, id)?, 4)?);
    Converted {
        title: string(TITLE),
        author: string(AUTHOR),
        created: time(CREATED),
        modified: time(MODIFIED),
        pages: number(PAGES),
        words: number(WORDS).map(u64::from),
        ..Converted::default()
    }
}

/// Steps of 100 ns since 1601 as RFC 3339.
fn file_time(steps: u64) -> Option<String> {
    /// Days from 1601 to 1970.
    const DAYS: i64 = 134_774;
    let seconds = steps / 10_000_000;
    if seconds == 0 {
        return None;
    }
    let days = i64::try_from(seconds / 86_400).ok()? - DAYS;
    let (year, month, day) = civil(days);
    let of_day = seconds % 86_400;
    (1901..9999).contains(&year).then(|| {
        format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
    })
}

/// Year, month and day of a number of days since 1970, in the proleptic Gregorian calendar.
pub fn civil(days: i64) -> (i64, u32, u32) {
    // Years are counted from March, so that the day a leap year adds is the last one.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, u32::try_from(month).unwrap_or(1), u32::try_from(day).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        for (days, date) in [(0, (1970, 1, 1)), (-1, (1969, 12, 31)), (19_782, (2024, 2, 29)), (-134_774, (1601, 1, 1))]
        {
            assert_eq!(civil(days), date);
        }
        assert_eq!(file_time(133_536_384_000_000_000).as_deref(), Some("2024-02-29T00:00:00Z"));
    }
}
