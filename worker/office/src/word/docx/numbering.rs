//! The lists of a document: their kinds by level, and the numbers reached so far.

use std::borrow::Cow;
use std::collections::HashMap;

use super::styles::MAX_ID;
use crate::xml::Element;

/// Levels of a list.
const LEVELS: usize = 9;

#[derive(Clone, Debug)]
struct Level {
    format: String,
    start: u64,
    /// `%1.%2` with the numbers of its levels.
    text: String,
    /// The style whose paragraphs are at this level.
    style: Option<String>,
}

impl Default for Level {
    fn default() -> Self {
        Self { format: "decimal".to_owned(), start: 1, text: String::new(), style: None }
    }
}

#[derive(Debug)]
struct List {
    definition: String,
    /// Numbers that this list begins with anew, by level.
    starts: [Option<u64>; LEVELS],
    /// Levels that are another kind in this list than in its definition.
    levels: [Option<Level>; LEVELS],
    is_begun: bool,
}

/// All lists.
#[derive(Debug, Default)]
pub struct Numbering {
    definitions: HashMap<String, Vec<Level>>,
    lists: HashMap<String, List>,
    /// Numbers reached, by definition: lists of one definition go on with each other's numbers.
    reached: HashMap<String, [u64; LEVELS]>,
}

/// The place of a paragraph in its list.
#[derive(Debug)]
pub struct ListItem {
    pub ordered: bool,
    pub number: u64,
    /// As it is shown.
    pub text: String,
    /// Tells lists apart.
    pub list: u64,
}

impl Numbering {
    /// Reads them.
    pub fn read(root: Element<'_>) -> Self {
        let mut out = Self::default();
        let mut styled: HashMap<String, Vec<Level>> = HashMap::new();
        let mut linked = Vec::new();
        for element in root.children().filter(|element| element.name() == "abstractNum") {
            let Some(id) = element.attr("abstractNumId").map(|id| id.into_owned()) else { continue };
            let mut levels = vec![Level::default(); LEVELS];
            for level in element.children().filter(|level| level.name() == "lvl") {
                if let Some(place) = level.number::<usize>("ilvl").and_then(|n| levels.get_mut(n)) {
                    *place = read_level(level);
                }
            }
            if let Some(style) = element.child("styleLink").and_then(|e| e.attr("val")) {
                styled.insert(style.into_owned(), levels.clone());
            }
            if let Some(style) = element.child("numStyleLink").and_then(|e| e.attr("val")) {
                linked.push((id, style.into_owned()));
            } else {
                out.definitions.insert(id, levels);
            }
        }
        for (id, style) in linked {
            out.definitions.insert(id, styled.get(&style).cloned().unwrap_or_else(|| vec![Level::default(); LEVELS]));
        }
        for element in root.children().filter(|element| element.name() == "num") {
            let Some(id) = element.attr("numId").map(|id| id.into_owned()) else { continue };
            // It is looked up for every paragraph.
            let is_short = |id: &Cow<'_, str>| id.len() <= MAX_ID;
            let definition =
                element.child("abstractNumId").and_then(|e| e.attr("val")).filter(is_short).unwrap_or_default();
            let mut starts = [None; LEVELS];
            let mut levels = [const { None }; LEVELS];
            for over in element.children().filter(|e| e.name() == "lvlOverride") {
                let Some(n) = over.number::<usize>("ilvl").filter(|n| *n < LEVELS) else { continue };
                starts[n] = over.child("startOverride").and_then(|e| e.number("val"));
                levels[n] = over.child("lvl").map(read_level);
            }
            out.lists.insert(id, List { definition: definition.into_owned(), starts, levels, is_begun: false });
        }
        out
    }

    /// The level of a list that paragraphs of a style are at.
    pub fn level_of(&self, id: &str, style: &str) -> Option<usize> {
        let list = self.lists.get(id)?;
        let levels = self.definitions.get(&list.definition)?;
        levels.iter().position(|level| level.style.as_deref() == Some(style))
    }

    /// The place of the next paragraph of a list at a level.
    pub fn next(&mut self, id: &str, level: usize) -> Option<ListItem> {
        let list = self.lists.get_mut(id)?;
        let levels = self.definitions.get(&list.definition)?;
        let own = &list.levels;
        let of = |n: usize| own.get(n).and_then(Option::as_ref).or_else(|| levels.get(n));
        let here = of(level)?;
        let before = |levels: &[Level], n: usize| levels.get(n).map_or(0, |level| level.start.saturating_sub(1));
        let reached =
            self.reached.entry(list.definition.clone()).or_insert_with(|| std::array::from_fn(|n| before(levels, n)));
        if !std::mem::replace(&mut list.is_begun, true) {
            for (number, start) in reached.iter_mut().zip(list.starts) {
                if let Some(start) = start {
                    *number = start.saturating_sub(1);
                }
            }
        }
        for (n, number) in reached.iter_mut().enumerate() {
            if n == level {
                *number = number.saturating_add(1);
            } else if n > level {
                *number = before(levels, n);
            }
        }
        let shown = |n: usize| {
            let number = reached.get(n).copied().unwrap_or(1).max(1);
            of(n).map_or_else(|| number.to_string(), |level| written(&level.format, number))
        };
        let mut text = here.text.clone();
        for n in 0..LEVELS {
            let place = format!("%{}", n + 1);
            if text.contains(&place) {
                text = text.replace(&place, &shown(n));
            }
        }
        let number = reached.get(level).copied().unwrap_or(1);
        let ordered = !matches!(here.format.as_str(), "bullet" | "none");
        Some(ListItem { ordered, number, text, list: list.definition.parse().unwrap_or(0) })
    }
}

fn read_level(level: Element<'_>) -> Level {
    let value = |name| level.child(name).and_then(|e| e.attr("val")).map(|v| v.into_owned());
    Level {
        format: value("numFmt").unwrap_or_else(|| "decimal".to_owned()),
        start: value("start").and_then(|start| start.parse().ok()).unwrap_or(1),
        text: value("lvlText").unwrap_or_default().chars().take(64).collect(),
        style: value("pStyle").filter(|style| style.len() <= MAX_ID),
    }
}

/// A number as letters, Roman or plain digits.
pub fn written(format: &str, number: u64) -> String {
    match format {
        "upperRoman" => roman(number),
        "lowerRoman" => roman(number).to_lowercase(),
        "upperLetter" => letters(number),
        "lowerLetter" => letters(number).to_lowercase(),
        "decimalZero" => format!("{number:02}"),
        _ => number.to_string(),
    }
}

fn letters(number: u64) -> String {
    let letter = char::from(b'A' + u8::try_from((number.max(1) - 1) % 26).unwrap_or(0));
    let times = (number.max(1) - 1) / 26 + 1;
    String::from(letter).repeat(usize::try_from(times).unwrap_or(1).min(8))
}

fn roman(number: u64) -> String {
    if number > 3999 {
        return number.to_string();
    }
    let steps = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut left = number;
    let mut out = String::new();
    for (value, sign) in steps {
        while left >= value {
            out.push_str(sign);
            left -= value;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_their_formats() {
        for (format, number, text) in
            [("upperRoman", 1994, "MCMXCIV"), ("lowerLetter", 28, "bb"), ("decimal", 7, "7"), ("decimalZero", 7, "07")]
        {
            assert_eq!(written(format, number), text);
        }
    }
}
