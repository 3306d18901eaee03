//! `/console/api/stream`: how things stand, every two seconds, for as long as somebody looks.
//!
//! One task of the process asks the database, one statement each time, and all tabs hear of what it found; it ends when the
//! last of them is gone. Every tenth statement asks whether the sessions of the tabs still live instead.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::time::Duration;

use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::{StreamExt as _, stream};
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use weir_shared::domain::node::Load;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::TeamId;
use weir_shared::store::console::{figures, sign_ins};
use weir_shared::store::work::nodes;
use weir_shared::time::Timestamp;

use super::body;
use super::jobs::of_teams;
use super::session::enter;
use super::streams::{Joined, Sample, TeamSample, Told, Worker};
use crate::app::{App, AppData};
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Group, Operation};

/// From one statement to the next: with what a page reads besides it is less than one a second.
const EVERY: Duration = Duration::from_secs(2);
/// Every so many statements it is asked whether the sessions still live.
const CHECK_EVERY: u64 = 10;
/// A silent line is written to after this time, so that a dead one is noticed.
const BEAT: Duration = Duration::from_secs(15);

/// What a worker did up to its last heartbeat, and how fast it was before.
#[derive(Default)]
struct Pace {
    heartbeat_at: i64,
    pages: BTreeMap<String, (u64, u64)>,
    /// Done and failed pages a second, by engine.
    rates: BTreeMap<String, (f64, f64)>,
}

/// What one event says.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Event {
    at: String,
    queued: i64,
    running: i64,
    jobs: i64,
    oldest_ms: Option<i64>,
    sessions: i64,
    pages_per_second: Option<f64>,
    failed_per_second: Option<f64>,
    by_engine: Option<BTreeMap<String, f64>>,
    slots_busy: Option<i64>,
    slots: Option<i64>,
    browsers: Option<i64>,
    memory_bytes: Option<i64>,
    workers: Vec<Worker>,
}

/// `GET /console/api/stream` in the API's document.
pub fn doc() -> Operation {
    let text = "Server-sent events: `session` first, with what `X-Weir-Session` says, then `figures` every two seconds, \
        until the session ends or the process stops.";
    of_teams(Operation::new(Group::Console, "consoleStream", "Live figures", text)).bare_answer(200, "The events.")
}

/// One tab that listens; dropping it ends that.
struct Tab {
    app: AppData,
    session: String,
    /// Whose session it is.
    team: Option<TeamId>,
}

impl Drop for Tab {
    fn drop(&mut self) {
        self.app.console.streams.leave(&self.session, self.team);
    }
}

/// Asks, again and again, until nobody listens.
async fn sample_until_alone(app: Data<App>) {
    let mut paces: HashMap<String, Pace> = HashMap::new();
    let mut round = 0_u64;
    while let Some(sessions) = app.console.streams.listeners() {
        if app.stopping.is_cancelled() {
            return;
        }
        round += 1;
        let asked = async {
            if round.is_multiple_of(CHECK_EVERY) {
                let live = sign_ins::live_among(&app.db, &sessions, app.db.now()).await?;
                sessions.iter().filter(|id| !live.contains(id)).for_each(|id| app.console.streams.end(id));
                return Ok(None);
            }
            figures::now(&app.db).await.map(Some)
        };
        match asked.await {
            Ok(Some(lines)) => app.console.streams.tell(sample(lines, &mut paces, app.db.now())),
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the console's figures could not be read"),
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = app.stopping.cancelled() => {}
        }
    }
}

fn sample(lines: Vec<figures::Line>, paces: &mut HashMap<String, Pace>, now: Timestamp) -> Sample {
    let mut sample = Sample { at: Some(now), ..Sample::default() };
    for line in lines {
        if line.what == "node" {
            let is_alive = line.at.is_some_and(|at| now.ms_since(Timestamp(at)) < nodes::DEAD_MS);
            if is_alive {
                sample.workers.push(worker(line, paces));
            }
            continue;
        }
        let Ok(team) = line.id.parse() else { continue };
        let team: &mut TeamSample = sample.teams.entry(team).or_default();
        match line.what.as_str() {
            "queue" => (team.queued, team.jobs, team.oldest) = (line.count, line.more, line.at.map(Timestamp)),
            "running" => team.running = line.count,
            _ => team.sessions = line.count,
        }
    }
    paces.retain(|id, _| sample.workers.iter().any(|worker| worker.id == *id));
    sample
}

/// A worker's line, with its pace since the heartbeat before.
fn worker(line: figures::Line, paces: &mut HashMap<String, Pace>) -> Worker {
    let load: Load = line.load.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let pace = paces.entry(line.id.clone()).or_default();
    let heartbeat_at = line.at.unwrap_or_default();
    if heartbeat_at > pace.heartbeat_at {
        let seconds = (heartbeat_at - pace.heartbeat_at) as f64 / 1_000.0;
        let is_first = pace.heartbeat_at == 0;
        for (engine, ended) in &load.pages {
            let before = pace.pages.insert(engine.clone(), (ended.done, ended.failed)).unwrap_or_default();
            let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
            if !is_first {
                pace.rates.insert(engine.clone(), (rate(ended.done, before.0), rate(ended.failed, before.1)));
            }
        }
        pace.heartbeat_at = heartbeat_at;
    }
    Worker {
        id: line.id,
        name: line.name.unwrap_or_default(),
        state: line.state.unwrap_or_default(),
        busy: load.busy,
        slots: line.count,
        sessions: load.sessions,
        session_slots: line.more,
        browsers: load.browsers,
        memory_bytes: load.memory_bytes,
        pages_per_second: added(pace.rates.values().map(|(done, failed)| done + failed)),
        rates: pace.rates.clone(),
    }
}

/// The sum; that of none is 0, which `sum` of floats writes as -0.
fn added(rates: impl Iterator<Item = f64>) -> f64 {
    rates.fold(0.0, |sum, rate| sum + rate)
}

/// What a viewer hears of a sample: a team of itself only.
fn event(sample: &Sample, scope: Option<TeamId>) -> Event {
    let at = sample.at.unwrap_or(Timestamp(0));
    let mut sum = TeamSample::default();
    for (_, team) in sample.teams.iter().filter(|(id, _)| scope.is_none_or(|own| own == **id)) {
        sum.queued += team.queued;
        sum.jobs += team.jobs;
        sum.running += team.running;
        sum.sessions += team.sessions;
        sum.oldest = sum.oldest.into_iter().chain(team.oldest).min();
    }
    let workers: &[Worker] = if scope.is_none() { &sample.workers } else { &[] };
    let mut by_engine: BTreeMap<String, f64> = BTreeMap::new();
    for (engine, (done, failed)) in workers.iter().flat_map(|worker| &worker.rates) {
        *by_engine.entry(engine.clone()).or_default() += done + failed;
    }
    let of_all = |value: f64| scope.is_none().then_some(value);
    let count = |get: fn(&Worker) -> i64| scope.is_none().then(|| workers.iter().map(get).sum());
    Event {
        at: at.to_iso(),
        queued: sum.queued,
        running: sum.running,
        jobs: sum.jobs,
        oldest_ms: sum.oldest.map(|oldest| at.ms_since(oldest)),
        sessions: sum.sessions,
        pages_per_second: of_all(added(by_engine.values().copied())),
        failed_per_second: of_all(added(workers.iter().flat_map(|w| w.rates.values()).map(|(_, failed)| *failed))),
        by_engine: scope.is_none().then_some(by_engine),
        slots_busy: count(|worker| worker.busy),
        slots: count(|worker| worker.slots),
        browsers: count(|worker| worker.browsers),
        memory_bytes: count(|worker| worker.memory_bytes.unwrap_or(0)),
        workers: workers.to_vec(),
    }
}

/// One tab's stream.
struct Listening {
    told: Told,
    over: CancellationToken,
    scope: Option<TeamId>,
    /// How long the session can last at most.
    left: tokio::time::Instant,
    tab: Tab,
}

impl Listening {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        let stopping = self.tab.app.stopping.clone();
        let text = tokio::select! {
            biased;
            () = stopping.cancelled() => return None,
            () = self.over.cancelled() => return None,
            () = tokio::time::sleep_until(self.left) => return None,
            changed = self.told.changed() => {
                changed.ok()?;
                let sample = self.told.borrow_and_update().clone();
                match sample {
                    Some(sample) => {
                        let data = serde_json::to_string(&event(&sample, self.scope)).ok()?;
                        format!("event: figures\ndata: {data}\n\n")
                    }
                    None => ": \n\n".to_owned(),
                }
            }
            () = tokio::time::sleep(BEAT) => ": \n\n".to_owned(),
        };
        Some((Ok(Bytes::from(text)), self))
    }
}

/// `GET /console/api/stream`.
///
/// # Errors
/// Those of [`enter`], 503 when too many listen.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    let team = viewer.row.who.team;
    let busy =
        || ApiError::new(ErrorCode::Unavailable, "Too many tabs of the console listen to this process. Close some.");
    let Joined { mut told, over, is_first } = app.console.streams.join(&viewer.session, team).ok_or_else(busy)?;
    if is_first {
        app.runtime.spawn(sample_until_alone(app.clone()));
    }
    let tab = Tab { app: app.clone(), session: viewer.session.clone(), team };
    // What was found a moment ago is told at once.
    told.mark_changed();
    let left_ms = viewer.row.expires_at.ms_since(app.db.now()).unsigned_abs();
    let left = weir_shared::clock::instant() + Duration::from_millis(left_ms);
    // Pages cannot read the headers of a stream, and browsers open it anew with whatever cookie they have by then.
    let first = Bytes::from(format!("event: session\ndata: {}\n\n", viewer.mark));
    let listening = Listening { told, over, scope: viewer.scope(), left, tab };
    Ok(HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header(("x-accel-buffering", "no"))
        .streaming(stream::iter([Ok(first)]).chain(stream::unfold(listening, Listening::next))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn line(what: &str, id: &str, count: i64, more: i64, at: Option<i64>) -> figures::Line {
        let (name, state, load) = (None, None, None);
        figures::Line { what: what.to_owned(), id: id.to_owned(), name, state, load, count, more, at }
    }

    #[test]
    fn a_team_hears_of_itself_only_and_the_pace_is_that_between_heartbeats() {
        let (acme, other) = (TeamId::new(), TeamId::new());
        let mut paces = HashMap::new();
        let node = |done: u64, at| figures::Line {
            load: Some(format!(r#"{{"busy":3,"pages":{{"http":{{"done":{done}}},"none":{{"failed":2}}}}}}"#)),
            name: Some("w".to_owned()),
            ..line("node", "n1", 16, 12, Some(at))
        };
        let lines = |done, at| {
            vec![
                line("queue", &acme.to_string(), 5, 1, Some(1_000)),
                line("queue", &other.to_string(), 7, 2, Some(500)),
                line("running", &acme.to_string(), 2, 0, None),
                line("sessions", &other.to_string(), 1, 0, None),
                node(done, at),
            ]
        };
        sample(lines(10, 2_000), &mut paces, Timestamp(2_100));
        let second = sample(lines(30, 4_000), &mut paces, Timestamp(4_100));
        let all = event(&second, None);
        assert_eq!((all.queued, all.jobs, all.running, all.sessions), (12, 3, 2, 1));
        assert_eq!((all.oldest_ms, all.slots_busy, all.slots), (Some(3_600), Some(3), Some(16)));
        assert_eq!((all.pages_per_second, all.failed_per_second), (Some(10.0), Some(0.0)));
        let own = event(&second, Some(acme));
        assert_eq!((own.queued, own.jobs, own.running, own.sessions, own.oldest_ms), (5, 1, 2, 0, Some(3_100)));
        assert!(own.workers.is_empty() && own.pages_per_second.is_none() && own.by_engine.is_none());
        // The same heartbeat again changes nothing; a worker without one is gone.
        assert_eq!(event(&sample(lines(30, 4_000), &mut paces, Timestamp(5_000)), None).pages_per_second, Some(10.0));
        assert!(sample(lines(30, 4_000), &mut paces, Timestamp(60_000)).workers.is_empty() && paces.is_empty());
    }
}
