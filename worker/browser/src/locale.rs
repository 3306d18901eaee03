//! Where a page believes its reader is: language and time zone of a country.

/// Language, as a BCP 47 tag, and time zone and place of a country's largest city or one like it.
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

const COUNTRIES: &[Country] = countries! {
    "US" "en-US" "America/New_York" 40.71 -74.01; "CA" "en-CA" "America/Toronto" 43.65 -79.38;
    "MX" "es-MX" "America/Mexico_City" 19.43 -99.13; "BR" "pt-BR" "America/Sao_Paulo" -23.55 -46.63;
    "AR" "es-AR" "America/Argentina/Buenos_Aires" -34.60 -58.38; "CL" "es-CL" "America/Santiago" -33.45 -70.67;
    "CO" "es-CO" "America/Bogota" 4.71 -74.07; "PE" "es-PE" "America/Lima" -12.05 -77.04;
    "GB" "en-GB" "Europe/London" 51.51 -0.13; "IE" "en-IE" "Europe/Dublin" 53.35 -6.26;
    "DE" "de-DE" "Europe/Berlin" 52.52 13.40; "AT" "de-AT" "Europe/Vienna" 48.21 16.37;
    "CH" "de-CH" "Europe/Zurich" 47.38 8.54; "FR" "fr-FR" "Europe/Paris" 48.86 2.35;
    "BE" "nl-BE" "Europe/Brussels" 50.85 4.35; "NL" "nl-NL" "Europe/Amsterdam" 52.37 4.90;
    "LU" "fr-LU" "Europe/Luxembourg" 49.61 6.13; "ES" "es-ES" "Europe/Madrid" 40.42 -3.70;
    "PT" "pt-PT" "Europe/Lisbon" 38.72 -9.14; "IT" "it-IT" "Europe/Rome" 41.90 12.50;
    "SE" "sv-SE" "Europe/Stockholm" 59.33 18.07; "NO" "nb-NO" "Europe/Oslo" 59.91 10.75;
    "DK" "da-DK" "Europe/Copenhagen" 55.68 12.57; "FI" "fi-FI" "Europe/Helsinki" 60.17 24.94;
    "IS" "is-IS" "Atlantic/Reykjavik" 64.15 -21.94; "PL" "pl-PL" "Europe/Warsaw" 52.23 21.01;
    "CZ" "cs-CZ" "Europe/Prague" 50.08 14.44; "SK" "sk-SK" "Europe/Bratislava" 48.15 17.11;
    "HU" "hu-HU" "Europe/Budapest" 47.50 19.04; "RO" "ro-RO" "Europe/Bucharest" 44.43 26.10;
    "BG" "bg-BG" "Europe/Sofia" 42.70 23.32; "GR" "el-GR" "Europe/Athens" 37.98 23.73;
    "HR" "hr-HR" "Europe/Zagreb" 45.81 15.98; "SI" "sl-SI" "Europe/Ljubljana" 46.06 14.51;
    "RS" "sr-RS" "Europe/Belgrade" 44.79 20.45; "UA" "uk-UA" "Europe/Kyiv" 50.45 30.52;
    "RU" "ru-RU" "Europe/Moscow" 55.76 37.62; "EE" "et-EE" "Europe/Tallinn" 59.44 24.75;
    "LV" "lv-LV" "Europe/Riga" 56.95 24.11; "LT" "lt-LT" "Europe/Vilnius" 54.69 25.28;
    "TR" "tr-TR" "Europe/Istanbul" 41.01 28.98; "IL" "he-IL" "Asia/Jerusalem" 31.77 35.21;
    "AE" "ar-AE" "Asia/Dubai" 25.20 55.27; "SA" "ar-SA" "Asia/Riyadh" 24.71 46.68;
    "EG" "ar-EG" "Africa/Cairo" 30.04 31.24; "MA" "fr-MA" "Africa/Casablanca" 33.57 -7.59;
    "NG" "en-NG" "Africa/Lagos" 6.52 3.38; "KE" "en-KE" "Africa/Nairobi" -1.29 36.82;
    "ZA" "en-ZA" "Africa/Johannesburg" -26.20 28.05; "IN" "en-IN" "Asia/Kolkata" 22.57 88.36;
    "PK" "en-PK" "Asia/Karachi" 24.86 67.00; "BD" "bn-BD" "Asia/Dhaka" 23.81 90.41;
    "TH" "th-TH" "Asia/Bangkok" 13.76 100.50; "VN" "vi-VN" "Asia/Ho_Chi_Minh" 10.82 106.63;
    "ID" "id-ID" "Asia/Jakarta" -6.21 106.85; "MY" "ms-MY" "Asia/Kuala_Lumpur" 3.15 101.69;
    "SG" "en-SG" "Asia/Singapore" 1.35 103.82; "PH" "en-PH" "Asia/Manila" 14.60 120.98;
    "CN" "zh-CN" "Asia/Shanghai" 31.23 121.47; "HK" "zh-HK" "Asia/Hong_Kong" 22.32 114.17;
    "TW" "zh-TW" "Asia/Taipei" 25.03 121.57; "JP" "ja-JP" "Asia/Tokyo" 35.68 139.65;
    "KR" "ko-KR" "Asia/Seoul" 37.57 126.98; "AU" "en-AU" "Australia/Sydney" -33.87 151.21;
    "NZ" "en-NZ" "Pacific/Auckland" -36.85 174.76;
};

/// What a location sets in the browser.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    /// Value of `Accept-Language`.
    pub accept_language: String,
    /// First language; also the locale of dates and numbers. Absent for a country that is not in the table
    /// when no language is given.
    pub locale: Option<String>,
    /// Time zone, for countries in the table.
    pub timezone: Option<&'static str>,
    /// Latitude and longitude in degrees, likewise.
    pub position: Option<(f64, f64)>,
}

/// The languages to ask a site in: those given, or the country's. Empty for a country that is not in the table.
pub fn languages(country: &str, given: &[String]) -> Vec<String> {
    if !given.is_empty() {
        return given.to_vec();
    }
    let country = COUNTRIES.iter().find(|c| c.code.eq_ignore_ascii_case(country));
    let with_general = |tag: &'static str| [tag, tag.split('-').next().unwrap_or(tag)].map(str::to_owned).to_vec();
    country.map(|country| with_general(country.language)).unwrap_or_default()
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
        assert_eq!((place.timezone, place.position), (Some("Europe/Berlin"), Some((52.52, 13.40))));
        assert_eq!(languages("de", &[]), ["de-DE", "de"]);
        assert_eq!(languages("de", &["fr".to_owned()]), ["fr"]);
        assert!(languages("ZZ", &[]).is_empty());
        let all = COUNTRIES.iter().all(|c| c.place.0.abs() <= 90.0 && c.place.1.abs() <= 180.0 && is_tag(c.language));
        assert!(all && COUNTRIES.len() > 60);
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
