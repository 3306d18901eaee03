//! The format `rawBase64`: the body of the site's response as it came, whatever it is.

use base64::Engine as _;
use weir_shared::domain::document::Document;

use crate::extract::{self, ExtractOptions, PageInput};
use crate::fetch::Fetched;
use crate::page::draft::{Draft, Made, SiteResponse};
use crate::page::error::PageError;
use crate::page::kind::BodyKind;
use crate::page::product::Harvest;
use crate::page::task::PageTask;
use crate::page::xhtml;

/// Makes the document of any response. Computes and blocks.
pub fn document(task: &PageTask, response: SiteResponse, fetched: &Fetched, kind: BodyKind) -> Result<Made, PageError> {
    let raw_base64 = Some(base64::engine::general_purpose::STANDARD.encode(&fetched.body));
    // A crawl goes on from its pages, whatever is delivered of them.
    let harvest = match task.harvest(&response.url, Vec::new()) {
        Some(_) if kind == BodyKind::Html => Some(links(fetched)),
        other => other,
    };
    let document = Document { raw_base64, ..Document::default() };
    Draft { harvest, ..Draft::new(response, document, task.options()) }.advance(task)
}

/// Where a page of HTML leads.
fn links(fetched: &Fetched) -> Harvest {
    let text = extract::charset::decode(&fetched.body, fetched.http_charset.as_deref());
    let page_html = xhtml::as_html(&text, xhtml::is_sent_as(fetched.content_type.as_deref()));
    let input = PageInput { url: &fetched.url, html: &page_html, rendered: false };
    let found = extract::extract(&input, &ExtractOptions { links: true, ..ExtractOptions::default() });
    Harvest { url: fetched.url.clone(), canonical: found.signals.canonical, links: found.links.unwrap_or_default() }
}
