//! The `html` format: the kept part of the page without scripts, styles and comments, its addresses absolute.

use html5ever::LocalName;
use html5ever::local_name;

use super::address::Addresses;
use super::images;
use super::tree::{Dom, Tag};

/// Most HTML written, bytes; the rest is left out.
const MAX_OUTPUT: usize = 32 << 20;

fn is_void(tag: Tag, name: &LocalName) -> bool {
    matches!(
        tag,
        Tag::Area
            | Tag::Base
            | Tag::Br
            | Tag::Col
            | Tag::Embed
            | Tag::Hr
            | Tag::Img
            | Tag::Input
            | Tag::Link
            | Tag::Meta
            | Tag::Source
            | Tag::Track
            | Tag::Wbr
    ) || matches!(&**name, "param")
}

fn escape(out: &mut String, text: &str, in_attribute: bool) {
    let mut from = 0;
    for (i, b) in text.bytes().enumerate() {
        let entity = match b {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' if in_attribute => "&quot;",
            _ => continue,
        };
        out.push_str(&text[from..i]);
        out.push_str(entity);
        from = i + 1;
    }
    out.push_str(&text[from..]);
}

/// Writes the subtrees at `roots` as a document. `true` if the output limit cut it.
pub fn write(dom: &Dom, addresses: &Addresses, dropped: &[bool], roots: &[usize]) -> (String, bool) {
    let mut out = String::with_capacity(8192);
    out.push_str("<!DOCTYPE html><html");
    let html = (0..dom.len()).find(|&i| dom.tag(i) == Tag::Html);
    for name in ["lang", "dir"] {
        if let Some(value) = html.and_then(|h| dom.attr_named(h, name)) {
            out.push_str(&format!(" {name}=\""));
            escape(&mut out, value, true);
            out.push('"');
        }
    }
    out.push_str("><body>");
    let mut full = false;
    for &root in roots {
        full |= subtree(&mut out, dom, addresses, dropped, root);
    }
    out.push_str("</body></html>");
    (out, full)
}

fn subtree(out: &mut String, dom: &Dom, addresses: &Addresses, dropped: &[bool], root: usize) -> bool {
    let mut open: Vec<(usize, &LocalName)> = Vec::new();
    let mut i = root;
    let end = dom.end(root);
    let mut full = false;
    loop {
        while let Some((_, name)) = open.pop_if(|(e, _)| *e <= i) {
            out.push_str("</");
            out.push_str(name);
            out.push('>');
        }
        if i >= end {
            break;
        }
        full |= out.len() > MAX_OUTPUT;
        if dropped[i] || full {
            i = dom.end(i);
            continue;
        }
        match dom.tag(i) {
            Tag::Text => escape(out, dom.text(i), false),
            Tag::Html | Tag::Body | Tag::Document | Tag::Comment | Tag::Noscript => {}
            Tag::Script | Tag::Style | Tag::Template | Tag::Head | Tag::Title | Tag::Meta | Tag::Link | Tag::Base => {
                i = dom.end(i);
                continue;
            }
            tag => {
                if let Some(element) = dom.element(i) {
                    let name = &element.name.local;
                    out.push('<');
                    out.push_str(name);
                    attributes(out, dom, addresses, i, tag);
                    out.push('>');
                    if !is_void(tag, name) {
                        open.push((dom.end(i), name));
                    }
                }
            }
        }
        i += 1;
    }
    full
}

fn attributes(out: &mut String, dom: &Dom, addresses: &Addresses, i: usize, tag: Tag) {
    let Some(element) = dom.element(i) else { return };
    let image = if tag == Tag::Img { images::best_source(dom, i) } else { None };
    let mut push = |name: &str, value: &str| {
        out.push(' ');
        out.push_str(name);
        out.push_str("=\"");
        escape(out, value, true);
        out.push('"');
    };
    if let Some(source) = image {
        if source.trim_start().starts_with("data:") {
            push("src", source);
        } else if let Some(url) = addresses.resolve(source) {
            push("src", &url);
        }
    }
    for a in &element.attrs {
        match a.name.local {
            local_name!("src") | local_name!("srcset") if tag == Tag::Img => {}
            local_name!("srcset") => {
                let set: Vec<String> =
                    images::candidates(&a.value).iter().filter_map(|(u, _)| addresses.resolve(u)).collect();
                push("srcset", &set.join(", "));
            }
            local_name!("href")
            | local_name!("src")
            | local_name!("action")
            | local_name!("poster")
            | local_name!("cite") => {
                if a.value.trim_start().get(..11).is_some_and(|s| s.eq_ignore_ascii_case("javascript:")) {
                    continue;
                }
                match addresses.resolve(&a.value) {
                    Some(url) => push(&a.name.local, &url),
                    None => push(&a.name.local, &a.value),
                }
            }
            ref name if name.starts_with("on") && name.len() > 2 => {}
            local_name!("style") | local_name!("srcdoc") => {}
            ref name if name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':' | b'.')) => {
                push(name, &a.value)
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;
    use url::Url;

    #[test]
    fn scripts_go_and_addresses_become_absolute() {
        let dom = guard::parse("<html lang=en><body onload=x()><p class=a onclick='y()'>a &lt; b<script>z</script><!-- c --><a href='/l?a=1&b=2'>l</a><img src=i.png><br>").dom;
        let addresses = Addresses::of_page(&dom, &Url::parse("https://x.test/p/").expect("a URL"));
        let dropped = vec![false; dom.len()];
        assert_eq!(
            write(&dom, &addresses, &dropped, &[0]).0,
            "<!DOCTYPE html><html lang=\"en\"><body><p class=\"a\">a &lt; b<a href=\"https://x.test/l?a=1&amp;b=2\">l</a>\
             <img src=\"https://x.test/p/i.png\"><br></p></body></html>"
        );
    }
}
