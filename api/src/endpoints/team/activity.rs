//! `GET /v2/team/activity` (spec 4.12, wire 10): the team's calls of the last day, newest first.

use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;
use weir_shared::domain::activity::{Cursor, DEFAULT_LIMIT, Endpoint, MAX_LIMIT, WINDOW_MS};
use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::target::without_user;
use weir_shared::error_code::ErrorCode;
use weir_shared::store::accounts::activity;

use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
struct Body {
    success: bool,
    data: Vec<Entry>,
    cursor: Option<String>,
    has_more: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ActivityEntry")]
struct Entry {
    #[schemars(with = "String", extend("format" = "uuid"))]
    id: Uuid,
    #[schemars(extend("enum" = endpoints()))]
    endpoint: &'static str,
    /// The version of the API that was called.
    #[schemars(extend("enum" = versions()))]
    api_version: &'static str,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    target: Option<String>,
}

impl From<activity::Entry> for Entry {
    fn from(entry: activity::Entry) -> Self {
        // Every key of the team reads it. What is looked for or asked in words is no address.
        let is_words = matches!(entry.endpoint, Endpoint::Search | Endpoint::Agent);
        let shown = |target: String| if is_words { target } else { without_user(&target) };
        Self {
            id: entry.id,
            endpoint: entry.endpoint.as_str(),
            api_version: entry.version.as_str(),
            created_at: entry.created_at.to_iso(),
            target: entry.target.map(shown),
        }
    }
}

/// The words of the filter.
fn endpoints() -> Vec<&'static str> {
    Endpoint::ALL.iter().map(|endpoint| endpoint.as_str()).collect()
}

fn versions() -> Vec<&'static str> {
    ApiVersion::ALL.iter().map(|version| version.as_str()).collect()
}

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "The team's calls of the last 24 hours, newest first. `cursor` leads to older ones; it stays right while new \
        ones come.";
    let limit = "Entries at most: 1 to 100, 50 without it or when it is no number; what is outside is brought inside.";
    Operation::new(Group::Team, "listActivity", "What the team did", text)
        .query("endpoint", json!({"type": "string", "enum": endpoints()}), "Only calls of this kind.")
        .query("limit", json!({"type": ["integer", "string"], "default": DEFAULT_LIMIT}), limit)
        .query("cursor", json!({"type": "string"}), "The `cursor` of the page before; empty for the first.")
        .answer::<Body>("The calls.")
        .errors(&[400])
}

/// Handles the request.
///
/// # Errors
/// 400 for an unknown endpoint or a cursor that we did not give out.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let Query { endpoint, limit, cursor } = read(request.query_string())?;
    let since = app.db.now().plus_ms(-WINDOW_MS);
    // One more than asked for tells whether there is more.
    let mut found = activity::page(&app.db, caller.team_id(), endpoint, since, cursor, limit + 1).await?;
    let has_more = found.len() as i64 > limit;
    found.truncate(usize::try_from(limit).unwrap_or(0));
    let last = found.last().filter(|_| has_more).map(|last| Cursor { created_at: last.created_at, id: last.id });
    let data = found.into_iter().map(Entry::from).collect();
    Ok(HttpResponse::Ok().json(Body { success: true, data, cursor: last.map(Cursor::encode), has_more }))
}

#[derive(Debug, PartialEq, Eq)]
struct Query {
    endpoint: Option<Endpoint>,
    /// 1 to 100.
    limit: i64,
    cursor: Option<Cursor>,
}

/// Reads the parameters; others are ignored. A limit out of range is brought into it (wire 10).
fn read(query: &str) -> ApiResult<Query> {
    let mut read = Query { endpoint: None, limit: DEFAULT_LIMIT, cursor: None };
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match name.as_ref() {
            "endpoint" => read.endpoint = Some(value.parse().map_err(|_| wrong_endpoint())?),
            "limit" => read.limit = value.parse::<i64>().map_or(DEFAULT_LIMIT, |limit| limit.clamp(1, MAX_LIMIT)),
            // Clients that always send it send none for the first page.
            "cursor" if value.is_empty() => read.cursor = None,
            "cursor" => {
                let cursor = Cursor::decode(&value);
                read.cursor = Some(cursor.ok_or_else(|| ApiError::new(ErrorCode::Invalid, "Invalid cursor."))?);
            }
            _ => {}
        }
    }
    Ok(read)
}

fn wrong_endpoint() -> ApiError {
    let words = endpoints().join(", ");
    ApiError::new(ErrorCode::Invalid, format!("Invalid endpoint filter. Must be one of: {words}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use weir_shared::time::Timestamp;

    use super::*;

    #[test]
    fn a_password_in_an_address_is_not_shown_to_other_keys() {
        for (endpoint, target, shown) in [
            (Endpoint::Scrape, "http://alice:hush@x.test/", "http://x.test/"),
            (Endpoint::Crawl, "http://alice:hush@x.test/a", "http://x.test/a"),
            (Endpoint::Search, "alice@x.test", "alice@x.test"),
        ] {
            let entry = activity::Entry {
                id: Uuid::nil(),
                endpoint,
                version: ApiVersion::V2,
                target: Some(target.to_owned()),
                created_at: Timestamp(0),
            };
            assert_eq!(Entry::from(entry).target.as_deref(), Some(shown), "{target}");
        }
    }

    #[test]
    fn parameters_are_read_or_refused() {
        let plain = Query { endpoint: None, limit: 50, cursor: None };
        assert_eq!(read("").unwrap(), plain);
        assert_eq!(read("other=1&limit=many").unwrap(), plain);
        assert_eq!(read("cursor=").unwrap(), plain);
        for (text, limit) in [("1", 1), ("100", 100), ("101", 100), ("0", 1), ("-5", 1), ("", 50)] {
            assert_eq!(read(&format!("limit={text}")).unwrap().limit, limit, "{text}");
        }
        for endpoint in Endpoint::ALL {
            assert_eq!(read(&format!("endpoint={}", endpoint.as_str())).unwrap().endpoint, Some(*endpoint));
        }
        let error = read("endpoint=lunch").unwrap_err().to_string();
        assert!(error.starts_with("Invalid endpoint filter. Must be one of: scrape, crawl, batch_scrape,"), "{error}");
        assert_eq!(read("cursor=x").unwrap_err().to_string(), "Invalid cursor.");
    }
}
