//! Rich text. Kept and left out is the same as of Word's documents. Numbers of list items are those that the file has
//! written out beside them for readers that know no lists.

mod flow;
mod scan;
mod styles;

use std::collections::HashMap;

use encoding_rs::{Encoding, WINDOWS_1252};

use flow::Flow;
use scan::{Scanner, Token};
use styles::Styles;

use super::distinct;
use crate::html::{Style, field_link};
use crate::text::code_page;
use crate::{ConvertError, Converted, Limits};

/// Makes HTML of a document.
///
/// # Errors
/// As [`ConvertError`] says.
pub fn convert(bytes: &[u8], limits: &Limits) -> Result<Converted, ConvertError> {
    let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    if !start.starts_with(b"{\\rtf") {
        return Err(ConvertError::broken("it does not begin as rich text"));
    }
    let mut reader = Reader::new(limits);
    reader.read(start)?;
    reader.finish()
}

/// Notes of a document.
const MAX_NOTES: usize = 50_000;

/// Where text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Text,
    Nowhere,
    Fonts,
    StyleNames,
    /// The instruction of a field.
    Instruction,
    /// The number or sign of an item.
    Marker,
    Title,
    Author,
}

/// What a group begins that ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Header,
    Footer,
    Note,
    Field,
    TextBox,
    Created,
    Modified,
}

/// What holds until the group ends.
#[derive(Clone, Debug)]
struct GroupState {
    target: Target,
    begun: Option<Begun>,
    style: Style,
    is_hidden: bool,
    encoding: &'static Encoding,
    /// Characters after `\u` that stand for it in older readers.
    fallback: usize,
    paragraph: Paragraph,
}

/// What is said of a paragraph.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paragraph {
    style: i32,
    outline: Option<usize>,
    list: i32,
    level: usize,
    in_table: bool,
}

struct Reader<'a> {
    limits: &'a Limits,
    state: GroupState,
    stack: Vec<GroupState>,
    flows: Vec<Flow>,
    styles: Styles,
    fonts: HashMap<i32, &'static Encoding>,
    font: i32,
    encoding: &'static Encoding,
    fields: Vec<String>,
    headers: Vec<String>,
    footers: Vec<String>,
    notes: Vec<String>,
    /// Bytes not decoded yet.
    pending: Vec<u8>,
    /// The first half of a character.
    half: Option<u16>,
    /// Characters still to skip after `\u`.
    skip: usize,
    /// The group began with `\*`: what is not known in it is skipped.
    is_optional: bool,
    title: String,
    author: String,
    pages: Option<u32>,
    words: Option<u64>,
    /// Numbers of the date that is read.
    date: [i32; 5],
    created: Option<String>,
    modified: Option<String>,
}

impl<'a> Reader<'a> {
    fn new(limits: &'a Limits) -> Self {
        let state = GroupState {
            target: Target::Text,
            begun: None,
            style: Style::default(),
            is_hidden: false,
            encoding: WINDOWS_1252,
            fallback: 1,
            paragraph: Paragraph::default(),
        };
        Self {
            limits,
            state,
            stack: Vec::new(),
            flows: vec![Flow::new(limits)],
            styles: Styles::default(),
            fonts: HashMap::new(),
            font: 0,
            encoding: WINDOWS_1252,
            fields: Vec::new(),
            headers: Vec::new(),
            footers: Vec::new(),
            notes: Vec::new(),
            pending: Vec::new(),
            half: None,
            skip: 0,
            is_optional: false,
            title: String::new(),
            author: String::new(),
            pages: None,
            words: None,
            date: [0; 5],
            created: None,
            modified: None,
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), ConvertError> {
        let mut scanner = Scanner::new(bytes);
        let mut is_ended = false;
        while let Some(token) = scanner.next_token() {
            match token {
                Token::Open => {
                    self.decode();
                    if self.stack.len() >= self.limits.depth {
                        return Err(ConvertError::TooDeep);
                    }
                    let inner = GroupState { begun: None, ..self.state.clone() };
                    self.stack.push(std::mem::replace(&mut self.state, inner));
                    self.is_optional = false;
                    self.skip = 0;
                }
                Token::Close => {
                    self.decode();
                    self.skip = 0;
                    self.end_group();
                    match self.stack.pop() {
                        Some(outer) => self.state = outer,
                        None => break,
                    }
                    if self.stack.is_empty() {
                        is_ended = true;
                        break;
                    }
                }
                Token::Byte(_) if self.skip > 0 => self.skip -= 1,
                Token::Byte(byte) => self.pending.push(byte),
                Token::Word(word, number) => {
                    if word == "u" {
                        self.character(number.unwrap_or(0));
                        continue;
                    }
                    self.decode();
                    self.skip = 0;
                    if word == "bin" {
                        scanner.skip(usize::try_from(number.unwrap_or(0)).unwrap_or(0));
                        continue;
                    }
                    self.word(word, number);
                }
                Token::Symbol(symbol) => {
                    self.decode();
                    self.symbol(symbol);
                }
            }
            if self.notes.len() > MAX_NOTES {
                return Err(ConvertError::too_large("notes", MAX_NOTES));
            }
            if self.flows.first().is_some_and(Flow::is_full) {
                return Err(ConvertError::too_large("bytes of text", self.limits.output));
            }
        }
        self.decode();
        if !is_ended {
            return Err(ConvertError::broken("it is cut off"));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Converted, ConvertError> {
        while self.flows.len() > 1 {
            self.end_flow(Begun::Note);
        }
        let mut body = crate::html::Blocks::new(self.limits);
        for header in distinct(std::mem::take(&mut self.headers)) {
            body.push_html(&header);
        }
        if let Some(flow) = self.flows.pop() {
            body.push_html(&flow.finish(&self.state.paragraph, &self.styles));
        }
        body.notes(&self.notes);
        for footer in distinct(std::mem::take(&mut self.footers)) {
            body.push_html(&footer);
        }
        let said = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let converted = Converted {
            title: said(self.title),
            author: said(self.author),
            created: self.created,
            modified: self.modified,
            pages: self.pages,
            words: self.words,
            ..Converted::default()
        };
        body.document(self.limits, converted)
    }

    // ---------------------------------------------------------------- text

    /// Writes the bytes that wait.
    fn decode(&mut self) {
        if !self.pending.is_empty() {
            let bytes = std::mem::take(&mut self.pending);
            self.half = None;
            let text = self.state.encoding.decode_without_bom_handling(&bytes).0.into_owned();
            self.text(&text);
            self.pending = bytes;
            self.pending.clear();
        }
    }

    /// `\u`: half a character or a whole one.
    fn character(&mut self, number: i32) {
        self.decode();
        let unit = number.rem_euclid(0x1_0000);
        let unit = u16::try_from(unit).unwrap_or(0);
        let text = match self.half.take() {
            Some(high) => String::from_utf16(&[high, unit]).unwrap_or_default(),
            None if (0xd800..0xdc00).contains(&unit) => {
                self.half = Some(unit);
                String::new()
            }
            None => char::from_u32(u32::from(unit)).map(String::from).unwrap_or_default(),
        };
        self.text(&text);
        self.skip = self.state.fallback;
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.state.target {
            Target::Nowhere | Target::Fonts => {}
            Target::StyleNames => self.styles.name(text),
            Target::Instruction => {
                if let Some(field) = self.fields.last_mut() {
                    field.push_str(text);
                }
            }
            Target::Marker => {
                if let Some(flow) = self.flows.last_mut() {
                    flow.marker(text);
                }
            }
            Target::Title => self.title.push_str(text),
            Target::Author => self.author.push_str(text),
            Target::Text if self.state.is_hidden => {}
            Target::Text => {
                if let Some(flow) = self.flows.last_mut() {
                    flow.text(text, &self.state.style, &self.state.paragraph, &self.styles);
                }
            }
        }
    }

    fn symbol(&mut self, symbol: u8) {
        match symbol {
            b'~' => self.text("\u{a0}"),
            b'_' => self.text("\u{2011}"),
            b'*' => self.is_optional = true,
            b'\n' | b'\r' => self.paragraph_end(),
            _ => {}
        }
    }

    // ---------------------------------------------------------------- groups

    fn end_group(&mut self) {
        match self.state.begun {
            Some(Begun::Field) => {
                self.fields.pop();
            }
            Some(Begun::Created) => self.created = self.date(),
            Some(Begun::Modified) => self.modified = self.date(),
            Some(begun) => self.end_flow(begun),
            None => {}
        }
    }

    /// The date that was read.
    fn date(&self) -> Option<String> {
        let [year, month, day, hour, minute] = self.date;
        (year > 0).then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:00"))
    }

    fn begin_flow(&mut self, begun: Begun) {
        self.state.target = Target::Text;
        self.state.begun = Some(begun);
        self.state.paragraph = Paragraph::default();
        self.state.style = Style::default();
        self.flows.push(Flow::new(self.limits));
    }

    fn end_flow(&mut self, begun: Begun) {
        // The text itself is not ended by a group within it.
        if self.flows.len() < 2 {
            return;
        }
        let Some(flow) = self.flows.pop() else { return };
        let html = flow.finish(&self.state.paragraph, &self.styles);
        match begun {
            Begun::Header => self.headers.push(html),
            Begun::Footer => self.footers.push(html),
            Begun::TextBox | Begun::Field | Begun::Created | Begun::Modified => {
                if let Some(around) = self.flows.last_mut() {
                    around.aside(html);
                }
            }
            Begun::Note => {
                let html = html.trim();
                let inner = html.strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>"));
                self.notes.push(inner.filter(|inner| !inner.contains("<p>")).unwrap_or(html).trim().to_owned());
                if let Some(around) = self.flows.last_mut() {
                    around.note(self.notes.len());
                }
            }
        }
    }

    /// A group that holds something else than text.
    fn begins_target(&mut self, word: &str) -> bool {
        match word {
            "fonttbl" => self.state.target = Target::Fonts,
            "stylesheet" => self.state.target = Target::StyleNames,
            "fldinst" => self.state.target = Target::Instruction,
            "listtext" | "pntext" => self.state.target = Target::Marker,
            "title" => self.state.target = Target::Title,
            "author" => self.state.target = Target::Author,
            "header" | "headerl" | "headerr" | "headerf" => self.begin_flow(Begun::Header),
            "footer" | "footerl" | "footerr" | "footerf" => self.begin_flow(Begun::Footer),
            "footnote" => self.begin_flow(Begun::Note),
            "shptxt" => self.begin_flow(Begun::TextBox),
            "field" => {
                self.state.begun = Some(Begun::Field);
                self.fields.push(String::new());
            }
            "fldrslt" => {
                self.state.target = Target::Text;
                let target = self.fields.last().and_then(|instruction| field_link(instruction));
                self.state.style.link = target.or_else(|| self.state.style.link.take());
            }
            "shpinst" | "shp" | "info" | "ud" => {}
            "colortbl" | "pict" | "objdata" | "objclass" | "nonshppict" | "shprslt" | "sp" | "xe" | "tc" | "pn"
            | "listtable" | "listoverridetable" | "revtbl" | "filetbl" | "operator" | "company" | "doccomm"
            | "keywords" | "subject" | "category" | "manager" | "hlinkbase" | "annotation" | "atnid" | "atnauthor"
            | "cs" | "formfield" | "rsidtbl" | "generator" | "themedata" | "nesttableprops" | "nonesttables"
            | "ftnsep" | "ftnsepc" | "aftnsep" | "ftncn" | "userprops" | "bkmkstart" | "bkmkend" => {
                self.state.target = Target::Nowhere;
            }
            _ => return false,
        }
        true
    }

    // ---------------------------------------------------------------- words

    fn word(&mut self, word: &str, number: Option<i32>) {
        let is_optional = std::mem::take(&mut self.is_optional);
        if self.state.target == Target::Nowhere {
            return;
        }
        // Within a style sheet `\cs` names a style of characters.
        if self.state.target == Target::StyleNames {
            self.styles.word(word, number);
            return;
        }
        if self.state.target == Target::Fonts {
            self.font_word(word, number);
            return;
        }
        if word != "cs" || is_optional {
            let known = self.begins_target(word);
            if known {
                return;
            }
            if is_optional {
                self.state.target = Target::Nowhere;
                return;
            }
        }
        let is_on = number != Some(0);
        let state = &mut self.state;
        let paragraph = &mut state.paragraph;
        match word {
            "b" => state.style.bold = is_on,
            "i" => state.style.italic = is_on,
            "strike" | "striked" => state.style.strike = is_on,
            "v" | "deleted" => state.is_hidden = is_on,
            "super" => (state.style.sup, state.style.sub) = (is_on, false),
            "sub" => (state.style.sup, state.style.sub) = (false, is_on),
            "up" => state.style.sup = number.unwrap_or(6) > 0,
            "dn" => state.style.sub = number.unwrap_or(6) > 0,
            "nosupersub" => (state.style.sup, state.style.sub) = (false, false),
            "plain" => {
                state.style = Style { link: state.style.link.take(), ..Style::default() };
                state.is_hidden = false;
                state.encoding = self.encoding;
            }
            "f" => {
                self.font = number.unwrap_or(0);
                state.encoding = self.fonts.get(&self.font).copied().unwrap_or(self.encoding);
            }
            "uc" => state.fallback = usize::try_from(number.unwrap_or(1)).unwrap_or(1).min(8),
            "ansicpg" => self.default_page(number),
            "mac" => self.default_page(Some(10000)),
            "pard" => *paragraph = Paragraph::default(),
            "s" => paragraph.style = number.unwrap_or(0),
            "outlinelevel" => paragraph.outline = number.and_then(|level| usize::try_from(level).ok()),
            "ls" => paragraph.list = number.unwrap_or(0),
            "ilvl" => paragraph.level = usize::try_from(number.unwrap_or(0)).unwrap_or(0).min(8),
            "intbl" => paragraph.in_table = true,
            "par" | "sect" => self.paragraph_end(),
            "cell" | "nestcell" | "row" | "nestrow" | "line" => self.place(word),
            "page" | "tab" | "emspace" | "enspace" | "qmspace" => self.text(" "),
            "nofpages" => self.pages = number.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0),
            "nofwords" => self.words = number.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0),
            "creatim" | "revtim" | "yr" | "mo" | "dy" | "hr" | "min" => self.date_word(word, number),
            _ => self.text(match word {
                "emdash" => "—",
                "endash" => "–",
                "lquote" => "‘",
                "rquote" => "’",
                "ldblquote" => "“",
                "rdblquote" => "”",
                "bullet" => "•",
                _ => "",
            }),
        }
    }

    fn paragraph_end(&mut self) {
        if self.state.target == Target::Text
            && let Some(flow) = self.flows.last_mut()
        {
            flow.end_paragraph(&self.state.paragraph, &self.styles);
        }
    }

    fn place(&mut self, word: &str) {
        let Some(flow) = self.flows.last_mut().filter(|_| self.state.target == Target::Text) else { return };
        match word {
            "cell" => flow.end_cell(&self.state.paragraph, &self.styles),
            "row" => flow.end_row(),
            "nestcell" => flow.text(" ", &Style::default(), &self.state.paragraph, &self.styles),
            _ => flow.line_break(),
        }
    }

    fn default_page(&mut self, number: Option<i32>) {
        self.encoding = code_page(number.and_then(|page| u32::try_from(page).ok()).unwrap_or(1252));
        self.state.encoding = self.encoding;
        // It stands at the beginning; deeper in, it is nobody's.
        if self.stack.len() > 2 {
            return;
        }
        for outer in &mut self.stack {
            outer.encoding = self.encoding;
        }
    }

    fn font_word(&mut self, word: &str, number: Option<i32>) {
        match (word, number) {
            ("f", Some(number)) => self.font = number,
            ("fcharset", Some(charset)) => {
                let page = match charset {
                    77 => 10000,
                    128 => 932,
                    129 => 949,
                    134 => 936,
                    136 => 950,
                    161 => 1253,
                    162 => 1254,
                    163 => 1258,
                    177 => 1255,
                    178 => 1256,
                    186 => 1257,
                    204 => 1251,
                    222 => 874,
                    238 => 1250,
                    0 => 1252,
                    _ => return,
                };
                // The first character set of all is that of the document.
                let encoding = if page == 1252 { self.encoding } else { code_page(page) };
                self.fonts.insert(self.font, encoding);
            }
            _ => {}
        }
    }

    fn date_word(&mut self, word: &str, number: Option<i32>) {
        let place = match word {
            "creatim" | "revtim" => {
                self.state.begun = Some(if word == "creatim" { Begun::Created } else { Begun::Modified });
                self.date = [0; 5];
                return;
            }
            "yr" => 0,
            "mo" => 1,
            "dy" => 2,
            "hr" => 3,
            _ => 4,
        };
        if let Some(part) = self.date.get_mut(place) {
            *part = number.unwrap_or(0);
        }
    }
}
