//! `/console/api/usage`: credits by day, kind and key from the ledger, model tokens by month, and limits with what is used
//! of them.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_shared::error_code::ErrorCode;
use weir_shared::store::accounts::teams::TeamRow;
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

/// `GET /console/api/usage` in the API's document.
pub fn doc() -> Operation {
    let text = "What a team used, by day, kind and key, and how near it is to its limits. Operators name the team.";
    of_teams(Operation::new(Group::Console, "consoleUsage", "Usage", text))
        .query("days", json!({"type": "integer", "minimum": 1, "maximum": MOST_DAYS}), "30 unless given.")
        .answer::<Usage>("The usage.")
}

/// `GET /console/api/usage`.
///
/// # Errors
/// Those of [`enter`], 400.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    let query: Query = body::query(&request)?;
    let count = query.days.unwrap_or(DAYS);
    if !(1..=MOST_DAYS).contains(&count) {
        return Err(ApiError::new(ErrorCode::BadRequest, format!("days: allowed are 1 to {MOST_DAYS}")));
    }
    let team = viewer.one_team()?.clone();
    let work = app.clone();
    let usage = app.beside_database(async move { read(&work, &team, count).await }).await?;
    Ok(HttpResponse::Ok().json(usage))
}

async fn read(app: &App, team: &TeamRow, count: i64) -> ApiResult<Usage> {
    let now = app.db.now();
    let today = now.0.div_euclid(DAY_MS);
    let first = today - count + 1;
    let name = |day: i64| Timestamp(day * DAY_MS).to_iso().chars().take(10).collect::<String>();
    let mut days: Vec<Day> = (first..=today).map(|day| Day { day: name(day), ..Day::default() }).collect();
    let (from, to) = (Timestamp(first * DAY_MS), Timestamp((today + 1) * DAY_MS));
    for row in usage::by_day(&app.db, team.id, from, to).await? {
        let Some(day) = usize::try_from(row.day - first).ok().and_then(|n| days.get_mut(n)) else { continue };
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
