//! `GET /v1/team/credit-usage` and `/token-usage` (wire 26): what is left, in snake case. Their histories, the queue and
//! the concurrency are told as in version 2.

use actix_web::{HttpRequest, HttpResponse};
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::endpoints::team::{Balance, Plan, doc_balance, plan};
use crate::error::ApiResult;
use crate::openapi::{Group, Operation};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CreditUsageV1")]
struct Credits {
    remaining_credits: i64,
    plan_credits: i64,
    billing_period_start: Option<String>,
    billing_period_end: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TokenUsageV1")]
struct Tokens {
    remaining_tokens: i64,
    plan_tokens: i64,
    billing_period_start: Option<String>,
    billing_period_end: Option<String>,
}

/// What the API's document says of the credits.
pub fn doc_credits() -> Operation {
    doc_balance::<Credits>("getCreditUsageV1", "Credits left").group(Group::V1)
}

/// What the API's document says of the tokens.
pub fn doc_tokens() -> Operation {
    doc_balance::<Tokens>("getTokenUsageV1", "Tokens left").group(Group::V1)
}

/// Handles `/v1/team/credit-usage`.
///
/// # Errors
/// 404 when the team is gone.
pub async fn credits(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let Plan { total, remaining } = plan(&app, &caller).await?;
    let data = Credits {
        remaining_credits: remaining,
        plan_credits: total,
        billing_period_start: None,
        billing_period_end: None,
    };
    Ok(HttpResponse::Ok().json(Balance { success: true, data }))
}

/// Handles `/v1/team/token-usage`.
///
/// # Errors
/// 404 when the team is gone.
pub async fn tokens(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let Plan { total, remaining } = plan(&app, &caller).await?;
    let data = Tokens {
        remaining_tokens: remaining,
        plan_tokens: total,
        billing_period_start: None,
        billing_period_end: None,
    };
    Ok(HttpResponse::Ok().json(Balance { success: true, data }))
}
