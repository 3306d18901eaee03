//! The tree as GitHub-flavoured markdown.
//!
//! One walk over the kept nodes, without recursion: open elements are a stack of what to do at their end. Running text
//! collects in `line` with its open spans; block boundaries flush it. Links and images come out absolute.

mod code;
mod inline;
mod spans;
mod table;

use html5ever::local_name;

use super::address::Addresses;
use super::measure::is_title;
use super::tree::{Dom, Tag};

/// Most markdown made of a page, bytes; the rest is left out.
const MAX_OUTPUT: usize = 32 << 20;
/// Lists and quotes indented at most this deep; deeper ones continue at this level.
const MAX_PREFIXES: usize = 24;

/// What to convert and how.
pub struct Job<'a> {
    /// The page.
    pub dom: &'a Dom,
    /// Base of its references.
    pub addresses: &'a Addresses,
    /// Subtree roots to leave out, by node.
    pub dropped: &'a [bool],
    /// Leave `data:` images out, keeping their alternative text.
    pub remove_base64_images: bool,
}

/// Converts the subtrees at `roots`, in order. `true` if the output limit cut it.
pub fn convert(job: &Job<'_>, roots: &[usize]) -> (String, bool) {
    let mut w = Writer::new(job);
    for &root in roots {
        w.walk(root);
    }
    w.flush();
    let mut out = w.out;
    out.truncate(out.trim_end().len());
    if !out.is_empty() {
        out.push('\n');
    }
    (out, w.full)
}

/// A wrapped stretch of the current line.
#[derive(Debug)]
struct Span {
    kind: SpanKind,
    /// Where in `line` it starts.
    start: usize,
}

#[derive(Debug)]
enum SpanKind {
    Strong,
    Em,
    Del,
    Code,
    Small(&'static str),
    Link {
        url: Option<String>,
        /// A block within the link has carried it already.
        used: bool,
        /// The link has text besides images.
        worded: bool,
        anchor: bool,
    },
    /// Nothing to wrap; keeps the stack even.
    None,
}

/// What every line inside a quote or list item starts with.
#[derive(Debug)]
enum Prefix {
    Quote,
    Item { marker: String, used: bool },
}

#[derive(Debug)]
struct List {
    ordered: bool,
    next: i64,
    /// Whether items add a level of indentation (not past the limit).
    items: u32,
}

/// What to do where an element ends.
#[derive(Debug)]
enum AtEnd {
    Block,
    Heading,
    Item {
        prefixed: bool,
    },
    List {
        bare: bool,
    },
    Quote {
        prefixed: bool,
    },
    Span,
    /// A `dt`.
    Term,
    Table,
    Cell(usize),
    CellBlock,
}

enum Step {
    Into,
    Closing(AtEnd),
    Over,
}

/// Elements that markdown shows nothing of.
fn is_left_out(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::Style
            | Tag::Template
            | Tag::Head
            | Tag::Svg
            | Tag::Iframe
            | Tag::Canvas
            | Tag::Audio
            | Tag::Video
            | Tag::Embed
            | Tag::Select
            | Tag::Textarea
            | Tag::Title
            | Tag::Meta
            | Tag::Link
            | Tag::Base
            | Tag::Source
            | Tag::Track
            | Tag::Col
            | Tag::Colgroup
            | Tag::Area
            | Tag::Frame
            | Tag::Foreign
            | Tag::Wbr
    )
}

struct Writer<'a> {
    job: &'a Job<'a>,
    dom: &'a Dom,
    layouts: Option<table::Layouts>,
    out: String,
    line: String,
    spans: Vec<Span>,
    prefixes: Vec<Prefix>,
    lists: Vec<List>,
    grids: Vec<table::Grid>,
    in_cell: bool,
    heading: u8,
    /// Line breaks owed before the next block: 0, 1 or 2.
    pending: u8,
    /// Prefixes that the last written line and the next one share.
    shared: usize,
    /// End of the last closed `**` or `~~` in `line`, to join neighbours.
    last_mark: Option<(usize, &'static str)>,
    strong: u32,
    em: u32,
    code: u32,
    full: bool,
}

impl<'a> Writer<'a> {
    fn new(job: &'a Job<'a>) -> Self {
        Writer {
            job,
            dom: job.dom,
            layouts: None,
            out: String::with_capacity(4096),
            line: String::with_capacity(512),
            spans: Vec::new(),
            prefixes: Vec::new(),
            lists: Vec::new(),
            grids: Vec::new(),
            in_cell: false,
            heading: 0,
            pending: 0,
            shared: 0,
            last_mark: None,
            strong: 0,
            em: 0,
            code: 0,
            full: false,
        }
    }

    fn walk(&mut self, root: usize) {
        let dom = self.dom;
        let end = dom.end(root);
        let mut open: Vec<(usize, AtEnd)> = Vec::new();
        let mut i = root;
        loop {
            while let Some((_, what)) = open.pop_if(|(e, _)| *e <= i) {
                self.close(what);
            }
            if i >= end || self.full {
                break;
            }
            if self.job.dropped[i] {
                i = dom.end(i);
                continue;
            }
            match dom.tag(i) {
                Tag::Text => {
                    self.text(dom.text(i));
                    i += 1;
                }
                Tag::Comment | Tag::Document => i += 1,
                tag => match self.open(i, tag) {
                    Step::Into => i += 1,
                    Step::Over => i = dom.end(i),
                    Step::Closing(what) => {
                        open.push((dom.end(i), what));
                        i += 1;
                    }
                },
            }
        }
        while let Some((_, what)) = open.pop() {
            self.close(what);
        }
        self.flush();
    }

    fn text(&mut self, text: &str) {
        if self.code > 0 {
            inline::push_raw(&mut self.line, text);
        } else {
            inline::push_text(&mut self.line, text);
        }
    }

    // ---------------------------------------------------------------- elements

    fn open(&mut self, i: usize, tag: Tag) -> Step {
        if let Some(step) = self.open_span(i, tag) {
            return step;
        }
        match tag {
            Tag::Script => {
                self.script(i);
                Step::Over
            }
            _ if is_left_out(tag) => Step::Over,
            Tag::Button if self.dom.class(i).to_ascii_lowercase().contains("copy") => Step::Over,
            Tag::Math => {
                self.math_element(i);
                Step::Over
            }
            Tag::Br => {
                self.line_break();
                Step::Over
            }
            Tag::Hr => {
                self.rule();
                Step::Over
            }
            Tag::Img => {
                self.image(i);
                Step::Over
            }
            Tag::Input => {
                self.checkbox(i);
                Step::Over
            }
            Tag::A => self.link(i),
            Tag::Pre => {
                self.pre(i);
                Step::Over
            }
            Tag::Div if code::is_drawn(self.dom, i) => {
                self.pre(i);
                Step::Over
            }
            Tag::Table if code::is_file(self.dom, i) => {
                self.pre(i);
                Step::Over
            }
            Tag::Table => self.table(i),
            Tag::Tr if !self.grids.is_empty() && !self.in_cell => {
                let in_head = self.dom.tag(self.dom.parent(i)) == Tag::Thead;
                self.grids.last_mut().expect("checked above").row(in_head);
                Step::Into
            }
            Tag::Td | Tag::Th => self.table_cell(i),
            Tag::Ul | Tag::Ol | Tag::Menu => self.list(i, tag),
            Tag::Li => self.item(i),
            Tag::Blockquote if !self.in_cell => {
                self.flush();
                let prefixed = self.prefixes.len() < MAX_PREFIXES;
                if prefixed {
                    self.prefixes.push(Prefix::Quote);
                }
                Step::Closing(AtEnd::Quote { prefixed })
            }
            Tag::Dt => {
                self.flush();
                self.span(SpanKind::Strong);
                self.strong += 1;
                Step::Closing(AtEnd::Term)
            }
            _ if tag.is_block() => {
                self.flush();
                // Doxygen's titles are no headings by their tag.
                let level = tag.heading_level().or_else(|| (tag == Tag::Div && is_title(self.dom, i)).then_some(1));
                if let Some(level) = level
                    && !self.in_cell
                {
                    self.heading = level;
                    return Step::Closing(AtEnd::Heading);
                }
                Step::Closing(AtEnd::Block)
            }
            Tag::Other if self.is_blockish(i) => {
                self.flush();
                Step::Closing(AtEnd::Block)
            }
            _ => Step::Into,
        }
    }

    /// Mathematics in the form that pages bring for their own scripts.
    fn script(&mut self, i: usize) {
        let kind = self.dom.attr(i, &local_name!("type")).unwrap_or("");
        if kind.starts_with("math/tex") {
            self.math(&self.dom.text_of(i), kind.contains("display"));
        }
    }

    fn rule(&mut self) {
        self.flush();
        if !self.in_cell {
            self.begin_block();
            self.out.push_str("---");
            self.end_block(2);
        }
    }

    /// Whether an unknown element stands apart: it is a custom element among blocks rather than within text.
    fn is_blockish(&self, i: usize) -> bool {
        let custom = self.dom.element(i).is_some_and(|e| e.name.local.contains('-'));
        custom
            && self
                .dom
                .children(self.dom.parent(i))
                .take(64)
                .all(|c| self.dom.tag(c) != Tag::Text || self.dom.text(c).trim().is_empty())
    }

    fn close(&mut self, what: AtEnd) {
        match what {
            AtEnd::Block => {
                self.flush();
            }
            AtEnd::CellBlock => self.flush(),
            AtEnd::Heading => {
                self.flush();
                self.heading = 0;
            }
            AtEnd::Span => self.close_span(),
            AtEnd::Term => {
                self.close_span();
                self.flush();
            }
            AtEnd::Quote { prefixed } => {
                self.flush();
                if prefixed {
                    self.pop_prefix();
                }
                self.owe(2);
            }
            AtEnd::List { bare } => {
                self.flush();
                self.lists.pop();
                if bare {
                    self.pop_prefix();
                }
                let nested = !self.lists.is_empty();
                self.pending = if nested && self.pending < 2 { 1 } else { 2 };
            }
            AtEnd::Item { prefixed } => {
                self.flush();
                if prefixed {
                    self.pop_prefix();
                }
            }
            AtEnd::Cell(i) => {
                let text = std::mem::take(&mut self.line);
                self.in_cell = false;
                self.last_mark = None;
                if let Some(grid) = self.grids.last_mut() {
                    grid.cell(self.dom, i, text.trim_end_matches("<br>"));
                }
            }
            AtEnd::Table => {
                self.line.clear();
                if let Some(grid) = self.grids.pop() {
                    let lines = grid.lines();
                    if !lines.is_empty() {
                        self.begin_block();
                        for (n, line) in lines.iter().enumerate() {
                            if n > 0 {
                                self.out.push('\n');
                                self.line_prefix();
                            }
                            self.out.push_str(line);
                        }
                        self.end_block(2);
                    }
                }
            }
        }
    }

    // ---------------------------------------------------------------- blocks

    fn owe(&mut self, breaks: u8) {
        self.pending = self.pending.max(breaks);
    }

    fn pop_prefix(&mut self) {
        self.prefixes.pop();
        self.shared = self.shared.min(self.prefixes.len());
    }

    /// Starts a line with what quotes and lists around it ask for.
    fn line_prefix(&mut self) {
        for prefix in &mut self.prefixes {
            match prefix {
                Prefix::Quote => self.out.push_str("> "),
                Prefix::Item { marker, used: used @ false } => {
                    *used = true;
                    self.out.push_str(marker);
                }
                Prefix::Item { marker, .. } => {
                    for _ in 0..marker.len() {
                        self.out.push(' ');
                    }
                }
            }
        }
    }

    fn begin_block(&mut self) {
        if !self.out.is_empty() {
            if self.pending >= 2 {
                self.out.push('\n');
                let quotes = self.prefixes[..self.shared].iter().rposition(|p| matches!(p, Prefix::Quote));
                if let Some(last) = quotes {
                    for prefix in &self.prefixes[..=last] {
                        match prefix {
                            Prefix::Quote => self.out.push_str("> "),
                            Prefix::Item { marker, .. } => self.out.push_str(&" ".repeat(marker.len())),
                        }
                    }
                    let kept = self.out.trim_end_matches(' ').len();
                    self.out.truncate(kept);
                }
            }
            self.out.push('\n');
        }
        self.pending = 0;
        self.line_prefix();
        self.shared = self.prefixes.len();
        if self.out.len() > MAX_OUTPUT {
            self.full = true;
        }
    }

    fn end_block(&mut self, breaks: u8) {
        let kept = self.out.trim_end_matches(' ').len();
        self.out.truncate(kept);
        self.pending = breaks;
    }

    /// Ends the running text: writes it as a paragraph or heading, or as a line of the cell.
    fn flush(&mut self) {
        self.full |= self.line.len() > MAX_OUTPUT;
        if self.in_cell {
            let kept = self.line.trim_end().len();
            if kept > 0 && !self.line.ends_with("<br>") && !self.line[..kept].ends_with("<br>- ") {
                self.line.truncate(kept);
                self.line.push_str("<br>");
            }
            return;
        }
        if self.line.is_empty() {
            return;
        }
        if self.line.trim().is_empty() {
            self.line.clear();
            for span in &mut self.spans {
                span.start = 0;
            }
            self.last_mark = None;
            return;
        }
        // Spans that go on past this block are closed here and opened again after it.
        if !self.spans.is_empty() {
            let mut spans = std::mem::take(&mut self.spans);
            for span in spans.iter_mut().rev() {
                self.wrap(span, false);
            }
            for span in &mut spans {
                span.start = 0;
            }
            self.spans = spans;
        }
        self.last_mark = None;
        let line = std::mem::take(&mut self.line);
        let text = line.trim();
        if !text.is_empty() {
            self.begin_block();
            if self.heading > 0 {
                for _ in 0..self.heading {
                    self.out.push('#');
                }
                self.out.push(' ');
                if text.contains('\n') {
                    let joined: Vec<&str> = text.split('\n').map(str::trim).filter(|l| !l.is_empty()).collect();
                    self.out.push_str(&joined.join(" "));
                } else {
                    self.out.push_str(text);
                }
            } else {
                self.paragraph(text);
            }
            self.end_block(2);
        }
        self.line = line;
        self.line.clear();
    }

    fn paragraph(&mut self, text: &str) {
        for (n, line) in text.split('\n').enumerate() {
            let line = line.trim_start();
            if n > 0 {
                self.out.push('\n');
                self.line_prefix();
            }
            match inline::line_start_escape(line) {
                Some(at) if !(n == 0 && (line.starts_with("[x]") || line.starts_with("[ ]"))) => {
                    self.out.push_str(&line[..at]);
                    self.out.push('\\');
                    self.out.push_str(&line[at..]);
                }
                _ => self.out.push_str(line),
            }
        }
    }

    fn pre(&mut self, i: usize) {
        let dropped = |j: usize| self.job.dropped[j];
        let text = code::text(self.dom, i, &dropped);
        if text.trim().is_empty() {
            return;
        }
        if self.in_cell {
            let mut one = String::new();
            inline::push_raw(&mut one, &text);
            inline::push_code_span(&mut self.line, one.trim());
            self.flush();
            return;
        }
        // A gutter in a `pre` of its own, beside the one with the code.
        let only_numbers = text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_whitespace());
        if only_numbers
            && (self.dom.ancestors(i).take(2).any(|a| code::is_gutter(self.dom, a))
                || code::counts_next(self.dom, i, &text))
        {
            return;
        }
        self.flush();
        let mut fence = 3;
        let mut run = 0;
        for b in text.bytes() {
            run = if b == b'`' { run + 1 } else { 0 };
            fence = fence.max(run + 1);
        }
        let fence = "`".repeat(fence);
        self.begin_block();
        self.out.push_str(&fence);
        if let Some(language) = code::language(self.dom, i) {
            self.out.push_str(&language);
        }
        for line in text.split('\n') {
            self.out.push('\n');
            let from = self.out.len();
            self.line_prefix();
            if line.trim().is_empty() {
                let kept = from + self.out[from..].trim_end().len();
                self.out.truncate(kept);
            } else {
                self.out.push_str(line.trim_end_matches('\r'));
            }
        }
        self.out.push('\n');
        self.line_prefix();
        self.out.push_str(&fence);
        self.end_block(2);
    }

    fn list(&mut self, i: usize, tag: Tag) -> Step {
        self.flush();
        let next = self.dom.attr(i, &local_name!("start")).and_then(|v| v.trim().parse::<i64>().ok()).unwrap_or(1);
        // A list right inside a list belongs to the item before it.
        let bare = matches!(self.dom.tag(self.dom.parent(i)), Tag::Ul | Tag::Ol)
            && !self.in_cell
            && self.lists.last().is_some_and(|l| l.items > 0)
            && self.prefixes.len() < MAX_PREFIXES;
        if bare {
            self.prefixes.push(Prefix::Item { marker: "  ".to_owned(), used: true });
        }
        if !self.lists.is_empty() && !self.out.is_empty() {
            self.pending = 1;
        }
        self.lists.push(List { ordered: tag == Tag::Ol, next: next.clamp(0, 999_999_999), items: 0 });
        Step::Closing(AtEnd::List { bare })
    }

    fn item(&mut self, i: usize) -> Step {
        self.flush();
        if self.in_cell {
            self.line.push_str("- ");
            return Step::Closing(AtEnd::CellBlock);
        }
        let mut marker = "- ".to_owned();
        if let Some(list) = self.lists.last_mut() {
            if list.items > 0 {
                self.pending = 1;
            }
            list.items += 1;
            if list.ordered {
                if let Some(value) = self.dom.attr(i, &local_name!("value")).and_then(|v| v.trim().parse::<i64>().ok())
                {
                    list.next = value.clamp(0, 999_999_999);
                }
                marker = format!("{}. ", list.next);
                list.next += 1;
            }
        }
        let prefixed = self.prefixes.len() < MAX_PREFIXES;
        if prefixed {
            self.prefixes.push(Prefix::Item { marker, used: false });
        }
        Step::Closing(AtEnd::Item { prefixed })
    }

    fn table(&mut self, i: usize) -> Step {
        self.flush();
        if self.in_cell {
            return Step::Closing(AtEnd::CellBlock);
        }
        let dom = self.dom;
        let layouts = self.layouts.get_or_insert_with(|| table::Layouts::of(dom, 0..dom.len()));
        if layouts.is_layout(i) {
            return Step::Closing(AtEnd::Block);
        }
        self.grids.push(table::Grid::default());
        Step::Closing(AtEnd::Table)
    }

    fn table_cell(&mut self, i: usize) -> Step {
        if self.in_cell {
            if !self.line.ends_with("<br>") {
                inline::push_space(&mut self.line);
            }
            return Step::Into;
        }
        if code::is_gutter(self.dom, i) {
            return Step::Over;
        }
        if self.grids.is_empty() {
            let blocks =
                (i + 1..self.dom.end(i)).take(200).any(|j| self.dom.tag(j).is_block() || self.dom.tag(j) == Tag::Br);
            if blocks {
                self.flush();
                return Step::Closing(AtEnd::Block);
            }
            inline::push_space(&mut self.line);
            return Step::Into;
        }
        self.line.clear();
        self.in_cell = true;
        Step::Closing(AtEnd::Cell(i))
    }
}

#[cfg(test)]
mod tests;
