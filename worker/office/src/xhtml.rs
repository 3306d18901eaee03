//! XHTML that is to be read as HTML, where an element that is empty in XML is not closed by its slash: a script would swallow
//! the rest of the page. Chapters of books are written so, and some pages.

/// Elements that have no end in HTML.
const WITHOUT_END: [&str; 14] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];

/// Ends what is empty by an end tag of its own. All else stays as it is, well-formed or not; it takes one pass.
pub fn with_end_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        // What may hold characters that begin no tag.
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")].into_iter().find_map(|(begin, end)| {
            let inside = tag.strip_prefix(begin)?;
            Some(inside.find(end).map_or(tag.len(), |at| begin.len() + at + end.len()))
        });
        let is_text = !tag[1..].starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
        let length = match skipped {
            Some(length) => length,
            None if is_text => 1,
            None => tag_length(tag).or_else(|| Some(tag.find('>')? + 1)).unwrap_or(tag.len()),
        };
        let (tag, after) = tag.split_at(length);
        rest = after;
        out.push_str(before);
        let name = tag.get(1..).unwrap_or_default().split(|c: char| c.is_whitespace() || matches!(c, '/' | '>')).next();
        let name = name.filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
        match (name, tag.strip_suffix("/>")) {
            (Some(name), Some(open)) if !WITHOUT_END.iter().any(|void| name.eq_ignore_ascii_case(void)) => {
                out.push_str(&format!("{open}></{name}>"));
            }
            _ => out.push_str(tag),
        }
    }
    out.push_str(rest);
    out
}

/// Bytes to the end of a tag; a value in quotes may hold that character.
fn tag_length(tag: &str) -> Option<usize> {
    let (mut quote, mut before) = (None, b' ');
    for (at, byte) in tag.bytes().enumerate() {
        match byte {
            _ if quote == Some(byte) => quote = None,
            b'"' | b'\'' if quote.is_none() && before == b'=' => quote = Some(byte),
            b'>' if quote.is_none() => return Some(at + 1),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_in_xhtml_ends_in_html_too() {
        for (xhtml, html) in [
            ("<p>a<br/>b<img src='x'/></p>", "<p>a<br/>b<img src='x'/></p>"),
            ("<script src=\"x\"/><p>after</p>", "<script src=\"x\"></script><p>after</p>"),
            ("<a id='1' /><td title='a/>b'/>", "<a id='1' ></a><td title='a/>b'></td>"),
            (
                "<!-- <a/> --><?x <a/> ?><![CDATA[<a/>]]> 1 < 2 <p class=it's/>",
                "<!-- <a/> --><?x <a/> ?><![CDATA[<a/>]]> 1 < 2 <p class=it's></p>",
            ),
            ("<p title='open/>", "<p title='open></p>"),
            ("<p", "<p"),
            ("none", "none"),
        ] {
            assert_eq!(with_end_tags(xhtml), html, "{xhtml}");
        }
    }
}
