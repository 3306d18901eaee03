//! `GET /v2/team/credit-usage` and `/historical` (spec 4.13, wire 10).

use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::ids::KeyId;
use weir_shared::store::accounts::credits::Month;

use super::{Balance, History, Plan};
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::ApiResult;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CreditUsage")]
struct Data {
    remaining_credits: i64,
    plan_credits: i64,
    billing_period_start: Option<String>,
    billing_period_end: Option<String>,
}

/// What the API's document says of the balance.
pub fn doc() -> Operation {
    super::doc_balance::<Data>("getCreditUsage", "Credits left")
}

/// What the API's document says of the history.
pub fn doc_historical() -> Operation {
    let text = "Credits used by calendar month in UTC, oldest first.";
    super::by_key(Operation::new(Group::Team, "getCreditUsageHistory", "Credits by month", text))
        .answer::<History<Period>>("The months.")
}

/// Handles the request.
///
/// # Errors
/// 404 when the team is gone.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let Plan { total, remaining } = super::plan(&app, &caller).await?;
    let data = Data {
        remaining_credits: remaining,
        plan_credits: total,
        billing_period_start: None,
        billing_period_end: None,
    };
    Ok(HttpResponse::Ok().json(Balance { success: true, data }))
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CreditPeriod")]
struct Period {
    #[schemars(extend("format" = "date-time"))]
    start_date: String,
    #[schemars(extend("format" = "date-time"))]
    end_date: String,
    /// Id of the key, when the usage is split by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<KeyId>,
    // The same number under both names: clients read creditsUsed (wire 14).
    credits_used: i64,
    total_credits: i64,
}

impl From<Month> for Period {
    fn from(month: Month) -> Self {
        Self {
            start_date: month.start.to_iso(),
            end_date: month.start.plus_month().to_iso(),
            api_key: month.key,
            credits_used: month.credits,
            total_credits: month.credits,
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
    let periods = months.into_iter().map(Period::from).collect();
    Ok(HttpResponse::Ok().json(History { success: true, periods }))
}
