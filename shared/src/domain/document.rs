//! The result of one page (CONTRACT 3.3): only what was asked for is present.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::action::ActionResults;

/// One page's result as the client gets it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub markdown: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_html: Option<String>,
    /// Absolute URLs, no duplicates, document order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<String>>,
    /// Absolute URLs of images, no duplicates, document order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<String>>,
    /// A data URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<String>,
    /// Present when actions were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<ActionResults>,
    /// What the caller should know about how this page was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Keys of CONTRACT 3.3; strings, arrays of strings, integers or booleans.
    pub metadata: Map<String, Value>,
}
