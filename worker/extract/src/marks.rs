//! What manuals and blogs put around their text for the reader's mouse: permalink signs, rows of previous and next,
//! breadcrumbs, edit links, version pickers, "on this page". Nobody who copies the text by hand would take it along.
//!
//! A name alone proves nothing here either: each rule also asks for what the thing does, such as a link to the page
//! itself, or links named after steps with hardly a word between them. `docs/extraction.md` has the evidence.

use html5ever::local_name;

use super::address::{Addresses, is_first_page};
use super::measure::Measures;
use super::tree::{Dom, Tag};

/// Signs that stand for "link to this place".
const SIGNS: &[&str] = &["¶", "#", "§", "∞", "🔗", "⚓", "☍", "⁋", "link", "permalink", "anchor", "[link]"];
/// Classes of such links, as parts of names.
const LINK_CLASSES: &[&str] =
    &["headerlink", "header-link", "anchor", "permalink", "hash-link", "heading-link", "selflink"];
/// Longest text of a permalink, characters: "Permalink to this definition" and its like.
const LONGEST_LABEL: usize = 32;
/// Words of links that lead a step on. The first five make a row of steps, the others only belong to one.
const STEPS: &[&str] =
    &["prev", "previous", "next", "zurück", "weiter", "up", "home", "top", "contents", "index", "front", "tail"];
/// Longest row of steps, characters without whitespace: six links with the titles of chapters.
const LONGEST_ROW: u32 = 400;
/// Links to steps, and lists under a title, that are looked at, of one page.
const MOST_LOOKS: usize = 64;
/// Nodes of a row or a box at most.
const MOST_NODES: usize = 400;
/// What a link says that opens the page's source for writing or reading.
const EDIT: &[&str] = &[
    "edit this page",
    "edit this article",
    "edit this section",
    "edit on github",
    "edit on gitlab",
    "edit this page on github",
    "edit page",
    "improve this page",
    "improve this doc",
    "suggest an edit",
    "suggest edits",
    "view page source",
    "view source on github",
    "show source",
    "[source]",
    "report an issue with this page",
];
/// What stands over a box of links within the page.
const ON_THIS_PAGE: &[&str] = &[
    "on this page",
    "in this article",
    "in this page",
    "in this section",
    "in this post",
    "contents",
    "contents of this page",
    "page contents",
    "table of contents",
    "quick links",
    "jump to",
    "auf dieser seite",
    "inhaltsverzeichnis",
    "sur cette page",
    "en esta página",
];

/// Whether link `i` only offers its own place as an address.
pub fn is_permalink(dom: &Dom, addresses: &Addresses, i: usize) -> bool {
    let Some(href) = dom.attr(i, &local_name!("href")) else { return false };
    if addresses.own_fragment(href).is_none() || dom.end(i) - i > 12 {
        return false;
    }
    let text = dom.text_of(i);
    let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{200b}' | '\u{fe0e}' | '\u{fe0f}'));
    if text.chars().count() > LONGEST_LABEL {
        return false;
    }
    let low = text.to_lowercase();
    let is_sign = SIGNS.contains(&low.as_str());
    let class = dom.class(i).to_ascii_lowercase();
    let is_named = LINK_CLASSES.iter().any(|c| class.contains(c));
    let says_so = low.is_empty()
        || is_sign
        || ["permalink", "link to ", "direct link", "anchor"].iter().any(|w| low.starts_with(w));
    if !(is_sign || is_named) {
        return false;
    }
    // A picture that jumps within the page is a picture, unless it is named.
    if low.is_empty() && !is_named {
        return false;
    }
    let titled = dom.ancestors(i).take(4).find(|&a| is_titled(dom, a));
    match titled {
        // A link that is the whole of a heading is its text and not a mark on it.
        Some(up) => (is_sign || is_named && says_so) && holds_more(dom, up, i) || is_named && says_so && low.is_empty(),
        None => {
            is_named
                && says_so
                && (is_sign || low.is_empty() || holds_more(dom, dom.parent(i), i) || beside_heading(dom, i))
        }
    }
}

/// Whether link `i` is a sign after a text that has ended, as PostgreSQL's release notes lead to each change.
fn is_end_sign(dom: &Dom, m: &Measures, i: usize) -> bool {
    if m.text[i] != 1 || dom.end(i) - i > 4 || !matches!(dom.text_of(i).trim(), "¶" | "§") {
        return false;
    }
    let Some(block) = dom.ancestors(i).find(|&up| dom.tag(up).is_block()) else { return false };
    let is_other = |j: usize| dom.text(j).chars().any(|c| !c.is_whitespace() && !matches!(c, '¶' | '§'));
    let before = (block..i).rev().take(MOST_NODES).any(is_other);
    before && !(dom.end(i)..dom.end(block)).take(MOST_NODES).any(is_other)
}

/// Whether link `i` is a site's mark above the page: nothing but a picture that leads to the first page of a site.
fn is_logo(dom: &Dom, m: &Measures, i: usize, heading_seen: bool) -> bool {
    if heading_seen || m.text[i] > 0 || dom.end(i) - i > 16 {
        return false;
    }
    let is_first = dom.attr(i, &local_name!("href")).is_some_and(is_first_page);
    is_first && (i..dom.end(i)).any(|j| dom.tag(j) == Tag::Img)
}

/// Whether an element is one that permalinks stand in: a title, a term, a caption, a cell.
fn is_titled(dom: &Dom, i: usize) -> bool {
    let tag = dom.tag(i);
    tag.heading_level().is_some()
        || matches!(tag, Tag::Dt | Tag::Caption | Tag::Figcaption | Tag::Th | Tag::Td | Tag::Summary | Tag::Legend)
}

/// Whether `up` has text besides that of `i`; terms such as `>>>` are signs only.
fn holds_more(dom: &Dom, up: usize, i: usize) -> bool {
    (up..dom.end(up).min(up + MOST_NODES))
        .any(|j| !(i..dom.end(i)).contains(&j) && dom.text(j).chars().any(|c| !c.is_whitespace()))
}

/// Whether a heading stands right before or after `i`.
fn beside_heading(dom: &Dom, i: usize) -> bool {
    dom.children(dom.parent(i)).take(16).any(|c| dom.tag(c).heading_level().is_some())
}

/// Whether link `i`, within a heading, leads to that very heading.
pub fn is_own_heading(dom: &Dom, addresses: &Addresses, i: usize) -> bool {
    let Some(fragment) = dom.attr(i, &local_name!("href")).and_then(|h| addresses.own_fragment(h)) else {
        return false;
    };
    if fragment.is_empty() {
        return false;
    }
    let named = |j: usize| {
        dom.attr(j, &local_name!("id")) == Some(fragment) || dom.attr(j, &local_name!("name")) == Some(fragment)
    };
    let Some(heading) = dom.ancestors(i).take(4).find(|&a| dom.tag(a).heading_level().is_some()) else { return false };
    (heading..dom.end(heading).min(heading + 40)).any(named) || named(dom.parent(heading))
}

/// Adds to `dropped` what surrounds the main content of a manual or a blog.
pub fn apply(dom: &Dom, m: &Measures, addresses: &Addresses, dropped: &mut [bool]) {
    let (mut looks, mut walks) = (0, 0);
    let mut heading_seen = false;
    let mut i = m.body + 1;
    let end = dom.end(m.body);
    while i < end {
        if dropped[i] || matches!(dom.tag(i), Tag::Pre | Tag::Textarea) {
            i = dom.end(i);
            continue;
        }
        let tag = dom.tag(i);
        heading_seen |= tag == Tag::H1;
        match tag {
            Tag::A => {
                let first = first_letter(dom, i);
                if is_permalink(dom, addresses, i)
                    || is_edit(dom, i, first)
                    || is_source(dom, i)
                    || is_end_sign(dom, m, i)
                {
                    drop_with_separator(dom, i, dropped);
                } else if is_logo(dom, m, i, heading_seen) {
                    dropped[i] = true;
                } else if looks < MOST_LOOKS
                    && m.text[i] > 0
                    && (m.text[i] <= 24 && begins(STEPS, first) || dom.attr(i, &local_name!("rel")).is_some())
                    && step_of(dom, i).is_some_and(|n| n < 5)
                {
                    looks += 1;
                    if let Some(row) = row_of_steps(dom, m, i) {
                        dropped[row] = true;
                        i = dom.end(row).max(i + 1);
                        continue;
                    }
                }
            }
            Tag::Div | Tag::Table | Tag::Ul | Tag::Ol | Tag::P | Tag::Span | Tag::Dl | Tag::Section | Tag::Address
                if is_named_row(dom, m, i)
                    || (!heading_seen && is_breadcrumb(dom, m, i))
                    || is_version_picker(dom, m, addresses, i)
                    || is_contents(dom, m, addresses, i, dropped, &mut walks) =>
            {
                dropped[i] = true;
                i = dom.end(i);
                continue;
            }
            Tag::Button if is_copy(dom, i) => dropped[i] = true,
            _ => {}
        }
        i += 1;
    }
}

/// Drops `i` and a separator left before or after it: `1.36.0 · Source`.
fn drop_with_separator(dom: &Dom, i: usize, dropped: &mut [bool]) {
    dropped[i] = true;
    let siblings: Vec<usize> = dom.children(dom.parent(i)).take(64).collect();
    let Some(at) = siblings.iter().position(|&c| c == i) else { return };
    let is_separator = |c: usize| dom.tag(c) == Tag::Text && matches!(dom.text(c).trim(), "·" | "|" | "•");
    if let Some(before) = at.checked_sub(1).map(|n| siblings[n]).filter(|&c| is_separator(c)) {
        dropped[before] = true;
    } else if let Some(&after) = siblings.get(at + 1).filter(|&&c| at == 0 && is_separator(c)) {
        dropped[after] = true;
    }
}

/// The first letter or digit of what `i` says, in lower case. Most links are told apart from all the words that are
/// looked for here by it alone, without their text put together.
fn first_letter(dom: &Dom, i: usize) -> Option<char> {
    let first = (i..dom.end(i)).find_map(|j| dom.text(j).chars().find(|c| c.is_alphanumeric()));
    first.and_then(|c| c.to_lowercase().next())
}

/// Whether one of the words, whose first letters are all ASCII, begins with that letter.
fn begins(words: &[&str], first: Option<char>) -> bool {
    let first = first.and_then(|c| u8::try_from(c).ok());
    first.is_some_and(|c| words.iter().any(|w| w.trim_start_matches('[').as_bytes().first() == Some(&c)))
}

/// Whether a link, with its first letter, opens the page for editing: said by its words, with no sentence around it.
fn is_edit(dom: &Dom, i: usize, first: Option<char>) -> bool {
    if dom.end(i) - i > 16 || !begins(EDIT, first) {
        return false;
    }
    let text = words(&dom.text_of(i));
    if text.is_empty() || text.len() > 40 || !EDIT.contains(&text.as_str()) {
        return false;
    }
    let around = dom.ancestors(i).find(|&a| dom.tag(a).is_block()).unwrap_or(0);
    // "Edit this page to correct it" within a paragraph is prose.
    let others = (around..dom.end(around).min(around + 64))
        .filter(|j| !(i..dom.end(i)).contains(j))
        .flat_map(|j| dom.text(j).split_whitespace())
        .filter(|w| w.chars().any(char::is_alphanumeric))
        .take(6)
        .count();
    text == "[source]" || others < 6
}

/// Whether a link leads to the source of an item that a manual describes: rustdoc, Sphinx.
fn is_source(dom: &Dom, i: usize) -> bool {
    let is_named = dom.class(i).split_ascii_whitespace().any(|w| matches!(w, "src" | "srclink" | "viewcode-link"));
    is_named && matches!(words(&dom.text_of(i)).as_str(), "source" | "[src]" | "[source]")
}

/// Whether a button only copies.
fn is_copy(dom: &Dom, i: usize) -> bool {
    let text = words(&dom.text_of(i));
    text.len() < 30 && (text == "copy" || text.starts_with("copy ")) && dom.end(i) - i < 16
}

/// Words of a text in lower case, one space between, arrows and other signs at the ends left off.
fn words(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    text.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '[' | ']')).to_owned()
}

/// Which step a link's text names.
fn step(text: &str) -> Option<usize> {
    // `next()` and `__next__` are names in code.
    if text.contains(['(', '_', '.', '`']) {
        return None;
    }
    let low = words(text);
    let low = low.trim_matches(['[', ']']);
    let low = low
        .strip_suffix(" page")
        .or_else(|| low.strip_suffix(" chapter"))
        .or_else(|| low.strip_suffix(" topic"))
        .unwrap_or(low);
    let low = if low.starts_with("prev-tail") { "prev" } else { low };
    STEPS.iter().position(|w| low == *w)
}

/// Which step a link names: by what it is for, as Texinfo says of links named after chapters, or by its text.
fn step_of(dom: &Dom, i: usize) -> Option<usize> {
    let mut kinds = dom.attr(i, &local_name!("rel")).unwrap_or_default().split_ascii_whitespace();
    kinds.find_map(|kind| STEPS.iter().position(|w| kind == *w)).or_else(|| step(&dom.text_of(i)))
}

/// The row of previous, up and next that link `i` stands in: the widest block around it of which nearly all is such.
fn row_of_steps(dom: &Dom, m: &Measures, i: usize) -> Option<usize> {
    let mut found = None;
    for up in dom.ancestors(i).take(8) {
        let tag = dom.tag(up);
        if up == m.body
            || m.text[up] > LONGEST_ROW
            || dom.end(up) - up > MOST_NODES
            || tag.heading_level().is_some()
            || tag == Tag::Main
        {
            break;
        }
        if !(tag.is_block()
            || matches!(tag, Tag::Table | Tag::Tbody | Tag::Tr | Tag::Td | Tag::Span | Tag::Center | Tag::Font))
        {
            continue;
        }
        if is_row(dom, m, up) {
            found = Some(up);
        }
    }
    found
}

/// Whether block `up` is a row of steps: two links that name one, a way forward or back among them, and no prose.
fn is_row(dom: &Dom, m: &Measures, up: usize) -> bool {
    let (mut steps, mut turns) = (0, 0);
    for j in up..dom.end(up) {
        match dom.tag(j) {
            Tag::Pre | Tag::Code | Tag::Img | Tag::H1 | Tag::H2 | Tag::H3 | Tag::Input => return false,
            Tag::A => {
                if let Some(n) = step_of(dom, j) {
                    steps += 1;
                    turns += u32::from(n < 5);
                }
            }
            // A word of ten and more words in one piece is a sentence, not a title.
            Tag::Text if dom.text(j).split_whitespace().count() > 14 => return false,
            _ => {}
        }
    }
    let plain = m.text[up] - m.links[up];
    // Titles of the neighbours may stand beside the links that lead there.
    turns > 0 && steps >= 2 && (plain <= 40 || plain <= 160 && dom.tag(up) != Tag::P && m.text[up] > 0 && steps >= 3)
}

/// Whether `i` is a row of steps by the name its generator gives it: DocBook, TeX4ht, Texinfo, AsciiDoctor, Javadoc; or the
/// project's name, the date and the links to its parts that Doxygen puts around each page.
fn is_named_row(dom: &Dom, m: &Measures, i: usize) -> bool {
    let class = dom.class(i);
    if dom.tag(i) == Tag::Address && class == "footer"
        || dom.tag(i) == Tag::Div && dom.attr(i, &local_name!("id")) == Some("titlearea")
    {
        return m.text[i] < 300;
    }
    if class.is_empty() {
        return false;
    }
    if class == "summary" && dom.class(dom.parent(i)) == "header" && m.text[i] < 300 {
        return m.links[i] * 10 >= m.text[i] * 7;
    }
    let is_named = class.split_ascii_whitespace().any(|w| {
        matches!(
            w,
            "navheader"
                | "navfooter"
                | "crosslinks"
                | "crosslinks-top"
                | "crosslinks-bottom"
                | "nav-panel"
                | "navpath"
                | "topNav"
                | "bottomNav"
                | "subNav"
                | "sub-nav"
                | "navPadding"
                | "rst-versions"
                | "rst-footer-buttons"
                | "rustdoc-breadcrumbs"
                | "mw-editsection"
                | "nextprev"
                | "prevnext"
                | "prev-next"
                | "viewcode-link"
        )
    });
    is_named && m.text[i] < 1000 && !(i..dom.end(i)).any(|j| matches!(dom.tag(j), Tag::H1 | Tag::Pre))
}

/// Whether `i` is a way down to this page: links with `»` or `>` between them, before the page's heading.
fn is_breadcrumb(dom: &Dom, m: &Measures, i: usize) -> bool {
    if m.text[i] == 0 || m.text[i] > 200 || m.links[i] == 0 || dom.end(i) - i > 80 {
        return false;
    }
    let (mut links, mut signs, mut plain) = (0, 0, 0);
    let mut link_end = i;
    for j in i..dom.end(i) {
        match dom.tag(j) {
            Tag::A => {
                links += 1;
                link_end = link_end.max(dom.end(j));
            }
            Tag::Text if j >= link_end => {
                let text = dom.text(j);
                signs += text.chars().filter(|c| matches!(c, '»' | '›' | '→' | '>' | '❯' | '▸')).count();
                plain += text.chars().filter(|c| c.is_alphanumeric()).count();
            }
            Tag::H1 | Tag::H2 | Tag::Pre | Tag::Img => return false,
            _ => {}
        }
    }
    links >= 2 && signs + 1 >= links && plain <= 60
}

/// Whether `i` leads to the same page in other versions.
fn is_version_picker(dom: &Dom, m: &Measures, addresses: &Addresses, i: usize) -> bool {
    let file = addresses.page_file();
    if file.is_empty() || m.text[i] == 0 || m.text[i] > 300 || m.text[i] - m.links[i] > 40 || dom.end(i) - i > 200 {
        return false;
    }
    let (mut versions, mut links) = (0, 0);
    for j in i..dom.end(i) {
        match dom.tag(j) {
            Tag::A => {
                links += 1;
                let leads_here = dom
                    .attr(j, &local_name!("href"))
                    .is_some_and(|h| h.split(['#', '?']).next().unwrap_or("").rsplit('/').next() == Some(file));
                versions += u32::from(leads_here && is_version(&dom.text_of(j)));
            }
            Tag::Pre | Tag::H1 | Tag::H2 => return false,
            _ => {}
        }
    }
    versions >= 2 && versions * 4 >= links * 3
}

/// Whether a link's text is a version: `3.11`, `v2`, `16`, `latest`.
fn is_version(text: &str) -> bool {
    let low = words(text);
    let first = low.split([' ', '(']).next().unwrap_or("");
    let digits = first.strip_prefix('v').unwrap_or(first);
    matches!(first, "latest" | "stable" | "dev" | "devel" | "current" | "main" | "master" | "nightly" | "development")
        || digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.len() <= 12
            && digits.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
}

/// Whether `i` is a box of links within the page under words such as "On this page". The title may stand in the box or
/// right before it; it goes along.
fn is_contents(
    dom: &Dom,
    m: &Measures,
    addresses: &Addresses,
    i: usize,
    dropped: &mut [bool],
    walks: &mut usize,
) -> bool {
    let tag = dom.tag(i);
    // A chapter with one section has a table of contents, too, where its generator says so; its title is half of it.
    let (least, title) = if dom.class(i) == "toc" { (1, 24) } else { (2, 0) };
    if !matches!(tag, Tag::Div | Tag::Ul | Tag::Ol | Tag::Section)
        || m.links[i] == 0
        || m.links[i] * 10 < m.text[i].saturating_sub(title) * 7
        || dom.end(i) - i > 8 * MOST_NODES
    {
        return false;
    }
    // The first text says what the box is: its own, or that of what stands right before it.
    let is_title =
        |j: usize| m.text[j] > 0 && m.text[j] <= 24 && ON_THIS_PAGE.contains(&words(&dom.text_of(j)).as_str());
    let first = (i + 1..dom.end(i)).find(|&j| dom.tag(j) == Tag::Text && m.text[j] > 0);
    let inside = first.is_some_and(is_title);
    // What stands before is found from the first child on, so this is done for a bounded number of lists.
    let before = (!inside && matches!(tag, Tag::Ul | Tag::Ol) && *walks < MOST_LOOKS)
        .then(|| {
            *walks += 1;
            dom.children(dom.parent(i)).take_while(|&c| c < i).filter(|&c| m.text[c] > 0 && !dropped[c]).last()
        })
        .flatten()
        .filter(|&c| is_title(c));
    if !inside && before.is_none() {
        return false;
    }
    let links: Vec<&str> =
        (i..dom.end(i)).filter(|&j| dom.tag(j) == Tag::A).filter_map(|j| dom.attr(j, &local_name!("href"))).collect();
    if links.len() < least || !links.iter().all(|h| addresses.own_fragment(h).is_some()) {
        return false;
    }
    if let Some(title) = before {
        dropped[title] = true;
    }
    true
}

#[cfg(test)]
mod tests;
