//! What a caller says of a result (wire 25), as it is read and kept.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::activity::Endpoint;
use super::scrape_request::no_exchange;
use super::target::without_user;
use super::validation::{Fields, Issues, Path, ValidationError, read_id, refusal};
use super::words::words;
use crate::error_code::ErrorCode;

/// Most entries of each list.
const MAX_SOURCES: i64 = 50;
const MAX_TOPICS: i64 = 50;
const MAX_CODES: i64 = 20;
const MAX_PAGES: i64 = 100;
/// Longest texts, characters.
const MAX_URL: i64 = 2_048;
const MAX_REASON: i64 = 1_000;
const MAX_TOPIC: i64 = 200;
const MAX_TEXT: i64 = 2_000;
const MAX_NOTE: i64 = 4_000;
const MAX_CODE: i64 = 80;
/// Largest `metadata`, bytes of its JSON.
const MAX_METADATA: usize = 8 << 10;
/// What an answer's catalogue of another product is called. Its results are none of ours.
const FOREIGN: &str = "alexandria";

words! {
    /// What the result was of.
    Subject {
        Search = "search",
        Scrape = "scrape",
        Parse = "parse",
        Map = "map",
    }
}

const SUBJECTS: &[&str] = &["search", "scrape", "parse", "map"];

impl Subject {
    /// How the team's activity calls it: a file that is parsed is a scrape.
    pub const fn endpoint(self) -> Endpoint {
        match self {
            Self::Search => Endpoint::Search,
            Self::Scrape | Self::Parse => Endpoint::Scrape,
            Self::Map => Endpoint::Map,
        }
    }
}

/// What is said, valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Feedback {
    /// `good`, `partial` or `bad`.
    pub rating: &'static str,
    /// Everything else that was said, as it came, but for names and passwords in addresses.
    pub said: Map<String, Value>,
}

/// What is said of which result, valid.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFeedback {
    pub subject: Subject,
    /// What the result is found by.
    pub job: Uuid,
    pub feedback: Feedback,
}

/// Reads the body of `POST /v2/search/{id}/feedback`.
///
/// # Errors
/// Every wrong field.
pub fn parse_search_feedback(body: &Value) -> Result<Feedback, ValidationError> {
    let mut issues = Issues::default();
    let rating = Fields::open(body, Path::new(), &mut issues).map(|fields| {
        let mut fields = fields.nulls_are_absent();
        let rating = read_rating(&mut fields);
        read_search(&mut fields);
        fields.ignore(&["origin", "integration"]);
        fields.finish();
        rating
    });
    issues.into_result()?;
    rating.map(|rating| Feedback { rating, said: said(body) }).ok_or_else(bad_request)
}

/// Reads the body of `POST /v2/feedback`.
///
/// # Errors
/// Every wrong field; 403 for results of products that are not served here.
pub fn parse_feedback(body: &Value) -> Result<JobFeedback, ValidationError> {
    if body.get("endpoint").and_then(Value::as_str) == Some(FOREIGN) {
        return Err(no_exchange(vec!["endpoint".into()]));
    }
    let mut issues = Issues::default();
    let read = Fields::open(body, Path::new(), &mut issues).map(|fields| {
        let mut fields = fields.nulls_are_absent();
        let named = fields.required("endpoint").and_then(|_| fields.choice("endpoint", SUBJECTS));
        let job = fields.required("jobId").and_then(|_| read_id(&mut fields, "jobId"));
        let rating = read_rating(&mut fields);
        read_search(&mut fields);
        read_details(&mut fields);
        fields.ignore(&["origin", "integration"]);
        fields.finish();
        let subject = named.and_then(|word| word.parse().ok()).unwrap_or(Subject::Scrape);
        (subject, job.unwrap_or_default(), rating)
    });
    issues.into_result()?;
    let (subject, job, rating) = read.ok_or_else(bad_request)?;
    Ok(JobFeedback { subject, job, feedback: Feedback { rating, said: said(body) } })
}

fn bad_request() -> ValidationError {
    refusal(ErrorCode::BadRequest, Path::new(), "Bad Request")
}

fn read_rating(fields: &mut Fields<'_, '_>) -> &'static str {
    fields.required("rating").and_then(|_| fields.choice("rating", &["good", "partial", "bad"])).unwrap_or("bad")
}

/// What may be said of a search, and of any result.
fn read_search(fields: &mut Fields<'_, '_>) {
    each(fields, "valuableSources", MAX_SOURCES, |source| {
        if source.required("url").is_some() {
            source.text("url", 1..=MAX_URL);
        }
        source.text("reason", 0..=MAX_REASON);
    });
    each(fields, "missingContent", MAX_TOPICS, |missing| {
        if missing.required("topic").is_some() {
            missing.text("topic", 1..=MAX_TOPIC);
        }
        missing.text("description", 0..=MAX_TEXT);
    });
    fields.text("querySuggestions", 0..=MAX_TEXT);
}

fn read_details(fields: &mut Fields<'_, '_>) {
    for name in ["issues", "tags"] {
        for (at, code) in fields.strings(name, MAX_CODES).unwrap_or_default().iter().enumerate() {
            let length = code.chars().count() as i64;
            if !(1..=MAX_CODE).contains(&length) {
                let path = [fields.path_of(name), vec![at.into()]].concat();
                fields.issues.out_of_range(path, "string", length, &(1..=MAX_CODE));
            }
        }
    }
    fields.text("note", 0..=MAX_NOTE);
    fields.text("url", 0..=MAX_URL);
    for (at, page) in fields.array("pageNumbers", MAX_PAGES).into_iter().flatten().enumerate() {
        if page.as_u64().is_none_or(|page| page == 0) {
            let path = [fields.path_of("pageNumbers"), vec![at.into()]].concat();
            fields.issues.wrong_type(path, "int", Some(page));
        }
    }
    let metadata = fields.get("metadata");
    match metadata {
        None => {}
        Some(Value::Object(_)) => {
            let length = metadata.map_or(0, |value| value.to_string().len());
            if length > MAX_METADATA {
                let text = format!("metadata must be at most {MAX_METADATA} bytes of JSON");
                fields.issues.rule(fields.path_of("metadata"), text);
            }
        }
        Some(other) => fields.issues.wrong_type(fields.path_of("metadata"), "object", Some(other)),
    }
}

/// Reads each object of a list.
fn each(fields: &mut Fields<'_, '_>, name: &'static str, most: i64, read: impl Fn(&mut Fields<'_, '_>)) {
    let path = fields.path_of(name);
    for (at, entry) in fields.array(name, most).into_iter().flatten().enumerate() {
        let path = [path.clone(), vec![at.into()]].concat();
        if let Some(entry) = Fields::open(entry, path, fields.issues) {
            let mut entry = entry.nulls_are_absent();
            read(&mut entry);
            entry.finish();
        }
    }
}

/// The body without what stands in columns of its own, or is for statistics, and without names and passwords in addresses,
/// which are for their origins alone.
fn said(body: &Value) -> Map<String, Value> {
    let mut said = body.as_object().cloned().unwrap_or_default();
    said.retain(|name, value| {
        !["rating", "endpoint", "jobId", "origin", "integration"].contains(&name.as_str()) && !value.is_null()
    });
    let sources = said.get_mut("valuableSources").and_then(Value::as_array_mut).into_iter().flatten();
    sources.filter_map(|source| source.get_mut("url")).for_each(hide_user);
    said.get_mut("url").into_iter().for_each(hide_user);
    said
}

fn hide_user(address: &mut Value) {
    // Space around an address is none of it.
    if let Some(text) = address.as_str() {
        *address = without_user(text.trim()).into();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    const JOB: &str = "0190c0de-0000-7000-8000-000000000000";

    #[test]
    fn what_clients_send_is_read() {
        let sent = json!({"rating": "partial", "valuableSources": [{"url": "https://a.example", "reason": null}],
            "missingContent": [{"topic": "prices"}], "querySuggestions": "x", "origin": "cli", "integration": "cli"});
        let read = parse_search_feedback(&sent).unwrap();
        assert_eq!(read.rating, "partial");
        assert_eq!(read.said.keys().collect::<Vec<_>>(), ["valuableSources", "missingContent", "querySuggestions"]);
        let sent = json!({"endpoint": "parse", "jobId": JOB, "rating": "bad", "issues": ["missing_table"], "tags": ["x"],
            "note": "n", "url": "https://a.example", "pageNumbers": [1, 2], "metadata": {"a": {"b": 1}}, "origin": "mcp"});
        let read = parse_feedback(&sent).unwrap();
        assert_eq!((read.subject, read.job.to_string().as_str(), read.feedback.said.len()), (Subject::Parse, JOB, 6));
    }

    #[test]
    fn a_password_in_an_address_is_not_kept() {
        let address = "https://alice:hush@a.example/b";
        let of_search = json!({"rating": "good", "valuableSources": [{"url": address}, {"url": "report@2.pdf"}]});
        let said = parse_search_feedback(&of_search).unwrap().said;
        assert_eq!(said["valuableSources"], json!([{"url": "https://a.example/b"}, {"url": "report@2.pdf"}]));
        let of_page = json!({"endpoint": "scrape", "jobId": JOB, "rating": "bad", "url": format!(" {address}\n")});
        assert_eq!(parse_feedback(&of_page).unwrap().feedback.said["url"], "https://a.example/b");
    }

    #[test]
    fn what_is_wrong_or_too_much_is_named() {
        let base = json!({"endpoint": "search", "jobId": JOB, "rating": "good"});
        for (field, value, words) in [
            ("rating", json!("fine"), "rating"),
            ("endpoint", json!("crawl"), "endpoint"),
            ("jobId", json!("x"), "jobId must be a valid UUID"),
            ("valuableSources", json!(vec![json!({"url": "u"}); 51]), "at most 50"),
            ("valuableSources", json!([{"url": "u", "why": "x"}]), "Unrecognized"),
            ("valuableSources", json!([{}]), "Required"),
            ("missingContent", json!([{"topic": "x".repeat(201)}]), "at most 200"),
            ("querySuggestions", json!("x".repeat(2_001)), "at most 2000"),
            ("issues", json!(vec!["x"; 21]), "at most 20"),
            ("tags", json!(["x".repeat(81)]), "at most 80"),
            ("note", json!("x".repeat(4_001)), "at most 4000"),
            ("pageNumbers", json!([0]), "expected int"),
            ("metadata", json!({"x": "x".repeat(9_000)}), "at most 8192 bytes"),
            ("metadata", json!([]), "expected object"),
            ("more", json!(1), "Unrecognized"),
        ] {
            let mut body = base.clone();
            body[field] = value;
            let error = parse_feedback(&body).unwrap_err();
            assert!(error.issues.iter().any(|issue| issue.message.contains(words)), "{field}: {error:?}");
        }
        for field in ["endpoint", "jobId", "rating"] {
            let mut body = base.clone();
            body.as_object_mut().unwrap().remove(field);
            assert!(parse_feedback(&body).is_err(), "{field}");
        }
        let foreign = parse_feedback(&json!({"endpoint": "alexandria", "rationale": "x"})).unwrap_err();
        assert_eq!(foreign.code, ErrorCode::Forbidden);
        assert!(parse_search_feedback(&json!({})).is_err() && parse_search_feedback(&json!([])).is_err());
    }
}
