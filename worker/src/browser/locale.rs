//! Where a page believes its reader is: language and time zone of a country.

/// Language, as a BCP 47 tag, and time zone of a country's largest city.
struct Country {
    code: &'static str,
    language: &'static str,
    timezone: &'static str,
}

macro_rules! countries {
    ($($code:literal $language:literal $timezone:literal;)+) => {
        &[$(Country { code: $code, language: $language, timezone: $timezone },)+]
    };
}

const COUNTRIES: &[Country] = countries! {
    "US" "en-US" "America/New_York";       "CA" "en-CA" "America/Toronto";       "MX" "es-MX" "America/Mexico_City";
    "BR" "pt-BR" "America/Sao_Paulo";      "AR" "es-AR" "America/Argentina/Buenos_Aires"; "CL" "es-CL" "America/Santiago";
    "CO" "es-CO" "America/Bogota";         "PE" "es-PE" "America/Lima";          "GB" "en-GB" "Europe/London";
    "IE" "en-IE" "Europe/Dublin";          "DE" "de-DE" "Europe/Berlin";         "AT" "de-AT" "Europe/Vienna";
    "CH" "de-CH" "Europe/Zurich";          "FR" "fr-FR" "Europe/Paris";          "BE" "nl-BE" "Europe/Brussels";
    "NL" "nl-NL" "Europe/Amsterdam";       "LU" "fr-LU" "Europe/Luxembourg";     "ES" "es-ES" "Europe/Madrid";
    "PT" "pt-PT" "Europe/Lisbon";          "IT" "it-IT" "Europe/Rome";           "SE" "sv-SE" "Europe/Stockholm";
    "NO" "nb-NO" "Europe/Oslo";            "DK" "da-DK" "Europe/Copenhagen";     "FI" "fi-FI" "Europe/Helsinki";
    "IS" "is-IS" "Atlantic/Reykjavik";     "PL" "pl-PL" "Europe/Warsaw";         "CZ" "cs-CZ" "Europe/Prague";
    "SK" "sk-SK" "Europe/Bratislava";      "HU" "hu-HU" "Europe/Budapest";       "RO" "ro-RO" "Europe/Bucharest";
    "BG" "bg-BG" "Europe/Sofia";           "GR" "el-GR" "Europe/Athens";         "HR" "hr-HR" "Europe/Zagreb";
    "SI" "sl-SI" "Europe/Ljubljana";       "RS" "sr-RS" "Europe/Belgrade";       "UA" "uk-UA" "Europe/Kyiv";
    "RU" "ru-RU" "Europe/Moscow";          "EE" "et-EE" "Europe/Tallinn";        "LV" "lv-LV" "Europe/Riga";
    "LT" "lt-LT" "Europe/Vilnius";         "TR" "tr-TR" "Europe/Istanbul";       "IL" "he-IL" "Asia/Jerusalem";
    "AE" "ar-AE" "Asia/Dubai";             "SA" "ar-SA" "Asia/Riyadh";           "EG" "ar-EG" "Africa/Cairo";
    "MA" "fr-MA" "Africa/Casablanca";      "NG" "en-NG" "Africa/Lagos";          "KE" "en-KE" "Africa/Nairobi";
    "ZA" "en-ZA" "Africa/Johannesburg";    "IN" "en-IN" "Asia/Kolkata";          "PK" "en-PK" "Asia/Karachi";
    "BD" "bn-BD" "Asia/Dhaka";             "TH" "th-TH" "Asia/Bangkok";          "VN" "vi-VN" "Asia/Ho_Chi_Minh";
    "ID" "id-ID" "Asia/Jakarta";           "MY" "ms-MY" "Asia/Kuala_Lumpur";     "SG" "en-SG" "Asia/Singapore";
    "PH" "en-PH" "Asia/Manila";            "CN" "zh-CN" "Asia/Shanghai";         "HK" "zh-HK" "Asia/Hong_Kong";
    "TW" "zh-TW" "Asia/Taipei";            "JP" "ja-JP" "Asia/Tokyo";            "KR" "ko-KR" "Asia/Seoul";
    "AU" "en-AU" "Australia/Sydney";       "NZ" "en-NZ" "Pacific/Auckland";
};

/// What a location sets in the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Value of `Accept-Language`.
    pub accept_language: String,
    /// First language; also the locale of dates and numbers. Absent for a country that is not in the table
    /// when no language is given.
    pub locale: Option<String>,
    /// Time zone, for countries in the table.
    pub timezone: Option<&'static str>,
}

impl Place {
    /// The place of a country code (any case) and languages, the most wanted first.
    pub fn new(country: &str, languages: &[String]) -> Self {
        let country = COUNTRIES.iter().find(|c| c.code.eq_ignore_ascii_case(country));
        // Language tags come from a request; anything else would break the header.
        let mut wanted: Vec<String> = languages.iter().map(|l| l.trim().to_owned()).filter(|l| is_tag(l)).collect();
        if wanted.is_empty() {
            wanted.extend(country.map(|c| c.language.to_owned()));
        }
        let locale = wanted.first().cloned();
        if wanted.is_empty() {
            wanted.push("en-US".to_owned());
        }
        Self { accept_language: accept_language(&wanted), locale, timezone: country.map(|c| c.timezone) }
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
        assert_eq!(place.timezone, Some("Europe/Berlin"));
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
