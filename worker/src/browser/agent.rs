//! How the browser names itself: as the ordinary Chromium it is, without the word for having no window.

use serde_json::{Value, json};

/// Names made from the version of the running browser.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    major: String,
    full: String,
}

impl Agent {
    /// From `Browser.getVersion`'s product, such as `HeadlessChrome/156.0.7444.59`.
    pub fn from_product(product: &str) -> Self {
        let full = product.split('/').nth(1).unwrap_or("140.0.0.0").to_owned();
        let major = full.split('.').next().unwrap_or("140").to_owned();
        Self { major, full }
    }

    /// Parameters of `Emulation.setUserAgentOverride`. A caller's own name is taken as it is, without hints.
    pub fn user_agent(&self, is_mobile: bool, own: Option<&str>, accept_language: &str) -> Value {
        if let Some(own) = own {
            return json!({ "userAgent": own, "acceptLanguage": accept_language });
        }
        let Self { major, full } = self;
        let (system, mobile, platform) = if is_mobile {
            ("Linux; Android 10; K", "Mobile ", "Linux armv81")
        } else {
            ("X11; Linux x86_64", "", "Linux x86_64")
        };
        json!({
            "userAgent": format!("Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.0.0 {mobile}Safari/537.36"),
            "acceptLanguage": accept_language,
            "platform": platform,
            "userAgentMetadata": {
                "brands": [
                    { "brand": "Chromium", "version": major },
                    { "brand": "Not.A/Brand", "version": "24" },
                ],
                "fullVersionList": [
                    { "brand": "Chromium", "version": full },
                    { "brand": "Not.A/Brand", "version": "24.0.0.0" },
                ],
                "fullVersion": full,
                "platform": if is_mobile { "Android" } else { "Linux" },
                "platformVersion": if is_mobile { "10" } else { "" },
                "architecture": if is_mobile { "" } else { "x86" },
                "model": if is_mobile { "K" } else { "" },
                "mobile": is_mobile,
                "bitness": if is_mobile { "" } else { "64" },
                "wow64": false,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_has_the_version_and_no_word_of_headless() {
        let agent = Agent::from_product("HeadlessChrome/156.0.7444.59");
        let params = agent.user_agent(false, None, "en-US,en");
        assert!(params["userAgent"].as_str().is_some_and(|ua| ua.contains("Chrome/156.0.0.0 Safari")));
        assert!(!params.to_string().contains("Headless"));
        assert!(
            agent.user_agent(true, None, "en")["userAgent"]
                .as_str()
                .is_some_and(|ua| ua.contains("Android") && ua.contains("Mobile"))
        );
        assert_eq!(agent.user_agent(false, Some("Mine"), "de")["userAgent"], "Mine");
    }
}
