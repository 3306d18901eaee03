//! The body of an answer (wire 20). No group and no key of a hit is null: clients go through them without a look.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use weir_shared::domain::search::Source;
use weir_shared::ids::JobId;
use weir_shared::search::Hit;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SearchAnswer")]
pub(in crate::endpoints) struct Body {
    success: bool,
    pub data: Groups,
    /// What could not be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    pub id: JobId,
    /// With the pages that were scraped.
    pub credits_used: i64,
}

/// Those that were asked for.
#[derive(Serialize, JsonSchema, Default)]
#[schemars(rename = "SearchGroups")]
pub(in crate::endpoints) struct Groups {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web: Option<Vec<WebHit>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    news: Option<Vec<NewsHit>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    images: Option<Vec<ImageHit>>,
}

/// A page of the web; one that was scraped has the fields of its document as well.
#[derive(Serialize, JsonSchema)]
pub(in crate::endpoints) struct WebHit {
    pub url: String,
    pub title: String,
    /// Passages of the page that have to do with the query, where it is at hand; else the search engine's text.
    pub description: String,
    /// From 1.
    position: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'static str>,
    #[serde(flatten)]
    pub document: Map<String, Value>,
}

/// An article; one that was scraped has the fields of its document as well.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NewsHit {
    title: String,
    url: String,
    snippet: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_url: Option<String>,
    position: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'static str>,
    #[serde(flatten)]
    document: Map<String, Value>,
}

/// A picture.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ImageHit {
    title: String,
    image_url: String,
    /// Pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    image_width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_height: Option<u32>,
    /// The page that shows it.
    url: String,
    position: usize,
}

impl Body {
    pub(super) fn new(id: JobId, groups: Vec<(Source, Vec<Item>)>, warnings: Vec<String>, credits_used: i64) -> Self {
        let mut data = Groups::default();
        for (source, items) in groups {
            let items = (1..).zip(items);
            match source {
                Source::Web => data.web = Some(items.map(|(n, item)| item.web(n)).collect()),
                Source::News => data.news = Some(items.map(|(n, item)| item.news(n)).collect()),
                Source::Images => data.images = Some(items.map(|(n, item)| item.image(n)).collect()),
            }
        }
        let warning = (!warnings.is_empty()).then(|| warnings.join(" "));
        Self { success: true, data, warning, id, credits_used }
    }
}

/// What became of a page that was to be scraped.
pub(super) enum Page {
    Document(Map<String, Value>),
    /// With its status and a sentence.
    Failed(u16, String),
}

/// A hit on its way into the answer.
pub(super) struct Item {
    hit: Hit,
    /// The place of its page among those that are scraped.
    pub page: Option<usize>,
    document: Map<String, Value>,
    highlights: Option<String>,
}

impl Item {
    pub fn new(hit: Hit) -> Self {
        Self { hit, page: None, document: Map::new(), highlights: None }
    }

    pub fn url(&self) -> &str {
        &self.hit.url
    }

    /// The page's text, if it was scraped as markdown.
    pub fn markdown(&self) -> Option<&str> {
        self.document.get("markdown").and_then(Value::as_str)
    }

    /// Passages instead of the search engine's text.
    pub fn highlight(&mut self, passages: String) {
        self.highlights = Some(passages);
    }

    /// It stays a hit, with the reason why there is no document.
    pub fn fail(&mut self, status: u16, error: String) {
        self.document = Map::from_iter([("metadata".to_owned(), json!({"statusCode": status, "error": error}))]);
    }

    /// Takes what became of its page. A client makes a document of it and looks for title and description there.
    pub fn take_page(&mut self, pages: &HashMap<usize, Page>) {
        match self.page.and_then(|place| pages.get(&place)) {
            None => {}
            Some(Page::Failed(status, error)) => self.fail(*status, error.clone()),
            Some(Page::Document(fields)) => {
                self.document = fields.clone();
                let metadata = self.document.entry("metadata").or_insert_with(|| json!({}));
                for (name, value) in
                    [("sourceURL", &self.hit.url), ("title", &self.hit.title), ("description", &self.hit.text)]
                {
                    if metadata.get(name).is_none_or(Value::is_null) && !value.is_empty() {
                        metadata[name] = json!(value);
                    }
                }
            }
        }
    }

    fn description(&mut self) -> String {
        self.highlights.take().unwrap_or_else(|| std::mem::take(&mut self.hit.text))
    }

    fn category(&self) -> Option<&'static str> {
        self.hit.category.map(|category| category.as_str())
    }

    fn web(mut self, position: usize) -> WebHit {
        let (description, category) = (self.description(), self.category());
        WebHit { url: self.hit.url, title: self.hit.title, description, position, category, document: self.document }
    }

    fn news(mut self, position: usize) -> NewsHit {
        let (snippet, category) = (self.description(), self.category());
        let Hit { title, url, date, image: image_url, .. } = self.hit;
        NewsHit { title, url, snippet, date, image_url, position, category, document: self.document }
    }

    fn image(self, position: usize) -> ImageHit {
        let (image_width, image_height) = self.hit.size.unzip();
        let image_url = self.hit.image.unwrap_or_default();
        ImageHit { title: self.hit.title, image_url, image_width, image_height, url: self.hit.url, position }
    }
}
