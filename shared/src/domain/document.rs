//! The result of one page (wire 3.3): only what was asked for is present.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::action::ActionResults;
use super::goods::{MenuProfile, ProductProfile};
use super::pdf_blocks::PdfPageBlocks;

/// One page's result as the client gets it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Values of attributes, in the order in which they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Vec<AttributeValues>>,
    /// What the rendered page looks like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branding: Option<Value>,
    /// The product that the page offers, where it offers one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<ProductProfile>,
    /// The menu that the page shows, where it shows one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub menu: Option<MenuProfile>,
    /// The body of the site's response in base64, its content codings undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_base64: Option<String>,
    /// Absolute URL of a sound that the page offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<String>,
    /// Absolute URL of a film that the page offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<String>,
    /// A data URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screenshot: Option<String>,
    /// The markdown of each page of a PDF, when the parser is asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Vec<PdfPage>>,
    /// The blocks of each page of a PDF, when the parser is asked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Vec<PdfPageBlocks>>,
    /// Present when actions were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<ActionResults>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What a language model read out of the page, as asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Passages in the page's own words, with empty lines between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highlights: Option<String>,
    /// How the page has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_tracking: Option<Value>,
    /// What the caller should know about how this page was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Keys of wire 3.3; strings, arrays of strings, integers or booleans.
    #[schemars(schema_with = "metadata_schema")]
    pub metadata: Map<String, Value>,
}

/// One attribute of the elements that a selector chose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttributeValues {
    pub selector: String,
    pub attribute: String,
    /// As written, in document order, repeats included.
    pub values: Vec<String>,
}

/// One page of a PDF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PdfPage {
    /// From 1.
    pub page_number: u32,
    pub markdown: String,
}

/// The keys of `metadata` that are ours; the others are the page's own.
fn metadata_schema(_: &mut SchemaGenerator) -> Schema {
    let texts = json!({"type": ["string", "array"], "items": {"type": "string"}});
    json_schema!({
        "description": "What is known of the page; of one whose document is lost sourceURL, scrapeId and error alone. Keys beyond \
                        these are the page's own <meta> names.",
        "type": "object",
        "properties": {
            "title": texts, "description": texts, "language": texts, "keywords": texts,
            "sourceURL": {"type": "string", "description": "The address as it was asked for, without a name and a password."},
            "url": {"type": "string", "description": "The address after redirects."},
            "statusCode": {"type": "integer", "description": "HTTP status of the page."},
            "error": {"type": "string", "description": "Why the page is not what was asked for: its status is an error, or its document is lost."},
            "scrapeId": {"type": "string", "format": "uuid", "description": "For GET /v2/scrape/{id} and interact."},
            "contentType": {"type": "string"},
            "timezone": {"type": "string", "description": "The browser's, where one was used."},
            "proxyUsed": {"type": "string", "enum": ["basic", "stealth"]},
            "cacheState": {"type": "string", "enum": ["hit", "miss"], "description": "Absent where no cache was asked."},
            "cachedAt": {"type": "string", "format": "date-time"},
            "creditsUsed": {"type": "integer", "minimum": 0},
            "concurrencyLimited": {"type": "boolean", "description": "The page waited for a slot of its team."},
            "concurrencyQueueDurationMs": {"type": "integer", "minimum": 0},
            "readBy": {"type": "string", "enum": ["model", "extractor"], "description": "Who has read json in its mode learn."},
            "templateChars": {"type": "integer", "description": "Characters that were left out because most pages of the site have them."},
            "numPages": {"type": "integer", "description": "Pages of a PDF that were read; those that an office file counts."},
            "wordCount": {"type": "integer", "description": "Words, as an office file counts them."},
            "totalPages": {"type": "integer", "description": "Pages that it has."},
            "ogLocaleAlternate": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["sourceURL", "scrapeId"],
        "additionalProperties": texts
    })
}
