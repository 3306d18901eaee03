//! What the language model judges for monitors (wire 24): whether a change has to do with what somebody watches a page
//! for, and which hits of a search do. What it is shown is data, as pages are.

use serde_json::{Value, json};
use url::Url;
use weir_shared::llm::strict_object;

use super::ask::Task;
use super::{LONG, PageText, ReadError, Reader};

/// Most changes that a judgement names, and the longest texts in it, characters.
const MAX_CHANGES: usize = 20;
const MAX_REASON: usize = 1_000;
const MAX_TEXT: usize = 2_000;

/// A hit of a search, as it is judged.
#[derive(Debug)]
pub struct Hit<'a> {
    pub url: &'a str,
    pub title: &'a str,
    pub description: &'a str,
}

/// What is said of a hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub is_meaningful: bool,
    /// `high`, `medium` or `low`.
    pub confidence: String,
    pub reason: String,
}

impl Verdict {
    /// As the wire has it.
    pub fn to_json(&self) -> Value {
        json!({"meaningful": self.is_meaningful, "confidence": self.confidence, "reason": self.reason,
            "meaningfulChanges": []})
    }
}

impl Reader<'_> {
    /// Judges a change of a page, given as a diff of its text or of its data.
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub async fn judge_change(&self, goal: &str, diff: PageText<'_>) -> Result<Value, ReadError> {
        let excerpt = self.excerpt(diff, LONG, Some(goal))?;
        let change = strict_object(json!({
            "type": {"type": "string", "enum": ["added", "removed", "changed"]},
            "before": {"type": ["string", "null"]},
            "after": {"type": ["string", "null"]},
            "reason": {"type": "string"},
        }));
        let schema = strict_object(json!({
            "meaningful": {"type": "boolean"},
            "confidence": {"type": "string", "enum": ["high", "medium", "low"]},
            "reason": {"type": "string"},
            "meaningfulChanges": {"type": "array", "items": change},
        }));
        let task = Task {
            rules: "The page is not whole: you are shown how it has changed since the last look, as a diff in which + \
                marks what is new and - what is gone, or as the previous and current values of its data. Judge whether the \
                change has to do with what the person watches the page for. Changes of dates, counters, advertisements \
                and layout are not meaningful unless the person asks for them. List the meaningful changes, each with what \
                it was and is, copied from the diff; an empty list if there are none.",
            wish: format!("What the person watches the page for:\n{goal}"),
            name: "judgement",
            schema: &schema,
            strict: true,
            max_tokens: LONG,
        };
        self.ask(diff, &excerpt, &task, judgement).await
    }

    /// Judges hits of a search, in their order.
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub async fn judge_hits(&self, goal: &str, hits: &[Hit<'_>]) -> Result<Vec<Verdict>, ReadError> {
        let Some(first) = hits.first().and_then(|hit| Url::parse(hit.url).ok()) else { return Ok(Vec::new()) };
        let mut text = String::new();
        for (n, hit) in hits.iter().enumerate() {
            text.push_str(&format!("{}. {}\n{}\n{}\n\n", n + 1, hit.title, hit.url, hit.description));
        }
        let page = PageText { url: &first, markdown: &text, structured: None };
        let excerpt = self.excerpt(page, LONG, None)?;
        let verdict = strict_object(json!({
            "number": {"type": "integer"},
            "meaningful": {"type": "boolean"},
            "confidence": {"type": "string", "enum": ["high", "medium", "low"]},
            "reason": {"type": "string"},
        }));
        let schema = strict_object(json!({"hits": {"type": "array", "items": verdict}}));
        let task = Task {
            rules: "The page is a list of numbered hits of a web search, each with title, address and description. Judge \
                each by its number: whether it is what the person looks for.",
            wish: format!("What the person looks for:\n{goal}"),
            name: "hits",
            schema: &schema,
            strict: true,
            max_tokens: LONG,
        };
        self.ask(page, &excerpt, &task, |said| verdicts(&said, hits.len())).await
    }
}

/// One of the words of a confidence.
fn confidence(said: &Value) -> Result<String, String> {
    match said["confidence"].as_str() {
        Some(word @ ("high" | "medium" | "low")) => Ok(word.to_owned()),
        _ => Err("`confidence` is high, medium or low.".to_owned()),
    }
}

fn reason(said: &Value) -> Result<String, String> {
    said["reason"].as_str().map(|text| cut(text, MAX_REASON)).ok_or_else(|| "`reason` is a text.".to_owned())
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

fn judgement(said: Value) -> Result<Value, String> {
    let meaningful = said["meaningful"].as_bool().ok_or("`meaningful` is true or false.")?;
    let mut changes = Vec::new();
    for change in said["meaningfulChanges"].as_array().into_iter().flatten().take(MAX_CHANGES) {
        let text = |name: &str| change[name].as_str().map(|text| cut(text, MAX_TEXT));
        let (before, after) = (text("before"), text("after"));
        // A judgement is not lost for the word that a model has for its details.
        let kind = match (change["type"].as_str(), &before, &after) {
            (Some(kind @ ("added" | "removed" | "changed")), ..) => kind,
            (_, None, Some(_)) => "added",
            (_, Some(_), None) => "removed",
            _ => "changed",
        };
        let reason = reason(change).unwrap_or_default();
        changes.push(json!({"type": kind, "before": before, "after": after, "reason": reason}));
    }
    Ok(json!({"meaningful": meaningful, "confidence": confidence(&said)?, "reason": reason(&said)?,
        "meaningfulChanges": changes}))
}

fn verdicts(said: &Value, count: usize) -> Result<Vec<Verdict>, String> {
    let list = said["hits"].as_array().ok_or("`hits` is a list.")?;
    let of = |number: usize| {
        let found = list.iter().find(|verdict| verdict["number"].as_u64() == Some(number as u64));
        let found = found.ok_or_else(|| format!("Hit {number} is missing."))?;
        let is_meaningful = found["meaningful"].as_bool().ok_or("`meaningful` is true or false.")?;
        Ok(Verdict { is_meaningful, confidence: confidence(found)?, reason: reason(found)? })
    };
    (1..=count).map(of).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_judgement_is_held_to_its_form() {
        let change = json!({"type": "changed", "before": "5", "after": null, "reason": "price", "more": 1});
        let said = json!({"meaningful": true, "confidence": "high", "reason": "x", "meaningfulChanges": [change]});
        let held = judgement(said.clone()).unwrap();
        assert_eq!(
            held["meaningfulChanges"][0],
            json!({"type": "changed", "before": "5", "after": null, "reason": "price"})
        );
        let odd =
            json!([{"type": "modified", "after": "6"}, {"before": "5"}, {"before": "5", "after": "6", "reason": 1}]);
        let held = judgement(json!({"meaningful": true, "confidence": "low", "reason": "x", "meaningfulChanges": odd}));
        let kinds: Vec<Value> =
            held.unwrap()["meaningfulChanges"].as_array().unwrap().iter().map(|c| c["type"].clone()).collect();
        assert_eq!(kinds, ["added", "removed", "changed"]);
        for (field, wrong) in [("meaningful", json!("yes")), ("confidence", json!("sure")), ("reason", json!(5))] {
            let mut said = said.clone();
            said[field] = wrong;
            assert!(judgement(said).is_err(), "{field}");
        }
    }

    #[test]
    fn every_hit_has_a_verdict_of_its_own() {
        let verdict = |number| json!({"number": number, "meaningful": number == 2, "confidence": "low", "reason": "r"});
        let said = json!({"hits": [verdict(2), verdict(1)]});
        let found = verdicts(&said, 2).unwrap();
        assert_eq!(found.iter().map(|verdict| verdict.is_meaningful).collect::<Vec<_>>(), [false, true]);
        assert!(verdicts(&said, 3).is_err() && verdicts(&json!({}), 1).is_err());
    }
}
