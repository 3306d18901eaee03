//! One page, answered when it is done (CONTRACT 3.1).

mod cached;
pub mod run;
pub mod status;

use actix_web::HttpResponse;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use weir_shared::ids::PageId;

#[derive(Serialize)]
struct Body<'a> {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scrape_id: Option<PageId>,
    data: &'a RawValue,
}

/// The answer with a document, spliced in as stored. A document's warning is also the answer's.
fn document_answer(document: &RawValue, scrape_id: Option<PageId>) -> HttpResponse {
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
