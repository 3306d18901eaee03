//! `GET /welcome`: a page of our own to scrape, so that the first `curl` works without internet.

use actix_web::HttpResponse;

use crate::openapi::Operation;

const PAGE: &str = include_str!("welcome.html");

/// What the API's document says of it.
pub fn doc() -> Operation {
    Operation::public(
        "getWelcomePage",
        "A page to scrape",
        "A page of our own, so that a first scrape needs no internet.",
    )
    .text_answer("The page.", "text/html; charset=utf-8")
}

/// Serves the page.
pub async fn page() -> HttpResponse {
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body(PAGE)
}
