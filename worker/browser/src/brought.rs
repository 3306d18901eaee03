//! The cookies that a caller's request puts into a browser's store. They are the request's: a profile that is saved
//! after the page has what was there before it, and what the site has set.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::RenderRequest;
use super::cdp::{Cdp, CdpError};
use super::intercept::OwnHeaders;

/// What a request has brought along, and what it stands in the place of.
#[derive(Debug, Default)]
pub struct Brought {
    host: String,
    pairs: Vec<(String, String)>,
    /// Cookies of the same names, as the browser exports them.
    before: Vec<Value>,
}

impl Brought {
    /// To be asked before the page is loaded.
    pub(super) async fn note(cdp: &Cdp, request: &RenderRequest, by: Instant) -> Result<Self, CdpError> {
        let pairs = OwnHeaders::split(request).into_cookie_pairs();
        if pairs.is_empty() {
            return Ok(Self::default());
        }
        let host = request.url.host_str().unwrap_or_default().to_owned();
        let mut brought = Self { host, pairs, before: Vec::new() };
        let mut before: Value = cdp.send_as("Storage.getCookies", None, json!({})).by(by).await?;
        if let Value::Array(mut all) = before["cookies"].take() {
            all.retain(|cookie| brought.is_named(cookie) && cookie["path"] == "/");
            brought.before = all;
        }
        Ok(brought)
    }

    /// Takes the request's cookies out of a store that is to be saved, as far as the site has not changed them, and puts
    /// back what they replaced.
    pub fn leave_out(&self, cookies: &mut Vec<Value>) {
        let mut taken = Vec::new();
        cookies.retain(|cookie| {
            let is_brought = self.is_named(cookie)
                && cookie["session"] == true
                && self.pairs.iter().any(|(name, value)| cookie["name"] == **name && cookie["value"] == **value);
            if is_brought {
                taken.push(cookie["name"].clone());
            }
            !is_brought
        });
        cookies.extend(self.before.iter().filter(|cookie| taken.contains(&cookie["name"])).cloned());
    }

    fn is_named(&self, cookie: &Value) -> bool {
        cookie["domain"] == *self.host && self.pairs.iter().any(|(name, _)| cookie["name"] == **name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_site_has_made_of_a_requests_cookies_is_its_own() {
        let cookie = |name: &str, value: &str, domain: &str, session: bool| json!({"name": name, "value": value, "domain": domain, "session": session, "path": "/"});
        let pair = |name: &str| (name.to_owned(), "brought".to_owned());
        let brought = Brought {
            host: "x.test".to_owned(),
            pairs: ["sid", "changed", "kept", "new"].map(pair).into(),
            before: vec![cookie("sid", "mine", "x.test", false), cookie("changed", "old", "x.test", true)],
        };
        let others = [
            cookie("changed", "by the site", "x.test", true),
            cookie("kept", "brought", "x.test", false),
            cookie("sid", "brought", "y.test", true),
            cookie("theirs", "brought", "x.test", true),
        ];
        let mut store = others.to_vec();
        store.extend([cookie("sid", "brought", "x.test", true), cookie("new", "brought", "x.test", true)]);
        brought.leave_out(&mut store);
        assert_eq!(store[..4], others);
        assert_eq!(store[4..], [cookie("sid", "mine", "x.test", false)]);
    }
}
