//! Tables: which of them carry data, and how their cells become a GFM grid.

use foldhash::{HashMap, HashMapExt as _};
use html5ever::local_name;

use super::super::tree::{Dom, Tag};

/// Widest span honoured, columns or rows.
const MAX_SPAN: usize = 64;
/// Widest table padded to a full grid, columns; wider ones keep short rows.
const MAX_PADDED: usize = 64;

/// What is known about a table before it is converted.
#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    rows: u32,
    cells: u32,
    cells_in_row: u32,
    widest: u32,
    headers: u32,
    nested: u32,
    headings: u32,
    paragraphs: u32,
    blocks: u32,
    text: u32,
    presentation: bool,
    caption: bool,
}

impl Shape {
    fn is_layout(self) -> bool {
        if self.presentation || self.widest == 0 {
            return true;
        }
        if self.headers > 0 || self.caption {
            return self.nested > 0 && self.headings > 0;
        }
        self.widest == 1
            || self.nested > 0
            || self.headings > 0
            || self.blocks > 0
            || self.paragraphs > self.cells
            || (self.rows == 1 && self.text > 200)
            || self.text / self.cells.max(1) > 400
    }
}

/// Says for each table of a page whether it only lays the page out. Linear in the page, whatever the nesting.
#[derive(Debug, Default)]
pub struct Layouts(HashMap<usize, bool>);

impl Layouts {
    /// Looks at all tables within `range`.
    pub fn of(dom: &Dom, range: std::ops::Range<usize>) -> Self {
        let mut found = HashMap::new();
        let mut open: Vec<(usize, Shape)> = Vec::new();
        for i in range {
            while let Some((table, shape)) = open.pop_if(|(t, _)| dom.end(*t) <= i) {
                found.insert(table, shape.is_layout());
            }
            if dom.tag(i) == Tag::Table {
                if let Some((_, outer)) = open.last_mut() {
                    outer.nested += 1;
                }
                let role = dom.attr_named(i, "role").unwrap_or("");
                let shape = Shape { presentation: matches!(role, "presentation" | "none"), ..Shape::default() };
                open.push((i, shape));
                continue;
            }
            let Some((_, shape)) = open.last_mut() else { continue };
            match dom.tag(i) {
                Tag::Tr => {
                    shape.rows += 1;
                    shape.cells_in_row = 0;
                }
                Tag::Td | Tag::Th => {
                    shape.cells += 1;
                    shape.cells_in_row += 1;
                    shape.widest = shape.widest.max(shape.cells_in_row);
                    shape.headers += u32::from(dom.tag(i) == Tag::Th);
                }
                Tag::Caption => shape.caption = true,
                Tag::H1 | Tag::H2 | Tag::H3 => shape.headings += 1,
                Tag::P => shape.paragraphs += 1,
                Tag::Pre | Tag::Form | Tag::Article | Tag::Section | Tag::Blockquote => shape.blocks += 1,
                Tag::Div if super::code::is_drawn(dom, i) => shape.blocks += 1,
                Tag::Text => shape.text += dom.text(i).trim().len() as u32,
                _ => {}
            }
        }
        for (table, shape) in open {
            found.insert(table, shape.is_layout());
        }
        Layouts(found)
    }

    /// Whether table `i` is to be read as plain blocks.
    pub fn is_layout(&self, i: usize) -> bool {
        self.0.get(&i).copied().unwrap_or(false)
    }
}

/// Column alignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Not said.
    #[default]
    None,
    /// `:--`
    Left,
    /// `:-:`
    Center,
    /// `--:`
    Right,
}

/// One cell, its text already inline markdown.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    colspan: usize,
    rowspan: usize,
    header: bool,
    align: Align,
}

/// A table being read.
#[derive(Debug, Default)]
pub struct Grid {
    rows: Vec<Vec<Cell>>,
    head_rows: usize,
}

fn span(dom: &Dom, i: usize, name: &html5ever::LocalName) -> usize {
    let given = dom.attr(i, name).and_then(|v| v.trim().parse::<usize>().ok()).unwrap_or(1);
    given.clamp(1, MAX_SPAN)
}

impl Grid {
    /// Starts a row; `in_head` if it is inside `thead`.
    pub fn row(&mut self, in_head: bool) {
        if in_head && self.head_rows == self.rows.len() {
            self.head_rows += 1;
        }
        self.rows.push(Vec::new());
    }

    /// Adds a finished cell to the last row.
    pub fn cell(&mut self, dom: &Dom, i: usize, text: &str) {
        if self.rows.is_empty() {
            self.rows.push(Vec::new());
        }
        let align = dom
            .attr(i, &local_name!("align"))
            .or_else(|| {
                let style = dom.attr(i, &local_name!("style"))?;
                style
                    .split(';')
                    .find_map(|d| d.split_once(':').filter(|(k, _)| k.trim() == "text-align").map(|(_, v)| v))
            })
            .map_or(Align::None, |a| match a.trim() {
                "right" | "end" => Align::Right,
                "center" => Align::Center,
                "left" | "start" => Align::Left,
                _ => Align::None,
            });
        let cell = Cell {
            text: escape_pipes(text.trim()),
            colspan: span(dom, i, &local_name!("colspan")),
            rowspan: span(dom, i, &local_name!("rowspan")),
            header: dom.tag(i) == Tag::Th,
            align,
        };
        self.rows.last_mut().expect("a row was just made sure of").push(cell);
    }

    /// The table as lines of GFM; empty if it holds no text.
    pub fn lines(self) -> Vec<String> {
        let headed = self.head_rows > 0
            || self.rows.first().is_some_and(|r| !r.is_empty() && r.iter().all(|c| c.header || c.text.is_empty()));
        let rows = expand(self.rows);
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        if width == 0 {
            return Vec::new();
        }
        let mut used = vec![false; width];
        for row in &rows {
            for (n, cell) in row.iter().enumerate() {
                used[n] |= !cell.text.is_empty();
            }
        }
        let columns = used.iter().filter(|u| **u).count();
        if columns == 0 {
            return Vec::new();
        }
        let mut aligns = vec![Align::None; width];
        for row in rows.iter().take(2) {
            for (n, cell) in row.iter().enumerate() {
                if aligns[n] == Align::None {
                    aligns[n] = cell.align;
                }
            }
        }
        let mut lines = Vec::with_capacity(rows.len() + 2);
        let mut rows = rows.into_iter();
        let mut body_first = None;
        let head = if headed { rows.next() } else { None };
        let line_of = |row: &[Cell], pad: bool| {
            let mut line = String::from("|");
            let upto = if pad { width } else { row.len() };
            for (n, keep) in used.iter().enumerate().take(upto) {
                if *keep {
                    let text = row.get(n).map_or("", |c| c.text.as_str());
                    line.push(' ');
                    line.push_str(text);
                    line.push_str(if text.is_empty() { "|" } else { " |" });
                }
            }
            line
        };
        match head {
            Some(head) => lines.push(line_of(&head, true)),
            None => {
                lines.push(line_of(&[], true));
                body_first = rows.next();
            }
        }
        let mut rule = String::from("|");
        for (n, keep) in used.iter().enumerate() {
            if *keep {
                rule.push_str(match aligns[n] {
                    Align::None => " --- |",
                    Align::Left => " :-- |",
                    Align::Center => " :-: |",
                    Align::Right => " --: |",
                });
            }
        }
        lines.push(rule);
        for row in body_first.into_iter().chain(rows) {
            if row.iter().any(|c| !c.text.is_empty()) {
                lines.push(line_of(&row, width <= MAX_PADDED));
            }
        }
        lines
    }
}

/// Puts spanned-over places in as empty cells.
fn expand(rows: Vec<Vec<Cell>>) -> Vec<Vec<Cell>> {
    // Empty cells that spans may add.
    let mut budget = 4096 + 4 * rows.iter().map(Vec::len).sum::<usize>();
    let mut out = Vec::with_capacity(rows.len());
    // Rows a column is still covered for by a cell above.
    let mut covered: Vec<usize> = Vec::new();
    for row in rows {
        let mut line: Vec<Cell> = Vec::with_capacity(row.len());
        let cover = |line: &mut Vec<Cell>, covered: &mut Vec<usize>, budget: &mut usize| {
            while let Some(left) = covered.get_mut(line.len())
                && *left > 0
                && *budget > 0
            {
                *left -= 1;
                *budget -= 1;
                line.push(Cell::default());
            }
        };
        for cell in row {
            cover(&mut line, &mut covered, &mut budget);
            let (colspan, rowspan, align) = (cell.colspan, cell.rowspan, cell.align);
            let at = line.len();
            line.push(cell);
            for _ in 1..colspan.min(budget + 1) {
                budget -= 1;
                line.push(Cell { align, ..Cell::default() });
            }
            if rowspan > 1 {
                if covered.len() < line.len() {
                    covered.resize(line.len(), 0);
                }
                covered[at..line.len()].fill(rowspan - 1);
            }
        }
        cover(&mut line, &mut covered, &mut budget);
        out.push(line);
    }
    out
}

fn escape_pipes(text: &str) -> String {
    if !text.contains('|') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut escaped = false;
    for c in text.chars() {
        if c == '|' && !escaped {
            out.push('\\');
        }
        escaped = c == '\\' && !escaped;
        out.push(c);
    }
    out
}
