//! SearXNG's JSON (`search.formats` has to name `json` in its settings).

use serde_json::Value;
use url::Url;

use super::hits::{Collected, Hit};
use super::pace::Pace;
use super::{Failure, get, shortcomings};
use crate::domain::search::{Age, Query, Source};
use crate::operator_http;

/// Engines that are named to the caller at most.
const MAX_ENGINES: usize = 10;

/// One page of hits. Returns whether it was the last: empty, or with nothing new.
pub(super) async fn page(
    base: &Url,
    pace: &Pace,
    query: &Query,
    page: usize,
    collected: &mut Collected<'_>,
) -> Result<bool, Failure> {
    if without_bangs(&query.words).trim().is_empty() {
        return Err(Failure::NotTaken);
    }
    let answer = get(request(base, query, collected.source, page), pace, |_| None).await?;
    let results = answer.get("results").and_then(Value::as_array).ok_or(Failure::Broken)?;
    if page == 0 {
        collected.warn(shortcomings(query, false, false, false));
        collected.note_silent(silent(&answer));
    }
    let source = collected.source;
    Ok(!collected.take(results.iter().filter_map(|result| hit(result, source))))
}

pub(super) fn request(base: &Url, query: &Query, source: Source, page: usize) -> reqwest::RequestBuilder {
    operator_http::client().get(address(base, query, source, page))
}

fn address(base: &Url, query: &Query, source: Source, page: usize) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/search", base.path().trim_end_matches('/')));
    let mut pairs = url.query_pairs_mut();
    pairs.append_pair("q", &without_bangs(&query.with_operators()));
    pairs.append_pair("format", "json");
    pairs.append_pair("pageno", &(page + 1).to_string());
    let category = match source {
        Source::Web => "general",
        Source::News => "news",
        Source::Images => "images",
    };
    pairs.append_pair("categories", category);
    let age = match query.age {
        Age::Hour | Age::Day => Some("day"),
        Age::Week => Some("week"),
        Age::Month => Some("month"),
        Age::Year => Some("year"),
        Age::Any | Age::Between(..) => None,
    };
    if let Some(age) = age {
        pairs.append_pair("time_range", age);
    }
    let language = match (&query.language, &query.country) {
        (Some(language), Some(country)) => Some(format!("{language}-{country}")),
        (Some(language), None) => Some(language.clone()),
        (None, Some(country)) => Some(format!("all-{country}")),
        (None, None) => None,
    };
    if let Some(language) = language {
        pairs.append_pair("language", &language);
    }
    if let Some(safe) = query.safe {
        pairs.append_pair("safesearch", if safe { "2" } else { "0" });
    }
    drop(pairs);
    url
}

/// The words without what SearXNG takes for its own orders: `!engine` asks an engine that the operator may have turned off,
/// `!!site` and `!!` answer with the way to another site instead of hits. Search engines make nothing of such a sign.
fn without_bangs(words: &str) -> String {
    let mut plain = String::with_capacity(words.len());
    let (mut is_begin, mut is_in) = (true, false);
    for c in words.chars() {
        if c == '!' && (is_begin || is_in) {
            is_in = true;
            is_begin = false;
            continue;
        }
        is_in = false;
        is_begin = c.is_whitespace() || c.is_control();
        plain.push(c);
    }
    plain
}

/// What of a result is of the right type; nothing without an address.
fn hit(result: &Value, source: Source) -> Option<Hit> {
    let text = |name: &str| result.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let mut hit = Hit::new(text("url")?, text("title").unwrap_or_default(), text("content").unwrap_or_default());
    hit = hit.dated(text("publishedDate"));
    hit = match source {
        Source::Web => hit,
        Source::News => hit.with_image(text("img_src").or_else(|| text("thumbnail")).or_else(|| text("thumbnail_src"))),
        Source::Images => hit.with_image(text("img_src")),
    };
    hit.size = text("resolution").and_then(size);
    Some(hit)
}

/// `1280 x 720`, with whatever sign between.
fn size(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let size = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    numbers.next().is_none().then_some(size)
}

/// Names of engines that did not answer: `[["name", "reason"], …]`.
fn silent(answer: &Value) -> Vec<String> {
    let engines = answer.get("unresponsive_engines").and_then(Value::as_array).into_iter().flatten();
    let name = |engine: &Value| engine.get(0).and_then(Value::as_str).or(engine.as_str()).map(str::to_owned);
    let short = |name: String| name.chars().take(40).collect();
    engines.filter_map(name).map(short).take(MAX_ENGINES).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_query_is_asked_in_its_words() {
        let base = Url::parse("http://s.test/searx/").unwrap();
        let query = Query {
            words: "a b".into(),
            age: Age::Hour,
            country: Some("DE".into()),
            language: Some("de".into()),
            safe: Some(true),
            ..Query::default()
        };
        assert_eq!(
            address(&base, &query, Source::News, 1).as_str(),
            "http://s.test/searx/search?q=a+b&format=json&pageno=2&categories=news&time_range=day&language=de-DE&safesearch=2"
        );
    }

    #[test]
    fn orders_to_searxng_are_not_passed_on() {
        for (words, plain) in [
            ("!!g secret", "g secret"),
            ("!github weir", "github weir"),
            ("a\t!!yt\u{3000}!w b!c d!", "a\tyt\u{3000}w b!c d!"),
            ("css !important", "css important"),
            ("\"!important\" a != b", "\"!important\" a = b"),
            ("x !!", "x "),
        ] {
            assert_eq!(without_bangs(words), plain, "{words}");
        }
    }

    #[test]
    fn sizes_are_whole_numbers_or_none() {
        assert_eq!(size("1280 x 720"), Some((1280, 720)));
        assert_eq!(size("640×480"), Some((640, 480)));
        for odd in ["", "big", "12", "1 x 2 x 3", "99999999999 x 1"] {
            assert_eq!(size(odd), None, "{odd}");
        }
    }
}
