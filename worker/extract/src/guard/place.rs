//! Whether markup stands in a drawing (`svg`) or a formula (`math`), where the rules are others: a tag may end itself, a
//! script or a style is markup like the rest, and a tag of the page's own ends the drawing.
//!
//! A guess, from the names of tags alone: the tree builder knows better, but comes later.

/// The name of a tag in small letters, as far as names that matter here are long.
#[derive(Clone, Copy)]
pub struct Name {
    letters: [u8; 16],
    length: usize,
}

impl Name {
    /// The name that begins at `at`.
    pub fn at(bytes: &[u8], at: usize) -> Self {
        let mut name = Name { letters: [0; 16], length: 0 };
        let rest = bytes.get(at..).unwrap_or_default().iter();
        for byte in rest.take_while(|b| !matches!(b, b'>' | b'/' | b' ' | b'\t' | b'\n' | b'\r' | 0x0c)).take(16) {
            name.letters[name.length] = byte.to_ascii_lowercase();
            name.length += 1;
        }
        name
    }

    pub fn is(&self, name: &[u8]) -> bool {
        self.letters[..self.length] == *name
    }

    /// Whether it begins a drawing or a formula.
    fn is_drawing(&self) -> bool {
        self.is(b"svg") || self.is(b"math")
    }

    /// Whether what it holds is read by the rules of the page again.
    fn is_label(&self) -> bool {
        matches!(
            &self.letters[..self.length],
            b"foreignobject" | b"desc" | b"title" | b"annotation-xml" | b"mi" | b"mo" | b"mn" | b"ms" | b"mtext"
        )
    }

    /// Whether its start ends a drawing. That is the standard's list; `font` does with some attributes only.
    pub fn breaks_out(&self) -> bool {
        matches!(
            &self.letters[..self.length],
            b"b" | b"big"
                | b"blockquote"
                | b"body"
                | b"br"
                | b"center"
                | b"code"
                | b"dd"
                | b"div"
                | b"dl"
                | b"dt"
                | b"em"
                | b"embed"
                | b"font"
                | b"h1"
                | b"h2"
                | b"h3"
                | b"h4"
                | b"h5"
                | b"h6"
                | b"head"
                | b"hr"
                | b"i"
                | b"img"
                | b"li"
                | b"listing"
                | b"menu"
                | b"meta"
                | b"nobr"
                | b"ol"
                | b"p"
                | b"pre"
                | b"ruby"
                | b"s"
                | b"small"
                | b"span"
                | b"strong"
                | b"strike"
                | b"sub"
                | b"sup"
                | b"table"
                | b"tt"
                | b"u"
                | b"ul"
                | b"var"
        )
    }

    /// Whether its end ends a drawing, as the end of what the drawing stands in.
    pub fn ends_around(&self) -> bool {
        self.breaks_out()
            || matches!(
                &self.letters[..self.length],
                b"article"
                    | b"aside"
                    | b"button"
                    | b"figure"
                    | b"footer"
                    | b"form"
                    | b"header"
                    | b"html"
                    | b"label"
                    | b"main"
                    | b"nav"
                    | b"noscript"
                    | b"section"
                    | b"summary"
                    | b"td"
                    | b"th"
                    | b"tr"
            )
    }
}

/// Where the look over the markup is.
#[derive(Default)]
pub struct Place {
    /// Drawings and formulas open.
    drawings: u32,
    /// A bit each, the innermost's last: whether it is in a part of that one that is read like the page.
    labels: u64,
}

impl Place {
    /// Notes a start tag; with `is_closed`, one that ends in `/>`. Whether it is a drawing's.
    pub fn start(&mut self, name: Name, is_closed: bool) -> bool {
        if name.is_drawing() {
            if !is_closed {
                (self.drawings, self.labels) = (self.drawings + 1, self.labels << 1);
            }
            return true;
        }
        if !self.is_drawing() {
            return false;
        }
        if name.breaks_out() {
            *self = Self::default();
            return false;
        }
        self.labels |= u64::from(!is_closed && name.is_label());
        true
    }

    /// Notes an end tag.
    pub fn end(&mut self, name: Name) {
        if self.drawings == 0 {
        } else if name.is_drawing() {
            (self.drawings, self.labels) = (self.drawings - 1, self.labels >> 1);
        } else if name.is_label() {
            self.labels &= !1;
        } else if self.is_drawing() && name.ends_around() {
            *self = Self::default();
        }
    }

    /// Whether the rules of drawings and formulas hold.
    fn is_drawing(&self) -> bool {
        self.drawings > 0 && self.labels & 1 == 0
    }

    /// Whether that may be so.
    pub fn may_be_drawing(&self) -> bool {
        self.drawings > 0
    }
}
