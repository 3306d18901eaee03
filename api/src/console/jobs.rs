//! `/console/api/jobs`: jobs of all kinds in one list, and what is done with many of them at once.
//!
//! What is done goes by the operations that a single job has, each in a transaction of its own, and is looked at again at
//! each job: whoever presses twice does it once. A call works for some seconds and says where to go on.

use std::time::Duration;

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_shared::clock::Stopwatch;
use weir_shared::config::parse_duration;
use weir_shared::domain::console::Role;
use weir_shared::domain::job::{JobKind, JobStatus};
use weir_shared::domain::map::site_of;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId, TeamId};
use weir_shared::store::console::jobs::{self as lists, Filter};
use weir_shared::store::work::page::replay::{self, Replay, ReplayFilter};
use weir_shared::store::work::{cancel, jobs, pages};
use weir_shared::store::{Db, StoreResult};
use weir_shared::time::Timestamp;

use super::body;
use super::session::{Viewer, enter};
use super::wire::{Job, TeamNames};
use crate::app::{App, AppData};
use crate::error::{ApiError, ApiResult};
use crate::http::extract::path_id;
use crate::openapi::{Group, Operation};

/// Entries of a list, unless it is said, and at most.
pub(super) const LIMIT: i64 = 50;
pub(super) const MOST: i64 = 200;
/// Jobs are counted to here.
const COUNTED: usize = 10_000;
/// Ids in one body at most.
const IDS: usize = 1_000;
/// How long one call does something with many jobs.
const PATIENCE: Duration = Duration::from_secs(5);
/// Jobs that are looked up, and pages that are replayed, between two looks at the clock.
const STEP: usize = 100;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Query {
    id: Option<String>,
    kind: Option<String>,
    status: Option<String>,
    host: Option<String>,
    since: Option<String>,
    code: Option<String>,
    cursor: Option<String>,
    limit: Option<i64>,
}

/// Which jobs a body means.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "ConsoleJobFilter")]
struct Wanted {
    /// The job of this id, or the one that has the page of this id: callers know a scrape by its page.
    id: Option<String>,
    kind: Option<String>,
    status: Option<String>,
    /// On this host's site.
    host: Option<String>,
    /// Made since this time, or within this duration.
    since: Option<String>,
    /// With a page that failed so.
    code: Option<String>,
    /// Of this team; the session's own otherwise.
    team: Option<TeamId>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleJobs")]
struct Jobs {
    jobs: Vec<Job>,
    /// For `cursor`; null: there are no more.
    next: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CountRequest {
    filter: Wanted,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleJobCount")]
struct Count {
    count: usize,
    /// There are more than were counted.
    is_more: bool,
    /// The newest that was counted.
    up_to: Option<JobId>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BulkRequest {
    /// These jobs.
    ids: Option<Vec<JobId>>,
    /// Or those that match.
    filter: Option<Wanted>,
    /// With a filter: how many the count said.
    count: Option<usize>,
    /// With a filter: whether there were more.
    #[serde(default)]
    is_more: bool,
    /// With a filter: the newest that was counted.
    up_to: Option<JobId>,
    /// Where the call before stopped.
    after: Option<String>,
}

/// What came of something that was done with many things.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "ConsoleDone")]
pub(super) struct Done {
    /// Things that it was done with.
    pub done: usize,
    /// Things that there was nothing to do with.
    pub skipped: usize,
    /// Pages put back into the queue.
    pub pages: usize,
    /// For `after`; null: all is done.
    pub next: Option<String>,
}

/// `GET /console/api/jobs` in the API's document.
pub fn doc_list() -> Operation {
    let text = "Jobs of all kinds, newest first. A page may be short while there are more: go on with `next` until it is null.";
    listed(Operation::new(Group::Console, "consoleListJobs", "List jobs", text))
        .query("id", json!({"type": "string"}), "Only the job of this id, or that has the page of this id.")
        .query("kind", json!({"type": "string"}), "scrape, batch, crawl, map, search, extract or agent.")
        .query("status", json!({"type": "string"}), "scraping, completed, failed or cancelled.")
        .query("host", json!({"type": "string"}), "Only jobs whose first address is on this host's site.")
        .query("since", json!({"type": "string"}), "A time, or a duration such as 24h.")
        .query("code", json!({"type": "string"}), "Only jobs with a page that failed so.")
        .answer::<Jobs>("The jobs.")
}

/// What every list takes.
pub(super) fn listed(operation: Operation) -> Operation {
    of_teams(operation).query("cursor", json!({"type": "string"}), "`next` of the page before.").query(
        "limit",
        json!({"type": "integer", "minimum": 1, "maximum": MOST}),
        "Most entries; 50 unless given.",
    )
}

/// What every operation takes that has the things of teams.
pub(super) fn of_teams(operation: Operation) -> Operation {
    let schema = json!({"type": "string", "format": "uuid"});
    operation.query("team", schema, "For operators: only this team's.").errors(&[400, 404])
}

/// `POST /console/api/jobs/count` in the API's document.
pub fn doc_count() -> Operation {
    let text = "How many jobs match, counted to 10,000: what is confirmed before something is done with them.";
    of_teams(Operation::new(Group::Console, "consoleCountJobs", "Count jobs", text))
        .typed_body::<CountRequest>("ConsoleCount", json!({"filter": {"status": "scraping"}}))
        .answer::<Count>("The count.")
}

fn doc_bulk(id: &'static str, summary: &'static str, text: &'static str) -> Operation {
    of_teams(Operation::new(Group::Console, id, summary, text))
        .typed_body::<BulkRequest>("ConsoleBulk", json!({"ids": ["0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f"]}))
        .answer::<Done>("What was done; with `next`, call again with it as `after`.")
        .errors(&[409])
}

/// `POST /console/api/jobs/cancel` in the API's document.
pub fn doc_cancel() -> Operation {
    doc_bulk("consoleCancelJobs", "Cancel jobs", "Cancels those that run.")
}

/// `POST /console/api/jobs/replay` in the API's document.
pub fn doc_replay() -> Operation {
    doc_bulk("consoleReplayJobs", "Replay jobs", "Puts their failed pages back into the queue.")
}

/// `POST /console/api/jobs/delete` in the API's document.
pub fn doc_delete() -> Operation {
    doc_bulk("consoleDeleteJobs", "Delete jobs", "Cancels those that run; all results are gone at once.")
}

/// `limit` within its bounds.
///
/// # Errors
/// 400.
pub(super) fn limit(given: Option<i64>) -> ApiResult<i64> {
    match given.unwrap_or(LIMIT) {
        limit @ 1..=MOST => Ok(limit),
        _ => Err(ApiError::new(ErrorCode::BadRequest, format!("limit: allowed are 1 to {MOST}"))),
    }
}

/// A cursor that holds an id.
///
/// # Errors
/// 400 for one that we did not give.
pub(super) fn cursor<T: std::str::FromStr>(given: Option<&str>) -> ApiResult<Option<T>> {
    let wrong = || ApiError::new(ErrorCode::BadRequest, "The cursor is none of ours");
    not_empty(given).map(|text| text.parse().map_err(|_| wrong())).transpose()
}

/// A parameter that is empty says as little as one that is absent.
pub(super) fn not_empty(given: Option<&str>) -> Option<&str> {
    given.filter(|text| !text.is_empty())
}

/// A time, or a duration back from now.
///
/// # Errors
/// 400.
pub(super) fn since(text: &str, now: Timestamp) -> ApiResult<Timestamp> {
    if let Some(back) = parse_duration(text) {
        return Ok(now.plus_ms(-i64::try_from(back.as_millis()).unwrap_or(i64::MAX)));
    }
    let allowed = "since: allowed are a time such as 2026-11-24T06:00:00Z and a duration such as 24h";
    Timestamp::from_iso(text).ok_or_else(|| ApiError::new(ErrorCode::BadRequest, allowed))
}

/// A word of a closed list.
///
/// # Errors
/// 400.
pub(super) fn word<T: std::str::FromStr>(name: &str, given: Option<&str>) -> ApiResult<Option<T>> {
    let wrong = |text: &str| ApiError::new(ErrorCode::BadRequest, format!("{name}: {text} is none of its words"));
    not_empty(given).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
}

impl Wanted {
    async fn filter(&self, app: &App, viewer: &Viewer, now: Timestamp) -> ApiResult<Filter> {
        let team = match (viewer.scope(), self.team) {
            (Some(own), Some(other)) if own != other => {
                return Err(ApiError::new(ErrorCode::NotFound, "Team not found"));
            }
            (own, named) => own.or(named),
        };
        let said = |text: &Option<String>| text.as_deref().map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned);
        let site = said(&self.host).map(|host| site_of(&host).unwrap_or(host));
        let job = match said(&self.id) {
            Some(id) => Some(job_of(app, &id).await?.0),
            None => None,
        };
        Ok(Filter {
            team,
            job,
            kind: word::<JobKind>("kind", self.kind.as_deref())?,
            status: word::<JobStatus>("status", self.status.as_deref())?,
            site,
            since: said(&self.since).map(|text| since(&text, now)).transpose()?,
            code: said(&self.code),
        })
    }
}

/// The job that is meant by an id, the job's own or that of one of its pages, and that page if anybody is shown it.
///
/// # Errors
/// 400 for what is no id.
pub(super) async fn job_of(app: &App, id: &str) -> ApiResult<(JobId, Option<PageId>)> {
    match pages::load(&app.db, path_id(id)?).await? {
        Some(page) => Ok((page.job_id, (page.idx >= 0).then_some(page.id))),
        None => Ok((path_id(id)?, None)),
    }
}

/// `GET /console/api/jobs`.
///
/// # Errors
/// Those of [`enter`], 400 for a query that is none.
pub async fn list(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    let query: Query = body::query(&request)?;
    let now = app.db.now();
    let wanted = Wanted {
        id: query.id,
        kind: query.kind,
        status: query.status,
        host: query.host,
        since: query.since,
        code: query.code,
        team: None,
    };
    let filter = wanted.filter(&app, &viewer, now).await?;
    let (before, limit) = (cursor(query.cursor.as_deref())?, limit(query.limit)?);
    let work = app.clone();
    let (found, rows, names) = app
        .beside_database(async move {
            let found = lists::matching(&work.db, &filter, before, limit as usize, now).await?;
            let rows = jobs::by_ids(&work.db, &found.jobs).await?;
            Ok((found, rows, TeamNames::load(&work).await?))
        })
        .await?;
    let jobs = rows.iter().map(|row| Job::new(row, &names, now)).collect();
    Ok(HttpResponse::Ok().json(Jobs { jobs, next: found.next.map(|id| id.to_string()) }))
}

/// `POST /console/api/jobs/count`. Readers may count: it changes nothing, but it is a POST, so they have lists instead.
///
/// # Errors
/// As [`list`].
pub async fn count(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    let given: CountRequest = body::read(&request, payload).await?;
    let now = app.db.now();
    let filter = given.filter.filter(&app, &viewer, now).await?;
    let work = app.clone();
    let found = app.beside_database(async move { Ok(counted(&work.db, &filter, None, now).await?) }).await?;
    let is_more = found.len() > COUNTED;
    Ok(HttpResponse::Ok().json(Count { count: found.len().min(COUNTED), is_more, up_to: found.first().copied() }))
}

/// One more than are counted at most.
async fn counted(db: &Db, filter: &Filter, up_to: Option<JobId>, now: Timestamp) -> StoreResult<Vec<JobId>> {
    let (mut jobs, mut next) = (Vec::new(), up_to.map(after_it));
    loop {
        let found = lists::matching(db, filter, next, COUNTED + 1 - jobs.len(), now).await?;
        jobs.extend(found.jobs);
        next = found.next;
        if next.is_none() || jobs.len() > COUNTED {
            return Ok(jobs);
        }
    }
}

/// Before which a list begins that has this job.
fn after_it(job: JobId) -> JobId {
    JobId(uuid::Uuid::from_u128(job.0.as_u128().saturating_add(1)))
}

/// What is done with a job.
#[derive(Debug, Clone, Copy)]
enum Act {
    Cancel,
    Replay,
    Delete,
}

/// `POST /console/api/jobs/cancel`.
///
/// # Errors
/// As [`list`], 409 when more jobs match than were confirmed.
pub async fn cancel(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    bulk(&app, &request, payload, Act::Cancel).await
}

/// `POST /console/api/jobs/replay`.
///
/// # Errors
/// As [`cancel`].
pub async fn replay(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    bulk(&app, &request, payload, Act::Replay).await
}

/// `POST /console/api/jobs/delete`.
///
/// # Errors
/// As [`cancel`].
pub async fn delete(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    bulk(&app, &request, payload, Act::Delete).await
}

async fn bulk(app: &AppData, request: &HttpRequest, payload: Payload, act: Act) -> ApiResult<HttpResponse> {
    let viewer = enter(app, request).await?;
    body::no_query(request)?;
    let given: BulkRequest = body::read(request, payload).await?;
    debug_assert_ne!(viewer.role, Role::Reader, "refused by its method");
    let work = app.clone();
    let done = match (&given.ids, &given.filter) {
        (Some(ids), None) if (1..=IDS).contains(&ids.len()) => {
            let (ids, scope, after) = (ids.clone(), viewer.scope(), cursor::<usize>(given.after.as_deref())?);
            app.beside_database(async move { chosen(&work, &ids, scope, after.unwrap_or(0), act).await }).await?
        }
        (None, Some(wanted)) => {
            let filter = wanted.filter(app, &viewer, app.db.now()).await?;
            let after = cursor::<JobId>(given.after.as_deref())?;
            let confirmed = (given.count.unwrap_or(0), given.is_more);
            let up_to = given.up_to;
            app.beside_database(async move { filtered(&work, &filter, up_to, confirmed, after, act).await }).await?
        }
        _ => {
            let text = format!("Either ids (1 to {IDS}) or a filter with its count is needed");
            return Err(ApiError::new(ErrorCode::BadRequest, text));
        }
    };
    Ok(HttpResponse::Ok().json(done))
}

/// Does it with jobs that were chosen one by one, from a place of the list on.
async fn chosen(app: &App, ids: &[JobId], scope: Option<TeamId>, from: usize, act: Act) -> ApiResult<Done> {
    let (began, mut done) = (Stopwatch::start(), Done::default());
    for (place, id) in ids.iter().enumerate().skip(from) {
        if began.elapsed() > PATIENCE {
            done.next = Some(place.to_string());
            break;
        }
        if !one(app, *id, scope, act, &began, &mut done).await? {
            done.next = Some(place.to_string());
            break;
        }
    }
    Ok(done)
}

/// Does it with those that match and are not newer than what was counted.
async fn filtered(
    app: &App,
    filter: &Filter,
    up_to: Option<JobId>,
    (count, is_more): (usize, bool),
    after: Option<JobId>,
    act: Act,
) -> ApiResult<Done> {
    let (began, mut done) = (Stopwatch::start(), Done::default());
    let Some(up_to) = up_to else { return Ok(done) };
    // The first call holds the count against what there is; later ones go on with what the first has begun.
    if after.is_none() && !is_more {
        let there = counted(&app.db, filter, Some(up_to), app.db.now()).await?.len();
        if there > count {
            let text = format!("jobs that match now: {there}, and confirmed were {count}: count again");
            return Err(ApiError::new(ErrorCode::Conflict, text));
        }
    }
    let mut next = Some(after.unwrap_or(after_it(up_to)));
    while let Some(before) = next {
        let found = lists::matching(&app.db, filter, Some(before), STEP, app.db.now()).await?;
        next = found.next;
        for id in found.jobs {
            let is_late = began.elapsed() > PATIENCE;
            if is_late || !one(app, id, filter.team, act, &began, &mut done).await? {
                done.next = Some(after_it(id).to_string());
                return Ok(done);
            }
        }
    }
    Ok(done)
}

/// Does it with one job. `false`: there is more to do with it, and no time.
async fn one(
    app: &App,
    id: JobId,
    scope: Option<TeamId>,
    act: Act,
    began: &Stopwatch,
    done: &mut Done,
) -> ApiResult<bool> {
    let now = app.db.now();
    let job = jobs::load(&app.db, id).await?;
    let job = job.filter(|job| !job.has_expired(now) && scope.is_none_or(|team| team == job.team_id));
    let Some(job) = job else {
        done.skipped += 1;
        return Ok(true);
    };
    let did = match act {
        Act::Cancel | Act::Delete => {
            let mut tx = app.db.begin().await?;
            let cancelled = job.status == JobStatus::Scraping && cancel::job(&mut tx, id, now).await?;
            let did = match act {
                Act::Delete => jobs::expire_now(&mut tx, id, now).await?,
                _ => cancelled,
            };
            tx.commit().await?;
            did
        }
        Act::Replay => match replay_job(app, id, began, done).await? {
            Some(did) => did,
            None => return Ok(false),
        },
    };
    if did {
        done.done += 1
    } else {
        done.skipped += 1
    }
    Ok(true)
}

/// Puts the failed pages of a job back. `None`: there are more, and no time.
async fn replay_job(app: &App, id: JobId, began: &Stopwatch, done: &mut Done) -> ApiResult<Option<bool>> {
    // Pages that fail again meanwhile are not tried twice.
    let failed_before = Some(app.db.now());
    let mut did = false;
    loop {
        let filter = ReplayFilter { job: Some(id), failed_before, limit: STEP as i64, ..ReplayFilter::default() };
        let found = replay::replayable(&app.db, &filter, app.db.now()).await?;
        let mut moved = 0;
        for page in &found {
            moved += usize::from(replay_page(app, page.id).await? == Replay::Queued);
        }
        done.pages += moved;
        did |= moved > 0;
        if found.len() < STEP || moved == 0 {
            return Ok(Some(did));
        }
        if began.elapsed() > PATIENCE {
            return Ok(None);
        }
    }
}

/// Puts one failed page back, in a transaction of its own.
pub(super) async fn replay_page(app: &App, page: weir_shared::ids::PageId) -> ApiResult<Replay> {
    let mut tx = app.db.begin().await?;
    let outcome = replay::replay(&mut tx, page, app.settings.limits.metered, app.db.now()).await?;
    tx.commit().await?;
    Ok(outcome)
}
