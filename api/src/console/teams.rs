//! `/console/api/teams`: teams and their limits. A team sees itself, and sets the secret of its own webhooks.

use std::collections::BTreeMap;

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use weir_shared::config::RATE_BUCKETS;
use weir_shared::domain::console::Role;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::TeamId;
use weir_shared::store::StoreError;
use weir_shared::store::accounts::credits::{self, Grant, MOST_GRANTED};
use weir_shared::store::accounts::teams::{self, TeamChange, TeamRow};
use weir_shared::time::Timestamp;

use super::body;
use super::jobs::of_teams;
use super::session::enter;
use crate::app::{App, AppData};
use crate::endpoints::outage::{self, commit};
use crate::error::{ApiError, ApiResult};
use crate::http::extract::path_id;
use crate::openapi::{Group, Operation};

/// Characters of a team's name, and of a secret.
const NAME: usize = 100;
const SECRET: usize = 500;
/// The largest limit.
const MOST: i64 = 100_000_000;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleTeams")]
struct Teams {
    teams: Vec<Team>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleTeam")]
struct Team {
    id: TeamId,
    name: String,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    /// An operator has removed it: what was its own goes by itself.
    #[schemars(extend("format" = "date-time"))]
    removed_at: Option<String>,
    /// Its own limits; null: the installation's.
    concurrency: Option<i64>,
    sessions: Option<i64>,
    queue: Option<i64>,
    rates: BTreeMap<String, u32>,
    has_webhook_secret: bool,
    zero_data_retention: bool,
    credits_granted: i64,
    credits_used: i64,
    defaults: Defaults,
}

/// The installation's limits.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsoleDefaults")]
struct Defaults {
    concurrency: i64,
    sessions: i64,
    queue: i64,
    /// Requests a minute by bucket; empty: there are no limits.
    rates: BTreeMap<String, u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewTeam {
    name: String,
}

/// Absent fields stay; null gives one back to the installation's setting.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Change {
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Option<i64>")]
    concurrency: Option<Option<i64>>,
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Option<i64>")]
    sessions: Option<Option<i64>>,
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Option<i64>")]
    queue: Option<Option<i64>>,
    /// The team's own rates as a whole.
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Option<BTreeMap<String, u32>>")]
    rates: Option<Option<BTreeMap<String, u32>>>,
    zero_data_retention: Option<bool>,
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    webhook_secret: Option<Option<String>>,
    /// Credits more; below 0: less.
    grant_credits: Option<i64>,
}

/// Tells null from what is absent.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// `GET /console/api/teams` in the API's document.
pub fn doc_list() -> Operation {
    of_teams(Operation::new(Group::Console, "consoleListTeams", "List teams", "A team's session sees its own only."))
        .answer::<Teams>("The teams.")
}

/// `POST /console/api/teams` in the API's document.
pub fn doc_create() -> Operation {
    of_teams(Operation::new(Group::Console, "consoleCreateTeam", "Make a team", "For operators."))
        .typed_body::<NewTeam>("ConsoleNewTeam", json!({"name": "research"}))
        .answer_with(201, "The team.", "application/json", Team::json_schema)
        .errors(&[409])
}

/// `PATCH /console/api/teams/{id}` in the API's document.
pub fn doc_change() -> Operation {
    let text = "Limits, retention, secret and credits. A team's session may change its webhook secret only.";
    of_teams(Operation::new(Group::Console, "consoleChangeTeam", "Change a team", text))
        .typed_body::<Change>("ConsoleTeamChange", json!({"concurrency": 20, "queue": null}))
        .answer::<Team>("The team.")
}

fn shown(app: &App, row: TeamRow, accounts: &BTreeMap<TeamId, (i64, i64)>) -> Team {
    let (credits_granted, credits_used) = accounts.get(&row.id).copied().unwrap_or_default();
    let limits = &app.settings.limits;
    Team {
        id: row.id,
        name: row.name,
        created_at: row.created_at.to_iso(),
        removed_at: row.removed_at.map(Timestamp::to_iso),
        concurrency: row.concurrency,
        sessions: row.sessions,
        queue: row.queue,
        rates: row.rates,
        has_webhook_secret: row.has_webhook_secret,
        zero_data_retention: row.zero_data_retention,
        credits_granted,
        credits_used,
        defaults: Defaults {
            concurrency: limits.team_concurrency,
            sessions: limits.team_sessions,
            queue: limits.team_queue,
            rates: limits.rates.clone().unwrap_or_default(),
        },
    }
}

/// `GET /console/api/teams`.
///
/// # Errors
/// Those of [`enter`].
pub async fn list(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    let rows = match viewer.scope() {
        Some(own) => teams::by_id(&app.db, own).await?.into_iter().collect(),
        None => teams::list(&app.db).await?,
    };
    let accounts = teams::accounts(&app.db).await?;
    let teams = rows.into_iter().map(|row| shown(&app, row, &accounts)).collect();
    Ok(HttpResponse::Ok().json(Teams { teams }))
}

/// `POST /console/api/teams`.
///
/// # Errors
/// Those of [`enter`], 403 for teams, 409 when the name is taken.
pub async fn create(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    viewer.only_operators()?;
    let given: NewTeam = body::read(&request, payload).await?;
    let name = given.name.trim();
    if name.is_empty() || name.chars().count() > NAME || name.chars().any(char::is_control) {
        return Err(ApiError::new(ErrorCode::BadRequest, format!("name: allowed are 1 to {NAME} characters")));
    }
    let mut tx = app.db.begin().await?;
    let made = teams::insert(&mut tx, name, app.db.now()).await;
    let id = made.map_err(|error| match error {
        StoreError::Conflict(_) => ApiError::new(ErrorCode::Conflict, "There is a team of this name"),
        other => other.into(),
    })?;
    commit(&app, tx, || async { Ok(teams::by_id(&app.db, id).await?.is_some()) }).await?;
    tracing::info!(team.id = %id, "a team was made in the console");
    Ok(HttpResponse::Created().json(outage::read(|| team(&app, id)).await?))
}

async fn team(app: &App, id: TeamId) -> ApiResult<Team> {
    let row = teams::by_id(&app.db, id).await?;
    let row = row.ok_or_else(|| ApiError::new(ErrorCode::NotFound, "Team not found"))?;
    Ok(shown(app, row, &teams::accounts(&app.db).await?))
}

impl Change {
    /// Refuses numbers and texts that no team can have.
    fn check(&self) -> ApiResult<()> {
        let wrong = |text: String| Err(ApiError::new(ErrorCode::BadRequest, text));
        for (name, limit) in [("concurrency", self.concurrency), ("sessions", self.sessions), ("queue", self.queue)] {
            if limit.flatten().is_some_and(|limit| !(1..=MOST).contains(&limit)) {
                return wrong(format!("{name}: allowed are 1 to {MOST}, and null"));
            }
        }
        for (bucket, rate) in self.rates.iter().flatten().flatten() {
            if *rate == 0 || !RATE_BUCKETS.iter().any(|(known, _)| known == bucket) {
                let known: Vec<&str> = RATE_BUCKETS.iter().map(|(name, _)| *name).collect();
                return wrong(format!("rates: allowed are numbers from 1 for {}", known.join(", ")));
            }
        }
        let is_secret = |secret: &String| (1..=SECRET).contains(&secret.len());
        if self.webhook_secret.as_ref().is_some_and(|secret| secret.as_ref().is_some_and(|s| !is_secret(s))) {
            return wrong(format!("webhookSecret: allowed are 1 to {SECRET} bytes, and null"));
        }
        if self.grant_credits.is_some_and(|credits| !(-MOST_GRANTED..=MOST_GRANTED).contains(&credits)) {
            return wrong(format!("grantCredits: allowed are -{MOST_GRANTED} to {MOST_GRANTED}"));
        }
        Ok(())
    }

    /// Whether it changes nothing but what a team may change of itself.
    fn is_teams_own(&self) -> bool {
        let Self { concurrency, sessions, queue, rates, zero_data_retention, webhook_secret: _, grant_credits } = self;
        let limits = concurrency.is_none() && sessions.is_none() && queue.is_none() && rates.is_none();
        limits && zero_data_retention.is_none() && grant_credits.is_none()
    }
}

/// `PATCH /console/api/teams/{id}`.
///
/// # Errors
/// Those of [`enter`], 400, 403 for what is the operator's, 404.
pub async fn change(app: AppData, request: HttpRequest, id: Path<String>, payload: Payload) -> ApiResult<HttpResponse> {
    let viewer = enter(&app, &request).await?;
    body::no_query(&request)?;
    let id: TeamId = path_id(&id)?;
    viewer.may_see(id, "Team")?;
    let change: Change = body::read(&request, payload).await?;
    change.check()?;
    if viewer.role == Role::Team && !change.is_teams_own() {
        return Err(ApiError::new(ErrorCode::Forbidden, "This is for the operator's key"));
    }
    let mut tx = app.db.begin().await?;
    let new = TeamChange {
        concurrency: change.concurrency,
        sessions: change.sessions,
        queue: change.queue,
        webhook_secret: change.webhook_secret,
        zero_data_retention: change.zero_data_retention,
        rates: change.rates.map(Option::unwrap_or_default),
    };
    if !teams::update(&mut tx, id, &new).await? {
        return Err(ApiError::new(ErrorCode::NotFound, "Team not found"));
    }
    let granted = match change.grant_credits {
        None => None,
        Some(credits) => match credits::grant(&mut tx, id, credits).await? {
            Grant::Granted(granted) => Some(granted),
            Grant::OutOfRange { granted } => {
                let text = format!("grantCredits: {granted} were granted in all, which can be 0 to {MOST_GRANTED}");
                return Err(ApiError::new(ErrorCode::BadRequest, text));
            }
            Grant::NoTeam => return Err(ApiError::new(ErrorCode::NotFound, "Team not found")),
        },
    };
    match granted {
        // Granted once more they would be twice as many; all else may be changed again to the same.
        Some(granted) => commit(&app, tx, || credits::has_granted(&app.db, id, granted)).await?,
        None => tx.commit().await?,
    }
    tracing::info!(team.id = %id, "a team was changed in the console");
    Ok(HttpResponse::Ok().json(outage::read(|| team(&app, id)).await?))
}
