//! Settings as operators see them: with their values, where those come from, and without what is secret.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde::Serialize;

use super::table::{Fallback, SETTINGS, Secrecy, Setting};

/// What stands in the place of a secret.
const MASK: &str = "***";

/// Parts of a database's address that are no secrets.
const OPEN_PARAMETERS: &[&str] = &["sslmode", "host", "port", "dbname", "user", "application_name"];

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Source {
    #[serde(rename = "default")]
    Default,
    #[serde(rename = "environment")]
    Environment,
    #[serde(rename = ".env")]
    File,
}

impl Source {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Environment => "environment",
            Self::File => ".env",
        }
    }
}

/// One setting of this process.
#[derive(Debug, Serialize)]
pub struct Shown {
    pub name: &'static str,
    /// Without what is secret. `None`: it is not given, and what counts then is no value; see `default`.
    pub value: Option<String>,
    pub source: Source,
    pub default: String,
    pub meaning: &'static str,
}

/// What the process was given, by `.env` and by its environment.
pub struct Given {
    /// Names that its environment had before `.env` was read.
    environment: BTreeSet<String>,
}

impl Given {
    /// Reads `.env`, if there is one, into the environment, where what is there already stays.
    ///
    /// # Errors
    /// When a file of this name cannot be read: what it says must not be left out in silence.
    pub fn read() -> Result<Self> {
        let environment = names().collect();
        match dotenvy::dotenv() {
            Ok(_) => {}
            Err(error) if error.not_found() => {}
            // Its own words would show the line, in which a secret may stand.
            Err(dotenvy::Error::LineParse(_, at)) => bail!(".env: a line cannot be read, at its character {}", at + 1),
            Err(error) => bail!(".env: {error}"),
        }
        Ok(Self { environment })
    }

    /// Every setting with its value and source.
    pub fn shown(&self) -> Vec<Shown> {
        let of_process = |setting: &'static Setting| {
            let given = super::in_environment(setting.name);
            let source = match given {
                None => Source::Default,
                Some(_) if self.environment.contains(setting.name) => Source::Environment,
                Some(_) => Source::File,
            };
            show(setting, given, source)
        };
        SETTINGS.iter().map(of_process).collect()
    }

    /// Names that look like settings and are none: most likely misspelt.
    pub fn unknown() -> Vec<String> {
        let is_unknown = |name: &String| {
            name.starts_with("WEIR_") && !name.starts_with("WEIR_TEST_") && super::table::find(name).is_none()
        };
        names().filter(is_unknown).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

fn names() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
}

fn show(setting: &'static Setting, given: Option<String>, source: Source) -> Shown {
    let default = match setting.default {
        Fallback::Value(value) => Some(value.to_owned()),
        Fallback::Words(_) => None,
    };
    let value = match setting.secrecy {
        Secrecy::Open => given.or(default),
        Secrecy::Addresses => given.map(|text| mask_addresses(&text)).or(default),
        Secrecy::Secret => given.map(|_| MASK.to_owned()).or(default),
    };
    let default = match setting.default {
        Fallback::Value(value) | Fallback::Words(value) => value.replace('`', ""),
    };
    Shown { name: setting.name, value, source, default, meaning: setting.meaning }
}

/// Addresses without their passwords, and without what else in them may be one.
fn mask_addresses(text: &str) -> String {
    text.split(',').map(mask_address).collect::<Vec<_>>().join(",")
}

fn mask_address(text: &str) -> String {
    // Of a proxy's country: `us=http://…`.
    let (before, address) = match text.split_once('=') {
        Some((country, address)) if country.trim().len() == 2 => (format!("{country}="), address),
        _ => (String::new(), text),
    };
    let Ok(mut url) = url::Url::parse(address.trim()) else {
        // What cannot be taken apart may hold anything; words such as `brave` do not.
        return if text.contains(['@', ':', '?']) { MASK.to_owned() } else { text.to_owned() };
    };
    let is_database = url.scheme().starts_with("postgres");
    if url.password().is_some() {
        let _ = url.set_password(Some(MASK));
    } else if !url.username().is_empty() && !is_database {
        // Services take a key in the place of the user.
        let _ = url.set_username(MASK);
    }
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    if !pairs.is_empty() {
        let masked = pairs.iter().map(|(name, value)| {
            let is_open = OPEN_PARAMETERS.contains(&name.as_str());
            (name, if is_open { value.as_str() } else { MASK })
        });
        url.query_pairs_mut().clear().extend_pairs(masked);
    }
    format!("{before}{url}")
}

/// All settings as the page of documentation has them.
pub fn markdown() -> String {
    let row = |setting: &Setting| {
        let (default, meaning) = (setting.default.to_string(), setting.meaning.replace('|', "\\|"));
        format!("| `{}` | {default} | {meaning} |\n", setting.name)
    };
    let rows: String = SETTINGS.iter().map(row).collect();
    format!("| name | default | meaning |\n|---|---|---|\n{rows}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn passwords_and_keys_are_not_shown() {
        for (given, expected) in [
            ("sqlite://data/weir.db", "sqlite://data/weir.db"),
            ("postgres://weir@db/weir", "postgres://weir@db/weir"),
            ("postgres://weir:word@db/weir?sslmode=require", "postgres://weir:***@db/weir?sslmode=require"),
            ("postgres://db/weir?user=a&password=word", "postgres://db/weir?user=a&password=***"),
            ("us=http://key@proxy:1,socks5://a:word@b:2", "us=http://***@proxy:1/,socks5://a:***@b:2"),
            ("brave, http://127.0.0.1:8888/?token=word", "brave,http://127.0.0.1:8888/?token=***"),
            ("brave", "brave"),
            ("postgres://weir:word@[broken/weir", "***"),
        ] {
            assert_eq!(mask_addresses(given), expected, "{given}");
        }
    }

    #[test]
    fn a_secret_is_told_of_and_not_told() {
        let key = crate::config::table::find("WEIR_LLM_KEY").unwrap();
        let shown = show(key, Some("the word".to_owned()), Source::File);
        assert_eq!((shown.value.as_deref(), shown.source), (Some(MASK), Source::File));
        assert_eq!(show(key, None, Source::Default).value, None);
    }
}
