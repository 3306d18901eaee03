//! A page's markup for a reader with little room: its elements with what tells them apart, texts and long lists cut.

use std::collections::HashMap;

use super::Page;
use super::sketch;
use super::tree::{Dom, Tag};

/// How much is shown: characters of a text, and elements in a row that are named alike.
const LEVELS: [(usize, usize); 4] = [(160, 40), (80, 15), (40, 6), (20, 3)];
/// Longest value of an attribute, characters.
const MAX_VALUE: usize = 100;

impl Page {
    /// The page's markup in at most `room` bytes.
    pub fn outline(&self, room: usize) -> String {
        let mut shown = String::new();
        for (text, row) in LEVELS {
            shown = write(&self.dom, text, row);
            if shown.len() <= room {
                return shown;
            }
        }
        shown.truncate(shown.floor_char_boundary(room));
        shown
    }
}

fn write(dom: &Dom, text: usize, row: usize) -> String {
    let mut out = String::new();
    let mut open: Vec<(usize, &str)> = Vec::new();
    // By parent: the last name, and how many of it in a row.
    let mut rows: HashMap<usize, (u32, usize)> = HashMap::new();
    let mut i = 0;
    loop {
        while let Some((_, name)) = open.pop_if(|(end, _)| *end <= i) {
            out.push_str("</");
            out.push_str(name);
            out.push('>');
        }
        if i >= dom.len() {
            return out;
        }
        let tag = dom.tag(i);
        if matches!(tag, Tag::Script | Tag::Style | Tag::Svg | Tag::Math | Tag::Noscript | Tag::Template | Tag::Link) {
            i = dom.end(i);
            continue;
        }
        if tag == Tag::Text {
            let words: Vec<&str> = dom.text(i).split_whitespace().collect();
            escape(&mut out, &cut(&words.join(" "), text));
        } else if let Some(element) = dom.element(i) {
            let name = sketch::name(dom, i);
            let (last, count) = rows.entry(dom.parent(i)).or_default();
            *count = if *last == name { *count + 1 } else { 1 };
            *last = name;
            if *count > row {
                if *count == row + 1 {
                    out.push('…');
                }
                i = dom.end(i);
                continue;
            }
            out.push('<');
            out.push_str(&element.name.local);
            for attribute in &element.attrs {
                let name = &*attribute.name.local;
                if name == "style" || name.starts_with("on") || attribute.value.is_empty() {
                    continue;
                }
                out.push(' ');
                out.push_str(name);
                out.push_str("=\"");
                escape(&mut out, &cut(&attribute.value, MAX_VALUE));
                out.push('"');
            }
            out.push('>');
            if !matches!(tag, Tag::Meta | Tag::Img | Tag::Br | Tag::Hr | Tag::Input | Tag::Source | Tag::Base) {
                open.push((dom.end(i), &element.name.local));
            }
        }
        i += 1;
    }
}

fn cut(text: &str, most: usize) -> String {
    let mut chars = text.chars();
    let mut out: String = chars.by_ref().take(most).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PageInput, parse};

    #[test]
    fn an_outline_tells_elements_apart_and_fits_its_room() {
        let url = url::Url::parse("https://x.test/").expect("a URL");
        let rows: String = (0..500).map(|n| format!("<li class=row><b>{n}</b> {}</li>", "word ".repeat(80))).collect();
        let html = format!(
            "<body><script>x()</script><h1 id=t style='color:red' onclick=x>A &lt;b&gt;</h1><ul>{rows}</ul><p>last</p>"
        );
        let page = parse(&PageInput { url: &url, html: &html, rendered: false });
        let whole = page.outline(1 << 20);
        assert!(whole.contains("<h1 id=\"t\">A &lt;b&gt;</h1>") && whole.contains("<p>last</p>"), "{whole}");
        assert!(!whole.contains("x()") && whole.matches("<li").count() == 40);
        let short = page.outline(2_000);
        assert!(short.len() <= 2_000 && short.contains("<p>last</p>"), "{short}");
        assert!(page.outline(10).len() <= 10);
    }
}
