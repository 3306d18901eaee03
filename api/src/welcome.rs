//! `GET /welcome`: a page of our own to scrape, so that the first `curl` works without internet, and the way in for whoever
//! opens the service's address in a browser.

use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};
use weir_shared::error_code::ErrorCode;

use crate::app::AppData;
use crate::console::assets::names;
use crate::error::ApiError;
use crate::openapi::Operation;

const PAGE: &str = include_str!("welcome.html");
/// Where the page's commands call, which is put in the place of what its file says.
const EXAMPLE: &str = "http://127.0.0.1:3002";
/// The line of the page that leads to the console, where there is one.
const TO_CONSOLE: &str = "  <li><a href=\"console\">";

/// What the API's document says of it.
pub fn doc() -> Operation {
    Operation::public(
        "getWelcomePage",
        "A page to scrape",
        "A page of our own, so that a first scrape needs no internet.",
    )
    .text_answer("The page.", "text/html; charset=utf-8")
}

/// `GET /` in the API's document.
pub fn doc_entrance() -> Operation {
    let text = "Browsers are led to `/welcome`. To programs there is nothing here.";
    Operation::public("getEntrance", "The way in", text)
        .bare_answer(302, "For who takes `text/html`: `Location` is the welcome page.")
        .errors(&[404])
}

/// Serves the page.
pub async fn page(app: AppData, request: HttpRequest) -> HttpResponse {
    let page = written(&app.base_url(&request), app.settings.api.console.is_on);
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body(page)
}

fn written(base: &str, has_console: bool) -> String {
    let is_shown = |line: &&str| has_console || !line.starts_with(TO_CONSOLE);
    let page: String = PAGE.split_inclusive('\n').filter(is_shown).collect();
    page.replace(EXAMPLE, base)
}

/// `GET /`: a program that has lost its path is told so, as on every path that there is not.
pub async fn entrance(request: HttpRequest) -> HttpResponse {
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut answer = if names(accept, "text/html") {
        // Seen from here, so that it is right behind a proxy that has put a path before ours, too.
        HttpResponse::Found().insert_header((header::LOCATION, "welcome")).finish()
    } else {
        ApiError::new(ErrorCode::NotFound, "Cannot GET /").error_response()
    };
    answer.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_leads_to_what_there_is_and_calls_where_it_was_reached() {
        let (with, without) = (written("https://weir.test", true), written("https://weir.test", false));
        assert!(with.contains(TO_CONSOLE) && with.contains("<a href=\"docs\">"));
        assert!(!without.contains("console") && without.contains("<a href=\"docs\">"));
        assert!(with.contains("https://weir.test/v2/scrape") && !with.contains(EXAMPLE));
    }
}
