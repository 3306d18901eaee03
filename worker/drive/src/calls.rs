//! What every call on the private listener shares ([`weir_shared::worker_api`]): who may make it, and how a call that is
//! not carried out is answered.

use std::fmt;
use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest, HttpResponse, ResponseError};
use weir_shared::worker_api::{Refusal, RefusalBody, SECRET_HEADER, Secret};

/// A call of one of the installation's API processes. The first argument of a handler, so that nothing of a stranger's
/// call is read; the listener's data hold the [`Secret`].
pub struct FromApi(());

impl FromRequest for FromApi {
    type Error = Refused;
    type Future = Ready<Result<Self, Refused>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let secret = request.app_data::<Data<Secret>>().expect("the listener was given the secret");
        let given = request.headers().get(SECRET_HEADER).map(|value| value.as_bytes());
        ready(match secret.admits(given) {
            true => Ok(Self(())),
            false => Err(Refused::new(Refusal::WrongSecret, "the internal secret is missing or wrong")),
        })
    }
}

/// A call that was not carried out: the answer to it.
#[derive(Debug)]
pub struct Refused {
    refusal: Refusal,
    text: String,
}

impl Refused {
    /// The text says why, for the API's log or its client.
    pub fn new(refusal: Refusal, text: impl fmt::Display) -> Self {
        Self { refusal, text: text.to_string() }
    }

    /// The session is not open on this worker.
    pub fn unknown_session() -> Self {
        Self::new(Refusal::UnknownSession, "no such session on this worker")
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl ResponseError for Refused {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.refusal.status()).expect("the table holds valid statuses")
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status_code()).json(RefusalBody { error: self.text.clone() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use actix_web::test::TestRequest;

    use super::*;

    #[actix_web::test]
    async fn a_stranger_is_answered_401_whatever_the_call_is() {
        let ask = |secret: Option<&str>| {
            let request = TestRequest::default().app_data(Data::new(Secret::new("ours")));
            let request = secret.into_iter().fold(request, |request, s| request.insert_header((SECRET_HEADER, s)));
            FromApi::from_request(&request.to_http_request(), &mut Payload::None)
        };
        assert!(ask(Some("ours")).await.is_ok());
        for wrong in [None, Some(""), Some("theirs")] {
            let answer = ask(wrong).await.err().unwrap().error_response();
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        }
    }
}
