//! Keeps hostile markup from costing more than its size.
//!
//! Two places. Before the tokenizer, a linear copy leaves out what no later stage reads and what html5ever would choke
//! on: script bodies, comments, drawings, surplus attributes, huge `data:` URLs. Between tokenizer and tree builder,
//! [`Gate`] drops tags that would nest too deep or pile up unclosed formatting, and stops at the node and time budget.
//! Text is always kept up to the budget; only tags are dropped.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use html5ever::interface::TreeSink;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{LocalName, local_name};
use memchr::{memchr, memchr_iter, memmem};

use self::place::{Name, Place};
use super::markup::{self, Watch};
use super::tree::{Dom, Sink, streamed};

mod place;

/// Attributes kept per tag.
pub const MAX_ATTRIBUTES: usize = 256;
/// Depth past which tags are dropped, elements; what browsers use.
const MAX_DEPTH: u32 = 512;
/// Formatting elements (`b`, `font`, …) open at once; each is cloned into every following block.
const MAX_FORMATTING: u32 = 48;
/// Kinds of formatting elements.
const FORMATTING: usize = 13;
/// Nodes past which the rest of the page is left out.
const MAX_NODES: usize = 1_000_000;
/// Bytes of HTML looked at; the rest is left out.
const MAX_BYTES: usize = 48 << 20;
/// Bytes of `data:` URLs kept per page; later ones are cut to a stub.
const MAX_DATA_BYTES: usize = 4 << 20;
/// Bytes of a script's body kept, so that it can be told from an empty one.
const SCRIPT_STUB: usize = 10;
/// Longest drawing looked through for its end, bytes.
const MAX_DRAWING: usize = 256 << 10;
/// Processor time for building the tree; an ordinary page of the size limit needs half of it.
const TIME_BUDGET: Duration = Duration::from_millis(700);
/// Tokens between looks at the clock.
const CLOCK_EVERY: u32 = 2048;

/// A tree and whether anything of the page was left out of it.
#[derive(Debug)]
pub struct Parsed {
    /// The tree.
    pub dom: Dom,
    /// Inline script on the page, bytes; the tree holds only the beginning of each script.
    pub script_bytes: usize,
    /// The node, byte or time budget ended the page early.
    pub cut: bool,
}

/// Parses a whole document within the budgets, as a browser without scripts would.
pub fn parse(html: &str) -> Parsed {
    parse_as(html, false)
}

/// The same; with `scripting`, what is inside `noscript` stays unparsed.
pub fn parse_as(html: &str, scripting: bool) -> Parsed {
    let mut cut = false;
    let html = if html.len() > MAX_BYTES {
        cut = true;
        &html[..html.floor_char_boundary(MAX_BYTES)]
    } else {
        html
    };
    let Reduced { text, script_bytes, is_streamed } = reduce(html);
    let sink = Sink::with_capacity(text.len() / 32 + 16);
    let builder = TreeBuilder::new(sink, TreeBuilderOpts { scripting_enabled: scripting, ..Default::default() });
    let gate = Gate {
        builder,
        dropped: RefCell::new(HashMap::new()),
        dropped_any: Cell::new(false),
        formatting: Default::default(),
        tokens: Cell::new(0),
        full: Cell::new(false),
        clock: Clock::start(TIME_BUDGET),
    };
    let tokenizer = Tokenizer::new(Watch::new(gate), TokenizerOpts { discard_bom: false, ..Default::default() });
    markup::feed(&tokenizer, &text, |gate| gate.full.get());
    tokenizer.end();
    let gate = tokenizer.sink.sink;
    if is_streamed {
        gate.builder.sink.place_streamed();
    }
    cut |= gate.full.get();
    Parsed { dom: gate.builder.sink.finish(), script_bytes, cut }
}

/// Stands between tokenizer and tree builder and drops what would blow the tree up.
struct Gate {
    builder: TreeBuilder<u32, Sink>,
    /// Start tags dropped and not yet ended, by name: their end tags must be dropped too.
    dropped: RefCell<HashMap<LocalName, u32>>,
    dropped_any: Cell<bool>,
    /// Formatting elements open, by kind.
    formatting: [Cell<u32>; FORMATTING],
    tokens: Cell<u32>,
    full: Cell<bool>,
    clock: Clock,
}

/// Processor time of this thread since the work was begun. A wall clock would cut good pages on a busy machine, so it
/// only says when to look at the real one.
#[derive(Debug)]
pub struct Clock {
    budget: Duration,
    started: Instant,
    /// Processor time at the first look, nanoseconds.
    cpu: Cell<Option<u64>>,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "a bound on work done, in a crate that knows no service and no clock"
    )]
    pub fn start(budget: Duration) -> Self {
        Self { budget, started: Instant::now(), cpu: Cell::new(None) }
    }

    /// Whether the budget is used up.
    pub fn is_over(&self) -> bool {
        let wall = self.started.elapsed();
        if wall < self.budget / 8 {
            return false;
        }
        let Some(now) = thread_cpu_nanos() else { return wall > self.budget * 4 };
        match self.cpu.get() {
            None => {
                self.cpu.set(Some(now));
                false
            }
            Some(then) => Duration::from_nanos(now.saturating_sub(then)) > self.budget * 7 / 8,
        }
    }
}

/// Processor time of this thread, nanoseconds, where the system tells.
fn thread_cpu_nanos() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split_ascii_whitespace().next()?.parse().ok()
}

/// Which of the formatting elements a name is, 0 to [`FORMATTING`] - 1.
fn formatting_kind(name: &LocalName) -> Option<usize> {
    Some(match *name {
        local_name!("b") => 0,
        local_name!("big") => 1,
        local_name!("code") => 2,
        local_name!("em") => 3,
        local_name!("font") => 4,
        local_name!("i") => 5,
        local_name!("nobr") => 6,
        local_name!("s") => 7,
        local_name!("small") => 8,
        local_name!("strike") => 9,
        local_name!("strong") => 10,
        local_name!("tt") => 11,
        local_name!("u") => 12,
        _ => return None,
    })
}

/// Elements the tokenizer must see start, as they switch it to raw text.
pub fn is_raw_text(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("script")
            | local_name!("style")
            | local_name!("textarea")
            | local_name!("title")
            | local_name!("xmp")
            | local_name!("iframe")
            | local_name!("noembed")
            | local_name!("noframes")
            | local_name!("plaintext")
    )
}

impl Gate {
    fn admits(&self, name: &LocalName, kind: TagKind) -> bool {
        let formatting = formatting_kind(name);
        if kind == TagKind::EndTag {
            if self.dropped_any.get()
                && let Some(n) = self.dropped.borrow_mut().get_mut(name)
                && *n > 0
            {
                *n -= 1;
                return false;
            }
            self.builder.sink.leave();
            if let Some(kind) = formatting {
                // Without one open the tree builder would only walk all open elements to find that out.
                let open = self.formatting[kind].get();
                self.formatting[kind].set(open.saturating_sub(1));
                return open > 0;
            }
            return true;
        }
        let too_deep = self.builder.sink.depth() >= MAX_DEPTH && !is_raw_text(name);
        let too_many = formatting.is_some() && self.formatting.iter().map(Cell::get).sum::<u32>() >= MAX_FORMATTING;
        if too_deep || too_many {
            *self.dropped.borrow_mut().entry(name.clone()).or_insert(0) += 1;
            self.dropped_any.set(true);
            return false;
        }
        if let Some(kind) = formatting {
            self.formatting[kind].set(self.formatting[kind].get() + 1);
        }
        true
    }
}

impl TokenSink for Gate {
    type Handle = u32;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<u32> {
        let seen = self.tokens.get().wrapping_add(1);
        self.tokens.set(seen);
        if seen.is_multiple_of(CLOCK_EVERY) && self.clock.is_over() {
            self.full.set(true);
        }
        match &token {
            Token::ParseError(_) | Token::CommentToken(_) => return TokenSinkResult::Continue,
            Token::TagToken(tag) => {
                if self.builder.sink.node_count() > MAX_NODES {
                    self.full.set(true);
                }
                if self.full.get() || !self.admits(&tag.name, tag.kind) {
                    return TokenSinkResult::Continue;
                }
            }
            Token::CharacterTokens(_) if self.full.get() => return TokenSinkResult::Continue,
            _ => {}
        }
        self.builder.process_token(token, line)
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// One tag as the look over the markup sees it.
struct TagSpan {
    /// One past the `>`, or the end of input.
    end: usize,
    has_end: bool,
    /// It ends in `/>`.
    is_closed: bool,
    /// Byte ranges to replace by a stub.
    cuts: Vec<(usize, usize, &'static str)>,
}

/// The page as the tokenizer gets it.
struct Reduced {
    text: StrTendril,
    script_bytes: usize,
    /// Parts of the page stand at its end, and their places hold `template` elements.
    is_streamed: bool,
}

/// The page as far as it is copied.
struct Reducer<'h> {
    html: &'h str,
    out: StrTendril,
    copied: usize,
    data_left: usize,
}

impl Reducer<'_> {
    /// Copies up to `from`, and goes on at `to`.
    fn leave_out(&mut self, from: usize, to: usize, stub: &str) {
        if from < self.copied || from >= to && stub.is_empty() {
            return;
        }
        self.out.push_slice(&self.html[self.copied..from]);
        self.out.push_slice(stub);
        self.copied = to;
    }

    /// Goes past the tag that begins at `open`, whose name is at `name`, in what is readable of the page.
    fn tag(&mut self, part: &[u8], open: usize, name: usize) -> TagSpan {
        let span = scan_tag(part, name, &mut self.data_left);
        if !span.has_end && part.len() < self.html.len() {
            self.leave_out(open, span.end, "");
            return span;
        }
        for (from, to, stub) in &span.cuts {
            self.leave_out(*from, *to, stub);
        }
        span
    }
}

/// Copies the page without what no later stage reads: the bodies of scripts and styles, comments, drawings, surplus
/// attributes. That is often half of a page, and the tokenizer is the slowest stage.
fn reduce(html: &str) -> Reduced {
    let bytes = html.as_bytes();
    let out = StrTendril::with_capacity(u32::try_from(html.len()).unwrap_or(u32::MAX));
    let mut copy = Reducer { html, out, copied: 0, data_left: MAX_DATA_BYTES };
    let mut script_bytes = 0;
    let is_streamed = memmem::find(bytes, streamed::SIGN).is_some();
    let mut for_no_scripts = ForNoScripts::default();
    let mut place = Place::default();
    let mut at = 0;
    while let Some(step) = memchr(b'<', &bytes[at..]) {
        let open = at + step;
        at = open + 1;
        let part = for_no_scripts.part(bytes, open);
        let Some(&first) = bytes.get(at) else { break };
        match first {
            b'/' if bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic) => {
                // It may hold anything that a start tag may, as in `</div <!-- end -->`; most hold nothing.
                let after = at + part[at..].iter().skip(1).take_while(|c| c.is_ascii_alphanumeric()).count() + 1;
                at = if part.get(after) == Some(&b'>') { after + 1 } else { copy.tag(part, open, at + 1).end };
                if place.may_be_drawing() {
                    place.end(Name::at(part, open + 2));
                }
            }
            b'!' if is_streamed && bytes[open..].starts_with(streamed::END.as_bytes()) => {
                at = open + streamed::END.len();
                copy.leave_out(open, at, streamed::END_KEPT);
            }
            b'!' if bytes[at..].starts_with(b"!--") => {
                at = comment_end(part, at + 3);
                copy.leave_out(open, at, "");
            }
            b'!' if place.may_be_drawing() && bytes[at..].starts_with(b"![CDATA[") => {
                at = memmem::find(&part[at..], b"]]>").map_or(part.len(), |n| at + n);
            }
            // To the page, anything else that begins like this is a comment up to the first `>`.
            b'!' | b'?' | b'/' => {
                let end = memchr(b'>', &part[at..]).map(|n| at + n + 1);
                let is_doctype = bytes[at..].get(1).is_some_and(|c| c.eq_ignore_ascii_case(&b'd'));
                at = end.unwrap_or(part.len());
                if !(is_doctype && end.is_some()) {
                    copy.leave_out(open, at, "");
                }
            }
            c if c.is_ascii_alphabetic() => {
                let span = copy.tag(part, open, at);
                at = span.end;
                if !span.has_end {
                    continue;
                }
                // Nothing else that matters begins with another letter; within drawings all names do.
                if !matches!(first | 0x20, b'i' | b'm' | b'n' | b'p' | b's' | b't' | b'x') && !place.may_be_drawing() {
                    continue;
                }
                for_no_scripts.look(bytes, open + 1, at);
                let name = Name::at(part, open + 1);
                if place.start(name, span.is_closed) {
                    if name.is(b"svg")
                        && !span.is_closed
                        && let Some(end) = drawing_end(part, span.end)
                    {
                        at = end;
                        copy.leave_out(span.end, end, "");
                    }
                    continue;
                }
                let Some((raw, end)) = raw_text(part, open + 1, span.end) else { continue };
                if end == part.len() && part.len() < bytes.len() {
                    // What is plain text never ends, so it is none here.
                    if name.is(b"plaintext") {
                        copy.leave_out(open, span.end, "");
                    } else {
                        at = end;
                        let letters = part[open + 1..].iter().take_while(|c| c.is_ascii_alphabetic()).count();
                        let stub = format!("</{}>", &html[open + 1..open + 1 + letters]);
                        copy.leave_out(span.end, end, &stub);
                    }
                    continue;
                }
                at = end;
                let body = &bytes[span.end..end];
                match raw {
                    Raw::Script => {
                        script_bytes += body.len();
                        let tag = &html[open..span.end];
                        let data = tag.len() > 12 && (tag.contains("json") || tag.contains("math/tex"));
                        // State that a script keeps of what is for sale is read, too.
                        let data = data || memmem::find(body, b"\"price").is_some();
                        // `<!--` changes where the script ends; rare, so left to the tokenizer.
                        if !data && memmem::find(body, b"<!--").is_none() {
                            let from = html.floor_char_boundary((span.end + SCRIPT_STUB).min(end));
                            copy.leave_out(from, end, "");
                        }
                    }
                    Raw::Style => copy.leave_out(span.end, end, ""),
                    Raw::Text => {}
                }
            }
            _ => {}
        }
    }
    let Reducer { mut out, copied, .. } = copy;
    out.push_slice(&html[copied..]);
    Reduced { text: with_plain_lines(out), script_bytes, is_streamed }
}

/// Where the content of the last `noscript` ends. To a browser that runs scripts it is one text up to the first end tag, so
/// a page is whole to everybody whatever never ends in there, a frame in particular (`<noscript><iframe src="…"/></noscript>`).
/// Read as markup it would take the rest of the page with it, and be looked for to the page's end.
#[derive(Default)]
struct ForNoScripts {
    /// Bytes from the beginning of the page; 0 before the first one.
    end: usize,
    /// No other end tag follows on the page.
    is_last: bool,
}

impl ForNoScripts {
    /// Looks for the end, if the tag whose name is at `name` and that ends before `after` is a `noscript`.
    fn look(&mut self, bytes: &[u8], name: usize, after: usize) {
        const NAME: &[u8] = b"noscript";
        let is_one = |at: usize| {
            bytes.get(at..at + NAME.len()).is_some_and(|found| found.eq_ignore_ascii_case(NAME))
                && bytes.get(at + NAME.len()).is_none_or(|c| !c.is_ascii_alphanumeric())
        };
        if after <= self.end || self.is_last || !is_one(name) {
            return;
        }
        let end = memmem::find_iter(&bytes[after..], b"</").map(|at| after + at).find(|at| is_one(at + 2));
        self.is_last = end.is_none();
        self.end = end.unwrap_or(self.end);
    }

    /// The page as far as what begins at `at` may go: to the end of the content that it is in, if it is in one.
    fn part<'b>(&self, bytes: &'b [u8], at: usize) -> &'b [u8] {
        if at < self.end { &bytes[..self.end] } else { bytes }
    }
}

/// The same text with `\n` alone at the end of each line, which is what every reader of HTML makes of it.
fn with_plain_lines(text: StrTendril) -> StrTendril {
    let Some(first) = memchr(b'\r', text.as_bytes()) else { return text };
    let mut out = StrTendril::with_capacity(text.len32());
    let (mut copied, mut next) = (0, Some(first));
    while let Some(at) = next {
        out.push_slice(&text[copied..at]);
        out.push_slice("\n");
        copied = at + 1 + usize::from(text.as_bytes().get(at + 1) == Some(&b'\n'));
        next = memchr(b'\r', &text.as_bytes()[copied..]).map(|n| copied + n);
    }
    out.push_slice(&text[copied..]);
    out
}

fn comment_end(bytes: &[u8], from: usize) -> usize {
    // `<!-->` and `<!--->` are whole comments; `<!--!>` is not.
    for dash in memchr_iter(b'>', &bytes[from..]) {
        let gt = from + dash;
        if bytes[..gt].ends_with(b"--") || bytes[from..gt].ends_with(b"--!") {
            return gt + 1;
        }
    }
    bytes.len()
}

/// Where the `</svg>` of a plain drawing is; `None` if it holds another drawing, HTML, or no end.
fn drawing_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(step) = memchr(b'<', &bytes[at..]) {
        let lt = at + step;
        if bytes.get(lt + 1) == Some(&b'/') {
            let name = Name::at(bytes, lt + 2);
            if name.is(b"svg") {
                return Some(lt);
            }
            // A link may be the drawing's or the page's.
            if name.ends_around() || name.is(b"a") {
                return None;
            }
        } else {
            let name = Name::at(bytes, lt + 1);
            let is_more = [b"svg".as_slice(), b"foreignobject", b"script", b"style"].iter().any(|more| name.is(more));
            if is_more || name.breaks_out() || bytes.get(lt + 1) == Some(&b'!') || lt - from > MAX_DRAWING {
                return None;
            }
        }
        at = lt + 1;
    }
    None
}

/// Kinds of elements whose content is not markup.
#[derive(Clone, Copy)]
enum Raw {
    Script,
    Style,
    Text,
}

/// For the tag whose name starts at `name` and which ends at `after`: what its raw text is and where that ends.
fn raw_text(bytes: &[u8], name: usize, after: usize) -> Option<(Raw, usize)> {
    /// Which never ends.
    const PLAIN: &[u8] = b"plaintext";
    const RAW: [(&[u8], Raw); 9] = [
        (b"script", Raw::Script),
        (b"style", Raw::Style),
        (b"textarea", Raw::Text),
        (b"title", Raw::Text),
        (b"xmp", Raw::Text),
        (b"iframe", Raw::Text),
        (b"noframes", Raw::Text),
        (b"noembed", Raw::Text),
        (PLAIN, Raw::Text),
    ];
    let ends_name = |at: usize| matches!(bytes.get(at), Some(b'>' | b'/' | b' ' | b'\t' | b'\n' | b'\r' | 0x0c));
    let (raw, kind) = RAW.iter().find(|(raw, _)| {
        bytes.len() > name + raw.len()
            && bytes[name..name + raw.len()].eq_ignore_ascii_case(raw)
            && ends_name(name + raw.len())
    })?;
    let mut at = if *raw == PLAIN { bytes.len() } else { after };
    while let Some(step) = memchr(b'<', &bytes[at..]) {
        let lt = at + step;
        let close = lt + 2;
        if bytes.get(lt + 1) == Some(&b'/')
            && bytes.len() >= close + raw.len()
            && bytes[close..close + raw.len()].eq_ignore_ascii_case(raw)
            && ends_name(close + raw.len())
        {
            return Some((*kind, lt));
        }
        at = lt + 1;
    }
    Some((*kind, bytes.len()))
}

/// Walks one start tag the way the tokenizer does, noting what to leave out of it.
fn scan_tag(bytes: &[u8], name: usize, data_left: &mut usize) -> TagSpan {
    let mut span = TagSpan { end: bytes.len(), has_end: false, is_closed: false, cuts: Vec::new() };
    let mut at = name;
    while at < bytes.len() && !matches!(bytes[at], b'>' | b'/' | b' ' | b'\t' | b'\n' | b'\r' | 0x0c) {
        at += 1;
    }
    let mut attributes = 0usize;
    let mut surplus_from = None;
    loop {
        let before = at;
        while at < bytes.len() && matches!(bytes[at], b' ' | b'\t' | b'\n' | b'\r' | 0x0c | b'/') {
            at += 1;
        }
        let Some(&first) = bytes.get(at) else { break };
        if first == b'>' {
            (span.end, span.has_end, span.is_closed) = (at + 1, true, at > before && bytes[at - 1] == b'/');
            break;
        }
        attributes += 1;
        if attributes > MAX_ATTRIBUTES && surplus_from.is_none() {
            surplus_from = Some(at);
        }
        at += 1;
        while at < bytes.len() && !matches!(bytes[at], b'=' | b'>' | b'/' | b' ' | b'\t' | b'\n' | b'\r' | 0x0c) {
            at += 1;
        }
        let mut value = at;
        while value < bytes.len() && bytes[value].is_ascii_whitespace() {
            value += 1;
        }
        if bytes.get(value) != Some(&b'=') {
            continue;
        }
        value += 1;
        while value < bytes.len() && bytes[value].is_ascii_whitespace() {
            value += 1;
        }
        let (from, to) = match bytes.get(value) {
            Some(&q @ (b'"' | b'\'')) => {
                let from = value + 1;
                let to = memchr(q, &bytes[from..]).map_or(bytes.len(), |n| from + n);
                at = (to + 1).min(bytes.len());
                (from, to)
            }
            _ => {
                let mut to = value;
                while to < bytes.len() && bytes[to] != b'>' && !bytes[to].is_ascii_whitespace() {
                    to += 1;
                }
                at = to;
                (value, to)
            }
        };
        let length = to - from;
        if length > 1024 && bytes[from..from + 5].eq_ignore_ascii_case(b"data:") && surplus_from.is_none() {
            if length > *data_left {
                span.cuts.push((from, to, "data:,"));
            } else {
                *data_left -= length;
            }
        }
    }
    if let Some(from) = surplus_from {
        let to = if span.has_end { span.end - 1 } else { span.end };
        span.cuts.push((from, to.max(from), ""));
    }
    span
}

#[cfg(test)]
mod tests {
    use super::super::measure::Measures;
    use super::super::tree::Tag;
    use super::*;

    fn max_depth(dom: &Dom) -> usize {
        (0..dom.len()).map(|i| dom.ancestors(i).count()).max().unwrap_or(0)
    }

    fn reduced(html: &str) -> String {
        reduce(html).text.to_string()
    }

    #[test]
    fn markup_and_text_pass_unchanged() {
        let html = "<p title=it's class='a>b'>x</p><title>a<b</title><textarea><script></textarea><p>1 < 2 <svg><p>y";
        assert_eq!(reduced(html), html);
    }

    #[test]
    fn what_nobody_reads_is_left_out() {
        assert_eq!(
            reduced(
                "a<script>if (a<b && '<c \"') { x() }</script>b<!-- <z ' -->c<style>q{}</STYLE>d<svg w=1><path d=M0/></svg>e"
            ),
            "a<script>if (a<b &&</script>bc<style></STYLE>d<svg w=1></svg>e"
        );
        let data = "<script type='application/ld+json'>{\"name\": \"long enough\"}</script>";
        assert_eq!(reduced(data), data);
        assert_eq!(reduce("<script>12345678901234567890</script>").script_bytes, 20);
    }

    /// What is shown of a page.
    fn shown(html: &str) -> String {
        let dom = parse(html).dom;
        let measures = Measures::of(&dom, false);
        measures.text_left(&dom, &measures.invisible)
    }

    #[test]
    fn a_comment_begins_and_ends_where_browsers_say() {
        for (page, text) in [
            ("a<!-- x --!>b", "ab"),
            ("a<!-->b<!--->c -->", "abc -->"),
            ("a<!--!>x-->b", "ab"),
            ("a<!---!>x-->b", "ab"),
            ("a<!----!>b-->", "ab-->"),
            // Up to the first `>`, whatever they hold.
            ("a<![CDATA[<!-- ]]>b<p>c<!-- x -->d", "abcd"),
            ("a<?php echo '<!--' ?>b<p>c<!-- x -->d", "abcd"),
            ("a<!x '<!--'>b<p>c<!-- x -->d", "abcd"),
            ("a<!DOCTYPE '<!--'>b<p>c<!-- x -->d", "abcd"),
            ("a</<!-- >b<p>c<!-- x -->d", "abcd"),
            ("a</ <style>b<p>c<style>x</style>d", "abcd"),
            ("a</>b<!>c<?>d", "abcd"),
            ("a<noscript><?</noscript>b<p>cd", "abcd"),
        ] {
            assert_eq!(shown(page), text, "{page}");
        }
    }

    #[test]
    fn an_end_tag_holds_what_a_start_tag_may() {
        for end in ["</div <!-- end -->", "</div title='<!--'>", "</div title='<style>'>", "</div\n<!-- x -->"] {
            assert_eq!(shown(&format!("<div>a{end}b<p>c<!-- x --><style></style>d")), "abcd", "{end}");
        }
        assert_eq!(shown("<div>a</div<!-- end -->b<p>c"), "abc");
        let attributes: String = (0..100_000).map(|i| format!(" a{i}")).collect();
        assert!(reduced(&format!("<p>a</p{attributes}>b")).len() < 4000);
    }

    #[test]
    fn a_drawing_ends_where_the_page_goes_on() {
        for page in [
            "a<svg viewBox='0 0 1 1'/>b<p>c</p></svg>d",
            "a<svg><path d=M0><span>b</span></svg>c<p>d",
            "a<svg><path/><h2>b</h2><ul><li>c</ul></svg>d",
            "<div>a<svg><g></p>b</g></svg>cd",
            "<div>a<svg><g></br>b</g></svg>cd",
            "<button>a<svg><path></button>b<p>c</svg>d",
            // There, a style or a script is markup, and may end itself.
            "a<svg><defs><style/></defs></svg>b<p>c<style>x</style>d",
            "a<svg><style>x</svg>b<p>c<style>x</style>d",
            "a<svg><script href=x /></svg>b<p>c<p>d<script>x</script>",
            "a<math><style/></math>b<p>c<p>d",
            "a<svg><title/></svg>b<p>c<p>d",
            "a<svg><title>x</svg>b<p>c<!-- x -->d",
            "a<svg><desc><![CDATA[ > <!-- ]]></desc></svg>b<p>c<!-- x -->d",
            // In a label of it and after it they are the page's again.
            "a<svg><foreignObject><style><b></style></foreignObject><style/></svg>b<p>c<style><i></style>d",
            "a<svg><foreignObject><div><svg><g/></svg></div></foreignObject><style/></svg>b<p>c<style>x</style>d",
            "a<svg><g></g></svg>b<style><!-- </style>c<p>d",
        ] {
            assert_eq!(shown(page), "abcd", "{page}");
        }
    }

    #[test]
    fn what_is_one_text_is_no_markup() {
        assert_eq!(shown("a<noembed><!-- x</noembed>b<p>c"), "abc");
        assert_eq!(shown("a<plaintext>b<!-- c --><script>d</script>"), "ab<!-- c --><script>d</script>");
        assert_eq!(shown("a<noscript><plaintext></noscript>b<p>c"), "abc");
    }

    #[test]
    fn a_script_that_hides_its_end_in_a_comment_is_left_to_the_tokenizer() {
        let html = "<script><!-- <script> </script> --></script><p>t";
        assert_eq!(reduced(html), html);
    }

    #[test]
    fn what_never_ends_within_a_noscript_ends_with_it() {
        let page = |inside: &str| format!("<p>a<noscript>{inside}</noscript><p>b<noscript>c</noscript>d");
        for (inside, kept) in [
            ("<iframe src=x />", "<iframe src=x /></iframe>"),
            ("<IFRAME src=x>y", "<IFRAME src=x></IFRAME>"),
            ("x<!-- y", "x"),
            ("x<img src=\"y", "x"),
            ("<style>p { color: red }", "<style></style>"),
            ("<iframe></iframe><b>x</b>", "<iframe></iframe><b>x</b>"),
        ] {
            assert_eq!(reduced(&page(inside)), page(kept), "{inside}");
            let dom = parse(&page(inside)).dom;
            let text: String = (0..dom.len()).map(|i| dom.text(i)).collect();
            assert!(text.ends_with("bcd"), "{inside}: {text}");
        }
        // The last one has no end, and a name that only begins alike is another.
        assert_eq!(reduced("<noscript><iframe>x"), "<noscript><iframe>x");
        assert_eq!(reduced("<noscripts><iframe></noscript>x"), "<noscripts><iframe></noscript>x");
        assert_eq!(reduced("<noscript><iframe>a</noscripts></noscript>x"), "<noscript><iframe></iframe></noscript>x");
    }

    #[test]
    fn many_that_have_no_end_are_looked_for_once() {
        let page = "<noscript>".repeat(200_000);
        assert_eq!(reduced(&page).len(), page.len());
        for inside in ["<iframe>", "<a b='", "<!--"] {
            let page = format!("<noscript>{inside}</noscript>").repeat(200_000);
            assert!(reduced(&page).starts_with("<noscript>"));
        }
        let ended = format!("{}</noscript>x", "<noscript></nos>".repeat(100_000));
        assert_eq!(reduced(&ended).len(), ended.len());
    }

    #[test]
    fn surplus_attributes_are_dropped_and_the_text_stays() {
        let attrs: String = (0..1000).map(|i| format!(" a{i}='{i}>'")).collect();
        let page = format!("<div{attrs}>text</div>");
        let dom = parse(&page).dom;
        let div = (0..dom.len()).find(|&i| dom.tag(i) == Tag::Div).expect("the div is there");
        assert_eq!(dom.element(div).expect("an element").attrs.len(), MAX_ATTRIBUTES);
        assert_eq!(dom.text_of(div), "text");
    }

    #[test]
    fn deep_nesting_is_capped_without_losing_text_or_later_structure() {
        let page = format!("{}deep{}<p>after</p>", "<div>".repeat(5000), "</div>".repeat(5000));
        let dom = parse(&page).dom;
        assert!(max_depth(&dom) <= 520);
        assert!(dom.text_of(0).contains("deep"));
        let p = (0..dom.len()).find(|&i| dom.tag(i) == Tag::P).expect("the paragraph is there");
        assert!(dom.ancestors(p).count() <= 3, "the paragraph is outside the divs");
    }

    #[test]
    fn unclosed_formatting_does_not_multiply() {
        let page: String = (0..20_000).map(|i| format!("<p><font size={i}>x")).collect();
        let parsed = parse(&page);
        assert!(parsed.dom.len() <= MAX_NODES + 2000);
    }

    #[test]
    fn huge_data_urls_become_stubs() {
        let page = format!("<img src='data:image/png;base64,{}' alt=a>", "A".repeat(MAX_DATA_BYTES + 10));
        assert!(reduced(&page).len() < 100);
    }

    #[test]
    fn an_unfinished_tag_does_not_loop() {
        for page in ["<", "<a", "<a b", "<a b=", "<a b='", "<!--", "<script", "<script>", "<a/", "</"] {
            let _ = parse(page);
        }
    }
}
