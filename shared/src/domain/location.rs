//! Where a request wants to appear from: a country and languages (wire 3.2).

mod countries;

use serde::{Deserialize, Serialize};

use super::validation::Fields;

/// Most languages of a location, and the longest one.
const MAX_LANGUAGES: i64 = 20;
const MAX_LANGUAGE_LENGTH: usize = 64;

/// Where to appear from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// ISO 3166 alpha-2, upper case.
    pub country: String,
    /// Language tags, most wanted first.
    pub languages: Vec<String>,
}

/// The codes that a location may name: ISO 3166-1 alpha-2, officially assigned, in alphabetical order.
pub fn countries() -> impl Iterator<Item = &'static str> {
    countries::COUNTRIES.split_ascii_whitespace()
}

/// Reads `location`; `None` when it is absent.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Location> {
    read_named(fields, "location")
}

/// The same under another name.
pub(super) fn read_named(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<Location> {
    let mut location = fields.object(name)?.nulls_are_absent();
    let mut country = "US".to_owned();
    if let Some(text) = location.string("country") {
        // The newest clients name pools of US addresses.
        let upper = text.to_ascii_uppercase();
        match upper.as_str() {
            "US-GENERIC" | "US-WHITELIST" => {}
            code if countries::is_country(code) => country = upper,
            _ => {
                let path = location.path_of("country");
                location.issues.rule(path, "Invalid country code. Please use a valid ISO 3166-1 alpha-2 country code.");
            }
        }
    }
    let languages = location.strings("languages", MAX_LANGUAGES).unwrap_or_default();
    for (i, language) in languages.iter().enumerate() {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_*,;=. ".contains(&b);
        if language.trim().is_empty() || language.len() > MAX_LANGUAGE_LENGTH || !language.bytes().all(fits) {
            let mut path = location.path_of("languages");
            path.push(i.into());
            location.issues.rule(path, "Invalid language. Please use a language tag such as en-US.");
        }
    }
    location.finish();
    Some(Location { country, languages })
}
