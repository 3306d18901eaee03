//! The Weir whose routes the tools call: this process itself, or another one.

use std::time::Duration;

use actix_web::web::Bytes;
use actix_web::{HttpMessage, HttpRequest};
use anyhow::Context;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use url::Url;
use weir_shared::config::McpSettings;
use weir_shared::operator_http::{self, ReadError};
use weir_shared::random;

use crate::http::access_log::RequestId;
use crate::http::json::{self, Fault};
use crate::http::{connections, extract};

/// Bound on one call: the longest `timeout` of any route, with what its answer may take beyond that.
const BOUND: Duration = Duration::from_secs(330);
/// Largest answer that is read, bytes: a page of results is about 10 MB, and its last document may be larger.
const MAX_ANSWER: usize = 32 << 20;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// What of a request to `/mcp` goes on to the route: who calls, and by which address answers name this service.
const PASSED_ON: [HeaderName; 3] = [AUTHORIZATION, HOST, HeaderName::from_static("x-forwarded-proto")];

/// Names and values of a query.
pub type Query = Vec<(String, String)>;

/// A Weir, and who calls it.
#[derive(Clone)]
pub struct Weir {
    base: Url,
    headers: HeaderMap,
    /// The address without what is secret in it, where its user has named it: what is wrong with it and with the key is told
    /// to them with the settings' names.
    named: Option<Url>,
}

/// A file to be sent.
pub struct File {
    pub name: String,
    /// Its media type, which fits into a header.
    pub content_type: String,
    pub bytes: Bytes,
}

/// A route's answer.
pub struct Answer {
    pub status: u16,
    pub body: Value,
    /// What the user can do about it, in a sentence.
    pub hint: Option<String>,
}

impl Answer {
    /// Whether it did what it was asked. A page whose host is unknown is answered with status 200 (wire 2.3).
    pub fn is_good(&self) -> bool {
        self.status == 200 && self.body.get("success") != Some(&Value::Bool(false))
    }
}

impl Weir {
    /// The process that got this request, called by the same caller.
    ///
    /// # Errors
    /// When the process has no address.
    pub fn within(request: &HttpRequest) -> anyhow::Result<Self> {
        let address = connections::server(request).context("this process has no address")?;
        let address = connections::reached_here(address);
        let mut headers = HeaderMap::new();
        for name in PASSED_ON {
            if let Some(value) = request.headers().get(name.as_str()) {
                headers.insert(name, HeaderValue::from_bytes(value.as_bytes())?);
            }
        }
        if let Some(RequestId(id)) = request.extensions().get() {
            headers.insert(REQUEST_ID, HeaderValue::from_bytes(id.as_bytes())?);
        }
        // An idle connection to ourselves would hold up a stop.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        Ok(Self { base: Url::parse(&format!("http://{address}/"))?, headers, named: None })
    }

    /// The Weir that the settings name.
    ///
    /// # Errors
    /// When the key does not fit into a header.
    pub fn at(settings: &McpSettings) -> anyhow::Result<Self> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &settings.key {
            let mut value =
                HeaderValue::try_from(format!("Bearer {key}")).context("WEIR_KEY does not fit into a header")?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut named = settings.url.clone();
        // It is told to models, and whoever reads what they say.
        let _ = named.set_username("").and_then(|()| named.set_password(None));
        Ok(Self { base: settings.url.clone(), headers, named: Some(named) })
    }

    /// The address that its user has named, without what is secret in it.
    pub fn named(&self) -> Option<&Url> {
        self.named.as_ref()
    }

    /// Calls a route. The ids stand for the parameters of its path, in their order. Of a large body only the text is left
    /// while the answer is waited for.
    ///
    /// # Errors
    /// With words for the caller when there is no answer, or none of Weir's.
    pub async fn call(
        &self,
        method: &Method,
        path: &str,
        ids: &[&str],
        query: &[(String, String)],
        body: Option<Value>,
    ) -> Result<Answer, String> {
        let mut request = operator_http::client().request(method.clone(), self.url(path, ids, query));
        if let Some(body) = body {
            let text = body.to_string();
            drop(body);
            extract::given_back(text.len());
            request = request.header(CONTENT_TYPE, "application/json").body(text);
        }
        self.answer(request).await
    }

    /// Sends a route a form with a file and options.
    ///
    /// # Errors
    /// As [`Weir::call`].
    pub async fn send_file(&self, path: &str, file: File, options: &Value) -> Result<Answer, String> {
        let boundary = random::id().simple().to_string();
        let quoted = file.name.replace('"', "%22").replace(['\r', '\n'], " ");
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{quoted}\"\r\n\
             Content-Type: {}\r\n\r\n",
            file.content_type
        );
        let tail = format!(
            "\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"options\"\r\n\r\n{options}\r\n--{boundary}--\r\n"
        );
        let parts = [Bytes::from(head), file.bytes, Bytes::from(tail)].map(Ok::<_, std::convert::Infallible>);
        let request = operator_http::client().post(self.url(path, &[], &[]));
        let request = request.header(CONTENT_TYPE, format!("multipart/form-data; boundary={boundary}"));
        self.answer(request.body(reqwest::Body::wrap_stream(futures_util::stream::iter(parts)))).await
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> Result<Answer, String> {
        let request = request.headers(self.headers.clone()).timeout(BOUND);
        let response = request.send().await.map_err(|error| {
            let late = format!("Weir did not answer within {} s.", BOUND.as_secs());
            match &self.named {
                _ if error.is_timeout() => late,
                Some(url) => format!("Weir cannot be reached at {url} (WEIR_URL)."),
                None => format!("Weir cannot be reached at {}.", self.base),
            }
        })?;
        let status = response.status().as_u16();
        let bytes = operator_http::read(response, MAX_ANSWER).await.map_err(|error| match error {
            ReadError::TooLong => {
                format!("The answer is over {} MB. Ask for less, or read it over HTTP.", MAX_ANSWER >> 20)
            }
            ReadError::Cut => "The connection to Weir ended before its answer did.".to_owned(),
        })?;
        // Pages decide what is in an answer: it is counted as bodies of callers are before it becomes values.
        let body = match (json::decode(&bytes), &self.named) {
            (Ok(body), Some(url)) if status != 200 && !body["error"].is_string() => Err(foreign(url, status)),
            (Ok(body), _) => Ok(body),
            (Err(Fault::Malformed(_)), Some(url)) => Err(foreign(url, status)),
            (Err(_), _) => Err(format!("Weir's answer cannot be read here (status {status}); read it over HTTP.")),
        };
        let hint = self.named.as_ref().filter(|_| status == 401);
        let hint = hint.map(|url| format!("Set WEIR_KEY to a key of the Weir at {url}."));
        Ok(Answer { status, body: body?, hint })
    }

    fn url(&self, path: &str, ids: &[&str], query: &[(String, String)]) -> Url {
        let mut url = self.base.clone();
        let mut ids = ids.iter().copied();
        if let Ok(mut segments) = url.path_segments_mut() {
            // Each is encoded: an id cannot lead to another path.
            segments.pop_if_empty().extend(
                path.split('/')
                    .filter(|segment| !segment.is_empty())
                    .map(|segment| if segment.starts_with('{') { ids.next().unwrap_or_default() } else { segment }),
            );
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }
}

/// What is said of an answer that is none of Weir's.
fn foreign(url: &Url, status: u16) -> String {
    format!("What answers at {url} is no Weir (status {status}): set WEIR_URL to the address of one.")
}
