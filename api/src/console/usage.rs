//! `/console/api/usage`: credits by day, kind and key from the ledger, model tokens by month, and limits with what is used
//! of them; and below `/teams` the credits of all teams.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::TeamId;
use weir_shared::store::accounts::teams::{self, TeamRow};
use weir_shared::store::accounts::{credits, keys, model_usage, rates};
use weir_shared::store::console::usage::{self, DAY_MS};
use weir_shared::store::sessions;
use weir_shared::store::work::queue_depth;
use weir_shared::time::Timestamp;

use super::body;
use super::jobs::of_teams;
use super::session::enter;
use crate::app::{App, AppData};
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Group, Operation};

/// Days that are shown unless it is said, and at most.
const DAYS: i64 = 30;
const MOST_DAYS: i64 = 366;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Query {
    days: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleUsage")]
struct Usage {
    /// One a day (UTC), oldest first; days without use are there with 0.
    days: Vec<Day>,
    /// Tokens of the language model by month and key.
    tokens: Vec<Tokens>,
    /// The keys that are named, by their id.
    keys: BTreeMap<String, KeyName>,
    balance: Balance,
    limits: Vec<Limit>,
}

#[derive(Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleUsageDay")]
struct Day {
    /// YYYY-MM-DD.
    day: String,
    credits: i64,
    by_kind: BTreeMap<String, i64>,
    /// By the key's id; "": without a key.
    by_key: BTreeMap<String, i64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleTokens")]
struct Tokens {
    /// YYYY-MM.
    month: String,
    key_id: Option<String>,
    sent: i64,
    received: i64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleUsageKey")]
struct KeyName {
    prefix: String,
    name: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleBalance")]
struct Balance {
    granted: i64,
    used: i64,
    reserved: i64,
    /// Null: credits are counted, not metered.
    left: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleLimit")]
struct Limit {
    /// concurrency, sessions, queue, or rate: and a bucket.
    name: String,
    used: i64,
    limit: i64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleUsageOfTeams")]
struct OfTeams {
    /// One a day (UTC), oldest first; days without use are there with 0.
    days: Vec<DayOfTeams>,
    /// The names of the teams that used anything, by their id.
    teams: BTreeMap<TeamId, String>,
}

#[derive(Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleUsageDayOfTeams")]
struct DayOfTeams {
    /// YYYY-MM-DD.
    day: String,
    credits: i64,
    by_team: BTreeMap<TeamId, i64>,
}

/// `GET /console/api/usage` in the API's document.
pub fn doc() -> Operation {
    let text = "What a team used, by day, kind and key, and how near it is to its limits. Operators name the team.";
    of_teams(Operation::new(Group::Console, "consoleUsage", "Usage", text))
        .query("days", json!({"type": "integer", "minimum": 1, "maximum": MOST_DAYS}), "30 unless given.")
        .answer::<Usage>("The usage.")
}

/// `GET /console/api/usage/teams` in the API's document.
pub fn doc_teams() -> Operation {
    let text = "What each team used, by day. For operators.";
    of_teams(Operation::new(Group::Console, "consoleUsageOfTeams", "Usage of all teams", text))
        .query("days", json!({"type": "integer", "minimum": 1, "maximum": MOST_DAYS}), "30 unless given.")
        .answer::<OfTeams>("The usage.")
}

/// The days that a query asks for.
///
/// # Errors
/// 400.
fn days_of(query: &Query) -> ApiResult<i64> {
    let count = query.days.unwrap_or(DAYS);
    if (1..=MOST_DAYS).contains(&count) {
        Ok(count)
    } else {
        Err(ApiError::new(ErrorCode::BadRequest, format!("days: allowed are 1 to {MOST_DAYS}")))
    }
}

/// Days of UTC up to today.
struct Days {
    first: i64,
    today: i64,
}

impl Days {
    /// The last so many.
    fn last(count: i64, now: Timestamp) -> Self {
        let today = now.0.div_euclid(DAY_MS);
        Self { first: today - count + 1, today }
    }

    /// Their names, oldest first.
    fn names(&self) -> impl Iterator<Item = String> {
        (self.first..=self.today).map(|day| Timestamp(day * DAY_MS).to_iso().chars().take(10).collect())
    }

    fn from(&self) -> Timestamp {
        Timestamp(self.first * DAY_MS)
    }

    fn to(&self) -> Timestamp {
        Timestamp((self.today + 1) * DAY_MS)
    }

    /// The place of a day among them.
    fn place(&self, day: i64) -> Option<usize> {
        usize::try_from(day - self.first).ok()
    }
}

/// `GET /console/api/usage`.
///
/// # Errors
/// Those of [`enter`], 400.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    let query: Query = body::query(&request)?;
    let count = days_of(&query)?;
    let team = viewer.one_team()?.clone();
    let work = app.clone();
    let usage = app.beside_database(async move { read(&work, &team, count).await }).await?;
    Ok(HttpResponse::Ok().json(usage))
}

async fn read(app: &App, team: &TeamRow, count: i64) -> ApiResult<Usage> {
    let now = app.db.now();
    let range = Days::last(count, now);
    let mut days: Vec<Day> = range.names().map(|day| Day { day, ..Day::default() }).collect();
    for row in usage::by_day(&app.db, team.id, range.from(), range.to()).await? {
        let Some(day) = range.place(row.day).and_then(|n| days.get_mut(n)) else { continue };
        day.credits += row.credits;
        *day.by_kind.entry(row.kind).or_default() += row.credits;
        *day.by_key.entry(row.key).or_default() += row.credits;
    }
    let tokens = model_usage::history(&app.db, team.id, true).await?;
    let tokens = tokens.into_iter().map(|((month, key), spent)| Tokens {
        month: month.to_iso().chars().take(7).collect(),
        key_id: Some(key).filter(|key| !key.is_empty()),
        sent: spent.sent,
        received: spent.received,
    });
    let named = keys::list(&app.db, Some(team.id)).await?;
    let named = named.into_iter().map(|key| (key.id.to_string(), KeyName { prefix: key.prefix, name: key.name }));
    let account = credits::balance(&app.db, team.id).await?;
    let account = account.ok_or_else(|| ApiError::new(ErrorCode::NotFound, "Team not found"))?;
    let left = app.settings.limits.metered.then(|| account.left());
    Ok(Usage {
        days,
        tokens: tokens.collect(),
        keys: named.collect(),
        balance: Balance { granted: account.granted, used: account.used, reserved: account.reserved, left },
        limits: limits(app, team, now).await?,
    })
}

/// `GET /console/api/usage/teams`.
///
/// # Errors
/// Those of [`enter`], 400, 403 for a team.
pub async fn of_all(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    viewer.only_operators()?;
    let query: Query = body::query(&request)?;
    let count = days_of(&query)?;
    let scope = viewer.scope();
    let work = app.clone();
    let usage = app.beside_database(async move { read_all(&work, scope, count).await }).await?;
    Ok(HttpResponse::Ok().json(usage))
}

/// Team by team, as the ledger's index has them.
async fn read_all(app: &App, scope: Option<TeamId>, count: i64) -> ApiResult<OfTeams> {
    let range = Days::last(count, app.db.now());
    let mut days: Vec<DayOfTeams> = range.names().map(|day| DayOfTeams { day, ..DayOfTeams::default() }).collect();
    let mut named = BTreeMap::new();
    for team in teams::list(&app.db).await?.into_iter().filter(|team| scope.is_none_or(|one| one == team.id)) {
        let rows = usage::by_day(&app.db, team.id, range.from(), range.to()).await?;
        if rows.is_empty() {
            continue;
        }
        for row in rows {
            let Some(day) = range.place(row.day).and_then(|n| days.get_mut(n)) else { continue };
            day.credits += row.credits;
            *day.by_team.entry(team.id).or_default() += row.credits;
        }
        named.insert(team.id, team.name);
    }
    Ok(OfTeams { days, teams: named })
}

/// The team's limits, with what is used of them at the moment.
async fn limits(app: &App, team: &TeamRow, now: Timestamp) -> ApiResult<Vec<Limit>> {
    let settings = &app.settings.limits;
    let queue = queue_depth::team_queue(&app.db, team.id).await?;
    let sessions = sessions::live_count(&app.db, team.id).await?;
    let limit = |name: &str, used, own: Option<i64>, of_all| Limit {
        name: name.to_owned(),
        used,
        limit: own.unwrap_or(of_all),
    };
    let mut limits = vec![
        limit("concurrency", queue.running, team.concurrency, settings.team_concurrency),
        limit("sessions", sessions, team.sessions, settings.team_sessions),
        limit("queue", queue.waiting, team.queue, settings.team_queue),
    ];
    if let Some(rates) = &settings.rates {
        let taken: BTreeMap<String, i64> =
            rates::taken(&app.db, team.id, now.0.div_euclid(60_000)).await?.into_iter().collect();
        for (bucket, of_all) in rates {
            let most = i64::from(team.rates.get(bucket).copied().unwrap_or(*of_all));
            limits.push(limit(&format!("rate:{bucket}"), taken.get(bucket).copied().unwrap_or(0), None, most));
        }
    }
    Ok(limits)
}
