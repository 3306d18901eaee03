//! The body of `POST /v2/crawl/params-preview` (spec 4.10, wire 5): an address and a sentence. Other fields are
//! ignored (wire 2.2).

use serde_json::Value;

use crate::domain::crawl::MAX_PROMPT;
use crate::domain::target::{self, RequestContext};
use crate::domain::validation::{Fields, Issues, Path, ValidationError, refusal};
use crate::error_code::ErrorCode;

/// A preview, valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewRequest {
    /// Exactly as it came.
    pub url: String,
    pub prompt: String,
}

/// Reads the body.
///
/// # Errors
/// Every wrong field, in words that begin as wire 2.1 says.
pub fn parse_preview(body: &Value, context: RequestContext<'_>) -> Result<PreviewRequest, ValidationError> {
    let mut issues = Issues::default();
    let request = Fields::open(body, Path::new(), &mut issues).and_then(|mut fields| {
        let url = target::read(&mut fields, "url", context);
        fields.required("prompt");
        let prompt = fields.text("prompt", 1..=MAX_PROMPT);
        if prompt.is_some_and(|prompt| prompt.trim().is_empty()) {
            fields.issues.rule(fields.path_of("prompt"), "prompt must not be empty");
        }
        Some(PreviewRequest { url: url?, prompt: prompt?.to_owned() })
    });
    let judged = issues
        .into_result()
        .and_then(|()| request.ok_or_else(|| refusal(ErrorCode::BadRequest, Path::new(), "Bad Request")));
    judged.map_err(|mut error| {
        let first = error.issues.first().map_or(error.message.clone(), |issue| issue.message.clone());
        error.message = format!("Invalid request parameters: {first}");
        error
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_preview_needs_an_address_and_words() {
        let parse = |body: Value| parse_preview(&body, RequestContext { knows_host: &|_| false });
        let read = parse(json!({"url": "example.com", "prompt": "blog", "origin": "x", "unknown": 1})).unwrap();
        assert_eq!((read.url.as_str(), read.prompt.as_str()), ("example.com", "blog"));
        assert!(parse(json!({"url": "example.com", "prompt": "x".repeat(10_000)})).is_ok());
        for body in [
            json!({"url": "example.com"}),
            json!({"prompt": "blog"}),
            json!({"url": "example.com", "prompt": ""}),
            json!({"url": "example.com", "prompt": "  "}),
            json!({"url": "example.com", "prompt": 5}),
            json!({"url": "example.com", "prompt": "x".repeat(10_001)}),
            json!({"url": "ftp://example.com", "prompt": "blog"}),
            json!([]),
        ] {
            let error = parse(body.clone()).unwrap_err();
            assert!(error.message.starts_with("Invalid request parameters:"), "{body}: {}", error.message);
            assert_eq!(error.code, ErrorCode::BadRequest);
        }
    }
}
