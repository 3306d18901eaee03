//! `changeTracking`: a page held against what it was when the team last tracked it (wire 3.4).
//!
//! What is compared is the markdown, line ends and empty lines aside. The history of a page belongs to the team, its
//! address, the tag and every option that changes the text.

use std::time::Duration;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use similar::{ChangeTag, TextDiff};
use weir_shared::domain::scrape::{ChangeTracking, ScrapeOptions};
use weir_shared::domain::watch::is_same;
use weir_shared::store::contents::snapshots::Snapshot;
use weir_shared::time::Timestamp;

/// Longest text that is kept and compared, bytes.
const MAX_TEXT: usize = 2 << 20;
/// Longest text of a diff, bytes.
const MAX_DIFF: usize = 1 << 20;
/// Time for a diff; past it the library takes larger steps.
const DIFF_TIME: Duration = Duration::from_secs(1);
/// Lines around a change.
const CONTEXT: usize = 3;

/// What became of a page since it was last tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    New,
    Same,
    Changed,
    /// The target says that it is gone.
    Removed,
}

impl Status {
    const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Same => "same",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }

    /// Judges a page by what it was and what it is now. A page that comes back is new.
    pub fn of(before: Option<&Snapshot>, now: &Snapshot) -> Self {
        match before {
            _ if now.is_gone => Self::Removed,
            None => Self::New,
            Some(before) if before.is_gone => Self::New,
            Some(before) if before.markdown == now.markdown => Self::Same,
            Some(_) => Self::Changed,
        }
    }
}

/// What the page is found by: a digest of what makes two texts comparable.
pub fn key(url: &str, options: &ScrapeOptions, tracking: &ChangeTracking) -> String {
    let mut url = url.to_owned();
    if let Some(end) = url.find('#') {
        url.truncate(end);
    }
    let parts = json!([
        url,
        tracking.tag,
        options.only_main_content,
        options.only_clean_content,
        options.include_tags,
        options.exclude_tags,
        options.mobile,
        options.location,
        options.remove_base64_images,
        options.redact_pii,
    ]);
    hex::encode(Sha256::digest(parts.to_string()))
}

/// A digest of what data is read by.
pub fn data_key(tracking: &ChangeTracking) -> String {
    hex::encode(Sha256::digest(json!([tracking.schema, tracking.prompt]).to_string()))
}

/// The text that is kept and compared; `true`: it was cut.
pub fn comparable(markdown: &str) -> (String, bool) {
    let mut text = String::with_capacity(markdown.len().min(MAX_TEXT));
    let mut is_blank = true;
    for line in markdown.lines().map(str::trim_end) {
        if line.is_empty() && is_blank {
            continue;
        }
        is_blank = line.is_empty();
        if text.len() + line.len() >= MAX_TEXT {
            return (text, true);
        }
        text.push_str(line);
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    if !text.is_empty() {
        text.push('\n');
    }
    (text, false)
}

/// The answer's `changeTracking` without what the modes add.
pub fn report(status: Status, previous: Option<Timestamp>, is_hidden: bool) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("previousScrapeAt".to_owned(), previous.map(Timestamp::to_iso).into());
    map.insert("changeStatus".to_owned(), status.as_str().into());
    map.insert("visibility".to_owned(), if is_hidden { "hidden" } else { "visible" }.into());
    map
}

/// The lines that differ, as text and as data; `true`: it was cut. Computes.
pub fn diff(before: &str, now: &str) -> (Value, bool) {
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(before, now);
    let mut text = String::from("--- previous\n+++ current\n");
    let mut chunks = Vec::new();
    let mut is_cut = false;
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        let (mut lines, mut changes) = (String::new(), Vec::new());
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let content = format!("{sign}{}", change.value().trim_end_matches('\n'));
            lines.push_str(&content);
            lines.push('\n');
            let number = |index: Option<usize>| index.map(|index| index + 1);
            changes.push(match change.tag() {
                ChangeTag::Equal => json!({"type": "normal", "normal": true, "ln1": number(change.old_index()),
                    "ln2": number(change.new_index()), "content": content}),
                ChangeTag::Delete => {
                    json!({"type": "del", "del": true, "ln": number(change.old_index()), "content": content})
                }
                ChangeTag::Insert => {
                    json!({"type": "add", "add": true, "ln": number(change.new_index()), "content": content})
                }
            });
        }
        let head = hunk.header().to_string();
        if text.len() + head.len() + lines.len() > MAX_DIFF {
            is_cut = true;
            break;
        }
        text.push_str(&head);
        text.push('\n');
        text.push_str(&lines);
        chunks.push(json!({"content": head, "changes": changes}));
    }
    let files = json!([{"from": "previous", "to": "current", "chunks": chunks}]);
    (json!({"text": text, "json": {"files": files}}), is_cut)
}

/// The fields that differ, each with what it was and what it is. Data that is not an object is one field, `value`.
pub fn data_diff(before: &Value, now: &Value) -> Value {
    let fields = |data: &Value| match data {
        Value::Object(map) => map.clone(),
        other => Map::from_iter([("value".to_owned(), other.clone())]),
    };
    let (before, now) = (fields(before), fields(now));
    let names = before.keys().chain(now.keys().filter(|name| !before.contains_key(*name)));
    let value = |map: &Map<String, Value>, name: &String| map.get(name).cloned().unwrap_or_default();
    let changed = names.filter(|name| !is_same(&value(&before, name), &value(&now, name)));
    let entry = |name: &String| (name.clone(), json!({"previous": value(&before, name), "current": value(&now, name)}));
    Value::Object(changed.map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_judged_by_its_text() {
        let page = |markdown: &str| Snapshot { markdown: comparable(markdown).0, ..Snapshot::default() };
        let gone = Snapshot { is_gone: true, ..Snapshot::default() };
        let (a, a_again, b) = (page("# A\n\n\ntext  \n"), page("\n# A\n\ntext"), page("# A\n\nother"));
        assert_eq!(Status::of(None, &a), Status::New);
        assert_eq!(Status::of(Some(&a), &a_again), Status::Same);
        assert_eq!(Status::of(Some(&a), &b), Status::Changed);
        assert_eq!((Status::of(Some(&a), &gone), Status::of(None, &gone)), (Status::Removed, Status::Removed));
        assert_eq!(Status::of(Some(&gone), &a), Status::New);
        let (text, is_cut) = comparable(&"a line\n".repeat(1 << 20));
        assert!(is_cut && text.len() <= MAX_TEXT && text.ends_with("a line\n"));
    }

    #[test]
    fn a_diff_has_the_shape_that_clients_know() {
        let lines = |range: std::ops::Range<u32>| range.map(|n| format!("line {n}\n")).collect::<String>();
        let (before, now) =
            (format!("{}old\n{}", lines(0..9), lines(10..30)), format!("{}new\n{}end\n", lines(0..9), lines(10..30)));
        let (diff, is_cut) = diff(&before, &now);
        assert!(!is_cut);
        let text = diff["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("--- previous\n+++ current\n@@ -7,7 +7,7 @@\n line 6\n"), "{text}");
        assert!(text.contains("-old\n+new\n") && text.contains("+end\n") && !text.contains("line 15\n"), "{text}");
        let chunks = diff["json"]["files"][0]["chunks"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert_eq!(chunks.len(), 2);
        assert_eq!(chunks[0]["content"], "@@ -7,7 +7,7 @@");
        let changes = &chunks[0]["changes"];
        assert_eq!(changes[0], json!({"type": "normal", "normal": true, "ln1": 7, "ln2": 7, "content": " line 6"}));
        assert_eq!(changes[3], json!({"type": "del", "del": true, "ln": 10, "content": "-old"}));
        assert_eq!(changes[4], json!({"type": "add", "add": true, "ln": 10, "content": "+new"}));
        let many = |word: &str| (0..60_000).map(|n| format!("{word} {n} {}\n", n * 7919)).collect::<String>();
        let (large, is_cut) = super::diff(&many("a"), &many("b"));
        assert!(is_cut && large["text"].as_str().is_some_and(|text| text.len() <= MAX_DIFF));
    }

    #[test]
    fn data_differs_by_field() {
        let before = json!({"price": 5, "name": "A", "gone": true});
        let now = json!({"price": 6, "name": "A", "more": [1]});
        let expected = json!({"price": {"previous": 5, "current": 6}, "gone": {"previous": true, "current": null},
            "more": {"previous": null, "current": [1]}});
        assert_eq!(data_diff(&before, &now), expected);
        assert_eq!(data_diff(&json!([1]), &json!([2])), json!({"value": {"previous": [1], "current": [2]}}));
        assert_eq!(data_diff(&now, &now), json!({}));
        assert_eq!(data_diff(&json!({"a": [{"n": 5}]}), &json!({"a": [{"n": 5.0}]})), json!({}));
    }

    #[test]
    fn what_changes_the_text_has_a_history_of_its_own() {
        let (options, tracking) = (ScrapeOptions::default(), ChangeTracking::default());
        let own = key("http://x.test/a", &options, &tracking);
        assert_eq!(own, key("http://x.test/a#b", &options, &tracking));
        let whole = ScrapeOptions { only_main_content: false, ..options.clone() };
        let tagged = ChangeTracking { tag: Some("daily".into()), ..tracking.clone() };
        for other in [
            key("http://x.test/b", &options, &tracking),
            key("http://x.test/a", &whole, &tracking),
            key("http://x.test/a", &options, &tagged),
        ] {
            assert_ne!(own, other);
        }
    }
}
