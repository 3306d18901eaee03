//! `GET` and `PUT /v2/team/threat-protection` (wire 25): a team has no policy of its own here. What a request blocks it says
//! in its own `threatProtection`.

use actix_web::{HttpRequest, HttpResponse};
use weir_shared::error_code::ErrorCode;

use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Group, Operation};

/// What the API's document says of it.
pub fn doc(id: &'static str, summary: &'static str) -> Operation {
    let text = "Always 403: teams have no policy here. A request's own `threatProtection` is honoured.";
    Operation::new(Group::Team, id, summary, text).errors(&[403])
}

/// Says so, to callers with a key.
///
/// # Errors
/// Always: 401 or 403.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    app.authorize(&request, Bucket::Status).await?;
    Err(ApiError::new(ErrorCode::Forbidden, "Threat protection is not enabled for this team"))
}
