//! `POST /v1/scrape` (wire 26): one page now.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use weir_shared::domain::describe::Reading;
use weir_shared::domain::scrape_request::parse_v1_scrape;
use weir_shared::domain::target::RequestContext;

use super::document;
use crate::app::AppData;
use crate::endpoints::scrape::run::{Scraped, run};
use crate::endpoints::scrape::{Body, document_answer, document_example};
use crate::error::{ApiResult, Shape};
use crate::openapi::{self, Group, Operation};

/// What the API's document says of it.
pub fn doc() -> Operation {
    let read = |body: &Value| parse_v1_scrape(body, RequestContext::ANYWHERE).map(Reading::of);
    let text = "As in version 2, with formats that are names; their options stand beside them.";
    Operation::new(Group::V1, "scrapeV1", "Scrape a page", text)
        .body(
            "ScrapeRequestV1",
            read,
            vec![
                ("A page as markdown", json!({"url": "https://example.com"})),
                (
                    "Data that is read out of a page",
                    json!({"url": "https://example.com", "formats": ["markdown", "json"],
                        "jsonOptions": {"prompt": "The owner of the domain"}}),
                ),
            ],
        )
        .answer_with(200, "The document, or that the name does not exist.", "application/json", |generator| {
            document::in_answer(generator, openapi::either::<Body<'_>, Shape<'_>>)
        })
        .example(document_example())
        .errors(&[402, 403, 404, 408, 409])
}

/// Handles the request.
///
/// # Errors
/// Those of a scrape of version 2.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let Scraped { document, named } = run(&app, &request, payload, parse_v1_scrape).await?;
    Ok(document_answer(&document::shaped(&document), named))
}
