//! `GET /welcome`: a page of our own to scrape, so that the first `curl` works without internet.

use actix_web::HttpResponse;

const PAGE: &str = include_str!("welcome.html");

/// Serves the page.
pub async fn page() -> HttpResponse {
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body(PAGE)
}
