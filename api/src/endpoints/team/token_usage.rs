//! `GET /v2/team/token-usage` and `/historical` (wire 10): the same numbers as for credits, one token a credit. Beside
//! them stand the tokens of the operator's language model, which are not billed.

use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::ids::KeyId;
use weir_shared::llm::Spent;
use weir_shared::store::accounts::credits::Month;
use weir_shared::store::accounts::model_usage;
use weir_shared::time::Timestamp;

use super::{Balance, History, Plan};
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::ApiResult;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TokenUsage")]
struct Data {
    remaining_tokens: i64,
    plan_tokens: i64,
    billing_period_start: Option<String>,
    billing_period_end: Option<String>,
}

/// What the API's document says of the balance.
pub fn doc() -> Operation {
    super::doc_balance::<Data>("getTokenUsage", "Tokens left")
}

/// What the API's document says of the history.
pub fn doc_historical() -> Operation {
    let text = "Tokens used by calendar month in UTC, oldest first.";
    super::by_key(Operation::new(Group::Team, "getTokenUsageHistory", "Tokens by month", text))
        .answer::<History<Period>>("The months.")
}

/// Handles the request.
///
/// # Errors
/// 404 when the team is gone.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let Plan { total, remaining } = super::plan(&app, &caller).await?;
    let data =
        Data { remaining_tokens: remaining, plan_tokens: total, billing_period_start: None, billing_period_end: None };
    Ok(HttpResponse::Ok().json(Balance { success: true, data }))
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TokenPeriod")]
struct Period {
    #[schemars(extend("format" = "date-time"))]
    start_date: String,
    #[schemars(extend("format" = "date-time"))]
    end_date: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<KeyId>,
    tokens_used: i64,
    /// What went to the language model, and what came from it.
    model_tokens_sent: i64,
    model_tokens_received: i64,
}

impl Period {
    fn new(start: Timestamp, key: Option<KeyId>, credits: i64, spent: Spent) -> Self {
        Self {
            start_date: start.to_iso(),
            end_date: start.plus_month().to_iso(),
            api_key: key,
            tokens_used: credits,
            model_tokens_sent: spent.sent,
            model_tokens_received: spent.received,
        }
    }
}

/// Handles `/historical`.
///
/// # Errors
/// 400 for a `byApiKey` that is neither true nor false.
pub async fn historical(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let months = super::months(&app, &caller, request.query_string()).await?;
    let by_key = super::by_api_key(request.query_string())?;
    let mut spent = model_usage::history(&app.db, caller.team_id(), by_key).await?;
    let billed = |Month { start, key, credits }: Month| {
        let key_text = key.map(|key| key.to_string()).unwrap_or_default();
        Period::new(start, key, credits, spent.remove(&(start, key_text)).unwrap_or_default())
    };
    let mut periods: Vec<Period> = months.into_iter().map(billed).collect();
    // Months in which nothing was billed, but a model was asked for pages that failed.
    periods.extend(spent.into_iter().map(|((start, key), spent)| Period::new(start, key.parse().ok(), 0, spent)));
    periods.sort_by(|a, b| a.start_date.cmp(&b.start_date));
    Ok(HttpResponse::Ok().json(History { success: true, periods }))
}
