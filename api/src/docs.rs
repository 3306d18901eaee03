//! `/openapi.json` and `/docs`: the API's document, and a page to read and try it.
//!
//! The page is whole in itself: it takes nothing from elsewhere, and works without internet.

use actix_web::HttpResponse;
use actix_web::http::header::{self, ContentType};
use schemars::json_schema;

use crate::http::asset::asset;
use crate::openapi::{self, Described, Operation};

const PAGE: &str = include_str!("docs/index.html");
const SCRIPT: &str = include_str!("docs/docs.js");
const STYLE: &str = include_str!("docs/docs.css");

/// Everything comes from here and nothing may be added.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `GET /openapi.json` in the document.
pub fn doc_document() -> Operation {
    Operation::public("getDocument", "This document", "OpenAPI 3.1 of every route.").answer_with(
        200,
        "The document.",
        "application/json",
        |_| json_schema!({"type": "object", "required": ["openapi", "info", "paths"], "additionalProperties": true}),
    )
}

/// `GET /docs` in the document.
pub fn doc_page() -> Operation {
    Operation::public("getDocsPage", "Documentation", "A page to read and try this document.")
        .text_answer("The page.", "text/html; charset=utf-8")
}

/// `GET /docs/docs.js` in the document.
pub fn doc_script() -> Operation {
    Operation::public("getDocsScript", "Script of the documentation", "The page's script.")
        .text_answer("The script.", "text/javascript; charset=utf-8")
}

/// `GET /docs/docs.css` in the document.
pub fn doc_style() -> Operation {
    Operation::public("getDocsStyle", "Style of the documentation", "The page's style.")
        .text_answer("The style.", "text/css; charset=utf-8")
}

/// `GET /openapi.json`. Any page may read it: there is nothing of anybody's in it.
pub async fn document(routes: fn() -> Vec<Described>) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(ContentType::json())
        .insert_header((header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"))
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .body(openapi::text(routes).await)
}

/// `GET /docs`.
pub async fn page() -> HttpResponse {
    asset("text/html; charset=utf-8", POLICY, PAGE)
}

/// `GET /docs/docs.js`.
pub async fn script() -> HttpResponse {
    asset("text/javascript; charset=utf-8", POLICY, SCRIPT)
}

/// `GET /docs/docs.css`.
pub async fn style() -> HttpResponse {
    asset("text/css; charset=utf-8", POLICY, STYLE)
}
