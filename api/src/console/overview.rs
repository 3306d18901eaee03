//! `/console/api/overview`: figures of the last hour, day or week from the rows that processes write, and health in a word.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_shared::domain::figures::{Ended, Figures, Gauges};
use weir_shared::error_code::ErrorCode;
use weir_shared::store::console::figures::{self, Span};
use weir_shared::store::work::{nodes, queue_depth};
use weir_shared::time::Timestamp;

use super::body;
use super::failures::largest;
use super::jobs::of_teams;
use super::session::enter;
use crate::app::{App, AppData};
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Group, Operation};

/// Pages that wait longer than this are told of, milliseconds.
const LONG_WAIT_MS: i64 = 5 * 60_000;
/// From this part of pages failed in ten minutes on, of at least so many, it is told of.
const MANY_FAIL: f64 = 0.5;
const LEAST_PAGES: u64 = 20;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Query {
    range: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleOverview")]
struct Overview {
    range: String,
    /// From one point to the next.
    step_ms: i64,
    #[schemars(extend("format" = "date-time"))]
    from: String,
    #[schemars(extend("format" = "date-time"))]
    to: String,
    health: Health,
    points: Vec<Point>,
    totals: Totals,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleHealth")]
struct Health {
    #[schemars(extend("enum" = ["ok", "degraded", "down"]))]
    word: &'static str,
    reasons: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleEnded")]
struct EndedPages {
    done: u64,
    failed: u64,
}

impl From<Ended> for EndedPages {
    fn from(ended: Ended) -> Self {
        Self { done: ended.done, failed: ended.failed }
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsolePoint")]
struct Point {
    /// Its beginning.
    #[schemars(extend("format" = "date-time"))]
    at: String,
    /// By engine.
    pages: BTreeMap<String, EndedPages>,
    /// By code.
    errors: BTreeMap<String, u64>,
    p50_ms: Option<u64>,
    p95_ms: Option<u64>,
    credits: i64,
    /// How things stood at its end; of a team's view null.
    queued: Option<i64>,
    running: Option<i64>,
    oldest_ms: Option<i64>,
    browsers: Option<i64>,
    sessions: Option<i64>,
    memory_bytes: Option<i64>,
    /// Processes that wrote a row, of API and workers.
    processes: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleTotals")]
struct Totals {
    pages: u64,
    failed: u64,
    p50_ms: Option<u64>,
    p95_ms: Option<u64>,
    credits: i64,
    errors: BTreeMap<String, u64>,
}

/// `GET /console/api/overview` in the API's document.
pub fn doc() -> Operation {
    of_teams(Operation::new(Group::Console, "consoleOverview", "Overview", "Figures of a time, and health in a word."))
        .query("range", json!({"type": "string"}), "hour, day or week; hour unless given.")
        .answer::<Overview>("The figures.")
}

/// What is shown of a time: rows of a span, drawn in so many points of so many spans.
struct Range {
    name: &'static str,
    span: Span,
    points: i64,
    spans: i64,
}

const RANGES: [Range; 3] = [
    Range { name: "hour", span: Span::Minute, points: 60, spans: 1 },
    Range { name: "day", span: Span::Minute, points: 96, spans: 15 },
    Range { name: "week", span: Span::Hour, points: 84, spans: 2 },
];

/// `GET /console/api/overview`.
///
/// # Errors
/// Those of [`enter`], 400.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    let query: Query = body::query(&request)?;
    let name = query.range.as_deref().unwrap_or("hour");
    let range = RANGES.iter().find(|range| range.name == name);
    let range = range.ok_or_else(|| ApiError::new(ErrorCode::BadRequest, "range: allowed are hour, day and week"))?;
    let (now, scope) = (app.db.now(), viewer.scope());
    let step = range.span.ms() * range.spans;
    // The last point goes on.
    let to = Timestamp(now.0 - now.0.rem_euclid(step) + step);
    let from = to.plus_ms(-step * range.points);
    let work = app.clone();
    let (rows, health) = app
        .beside_database(async move {
            let rows = figures::read(&work.db, range.span, scope, from, to).await?;
            let recent = figures::read(&work.db, Span::Minute, scope, now.plus_ms(-10 * 60_000), to).await?;
            let mut lately = Figures::default();
            recent.iter().for_each(|(_, figures)| lately.add(figures));
            Ok((rows, health(&work, &lately, now, scope.is_some()).await?))
        })
        .await?;
    let (points, totals) = drawn(&rows, from, step, range, scope.is_some());
    let (range, from, to) = (range.name.to_owned(), from.to_iso(), to.to_iso());
    Ok(HttpResponse::Ok().json(Overview { range, step_ms: step, from, to, health, points, totals }))
}

/// The rows as points, and all of them together.
fn drawn(
    rows: &[(Timestamp, Figures)],
    from: Timestamp,
    step: i64,
    range: &Range,
    of_team: bool,
) -> (Vec<Point>, Totals) {
    let mut all = Figures::default();
    let points = (0..range.points).map(|n| {
        let (begin, end) = (from.plus_ms(n * step), from.plus_ms((n + 1) * step));
        let inside: Vec<_> = rows.iter().filter(|(at, _)| (begin..end).contains(at)).collect();
        let mut sum = Figures::default();
        inside.iter().for_each(|(_, figures)| sum.add(figures));
        all.add(&sum);
        // Gauges are those of the last span: of the queue what any process says, of processes the sum.
        let last = inside.last().map(|(at, _)| *at);
        let gauges: Vec<Gauges> =
            inside.iter().filter(|(at, _)| !of_team && Some(*at) == last).map(|(_, f)| f.gauges).collect();
        Point {
            at: begin.to_iso(),
            p50_ms: sum.percentile(50),
            p95_ms: sum.percentile(95),
            pages: sum.pages.into_iter().map(|(engine, ended)| (engine, ended.into())).collect(),
            errors: sum.errors,
            credits: sum.credits,
            queued: most(&gauges, |gauges| gauges.queued),
            running: most(&gauges, |gauges| gauges.running),
            oldest_ms: most(&gauges, |gauges| gauges.oldest_ms),
            browsers: added(&gauges, |gauges| gauges.browsers),
            sessions: added(&gauges, |gauges| gauges.sessions),
            memory_bytes: added(&gauges, |gauges| gauges.memory_bytes),
            processes: (!gauges.is_empty()).then_some(gauges.len() as i64),
        }
    });
    let points = points.collect();
    let ended = all.ended();
    let totals = Totals {
        pages: ended.done + ended.failed,
        failed: ended.failed,
        p50_ms: all.percentile(50),
        p95_ms: all.percentile(95),
        credits: all.credits,
        errors: all.errors,
    };
    (points, totals)
}

/// What all processes know: the most that one says.
fn most(gauges: &[Gauges], of: impl Fn(&Gauges) -> Option<i64>) -> Option<i64> {
    gauges.iter().filter_map(of).max()
}

/// What each process knows of itself, added up; `None`: none says.
fn added(gauges: &[Gauges], of: impl Fn(&Gauges) -> Option<i64>) -> Option<i64> {
    gauges.iter().filter_map(of).fold(None, |sum, one| Some(sum.unwrap_or(0) + one))
}

/// Health in a word, with the reasons.
async fn health(app: &App, lately: &Figures, now: Timestamp, of_team: bool) -> ApiResult<Health> {
    let live = nodes::live(&app.db, now).await?;
    let queue = queue_depth::queue_stats(&app.db).await?;
    let mut reasons = Vec::new();
    let is_down = live.is_empty();
    if is_down {
        reasons.push("No worker is alive: pages wait until one is started.".to_owned());
    }
    let waited = queue.oldest.filter(|_| queue.running == 0).map_or(0, |oldest| now.ms_since(oldest));
    // What concerns others is not for a team.
    if waited > LONG_WAIT_MS && !of_team {
        reasons.push(format!("Pages wait, and none is in work: the oldest job is {} minutes old.", waited / 60_000));
    }
    for node in live.iter().filter(|_| !of_team) {
        if let Some(why) = &node.sessions_refused {
            reasons.push(format!("Worker {} takes no browser sessions: {why}", node.name));
        }
    }
    if !of_team {
        for node in nodes::conditions(&app.db, now).await? {
            if let Some(why) = &node.browser_problem {
                reasons.push(format!("Worker {} can start no browser for pages: {why}", node.name));
            }
        }
    }
    let ended = lately.ended();
    let all = ended.done + ended.failed;
    if all >= LEAST_PAGES && ended.failed as f64 >= all as f64 * MANY_FAIL {
        let most = largest(&lately.errors).map(|(code, _)| format!(", most of them with {code}")).unwrap_or_default();
        reasons.push(format!("{} of the last {all} pages failed{most}.", ended.failed));
    }
    let word = match (is_down, reasons.is_empty()) {
        (true, _) => "down",
        (false, true) => "ok",
        (false, false) => "degraded",
    };
    Ok(Health { word, reasons })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_points_with_gaps_as_zeros() {
        let row = |at: i64, done, memory| {
            let gauges = Gauges { queued: Some(done as i64), memory_bytes: Some(memory), ..Gauges::default() };
            let pages = [("http".to_owned(), Ended { done, failed: 1 })].into();
            (Timestamp(at), Figures { pages, gauges, credits: 2, ..Figures::default() })
        };
        let rows = [row(60_000, 3, 10), row(60_000, 4, 20), row(180_000, 5, 30)];
        let range = Range { name: "hour", span: Span::Minute, points: 4, spans: 1 };
        let (points, totals) = drawn(&rows, Timestamp(0), 60_000, &range, false);
        let seen: Vec<_> = points
            .iter()
            .map(|p| (p.pages.get("http").map(|e| e.done), p.queued, p.memory_bytes, p.processes))
            .collect();
        assert_eq!(
            seen,
            [
                (None, None, None, None),
                (Some(7), Some(4), Some(30), Some(2)),
                (None, None, None, None),
                (Some(5), Some(5), Some(30), Some(1))
            ]
        );
        assert_eq!((totals.pages, totals.failed, totals.credits), (15, 3, 6));
        let (points, _) = drawn(&rows, Timestamp(0), 60_000, &range, true);
        assert!(points.iter().all(|point| point.queued.is_none() && point.processes.is_none()));
    }
}
