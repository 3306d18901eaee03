//! Where the lines of a page stand and how large they are: what the document's paragraphs do not tell any more.

use unpdf::parser::TextSpan;
use unpdf::parser::backend::PageBox;

/// The text of one page as it is drawn.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// All text, without whitespace, in the order of drawing.
    text: String,
    /// Where each piece of `text` ends, and its font size, points.
    sizes: Vec<(usize, f32)>,
    /// Height of each line's baseline and its text without whitespace, from the top of the page.
    lines: Vec<(f32, String)>,
    /// Where each piece stands. Empty unless that is asked for.
    pub pieces: Vec<Piece>,
    /// Width and height of the page as it is shown, points, where they are known.
    pub size: Option<(f32, f32)>,
}

/// A place on a page: left, top, right and bottom as parts of its width and height, from the upper left corner.
pub(super) type PageRect = [f32; 4];

/// A piece of text as it is drawn.
#[derive(Debug)]
pub(super) struct Piece {
    /// Where it ends in the layout's text.
    pub end: usize,
    /// With its spaces.
    pub text: String,
    /// Unknown where it is turned, or its font does not say how wide it is.
    pub place: Option<PageRect>,
}

/// What is shown of a page, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub shown: PageBox,
    /// Degrees, clockwise.
    pub rotation: u16,
}

impl Frame {
    fn is_turned(self) -> bool {
        self.rotation % 180 == 90
    }

    fn size(self) -> Option<(f32, f32)> {
        let (width, height) = (self.shown.width(), self.shown.height());
        let is_known = width.is_finite() && height.is_finite() && width > 0.0 && height > 0.0;
        is_known.then_some(if self.is_turned() { (height, width) } else { (width, height) })
    }

    fn place_of(self, span: &TextSpan) -> Option<PageRect> {
        if span.is_rotated() || !span.width_measured {
            return None;
        }
        self.size()?;
        let (width, height) = (self.shown.width(), self.shown.height());
        let x = |x: f32| (x - self.shown.llx) / width;
        let y = |y: f32| (self.shown.ury - y) / height;
        let (left, right) = (x(span.x), x(span.x + span.ink_width.unwrap_or(span.width)));
        let (top, bottom) = (y(span.top()), y(span.bottom()));
        let place = match self.rotation {
            90 => [1.0 - bottom, left, 1.0 - top, right],
            180 => [1.0 - right, 1.0 - bottom, 1.0 - left, 1.0 - top],
            270 => [top, 1.0 - right, bottom, 1.0 - left],
            _ => [left, top, right, bottom],
        };
        let is_place = place.iter().all(|part| part.is_finite()) && place[0] <= place[2] && place[1] <= place[3];
        is_place.then(|| place.map(|part| part.clamp(0.0, 1.0)))
    }
}

/// Baselines that differ by less are one line, points.
const SAME_LINE: f32 = 2.0;
/// Places where a text is looked for.
const MATCHES: usize = 8;

impl Layout {
    /// The layout of the pieces of text of one page. With a `frame`, with the places of these pieces.
    pub fn of(spans: &[TextSpan], frame: Option<Frame>) -> Self {
        let mut layout = Self { size: frame.and_then(Frame::size), ..Self::default() };
        for span in spans {
            let before = layout.text.len();
            layout.text.extend(span.text.chars().filter(|c| !c.is_whitespace()));
            if let Some(frame) = frame
                && layout.text.len() > before
            {
                let (end, text) = (layout.text.len(), span.text.clone());
                layout.pieces.push(Piece { end, text, place: frame.place_of(span) });
            }
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

    /// All text without whitespace, in the order of drawing.
    pub fn text(&self) -> &str {
        &self.text
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
