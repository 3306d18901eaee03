//! The files of Weir's own pages: the API's document and the live view.

use actix_web::HttpResponse;
use actix_web::http::header;

/// `body` of the content type `kind`, asked for anew at each visit. Nothing is taken from elsewhere but what `policy`, a
/// content security policy, allows.
pub(crate) fn asset(kind: &'static str, policy: &'static str, body: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .content_type(kind)
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::CONTENT_SECURITY_POLICY, policy))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(body)
}
