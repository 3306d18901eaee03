//! Bodies and queries of the console's calls: small, and read by their types.

use actix_web::HttpRequest;
use actix_web::error::PayloadError;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{Payload, Query};
use serde::de::DeserializeOwned;
use weir_shared::error_code::ErrorCode;
use weir_shared::texts;

use crate::error::{ApiError, ApiResult};
use crate::http::arriving::Arriving;

/// Largest body, bytes: a thousand ids are 40,000.
const MOST: usize = 256 * 1024;

/// Reads a JSON body.
///
/// # Errors
/// 400 when it is not JSON of this type or says that it is something else, 408 when it does not come, 413 when it is too
/// large.
pub async fn read<T: DeserializeOwned>(request: &HttpRequest, payload: Payload) -> ApiResult<T> {
    // A page of another site may send texts and forms, but no JSON, without asking first.
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return Err(ApiError::new(ErrorCode::BadRequest, "The body has to be JSON (Content-Type: application/json)"));
    }
    let broken = |_: &PayloadError| ApiError::new(ErrorCode::BadRequest, "The body ended too early");
    let mut arriving = Arriving::new(request, payload);
    let mut text = Vec::new();
    while let Some(part) = arriving.next().await.map_err(|end| end.or(broken))? {
        if text.len() + part.len() > MOST {
            return Err(ApiError::new(ErrorCode::PayloadTooLarge, format!("The body is larger than {MOST} bytes")));
        }
        text.extend_from_slice(&part);
    }
    if texts::names_nul(&text) {
        return Err(nul("body"));
    }
    let refused = |error: serde_json::Error| ApiError::new(ErrorCode::BadRequest, format!("Invalid body: {error}"));
    serde_json::from_slice(&text).map_err(refused)
}

/// Reads the query, but for `team`, which every call may have.
///
/// # Errors
/// 400 for parameters that there are not, and values that are none of theirs.
pub fn query<T: DeserializeOwned>(request: &HttpRequest) -> ApiResult<T> {
    let pairs = url::form_urlencoded::parse(request.query_string().as_bytes()).filter(|(name, _)| name != "team");
    if pairs.clone().any(|(_, value)| value.contains('\0')) {
        return Err(nul("query"));
    }
    let rest = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let refused = |error| ApiError::new(ErrorCode::BadRequest, format!("Invalid query: {error}"));
    Query::<T>::from_query(&rest).map(Query::into_inner).map_err(refused)
}

/// Not every database has it in a text.
fn nul(place: &str) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, format!("Invalid {place}: a text holds the character U+0000"))
}

/// Refuses every parameter but `team`.
///
/// # Errors
/// 400.
pub fn no_query(request: &HttpRequest) -> ApiResult<()> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct None {}
    query::<None>(request).map(drop)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_query_with_a_nul_is_refused() {
        #[derive(serde::Deserialize)]
        struct Named {
            name: String,
        }
        let read = |uri: &str| query::<Named>(&TestRequest::with_uri(uri).to_http_request());
        assert_eq!(read("/x?team=a&name=b%20c").unwrap().name, "b c");
        let error = read("/x?name=b%00c").err().unwrap();
        assert!(error.code() == ErrorCode::BadRequest && error.to_string().contains("U+0000"), "{error}");
    }
}
