//! A client of the service with one key, and what it was answered.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::contract;

/// Speaks to one service with one API key, or with none.
#[derive(Clone)]
pub struct Caller {
    http: reqwest::Client,
    pub base: String,
    pub key: Option<String>,
}

/// Status, headers and body of one answer. `body` is null when the text is not JSON.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
    pub text: String,
}

impl Answer {
    /// The body's `error`, or "" when there is none.
    pub fn error(&self) -> &str {
        self.body["error"].as_str().unwrap_or_default()
    }

    /// The body's `code`, or "" when there is none.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// The body of a successful answer; panics with the whole answer otherwise.
    pub fn ok(self) -> Value {
        assert!(self.status == 200, "status {}: {}", self.status, self.text);
        self.body
    }

    /// The body's string `id`.
    pub fn id(self) -> String {
        let body = self.ok();
        body["id"].as_str().unwrap_or_else(|| panic!("no id in {body}")).to_owned()
    }

    /// True when the answer is an error in the base shape: `success:false` and a text (wire 2.1).
    pub fn is_base_error(&self) -> bool {
        self.body["success"] == false && self.body["error"].is_string()
    }
}

impl Caller {
    pub fn new(base: &str, key: Option<&str>) -> Self {
        // reqwest is built without a TLS provider of its own; installing it twice is harmless.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(120))
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            // Nothing it speaks to has a certificate, and to read those of the machine takes longer than most calls.
            .tls_certs_only([])
            .build()
            .unwrap();
        Self { http, base: base.to_owned(), key: key.map(str::to_owned) }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(reqwest::Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(reqwest::Method::POST, path).json(body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(reqwest::Method::DELETE, path)).await
    }

    /// A request with the caller's key that a test completes itself; `path` may be absolute.
    pub fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        let url = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.base) };
        let request = self.http.request(method, url);
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// Sends a request; panics when no answer comes.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        self.try_send(request).await.unwrap_or_else(|error| panic!("no answer: {error:?}"))
    }

    /// Sends a request whose connection may break, because the service is being killed. Panics when the answer is not as
    /// the API's document says.
    pub async fn try_send(&self, request: reqwest::RequestBuilder) -> reqwest::Result<Answer> {
        let request = request.build()?;
        let (method, url) = (request.method().clone(), request.url().clone());
        let answer = self.http.execute(request).await?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let text = answer.text().await?;
        let is_service = url.as_str().starts_with(&self.base);
        let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if let Some(fault) = contract::fault(method.as_str(), url.path(), status, kind, &text).filter(|_| is_service) {
            panic!("not as documented: {fault}");
        }
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Answer { status, headers, body, text })
    }
}
