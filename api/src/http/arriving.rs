//! A request's body as it comes, and no longer than it has to take: a client that has vanished, or sends a byte now and then,
//! would keep its connection and the room of its key for ever.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use actix_web::web::{Bytes, Payload};
use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout_at};
use weir_shared::clock;
use weir_shared::error_code::ErrorCode;

use crate::error::ApiError;

/// How long nothing may come.
const SILENCE: Duration = Duration::from_secs(30);
/// The least that has to come on average once [`SILENCE`] is over, bytes a second: ten megabytes take 43 minutes then.
const LEAST_RATE: u32 = 4 << 10;

/// A body of which more is to come.
pub struct Arriving {
    payload: Payload,
    /// Bytes until the end, where the server does not see it: of a request that offers an upgrade, it takes what comes for the
    /// other protocol's.
    left: Option<usize>,
    begun: Instant,
    received: u32,
    silence: Duration,
}

/// Why a body does not come to its end.
#[derive(Debug)]
pub enum Interrupted {
    Late,
    Broken(PayloadError),
}

impl Arriving {
    pub fn new(request: &HttpRequest, payload: Payload) -> Self {
        let headers = request.headers();
        let ends_unseen = headers.contains_key(UPGRADE) && !headers.contains_key(TRANSFER_ENCODING);
        let left = ends_unseen.then(|| announced(request));
        Self { payload, left, begun: clock::instant(), received: 0, silence: SILENCE }
    }

    /// What has come next; `None`: that was all.
    ///
    /// # Errors
    /// When it comes too slowly, or the client has broken off.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Interrupted> {
        if self.left == Some(0) {
            return Ok(None);
        }
        let next = timeout_at(self.due(clock::instant()), self.payload.next()).await;
        let Some(part) = next.map_err(|_| Interrupted::Late)? else { return Ok(None) };
        let mut part = part.map_err(Interrupted::Broken)?;
        if let Some(left) = &mut self.left {
            part.truncate(*left);
            *left -= part.len();
        }
        self.received = self.received.saturating_add(u32::try_from(part.len()).unwrap_or(u32::MAX));
        Ok(Some(part))
    }

    /// Until when more has to come.
    fn due(&self, now: Instant) -> Instant {
        let on_average = self.begun + self.silence + Duration::from_secs(1) * self.received / LEAST_RATE;
        on_average.min(now + self.silence)
    }
}

/// The length that the request says its body has; 0 where it says none.
pub fn announced(request: &HttpRequest) -> usize {
    request.headers().get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok()).unwrap_or(0)
}

/// 408.
pub fn late() -> ApiError {
    let text = "Request timeout: the body did not come, or came too slowly. Please try again.";
    ApiError::new(ErrorCode::BodyTimeout, text)
}

impl Interrupted {
    /// 408, or what `broken` makes of a body that broke off.
    pub fn or(self, broken: impl FnOnce(&PayloadError) -> ApiError) -> ApiError {
        match self {
            Self::Late => late(),
            Self::Broken(error) => broken(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::pin::Pin;

    use actix_web::FromRequest as _;
    use actix_web::dev;
    use actix_web::test::TestRequest;
    use futures_util::Stream;

    use super::*;

    /// A body of which these parts are there, and that never ends.
    async fn arriving(request: TestRequest, parts: &'static [&'static [u8]]) -> Arriving {
        let parts = futures_util::stream::iter(parts).map(|part| Ok(Bytes::from_static(part)));
        let parts = parts.chain(futures_util::stream::pending::<Result<Bytes, PayloadError>>());
        let stream: Pin<Box<dyn Stream<Item = Result<Bytes, PayloadError>>>> = Box::pin(parts);
        let request = request.to_http_request();
        let mut payload = dev::Payload::from(stream);
        let payload = Payload::from_request(&request, &mut payload).await.unwrap();
        Arriving::new(&request, payload)
    }

    async fn all(mut arriving: Arriving) -> (Vec<u8>, Option<Interrupted>) {
        let mut all = Vec::new();
        loop {
            match arriving.next().await {
                Ok(Some(part)) => all.extend_from_slice(&part),
                Ok(None) => return (all, None),
                Err(error) => return (all, Some(error)),
            }
        }
    }

    #[tokio::test]
    async fn a_body_that_stops_or_trickles_is_given_up() {
        let stopped = arriving(TestRequest::post(), &[b"{", b"}"]).await;
        let (got, end) = all(Arriving { silence: Duration::from_millis(50), ..stopped }).await;
        assert_eq!((got.as_slice(), matches!(end, Some(Interrupted::Late))), (&b"{}"[..], true));
        assert_eq!(Interrupted::Late.or(|_| unreachable!()).code().status(), 408);
        let mut body = arriving(TestRequest::post(), &[]).await;
        for (second, received, due, why) in [
            (0, 0, 30, "nothing has come"),
            (29, 29, 30, "a byte a second gains no time"),
            (25, 40 << 10, 40, "much that has come early leaves time for what comes late"),
            (25, 400 << 10, 55, "but nothing may not come for long"),
        ] {
            body.received = received;
            let due_at = body.due(body.begun + Duration::from_secs(second));
            assert_eq!((due_at - body.begun).as_secs(), due, "{why}");
        }
    }

    #[tokio::test]
    async fn a_body_beside_an_offered_upgrade_ends_where_it_says() {
        for (length, expected) in [(Some("4"), &b"1234"[..]), (Some("0"), b""), (None, b"")] {
            let mut request = TestRequest::post().insert_header((UPGRADE, "websocket"));
            if let Some(length) = length {
                request = request.insert_header((CONTENT_LENGTH, length));
            }
            let (got, end) = all(arriving(request, &[b"12", b"345"]).await).await;
            assert_eq!((got.as_slice(), end.is_none()), (expected, true), "{length:?}");
        }
    }
}
