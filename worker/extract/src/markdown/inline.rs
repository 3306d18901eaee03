//! A line of running text being put together: whitespace collapsed, special characters escaped, spans wrapped.

/// What a byte of page text may need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Plain,
    Space,
    Special,
    /// First byte of U+00A0 and of U+00AD.
    Latin,
}

const CLASSES: [Class; 256] = {
    let mut t = [Class::Plain; 256];
    let mut spaces = [b' ', b'\t', b'\n', b'\r', 0x0c].as_slice();
    while let [b, rest @ ..] = spaces {
        t[*b as usize] = Class::Space;
        spaces = rest;
    }
    let mut special = b"*_`\\<&~(:!".as_slice();
    while let [b, rest @ ..] = special {
        t[*b as usize] = Class::Special;
        special = rest;
    }
    t[0xc2] = Class::Latin;
    t
};

/// Whether text ends in a character of a script written without spaces.
fn ends_wide(text: &str) -> bool {
    text.chars().next_back().is_some_and(is_wide)
}

fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff60}')
}

/// Adds a break opportunity: one space unless the line is at its start or has one.
pub fn push_space(buf: &mut String) {
    if !buf.is_empty() && !buf.ends_with([' ', '\n']) {
        buf.push(' ');
    }
}

/// Adds page text with whitespace collapsed, nothing escaped: for code spans.
pub fn push_raw(buf: &mut String, text: &str) {
    for (n, word) in text.split([' ', '\t', '\n', '\r', '\u{c}', '\u{a0}']).enumerate() {
        if n > 0 {
            push_space(buf);
        }
        buf.push_str(word);
    }
}

/// Adds page text with whitespace collapsed and everything markdown would read as markup escaped.
pub fn push_text(buf: &mut String, text: &str) {
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let from = i;
        while let Some(&b) = bytes.get(i) {
            // A single space between plain characters runs through.
            let plain = CLASSES[b as usize] == Class::Plain
                || (b == b' ' && i > from && bytes.get(i + 1).is_some_and(|n| CLASSES[*n as usize] == Class::Plain));
            if !plain {
                break;
            }
            i += 1;
        }
        buf.push_str(&text[from..i]);
        let Some(&b) = bytes.get(i) else { break };
        match CLASSES[b as usize] {
            Class::Space => {
                let mut line_end = false;
                while i < bytes.len() && CLASSES[bytes[i] as usize] == Class::Space {
                    line_end |= bytes[i] == b'\n';
                    i += 1;
                }
                let joined = line_end && ends_wide(buf) && text[i..].chars().next().is_some_and(is_wide);
                if !joined {
                    push_space(buf);
                }
            }
            Class::Latin => {
                match bytes.get(i + 1) {
                    Some(0xa0) => push_space(buf),
                    Some(0xad) => {}
                    _ => buf.push_str(&text[i..i + 2]),
                }
                i += 2;
            }
            _ => {
                if needs_escape(buf, b, &bytes[i + 1..]) {
                    buf.push('\\');
                }
                buf.push(b as char);
                i += 1;
            }
        }
    }
}

fn needs_escape(before: &str, b: u8, after: &[u8]) -> bool {
    let next = after.first().copied();
    let spaced_after = next.is_none_or(|n| n.is_ascii_whitespace());
    let last = before.as_bytes().last().copied();
    let spaced_before = last.is_none_or(|l| l.is_ascii_whitespace());
    match b {
        b'`' => true,
        b'\\' => next.is_some_and(|n| n.is_ascii_punctuation()),
        b'*' => !(spaced_before && next.is_some_and(|n| n.is_ascii_whitespace())),
        b'_' => {
            let word = |c: Option<u8>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c >= 0x80);
            !(word(last) && word(next) || spaced_before && spaced_after)
        }
        b'<' => next.is_none_or(|n| n.is_ascii_alphabetic() || matches!(n, b'/' | b'!' | b'?')),
        b'&' => {
            let entity = after.iter().take(32).position(|&c| c == b';');
            entity.is_some_and(|n| n > 0 && after[..n].iter().all(|&c| c.is_ascii_alphanumeric() || c == b'#'))
        }
        b'~' => last == Some(b'~') || next == Some(b'~'),
        // `](` would make a link of bracketed text, `]:` a definition.
        b'(' | b':' => last == Some(b']'),
        _ => false,
    }
}

/// Escapes brackets of a link's or image's text if they do not pair up.
pub fn balance_brackets(text: &str) -> Option<String> {
    let mut depth = 0i32;
    let mut escaped = false;
    let mut ok = true;
    for b in text.bytes() {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'[' => depth += 1,
            b']' => {
                depth -= 1;
                ok &= depth >= 0;
            }
            _ => {}
        }
    }
    if ok && depth == 0 {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut escaped = false;
    for c in text.chars() {
        if !escaped && matches!(c, '[' | ']') {
            out.push('\\');
        }
        escaped = c == '\\' && !escaped;
        out.push(c);
    }
    Some(out)
}

/// Adds `(url)` of a link or image, safe against parentheses and spaces in it.
pub fn push_destination(out: &mut String, url: &str) {
    let mut depth = 0i32;
    let mut balanced = true;
    for b in url.bytes() {
        match b {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                balanced &= depth >= 0;
            }
            _ => {}
        }
    }
    balanced &= depth == 0;
    out.push('(');
    for c in url.chars() {
        match c {
            '(' if !balanced => out.push_str("%28"),
            ')' if !balanced => out.push_str("%29"),
            ' ' => out.push_str("%20"),
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            '\n' | '\r' | '\t' => {}
            c => out.push(c),
        }
    }
    out.push(')');
}

/// Adds text as a code span, with as many backticks as it takes.
pub fn push_code_span(out: &mut String, code: &str) {
    let mut longest = 0;
    let mut run = 0;
    for b in code.bytes() {
        run = if b == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let pad = code.starts_with('`') || code.ends_with('`');
    out.push_str(&fence);
    if pad {
        out.push(' ');
    }
    out.push_str(code);
    if pad {
        out.push(' ');
    }
    out.push_str(&fence);
}

/// Where in a line of paragraph text a backslash must go so that it does not start a block; `None` if nowhere.
pub fn line_start_escape(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let blank_at = |n: usize| bytes.get(n).is_none_or(|b| *b == b' ');
    match bytes.first()? {
        b'#' => {
            let level = bytes.iter().take_while(|b| **b == b'#').count();
            (level <= 6 && blank_at(level)).then_some(0)
        }
        b'-' | b'+' | b'*' => (blank_at(1) || is_rule(bytes)).then_some(0),
        b'=' => bytes.iter().all(|b| matches!(b, b'=' | b' ')).then_some(0),
        b'>' => Some(0),
        b'|' => Some(0),
        b'~' => bytes.starts_with(b"~~~").then_some(0),
        b'0'..=b'9' => {
            let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
            (digits <= 9 && matches!(bytes.get(digits), Some(b'.' | b')')) && blank_at(digits + 1)).then_some(digits)
        }
        _ => None,
    }
}

fn is_rule(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| *b == bytes[0] || *b == b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(s: &str) -> String {
        let mut buf = String::new();
        push_text(&mut buf, s);
        buf
    }

    #[test]
    fn whitespace_collapses_and_no_break_space_is_a_space() {
        assert_eq!(text("  a \n\t b\u{a0}c "), "a b c ");
        assert_eq!(text("第一\n第二"), "第一第二");
        assert_eq!(text("é©"), "é©");
    }

    #[test]
    fn only_what_markdown_would_read_is_escaped() {
        assert_eq!(
            text("2 * 3 *x* a_b _c_ `d` e\\f \\* AT&T &amp; a<b <i> [x](y) 5:1"),
            "2 * 3 \\*x\\* a_b \\_c\\_ \\`d\\` e\\f \\\\\\* AT&T \\&amp; a\\<b \\<i> [x]\\(y) 5:1"
        );
    }

    #[test]
    fn block_starts_are_found() {
        for (line, at) in [
            ("# a", Some(0)),
            ("#a", None),
            ("1. a", Some(1)),
            ("1.5 a", None),
            ("- a", Some(0)),
            ("-a", None),
            ("> a", Some(0)),
            ("**a**", None),
            ("---", Some(0)),
            ("2024) x", Some(4)),
        ] {
            assert_eq!(line_start_escape(line), at, "{line}");
        }
    }

    #[test]
    fn link_parts_survive_odd_characters() {
        assert_eq!(balance_brackets("a [b] c"), None);
        assert_eq!(balance_brackets("a] b").as_deref(), Some("a\\] b"));
        let mut out = String::new();
        push_destination(&mut out, "https://x.test/a)b c");
        assert_eq!(out, "(https://x.test/a%29b%20c)");
        let mut out = String::new();
        push_code_span(&mut out, "a``b`");
        assert_eq!(out, "``` a``b` ```");
    }
}
