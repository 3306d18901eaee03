//! One page, answered when it is done (wire 3.1).

pub mod run;
pub mod status;

use actix_web::HttpResponse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use weir_shared::domain::describe::Reading;
use weir_shared::domain::document::Document;
use weir_shared::domain::scrape_request::parse_scrape;
use weir_shared::domain::target::RequestContext;
use weir_shared::ids::PageId;

use crate::error::Shape;
use crate::openapi::{self, Group, Operation};

#[derive(Serialize, JsonSchema)]
pub(in crate::endpoints) struct Body<'a> {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scrape_id: Option<PageId>,
    #[schemars(with = "Document")]
    data: &'a RawValue,
}

/// `POST /v2/scrape` in the API's document.
pub fn doc_run() -> Operation {
    let read = |body: &Value| parse_scrape(body, RequestContext::ANYWHERE).map(Reading::of);
    let text = "Fetches one page, over HTTP or rendered in a browser as it needs, and answers when it is done. A page \
        that answers with an error is a success with `metadata.statusCode`; a name that does not exist is answered with \
        status 200 and `success: false`.";
    answer_document(Operation::new(Group::Scrape, "scrape", "Scrape a page", text))
        .body(
            "ScrapeRequest",
            read,
            vec![
                ("A page as markdown", json!({"url": "https://example.com"})),
                (
                    "Several formats, for a phone",
                    json!({"url": "https://example.com", "formats": ["markdown", "links", {"type": "screenshot", "fullPage": true}],
                        "mobile": true, "timeout": 30_000}),
                ),
                (
                    "Only the article, in German",
                    json!({"url": "https://example.com", "includeTags": ["article"], "excludeTags": ["nav"],
                        "location": {"country": "DE", "languages": ["de-DE"]}}),
                ),
            ],
        )
        .errors(&[402, 403, 404, 408, 409])
}

/// `GET /v2/scrape/{id}` in the API's document.
pub fn doc_status() -> Operation {
    let text = "The document of a page once more: of a scrape, or of a page of a batch or crawl, by its \
        `metadata.scrapeId`. A page that failed answers with its error.";
    answer_document(Operation::new(Group::Scrape, "getScrape", "Read a scrape again", text))
        .errors(&[400, 403, 404, 408, 409])
}

/// What both answer with, in the API's document.
fn answer_document(operation: Operation) -> Operation {
    let text = "The document, or that the name does not exist.";
    operation
        .answer_with(200, text, "application/json", openapi::either::<Body<'_>, Shape<'_>>)
        .example(document_example())
}

pub(in crate::endpoints) fn document_example() -> Value {
    json!({
        "success": true,
        "data": {
            "markdown": "# Example Domain\n\nThis domain is for use in examples.",
            "metadata": {
                "title": "Example Domain", "language": "en", "sourceURL": "https://example.com",
                "url": "https://example.com/", "statusCode": 200, "contentType": "text/html",
                "scrapeId": "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f", "proxyUsed": "basic", "creditsUsed": 1,
                "concurrencyLimited": false,
            },
        },
    })
}

/// The answer with a document, spliced in as stored. A document's warning is also the answer's.
pub(in crate::endpoints) fn document_answer(document: &RawValue, scrape_id: Option<PageId>) -> HttpResponse {
    HttpResponse::Ok().json(Body { success: true, warning: warning_of(document), scrape_id, data: document })
}

/// Reads the document's `warning`, without parsing the many documents that have none.
fn warning_of(document: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Warned {
        warning: Option<String>,
    }
    if !document.get().contains("\"warning\":") {
        return None;
    }
    serde_json::from_str::<Warned>(document.get()).ok().and_then(|d| d.warning)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn only_the_documents_own_warning_counts() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        assert_eq!(warning_of(&raw(r#"{"warning":"slow","metadata":{}}"#)).as_deref(), Some("slow"));
        assert_eq!(warning_of(&raw(r#"{"metadata":{"warning":"x"}}"#)), None);
        assert_eq!(warning_of(&raw(r#"{"markdown":"\"warning\":"}"#)), None);
    }
}
