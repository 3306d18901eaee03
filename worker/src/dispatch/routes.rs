//! Takes scrapes that the API dispatches directly ([`weir_shared::worker_api::direct`]), on the private listener: the
//! answer is the document, as soon as the page's end is written.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{self, Data, Json};
use tokio::sync::oneshot;
use weir_shared::worker_api::direct::{DirectAnswer, DirectScrape, PATH, SIZE_HEADER};

use super::direct;
use crate::calls::FromApi;
use crate::context::Process;
use crate::finisher::WrittenEnd;

/// Registers the call.
pub fn configure(config: &mut web::ServiceConfig) {
    config.route(PATH, web::post().to(take));
}

/// The statuses are those of [`DirectAnswer`].
async fn take(_: FromApi, process: Data<Process>, scrape: Json<DirectScrape>) -> HttpResponse {
    let Some(context) = process.life() else { return answer(DirectAnswer::Refused) };
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
        Ok(WrittenEnd::Over) => answer(DirectAnswer::Ended),
        Ok(WrittenEnd::PutBack) => answer(DirectAnswer::Unknown),
        Err(_) => match taking.await {
            Ok(Ok(false)) => answer(DirectAnswer::Refused),
            Ok(Ok(true)) => answer(DirectAnswer::Unknown),
            Ok(Err(error)) => {
                tracing::warn!(%error, page.id = %page, "a directly dispatched scrape could not be written");
                answer(DirectAnswer::Unknown)
            }
            Err(panic) => {
                tracing::error!(%panic, page.id = %page, "taking a directly dispatched scrape panicked");
                answer(DirectAnswer::Unknown)
            }
        },
    }
}

fn answer(word: DirectAnswer) -> HttpResponse {
    HttpResponse::new(StatusCode::from_u16(word.status()).expect("the table holds valid statuses"))
}
