//! `GET /welcome`: a page of our own to scrape, so that the first `curl` works without internet.

use actix_web::{HttpRequest, HttpResponse};

use crate::app::AppData;
use crate::openapi::Operation;

const PAGE: &str = include_str!("welcome.html");
/// Where the page's commands call, which is put in the place of what its file says.
const EXAMPLE: &str = "http://127.0.0.1:3002";

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
pub async fn page(app: AppData, request: HttpRequest) -> HttpResponse {
    let page = PAGE.replace(EXAMPLE, &app.base_url(&request));
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body(page)
}
