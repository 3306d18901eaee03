//! `onlyMainContent`: leaves out what surrounds the content, recall first.
//!
//! Elements go by semantics (`nav`, roles), by position (a footer of the page, not of an article) and by what their class
//! or id hints at together with how much of the page they hold. Never an element with the page's heading or a large part
//! of its text: a class name alone proves nothing.

use foldhash::{HashMap, HashMapExt as _};
use html5ever::local_name;
use memchr::memmem;

use super::measure::{Measures, count, is_title};
use super::more;
use super::options;
use super::tokens::{Cache, Hints};
use super::tree::{Dom, Tag};

/// A footer goes however long it is where so many characters are outside it.
const LEAST_ABOVE_FOOT: u32 = 400;

/// A `nav` of more than half of the page still goes from a column beside it if more than this part of it is links, and so
/// many characters are outside: manuals list all of their pages there.
const LONG_MENU: (f32, u32) = (0.5, 250);

/// The same for a header, menus and all.
const LONG_HEADER: (f32, u32) = (0.5, 1000);

/// A form that wants the reader's address may be longer where so many characters are outside.
const LEAST_BESIDE_FORM: u32 = 1000;

/// Characters of what is said about the site.
const LONGEST_NOTICE: u32 = 800;

/// What is named as hidden stays where it is more than this part of the page: scripts show it.
const MOST_HIDDEN: f32 = 0.2;

/// A dialog that says it is closed goes up to this part of the page.
const MOST_CLOSED: f32 = 0.4;

/// Characters that are no links, beside the foot of a page that has nothing else.
const LITTLE_BESIDE: u32 = 200;

/// Characters of a button.
const LONGEST_BUTTON: u32 = 12;

/// Sections beside one that are called by their headings, from which on all are; most that are looked at; and most nodes among
/// which they are looked for.
const LEAST_SECTIONS: usize = 2;
const MOST_SECTIONS: usize = 32;
const MOST_BESIDE: usize = 512;

/// Nodes of a cell that says one thing.
const MOST_OF_CELL: usize = 64;

/// Nodes of an element that are looked through for one of a kind.
const MOST_NODES: usize = 4096;

/// What the filter may take out.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Everything around the main content.
    pub main_only: bool,
    /// Advertisements and consent banners.
    pub ads: bool,
    /// Comments are what the page is for: a forum or the like.
    pub discussion: bool,
    /// The page says that it is one product's.
    pub product: bool,
}

/// Adds to `dropped` the subtree roots that are not content. Says whether the page is read as one article.
pub fn apply(dom: &Dom, m: &Measures, rules: Rules, dropped: &mut [bool]) -> bool {
    let total = m.total();
    if total == 0 || !(rules.main_only || rules.ads) {
        return false;
    }
    let mut kept = Protected::of(dom, m);
    let mut cache = Cache::default();
    // First, as a dialog of consent may be longer than the page: all else is measured by what is left.
    kept.total -= consent(dom, m, &kept, &mut cache, dropped).min(total - 1);
    let groups = groups(dom, m);
    if rules.main_only {
        headed_sections(dom, m, &kept, dropped);
        hidden_by_name(dom, m, &kept, &mut cache, dropped);
        options::leave_out(dom, m, kept.total, dropped);
    }
    let mut article = rules.main_only && !rules.discussion && is_article(dom, m, dropped, kept.total);
    // Ends of the innermost open elements that make footers and headers their own.
    let mut article_end = 0;
    let mut related = Vec::new();
    let mut main_end = 0;
    let mut i = m.body + 1;
    let end = dom.end(m.body);
    while i < end {
        if dropped[i] {
            i = dom.end(i);
            continue;
        }
        let tag = dom.tag(i);
        if !tag.is_element() {
            i += 1;
            continue;
        }
        let Some(element) = dom.element(i) else {
            i += 1;
            continue;
        };
        let mut class = "";
        let mut id = "";
        let mut role = "";
        for a in &element.attrs {
            match a.name.local {
                local_name!("class") => class = &a.value,
                local_name!("id") => id = &a.value,
                local_name!("role") => role = &a.value,
                _ => {}
            }
        }
        let mut hints = Hints::default();
        if !class.is_empty() {
            hints = cache.of(class);
        }
        if !id.is_empty() {
            let of_id = cache.of(id);
            if !of_id.is_none() && !is_slug(dom, i, id) {
                hints = hints.or(of_id);
            }
        }
        let group = if hints.is_none() { None } else { groups.get(class) };
        let is_repeated = group.is_some_and(|g| g.count >= 4);
        let is_listed = group.is_some_and(|g| g.count >= 4 && g.text * 5 >= total);
        let place = Surroundings { in_article: i < article_end, in_main: i < main_end };
        let candidate = Candidate {
            dom,
            i,
            tag,
            role,
            hints,
            is_repeated,
            is_listed,
            place,
            text: m.text[i],
            rest: kept.total.saturating_sub(m.text[i]),
            share: m.text[i] as f32 / kept.total as f32,
            density: m.link_density(i),
        };
        if candidate.is_boilerplate(rules, kept.heading[i], article) {
            if !article && !rules.product && hints.any(Hints::RELATED) {
                let other = Candidate { hints: hints.without(Hints::RELATED), ..candidate };
                if !other.is_boilerplate(rules, kept.heading[i], article) {
                    related.push(i);
                }
            }
            dropped[i] = true;
            i = dom.end(i);
            continue;
        }
        // Where comments are most of the page, they are what it is for, and those within them with it.
        article &= !(hints.any(Hints::COMMENTS) && candidate.share >= 0.5 && candidate.rest < 1500);
        match tag {
            Tag::Article => article_end = article_end.max(dom.end(i)),
            Tag::Main => main_end = main_end.max(dom.end(i)),
            _ if role == "main" => main_end = main_end.max(dom.end(i)),
            _ => {}
        }
        i += 1;
    }
    keep_lists(dom, m, &related, dropped);
    article
}

/// Whether a page shows nothing but its foot, and menus and a few words beside it: it has no main content then, as where a
/// script that failed was to bring it.
pub fn is_only_around(dom: &Dom, m: &Measures) -> bool {
    let (mut foot, mut beside, mut i) = (0, 0, m.body + 1);
    while i < dom.end(m.body) {
        if m.invisible[i] {
            i = dom.end(i);
            continue;
        }
        match dom.tag(i) {
            Tag::Footer => {
                foot += m.text[i];
                i = dom.end(i);
                continue;
            }
            Tag::Text => beside += m.text[i] - m.links[i],
            _ => {}
        }
        i += 1;
    }
    foot * 2 > m.total() && beside < LITTLE_BESIDE
}

/// Takes back what was left out for a name alone, such as "recirc", where that is more than all the rest: the page is a
/// list of it.
fn keep_lists(dom: &Dom, m: &Measures, named: &[usize], dropped: &mut [bool]) {
    if named.is_empty() {
        return;
    }
    let text: u32 = named.iter().map(|&i| m.text[i]).sum();
    let (mut rest, mut i) = (0, m.body);
    while i < dom.end(m.body) {
        if dropped[i] {
            i = dom.end(i);
            continue;
        }
        if dom.tag(i) == Tag::Text {
            rest += m.text[i];
        }
        i += 1;
    }
    if text > rest {
        named.iter().for_each(|&i| dropped[i] = false);
    }
}

/// Whether an id is made of the words of the heading that the element is or begins with, as manuals do: a heading has the same
/// ones or links to it, and so do the sections beside one that begins with it. It says what is written there, not what the
/// element is for.
fn is_slug(dom: &Dom, i: usize, id: &str) -> bool {
    let Some(heading) = first_heading(dom, i) else { return false };
    let links_here = |j: usize| {
        dom.tag(j) == Tag::A && dom.attr(j, &local_name!("href")).and_then(|h| h.strip_prefix('#')) == Some(id)
    };
    if (heading + 1..dom.end(heading).min(heading + 40)).any(links_here) {
        return true;
    }
    has_words_of(id, &dom.text_of(heading)) && (heading == i || is_one_of_sections(dom, i))
}

/// The heading that an element is or begins with.
fn first_heading(dom: &Dom, i: usize) -> Option<usize> {
    (i..dom.end(i).min(i + 16)).find(|&j| dom.tag(j).heading_level().is_some())
}

/// Whether other elements of its kind beside `i` are called by the headings that they begin with, too.
fn is_one_of_sections(dom: &Dom, i: usize) -> bool {
    let is_called = |j: &usize| {
        let id = dom.attr(*j, &local_name!("id")).filter(|id| !id.is_empty());
        id.zip(first_heading(dom, *j)).is_some_and(|(id, heading)| has_words_of(id, &dom.text_of(heading)))
    };
    let beside = dom.children(dom.parent(i)).take(MOST_BESIDE);
    let others = beside.filter(|&j| j != i && dom.tag(j) == dom.tag(i)).take(MOST_SECTIONS);
    others.filter(is_called).take(LEAST_SECTIONS).count() == LEAST_SECTIONS
}

/// Whether an id has the letters of a text, whatever stands between its words, a number before them aside.
fn has_words_of(id: &str, text: &str) -> bool {
    let letters =
        |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let (id, text) = (letters(id), letters(text));
    !id.is_empty() && text.strip_suffix(&id).is_some_and(|number| number.chars().all(char::is_numeric))
}

#[derive(Clone, Copy)]
struct Surroundings {
    in_article: bool,
    in_main: bool,
}

/// Per node: whether it holds the page's heading or its main element.
struct Protected {
    heading: Vec<bool>,
    total: u32,
}

impl Protected {
    fn of(dom: &Dom, m: &Measures) -> Self {
        let mut heading = vec![false; dom.len()];
        let title = (0..dom.len())
            .find(|&i| dom.tag(i) == Tag::Title)
            .map(|i| dom.text_of(i).to_lowercase())
            .unwrap_or_default();
        let mut best: Option<(u32, usize)> = None;
        for i in m.body..dom.end(m.body) {
            if is_title(dom, i) && m.text[i] > 0 {
                let text = dom.text_of(i).to_lowercase();
                let chrome = dom.ancestors(i).any(|a| matches!(dom.tag(a), Tag::Nav | Tag::Footer | Tag::Aside));
                let words = text.split_whitespace().filter(|w| w.len() > 1 && title.contains(*w)).count() as u32;
                let score = words * 4 + u32::from(!chrome) * 2 + u32::from(m.text[i] > 12);
                if best.is_none_or(|(s, _)| score > s) {
                    best = Some((score, i));
                }
            }
        }
        if let Some((_, i)) = best {
            heading[i] = true;
            for a in dom.ancestors(i) {
                heading[a] = true;
            }
        }
        for i in m.body..dom.end(m.body) {
            // Most elements are told by how little they hold.
            if m.text[i] * 10 > m.total()
                && (dom.tag(i) == Tag::Main || dom.attr(i, &local_name!("role")) == Some("main"))
            {
                for a in dom.ancestors(i) {
                    heading[a] = true;
                }
            }
        }
        Protected { heading, total: m.total() }
    }
}

/// An element and the facts that decide whether it surrounds the content.
struct Candidate<'d> {
    dom: &'d Dom,
    i: usize,
    tag: Tag,
    role: &'d str,
    hints: Hints,
    /// One of several of its kind.
    is_repeated: bool,
    /// One of many of its kind that hold much of the page: a list is content whatever its class is called.
    is_listed: bool,
    place: Surroundings,
    /// Visible characters of it.
    text: u32,
    /// The same of the rest of the page.
    rest: u32,
    /// Its part of the page's text, 0 to 1.
    share: f32,
    /// The part of its text that is links, 0 to 1.
    density: f32,
}

impl Candidate<'_> {
    /// Whether it is left out by the rules. `is_protected`: it holds the page's heading or its main element;
    /// `is_article`: the page is read for its text, not for its discussion.
    fn is_boilerplate(&self, rules: Rules, is_protected: bool, is_article: bool) -> bool {
        if is_protected || matches!(self.tag, Tag::Html | Tag::Body | Tag::Pre | Tag::Code) {
            return false;
        }
        rules.ads && self.is_ad()
            || rules.main_only
                && (self.is_around_by_role()
                    || self.is_around_by_tag(rules)
                    || self.is_around_by_hints(rules, is_article))
    }

    /// An advertisement or a consent banner.
    fn is_ad(&self) -> bool {
        let Self { hints, text, share, .. } = *self;
        // Small pages first: there a share says nothing.
        let is_consent = hints.any(Hints::CONSENT)
            && (share < 0.4 || text < 400 && share < 0.7 || speaks_of_cookies(self.dom, self.i))
            && (!hints.any(Hints::CONTENT) || share < 0.1);
        let is_consent = is_consent || hints.any(Hints::MODAL) && share > 0.04 && speaks_of_cookies(self.dom, self.i);
        let is_clearly_ad = hints.any(Hints::AD)
            && !hints.any(Hints::CONTENT.or(Hints::LAYOUT))
            && (share < 0.25 || text < 200 && share < 0.5);
        is_consent || is_clearly_ad || hints.any(Hints::AD) && share < 0.05
    }

    fn is_around_by_role(&self) -> bool {
        let Self { share, density, place, .. } = *self;
        match self.role {
            "navigation" | "menu" | "menubar" | "search" | "tooltip" => share < 0.1 || (share < 0.4 && density > 0.35),
            "banner" | "contentinfo" => !place.in_article && share < 0.3,
            "complementary" => share < 0.25,
            "dialog" | "alertdialog" => share < 0.3 && self.is_aside_popup() || self.is_closed(),
            _ => false,
        }
    }

    fn is_around_by_tag(&self, rules: Rules) -> bool {
        let Self { dom, i, share, density, place, .. } = *self;
        match self.tag {
            Tag::Nav => share < 0.5 || density > LONG_MENU.0 && self.rest >= LONG_MENU.1 && self.is_in_side_column(),
            Tag::Search => share < 0.5,
            Tag::Button => self.text < 25 && !in_heading(dom, i),
            Tag::Aside if share < 0.3 => {
                let is_callout = density < 0.4 && {
                    let class = dom.class(i).to_ascii_lowercase();
                    ["note", "callout", "tip", "warning", "admonition", "hint", "alert", "important", "quote"]
                        .iter()
                        .any(|w| class.contains(w))
                };
                let is_prose = density < 0.15 && share > 0.05 && self.hints.is_none();
                !is_callout && !is_prose
            }
            Tag::Footer => {
                let is_links = density > 0.4;
                !place.in_article && (share < 0.35 || self.is_long_foot() || is_links && !place.in_main)
                    || share < 0.2 && is_links
            }
            Tag::Header => {
                let is_menu = density > LONG_HEADER.0 && self.rest >= LONG_HEADER.1;
                !place.in_article && !place.in_main && (share < 0.3 || is_menu)
            }
            Tag::Dialog => share < 0.3 && self.is_aside_popup() || self.is_closed(),
            Tag::Form if share < 0.2 && self.rest >= LEAST_BESIDE_FORM && asks_for_account(dom, i) => true,
            Tag::Form if rules.discussion && share < 0.25 && self.takes_text() => true,
            Tag::Form => share < 0.08 && (share < 0.02 || asks_for_account(dom, i)),
            _ => false,
        }
    }

    /// Whether a form is for writing an answer.
    fn takes_text(&self) -> bool {
        (self.i..self.dom.end(self.i)).take(MOST_NODES).any(|j| self.dom.tag(j) == Tag::Textarea)
    }

    fn is_in_side_column(&self) -> bool {
        let mut above = self.dom.ancestors(self.i).take(3);
        self.hints.any(Hints::SIDEBAR) || above.any(|up| self.dom.tag(up) == Tag::Aside)
    }

    /// Whether a footer of much text is still the page's: there is something above it, and it has no notes to that.
    fn is_long_foot(&self) -> bool {
        let is_note = |i: usize| self.dom.class(i).contains("footnote");
        !self.place.in_main
            && self.rest >= LEAST_ABOVE_FOOT
            && !(self.i..self.dom.end(self.i)).take(MOST_NODES).any(is_note)
    }

    fn is_around_by_hints(&self, rules: Rules, is_article: bool) -> bool {
        let Self { tag, hints, text, share, density, place, .. } = *self;
        if hints.is_none() {
            return false;
        }
        // Of these there are as many as posts.
        if rules.discussion && (hints.any(Hints::WRITER) && share < 0.2 || hints.any(Hints::REMARKS) && share < 0.3) {
            return true;
        }
        if self.is_listed {
            return false;
        }
        if hints.any(Hints::BUTTON)
            && text <= LONGEST_BUTTON
            && share < 0.02
            && !in_heading(self.dom, self.i)
            && !in_cell(self.dom, self.i)
        {
            return true;
        }
        if self.is_aside_by_kind(rules) {
            return true;
        }
        let is_inline = matches!(
            tag,
            Tag::Span
                | Tag::Em
                | Tag::Strong
                | Tag::B
                | Tag::I
                | Tag::H1
                | Tag::H2
                | Tag::H3
                | Tag::H4
                | Tag::H5
                | Tag::H6
        );
        if is_inline && !hints.any(Hints::READER_ONLY.or(Hints::SHARE).or(Hints::BREADCRUMB)) {
            return false;
        }
        if is_article
            && hints.any(Hints::COMMENTS)
            && share < 0.5
            && self.rest > 1500
            && text > 40
            && matches!(tag, Tag::Div | Tag::Section | Tag::Ol | Tag::Ul | Tag::Aside)
        {
            return true;
        }
        let (is_content, is_layout) = (hints.any(Hints::CONTENT), hints.any(Hints::LAYOUT));
        let in_page = !place.in_article && !place.in_main;
        // Each hint with the bounds within which it is believed.
        hints.any(Hints::MODAL) && share < 0.2 && !is_content && self.is_aside_popup()
            || hints.any(Hints::SHARE) && share < 0.1 && (density > 0.4 || text < 60) && !is_content
            || !rules.product
                && hints.any(Hints::FACETS)
                && !hints.any(Hints::REVIEWS)
                && share < 0.15
                && !is_content
                && self.rest >= LEAST_ABOVE_FOOT
                && self.is_a_choice()
            || is_article && hints.any(Hints::AUTHOR) && !self.is_repeated && share < 0.1 && !is_content
            || hints.any(Hints::NEWSLETTER) && share < 0.1 && !is_content
            || hints.any(Hints::TOOLS) && share < 0.02 && text < 200 && !matches!(tag, Tag::P | Tag::Table)
            || hints.any(Hints::BREADCRUMB) && share < 0.1
            || hints.any(Hints::PAGINATION) && share < 0.1 && density > 0.3
            || hints.any(Hints::READER_ONLY) && share < 0.02 && !self.is_all_of_cell()
            || hints.any(Hints::NAV) && !is_content && share < 0.3 && (density > 0.4 || share < 0.02)
            || hints.any(Hints::FOOTER)
                && !place.in_article
                && !is_content
                && (share < 0.12 || (share < 0.3 && density > 0.2))
            || hints.any(Hints::HEADER) && in_page && !is_content && share < 0.15 && density > 0.3
            || hints.any(Hints::SIDEBAR) && !is_content && !is_layout && share < 0.3
            || hints.any(Hints::RELATED) && share < 0.25 && (density > 0.4 || share < 0.05)
            || hints.any(Hints::SEARCH) && share < 0.05 && text < 300
            || hints.any(Hints::TOC) && share < 0.15 && density > 0.6
    }

    /// What is left out on a page of some kind, or where enough is outside of it.
    fn is_aside_by_kind(&self, rules: Rules) -> bool {
        let Self { hints, text, share, .. } = *self;
        if self.rest < LEAST_ABOVE_FOOT {
            return false;
        }
        hints.any(Hints::NOTICE)
            && text < LONGEST_NOTICE
            && share < 0.2
            && (rules.discussion || !hints.any(Hints::CONTENT) && !self.is_callout())
            || hints.any(Hints::FINE_PRINT) && share < 0.25
            || hints.any(Hints::ENDING) && share < 0.1
            || hints.any(Hints::OTHER_GOODS) && share < 0.5 && rules.product
            || hints.any(Hints::MODAL) && !hints.any(Hints::CONTENT) && share < 0.3 && self.is_closed_or_apart()
    }

    /// Whether a dialog says that it is closed, or stands beside all of the page.
    fn is_closed_or_apart(&self) -> bool {
        let is_apart = || {
            let in_page = !self.place.in_article && !self.place.in_main;
            in_page && self.dom.tag(self.dom.parent(self.i)) == Tag::Body
        };
        (self.is_hidden_from_all() || is_apart()) && !self.is_named_for_content()
    }

    /// Whether a dialog beside enough text says that it is closed, and not that it holds what the page is about.
    fn is_closed(&self) -> bool {
        let is_shut = || self.tag == Tag::Dialog && self.dom.attr(self.i, &local_name!("open")).is_none();
        self.share < MOST_CLOSED
            && self.rest >= LEAST_ABOVE_FOOT
            && (self.is_hidden_from_all() || is_shut())
            && !self.is_named_for_content()
    }

    fn is_hidden_from_all(&self) -> bool {
        self.dom.attr(self.i, &local_name!("aria-hidden")) == Some("true")
    }

    fn is_named_for_content(&self) -> bool {
        let class = self.dom.class(self.i);
        ["detail", "description", "dimension", "feature", "ingredient", "measurement", "spec"]
            .iter()
            .any(|w| class.contains(w))
    }

    /// Manuals call their warnings alerts.
    fn is_callout(&self) -> bool {
        self.dom.class(self.i).contains("alert-warning") && !self.dom.class(self.i).contains("dismissible")
    }

    /// Whether a cell says nothing else: readers see a sign there.
    fn is_all_of_cell(&self) -> bool {
        let cell = self.dom.ancestors(self.i).take(3).find(|&up| matches!(self.dom.tag(up), Tag::Td | Tag::Th));
        cell.is_some_and(|cell| {
            let nodes = cell..self.dom.end(cell);
            nodes.len() <= MOST_OF_CELL && nodes.map(|j| count(self.dom.text(j))).sum::<u32>() == self.text
        })
    }

    /// Whether an element offers choices rather than text.
    fn is_a_choice(&self) -> bool {
        let is_control = |i: usize| matches!(self.dom.tag(i), Tag::Input | Tag::Select | Tag::Button | Tag::Legend);
        self.density > 0.5 || (self.i..self.dom.end(self.i)).take(MOST_NODES).any(is_control)
    }

    /// Whether a dialog is an interruption rather than a part of the content that opens on demand.
    fn is_aside_popup(&self) -> bool {
        if self.density < 0.3 && self.is_named_for_content() {
            return false;
        }
        self.share < 0.04 || self.density > 0.3 || asks_for_account(self.dom, self.i)
    }
}

/// Leaves out dialogs about cookies near the body, and says how many characters they have.
fn consent<'d>(dom: &'d Dom, m: &Measures, kept: &Protected, cache: &mut Cache<'d>, dropped: &mut [bool]) -> u32 {
    let mut gone = 0;
    let mut visit = |i: usize, cache: &mut Cache<'d>, dropped: &mut [bool]| {
        if dropped[i] || kept.heading[i] || m.text[i] == 0 || !dom.tag(i).is_element() {
            return;
        }
        let names = [dom.class(i), dom.attr(i, &local_name!("id")).unwrap_or_default()];
        if names.iter().any(|name| cache.of(name).any(Hints::CONSENT)) && speaks_of_cookies(dom, i) {
            dropped[i] = true;
            gone += m.text[i];
        }
    };
    for child in dom.children(m.body) {
        visit(child, cache, dropped);
        if !dropped[child] {
            dom.children(child).for_each(|i| visit(i, cache, dropped));
        }
    }
    gone
}

/// Leaves out what is named as hidden, if that is little of the page.
fn hidden_by_name<'d>(dom: &'d Dom, m: &Measures, kept: &Protected, cache: &mut Cache<'d>, dropped: &mut [bool]) {
    let (mut found, mut text, mut i) = (Vec::new(), 0, m.body + 1);
    while i < dom.end(m.body) {
        if dropped[i] {
            i = dom.end(i);
            continue;
        }
        if m.text[i] > 0
            && !kept.heading[i]
            && dom.tag(i).is_element()
            && cache.of(dom.class(i)).any(Hints::HIDDEN)
            && !more::opens(dom, i)
        {
            found.push(i);
            text += m.text[i];
            i = dom.end(i);
            continue;
        }
        i += 1;
    }
    if text as f32 <= MOST_HIDDEN * kept.total as f32 {
        found.into_iter().for_each(|i| dropped[i] = true);
    }
}

/// Whether a text speaks of cookies again and again, as the dialogs do that ask for consent. Its beginning tells: such
/// elements may stand in each other, and each of them is asked.
fn speaks_of_cookies(dom: &Dom, i: usize) -> bool {
    const OFTEN: usize = 3;
    let finder = memmem::Finder::new("ookie");
    let found = (i..dom.end(i)).take(MOST_NODES).flat_map(|j| finder.find_iter(dom.text(j).as_bytes()));
    found.take(OFTEN).count() == OFTEN
}

/// Elements with the same `class`.
#[derive(Clone, Copy, Default)]
struct Group {
    count: u32,
    text: u32,
}

/// Sizes of the groups of like elements: a list of cards is content whatever its class is called.
fn groups<'a>(dom: &'a Dom, m: &Measures) -> HashMap<&'a str, Group> {
    let mut groups: HashMap<&str, Group> = HashMap::new();
    for i in m.body..dom.end(m.body) {
        if m.text[i] > 0
            && matches!(dom.tag(i), Tag::Div | Tag::Li | Tag::Article | Tag::Section | Tag::A | Tag::Tr | Tag::Ul)
        {
            let class = dom.class(i);
            if !class.is_empty() {
                let group = groups.entry(class).or_default();
                group.count += 1;
                group.text = group.text.saturating_add(m.text[i]);
            }
        }
    }
    groups
}

/// Whether a form wants the reader's data or a search term.
fn asks_for_account(dom: &Dom, i: usize) -> bool {
    (i..dom.end(i)).any(|j| {
        dom.tag(j) == Tag::Input
            && dom.attr(j, &local_name!("type")).is_some_and(|t| matches!(t, "email" | "password" | "search" | "tel"))
    })
}

fn in_heading(dom: &Dom, i: usize) -> bool {
    dom.ancestors(i)
        .take(3)
        .any(|a| dom.tag(a).heading_level().is_some() || matches!(dom.tag(a), Tag::Dt | Tag::Summary))
}

fn in_cell(dom: &Dom, i: usize) -> bool {
    dom.ancestors(i).take(3).any(|a| matches!(dom.tag(a), Tag::Td | Tag::Th))
}

/// What headings say that stand over links to elsewhere or over forms, not over content. Lower case.
const ASIDE_HEADINGS: &[&str] = &[
    "related",
    "recommended",
    "you may also",
    "you might also",
    "more from",
    "more in ",
    "more on ",
    "more stories",
    "more like this",
    "popular",
    "most popular",
    "most read",
    "trending",
    "latest news",
    "latest posts",
    "latest articles",
    "recent posts",
    "recent articles",
    "recent comments",
    "read next",
    "up next",
    "read more",
    "keep reading",
    "similar ",
    "customers also",
    "people also",
    "recently viewed",
    "frequently bought",
    "share this",
    "share on",
    "subscribe",
    "sign up",
    "newsletter",
    "join our",
    "follow us",
    "stay connected",
    "stay up to date",
    "leave a comment",
    "leave a reply",
    "post navigation",
    "explore more",
    "explore related",
    "see also:",
    "explore the latest",
    "other people also",
    "quick links",
    "shop by",
    "about the author",
    "categories",
    "tags",
    "archives",
    "what to read next",
    "featured articles",
    "top stories",
    "get in touch",
    "search",
    "sponsored",
    "das könnte",
    "ähnliche",
    "weitere artikel",
    "mehr zum thema",
    "newsletter",
    "articles liés",
    "à lire aussi",
    "vous aimerez",
    "artículos relacionados",
    "te puede interesar",
    "articoli correlati",
];

/// Drops sections that open with a heading such as "Related posts" and hold links or a form.
fn headed_sections(dom: &Dom, m: &Measures, kept: &Protected, dropped: &mut [bool]) {
    let total = kept.total as f32;
    for h in m.body..dom.end(m.body) {
        let tag = dom.tag(h);
        if !matches!(tag, Tag::H2 | Tag::H3 | Tag::H4 | Tag::H5 | Tag::H6)
            || dropped[h]
            || m.text[h] == 0
            || m.text[h] > 60
        {
            continue;
        }
        let heading = dom.text_of(h).trim().to_lowercase();
        if !ASIDE_HEADINGS.iter().any(|w| heading.starts_with(w)) {
            continue;
        }
        // The largest element that begins with this heading.
        let mut block = h;
        for up in dom.ancestors(h) {
            let first = dom.children(up).find(|&c| m.text[c] > 0 && !m.invisible[c]);
            if first != Some(block) || m.text[up] as f32 > 0.25 * total || kept.heading[up] || up == m.body {
                break;
            }
            block = up;
        }
        if block != h && m.text[block] > m.text[h] {
            let density = m.link_density(block);
            if density > 0.4 || (m.text[block] as f32) < 0.03 * total || asks_for_account(dom, block) {
                dropped[block] = true;
            }
            continue;
        }
        // No element of its own: what follows it up to the next heading.
        let mut tail = Vec::new();
        let mut text = 0;
        let mut links = 0;
        let parent = dom.parent(block);
        let mut c = dom.end(block);
        while c < dom.end(parent) && tail.len() < 64 {
            if dom.tag(c).heading_level().is_some_and(|l| l <= tag.heading_level().unwrap_or(6)) || kept.heading[c] {
                break;
            }
            text += m.text[c];
            links += m.links[c];
            tail.push(c);
            c = dom.end(c);
        }
        if text > 0 && links as f32 > 0.7 * text as f32 && (text as f32) < 0.2 * total {
            dropped[block] = true;
            for c in tail {
                dropped[c] = true;
            }
        }
    }
}

/// Whether address or linked data say that the page is a discussion.
pub fn is_discussion(dom: &Dom, url: &str) -> bool {
    let low = url.to_ascii_lowercase();
    let words = [
        "forum",
        "thread",
        "/topic",
        "discuss",
        "community",
        "/questions/",
        "viewtopic",
        "board",
        "/comments/",
        "/t/",
        "/talk/",
        "/item?id=",
        "/r/",
        "groups.",
    ];
    words.iter().any(|w| low.contains(w))
        || (0..dom.len()).any(|i| {
            dom.tag(i) == Tag::Script
                && dom.attr(i, &local_name!("type")).is_some_and(|t| t.contains("ld+json"))
                && (i..dom.end(i))
                    .any(|j| dom.text(j).contains("DiscussionForumPosting") || dom.text(j).contains("\"QAPage\""))
        })
}

/// Whether the page is one article: it says so, or it is mostly paragraphs of one text.
fn is_article(dom: &Dom, m: &Measures, dropped: &[bool], total: u32) -> bool {
    let mut declared = false;
    let mut paragraphs = 0u32;
    let mut i = 0;
    while i < dom.len() {
        if i >= m.body && dropped[i] {
            i = dom.end(i);
            continue;
        }
        match dom.tag(i) {
            Tag::Meta => {
                declared |= dom.attr(i, &local_name!("property")) == Some("og:type")
                    && dom.attr(i, &local_name!("content")) == Some("article");
            }
            Tag::P if m.text[i] > 80 => paragraphs += m.text[i] - m.links[i],
            _ => {}
        }
        i += 1;
    }
    declared && paragraphs * 4 > total || paragraphs * 2 > total
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    #[test]
    fn whether_a_text_speaks_of_cookies_is_told_by_its_beginning() {
        let cookies = "<p>Cookies, cookies and cookies.</p>";
        let speaks = |html: &str| speaks_of_cookies(&guard::parse(html).dom, 0);
        assert!(speaks(cookies));
        // Who nests dialogs in dialogs has each of them looked through, so none is looked through to its end.
        assert!(!speaks(&format!("{}{cookies}", "<b>a</b>".repeat(MOST_NODES))));
    }
}
