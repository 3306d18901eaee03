//! Where the lines of a page stand and how large they are: what the document's paragraphs do not tell any more.

use unpdf::parser::TextSpan;

/// The text of one page as it is drawn.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// All text, without whitespace, in the order of drawing.
    text: String,
    /// Where each piece of `text` ends, and its font size, points.
    sizes: Vec<(usize, f32)>,
    /// Height of each line's baseline and its text without whitespace, from the top of the page.
    lines: Vec<(f32, String)>,
}

/// Baselines that differ by less are one line, points.
const SAME_LINE: f32 = 2.0;
/// Places where a text is looked for.
const MATCHES: usize = 8;

impl Layout {
    /// The layout of the pieces of text of one page.
    pub fn of(spans: &[TextSpan]) -> Self {
        let mut layout = Self::default();
        for span in spans {
            let before = layout.text.len();
            layout.text.extend(span.text.chars().filter(|c| !c.is_whitespace()));
            if layout.text.len() > before && span.y.is_finite() {
                layout.sizes.push((layout.text.len(), span.font_size));
                layout.lines.push((span.y, layout.text[before..].to_owned()));
            }
        }
        // A stable sort: pieces of one line stay in their order.
        layout.lines.sort_by(|a, b| b.0.total_cmp(&a.0));
        layout.lines.dedup_by(|piece, line| {
            let is_same = (line.0 - piece.0).abs() < SAME_LINE;
            if is_same {
                line.1.push_str(&piece.1);
            }
            is_same
        });
        layout
    }

    /// The largest size in which a text without whitespace stands on the page, points.
    pub fn size_of(&self, text: &str) -> Option<f32> {
        if text.is_empty() {
            return None;
        }
        let places = self.text.match_indices(text).take(MATCHES);
        let sizes = places.filter_map(|(at, _)| {
            let piece = self.sizes.partition_point(|(end, _)| *end <= at);
            Some(self.sizes.get(piece)?.1)
        });
        sizes.reduce(f32::max)
    }

    /// The `n` highest and the `n` lowest lines.
    pub fn edges(&self, n: usize) -> impl Iterator<Item = &(f32, String)> {
        let low = self.lines.len().saturating_sub(n).max(n.min(self.lines.len()));
        self.lines.iter().take(n).chain(&self.lines[low..])
    }
}
