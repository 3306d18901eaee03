//! The style sheet of rich text: which paragraphs are headings, quotes or programs.

use std::collections::HashMap;

use crate::word::depth_of_style;

/// What paragraphs of a style are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    Plain,
    Heading(usize),
    Quote,
    Code,
}

/// The styles, by number.
#[derive(Debug, Default)]
pub struct Styles {
    blocks: HashMap<i32, Block>,
    /// How deep items of a style stand.
    depths: HashMap<i32, usize>,
    current: Option<i32>,
    outline: Option<usize>,
    name: String,
}

impl Styles {
    /// A control word of the sheet.
    pub fn word(&mut self, word: &str, number: Option<i32>) {
        match word {
            "s" => self.begin(number),
            // Of characters, tables and sections.
            "cs" | "ts" | "ds" => self.begin(None),
            "outlinelevel" => self.outline = number.and_then(|level| usize::try_from(level).ok()),
            _ => {}
        }
    }

    fn begin(&mut self, number: Option<i32>) {
        self.current = number;
        self.outline = None;
        self.name.clear();
    }

    /// Text of the sheet: a name, ended by a semicolon.
    pub fn name(&mut self, text: &str) {
        for c in text.chars() {
            if c != ';' {
                if self.name.len() < 100 {
                    self.name.push(c);
                }
                continue;
            }
            let name = self.name.trim().to_lowercase();
            let numbered = name.strip_prefix("heading ").and_then(|level| level.parse::<usize>().ok());
            let block = match (name.as_str(), numbered, self.outline) {
                ("title", _, _) => Block::Heading(1),
                (_, Some(level), _) => Block::Heading(level),
                (_, None, Some(level)) if level < 9 => Block::Heading(level + 1),
                ("quote" | "intense quote" | "quotations" | "block text", _, _) => Block::Quote,
                ("preformatted text" | "html preformatted" | "source code" | "plain text", _, _) => Block::Code,
                _ => Block::Plain,
            };
            let number = self.current.take().unwrap_or(0);
            self.blocks.insert(number, block);
            if let Some(depth) = depth_of_style(&name) {
                self.depths.insert(number, depth);
            }
            self.begin(None);
        }
    }

    /// How deep items of a style stand.
    pub fn item_depth(&self, style: i32) -> Option<usize> {
        self.depths.get(&style).copied()
    }

    /// What paragraphs of a style are.
    pub fn block(&self, style: i32) -> Block {
        self.blocks.get(&style).copied().unwrap_or(Block::Plain)
    }
}
