//! What a team did, used and has in the queue (spec 4.12, 4.13, wire 10). All of it costs nothing.

pub mod activity;
pub mod concurrency;
pub mod credit_usage;
pub mod threat_protection;
pub mod token_usage;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use weir_shared::error_code::ErrorCode;
use weir_shared::store::accounts::credits::{self, Month};

use crate::app::App;
use crate::callers::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Group, Operation};

/// What an installation that does not meter tells as the plan: clients want a whole number, so it is a very large one.
const UNLIMITED: i64 = 99_999_999;

// What a team has left, in credits or in tokens. The API's document would show a doc comment, here and below.
#[derive(Serialize, JsonSchema)]
pub(super) struct Balance<D> {
    pub success: bool,
    pub data: D,
}

// What a team has used by month, in credits or in tokens.
#[derive(Serialize, JsonSchema)]
struct History<P> {
    success: bool,
    periods: Vec<P>,
}

/// What the API's document says of a balance.
pub(super) fn doc_balance<D: JsonSchema>(id: &'static str, summary: &'static str) -> Operation {
    let text = "What the team may use and has left. Without metering both are 99999999; grants do not lapse, so there is no \
        billing period.";
    Operation::new(Group::Team, id, summary, text).answer::<Balance<D>>("The balance.").errors(&[404])
}

/// What a team may use and has left. Grants do not lapse, so there is no billing period.
pub(super) struct Plan {
    pub total: i64,
    pub remaining: i64,
}

/// The caller's plan.
pub(super) async fn plan(app: &App, caller: &Caller) -> ApiResult<Plan> {
    if !app.settings.limits.metered {
        return Ok(Plan { total: UNLIMITED, remaining: UNLIMITED });
    }
    let balance = credits::balance(&app.db, caller.team_id()).await?;
    let balance =
        balance.ok_or_else(|| ApiError::new(ErrorCode::NotFound, "Could not find credit usage information"))?;
    Ok(Plan { total: balance.granted, remaining: balance.left().max(0) })
}

/// The caller's months, with the split by key if `byApiKey` says so.
async fn months(app: &App, caller: &Caller, query: &str) -> ApiResult<Vec<Month>> {
    Ok(credits::history(&app.db, caller.team_id(), by_api_key(query)?).await?)
}

/// The parameter that [`by_api_key`] reads, in the API's document.
fn by_key(operation: Operation) -> Operation {
    let text = "Split by key, with its id as `apiKey`.";
    operation.query("byApiKey", json!({"type": "boolean", "default": false}), text).errors(&[400])
}

/// Reads `byApiKey`; other parameters are ignored.
fn by_api_key(query: &str) -> ApiResult<bool> {
    let value = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "byApiKey");
    match value.as_ref().map(|(_, value)| value.as_ref()) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(ApiError::new(ErrorCode::BadRequest, "byApiKey must be true or false.")),
    }
}
