//! Pages that are XML to browsers, read as HTML.

use std::borrow::Cow;

use weir_office::with_end_tags;

use crate::fetch::media_type;

/// Whether a page of HTML with this `Content-Type` is XML. One that is sent as `text/html` is none, whatever it says of itself.
pub fn is_sent_as(content_type: Option<&str>) -> bool {
    let media_type = content_type.and_then(media_type);
    matches!(media_type.as_deref(), Some("application/xhtml+xml" | "application/xml" | "text/xml"))
}

/// The text of a page, so that an HTML parser finds the elements in it that browsers do. What is no XML is left alone.
pub fn as_html(text: &str, is_xml: bool) -> Cow<'_, str> {
    if is_xml { Cow::Owned(with_end_tags(text)) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_alone_says_what_is_xml() {
        let read = |content_type| as_html("<script src=x/>", is_sent_as(content_type)).into_owned();
        for content_type in ["application/xhtml+xml; charset=utf-8", "text/plain, Application/XHTML+XML", "text/xml"] {
            assert_eq!(read(Some(content_type)), "<script src=x></script>", "{content_type}");
        }
        for content_type in [Some("text/html"), Some("application/xhtml+xml, text/html"), Some(""), None] {
            assert_eq!(read(content_type), "<script src=x/>", "{content_type:?}");
        }
    }
}
