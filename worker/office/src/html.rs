//! HTML that is written: running text with its styles, and the blocks it stands in.

use crate::{ConvertError, Converted, Limits};

/// How a piece of text looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub bold: bool,
    pub italic: bool,
    pub strike: bool,
    pub sup: bool,
    pub sub: bool,
    /// Where it leads to.
    pub link: Option<String>,
}

/// Adds text with what means something in HTML escaped. Control characters, which no document shows, are left out.
pub fn escape(out: &mut String, text: &str) {
    // Most text has nothing to escape.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'&' | b'<' | b'>')) {
        out.push_str(text);
        return;
    }
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\0'..'\u{20}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{feff}' | '\u{fff9}'..='\u{fffc}' => {}
            c => out.push(c),
        }
    }
}

thread_local! {
    /// Bytes that may still be written in this conversion. One budget for all of it, as paragraphs, cells and notes are
    /// put together apart from each other, and what one link or list costs can be had many times.
    static LEFT: std::cell::Cell<usize> = const { std::cell::Cell::new(usize::MAX) };
}

/// How often text may be written before it is where it stays: into its paragraph, its cell and tables around it.
const COPIES: usize = 4;

/// Begins a conversion.
pub fn begin(limits: &Limits) {
    LEFT.set(limits.output.saturating_mul(COPIES));
}

/// Takes bytes from the budget; `false` if it does not have them.
fn spend(bytes: usize) -> bool {
    let left = LEFT.get().checked_sub(bytes);
    LEFT.set(left.unwrap_or(0));
    left.is_some()
}

/// Running text of one paragraph.
#[derive(Debug, Default)]
pub struct Inline {
    html: String,
    open: Style,
    /// Something besides white space is in it.
    has_text: bool,
}

impl Inline {
    /// Adds text in a style.
    pub fn push(&mut self, text: &str, style: &Style) {
        if text.is_empty() || !spend(text.len()) {
            return;
        }
        let is_blank = text.chars().all(char::is_whitespace);
        // White space has no look, and takes that of what is before it unless a link ends there.
        if *style != self.open && !(is_blank && style.link == self.open.link) {
            self.close();
            self.start(style);
        }
        self.has_text |= !is_blank;
        escape(&mut self.html, text);
    }

    /// Adds HTML that is complete in itself.
    pub fn push_html(&mut self, html: &str) {
        self.close();
        self.has_text = true;
        self.html.push_str(html);
    }

    /// Adds what is said of a picture in words, if anything is.
    pub fn picture(&mut self, words: Option<&str>) {
        let words = words.map(str::trim).unwrap_or_default();
        self.push(words, &Style { italic: true, ..Style::default() });
    }

    /// Adds a line break, unless nothing is before it.
    pub fn line_break(&mut self) {
        if self.has_text {
            self.close();
            self.html.push_str("<br>");
        }
    }

    fn start(&mut self, style: &Style) {
        if let Some(link) = &style.link
            && spend(link.len())
        {
            self.html.push_str("<a href=\"");
            let mut target = String::new();
            escape(&mut target, link);
            self.html.push_str(&target.replace('"', "%22"));
            self.html.push_str("\">");
        }
        for (is_on, tag) in marks(style) {
            if is_on {
                self.html.push_str(&format!("<{tag}>"));
            }
        }
        self.open = style.clone();
    }

    fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        for (is_on, tag) in marks(&open).into_iter().rev() {
            if is_on {
                self.html.push_str(&format!("</{tag}>"));
            }
        }
        if open.link.is_some() {
            self.html.push_str("</a>");
        }
    }

    /// Whether there is nothing to see.
    pub fn is_blank(&self) -> bool {
        !self.has_text
    }

    /// The HTML of it all.
    pub fn finish(mut self) -> String {
        self.close();
        while let Some(rest) = self.html.strip_suffix("<br>") {
            self.html.truncate(rest.len());
        }
        self.html
    }
}

fn marks(style: &Style) -> [(bool, &'static str); 5] {
    [(style.bold, "strong"), (style.italic, "em"), (style.strike, "del"), (style.sup, "sup"), (style.sub, "sub")]
}

/// A link's target, if it is one that a reader outside of the file can follow.
pub fn outside(target: &str) -> Option<String> {
    let target = target.trim();
    let (scheme, _) = target.split_once(':')?;
    let is_known = ["http", "https", "mailto", "ftp", "tel"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    is_known.then(|| target.to_owned())
}

/// The target of a field whose instruction is `HYPERLINK "https://..."`.
pub fn field_link(instruction: &str) -> Option<String> {
    let rest = instruction.trim_start().strip_prefix("HYPERLINK")?.trim_start();
    match rest.strip_prefix('"') {
        Some(quoted) => outside(quoted.split('"').next()?),
        None => outside(rest.split_whitespace().next()?),
    }
}

#[derive(Clone, Copy, Debug)]
struct OpenList {
    level: usize,
    ordered: bool,
    id: u64,
    /// Of its last item.
    number: Option<u64>,
}

/// Where an item of a list stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Item {
    /// From 0.
    pub level: usize,
    pub ordered: bool,
    /// Neighbours of different lists do not join.
    pub list: u64,
    /// Its number, where its list does not begin at one.
    pub number: Option<u64>,
}

/// One cell of a table, its inside as HTML.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub html: String,
    /// Columns it covers; those past the first are empty.
    pub columns: usize,
}

/// Blocks one after the other.
#[derive(Debug)]
pub struct Blocks {
    html: String,
    lists: Vec<OpenList>,
    is_preformatted: bool,
    limit: usize,
    is_full: bool,
}

impl Blocks {
    /// Nothing yet.
    pub fn new(limits: &Limits) -> Self {
        Self { html: String::new(), lists: Vec::new(), is_preformatted: false, limit: limits.output, is_full: false }
    }

    /// Whether the limit of output is reached; what comes then is not written.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    fn end_open(&mut self) {
        if std::mem::take(&mut self.is_preformatted) {
            self.html.push_str("</pre>\n");
        }
        while let Some(list) = self.lists.pop() {
            self.html.push_str(if list.ordered { "</li></ol>" } else { "</li></ul>" });
        }
        if !self.html.is_empty() && !self.html.ends_with('\n') {
            self.html.push('\n');
        }
    }

    fn has_room(&mut self, more: usize) -> bool {
        self.is_full |= self.html.len() + more > self.limit;
        !self.is_full
    }

    fn wrapped(&mut self, tag: &str, html: &str) {
        self.end_open();
        if self.has_room(html.len()) {
            self.html.push_str(&format!("<{tag}>{html}</{tag}>\n"));
        }
    }

    /// A heading of a level from 1; those below the sixth are of the sixth.
    pub fn heading(&mut self, level: usize, inline: Inline) {
        if !inline.is_blank() {
            self.wrapped(["h1", "h2", "h3", "h4", "h5", "h6"][level.clamp(1, 6) - 1], &inline.finish());
        }
    }

    /// What is said of a picture in words, if anything is.
    pub fn picture(&mut self, words: Option<&str>) {
        let mut inline = Inline::default();
        inline.picture(words);
        if !inline.is_blank() {
            self.paragraph(inline);
        }
    }

    /// A heading of plain text.
    pub fn heading_text(&mut self, level: usize, text: &str) {
        let mut inline = Inline::default();
        inline.push(text.trim(), &Style::default());
        self.heading(level, inline);
    }

    /// A paragraph; an empty one ends lists and nothing else.
    pub fn paragraph(&mut self, inline: Inline) {
        if inline.is_blank() {
            self.end_open();
        } else {
            self.wrapped("p", &inline.finish());
        }
    }

    /// A quoted paragraph.
    pub fn quote(&mut self, inline: Inline) {
        if !inline.is_blank() {
            self.wrapped("blockquote", &inline.finish());
        }
    }

    /// A line that keeps its spaces; neighbours are one block.
    pub fn preformatted(&mut self, line: &str) {
        if !self.has_room(line.len()) {
            return;
        }
        if self.is_preformatted {
            self.html.push('\n');
        } else {
            self.end_open();
            self.html.push_str("<pre>");
            self.is_preformatted = true;
        }
        for (n, line) in line.split('\n').enumerate() {
            if n > 0 {
                self.html.push('\n');
            }
            escape(&mut self.html, line);
        }
    }

    /// An item of a list.
    pub fn item(&mut self, item: Item, inline: Inline) {
        if inline.is_blank() {
            return;
        }
        let html = inline.finish();
        if !self.has_room(html.len()) {
            return;
        }
        if self.is_preformatted || self.lists.is_empty() {
            self.end_open();
        }
        while let Some(top) = self.lists.last() {
            let is_other = top.level == item.level && top.is_other_than(item);
            if top.level < item.level || (top.level == item.level && !is_other) {
                break;
            }
            self.html.push_str(if top.ordered { "</li></ol>" } else { "</li></ul>" });
            self.lists.pop();
            if is_other && self.lists.is_empty() {
                self.html.push('\n');
            }
        }
        if let Some(top) = self.lists.last_mut().filter(|top| top.level == item.level) {
            top.number = item.number;
            self.html.push_str("</li>");
        } else {
            let start = item.number.filter(|number| item.ordered && *number != 1);
            match (item.ordered, start) {
                (true, Some(number)) => self.html.push_str(&format!("<ol start=\"{number}\">")),
                (true, None) => self.html.push_str("<ol>"),
                (false, _) => self.html.push_str("<ul>"),
            }
            let Item { level, ordered, list: id, number } = item;
            self.lists.push(OpenList { level, ordered, id, number });
        }
        self.html.push_str("<li>");
        self.html.push_str(&html);
    }

    /// A table whose first row is its head. One of a single cell is what stands in it.
    pub fn table(&mut self, rows: &[Vec<Cell>]) {
        self.end_open();
        if let [row] = rows
            && let [cell] = row.as_slice()
        {
            if self.has_room(cell.html.len()) {
                self.html.push_str(&format!("<div>{}</div>\n", cell.html));
            }
            return;
        }
        if rows.iter().flatten().all(|cell| cell.html.is_empty()) {
            return;
        }
        let size = rows.iter().flatten().map(|cell| cell.html.len() + 16).sum();
        if !spend(size) || !self.has_room(size) {
            return;
        }
        self.html.push_str("<table>\n");
        for (n, row) in rows.iter().enumerate() {
            let tag = if n == 0 { "th" } else { "td" };
            self.html.push_str("<tr>");
            for cell in row {
                match cell.columns {
                    0 | 1 => self.html.push_str(&format!("<{tag}>")),
                    columns => self.html.push_str(&format!("<{tag} colspan=\"{}\">", columns.min(1000))),
                }
                self.html.push_str(&cell.html);
                self.html.push_str(&format!("</{tag}>"));
            }
            self.html.push_str("</tr>\n");
        }
        self.html.push_str("</table>\n");
    }

    /// Numbered notes at the end.
    pub fn notes(&mut self, notes: &[String]) {
        if notes.is_empty() {
            return;
        }
        self.end_open();
        if self.has_room(notes.iter().map(String::len).sum()) {
            self.html.push_str("<hr>\n<ol>\n");
            for note in notes {
                self.html.push_str(&format!("<li>{note}</li>\n"));
            }
            self.html.push_str("</ol>\n");
        }
    }

    /// HTML that is complete in itself.
    pub fn push_html(&mut self, html: &str) {
        self.end_open();
        if self.has_room(html.len()) {
            self.html.push_str(html);
        }
    }

    /// The HTML of it all.
    pub fn finish(mut self) -> String {
        self.end_open();
        self.html
    }

    /// What stands in a cell or a note: a single paragraph without its tags, else all of it.
    pub fn finish_inner(self) -> String {
        let html = self.finish();
        let html = html.trim();
        match html.strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>")) {
            Some(inner) if !inner.contains("<p>") => inner.to_owned(),
            _ => html.to_owned(),
        }
    }

    /// The whole document.
    ///
    /// # Errors
    /// When it is larger than the limit.
    pub fn document(self, limits: &Limits, converted: Converted) -> Result<Converted, ConvertError> {
        if self.is_full || LEFT.get() == 0 {
            return Err(ConvertError::too_large("bytes of text", limits.output));
        }
        Ok(Converted { html: document(converted.title.as_deref(), &self.finish()), ..converted })
    }
}

impl OpenList {
    /// Whether an item of the same level is of another list: of another kind, or one whose numbers begin anew.
    fn is_other_than(self, item: Item) -> bool {
        let begins_anew = item.ordered && self.number.zip(item.number).is_some_and(|(last, next)| next <= last);
        self.ordered != item.ordered || self.id != item.list || begins_anew
    }
}

/// A document with a body.
pub fn document(title: Option<&str>, body: &str) -> String {
    let mut html = String::with_capacity(body.len() + 128);
    html.push_str("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\">");
    if let Some(title) = title {
        html.push_str("<title>");
        escape(&mut html, title);
        html.push_str("</title>");
    }
    html.push_str("</head><body>\n");
    html.push_str(body);
    html.push_str("</body></html>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inline(text: &str) -> Inline {
        let mut inline = Inline::default();
        inline.push(text, &Style::default());
        inline
    }

    #[test]
    fn lists_nest_by_their_levels() {
        let mut blocks = Blocks::new(&Limits::default());
        let item = |level, ordered, number| Item { level, ordered, list: u64::from(ordered), number };
        blocks.item(item(0, false, None), inline("a"));
        blocks.item(item(1, true, Some(3)), inline("b"));
        blocks.item(item(1, true, Some(4)), inline("c"));
        blocks.item(item(0, false, None), inline("d"));
        blocks.paragraph(inline("e"));
        let expected = "<ul><li>a<ol start=\"3\"><li>b</li><li>c</li></ol></li><li>d</li></ul>\n<p>e</p>\n";
        assert_eq!(blocks.finish(), expected);
    }

    #[test]
    fn a_list_whose_numbers_begin_anew_is_another_one() {
        let mut blocks = Blocks::new(&Limits::default());
        for number in [1, 2, 1, 2, 4] {
            let item = Item { level: 0, ordered: true, list: 1, number: Some(number) };
            blocks.item(item, inline("a"));
        }
        let (two, three) = ("<ol><li>a</li><li>a</li></ol>\n", "<ol><li>a</li><li>a</li><li>a</li></ol>\n");
        assert_eq!(blocks.finish(), format!("{two}{three}"));
    }

    #[test]
    fn neighbours_of_one_style_are_one_span() {
        let bold = Style { bold: true, ..Style::default() };
        let mut text = Inline::default();
        text.push("a", &bold);
        text.push(" ", &Style::default());
        text.push("<b>", &bold);
        assert_eq!(text.finish(), "<strong>a &lt;b&gt;</strong>");
    }
}
