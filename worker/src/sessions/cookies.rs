//! Cookies as a browser exports them, for the next one.

use serde_json::Value;

/// A cookie as exported, with the fields that may be set.
pub(super) fn settable(mut cookie: Value) -> Value {
    const FIELDS: &[&str] = &[
        "name",
        "value",
        "domain",
        "path",
        "secure",
        "httpOnly",
        "sameSite",
        "expires",
        "priority",
        "sourceScheme",
        "sourcePort",
        "partitionKey",
    ];
    if let Some(fields) = cookie.as_object_mut() {
        fields.retain(|name, _| FIELDS.contains(&name.as_str()));
        // A session cookie is exported with -1, which set would read as long past.
        if fields.get("expires").and_then(Value::as_f64).is_none_or(|at| at < 0.0) {
            fields.remove("expires");
        }
    }
    cookie
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_cookie_is_set_without_an_end() {
        let cookie = settable(json!({"name": "sid", "value": "1", "expires": -1, "size": 4, "session": true}));
        assert_eq!(cookie, json!({"name": "sid", "value": "1"}));
        let kept = settable(json!({"name": "a", "value": "1", "expires": 2_000_000_000.5}));
        assert_eq!(kept["expires"], json!(2_000_000_000.5));
    }
}
