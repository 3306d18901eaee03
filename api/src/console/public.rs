//! `/console/api/public/…`: the public API, called as the team that is signed in.
//!
//! The same routes with the same handlers stand a second time below this path; what is different is only where the caller
//! comes from: the session instead of a key. So validation, rates, limits and walls are those of the public API.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::UPGRADE;
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, ResponseError as _, web};
use weir_shared::error_code::ErrorCode;

use super::session::enter;
use crate::app::App;
use crate::callers::auth::{Caller, SignedIn};
use crate::error::{ApiError, ApiResult};

/// Where the public API stands a second time.
pub const ROOT: &str = "/console/api/public";

/// The middleware of these routes.
///
/// # Errors
/// What the handler failed with, unchanged.
pub async fn as_team(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    match caller(&request).await {
        Ok(caller) => {
            request.extensions_mut().insert(SignedIn(caller));
            Ok(next.call(request).await?.map_into_boxed_body())
        }
        Err(error) => Ok(request.into_response(error.error_response())),
    }
}

async fn caller(request: &ServiceRequest) -> ApiResult<Caller> {
    let app = request.app_data::<web::Data<App>>().ok_or_else(|| ApiError::internal(&"no application"))?;
    if request.headers().contains_key(UPGRADE) {
        return Err(ApiError::new(ErrorCode::BadRequest, "The console has no WebSockets: read the status instead"));
    }
    enter(app, request.request()).await?.caller()
}
