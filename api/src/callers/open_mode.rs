//! What `WEIR_AUTH=open` lets in: the operator's programs and Weir's own pages, not every page that the operator's
//! browser shows.
//!
//! Without a key the only thing that tells a foreign page from a program is what browsers add to a page's requests and
//! no page can change: `Origin`, `Host` (the name that the page came by, which a name of the page's own may turn to this
//! machine: DNS rebinding) and `Sec-Fetch-*`. Where keys are required the key tells, and nothing here applies.

use std::net::IpAddr;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderName};
use actix_web::middleware::Next;
use actix_web::{Error, ResponseError as _, web};
use url::{Host, Url};
use weir_shared::config::ApiSettings;
use weir_shared::error_code::ErrorCode;

use crate::app::App;
use crate::error::ApiError;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// What supervisors ask, by whatever name they know this machine. It tells nothing of a team.
const FOR_SUPERVISORS: &[&str] = &["/healthz", "/readyz", "/metrics"];

/// Where programs send forms.
const TAKES_FORMS: &str = "/v2/parse";

/// The middleware of every route.
///
/// # Errors
/// What the handler failed with, unchanged.
pub async fn keep_pages_out(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let settings = request.app_data::<web::Data<App>>().map(|app| &app.settings.api);
    let verdict = match settings {
        Some(api) if !api.auth_required && !FOR_SUPERVISORS.contains(&request.path()) => judge(api, &request),
        _ => Ok(()),
    };
    match verdict {
        Ok(()) => Ok(next.call(request).await?.map_into_boxed_body()),
        Err(why) => Ok(request.into_response(ApiError::new(ErrorCode::Forbidden, why).error_response())),
    }
}

fn judge(api: &ApiSettings, request: &ServiceRequest) -> Result<(), String> {
    let headers = request.headers();
    let mut hosts = texts(headers, &header::HOST).chain(request.uri().authority().map(|a| Some(a.as_str())));
    if !hosts.all(|host| host.is_some_and(|host| is_ours(api, host))) {
        return Err("WEIR_AUTH=open answers by the addresses of this machine and by WEIR_PUBLIC_URL only: \
            set it to the name that this request came by"
            .to_owned());
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if !texts(headers, &header::ORIGIN).all(|origin| origin.is_some_and(|origin| is_same(api, host, origin))) {
        return Err("WEIR_AUTH=open takes no requests of pages from elsewhere (Origin)".to_owned());
    }
    let is_navigation = *request.method() == Method::GET && says(headers, &SEC_FETCH_MODE, &["navigate"]);
    if headers.contains_key(&SEC_FETCH_SITE)
        && !is_navigation
        && !says(headers, &SEC_FETCH_SITE, &["same-origin", "none"])
    {
        return Err("WEIR_AUTH=open takes no requests of pages from elsewhere (Sec-Fetch-Site)".to_owned());
    }
    // No page sends a PUT anywhere without asking first.
    if *request.method() == Method::PUT { Ok(()) } else { judge_body(request.path(), headers) }
}

/// A page may send plain text and forms anywhere without asking first. Bodies of this API are JSON, but for the form with a
/// file that programs send.
fn judge_body(path: &str, headers: &HeaderMap) -> Result<(), String> {
    let length = headers.get(header::CONTENT_LENGTH);
    let has_body =
        length.is_some_and(|length| length.as_bytes() != b"0") || headers.contains_key(header::TRANSFER_ENCODING);
    let is_told = headers.contains_key(header::CONTENT_TYPE);
    let is_pages = headers.contains_key(header::ORIGIN) || headers.contains_key(&SEC_FETCH_SITE);
    let is_of = |kind: &str| {
        let is_one = |value: Option<&str>| {
            let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default();
            essence.trim().eq_ignore_ascii_case(kind)
        };
        is_told && texts(headers, &header::CONTENT_TYPE).all(is_one)
    };
    let is_file = path == TAKES_FORMS && !is_pages && is_of("multipart/form-data");
    if has_body && (is_told || is_pages) && !is_of("application/json") && !is_file {
        return Err("WEIR_AUTH=open takes bodies with Content-Type: application/json only".to_owned());
    }
    Ok(())
}

/// Whether a request comes from a page of ours, or from a program: what the console asks of every request that changes
/// something, in any mode.
pub fn is_from_own_page(api: &ApiSettings, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_origin_own = texts(headers, &header::ORIGIN).all(|origin| origin.is_some_and(|o| is_same(api, host, o)));
    is_origin_own
        && (!headers.contains_key(&SEC_FETCH_SITE) || says(headers, &SEC_FETCH_SITE, &["same-origin", "none"]))
}

/// Every value of a header; `None` for one that is not text.
fn texts<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = Option<&'a str>> {
    headers.get_all(name).map(|value| value.to_str().ok())
}

fn says(headers: &HeaderMap, name: &HeaderName, words: &[&str]) -> bool {
    headers.contains_key(name) && texts(headers, name).all(|value| value.is_some_and(|value| words.contains(&value)))
}

/// Whether a `Host` names this machine beyond doubt, or is the public URL's. The port does not matter: what stands
/// between may have another.
fn is_ours(api: &ApiSettings, host: &str) -> bool {
    let Some(url) = Url::parse(&format!("http://{host}/")).ok().filter(|url| url.path() == "/" && has_host_only(url))
    else {
        return false;
    };
    let is_address = |ip: IpAddr| ip.to_canonical().is_loopback() || !api.bind.ip().is_loopback();
    match url.host() {
        Some(Host::Ipv4(ip)) if is_address(ip.into()) => true,
        Some(Host::Ipv6(ip)) if is_address(ip.into()) => true,
        Some(Host::Domain(name)) if is_localhost(name) => true,
        Some(host) => api.public_url.as_ref().is_some_and(|public| public.host() == Some(host)),
        None => false,
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

fn has_host_only(url: &Url) -> bool {
    url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none()
}

/// Whether a page of this origin is one of ours: it came by the very `Host` that it asks, or by the public URL.
fn is_same(api: &ApiSettings, host: Option<&str>, origin: &str) -> bool {
    let Some(origin) = Url::parse(origin).ok().filter(|url| matches!(url.scheme(), "http" | "https")) else {
        return false;
    };
    let own = host.and_then(|host| Url::parse(&format!("{}://{host}/", origin.scheme())).ok());
    let mut ours = own.iter().chain(&api.public_url);
    ours.any(|url| url.origin() == origin.origin())
}
