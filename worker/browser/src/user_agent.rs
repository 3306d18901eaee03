//! How a page's browser names itself: as the ordinary Chromium it is, without the word for having no window.

use serde_json::{Value, json};
use weir_sandbox::Version;

/// Parameters of `Emulation.setUserAgentOverride`. A caller's own name is taken as it is, without hints.
pub(super) fn override_params(version: &Version, is_mobile: bool, own: Option<&str>, accept_language: &str) -> Value {
    if let Some(own) = own {
        return json!({ "userAgent": own, "acceptLanguage": accept_language });
    }
    let Version { major, full } = version;
    let platform = if is_mobile { "Linux armv81" } else { "Linux x86_64" };
    json!({
        "userAgent": version.user_agent(is_mobile),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_has_the_version_and_no_word_of_headless() {
        let version = Version::from_product("HeadlessChrome/156.0.7444.59");
        let name = |is_mobile, own| override_params(&version, is_mobile, own, "en-US,en");
        assert!(name(false, None)["userAgent"].as_str().is_some_and(|ua| ua.contains("Chrome/156.0.0.0 Safari")));
        assert!(!name(false, None).to_string().contains("Headless"));
        let phone = name(true, None);
        assert!(phone["userAgent"].as_str().is_some_and(|ua| ua.contains("Android") && ua.contains("Mobile")));
        assert_eq!(name(false, Some("Mine"))["userAgent"], "Mine");
    }
}
