//! How the browser names itself: as the ordinary Chromium it is, without the word for having no window.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

/// How long the program may take to tell its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// Names made from the version of the running browser.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    major: String,
    full: String,
}

impl Agent {
    /// From `Browser.getVersion`'s product, such as `HeadlessChrome/156.0.7444.59`.
    pub fn from_product(product: &str) -> Self {
        Self::from_version(product.split('/').nth(1).unwrap_or("140.0.0.0"))
    }

    /// From what the program says of itself; `None` when it says nothing that has a version.
    pub async fn of_program(program: &Path) -> Option<Self> {
        let mut command = tokio::process::Command::new(program);
        command.arg("--version").env_clear().stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(VERSION_LIMIT, command.output()).await.ok()?.ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version =
            text.split_whitespace().find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()));
        version.map(Self::from_version)
    }

    fn from_version(full: &str) -> Self {
        let full = full.to_owned();
        let major = full.split('.').next().unwrap_or("140").to_owned();
        Self { major, full }
    }

    /// The whole name, as in the header `User-Agent`.
    pub fn name(&self, is_mobile: bool) -> String {
        let (system, mobile) = if is_mobile { ("Linux; Android 10; K", "Mobile ") } else { ("X11; Linux x86_64", "") };
        let major = &self.major;
        format!(
            "Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.0.0 {mobile}Safari/537.36"
        )
    }

    /// Parameters of `Emulation.setUserAgentOverride`. A caller's own name is taken as it is, without hints.
    pub fn user_agent(&self, is_mobile: bool, own: Option<&str>, accept_language: &str) -> Value {
        if let Some(own) = own {
            return json!({ "userAgent": own, "acceptLanguage": accept_language });
        }
        let Self { major, full } = self;
        let platform = if is_mobile { "Linux armv81" } else { "Linux x86_64" };
        json!({
            "userAgent": self.name(is_mobile),
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
