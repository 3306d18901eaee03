//! `/console/api/failures`: what failed lately, grouped by host and code, with one example each; a group is replayed.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;
use weir_shared::clock::Stopwatch;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId, TeamId};
use weir_shared::store::StoreResult;
use weir_shared::store::console::pages::{self, Failure};
use weir_shared::store::work::page::replay::Replay;
use weir_shared::time::Timestamp;

use super::body;
use super::jobs::{Done, of_teams, replay_page, since};
use super::session::enter;
use super::wire::{Team, TeamNames, is_worth_replaying};
use crate::app::{App, AppData};
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Group, Operation};

/// Failures that are looked through, newest first.
const COUNTED: usize = 5_000;
/// Of these, in one statement.
const STEP: i64 = 2_500;
/// Groups that are shown, largest first.
const GROUPS: usize = 200;
/// How far back it is looked unless it is said.
const BACK: &str = "24h";
/// How long one call replays.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Query {
    since: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleFailures")]
struct Failures {
    groups: Vec<Shown>,
    /// Failures that were counted.
    counted: usize,
    /// There are older ones in this time.
    is_more: bool,
    /// How far back it was looked.
    #[schemars(extend("format" = "date-time"))]
    from: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleFailureGroup")]
struct Shown {
    /// Empty: nothing may be kept of the addresses.
    host: String,
    code: Option<String>,
    count: usize,
    #[schemars(extend("format" = "date-time"))]
    last_at: String,
    /// They failed for a reason that may have passed.
    worth_replaying: bool,
    example: Example,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleFailureExample")]
struct Example {
    job_id: JobId,
    page_id: PageId,
    url: String,
    error: Option<String>,
    team: Team,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReplayRequest {
    host: String,
    code: Option<String>,
    since: Option<String>,
    team: Option<TeamId>,
    /// How many the group was shown with: more are not replayed.
    count: usize,
    /// Where the call before stopped.
    after: Option<String>,
}

/// `GET /console/api/failures` in the API's document.
pub fn doc() -> Operation {
    let text = "Pages that failed for good, grouped by host and code, largest group first.";
    of_teams(Operation::new(Group::Console, "consoleListFailures", "Failures", text))
        .query("since", json!({"type": "string"}), "A time, or a duration; 24h unless given.")
        .answer::<Failures>("The groups.")
}

/// `POST /console/api/failures/replay` in the API's document.
pub fn doc_replay() -> Operation {
    let example = json!({"host": "example.com", "code": "SCRAPE_TIMEOUT", "since": "24h", "count": 120});
    of_teams(Operation::new(Group::Console, "consoleReplayFailures", "Replay a group", "Puts its pages back."))
        .typed_body::<ReplayRequest>("ConsoleReplayGroup", example)
        .answer::<Done>("What was done; with `next`, call again with it as `after`.")
}

/// The host of an address, with its port; empty where there is none.
fn host(url: &str) -> String {
    let parsed = Url::parse(url).ok();
    let host = parsed.as_ref().and_then(|url| Some((url.host_str()?, url.port())));
    match host {
        Some((host, Some(port))) => format!("{host}:{port}"),
        Some((host, None)) => host.to_owned(),
        None => String::new(),
    }
}

/// Failures since a time, newest first, and whether there are more.
async fn newest(app: &App, team: Option<TeamId>, from: Timestamp) -> StoreResult<(Vec<Failure>, bool)> {
    let mut found: Vec<Failure> = Vec::new();
    loop {
        let before = found.last().map(|last| (last.finished_at, last.id));
        let rows = pages::failures(&app.db, team, from, before, STEP).await?;
        let is_last = (rows.len() as i64) < STEP;
        found.extend(rows);
        if is_last || found.len() >= COUNTED {
            return Ok((found, !is_last));
        }
    }
}

/// `GET /console/api/failures`.
///
/// # Errors
/// Those of [`enter`], 400.
pub async fn list(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    let query: Query = body::query(&request)?;
    let from = since(query.since.as_deref().unwrap_or(BACK), app.db.now())?;
    let (work, scope) = (app.clone(), viewer.scope());
    let (found, is_more, names) = app
        .beside_database(async move {
            let (found, is_more) = newest(&work, scope, from).await?;
            Ok((found, is_more, TeamNames::load(&work).await?))
        })
        .await?;
    let counted = found.len();
    let reached = if is_more { found.last().map_or(from, |last| last.finished_at) } else { from };
    let mut groups: HashMap<(String, Option<String>), (usize, Failure)> = HashMap::new();
    for failure in found {
        let group = (host(&failure.url), failure.error_code.clone());
        // The first one is the newest.
        groups.entry(group).or_insert_with(|| (0, failure)).0 += 1;
    }
    let mut groups: Vec<Shown> = groups
        .into_iter()
        .map(|((host, code), (count, newest))| Shown {
            host,
            worth_replaying: is_worth_replaying(code.as_deref()),
            code,
            count,
            last_at: newest.finished_at.to_iso(),
            example: Example {
                job_id: newest.job_id,
                page_id: newest.id,
                url: newest.url,
                error: newest.error,
                team: names.of(newest.team_id),
            },
        })
        .collect();
    groups.sort_by(|a, b| (b.count, &b.last_at, &a.host).cmp(&(a.count, &a.last_at, &b.host)));
    groups.truncate(GROUPS);
    Ok(HttpResponse::Ok().json(Failures { groups, counted, is_more, from: reached.to_iso() }))
}

/// `POST /console/api/failures/replay`.
///
/// # Errors
/// Those of [`enter`], 400.
pub async fn replay(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    let given: ReplayRequest = body::read(&request, payload).await?;
    let team = match (viewer.scope(), given.team) {
        (Some(own), Some(other)) if own != other => return Err(ApiError::new(ErrorCode::NotFound, "Team not found")),
        (own, named) => own.or(named),
    };
    let from = since(given.since.as_deref().unwrap_or(BACK), app.db.now())?;
    let after = given.after.as_deref().map(read_place).transpose()?;
    let work = app.clone();
    let done = app.beside_database(async move { replay_group(&work, &given, team, from, after).await }).await?;
    Ok(HttpResponse::Ok().json(done))
}

/// Where a replay goes on: before this failure, with so many left.
type Place = (Timestamp, PageId, usize);

fn read_place(text: &str) -> ApiResult<Place> {
    let mut parts = text.split('.');
    let mut read = || {
        let (at, id, left) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some((Timestamp(at), id, left))
    };
    read().ok_or_else(|| ApiError::new(ErrorCode::BadRequest, "after: this is none of ours"))
}

async fn replay_group(
    app: &App,
    given: &ReplayRequest,
    team: Option<TeamId>,
    from: Timestamp,
    after: Option<Place>,
) -> ApiResult<Done> {
    let (began, mut done) = (Stopwatch::start(), Done::default());
    // What fails again meanwhile is newer than this, and not tried twice.
    let (mut before, mut left) = match after {
        Some((at, id, left)) => ((at, id), left),
        None => ((app.db.now(), PageId(uuid::Uuid::max())), given.count),
    };
    loop {
        let rows = pages::failures(&app.db, team, from, Some(before), STEP).await?;
        for failure in &rows {
            if left == 0 {
                return Ok(done);
            }
            if began.elapsed() > PATIENCE {
                done.next = Some(format!("{}.{}.{left}", before.0.0, before.1));
                return Ok(done);
            }
            before = (failure.finished_at, failure.id);
            if failure.error_code != given.code || host(&failure.url) != given.host {
                continue;
            }
            left -= 1;
            match replay_page(app, failure.id).await? {
                Replay::Queued => done.done += 1,
                Replay::NotDead | Replay::NoCredits => done.skipped += 1,
            }
            done.pages = done.done;
        }
        if (rows.len() as i64) < STEP {
            return Ok(done);
        }
    }
}

/// Failures by code, largest first: for people.
pub(super) fn largest(errors: &BTreeMap<String, u64>) -> Option<(&str, u64)> {
    errors.iter().max_by_key(|(_, count)| **count).map(|(code, count)| (code.as_str(), *count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_host_with_its_port() {
        assert_eq!(host("http://example.com/a?b"), "example.com");
        assert_eq!(host("http://[::1]:8080/"), "[::1]:8080");
        assert_eq!(host(""), "");
    }

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let id = PageId::new();
        assert_eq!(read_place(&format!("5.{id}.7")).ok(), Some((Timestamp(5), id, 7)));
        assert!(read_place("5.x.7").is_err() && read_place("").is_err());
    }
}
