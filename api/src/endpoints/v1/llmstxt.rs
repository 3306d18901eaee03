//! `/v1/llmstxt` (wire 26): a site's addresses with their titles and descriptions, as a text for language models. It is a map
//! that is written down otherwise: who asks for its state makes the text of the map's links.

use std::fmt::Write as _;

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use weir_shared::domain::activity::Endpoint;
use weir_shared::domain::describe::Reading;
use weir_shared::domain::job::{JobKind, PageState};
use weir_shared::domain::scrape_request::parse_v1_llmstxt;
use weir_shared::domain::target::{RequestContext, fetch_url};
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::work::jobs::{self, JobRow};
use weir_shared::store::work::{documents, maps, pages};

use super::map::{Link, Made};
use crate::app::{App, AppData};
use crate::callers::limits::Bucket;
use crate::endpoints::map;
use crate::error::{ApiError, ApiResult};
use crate::http::answers::Room;
use crate::http::extract;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LlmsTxtStarted")]
struct Started {
    success: bool,
    id: JobId,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LlmsTxtStatus")]
struct Status {
    /// False when it has failed.
    success: bool,
    #[schemars(extend("enum" = ["processing", "completed", "failed"]))]
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Text>,
    /// Why it has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    expires_at: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LlmsTxt")]
struct Text {
    llmstxt: String,
}

/// What the API's document says of the start.
pub fn doc_start() -> Operation {
    let read = |body: &Value| parse_v1_llmstxt(body, RequestContext::ANYWHERE).map(Reading::of);
    let text = "Starts to list a site's pages with their titles and descriptions, as a text for language models. It costs \
        what a map costs, and its id is read until it is completed.";
    let site = json!({"url": "https://example.com"});
    let more = json!({"url": "https://example.com", "maxUrls": 50, "cache": false});
    Operation::new(Group::V1, "startLlmsTxt", "Start a llms.txt", text)
        .body("LlmsTxtRequestV1", read, vec![("A site", site), ("More of it, read anew", more)])
        .answer::<Started>("It is started.")
        .errors(&[402, 403])
}

/// What the API's document says of its state.
pub fn doc_status() -> Operation {
    let text = "Its state, and the text when it is completed.";
    Operation::new(Group::V1, "getLlmsTxt", "Status of a llms.txt", text)
        .answer::<Status>("The state.")
        .errors(&[400, 404])
}

/// Handles `POST /v1/llmstxt`.
///
/// # Errors
/// Those of a map that is not waited for.
pub async fn start(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let (accepted, _) = map::begin(&app, &request, payload, parse_v1_llmstxt, Endpoint::Llmstxt).await?;
    Ok(HttpResponse::Ok().json(Started { success: true, id: accepted.job }))
}

/// Handles `GET /v1/llmstxt/{id}`.
///
/// # Errors
/// 400 for a malformed id, 404 for one that is unknown, expired, another team's or of something else.
pub async fn status(app: AppData, request: HttpRequest, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let id: JobId = extract::path_id(&id)?;
    let job = jobs::load(&app.db, id)
        .await?
        .filter(|job| job.team_id == caller.team_id() && job.kind == JobKind::Map && !job.has_expired(app.db.now()));
    let job = job.ok_or_else(ApiError::job_not_found)?;
    // Another map of the team is none of these.
    maps::options(&app.db, id).await?.filter(|map| map.llms_txt).ok_or_else(ApiError::job_not_found)?;
    let page = pages::list(&app.db, id, None, 1).await?.into_iter().next().ok_or_else(ApiError::job_not_found)?;
    let expires_at = job.expires_at.to_iso();
    let body = match page.state {
        PageState::Queued | PageState::Running => {
            Status { success: true, status: "processing", data: None, error: None, expires_at }
        }
        PageState::Done => {
            let (llmstxt, room) = text(&app, &job, page.id).await?;
            room.keep_for_answer(&request);
            let data = Some(Text { llmstxt });
            Status { success: true, status: "completed", data, error: None, expires_at }
        }
        PageState::Failed | PageState::Cancelled => {
            let error = page.error.unwrap_or_else(|| "The site could not be mapped.".to_owned());
            Status { success: false, status: "failed", data: None, error: Some(error), expires_at }
        }
    };
    Ok(HttpResponse::Ok().json(body))
}

/// The text, and the room that it takes.
async fn text(app: &App, job: &JobRow, page: PageId) -> ApiResult<(String, Room)> {
    let packed = documents::packed(&app.db, page).await?.ok_or_else(ApiError::job_not_found)?;
    let (document, room) = app.unpack(job.team_id, packed).await?;
    let made: Made<'_> = serde_json::from_str(document.json.get()).map_err(|error| ApiError::internal(&error))?;
    let host = fetch_url(&job.target).ok().and_then(|url| url.host_str().map(str::to_owned));
    Ok((write(host.as_deref().unwrap_or(&job.target), &made.links), room))
}

/// A heading, and a line for each link. Titles and descriptions are the site's: none of them ends its line, or the link.
fn write(host: &str, links: &[Link<'_>]) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = format!("# {host} llms.txt\n\n");
    for link in links {
        let title = link.title.as_deref().map(one_line).filter(|title| !title.is_empty());
        let title = title.unwrap_or_else(|| link.url.to_string());
        let title = title.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
        let url = link.url.replace('(', "%28").replace(')', "%29");
        let description = link.description.as_deref().map(one_line).filter(|text| !text.is_empty());
        let description = description.map(|description| format!(": {description}")).unwrap_or_default();
        let _ = writeln!(text, "- [{title}]({url}){description}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_has_a_line_whatever_its_title_is() {
        let link = |url: &'static str, title: Option<&'static str>, description: Option<&'static str>| Link {
            url: url.into(),
            title: title.map(Into::into),
            description: description.map(Into::into),
        };
        let links = [
            link("https://a.example/", Some("A [home]\n page"), Some(" What\n- it is ")),
            link("https://a.example/x_(y)", None, None),
            link("https://a.example/z", Some(" "), Some("")),
        ];
        assert_eq!(
            write("a.example", &links),
            "# a.example llms.txt\n\n\
             - [A \\[home\\] page](https://a.example/): What - it is\n\
             - [https://a.example/x_(y)](https://a.example/x_%28y%29)\n\
             - [https://a.example/z](https://a.example/z)\n"
        );
    }
}
