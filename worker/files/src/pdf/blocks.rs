//! What kind of text stands where on a page, inside the child process, when the blocks of a PDF are asked for.
//!
//! The reader's blocks do not say where they stand; the pieces of text that are drawn do. So a block stands where its text is
//! drawn, if that can be told: text that stands on the page more often than blocks have it has no place.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use unpdf::{Block, Page, Table};
use weir_shared::domain::pdf_blocks::{
    PdfBlock, PdfBlockConfidence, PdfBlockKind, PdfBlockSource, PdfPageBlocks, PdfPageStatus,
};

use super::layout::{Layout, PageRect};
use super::read::markdown_of;
use super::tidy::{dense, plain};

/// Bytes that are looked through on one page for the places of its blocks; those of more have none.
const LOOK_THROUGH: usize = 64 << 20;
/// How much of a page's height at its top and its bottom may hold its number.
const EDGE: f32 = 0.15;
/// Longest caption, and longest page number, characters.
const MAX_CAPTION: usize = 400;
const MAX_NUMBER: usize = 24;

/// What is known of the blocks of each page besides what they say, kept in step with them. Empty unless blocks are asked for.
#[derive(Debug, Default)]
pub(super) struct Beside {
    places: Vec<Vec<Option<PageRect>>>,
    margins: Vec<Margins>,
}

/// What stands above and below the text of a page.
#[derive(Debug, Default)]
struct Margins {
    top: Vec<(PdfBlockKind, String, Option<PageRect>)>,
    bottom: Vec<(PdfBlockKind, String, Option<PageRect>)>,
}

impl Margins {
    /// `is_below`: where that is not known by its place.
    fn add(&mut self, text: String, place: Option<PageRect>, is_below: bool) {
        let is_below = place.map_or(is_below, |place| place[1] + place[3] > 1.0);
        let kind = match is_page_number(&text) {
            true => PdfBlockKind::PageNumber,
            false if is_below => PdfBlockKind::PageFooter,
            false => PdfBlockKind::PageHeader,
        };
        if is_below { &mut self.bottom } else { &mut self.top }.push((kind, text, place));
    }
}

impl Beside {
    /// Of pages as they were read, before anything is put in order.
    pub fn of(pages: &[Page], layouts: &[Layout]) -> Self {
        let (mut places, mut margins) = (Vec::new(), Vec::new());
        for (page, layout) in pages.iter().zip(layouts) {
            let mut text = Text::new(layout);
            places.push(text.find(&page.elements));
            let mut margin = Margins::default();
            // The reader leaves out numbers of pages, and says so.
            if page.omitted_page_number_chars > 0 {
                for (number, place) in text.left_at_edges() {
                    margin.add(number, Some(place), true);
                }
            }
            margins.push(margin);
        }
        Self { places, margins }
    }

    /// Blocks of a page that had `count` of them are gone, because they run over all pages: their places and texts.
    pub fn drop(&mut self, page: usize, count: usize, gone: Vec<(usize, String)>) {
        let (Some(places), Some(margins)) = (self.places.get_mut(page), self.margins.get_mut(page)) else { return };
        let places_of = |at: usize| if at < places.len() { places.remove(at) } else { None };
        let removed: Vec<Option<PageRect>> = gone.iter().rev().map(|(at, _)| *at).map(places_of).collect();
        for ((at, text), place) in gone.into_iter().zip(removed.into_iter().rev()) {
            margins.add(text, place, at * 2 >= count);
        }
    }

    /// A block has become the end of another one, each by page and place.
    pub fn join(&mut self, first: (usize, usize), next: (usize, usize)) {
        let Some(places) = self.places.get_mut(next.0).filter(|places| next.1 < places.len()) else { return };
        let gone = places.remove(next.1);
        if first.0 == next.0
            && let Some(place) = places.get_mut(first.1)
        {
            *place = place.zip(gone).map(|(one, other)| around(one, other));
        }
    }
}

fn around(one: PageRect, other: PageRect) -> PageRect {
    [one[0].min(other[0]), one[1].min(other[1]), one[2].max(other[2]), one[3].max(other[3])]
}

/// The text of a page as it is drawn, of which each part belongs to one block at most.
struct Text<'l> {
    layout: &'l Layout,
    /// What is taken, from where to where.
    taken: BTreeMap<usize, usize>,
    budget: usize,
}

impl<'l> Text<'l> {
    fn new(layout: &'l Layout) -> Self {
        Self { layout, taken: BTreeMap::new(), budget: LOOK_THROUGH }
    }

    /// The places of a page's blocks.
    fn find(&mut self, blocks: &[Block]) -> Vec<Option<PageRect>> {
        let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
        for (n, block) in blocks.iter().enumerate() {
            groups.entry(dense_of(block)).or_default().push(n);
        }
        let mut groups: Vec<(String, Vec<usize>)> = groups.into_iter().collect();
        // The longest first: what is left of the page then are the shorter ones' own places.
        groups.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.1.cmp(&b.1)));
        let mut places = vec![None; blocks.len()];
        for (text, members) in groups {
            for (n, range) in members.iter().zip(self.take(&text, members.len())) {
                places[*n] = self.place(&range);
            }
        }
        for (n, block) in blocks.iter().enumerate() {
            if let (None, Block::Table(table)) = (places[n], block) {
                places[n] = self.of_cells(table);
            }
        }
        places
    }

    /// A table that is not drawn row by row: where all of its cells are.
    fn of_cells(&mut self, table: &Table) -> Option<PageRect> {
        let cells = table.rows.iter().flat_map(|row| &row.cells);
        let texts = cells.map(|cell| cell.content.iter().map(|p| dense(&plain(p))).collect::<String>());
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for text in texts.filter(|text| !text.is_empty()) {
            *counts.entry(text).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let mut whole: Option<PageRect> = None;
        for (text, count) in counts {
            let ranges = self.take(&text, count);
            if ranges.is_empty() {
                return None;
            }
            for range in ranges {
                let place = self.place(&range)?;
                whole = Some(whole.map_or(place, |whole| around(whole, place)));
            }
        }
        whole
    }

    /// Where a text stands that blocks have `wanted` times, if it stands there just as often.
    fn take(&mut self, text: &str, wanted: usize) -> Vec<Range<usize>> {
        let whole = self.layout.text();
        let Some(left) = self.budget.checked_sub(whole.len()).filter(|_| !text.is_empty()) else { return Vec::new() };
        self.budget = left;
        let found = memchr::memmem::find_iter(whole.as_bytes(), text.as_bytes()).map(|at| at..at + text.len());
        let free: Vec<Range<usize>> = found.filter(|range| self.is_free(range)).take(wanted + 1).collect();
        if free.len() != wanted {
            return Vec::new();
        }
        self.taken.extend(free.iter().map(|range| (range.start, range.end)));
        free
    }

    fn is_free(&self, range: &Range<usize>) -> bool {
        self.taken.range(..range.end).next_back().is_none_or(|(_, end)| *end <= range.start)
    }

    /// The pieces that a part of the text is drawn in.
    fn pieces(&self, range: &Range<usize>) -> Range<usize> {
        let piece = |at: usize| self.layout.pieces.partition_point(|piece| piece.end <= at);
        piece(range.start)..(piece(range.end.saturating_sub(1)) + 1).min(self.layout.pieces.len())
    }

    fn place(&self, range: &Range<usize>) -> Option<PageRect> {
        let pieces = self.layout.pieces.get(self.pieces(range))?;
        let places = pieces.iter().map(|piece| piece.place).collect::<Option<Vec<_>>>()?;
        places.into_iter().reduce(around)
    }

    /// What no block has taken, looks like the number of a page and stands where such numbers do.
    fn left_at_edges(&self) -> Vec<(String, PageRect)> {
        let mut found: Vec<(String, PageRect)> = Vec::new();
        let mut start = 0;
        let mut is_next = false;
        for piece in &self.layout.pieces {
            let range = start..piece.end;
            start = piece.end;
            let place = piece.place.filter(|place| place[3] < EDGE || place[1] > 1.0 - EDGE);
            let Some(place) = place.filter(|_| self.is_free(&range)) else {
                is_next = false;
                continue;
            };
            match found.last_mut().filter(|(_, last)| is_next && (last[3] - place[3]).abs() < 0.005) {
                Some((text, last)) => {
                    text.push_str(&piece.text);
                    *last = around(*last, place);
                }
                None => found.push((piece.text.clone(), place)),
            }
            is_next = true;
        }
        found.retain_mut(|(text, _)| {
            *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            is_page_number(text)
        });
        found
    }
}

fn dense_of(block: &Block) -> String {
    match block {
        Block::Paragraph(paragraph) => dense(&plain(paragraph)),
        Block::Table(table) => {
            let cells = table.rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.content);
            cells.map(|paragraph| dense(&plain(paragraph))).collect()
        }
        Block::Code { content } | Block::Raw { content } => dense(content),
        Block::Image { .. } | Block::HorizontalRule | Block::PageBreak | Block::SectionBreak => String::new(),
    }
}

/// `7`, `- 7 -`, `Page 7 of 9` and the like.
fn is_page_number(text: &str) -> bool {
    const WORDS: &[&str] = &["page", "of", "p", "pg", "seite", "von", "página", "pagina", "de", "di", "sur"];
    let mut has_number = false;
    let is_known = |word: &str| {
        let is_number = word.len() <= 5 && word.bytes().all(|byte| byte.is_ascii_digit());
        has_number |= is_number;
        is_number || WORDS.contains(&word.to_lowercase().as_str())
    };
    let mut words = text.split(|c: char| c.is_whitespace() || "/|-\u{2013}\u{2014}.()[]".contains(c));
    text.chars().count() <= MAX_NUMBER && words.by_ref().filter(|word| !word.is_empty()).all(is_known) && has_number
}

/// `Table 2: Rivers`, `Fig. 3.1. A boat` and the like.
fn is_caption(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "figure",
        "fig",
        "table",
        "tab",
        "chart",
        "listing",
        "abbildung",
        "abb",
        "tabelle",
        "tableau",
        "figura",
        "tabla",
        "tabella",
        "tabel",
        "figuur",
        "tabela",
    ];
    let Some((word, rest)) = text.split_once(' ') else { return false };
    let Some((number, rest)) = rest.split_once(' ') else { return false };
    let is_number = number.starts_with(|c: char| c.is_ascii_digit()) && number.ends_with([':', '.']);
    WORDS.contains(&word.trim_end_matches('.').to_lowercase().as_str())
        && is_number
        && number.trim_end_matches([':', '.']).chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-')
        && !rest.is_empty()
        && text.chars().count() <= MAX_CAPTION
}

/// The blocks of pages that are in order; where they stand in the markdown is not told yet.
pub(super) fn of_pages(pages: &[Page], layouts: &[Layout], beside: Beside) -> Vec<PdfPageBlocks> {
    let beside = beside.places.into_iter().zip(beside.margins);
    let parts = pages.iter().zip(layouts).zip(beside);
    parts.map(|((page, layout), (places, margins))| of_page(page, layout, places, margins)).collect()
}

fn of_page(page: &Page, layout: &Layout, places: Vec<Option<PageRect>>, margins: Margins) -> PdfPageBlocks {
    let mut items = Vec::new();
    let mut push = |kind, label: Option<String>, content: String, place: Option<PageRect>| {
        items.push(PdfBlock {
            id: format!("p{}.b{}", page.number, items.len()),
            kind,
            label,
            bbox: place.map(rounded),
            content,
            markdown_span: None,
            reading_order: items.len(),
            source: PdfBlockSource::NativeText,
            confidence: PdfBlockConfidence::default(),
        });
    };
    for (kind, text, place) in margins.top {
        push(kind, None, text, place);
    }
    for (block, place) in page.elements.iter().zip(places) {
        let (kind, label) = match block {
            Block::Paragraph(paragraph) => match (paragraph.style.heading_level, &paragraph.style.list_info) {
                (Some(level), _) => (PdfBlockKind::SectionHeader, format!("heading_{level}")),
                (None, Some(_)) => (PdfBlockKind::Text, "list_item".to_owned()),
                (None, None) if is_caption(&plain(paragraph)) => (PdfBlockKind::Caption, "caption".to_owned()),
                (None, None) => (PdfBlockKind::Text, "paragraph".to_owned()),
            },
            Block::Table(_) => (PdfBlockKind::Table, "table".to_owned()),
            Block::Code { .. } => (PdfBlockKind::Text, "code".to_owned()),
            Block::Raw { .. } => (PdfBlockKind::Text, "raw".to_owned()),
            Block::Image { .. } | Block::HorizontalRule | Block::PageBreak | Block::SectionBreak => continue,
        };
        let mut alone = Page::new(page.number, page.width, page.height);
        alone.add_block(block.clone());
        let content = markdown_of(alone);
        if !content.is_empty() {
            push(kind, Some(label), content, place);
        }
    }
    for (kind, text, place) in margins.bottom {
        push(kind, None, text, place);
    }
    let status = if page.width == 0.0 && items.is_empty() { PdfPageStatus::Failed } else { PdfPageStatus::Ok };
    let (width, height) = layout.size.unzip();
    PdfPageBlocks { page_number: page.number, width, height, status, items }
}

fn rounded(place: PageRect) -> PageRect {
    place.map(|part| (part * 10_000.0).round() / 10_000.0)
}

/// The blocks of a page with their spans in its markdown, characters. They stand there one after the other with nothing
/// but blank space between; a block that does not has no span.
pub(super) fn placed(mut page: PdfPageBlocks, markdown: &str) -> PdfPageBlocks {
    let margins = [PdfBlockKind::PageHeader, PdfBlockKind::PageFooter, PdfBlockKind::PageNumber];
    let (mut rest, mut at) = (markdown, 0);
    for item in page.items.iter_mut().filter(|item| !margins.contains(&item.kind)) {
        let next = rest.trim_start();
        let blank = rest.len() - next.len();
        let Some(after) = next.strip_prefix(item.content.as_str()) else { continue };
        at += rest[..blank].chars().count();
        let end = at + item.content.chars().count();
        item.markdown_span = Some([at, end]);
        (rest, at) = (after, end);
    }
    page
}

/// The first heading of a document is its title, if it is of the first rank and on the first page.
pub(super) fn name_title<'p>(mut pages: impl Iterator<Item = &'p mut PdfPageBlocks>) {
    let first = pages.next().into_iter().flat_map(|page| &mut page.items);
    let heading = { first }.find(|item| item.kind == PdfBlockKind::SectionHeader);
    if let Some(heading) = heading.filter(|heading| heading.label.as_deref() == Some("heading_1")) {
        heading.kind = PdfBlockKind::Title;
    }
}
