//! HTML of documents that are markdown first: PDFs, recognised text, tables of data.

use pulldown_cmark::{Event, Options, Parser};

/// A whole document. What the markdown holds of HTML is shown as text, so nothing of a file becomes active in a page.
pub fn html(markdown: &str, title: Option<&str>) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let events = Parser::new_ext(markdown, options).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        event => event,
    });
    let mut out = String::with_capacity(markdown.len() * 5 / 4 + 128);
    out.push_str("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\">");
    if let Some(title) = title {
        out.push_str("<title>");
        for c in title.chars() {
            match c {
                '<' => out.push_str("&lt;"),
                '&' => out.push_str("&amp;"),
                c => out.push(c),
            }
        }
        out.push_str("</title>");
    }
    out.push_str("</head><body>\n");
    pulldown_cmark::html::push_html(&mut out, events);
    out.push_str("</body></html>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_a_document_and_markup_in_it_text() {
        let text = html("# A\n\n| b |\n|---|\n| c |\n\n<script>x</script>\n", Some("T & <U>"));
        assert!(text.contains("<title>T &amp; &lt;U></title>") && text.contains("<h1>A</h1>"), "{text}");
        assert!(text.contains("<td>c</td>") && !text.contains("<script>"), "{text}");
    }
}
