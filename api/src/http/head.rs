//! `HEAD`: what a GET of the same path answers, without its body, as probes of a service and checks of an address ask.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::Error;
use actix_web::body::{BodySize, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::{Method, header};
use actix_web::middleware::Next;
use actix_web::web::Bytes;

/// The middleware outside of those that look at the method: routes know no `HEAD`.
///
/// # Errors
/// What the handler failed with, unchanged.
pub async fn as_get(
    mut request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody, Bodiless>>, Error> {
    // A WebSocket has no head of its own.
    if request.method() != Method::HEAD || request.headers().contains_key(header::UPGRADE) {
        return Ok(next.call(request).await?.map_into_left_body());
    }
    request.head_mut().method = Method::GET;
    let response = next.call(request).await?;
    Ok(response.map_body(|_, body| EitherBody::right(Bodiless(body.size()))))
}

/// In the place of a body of this size.
pub struct Bodiless(BodySize);

impl MessageBody for Bodiless {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        self.0
    }

    fn poll_next(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        Poll::Ready(None)
    }
}
