//! What can be seen on the page and how much text it is, per element.

use html5ever::local_name;

use super::more;
use super::tree::{Dom, Tag};

/// Text in `noscript` longer than this is the page itself, not a notice, characters.
const NOSCRIPT_CONTENT: u32 = 200;

/// Hidden text shorter than this is not worth a click, characters.
const LEAST_OPENED: u32 = 40;

/// Visible text per node, subtree included, in characters without whitespace.
#[derive(Debug)]
pub struct Measures {
    /// Subtree roots that show nothing: scripts, styles, hidden elements and the like.
    pub invisible: Vec<bool>,
    /// Characters of text.
    pub text: Vec<u32>,
    /// Of these, inside links.
    pub links: Vec<u32>,
    /// The `body` element, or the document.
    pub body: usize,
}

/// Characters that are not whitespace.
pub fn count(text: &str) -> u32 {
    text.bytes().filter(|b| (*b as i8) >= -0x40 && *b > b' ').count() as u32
}

/// Whether an inline style hides its element. The last declaration of a property counts, unless one before it is important.
fn style_hides(style: &str) -> bool {
    let may_hide = ["none", "hidden"].iter().any(|word| style.contains(word));
    if !may_hide && !style.bytes().any(|b| b.is_ascii_uppercase()) {
        return false;
    }
    // Name, the value that hides; whether it does so, and whether the declaration that says so is important.
    let mut properties = [("display", "none", false, false), ("visibility", "hidden", false, false)];
    for (name, value) in style.split(';').filter_map(|declaration| declaration.split_once(':')) {
        let plain = value.trim().trim_end_matches("!important").trim_end();
        let is_important = plain.len() < value.trim().len();
        for (property, hiding, hides, important) in &mut properties {
            if name.trim().eq_ignore_ascii_case(property) && (is_important || !*important) {
                (*hides, *important) = (plain.eq_ignore_ascii_case(hiding), is_important);
            }
        }
    }
    properties.iter().any(|(_, _, hides, _)| *hides)
}

/// Whether the element asks not to be shown.
pub fn is_hidden(dom: &Dom, i: usize) -> bool {
    let Some(element) = dom.element(i) else { return false };
    let mut katex = false;
    for a in &element.attrs {
        match a.name.local {
            local_name!("hidden") if !a.value.eq_ignore_ascii_case("until-found") => return true,
            local_name!("style") if style_hides(&a.value) => return true,
            local_name!("class") => {
                katex = matches!(
                    &*a.value,
                    "katex-html" | "MathJax_Preview" | "MathJax" | "MathJax_Display" | "MathJax_SVG"
                ) || a.value.starts_with("katex-html ")
            }
            _ => {}
        }
    }
    katex
}

impl Measures {
    /// Measures the page. With `rendered`, `noscript` is not shown; otherwise it is when it holds content.
    pub fn of(dom: &Dom, rendered: bool) -> Self {
        let n = dom.len();
        let mut m = Measures { invisible: vec![false; n], text: vec![0; n], links: vec![0; n], body: 0 };
        let mut unsure = Vec::new();
        let mut i = 0;
        let mut link_end = 0;
        while i < n {
            match dom.tag(i) {
                Tag::Text => {
                    let c = count(dom.text(i));
                    m.text[i] = c;
                    if i < link_end {
                        m.links[i] = c;
                    }
                }
                // MathJax keeps formulas there.
                Tag::Script => {
                    m.invisible[i] = !dom.attr(i, &local_name!("type")).is_some_and(|t| t.starts_with("math/tex"));
                    i = dom.end(i);
                    continue;
                }
                tag if tag.is_never_shown() => {
                    m.invisible[i] = true;
                    i = dom.end(i);
                    continue;
                }
                Tag::Noscript => {
                    if rendered {
                        m.invisible[i] = true;
                        i = dom.end(i);
                        continue;
                    }
                    unsure.push(i);
                }
                Tag::Body if m.body == 0 => {
                    m.body = i;
                    if is_hidden(dom, i) {
                        i += 1;
                        continue;
                    }
                }
                Tag::A => link_end = link_end.max(dom.end(i)),
                Tag::Html => {}
                tag if tag.is_element() && is_hidden(dom, i) => unsure.push(i),
                _ => {}
            }
            i += 1;
        }
        for i in (1..n).rev() {
            let p = dom.parent(i);
            m.text[p] += m.text[i];
            m.links[p] += m.links[i];
        }
        m.decide(dom, unsure);
        m
    }

    /// Hides those of the elements that may be invisible, in document order, whose text is really gone.
    fn decide(&mut self, dom: &Dom, unsure: Vec<usize>) {
        let before = self.text[self.body];
        let mut covered = 0;
        for i in unsure {
            // What is inside a hidden element is gone with it.
            if i < covered {
                continue;
            }
            let gone = if dom.tag(i) == Tag::Noscript {
                self.text[i] < NOSCRIPT_CONTENT && is_notice(&dom.text_of(i))
            } else {
                // Pages that show themselves by script hide their very content.
                (self.text[i] * 2 < before || self.text[i] == 0)
                    && !self.is_a_click_away(dom, i)
                    && !self.is_all_of_main(dom, i)
            };
            if gone {
                self.hide(dom, i);
                covered = dom.end(i);
            }
        }
    }

    /// Whether hidden text is shown by a control beside it. A menu that is opened so is not text.
    fn is_a_click_away(&self, dom: &Dom, i: usize) -> bool {
        if self.text[i] < LEAST_OPENED {
            return false;
        }
        if self.links[i] * 2 < self.text[i] {
            more::opens(dom, i) || more::is_below_heading(dom, i)
        } else {
            more::is_panel(dom, i)
        }
    }

    /// Whether hidden text is nearly all that the main element has: a script shows it once it has run.
    fn is_all_of_main(&self, dom: &Dom, i: usize) -> bool {
        let parent = dom.parent(i);
        dom.tag(parent) == Tag::Main && self.text[i] * 5 > self.text[parent] * 4
    }

    fn hide(&mut self, dom: &Dom, i: usize) {
        self.invisible[i] = true;
        let (text, links) = (self.text[i], self.links[i]);
        if text > 0 {
            for up in dom.ancestors(i) {
                self.text[up] = self.text[up].saturating_sub(text);
                self.links[up] = self.links[up].saturating_sub(links);
            }
        }
    }

    /// Visible characters of the whole page.
    pub fn total(&self) -> u32 {
        self.text[self.body]
    }

    /// Share of a node's text that is links, 0 to 1.
    pub fn link_density(&self, i: usize) -> f32 {
        if self.text[i] == 0 { 0.0 } else { self.links[i] as f32 / self.text[i] as f32 }
    }

    /// The body's text without what was left out.
    #[cfg(test)]
    pub fn text_left(&self, dom: &Dom, dropped: &[bool]) -> String {
        let mut out = String::new();
        let mut i = self.body;
        while i < dom.len() {
            if dropped[i] {
                i = dom.end(i);
                continue;
            }
            out.push_str(dom.text(i));
            i += 1;
        }
        out
    }
}

/// Whether the text of a `noscript` only asks for scripts.
fn is_notice(text: &str) -> bool {
    let low = text.to_ascii_lowercase();
    count(text) < 40 || ["script", "browser", "cookie"].iter().any(|w| low.contains(w))
}

/// Whether `i` is a heading of the whole page: the first level, what Javadoc wrote before its release 17, or what
/// Doxygen writes.
pub fn is_title(dom: &Dom, i: usize) -> bool {
    let says_itself = || dom.attr(i, &local_name!("title")).is_some_and(|title| dom.text_of(i).trim() == title.trim());
    match dom.tag(i) {
        Tag::H1 => true,
        Tag::H2 => dom.class(i) == "title" && says_itself(),
        Tag::Div => dom.class(i) == "title" && dom.class(dom.parent(i)) == "headertitle",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    fn total(html: &str, rendered: bool) -> u32 {
        Measures::of(&guard::parse(html).dom, rendered).total()
    }

    #[test]
    fn hidden_text_does_not_count_unless_it_is_the_page() {
        assert_eq!(
            total(
                "<p>seen enough</p><p hidden>x</p><p style='Display : none !important'>y</p><script>z</script>",
                false
            ),
            10
        );
        assert_eq!(total("<div style='visibility:hidden'>all of it</div>", false), 7);
        assert_eq!(total("<p>seen enough</p><noembed>x</noembed><datalist><option>y</datalist>", false), 10);
    }

    #[test]
    fn the_last_declaration_of_a_style_counts() {
        for (style, hides) in [
            ("display:none", true),
            ("color:red; Display : None !important", true),
            ("display:none;display:block", false),
            ("display:block;display:none", true),
            ("display:none !important;display:block", true),
            ("display:none;visibility:visible", true),
            ("visibility:hidden;visibility:visible", false),
            ("background:url(a;display:none)", false),
            ("display:flex;overflow:hidden", false),
        ] {
            assert_eq!(style_hides(style), hides, "{style}");
        }
    }

    #[test]
    fn nested_hidden_text_is_taken_off_once() {
        let page = format!("<p>{}</p><div hidden>ab<p hidden>cd</p></div>", "x".repeat(100));
        assert_eq!(total(&page, false), 100);
    }

    #[test]
    fn noscript_counts_when_it_is_content_and_no_browser_ran() {
        let long = format!("<body><noscript><p>{}</p></noscript>", "word ".repeat(100));
        assert_eq!(total(&long, false), 400);
        assert_eq!(total(&long, true), 0);
        assert_eq!(total("<body><noscript>Enable JavaScript</noscript>", false), 0);
    }
}
