//! Every error answer, in one shape (wire 2.1): `{success: false, error, code?, details?}`.
//!
//! Handlers, extractors, unknown paths and wrong methods all end here. Details of our own failures go to the log with
//! an exception id, which is all the client sees of them.

use std::fmt;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, ResponseError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;
use weir_shared::domain::validation::ValidationError;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::random;
use weir_shared::store::StoreError;

/// Result of a handler.
pub type ApiResult<T> = Result<T, ApiError>;

/// Seconds after which a client may try again when something of ours is away.
const RETRY_SECONDS: u64 = 5;

/// One error answer.
#[derive(Debug, Clone)]
pub struct ApiError {
    code: ErrorCode,
    message: String,
    /// In a box: few errors have them, and all are moved.
    details: Option<Box<Value>>,
    /// Seconds for `Retry-After`; on 429 and 503.
    retry_after: Option<u64>,
    /// The job that the answer is about, where its caller cannot know it.
    job: Option<JobId>,
    /// Something of ours is away.
    may_pass: bool,
}

impl ApiError {
    /// An answer with this code and text.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let retry_after = (code == ErrorCode::Unavailable).then_some(RETRY_SECONDS);
        Self { code, message: message.into(), details: None, retry_after, job: None, may_pass: false }
    }

    /// Tells the client when to come back.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Tells the client which job it is about.
    pub fn of_job(mut self, job: Option<JobId>) -> Self {
        self.job = job;
        self
    }

    /// The job is unknown, or another team's and not to be told apart from that.
    pub fn job_not_found() -> Self {
        Self::new(ErrorCode::NotFound, "Job not found")
    }

    /// The job's results are gone.
    pub fn job_expired() -> Self {
        Self::new(ErrorCode::NotFound, "Job expired")
    }

    /// A failure of ours: `cause` is logged under an id, and the client gets the id.
    pub fn internal(cause: &dyn fmt::Display) -> Self {
        let id = random::id();
        tracing::error!(exception.id = %id, error = %cause, "request failed");
        Self::new(
            ErrorCode::Unknown,
            format!("An unexpected error occurred. If it persists, report it with this exception id: {id}"),
        )
    }

    /// The outcome.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// Whether the database, or the place of the blobs, is away for now: the same may work later.
    pub fn may_pass(&self) -> bool {
        self.may_pass
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

impl From<ValidationError> for ApiError {
    fn from(error: ValidationError) -> Self {
        let details = (!error.issues.is_empty()).then(|| Box::new(serde_json::json!(error.issues)));
        Self { details, ..Self::new(error.code, error.message) }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let may_pass = error.may_pass();
        let refusal = match error {
            StoreError::Unavailable(cause) => {
                tracing::error!(error = %cause, "the database is unavailable");
                Self::new(ErrorCode::Unavailable, "The database is unavailable. Please try again shortly.")
            }
            StoreError::BlobsAway(cause) => {
                tracing::error!(error = %cause, "the blobs are unavailable");
                Self::new(
                    ErrorCode::Unavailable,
                    "The store of large documents is unavailable. Please try again shortly.",
                )
            }
            StoreError::Lost(why) => {
                tracing::error!(why, "a document is lost");
                let text =
                    "The document of this page is lost: what was stored cannot be read any more. Scrape it again.";
                Self::new(ErrorCode::NotFound, text)
            }
            other @ (StoreError::Conflict(_) | StoreError::Corrupt(_)) => Self::internal(&other),
        };
        Self { may_pass, ..refusal }
    }
}

/// The shape of every error answer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct Shape<'a> {
    /// Always false.
    #[schemars(extend("const" = false))]
    success: bool,
    /// What happened, for programs. These words never change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "codes")]
    code: Option<&'static str>,
    /// What happened, for people.
    error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "issues")]
    details: Option<&'a Value>,
    /// Of an idempotency key that was used before: the job that was begun with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<JobId>,
    /// Seconds, as in `Retry-After`.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
}

fn codes(_: &mut SchemaGenerator) -> Schema {
    let codes: Vec<&str> = ErrorCode::ALL.iter().filter_map(|code| code.code()).collect();
    json_schema!({"type": "string", "enum": codes})
}

/// [`weir_shared::domain::validation::Issue`] as it is written.
fn issues(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "What is wrong, field by field.",
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "Kind of the mistake, such as invalid_type or too_big."},
                "path": {"type": "array", "items": {"type": ["string", "integer"]}, "description": "Where it stands."},
                "message": {"type": "string"},
            },
            "required": ["code", "path", "message"],
            "additionalProperties": true
        }
    })
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        if let Some(seconds) = self.retry_after {
            response.insert_header((header::RETRY_AFTER, seconds));
        }
        response.json(Shape {
            success: false,
            code: self.code.code(),
            error: &self.message,
            details: self.details.as_deref(),
            id: self.job,
            retry_after_seconds: self.retry_after,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use actix_web::body::to_bytes;
    use serde_json::json;

    use super::*;

    async fn body(error: ApiError) -> (u16, Option<String>, Value) {
        let response = error.error_response();
        let retry = response.headers().get("retry-after").map(|v| v.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body()).await.unwrap();
        (status, retry, serde_json::from_slice(&bytes).unwrap())
    }

    #[actix_web::test]
    async fn every_error_has_one_shape() {
        let (status, retry, text) = body(ApiError::new(ErrorCode::Invalid, "No")).await;
        assert_eq!((status, retry, text), (400, None, json!({"success": false, "error": "No"})));
        let (status, retry, text) = body(ApiError::new(ErrorCode::RateLimited, "Slow").retry_after(7)).await;
        assert_eq!((status, retry.as_deref()), (429, Some("7")));
        assert_eq!(text["retry_after_seconds"], 7);
        let (status, _, text) = body(ApiError::new(ErrorCode::DnsResolution, "gone")).await;
        assert_eq!((status, &text["success"]), (200, &json!(false)));
    }

    #[actix_web::test]
    async fn a_lost_database_is_a_503_and_its_cause_stays_in_the_log() {
        let cause = StoreError::Corrupt("secret column".to_owned());
        let (status, _, text) = body(cause.into()).await;
        assert_eq!((status, &text["code"]), (500, &json!("UNKNOWN_ERROR")));
        assert!(!text.to_string().contains("secret"));
    }
}
