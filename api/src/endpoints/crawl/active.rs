//! `GET /v2/crawl/active` and `/ongoing` (spec 4.11, wire 5.6): the team's running crawls with their options.

use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::domain::scrape_request::wire_form;
use weir_shared::ids::{JobId, TeamId};
use weir_shared::store::StoreError;
use weir_shared::store::crawls::{self, ActiveCrawl};

use crate::app::AppData;
use crate::error::ApiResult;
use crate::limits::Bucket;
use crate::openapi::{Group, Operation};

/// Crawls in one answer: there is no paging for them.
const MOST: i64 = 1_000;

#[derive(Serialize, JsonSchema)]
struct Body {
    success: bool,
    crawls: Vec<Entry>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ActiveCrawl")]
struct Entry {
    id: JobId,
    #[serde(rename = "teamId")]
    team_id: TeamId,
    url: String,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    options: Map<String, Value>,
}

impl TryFrom<ActiveCrawl> for Entry {
    type Error = StoreError;

    fn try_from(crawl: ActiveCrawl) -> Result<Self, StoreError> {
        let mut options: Map<String, Value> = serde_json::from_str(&crawl.options)?;
        let scrape: ScrapeOptions = serde_json::from_str(&crawl.scrape_options)?;
        options.insert("scrapeOptions".to_owned(), wire_form(&scrape));
        let created_at = crawl.created_at.to_iso();
        Ok(Self { id: crawl.id, team_id: crawl.team_id, url: crawl.url, created_at, options })
    }
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    Operation::new(Group::Crawl, "listActiveCrawls", "Crawls that run", "The team's running crawls with their options.")
        .answer::<Body>("The crawls.")
}

/// Handles the request.
///
/// # Errors
/// 401 without a key.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let running = crawls::active(&app.db, caller.team_id(), app.db.now(), MOST).await?;
    let crawls = running.into_iter().map(Entry::try_from).collect::<Result<_, _>>()?;
    Ok(HttpResponse::Ok().json(Body { success: true, crawls }))
}
