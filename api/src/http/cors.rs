//! Lets web pages call the API (wire 27).
//!
//! Keys travel in `Authorization`, never in cookies, so an answer that any page may read gives away nothing that the page
//! was not given a key for. What is reached without a key is left out: the addresses of sessions are keys themselves, and
//! with `WEIR_AUTH=open` every page that an operator visits would be a caller.
//!
//! Our own lines instead of a library's, because a preflight is answered on every path, without a key and with 204.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpResponse, web};
use weir_shared::config::CorsOrigins;

use crate::app::App;

/// What a preflight allows, whatever the path: wrong methods are answered by their routes.
const METHODS: HeaderValue = HeaderValue::from_static("GET,HEAD,PUT,PATCH,POST,DELETE");
/// What a page may read of an answer beside its body.
const EXPOSED: HeaderValue = HeaderValue::from_static("retry-after, x-request-id");
/// How long a browser keeps a preflight's answer, seconds. Chromium keeps none longer than two hours.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");
/// Paths that pages of other origins have no business with: sessions' capabilities and the console.
const WITHOUT: &[&str] = &["/cdp/", "/live/", "/console"];

/// The middleware: answers preflights, and lets pages read every other answer, errors included.
///
/// # Errors
/// What the handler failed with, unchanged.
pub async fn allow(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    let Some(origin) = allowed_origin(&request) else {
        return Ok(next.call(request).await?.map_into_left_body());
    };
    if request.method() == Method::OPTIONS {
        let asked = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        let mut answer = HttpResponse::NoContent().finish();
        let headers = answer.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        headers.append(header::VARY, HeaderValue::from_static("Access-Control-Request-Headers"));
        if let Some(asked) = asked {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked);
        }
        name_origin(headers, origin);
        return Ok(request.into_response(answer).map_into_right_body());
    }
    let mut response = next.call(request).await?;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    name_origin(headers, origin);
    Ok(response.map_into_left_body())
}

/// What `Access-Control-Allow-Origin` says of this request; `None`: nothing.
fn allowed_origin(request: &ServiceRequest) -> Option<HeaderValue> {
    let settings = &request.app_data::<web::Data<App>>()?.settings.api;
    if !settings.auth_required || WITHOUT.iter().any(|path| request.path().starts_with(path)) {
        return None;
    }
    match &settings.cors {
        CorsOrigins::Off => None,
        CorsOrigins::Any => Some(HeaderValue::from_static("*")),
        CorsOrigins::Only(list) => {
            let origin = request.headers().get(header::ORIGIN)?;
            list.iter().any(|one| one.as_bytes() == origin.as_bytes()).then(|| origin.clone())
        }
    }
}

fn name_origin(headers: &mut HeaderMap, origin: HeaderValue) {
    if origin != "*" {
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
}
