//! The body of `POST /v2/search` (wire 20).

use chrono::NaiveDate;
use serde_json::Value;

use super::body::{Nulls, read_body};
use super::fields::label;
use super::options::read_options;
use super::threat;
use super::unavailable::{Unavailable, no_exchange};
use crate::domain::api_version::ApiVersion;
use crate::domain::scrape::ScrapeOptions;
use crate::domain::search::{Age, Category, DEFAULT_LIMIT, MAX_LIMIT, Query, SearchRequest, Source};
use crate::domain::validation::{Fields, ValidationError, refusal};
use crate::error_code::ErrorCode;

/// Longest `query`, characters.
const MAX_QUERY: i64 = 500;
/// Most hosts of a list, and the longest one.
const MAX_DOMAINS: i64 = 100;
const MAX_DOMAIN: usize = 253;
/// Bounds of `timeout`, milliseconds.
pub(super) const TIMEOUT_MS: std::ops::RangeInclusive<i64> = 1..=300_000;
pub(super) const DEFAULT_TIMEOUT_MS: i64 = 60_000;
/// Longest text of the options that narrow a search, characters.
const MAX_TEXT: i64 = 256;
/// Sources that other products have. Clients name them by themselves beside the web.
const FOREIGN_SOURCES: [&str; 2] = ["alexandria", "exchange"];
const SOURCES: &[&str] = &["web", "news", "images", FOREIGN_SOURCES[0], FOREIGN_SOURCES[1]];
const CATEGORIES: &[&str] = &["github", "research", "pdf", "developer", "gov"];

/// Reads the body. A null is as good as nothing: clients send them.
///
/// # Errors
/// Every wrong field; the first option that is not available here.
pub fn parse_search(body: &Value) -> Result<SearchRequest, ValidationError> {
    let mut refused = None;
    let request = read_body(ApiVersion::V2, body, Nulls::Absent, |fields, unavailable| {
        let mut query = Query { words: read_words(fields), ..Query::default() };
        read_narrowing(fields, &mut query);
        let sources = read_sources(fields, &mut query, &mut refused);
        read_categories(fields, &mut query, &mut refused);
        let mut request = SearchRequest {
            limit: fields.integer("limit", 1..=MAX_LIMIT as i64).map_or(DEFAULT_LIMIT, |limit| limit as usize),
            sources,
            ignore_invalid_urls: fields.bool("ignoreInvalidURLs").unwrap_or(false),
            highlights: fields.bool("highlights").unwrap_or(true),
            scrape: read_scrape_options(ApiVersion::V2, fields, unavailable),
            sites: threat::read(fields, unavailable),
            zero_retention: read_enterprise(fields),
            timeout: fields.integer("timeout", TIMEOUT_MS).unwrap_or(DEFAULT_TIMEOUT_MS).unsigned_abs(),
            origin: label(fields, "origin"),
            integration: label(fields, "integration"),
            version: ApiVersion::V2,
            query,
        };
        if let Some(scrape) = &mut request.scrape {
            scrape.sites = std::mem::take(&mut scrape.sites).and(request.sites.clone());
        }
        fields.ignore(&["auditMetadata", "domainTools", "toolDetail"]);
        request
    })?;
    refused.map_or(Ok(request), Err)
}

pub(super) fn read_words(fields: &mut Fields<'_, '_>) -> String {
    if fields.required("query").is_none() {
        return String::new();
    }
    let words = fields.text("query", 1..=MAX_QUERY).unwrap_or_default().trim().to_owned();
    if words.is_empty() && fields.issues.is_empty() {
        fields.issues.rule(fields.path_of("query"), "query must not be blank");
    }
    words
}

/// What may stand in the body and in a source: the source's own goes before.
fn read_narrowing(fields: &mut Fields<'_, '_>, query: &mut Query) {
    query.include_domains = read_domains(fields, "includeDomains");
    query.exclude_domains = read_domains(fields, "excludeDomains");
    if !query.include_domains.is_empty() && !query.exclude_domains.is_empty() {
        let text = "includeDomains and excludeDomains cannot both be specified";
        fields.issues.rule(fields.path_of("includeDomains"), text);
    }
    query.safe = fields.bool("safe");
    read_shared_narrowing(fields, query);
}

/// What narrows a search in either version.
pub(super) fn read_shared_narrowing(fields: &mut Fields<'_, '_>, query: &mut Query) {
    if let Some(tbs) = fields.text("tbs", 0..=MAX_TEXT) {
        read_tbs(tbs, query);
    }
    if let Some(place) = fields.text("location", 0..=MAX_TEXT).map(str::trim).filter(|place| !place.is_empty()) {
        query.location = Some(place.to_owned());
    }
    if let Some(code) = read_letters(fields, "country") {
        query.country = Some(code.to_ascii_uppercase());
    }
    read_language(fields, query);
    if fields.text("filter", 0..=MAX_TEXT).is_some_and(|filter| !filter.trim().is_empty()) {
        query.not_understood.push("filter (duplicates are always left out)".to_owned());
    }
}

/// `de`, or `de-DE`, whose country counts where none is named.
fn read_language(fields: &mut Fields<'_, '_>, query: &mut Query) {
    let text = fields.string("lang").map(str::trim).filter(|text| !text.is_empty());
    let Some(text) = text else { return };
    let mut parts = text.split(['-', '_']);
    let language = parts.next().filter(|code| is_code(code));
    let mut others = parts.clone();
    let is_tag = others.all(|part| (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric()));
    let Some(language) = language.filter(|_| is_tag) else {
        let text = "lang must be a code of two letters, alone or with a country as in de-DE";
        fields.issues.rule(fields.path_of("lang"), text);
        return;
    };
    query.language = Some(language.to_ascii_lowercase());
    let country = || parts.find(|part| is_code(part)).map(str::to_ascii_uppercase);
    query.country = query.country.take().or_else(country);
}

fn is_code(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|b| b.is_ascii_alphabetic())
}

/// Two letters.
fn read_letters<'v>(fields: &mut Fields<'v, '_>, name: &'static str) -> Option<&'v str> {
    let text = fields.string(name)?.trim();
    if text.is_empty() {
        return None;
    }
    if !is_code(text) {
        fields.issues.rule(fields.path_of(name), format!("{name} must be a code of two letters"));
        return None;
    }
    Some(text)
}

pub(super) fn read_domains(fields: &mut Fields<'_, '_>, name: &'static str) -> Vec<String> {
    let list = fields.strings(name, MAX_DOMAINS).unwrap_or_default();
    let is_host = |host: &str| {
        host.len() <= MAX_DOMAIN && !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || ".-_".contains(c))
    };
    for (i, host) in list.iter().enumerate() {
        if !is_host(host) {
            let mut path = fields.path_of(name);
            path.push(i.into());
            fields.issues.rule(path, format!("{name}: a host name such as example.com, without scheme and path"));
        }
    }
    list.iter().map(|host| host.trim_end_matches('.').to_lowercase()).collect()
}

/// `qdr:d`, `cdr:1,cd_min:MM/DD/YYYY,cd_max:MM/DD/YYYY`, `sbd:1`, joined by commas.
fn read_tbs(tbs: &str, query: &mut Query) {
    let (mut is_range, mut least, mut most) = (false, None, None);
    for part in tbs.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once(':') {
            Some(("qdr", "h")) => query.age = Age::Hour,
            Some(("qdr", "d")) => query.age = Age::Day,
            Some(("qdr", "w")) => query.age = Age::Week,
            Some(("qdr", "m")) => query.age = Age::Month,
            Some(("qdr", "y")) => query.age = Age::Year,
            Some(("sbd", "1")) => query.by_date = true,
            Some(("sbd", "0")) => {}
            Some(("cdr", "1")) => is_range = true,
            Some(("cd_min", date)) if day(date).is_some() => least = day(date),
            Some(("cd_max", date)) if day(date).is_some() => most = day(date),
            _ => query.not_understood.push(format!("tbs {part}")),
        }
    }
    if is_range {
        query.age = Age::Between(least, most);
    }
}

/// Days since 1970 of a date as Americans write it.
fn day(date: &str) -> Option<i64> {
    let date = NaiveDate::parse_from_str(date, "%m/%d/%Y").ok()?;
    Some((date - NaiveDate::default()).num_days())
}

/// Names, or objects with a `type`.
fn read_sources(fields: &mut Fields<'_, '_>, query: &mut Query, refused: &mut Option<ValidationError>) -> Vec<Source> {
    let Some(list) = fields.array("sources", 10) else { return vec![Source::Web] };
    let mut found = Vec::new();
    let mut is_foreign = false;
    for (i, entry) in list.iter().enumerate() {
        let mut path = fields.path_of("sources");
        path.push(i.into());
        let mut named = |word: &str| match Source::ALL.into_iter().find(|source| source.as_str() == word) {
            Some(source) => found.push(source),
            None => is_foreign |= FOREIGN_SOURCES.contains(&word),
        };
        match entry {
            Value::String(word) if SOURCES.contains(&word.as_str()) => named(word),
            Value::String(_) => fields.issues.wrong_choice(path, SOURCES),
            Value::Object(_) => {
                let Some(source) = Fields::open(entry, path, fields.issues) else { continue };
                let mut source = source.nulls_are_absent();
                if source.required("type").is_some()
                    && let Some(word) = source.choice("type", SOURCES)
                {
                    named(word);
                    if word == "web" {
                        read_shared_narrowing(&mut source, query);
                    }
                }
                source.finish();
            }
            other => fields.issues.wrong_union(path, "string or object", other),
        }
    }
    if found.is_empty() && is_foreign {
        *refused = Some(no_exchange(fields.path_of("sources")));
    }
    found.sort_unstable();
    found.dedup();
    if found.is_empty() { vec![Source::Web] } else { found }
}

fn read_categories(fields: &mut Fields<'_, '_>, query: &mut Query, refused: &mut Option<ValidationError>) {
    let Some(list) = fields.array("categories", 10) else { return };
    for (i, entry) in list.iter().enumerate() {
        let mut path = fields.path_of("categories");
        path.push(i.into());
        let word = match entry {
            Value::String(word) if CATEGORIES.contains(&word.as_str()) => Some(word.as_str()),
            Value::String(_) => {
                fields.issues.wrong_choice(path.clone(), CATEGORIES);
                None
            }
            Value::Object(_) => Fields::open(entry, path.clone(), fields.issues).and_then(|category| {
                let mut category = category.nulls_are_absent();
                let word = category.required("type").and_then(|_| category.choice("type", CATEGORIES));
                category.finish();
                word
            }),
            other => {
                fields.issues.wrong_union(path.clone(), "string or object", other);
                None
            }
        };
        match (word, Category::ALL.into_iter().find(|category| Some(category.as_str()) == word)) {
            (_, Some(category)) => query.categories.push(category),
            (Some(word), None) => {
                let text = format!("The category {word} needs an index of its own, which this service does not have.");
                *refused = Some(refusal(ErrorCode::BadRequest, path, text));
            }
            (None, None) => {}
        }
    }
    query.categories.sort_unstable();
    query.categories.dedup();
}

/// Hits are scraped only where formats are named: some clients always send an empty list.
pub(super) fn read_scrape_options(
    version: ApiVersion,
    fields: &mut Fields<'_, '_>,
    unavailable: &mut Vec<Unavailable>,
) -> Option<ScrapeOptions> {
    let is_asked = |body: &Value| body.get("formats").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let is_asked = fields.get("scrapeOptions").is_some_and(is_asked);
    let mut nested = fields.object("scrapeOptions")?.nulls_are_absent();
    let options = read_options(version, &mut nested, unavailable);
    for (name, is_given) in
        [("changeTracking", options.change_tracking().is_some()), ("profile", options.profile.is_some())]
    {
        if is_given {
            nested.issues.rule(nested.path_of(name), format!("{name} is not possible in a search"));
        }
    }
    nested.ignore(&["origin", "integration"]);
    nested.finish();
    is_asked.then_some(options)
}

/// Words of contracts; `zdr` asks for what a team may have.
fn read_enterprise(fields: &mut Fields<'_, '_>) -> bool {
    const WORDS: &[&str] = &["default", "anon", "zdr"];
    let list = fields.strings("enterprise", 3).unwrap_or_default();
    for (i, word) in list.iter().enumerate() {
        if !WORDS.contains(&word.as_str()) {
            let mut path = fields.path_of("enterprise");
            path.push(i.into());
            fields.issues.wrong_choice(path, WORDS);
        }
    }
    list.iter().any(|word| word == "zdr" || word == "anon")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn query(body: Value) -> Query {
        parse_search(&body).unwrap().query
    }

    #[test]
    fn a_language_may_come_with_its_country() {
        for (body, language, country) in [
            (json!({"query": "x", "lang": "DE"}), "de", None),
            (json!({"query": "x", "lang": "de-DE"}), "de", Some("DE")),
            (json!({"query": "x", "lang": "pt_br"}), "pt", Some("BR")),
            (json!({"query": "x", "lang": "zh-Hans-CN"}), "zh", Some("CN")),
            (json!({"query": "x", "lang": "en-GB", "country": "us"}), "en", Some("US")),
        ] {
            let query = query(body.clone());
            assert_eq!((query.language.as_deref(), query.country.as_deref()), (Some(language), country), "{body}");
        }
        for wrong in ["deu", "d", "de-", "de DE", "-DE"] {
            assert!(parse_search(&json!({"query": "x", "lang": wrong})).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_each_client_sends_by_itself_is_read() {
        let plain = parse_search(&json!({"query": " rust ", "origin": "python-sdk@4"})).unwrap();
        assert_eq!((plain.query.words.as_str(), plain.limit, &plain.sources), ("rust", 5, &vec![Source::Web]));
        assert!(plain.scrape.is_none() && plain.highlights && !plain.zero_retention && plain.timeout == 60_000);
        let mcp = json!({"query": "x", "sources": ["web", "alexandria"], "domainTools": true, "toolDetail": "compact",
            "origin": "mcp-fastmcp"});
        assert_eq!(parse_search(&mcp).unwrap().sources, [Source::Web]);
        let cli = json!({"query": "x", "integration": "cli", "ignoreInvalidURLs": false,
            "scrapeOptions": {"formats": [{"type": "markdown"}], "onlyMainContent": true}});
        assert!(parse_search(&cli).unwrap().scrape.is_some());
        let js = json!({"query": "x", "limit": 3, "scrapeOptions": {"formats": []}, "sources": null});
        assert_eq!(parse_search(&js).unwrap().scrape, None);
        let python = json!({"query": "x", "sources": [{"type": "images"}, {"type": "web", "tbs": "qdr:w"}, "news"],
            "categories": [{"type": "github"}, "pdf"]});
        let python = parse_search(&python).unwrap();
        assert_eq!(python.sources, Source::ALL);
        assert_eq!((python.query.age, python.query.categories), (Age::Week, vec![Category::Github, Category::Pdf]));
    }

    #[test]
    fn ages_are_read_and_what_is_not_understood_is_kept_for_the_warning() {
        let tbs = |text: &str| query(json!({"query": "x", "tbs": text}));
        assert_eq!(tbs("qdr:h").age, Age::Hour);
        let range = tbs("cdr:1,cd_min:12/31/1999,cd_max:01/02/2000,sbd:1");
        assert_eq!((range.age, range.by_date), (Age::Between(Some(10_956), Some(10_958)), true));
        assert!(range.not_understood.is_empty());
        assert_eq!(tbs("qdr:d,li:1").not_understood, ["tbs li:1"]);
        assert_eq!(tbs("cdr:1,cd_min:yesterday").not_understood, ["tbs cd_min:yesterday"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, words) in [
            (json!({}), "Required"),
            (json!({"query": "  "}), "blank"),
            (json!({"query": ""}), "at least 1"),
            (json!({"query": "x".repeat(501)}), "at most 500"),
            (json!({"query": "x", "limit": 101}), "at most 100"),
            (json!({"query": "x", "limit": 0}), "at least 1"),
            (json!({"query": "x", "sources": ["books"]}), "expected one of"),
            (json!({"query": "x", "sources": [{"type": "web", "q": 1}]}), "Unrecognized"),
            (json!({"query": "x", "categories": ["cats"]}), "expected one of"),
            (json!({"query": "x", "includeDomains": ["https://a.test"]}), "without scheme"),
            (json!({"query": "x", "includeDomains": ["a.test"], "excludeDomains": ["b.test"]}), "cannot both"),
            (json!({"query": "x", "country": "Germany"}), "two letters"),
            (json!({"query": "x", "enterprise": ["gold"]}), "expected one of"),
            (json!({"query": "x", "scrapeOptions": {"formats": ["changeTracking", "markdown"]}}), "not possible"),
            (json!({"query": "x", "page": 2}), "Unrecognized"),
        ] {
            let error = parse_search(&body).unwrap_err();
            assert!(error.issues.iter().any(|issue| issue.message.contains(words)), "{body}: {:?}", error.issues);
        }
        let error = parse_search(&json!({"query": "x", "sources": ["alexandria"]})).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (ErrorCode::Forbidden, "Exchange is not enabled for this team.")
        );
        assert_eq!(
            parse_search(&json!({"query": "x", "categories": ["gov"]})).unwrap_err().code,
            ErrorCode::BadRequest
        );
    }
}
