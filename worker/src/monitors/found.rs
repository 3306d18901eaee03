//! What a document of a check says of its page.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use weir_shared::domain::monitor::PageStatus;
use weir_shared::domain::target::without_user;
use weir_shared::ids::PageId;
use weir_shared::store::StoreResult;
use weir_shared::store::monitors::pages::{Detail, Found, Known};
use weir_shared::store::work::documents::StoredDocument;
use weir_shared::store::work::pages::PageRow;

/// What of a page's metadata is kept with a check.
const KEPT: [&str; 7] = ["title", "description", "language", "sourceURL", "url", "statusCode", "contentType"];
/// Longest text of it, characters.
const MAX_TEXT: usize = 1_000;

/// A document as far as a check looks at it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    change_tracking: Option<Tracked>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tracked {
    change_status: String,
    #[serde(default)]
    diff: Option<Map<String, Value>>,
    /// The fields that differ, by their path.
    #[serde(default)]
    json: Option<Value>,
    /// All of them.
    #[serde(default)]
    data: Option<Value>,
    #[serde(default)]
    judgment: Option<Value>,
}

/// A page as its document has it; what it is in the check depends on what is known of its address.
pub(super) struct Looked {
    pub url: String,
    scrape_id: PageId,
    status_code: Option<i64>,
    said: PageStatus,
    error: Option<String>,
    changed: Map<String, Value>,
    metadata: Map<String, Value>,
}

impl Looked {
    /// Reads a document. Computes.
    pub(super) fn read(document: &StoredDocument) -> StoreResult<Self> {
        let raw: &RawValue = &document.json;
        let Document { change_tracking, mut metadata } = serde_json::from_str(raw.get())?;
        let url = metadata.get("sourceURL").or_else(|| metadata.get("url")).and_then(Value::as_str).unwrap_or_default();
        let (url, status_code) = (url.to_owned(), metadata.get("statusCode").and_then(Value::as_i64));
        let error = metadata.get("error").and_then(Value::as_str).map(str::to_owned);
        metadata.retain(|name, _| KEPT.contains(&name.as_str()));
        for text in metadata.values_mut() {
            if let Value::String(text) = text {
                *text = text.chars().take(MAX_TEXT).collect();
            }
        }
        let Some(tracked) = change_tracking else {
            // The document is lost, or was stored by another build.
            let error = error.or_else(|| Some("The page was not compared.".to_owned()));
            let (said, changed) = (PageStatus::Error, Map::new());
            return Ok(Self { url, scrape_id: document.page_id, status_code, said, error, changed, metadata });
        };
        let said = tracked.change_status.parse().unwrap_or(PageStatus::Error);
        let changed = if said == PageStatus::Changed { tracked.changed() } else { Map::new() };
        Ok(Self { url, scrape_id: document.page_id, status_code, said, error: None, changed, metadata })
    }

    /// Whether the language model has said something of its change.
    pub(super) fn is_judged(&self) -> bool {
        self.changed.contains_key("judgment")
    }

    /// What it is in a check. Computes.
    pub(super) fn found(self, target: &str, known: Option<&Known>) -> StoreResult<Found> {
        let was_gone = known.is_some_and(|known| known.is_gone);
        let status = match self.said {
            PageStatus::Error => PageStatus::Error,
            // Once it is known to be gone, that is nothing new.
            PageStatus::Removed if was_gone => PageStatus::Same,
            PageStatus::Removed => PageStatus::Removed,
            _ if known.is_none() || was_gone => PageStatus::New,
            said => said,
        };
        let mut detail = if status == PageStatus::Changed { self.changed } else { Map::new() };
        detail.insert("metadata".to_owned(), Value::Object(self.metadata));
        Ok(Found {
            id: PageId::new(),
            target_id: target.to_owned(),
            url: self.url,
            status,
            previous_scrape_id: known.and_then(|known| known.scrape_id),
            current_scrape_id: Some(self.scrape_id),
            status_code: self.status_code,
            error: self.error,
            detail: Detail::new(&detail)?,
        })
    }
}

impl Tracked {
    /// Diff, snapshot and judgement as the wire has them.
    fn changed(self) -> Map<String, Value> {
        let mut detail = Map::new();
        let mut diff = self.diff.unwrap_or_default();
        // The fields stand where the lines as data do otherwise.
        if let Some(fields) = self.json {
            diff.insert("json".to_owned(), fields);
        }
        detail.insert("diff".to_owned(), Value::Object(diff));
        if let Some(data) = self.data {
            detail.insert("snapshot".to_owned(), json!({ "json": data }));
        }
        if let Some(judgement) = self.judgment {
            detail.insert("judgment".to_owned(), judgement);
        }
        detail
    }
}

/// A page that could not be read.
pub(super) fn failed(page: PageRow, target: &str, known: Option<&Known>) -> StoreResult<Found> {
    Ok(Found {
        id: PageId::new(),
        target_id: target.to_owned(),
        url: page.url,
        status: PageStatus::Error,
        previous_scrape_id: known.and_then(|known| known.scrape_id),
        current_scrape_id: Some(page.id),
        status_code: None,
        error: Some(page.error.unwrap_or_else(|| "The page failed.".to_owned())),
        detail: Detail::new(&json!({}))?,
    })
}

/// A page that the crawl did not come to any more.
pub(super) fn gone(url: String, scrape: Option<PageId>, target: &str) -> StoreResult<Found> {
    Ok(Found {
        id: PageId::new(),
        target_id: target.to_owned(),
        url: without_user(&url),
        status: PageStatus::Removed,
        previous_scrape_id: scrape,
        current_scrape_id: None,
        status_code: None,
        error: None,
        detail: Detail::new(&json!({}))?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::value::to_raw_value;

    use super::*;

    fn looked(document: Value) -> Looked {
        Looked::read(&StoredDocument { seq: 1, page_id: PageId::new(), json: to_raw_value(&document).unwrap() })
            .unwrap()
    }

    fn status(said: &str, known: Option<bool>) -> PageStatus {
        let document =
            json!({"metadata": {"sourceURL": "u", "statusCode": 200}, "changeTracking": {"changeStatus": said}});
        let known = known.map(|is_gone| Known { scrape_id: None, is_gone });
        looked(document).found("t", known.as_ref()).unwrap().status
    }

    #[test]
    fn what_a_page_is_depends_on_what_is_known_of_it() {
        use PageStatus::{Changed, New, Removed, Same};
        assert_eq!([status("new", None), status("same", None), status("removed", None)], [New, New, Removed]);
        let known = ["new", "same", "changed", "removed"].map(|said| status(said, Some(false)));
        assert_eq!(known, [New, Same, Changed, Removed]);
        assert_eq!([status("changed", Some(true)), status("removed", Some(true))], [New, Same]);
        let lost = looked(json!({"metadata": {"sourceURL": "u", "error": "lost"}})).found("t", None).unwrap();
        assert_eq!((lost.status, lost.error.as_deref()), (PageStatus::Error, Some("lost")));
    }

    #[test]
    fn diffs_have_the_form_of_their_modes() {
        let changed = |tracked: Value| {
            let mut tracked = tracked;
            tracked["changeStatus"] = "changed".into();
            let looked = looked(json!({"metadata": {"sourceURL": "u", "title": "x".repeat(5_000), "other": 1},
                "changeTracking": tracked}));
            assert!(
                looked.metadata["title"].as_str().unwrap().len() == MAX_TEXT && looked.metadata.get("other").is_none()
            );
            Value::Object(looked.changed)
        };
        let lines = json!({"text": "-a\n+b", "json": {"files": []}});
        assert_eq!(changed(json!({"diff": lines})), json!({"diff": lines}));
        let fields = json!({"price": {"previous": 1, "current": 2}});
        let only = changed(json!({"json": fields, "data": {"price": 2}}));
        assert_eq!(only, json!({"diff": {"json": fields}, "snapshot": {"json": {"price": 2}}}));
        let both =
            changed(json!({"diff": lines, "json": fields, "data": {"price": 2}, "judgment": {"meaningful": true}}));
        assert_eq!(both["diff"], json!({"text": "-a\n+b", "json": fields}));
        assert_eq!(both["judgment"]["meaningful"], true);
    }
}
