//! Takes scrapes that the API dispatches directly ([`weir_shared::hand_over`]), on the private listener: the answer is the
//! document, as soon as the page's end is written.

use actix_web::web::{self, Data, Json};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::json;
use tokio::sync::oneshot;
use weir_shared::hand_over::{HandedScrape, PATH, SIZE_HEADER};

use super::direct;
use crate::context::Process;
use crate::finisher::WrittenEnd;
use crate::relay::routes::Relays;

/// Registers the call.
pub fn configure(config: &mut web::ServiceConfig) {
    config.route(PATH, web::post().to(take));
}

/// 200: the compressed document, and its size in a header. 204: the page has ended, its rows say how. 503: nothing is
/// written. 202: anything else; the rows say what, if there are any.
async fn take(
    process: Data<Process>,
    relays: Data<Relays>,
    request: HttpRequest,
    scrape: Json<HandedScrape>,
) -> HttpResponse {
    if !relays.admits(&request) {
        return HttpResponse::Unauthorized().json(json!({"error": "the internal secret is missing or wrong"}));
    }
    let Some(context) = process.life() else { return refused() };
    let (page, (end_sender, end)) = (scrape.page, oneshot::channel());
    // In a task of its own: the work goes on when the caller hangs up.
    let tasks = context.tasks.clone();
    let taking = process.runtime.spawn(tasks.track_future(async move {
        let taken = direct::dispatched(&context, scrape.into_inner(), end_sender).await;
        let outcome = if matches!(taken, Ok(false)) { "refused" } else { "taken" };
        context.process.metrics.direct_dispatches.with_label_values(&[outcome]).inc();
        taken
    }));
    // One wake-up for a page that has ended: what became of the taking is asked only where no end was written.
    match end.await {
        Ok(WrittenEnd::Document { size, packed }) => HttpResponse::Ok().insert_header((SIZE_HEADER, size)).body(packed),
        Ok(WrittenEnd::Over) => HttpResponse::NoContent().finish(),
        Ok(WrittenEnd::PutBack) => HttpResponse::Accepted().finish(),
        Err(_) => match taking.await {
            Ok(Ok(false)) => refused(),
            Ok(Ok(true)) => HttpResponse::Accepted().finish(),
            Ok(Err(error)) => {
                tracing::warn!(%error, page.id = %page, "a directly dispatched scrape could not be written");
                HttpResponse::Accepted().finish()
            }
            Err(panic) => {
                tracing::error!(%panic, page.id = %page, "taking a directly dispatched scrape panicked");
                HttpResponse::Accepted().finish()
            }
        },
    }
}

fn refused() -> HttpResponse {
    HttpResponse::ServiceUnavailable().json(json!({"error": "this worker has no free place"}))
}
