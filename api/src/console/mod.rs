//! The console: pages for people, and the calls that they make.
//!
//! `session` says who is signed in and judges each request, `public` calls the public API as that team, the other modules
//! answer what the public API does not have: lists over all kinds and teams, figures, keys. Queries stand in
//! `weir_shared::store::console`. No route of it is ever opened to pages of other origins ([`crate::http::cors`]).

pub mod assets;
mod attempts;
mod body;
pub mod browser_sessions;
pub mod failures;
pub mod job;
pub mod jobs;
pub mod keys;
pub mod minute;
pub mod overview;
pub mod page;
pub mod public;
mod session;
pub mod sign_in;
pub mod state;
pub mod stream;
mod streams;
pub mod teams;
pub mod usage;
mod wire;
pub mod workers;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, ResponseError as _, web};
use weir_shared::error_code::ErrorCode;

use crate::app::App;
use crate::error::ApiError;

/// Below it are the calls that the pages make.
const API: &str = "/console/api/";
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
/// Of answers that are no pages.
const NO_PAGE: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");

/// The middleware of every route below `/console`: nothing there without the console, headers that browsers keep other
/// sites away by, and which session the answer to a call is of.
///
/// # Errors
/// What the handler failed with, unchanged.
pub async fn guard(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let is_on = request.app_data::<web::Data<App>>().is_some_and(|app| app.settings.api.console.is_on);
    let mark = request.path().starts_with(API).then(|| session::mark_of(request.headers())).flatten();
    let mut response = if is_on {
        next.call(request).await?.map_into_boxed_body()
    } else {
        let text = format!("Cannot {} {}", request.method(), request.path());
        request.into_response(ApiError::new(ErrorCode::NotFound, text).error_response())
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (HeaderName::from_static("cross-origin-resource-policy"), SAME_ORIGIN),
        (HeaderName::from_static("cross-origin-opener-policy"), SAME_ORIGIN),
    ] {
        headers.insert(name, value);
    }
    let unless_said = [
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::CONTENT_SECURITY_POLICY, NO_PAGE),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    ];
    for (name, value) in unless_said.into_iter().chain(mark.map(|mark| (session::SESSION, mark))) {
        if !headers.contains_key(&name) {
            headers.insert(name, value);
        }
    }
    Ok(response)
}
