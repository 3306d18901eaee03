//! A page as a task has it: what was scraped of it.

use serde_json::Value;
use url::Url;
use weir_shared::domain::document::Document;
use weir_shared::domain::job::PageState;
use weir_shared::ids::PageId;
use weir_shared::store::StoreError;
use weir_shared::store::work::documents;
use weir_shared::store::work::pages::PageRow;

use super::journal::{Halt, Journal};

/// A page that was scraped.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub id: PageId,
    /// As it was asked for.
    pub asked: String,
    /// Where redirects have led.
    pub url: Url,
    pub title: String,
    pub markdown: String,
    pub links: Vec<String>,
    /// The data that was read with it.
    pub data: Option<Value>,
}

/// The page, or why there is none.
pub(super) async fn read(journal: &Journal, row: &PageRow) -> Result<Result<Page, String>, Halt> {
    let process = &journal.context.process;
    if row.state != PageState::Done {
        let why = row.error.clone().unwrap_or_else(|| "it was not read".to_owned());
        return Ok(Err(format!("{}: {why}", row.url)));
    }
    let stored = match documents::by_page(&process.db, &process.blobs, row.id).await {
        Ok(Some(stored)) => stored,
        // It does not come back, however often it is asked for.
        Ok(None) | Err(StoreError::Lost(_)) => return Ok(Err(format!("{}: its document is gone", row.url))),
        Err(error) => return Err(error.into()),
    };
    let Ok(document) = serde_json::from_str::<Document>(stored.json.get()) else {
        return Ok(Err(format!("{}: its document cannot be read", row.url)));
    };
    let text = |name: &str| match document.metadata.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(list)) => list.first().and_then(Value::as_str).unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    let ended = text("url");
    let asked = weir_shared::domain::target::fetch_url(&row.url);
    let Some(url) = Url::parse(&ended).ok().or(asked.ok()) else {
        return Ok(Err(format!("{}: it has no address", row.url)));
    };
    if let Some(status) = document.metadata.get("statusCode").and_then(Value::as_i64).filter(|status| *status >= 400) {
        return Ok(Err(format!("{}: the page answered with status {status}", row.url)));
    }
    Ok(Ok(Page {
        id: row.id,
        asked: row.url.clone(),
        url,
        title: text("title"),
        markdown: document.markdown.unwrap_or_default(),
        links: document.links.unwrap_or_default(),
        data: document.json,
    }))
}
