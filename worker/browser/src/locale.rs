//! Where a page believes its reader is: language, time zone and place of a country.

use countries::COUNTRIES;

/// Language, as a BCP 47 tag, and time zone and place of a country's capital or of its largest city.
struct Country {
    code: &'static str,
    language: &'static str,
    timezone: &'static str,
    /// Latitude and longitude, degrees.
    place: (f64, f64),
}

macro_rules! countries {
    ($($code:literal $language:literal $timezone:literal $latitude:literal $longitude:literal;)+) => {
        &[$(Country { code: $code, language: $language, timezone: $timezone, place: ($latitude, $longitude) },)+]
    };
}

mod countries;

/// The country of a code, in any case; every code that a request may name has one.
fn country(code: &str) -> Option<&'static Country> {
    let place = COUNTRIES.binary_search_by(|country| country.code.cmp(&code.to_ascii_uppercase())).ok()?;
    COUNTRIES.get(place)
}

/// What a location sets in the browser.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    /// Value of `Accept-Language`.
    pub accept_language: String,
    /// First language; also the locale of dates and numbers. `None`: the code names no country, and no language is given.
    pub locale: Option<String>,
    /// Time zone. `None`: the code names no country, which no request may.
    pub timezone: Option<&'static str>,
    /// Latitude and longitude in degrees, likewise.
    pub position: Option<(f64, f64)>,
}

/// The languages to ask a site in: those given, or the country's. Empty for a code that names no country.
pub fn languages(country: &str, given: &[String]) -> Vec<String> {
    if !given.is_empty() {
        return given.to_vec();
    }
    let with_general = |tag: &'static str| [tag, tag.split('-').next().unwrap_or(tag)].map(str::to_owned).to_vec();
    self::country(country).map(|country| with_general(country.language)).unwrap_or_default()
}

impl Place {
    /// The place of a country code (any case) and languages, the most wanted first.
    pub fn new(country: &str, languages: &[String]) -> Self {
        let country = self::country(country);
        // Language tags come from a request; anything else would break the header.
        let mut wanted: Vec<String> = languages.iter().map(|l| l.trim().to_owned()).filter(|l| is_tag(l)).collect();
        if wanted.is_empty() {
            wanted.extend(country.map(|c| c.language.to_owned()));
        }
        let locale = wanted.first().cloned();
        if wanted.is_empty() {
            wanted.push("en-US".to_owned());
        }
        Self {
            accept_language: accept_language(&wanted),
            locale,
            timezone: country.map(|c| c.timezone),
            position: country.map(|c| c.place),
        }
    }
}

fn is_tag(tag: &str) -> bool {
    (2..=35).contains(&tag.len()) && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Chromium adds the weights itself.
fn accept_language(tags: &[String]) -> String {
    let mut list: Vec<&str> = Vec::new();
    for tag in tags.iter().take(8) {
        for part in [tag.as_str(), tag.split('-').next().unwrap_or(tag)] {
            if !list.contains(&part) {
                list.push(part);
            }
        }
    }
    list.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_alone_gives_its_language_and_time_zone() {
        let place = Place::new("de", &[]);
        assert_eq!(place.accept_language, "de-DE,de");
        assert_eq!(place.locale.as_deref(), Some("de-DE"));
        assert_eq!((place.timezone, place.position), (Some("Europe/Berlin"), Some((52.50, 13.37))));
        assert_eq!(languages("de", &[]), ["de-DE", "de"]);
        assert_eq!(languages("de", &["fr".to_owned()]), ["fr"]);
        assert!(languages("ZZ", &[]).is_empty());
    }

    #[test]
    fn every_country_that_a_request_may_name_has_a_language_a_time_zone_and_a_place() {
        let codes: Vec<&str> = COUNTRIES.iter().map(|country| country.code).collect();
        assert_eq!(codes, weir_shared::domain::location::countries().collect::<Vec<_>>());
        for Country { code, language, timezone, place } in COUNTRIES {
            assert!(is_tag(language) && language.ends_with(&format!("-{code}")), "{code} {language}");
            assert!(timezone.contains('/') && place.0.abs() <= 90.0 && place.1.abs() <= 180.0, "{code} {timezone}");
        }
        assert!(country("us").is_some() && country("").is_none() && country("U").is_none() && country("USA").is_none());
    }

    #[test]
    fn given_languages_win_and_bad_ones_are_left_out() {
        let place = Place::new("CH", &["fr-CH".into(), "x\r\ny".into(), "en".into()]);
        assert_eq!(place.accept_language, "fr-CH,fr,en");
        assert_eq!(place.timezone, Some("Europe/Zurich"));
    }

    #[test]
    fn an_unknown_country_changes_nothing_but_what_was_asked() {
        let place = Place::new("ZZ", &[]);
        assert_eq!((place.locale, place.timezone), (None, None));
    }
}
