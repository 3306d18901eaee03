//! What of a page the language model is given to read.

use serde_json::Value;
use url::Url;

/// A page as it is read.
#[derive(Debug, Clone, Copy)]
pub struct PageText<'a> {
    pub url: &'a Url,
    pub markdown: &'a str,
    /// What the page says of itself as data.
    pub structured: Option<&'a Value>,
}
