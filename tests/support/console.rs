//! Somebody who is signed in to the console: a cookie and a CSRF token, and no key.

use reqwest::Method;
use serde_json::{Value, json};

use crate::caller::{Answer, Caller};

/// One signed-in browser.
pub struct ConsoleUser {
    caller: Caller,
    /// `name=value`, as a browser sends it back.
    pub cookie: String,
    /// `Set-Cookie` as it came.
    pub set_cookie: String,
    pub csrf: String,
    /// What the sign-in answered.
    pub me: Value,
}

impl ConsoleUser {
    /// Signs in with a key.
    pub async fn with_key(base: &str, key: &str) -> Self {
        Self::with(base, &json!({ "key": key })).await
    }

    /// Signs in; panics when that is refused.
    pub async fn with(base: &str, body: &Value) -> Self {
        let caller = Caller::new(base, None);
        let answer = caller.post("/console/api/sign-in", body).await;
        let set_cookie = answer.headers.get("set-cookie").map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default();
        let me = answer.ok();
        let cookie = set_cookie.split(';').next().unwrap().to_owned();
        Self { caller, cookie, set_cookie, csrf: me["csrf"].as_str().unwrap().to_owned(), me }
    }

    /// A request with the cookie, and with the token where it changes something. The path is below `/console/api`.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request =
            self.caller.request(method.clone(), &format!("/console/api{path}")).header("cookie", &self.cookie);
        if method == Method::GET { request } else { request.header("x-weir-csrf", &self.csrf) }
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        self.caller.send(request).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::PATCH, path).json(body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }
}
