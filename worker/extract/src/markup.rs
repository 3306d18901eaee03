//! Reads ordinary markup, and leaves the rest to html5ever's tokenizer.
//!
//! That tokenizer goes through tags letter by letter, which is most of what a page costs. Nearly all of a page is text
//! and tags without surprises, whose tokens can be cut out of it as they stand. [`feed`] does so wherever the tokenizer
//! would stand in its data state; whatever is not ordinary (declarations, scripts, unfinished tags, odd references) goes
//! through the tokenizer up to the end of the next tag, after which its state is known again. The tokens are the same in
//! either way, but for how text is divided among them.

use std::cell::Cell;

use html5ever::buffer_queue::BufferQueue;
use html5ever::data::NAMED_ENTITIES;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer};
use html5ever::{Attribute, LocalName, QualName, local_name, ns};
use memchr::{memchr, memchr2};

/// A sink of tokens, and what can be told of the tokenizer's state from what passes into it.
pub struct Watch<S> {
    /// Where the tokens go.
    pub sink: S,
    /// A tag has passed since this was last set.
    tag: Cell<bool>,
    /// What follows the last tag is not markup: a script, a title.
    is_raw: Cell<bool>,
    /// The last tag was one after which the tokenizer pauses.
    paused: Cell<bool>,
}

impl<S> Watch<S> {
    /// Watches what goes into `sink`.
    pub fn new(sink: S) -> Self {
        Self { sink, tag: Cell::new(false), is_raw: Cell::new(false), paused: Cell::new(false) }
    }
}

impl<S: TokenSink> TokenSink for Watch<S> {
    type Handle = S::Handle;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<S::Handle> {
        let is_tag = matches!(token, Token::TagToken(_));
        let result = self.sink.process_token(token, line);
        if is_tag {
            self.tag.set(true);
            self.is_raw.set(matches!(result, TokenSinkResult::RawData(_) | TokenSinkResult::Plaintext));
            self.paused.set(matches!(result, TokenSinkResult::Script(_) | TokenSinkResult::EncodingIndicator(_)));
        }
        result
    }

    fn end(&self) {
        self.sink.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.sink.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// Feeds a whole page to a tokenizer that has seen nothing yet, until `is_over`. Lines must end in `\n` alone.
pub fn feed<S: TokenSink>(tokenizer: &Tokenizer<Watch<S>>, text: &StrTendril, is_over: impl Fn(&S) -> bool) {
    let watch = &tokenizer.sink;
    // The letter NUL means different things in different places.
    let may_be_plain = memchr(0, text.as_bytes()).is_none();
    let mut at = 0;
    // As the tokenizer does: a byte order mark is dropped where it begins, and begins again after a pause.
    watch.paused.set(true);
    while at < text.len() && !is_over(&watch.sink) {
        if watch.paused.take() && text[at..].starts_with('\u{feff}') {
            at += '\u{feff}'.len_utf8();
            continue;
        }
        at = match ordinary(text, at).filter(|_| may_be_plain) {
            Some((token, end)) => {
                // No ordinary tag makes what follows it anything but markup.
                let _ = watch.process_token(token, 1);
                end
            }
            None => through_tokenizer(tokenizer, text, at, &is_over),
        };
    }
}

/// Feeds the tokenizer until it has passed a tag on and reads markup again. Gives where that is.
fn through_tokenizer<S: TokenSink>(
    tokenizer: &Tokenizer<Watch<S>>,
    text: &StrTendril,
    from: usize,
    is_over: impl Fn(&S) -> bool,
) -> usize {
    let (watch, input) = (&tokenizer.sink, BufferQueue::default());
    let mut at = from;
    while at < text.len() && !is_over(&watch.sink) {
        // Tags end in `>`, so one that was passed on from this piece stood at its end.
        let end = memchr(b'>', &text.as_bytes()[at..]).map_or(text.len(), |n| at + n + 1);
        watch.tag.set(false);
        input.push_back(part(text, at, end));
        // It pauses after each script and at each charset declaration; neither matters to a decoded page.
        while !input.is_empty() {
            let _ = tokenizer.feed(&input);
        }
        at = end;
        if watch.tag.get() && !watch.is_raw.get() {
            break;
        }
    }
    at
}

/// A part of the page, which shares its memory.
fn part(text: &StrTendril, from: usize, to: usize) -> StrTendril {
    let small = |n: usize| u32::try_from(n).expect("a tendril is below 4 GB");
    text.subtendril(small(from), small(to - from))
}

/// The token at `at`, where markup is read, and where it ends; `None` if there is more to it than meets the eye.
fn ordinary(text: &StrTendril, at: usize) -> Option<(Token, usize)> {
    if text.as_bytes()[at] != b'<' {
        return plain_text(text, at);
    }
    match text.as_bytes().get(at + 1)? {
        b'/' if text.as_bytes().get(at + 2)?.is_ascii_alphabetic() => tag(text, TagKind::EndTag, at + 2),
        c if c.is_ascii_alphabetic() => tag(text, TagKind::StartTag, at + 1),
        _ => None,
    }
}

/// The text from `at` up to the next tag, or as far as it is ordinary.
fn plain_text(text: &StrTendril, at: usize) -> Option<(Token, usize)> {
    let bytes = text.as_bytes();
    let stop = |from: usize| memchr2(b'<', b'&', &bytes[from..]).map_or(bytes.len(), |n| from + n);
    let mut end = stop(at);
    if bytes.get(end) != Some(&b'&') {
        return Some((Token::CharacterTokens(part(text, at, end)), end));
    }
    let mut out = part(text, at, end);
    while bytes.get(end) == Some(&b'&') {
        let Some((meant, length)) = reference(&text[end..], false) else { break };
        meant.push_to(&mut out);
        let from = end + length;
        end = stop(from);
        out.push_slice(&text[from..end]);
    }
    (end > at).then_some((Token::CharacterTokens(out), end))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | 0x0c)
}

/// The end of a name that begins at `from`; with `=` among what ends it, an attribute's.
fn end_of_name(bytes: &[u8], from: usize, is_attribute: bool) -> usize {
    let ends = |b: u8| is_space(b) || matches!(b, b'>' | b'/') || is_attribute && b == b'=';
    bytes[from..].iter().position(|&b| ends(b)).map_or(bytes.len(), |n| from + n)
}

/// A name in lower case.
fn name_of(name: &str) -> LocalName {
    if name.bytes().any(|b| b.is_ascii_uppercase()) {
        LocalName::from(name.to_ascii_lowercase())
    } else {
        LocalName::from(name)
    }
}

/// Names of elements whose start may turn the tokenizer to raw text, or whose end turns it back.
fn changes_state(name: &LocalName) -> bool {
    super::guard::is_raw_text(name) || *name == local_name!("noscript")
}

/// The tag whose name begins at `name`.
fn tag(text: &StrTendril, kind: TagKind, name: usize) -> Option<(Token, usize)> {
    let bytes = text.as_bytes();
    let mut at = end_of_name(bytes, name, false);
    let mut tag = Tag {
        kind,
        name: name_of(&text[name..at]),
        self_closing: false,
        attrs: Vec::new(),
        had_duplicate_attributes: false,
    };
    if changes_state(&tag.name) {
        return None;
    }
    loop {
        while is_space(*bytes.get(at)?) {
            at += 1;
        }
        match bytes[at] {
            b'>' => break,
            b'/' => {
                at += 1;
                if *bytes.get(at)? == b'>' {
                    tag.self_closing = true;
                    break;
                }
            }
            b'=' => return None,
            _ => {
                let end = end_of_name(bytes, at, true);
                let name = name_of(&text[at..end]);
                let (value, after) = value(text, end)?;
                at = after;
                if tag.attrs.iter().any(|a| a.name.local == name) {
                    tag.had_duplicate_attributes = true;
                } else {
                    tag.attrs.push(Attribute { name: QualName::new(None, ns!(), name), value });
                }
            }
        }
    }
    Some((Token::TagToken(tag), at + 1))
}

/// The value of the attribute whose name ends at `at`, and where what follows begins.
fn value(text: &StrTendril, at: usize) -> Option<(StrTendril, usize)> {
    let bytes = text.as_bytes();
    let after_space = |from: usize| bytes[from..].iter().position(|&b| !is_space(b)).map(|n| from + n);
    let sign = after_space(at)?;
    if bytes[sign] != b'=' {
        return Some((StrTendril::new(), at));
    }
    let from = after_space(sign + 1)?;
    let (from, to, after) = match bytes[from] {
        quote @ (b'"' | b'\'') => {
            let from = from + 1;
            let to = from + memchr(quote, &bytes[from..])?;
            (from, to, to + 1)
        }
        b'>' => return None,
        _ => {
            let to = from + bytes[from..].iter().position(|&b| is_space(b) || b == b'>')?;
            (from, to, to)
        }
    };
    let Some(first) = memchr(b'&', &bytes[from..to]) else {
        return Some((part(text, from, to), after));
    };
    let mut out = part(text, from, from + first);
    let mut at = from + first;
    while at < to {
        let (meant, length) = reference(&text[at..], true)?;
        meant.push_to(&mut out);
        at += length;
        let next = memchr(b'&', &bytes[at..to]).map_or(to, |n| at + n);
        out.push_slice(&text[at..next]);
        at = next;
    }
    Some((out, after))
}

/// One or two characters that a reference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Meant(char, Option<char>);

impl Meant {
    const AMPERSAND: Meant = Meant('&', None);

    fn push_to(self, out: &mut StrTendril) {
        out.push_char(self.0);
        if let Some(second) = self.1 {
            out.push_char(second);
        }
    }
}

/// What the ampersand at the head of `rest` means together with what follows it, and how many bytes that is. `None`: that
/// is the tokenizer's to say.
fn reference(rest: &str, in_attribute: bool) -> Option<(Meant, usize)> {
    const COMMON: [(&str, char); 5] =
        [("&amp;", '&'), ("&nbsp;", '\u{a0}'), ("&quot;", '"'), ("&lt;", '<'), ("&gt;", '>')];
    if let Some((name, c)) = COMMON.iter().find(|(name, _)| rest.starts_with(name)) {
        return Some((Meant(*c, None), name.len()));
    }
    match rest.as_bytes().get(1)? {
        b'#' => numeric(rest),
        c if c.is_ascii_alphanumeric() => named(rest, in_attribute),
        _ => Some((Meant::AMPERSAND, 1)),
    }
}

/// A reference by number, if it is whole and no mistake.
fn numeric(rest: &str) -> Option<(Meant, usize)> {
    let end = memchr(b';', &rest.as_bytes()[..rest.len().min(12)])?;
    let number = match rest.as_bytes()[2] {
        b'x' | b'X' => digits(&rest[3..end], 16)?,
        _ => digits(&rest[2..end], 10)?,
    };
    let c = char::from_u32(number).filter(|c| matches!(c, ' '..='~' | '\u{a0}'..))?;
    Some((Meant(c, None), end + 1))
}

/// A number without sign or space.
fn digits(text: &str, radix: u32) -> Option<u32> {
    let are_digits = text.chars().all(|c| c.is_digit(radix));
    u32::from_str_radix(text, radix).ok().filter(|_| are_digits)
}

/// A reference by name: the longest one that is known.
fn named(rest: &str, in_attribute: bool) -> Option<(Meant, usize)> {
    let name = &rest[1..];
    let (mut found, mut end) = (None, 0);
    loop {
        end += name[end..].chars().next()?.len_utf8();
        match NAMED_ENTITIES.get(&name[..end]) {
            Some((0, _)) => {}
            Some((first, second)) => found = Some((*first, *second, end)),
            None => break,
        }
    }
    let Some((first, second, end)) = found else { return Some((Meant::AMPERSAND, 1)) };
    let next = name.as_bytes()[end];
    if in_attribute && !name[..end].ends_with(';') && (next == b'=' || next.is_ascii_alphanumeric()) {
        return Some((Meant::AMPERSAND, 1));
    }
    let second = char::from_u32(second).filter(|c| *c != '\0');
    Some((Meant(char::from_u32(first)?, second), end + 1))
}

#[cfg(test)]
mod tests;
