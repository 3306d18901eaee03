//! Operations of the specification that this build does not have: 501 in the usual shape (wire 12).

use actix_web::{HttpRequest, HttpResponse};
use weir_shared::error_code::ErrorCode;

use crate::app::AppData;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Group, Operation};

/// Such an operation in the API's document.
pub fn doc(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(Group::Later, id, summary, "Not built yet: callers with a key are answered 501.")
        .any_id()
        .errors(&[501])
}

/// Says so, to callers with a key.
///
/// # Errors
/// Always: 401 or 501.
pub async fn handle(app: AppData, request: HttpRequest) -> ApiResult<HttpResponse> {
    app.caller(&request).await?;
    Err(ApiError::new(ErrorCode::NotImplemented, "This operation is not available yet on this server."))
}
