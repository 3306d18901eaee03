//! The header of wire 5.8: a request that comes again is refused, not done twice.

use actix_web::HttpRequest;
use uuid::Uuid;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, TeamId};
use weir_shared::store::Tx;
use weir_shared::store::work::jobs::{self, KeyUse};
use weir_shared::time::Timestamp;

use crate::error::{ApiError, ApiResult};

/// What the API's document says of the header.
pub const TEXT: &str = "A UUID of this request: sent again, it is refused with 409 instead of done twice. `id` of that \
    answer is the job that the first request has begun.";

/// Reads the key of a request, if it has one.
///
/// # Errors
/// 409 when it is not a UUID.
pub fn key(request: &HttpRequest) -> ApiResult<Option<Uuid>> {
    let Some(value) = request.headers().get("x-idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().and_then(|text| Uuid::parse_str(text.trim()).ok());
    let invalid = || ApiError::new(ErrorCode::Conflict, "Invalid idempotency key: it must be a UUID");
    key.map(Some).ok_or_else(invalid)
}

/// Takes the key for the team's job, in the transaction that does the work.
///
/// # Errors
/// 409 when the team has used it before, with the job of then.
pub async fn take(tx: &mut Tx, team: TeamId, key: Option<Uuid>, job: JobId, now: Timestamp) -> ApiResult<()> {
    let Some(key) = key else { return Ok(()) };
    match jobs::use_idempotency_key(tx, team, &key.to_string(), job, now).await? {
        KeyUse::Taken => Ok(()),
        KeyUse::Before(job) => Err(ApiError::new(ErrorCode::Conflict, "Idempotency key already used").of_job(job)),
    }
}
