//! `POST /v1/map` (wire 26): the addresses of a site, as texts.

use std::borrow::Cow;

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_shared::domain::describe::Reading;
use weir_shared::domain::scrape_request::parse_v1_map;
use weir_shared::domain::target::RequestContext;
use weir_shared::ids::JobId;

use crate::app::AppData;
use crate::endpoints::map::run;
use crate::error::{ApiError, ApiResult, Shape};
use crate::openapi::{self, Group, Operation};

#[derive(Serialize, JsonSchema)]
struct Body<'a> {
    success: bool,
    id: JobId,
    links: Vec<Cow<'a, str>>,
    /// What the caller should know about the list: that it is short, or cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<Cow<'a, str>>,
}

/// The answer of version 2, as the worker wrote it.
#[derive(Deserialize)]
pub(super) struct Made<'a> {
    id: JobId,
    #[serde(borrow)]
    pub links: Vec<Link<'a>>,
    #[serde(borrow)]
    warning: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct Link<'a> {
    #[serde(borrow)]
    pub url: Cow<'a, str>,
    #[serde(borrow, default)]
    pub title: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub description: Option<Cow<'a, str>>,
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let read = |body: &Value| parse_v1_map(body, RequestContext::ANYWHERE).map(Reading::of);
    let text = "As in version 2, with links that are texts.";
    Operation::new(Group::V1, "mapV1", "List a site's addresses", text)
        .body(
            "MapRequestV1",
            read,
            vec![
                ("A site", json!({"url": "https://example.com"})),
                ("What its sitemaps name", json!({"url": "https://example.com", "sitemapOnly": true, "limit": 100})),
            ],
        )
        .answer_with(
            200,
            "The addresses, or that the name does not exist.",
            "application/json",
            openapi::either::<Body<'_>, Shape<'_>>,
        )
        .example(json!({
            "success": true, "id": "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f",
            "links": ["https://example.com/docs"],
        }))
        .errors(&[402, 403, 408])
}

/// Handles the request.
///
/// # Errors
/// Those of a map of version 2.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let made = run(&app, &request, payload, parse_v1_map).await?;
    let made: Made<'_> = serde_json::from_str(made.get()).map_err(|error| ApiError::internal(&error))?;
    let links = made.links.into_iter().map(|link| link.url).collect();
    Ok(HttpResponse::Ok().json(Body { success: true, id: made.id, links, warning: made.warning }))
}
