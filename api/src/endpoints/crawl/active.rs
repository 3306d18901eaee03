//! `GET /v2/crawl/active` and `/ongoing` (spec 4.11, wire 5.6): the team's running crawls with their options. Every key of
//! the team reads them, so what may hold a caller's secrets is left out: values of headers, what actions type and run, and a
//! name and a password in the address.

use actix_web::http::header::ContentType;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use weir_shared::blocking;
use weir_shared::domain::action::Action;
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::domain::scrape_request::{HIDDEN, wire_form};
use weir_shared::domain::target::without_user;
use weir_shared::ids::{JobId, TeamId};
use weir_shared::store::StoreError;
use weir_shared::store::work::crawls::{self, ActiveCrawl};

use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Group, Operation};

/// Crawls in one answer: there is no paging for them.
const MOST: i64 = 1_000;

/// What one of them takes in the answer beside what was asked for, about, bytes: options that stand at their defaults.
const ABOUT: i64 = 2_048;

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
        let mut scrape: ScrapeOptions = serde_json::from_str(&crawl.scrape_options)?;
        hide_secrets(&mut scrape);
        options.insert("scrapeOptions".to_owned(), wire_form(&scrape));
        let created_at = crawl.created_at.to_iso();
        Ok(Self { id: crawl.id, team_id: crawl.team_id, url: without_user(&crawl.url), created_at, options })
    }
}

fn hide_secrets(scrape: &mut ScrapeOptions) {
    let typed = scrape.actions.iter_mut().filter_map(|action| match action {
        Action::Write { text } => Some(text),
        Action::ExecuteJavascript { script } => Some(script),
        _ => None,
    });
    for secret in scrape.headers.values_mut().chain(typed) {
        HIDDEN.clone_into(secret);
    }
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    const TEXT: &str = "The team's running crawls with their options. Values of headers, and text that actions type or run, \
        read `[hidden]`, and the address has no name and password: every key of the team may ask.";
    Operation::new(Group::Crawl, "listActiveCrawls", "Crawls that run", TEXT).answer::<Body>("The crawls.")
}

/// Handles the request.
///
/// # Errors
/// 401 without a key, and 429 when the team's other answers leave no room.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let team = caller.team_id();
    let (count, bytes) = crawls::bytes_of_active(&app.db, team, MOST).await?;
    let bytes = usize::try_from(bytes + count * ABOUT).unwrap_or(usize::MAX);
    app.answers.room(team, bytes).await?.keep_for_answer(&request);
    let running = crawls::active(&app.db, team, MOST).await?;
    // Long lists of patterns are read and written off the threads of requests.
    let made = blocking::run(move || {
        let crawls = running.into_iter().map(Entry::try_from).collect::<Result<_, StoreError>>()?;
        Ok::<_, StoreError>(serde_json::to_vec(&Body { success: true, crawls })?)
    });
    let body = made.await.map_err(|error| ApiError::internal(&error))??;
    Ok(HttpResponse::Ok().content_type(ContentType::json()).body(body))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;
    use weir_shared::domain::scrape_request::parse_scrape;
    use weir_shared::domain::target::RequestContext;
    use weir_shared::time::Timestamp;

    use super::*;

    #[test]
    fn what_a_caller_sends_and_types_is_not_shown_to_other_keys() {
        let body = json!({"url": "https://x.test/", "headers": {"Authorization": "hush", "X-Own": "hush"},
            "actions": [{"type": "click", "selector": "#user"}, {"type": "write", "text": "hush"},
                {"type": "executeJavascript", "script": "login('hush')"}]});
        let mut scrape = parse_scrape(&body, RequestContext::ANYWHERE).unwrap().options;
        hide_secrets(&mut scrape);
        let shown = wire_form(&scrape);
        assert!(!shown.to_string().contains("hush"), "{shown}");
        assert_eq!(shown["headers"], json!({"Authorization": HIDDEN, "X-Own": HIDDEN}));
        let actions = json!([{"type": "click", "selector": "#user", "all": false}, {"type": "write", "text": HIDDEN},
            {"type": "executeJavascript", "script": HIDDEN}]);
        assert_eq!(shown["actions"], actions);
        let crawl = ActiveCrawl {
            id: JobId::new(),
            team_id: TeamId::new(),
            url: "https://alice:hush@x.test/a".to_owned(),
            created_at: Timestamp(0),
            options: "{}".to_owned(),
            scrape_options: serde_json::to_string(&scrape).unwrap(),
        };
        assert_eq!(Entry::try_from(crawl).unwrap().url, "https://x.test/a");
    }
}
