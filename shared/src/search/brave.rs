//! The Brave Search API.

use serde_json::Value;
use url::Url;

use super::hits::{Collected, Hit};
use super::pace::{self, Pace};
use super::{Failure, get, shortcomings};
use crate::domain::search::{Age, Query, Source};
use crate::operator_http;
use crate::time::Timestamp;

/// Most hits of a page, by source, and the last page that it gives.
const WEB_AT_ONCE: usize = 20;
const NEWS_AT_ONCE: usize = 50;
const IMAGES_AT_ONCE: usize = 100;
const LAST_PAGE: usize = 9;
/// Longest query that it takes, characters and words.
const MOST_CHARACTERS: usize = 400;
const MOST_WORDS: usize = 50;

/// One page of hits. Returns whether it was the last.
pub(super) async fn page(
    base: &Url,
    key: &str,
    pace: &Pace,
    query: &Query,
    page: usize,
    collected: &mut Collected<'_>,
) -> Result<bool, Failure> {
    let words = query.with_operators();
    if words.chars().count() > MOST_CHARACTERS || words.split_whitespace().count() > MOST_WORDS {
        return Err(Failure::NotTaken);
    }
    let source = collected.source;
    let count = match source {
        Source::Web => WEB_AT_ONCE,
        Source::News => NEWS_AT_ONCE,
        Source::Images => IMAGES_AT_ONCE,
    };
    // The same for every page, or the second one would begin elsewhere.
    let count = count.min(collected.limit());
    let mut request = request(base, key, query, &words, (source, page, count));
    if let Some(place) = query.location.as_deref().filter(|place| place.bytes().all(|b| (b' '..=b'~').contains(&b))) {
        request = request.header("X-Loc-City", place);
    }
    let answer = get(request, pace, pace::spent).await?;
    if page == 0 {
        collected.warn(shortcomings(query, false, true, source == Source::Web));
    }
    let list = if source == Source::Web { answer.pointer("/web/results") } else { answer.get("results") };
    let results = match list {
        Some(Value::Array(results)) => results.as_slice(),
        // A search without hits has no such group.
        None if answer.is_object() => &[],
        _ => return Err(Failure::Broken),
    };
    let is_new = collected.take(results.iter().filter_map(|result| hit(result, source)));
    let has_more = answer.pointer("/query/more_results_available").and_then(Value::as_bool).unwrap_or(is_new);
    Ok(!is_new || !has_more || page >= LAST_PAGE || source == Source::Images || results.len() < count)
}

/// Asks for so many hits of a page.
pub(super) fn request(
    base: &Url,
    key: &str,
    query: &Query,
    words: &str,
    (source, page, count): (Source, usize, usize),
) -> reqwest::RequestBuilder {
    let request = operator_http::client().get(address(base, query, words, source, page, count));
    request.header("X-Subscription-Token", key).header("Accept", "application/json")
}

fn address(base: &Url, query: &Query, words: &str, source: Source, page: usize, count: usize) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{}/search", base.path().trim_end_matches('/'), source.as_str()));
    let mut pairs = url.query_pairs_mut();
    pairs.append_pair("q", words);
    pairs.append_pair("count", &count.to_string());
    if source != Source::Images {
        pairs.append_pair("offset", &page.to_string());
        // Without marks around the words that match.
        pairs.append_pair("text_decorations", "false");
        if let Some(age) = freshness(query.age) {
            pairs.append_pair("freshness", &age);
        }
    }
    if let Some(country) = &query.country {
        pairs.append_pair("country", country);
    }
    if let Some(language) = &query.language {
        pairs.append_pair("search_lang", language);
    }
    if let Some(safe) = query.safe {
        pairs.append_pair("safesearch", if safe { "strict" } else { "off" });
    }
    drop(pairs);
    url
}

fn freshness(age: Age) -> Option<String> {
    let date = |day: i64| Timestamp(day * 86_400_000).to_iso().get(..10).map(str::to_owned);
    match age {
        Age::Any => None,
        Age::Hour | Age::Day => Some("pd".to_owned()),
        Age::Week => Some("pw".to_owned()),
        Age::Month => Some("pm".to_owned()),
        Age::Year => Some("py".to_owned()),
        Age::Between(least, most) => {
            // Both ends are wanted: the first day of the web, and one that is still to come.
            Some(format!("{}to{}", date(least.unwrap_or(0))?, date(most.unwrap_or(36_524))?))
        }
    }
}

/// What of a result is of the right type; nothing without an address.
fn hit(result: &Value, source: Source) -> Option<Hit> {
    let text = |path: &str| result.pointer(path).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let hit = Hit::new(text("/url")?, text("/title").unwrap_or_default(), text("/description").unwrap_or_default());
    let hit = hit.dated(text("/page_age").or_else(|| text("/age")));
    Some(match source {
        Source::Web => hit,
        Source::News => hit.with_image(text("/thumbnail/src")),
        Source::Images => {
            let mut hit = hit.with_image(text("/properties/url").or_else(|| text("/thumbnail/src")));
            let side = |name: &str| u32::try_from(result.pointer(name)?.as_u64()?).ok();
            hit.size = side("/properties/width").zip(side("/properties/height"));
            hit
        }
    })
}
