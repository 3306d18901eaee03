//! Path patterns of robots.txt (RFC 9309 §2.2.2, §2.2.3): `*` stands for anything, `$` for the end.
//!
//! A pattern is cut at its stars; its pieces are looked for from left to right, each with a linear search. The leftmost
//! place of a piece leaves the most room for the next, so nothing is tried twice.

use memchr::memmem;

/// One `Allow` or `Disallow` path, normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Between the stars; at least one, empty ones inside are left out.
    pieces: Vec<Box<[u8]>>,
    /// The path must end where the last piece does.
    anchored: bool,
    /// Bytes of the normalised pattern: the longer one wins.
    length: usize,
}

impl Pattern {
    /// Reads a pattern. `None` for an empty one, which says nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        // A path without its slash is a common slip.
        let normal = match text.as_bytes().first() {
            Some(b'/' | b'*' | b'$') => normalize(text),
            _ => normalize(&format!("/{text}")),
        };
        let length = normal.len();
        let (body, anchored) = match normal.split_last() {
            Some((b'$', rest)) => (rest, true),
            _ => (normal.as_slice(), false),
        };
        let mut parts: Vec<&[u8]> = body.split(|b| *b == b'*').collect();
        // Several stars in a row are one; the first and the last piece tell whether the ends are free.
        let last = parts.len() - 1;
        let mut place = 0;
        parts.retain(|part| {
            let keep = place == 0 || place == last || !part.is_empty();
            place += 1;
            keep
        });
        Some(Self { pieces: parts.into_iter().map(Box::from).collect(), anchored, length })
    }

    /// Whether a normalised path with its query matches.
    pub fn matches(&self, path: &[u8]) -> bool {
        let Some((first, rest)) = self.pieces.split_first() else { return false };
        let Some(mut left) = path.strip_prefix(&**first) else { return false };
        let Some((last, middle)) = rest.split_last() else {
            return !self.anchored || left.is_empty();
        };
        for piece in middle {
            let Some(at) = memmem::find(left, piece) else { return false };
            left = &left[at + piece.len()..];
        }
        if self.anchored { left.ends_with(last) } else { memmem::find(left, last).is_some() }
    }

    /// About how much it takes to find out, where 1 is a pattern that begins otherwise than the path.
    pub fn work(&self, path: &[u8]) -> usize {
        let is_searched = self.pieces.len() > 1 && self.pieces.first().is_some_and(|first| path.starts_with(first));
        if is_searched { 16 * self.pieces.len() + path.len() / 16 } else { 1 }
    }

    /// Bytes of the pattern: the longest that matches decides.
    pub fn length(&self) -> usize {
        self.length
    }
}

/// One spelling for paths that mean the same (RFC 9309 §2.2.2): bytes outside ASCII are percent-encoded, encoded
/// characters that need no encoding are written plainly, hex digits are upper case.
pub(super) fn normalize(path: &str) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let encode = |out: &mut Vec<u8>, byte: u8| {
        out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    };
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        i += 1;
        match byte {
            b'%' => match (bytes.get(i).and_then(hex), bytes.get(i + 1).and_then(hex)) {
                (Some(high), Some(low)) => {
                    i += 2;
                    let value = high << 4 | low;
                    if value.is_ascii_alphanumeric() || matches!(value, b'-' | b'.' | b'_' | b'~') {
                        out.push(value);
                    } else {
                        encode(&mut out, value);
                    }
                }
                _ => out.push(byte),
            },
            b' ' | 0x80.. => encode(&mut out, byte),
            _ => out.push(byte),
        }
    }
    out
}

fn hex(digit: &u8) -> Option<u8> {
    char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_the_standard_says() {
        for (pattern, path, expected) in [
            ("/", "/", true),
            ("/fish", "/fish.html", true),
            ("/fish", "/catfish", false),
            ("/fish/", "/fish", false),
            ("fish", "/fish/1", true),
            ("/*.php", "/index.php?x", true),
            ("/*.php$", "/index.php?x", false),
            ("/*.php$", "/a.php/b.php", true),
            ("/fish*.php", "/fishheads/catfish.php", true),
            ("/a*b*c", "/axxbyyc", true),
            ("/a*b*c", "/axxcyyb", false),
            ("/a*b*b$", "/ab", false),
            ("/a*b*b$", "/abb", true),
            ("/a**b", "/ab", true),
            ("/a*", "/a", true),
            ("/a*$", "/abc", true),
            ("/a$", "/a", true),
            ("/a$", "/ab", false),
            ("$", "/", false),
            ("*", "/x", true),
            ("*/x", "/y/x", true),
            ("/%7ejoe/", "/~joe/i", true),
            ("/a%3cd", "/a%3Cd", true),
            ("/ツ", "/%E3%83%84", true),
            ("/%62%61", "/ba", true),
            ("/a b", "/a%20b", true),
            ("/a$b", "/a$b", true),
            ("/a%24", "/a", false),
            ("/a%2a", "/axx", false),
            ("/?q=*&x", "/?q=1&x=2", true),
            ("/100%", "/100%", true),
        ] {
            let parsed = Pattern::parse(pattern).expect("a pattern");
            assert_eq!(parsed.matches(&normalize(path)), expected, "{pattern} on {path}");
        }
        assert_eq!(Pattern::parse(" "), None);
    }

    #[test]
    fn a_pattern_made_to_backtrack_is_still_linear() {
        let pattern = Pattern::parse(&format!("/{}b", "a*".repeat(10_000))).expect("a pattern");
        let path = normalize(&format!("/{}", "a".repeat(20_000)));
        // The fastest of some: the machine may be busy.
        let is_quick = (0..10).any(|_| {
            let started = weir_shared::clock::Stopwatch::start();
            assert!(!pattern.matches(&path));
            started.elapsed() < std::time::Duration::from_secs(1)
        });
        assert!(is_quick);
    }
}
