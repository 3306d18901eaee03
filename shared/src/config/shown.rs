//! Settings as operators see them: with their values, where those come from, and without what is secret.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::table::{Fallback, SETTINGS, Secrecy, Setting};

/// What stands in the place of a secret.
const MASK: &str = "***";

/// Parts of a database's address that are no secrets.
const OPEN_PARAMETERS: &[&str] = &["sslmode", "host", "port", "dbname", "user", "application_name"];

/// Variables of ours that other programs read: the tests, the benches, Docker Compose, and scripts.
const OTHERS_PREFIXES: [&str; 2] = ["WEIR_TEST_", "WEIR_BENCH_"];
const OTHERS: &[&str] = &[
    "WEIR_ADVISORIES",
    "WEIR_BIN",
    "WEIR_DEBIAN_MIRROR",
    "WEIR_MEMORY",
    "WEIR_SDK_CHILD",
    "WEIR_SECCOMP",
    "WEIR_SIGN_KEY",
    "WEIR_VERSION",
];

/// Letters that are to be changed, added, left out or swapped, at most, to make a setting's name of another one.
const SLIPS: usize = 2;

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

/// A name that looks like a setting and is none: most likely misspelt. Its value is nobody's business: it may be a secret.
#[derive(Debug, PartialEq, Eq)]
pub struct Unknown {
    name: String,
    /// The setting that is meant, where there is one that is nearer than all others.
    meant: Option<&'static str>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.meant {
            Some(meant) => write!(f, "{} (did you mean {meant}?)", self.name),
            None => f.write_str(&self.name),
        }
    }
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
        if let Some(text) = file().context(".env")? {
            load(&text)?;
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

    /// Names that look like settings and are none.
    pub fn unknown() -> Vec<Unknown> {
        unknown_of(names().collect())
    }

    /// Tells of them in the log of a process that starts: one of them may have been meant to protect it.
    pub fn warn_of_unknown() {
        let unknown: Vec<String> = Self::unknown().iter().map(Unknown::to_string).collect();
        if !unknown.is_empty() {
            tracing::warn!(
                "in the environment are names that are no settings and are not read: {}",
                unknown.join(", ")
            );
        }
    }
}

fn names() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
}

/// Those of all names of an environment that look like settings and are none.
fn unknown_of(names: BTreeSet<String>) -> Vec<Unknown> {
    // Kubernetes tells each container of the services beside it, and ours is called `weir` there.
    let services: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix("_SERVICE_HOST")).collect();
    let is_of_service = |name: &str| {
        let rests = services.iter().filter_map(|service| name.strip_prefix(service));
        rests.into_iter().any(|rest| rest.starts_with("_SERVICE_") || rest == "_PORT" || rest.starts_with("_PORT_"))
    };
    let is_others = |name: &str| {
        OTHERS.contains(&name) || OTHERS_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || is_of_service(name)
    };
    let looks_so = names.iter().filter(|name| name.starts_with("WEIR_"));
    let unknown = looks_so.filter(|name| super::table::find(name).is_none() && !is_others(name));
    unknown.map(|name| Unknown { name: name.clone(), meant: nearest(name) }).collect()
}

/// The setting whose name is a slip or two away, where no other is as near.
fn nearest(name: &str) -> Option<&'static str> {
    let near = SETTINGS.iter().filter(|setting| setting.name.len().abs_diff(name.len()) <= SLIPS);
    let slips = near.map(|setting| (strsim::damerau_levenshtein(name, setting.name), setting.name));
    let mut found: Vec<(usize, &'static str)> = slips.filter(|(slips, _)| *slips <= SLIPS).collect();
    found.sort_unstable();
    match found[..] {
        [(_, only)] => Some(only),
        [(least, first), (next, _), ..] if least < next => Some(first),
        _ => None,
    }
}

/// What stands in `.env`, of this folder or of the next one above it that has one.
fn file() -> io::Result<Option<Vec<u8>>> {
    let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let here = match std::env::current_dir() {
        Err(error) if is_absent(&error) => return Ok(None),
        here => here?,
    };
    for path in here.ancestors().map(|folder| folder.join(".env")) {
        match std::fs::metadata(&path) {
            Ok(found) if found.is_file() => return std::fs::read(path).map(Some),
            Err(error) if !is_absent(&error) => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(None)
}

/// Gives the environment what a file says and it does not have yet.
///
/// # Errors
/// With the number of the line that cannot be read, and not with what stands in it, which may be a secret.
fn load(text: &[u8]) -> Result<()> {
    let mut lines = Lines { text, at: 0 };
    let Err(error) = dotenvy::from_read(&mut lines) else { return Ok(()) };
    let read = text[..lines.at].split_inclusive(|byte| *byte == b'\n').count();
    match error {
        dotenvy::Error::LineParse(entry, at) => {
            // A value in quotation marks goes over several lines: its first one is where to look.
            let first = (read + 1).saturating_sub(entry.lines().count().max(1));
            bail!(".env: line {first} cannot be read, at its character {}", at + 1)
        }
        error => bail!(".env: line {read}: {error}"),
    }
}

/// A text that is read a line at a time, so that it is known how far its reader has come.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
}

impl Read for Lines<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = &self.text[self.at..];
        let line = rest.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        let part = &line[..line.len().min(into.len())];
        into[..part.len()].copy_from_slice(part);
        self.at += part.len();
        Ok(part.len())
    }
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
    fn names_that_are_no_settings_are_told_with_the_one_that_is_meant() {
        let told = |names: &[&str]| {
            let unknown = unknown_of(names.iter().map(|name| (*name).to_owned()).collect());
            unknown.iter().map(Unknown::to_string).collect::<Vec<_>>().join(", ")
        };
        for (name, meant) in [
            ("WEIR_LOGG", "WEIR_LOG"),
            ("WEIR_ALLOW_NET", "WEIR_ALLOW_NETS"),
            ("WEIR_ALLOW_PORT", "WEIR_ALLOW_PORTS"),
            ("WEIR_WEBHOOK_SECERT", "WEIR_WEBHOOK_SECRET"),
            ("WEIR_RATE_LIMIT", "WEIR_RATE_LIMITS"),
        ] {
            assert_eq!(told(&[name]), format!("{name} (did you mean {meant}?)"));
        }
        assert_eq!(told(&["WEIR_PROXY", "WEIR_COLOURS_OF_LOG", "PATH", "weir_log"]), "WEIR_COLOURS_OF_LOG, WEIR_PROXY");
        // Settings, and what is read by others.
        let others = ["WEIR_KEY", "WEIR_URL", "WEIR_CACHE", "WEIR_TEST_LONG", "WEIR_BENCH_BIN", "WEIR_VERSION"];
        assert_eq!(told(&others), "");
        let links = ["WEIR_SERVICE_HOST", "WEIR_SERVICE_PORT_HTTP", "WEIR_PORT", "WEIR_PORT_3002_TCP_ADDR"];
        assert_eq!(told(&links), "");
        assert_eq!(told(&links[2..]), "WEIR_PORT, WEIR_PORT_3002_TCP_ADDR", "no service has this name");
    }

    #[test]
    fn a_line_of_the_file_that_cannot_be_read_is_named_by_its_number() {
        for (text, line) in [
            ("WEIR KEY=secret-word", 1),
            ("# of ours\n\n  # more\nWEIR KEY=secret-word\n# end\n", 4),
            ("\r\n# of ours\r\nsecret-word\r\n", 3),
            // Where the quotation begins that nothing closes.
            ("\n\nWEIR_TEST_OF_A_FILE='secret-word\nand more\nto the end\n", 3),
            ("\u{feff}\nWEIR_TEST_OF_A_FILE=\"secret-word", 2),
        ] {
            let error = load(text.as_bytes()).unwrap_err().to_string();
            let is_told = error.starts_with(&format!(".env: line {line} cannot be read, at its character "));
            assert!(is_told && !error.contains("secret-word"), "{text:?}: {error}");
        }
        let error = load(b"\n\nWEIR_TEST_OF_A_FILE=\xff\n").unwrap_err().to_string();
        assert!(error.starts_with(".env: line 3: "), "{error}");
        load("# nothing but words\n\n".repeat(10_000).as_bytes()).unwrap();
    }

    #[test]
    fn a_secret_is_told_of_and_not_told() {
        let key = crate::config::table::find("WEIR_LLM_KEY").unwrap();
        let shown = show(key, Some("the word".to_owned()), Source::File);
        assert_eq!((shown.value.as_deref(), shown.source), (Some(MASK), Source::File));
        assert_eq!(show(key, None, Source::Default).value, None);
    }
}
