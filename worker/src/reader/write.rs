//! Has the model write an extractor for the pages of one template, from pages that it has read (mode `learn`).
//!
//! What it writes is data in the form of [`crate::extract::extractor`]; who asks judges it on the pages.

use serde_json::{Value, json};
use url::Url;

use super::ask::Task;
use super::passages::{self, Excerpt};
use super::{LONG, PageText, ReadError, Reader};

/// Extractors that are written until one is good.
pub const TRIES: usize = 3;
/// Tokens that are kept for the rules and for what was said before.
const TALK: u32 = 6_000;

const RULES: &str = "The page is not one page but several pages of one template of a site, each as its markup in short (texts \
    are cut where … stands) with the data that was read there. Write one extractor that reads the data of every page of this \
    template, also of those that you are not shown. Answer with {\"extractor\": NODE}. A NODE is one of:\n\
    - {\"fields\": {\"name\": NODE, …}, \"within\": SELECTOR}: an object, with every field of the schema and no other; \
    `within` is optional and names the element inside of which its fields are.\n\
    - {\"each\": SELECTOR, \"item\": NODE}: a list with an item for each element; selectors of the item look inside of it, \
    and {} is the element's own text.\n\
    - {\"select\": SELECTOR, \"at\": 0, \"take\": TAKE, \"steps\": [STEP, …], \"default\": VALUE}: a value. All are optional. \
    `at` says which of the elements (0 is the first, -1 the last).\n\
    SELECTOR is a CSS selector without :has and :contains; :scope is the element that is looked inside of. TAKE is \"text\" \
    (as if left out), \"own\" (text without that of elements inside), \"html\", \"markdown\", \"exists\" (true or false) or \
    {\"attribute\": \"name\"}. A STEP is \"lower\", \"upper\", \"url\" (absolute), \"number\" or \"integer\" or {\"number\": \
    \",\"} (with its decimal mark), {\"date\": \"%d.%m.%Y\"} (strftime; gives 2026-01-31), {\"match\": \"regular expression\"} \
    (its first group, or all of it), {\"replace\": {\"pattern\": \"…\", \"with\": \"…\"}}, {\"after\": \"text\"}, {\"before\": \
    \"text\"}, {\"map\": {\"In stock\": true, \"Sold out\": false}} or {\"split\": \",\"} (a list; further steps are for each \
    part). Choose selectors that say what something is (ids, classes, attributes) before ones that count. For a field that no \
    page has, name the selector that it would likely have. Copy no data of the pages into the extractor.";

/// A page that is shown for an extractor to be written.
#[derive(Debug)]
pub struct Shown {
    pub url: Url,
    /// Its markup in short.
    pub outline: String,
    /// What was read there.
    pub data: Value,
}

impl Reader<'_> {
    /// Bytes of markup for each of so many pages.
    pub fn room_for_pages(&self, pages: usize) -> usize {
        let context = self.model.as_ref().map_or(0, |model| model.settings().context);
        // What was read of the pages stands beside their markup.
        passages::room(context, LONG + TALK) * 3 / 4 / pages.max(1)
    }

    /// Has an extractor written and, as long as `check` says what is wrong with it, put right.
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub async fn write_extractor<T, Checked: Future<Output = Result<T, String>>>(
        &self,
        schema: &Value,
        prompt: Option<&str>,
        pages: &[Shown],
        check: impl Fn(Value) -> Checked,
    ) -> Result<T, ReadError> {
        let Some(first) = pages.first() else { return Err(ReadError::Unusable("there are no pages".to_owned())) };
        let mut text = String::new();
        for (n, page) in pages.iter().enumerate() {
            text.push_str(&format!(
                "Page {}: {}\nIts markup:\n{}\nThe data that was read there:\n{}\n\n",
                n + 1,
                page.url,
                page.outline,
                page.data
            ));
        }
        let mut wish = format!("The data fits this JSON schema:\n{schema}\n");
        if let Some(prompt) = prompt {
            wish.push_str(&format!("What the person wants as data:\n{prompt}\n"));
        }
        let task = Task {
            rules: RULES,
            wish,
            name: "extractor",
            schema: &json!({"type": "object", "properties": {"extractor": {"type": "object"}}, "required": ["extractor"]}),
            strict: false,
            max_tokens: LONG,
        };
        let page = PageText { url: &first.url, markdown: &text, structured: None };
        let excerpt = Excerpt::new(page, usize::MAX, None);
        self.ask_often(page, &excerpt, &task, TRIES, |mut said| check(said["extractor"].take())).await
    }
}
