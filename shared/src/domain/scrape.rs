//! What one page is scraped with (spec 4.7, wire 3): the options after validation.
//!
//! The wire form is parsed once, in [`super::scrape_request`]; past that, every value here is in range.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action::Action;
use super::location::Location;
use super::profile::ProfileUse;
use super::screenshot::Screenshot;
use super::site_rules::SiteRules;
use super::upload::Upload;
use super::watch::Watch;
use crate::traces::TraceParent;

/// Options of a scrape, the same for a direct scrape, a batch and later a crawl.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScrapeOptions {
    /// What to answer; never empty, no duplicates. Default: markdown.
    pub formats: Vec<Format>,
    /// Leave navigation, ads, footers and the like out of markdown and html. Default true.
    pub only_main_content: bool,
    /// Leave out of it, too, what most pages of the site have, once enough of them are known. Default true.
    pub site_templates: bool,
    /// Let a language model take what surrounds the content out of markdown. Default false.
    pub only_clean_content: bool,
    /// Fail the page when its text tries to instruct a language model. Default false.
    pub check_prompt_injection: bool,
    /// CSS selectors: only these elements are kept. Empty: all.
    pub include_tags: Vec<String>,
    /// CSS selectors of elements to drop.
    pub exclude_tags: Vec<String>,
    /// Extra request headers.
    pub headers: BTreeMap<String, String>,
    /// Milliseconds to wait after load besides the smart wait, 0 to 60,000.
    pub wait_for: u32,
    /// Emulate a phone. Default false.
    pub mobile: bool,
    /// Accept untrusted certificates. Default true.
    pub skip_tls_verification: bool,
    /// The caller has said so itself, and not only not said otherwise. Default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tls_consent: bool,
    /// Milliseconds for the whole page, 1,000 to 300,000. Default 60,000.
    pub timeout: u32,
    /// What is done on the page, in this order, before it is read. Empty: nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// Country and languages to appear from.
    pub location: Option<Location>,
    /// Replace base64 images in markdown by a placeholder. Default true.
    pub remove_base64_images: bool,
    /// Block ads and consent pop-ups. Default true.
    pub block_ads: bool,
    /// Which proxies to use. Default `auto`.
    pub proxy: ProxyMode,
    /// Data of persons to take out of what is delivered; `None`: nothing is.
    pub redact_pii: Option<Redaction>,
    /// Which files are turned into documents. Default: PDFs.
    pub parsers: Parsers,
    /// Sites that the page may not have to do with, redirects and what it loads included.
    #[serde(skip_serializing_if = "SiteRules::is_empty")]
    pub sites: SiteRules,
    #[serde(flatten)]
    pub cache: CacheOptions,
    /// What the browser that loads the page knows from before, and whether it keeps what is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileUse>,
    /// Nothing of content or addresses stays once it is delivered. Default false.
    #[serde(rename = "zeroDataRetention", skip_serializing_if = "std::ops::Not::not")]
    pub zero_retention: bool,
    /// The file that is read instead of an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload: Option<Upload>,
    /// The request's span, which the pages' spans are below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<TraceParent>,
}

impl Default for ScrapeOptions {
    fn default() -> Self {
        Self {
            formats: vec![Format::Markdown],
            only_main_content: true,
            site_templates: true,
            only_clean_content: false,
            check_prompt_injection: false,
            include_tags: Vec::new(),
            exclude_tags: Vec::new(),
            headers: BTreeMap::new(),
            wait_for: 0,
            mobile: false,
            skip_tls_verification: true,
            tls_consent: false,
            timeout: 60_000,
            actions: Vec::new(),
            location: None,
            remove_base64_images: true,
            block_ads: true,
            proxy: ProxyMode::Auto,
            redact_pii: None,
            parsers: Parsers::default(),
            sites: SiteRules::default(),
            cache: CacheOptions::default(),
            profile: None,
            zero_retention: false,
            upload: None,
            trace_parent: None,
        }
    }
}

/// How old a cached page may be, milliseconds: two days (spec 4.7).
pub const MAX_AGE_MS: i64 = 172_800_000;
/// The same with `lockdown`, and the longest that a page is kept: two years.
pub const LOCKDOWN_MAX_AGE_MS: i64 = 63_072_000_000;

/// What a request wants of the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CacheOptions {
    /// A page at most this old is answered without asking the site, milliseconds; 0: none is.
    pub max_age: i64,
    /// Only the cache is asked, whatever `max_age` says, for a page at least this old, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_age: Option<i64>,
    /// Keep the page for later requests. Default true.
    pub store_in_cache: bool,
    /// Only the cache is asked, and nothing of the request is kept. Default false.
    pub lockdown: bool,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self { max_age: MAX_AGE_MS, min_age: None, store_in_cache: true, lockdown: false }
    }
}

impl CacheOptions {
    /// Whether the site may not be asked.
    pub fn is_only_cache(&self) -> bool {
        self.lockdown || self.min_age.is_some()
    }

    /// Whether the cache is to be asked at all.
    pub fn is_asked(&self) -> bool {
        self.is_only_cache() || self.max_age > 0
    }

    /// Whether what the site answers is kept for later requests.
    pub fn is_kept(&self) -> bool {
        self.store_in_cache && !self.is_only_cache()
    }
}

/// Which certificates of sites are good enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificates {
    /// Those that verify.
    Trusted,
    /// Any, as long as nothing is sent that only the caller has: the default of the wire, which nobody asked for.
    AnyWithoutSecrets,
    /// Any: the caller has said so.
    Any,
}

impl Certificates {
    /// Whether a connection over a certificate that does not verify may be used. `has_secrets`: something would be sent
    /// over it that only the caller has.
    pub const fn allow_untrusted(self, has_secrets: bool) -> bool {
        match self {
            Self::Trusted => false,
            Self::AnyWithoutSecrets => !has_secrets,
            Self::Any => true,
        }
    }
}

impl ScrapeOptions {
    /// Which certificates of sites are good enough.
    pub const fn certificates(&self) -> Certificates {
        match (self.skip_tls_verification, self.tls_consent) {
            (false, _) => Certificates::Trusted,
            (true, false) => Certificates::AnyWithoutSecrets,
            (true, true) => Certificates::Any,
        }
    }

    /// The screenshot to take, if one is asked for.
    pub fn screenshot(&self) -> Option<&Screenshot> {
        self.formats.iter().find_map(|f| match f {
            Format::Screenshot(shot) => Some(shot),
            _ => None,
        })
    }

    /// How changes are tracked, if they are.
    pub fn change_tracking(&self) -> Option<&ChangeTracking> {
        self.formats.iter().find_map(|f| match f {
            Format::ChangeTracking(tracking) => Some(tracking),
            _ => None,
        })
    }

    /// Whether `format` is asked for, options aside.
    pub fn wants(&self, format: &Format) -> bool {
        self.formats.iter().any(|f| std::mem::discriminant(f) == std::mem::discriminant(format))
    }

    /// What the attributes format asks for.
    pub fn attributes(&self) -> Option<&[AttributeSelector]> {
        self.formats.iter().find_map(|f| match f {
            Format::Attributes { selectors } => Some(selectors.as_slice()),
            _ => None,
        })
    }

    /// The data that is to be read without a language model, once it is known how.
    pub fn learned(&self) -> Option<&JsonFormat> {
        self.formats.iter().find_map(|f| match f {
            Format::Json(json) if json.learn => Some(json),
            _ => None,
        })
    }

    /// Whether the page's text is needed although it may not be asked for.
    pub fn needs_text(&self) -> bool {
        self.checks_injection() || self.formats.iter().any(Format::is_read)
    }

    /// Whether a text that instructs a language model fails the page.
    pub fn checks_injection(&self) -> bool {
        let asks = |f: &Format| matches!(f, Format::Json(json) if json.check_prompt_injection);
        self.check_prompt_injection || self.formats.iter().any(asks)
    }

    /// Whether only a browser can honour these options.
    pub fn needs_browser(&self) -> bool {
        if self.wants(&Format::RawBase64) {
            return false;
        }
        let is_drawn = self.screenshot().is_some() || self.wants(&Format::Branding);
        is_drawn || self.wait_for > 0 || self.mobile || !self.actions.is_empty() || self.profile.is_some()
    }
}

/// One thing to answer for a page (wire 3.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Format {
    Markdown,
    Html,
    RawHtml,
    Links,
    Images,
    Screenshot(Screenshot),
    /// Values of attributes of the elements that selectors choose.
    Attributes {
        selectors: Vec<AttributeSelector>,
    },
    /// Colours, fonts, logo and the like of the rendered page.
    Branding,
    /// The product that the page offers.
    Product,
    /// The menu that the page shows.
    Menu,
    /// The body of the site's response as it is. It stands alone.
    RawBase64,
    /// Address of the sound that the page offers.
    Audio,
    /// Address of the film that the page offers.
    Video,
    /// What the page says, in short.
    Summary,
    Json(JsonFormat),
    /// Answered in `answer`.
    Question(Question),
    Highlights(Highlights),
    /// The older form of question and highlights; answered in `answer`.
    Query(Query),
    /// How the page has changed since the team last tracked it; comes with markdown.
    ChangeTracking(ChangeTracking),
}

impl Format {
    /// Its name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Html => "html",
            Self::RawHtml => "rawHtml",
            Self::Links => "links",
            Self::Images => "images",
            Self::Screenshot(_) => "screenshot",
            Self::Summary => "summary",
            Self::Json(_) => "json",
            Self::Question(_) => "question",
            Self::Highlights(_) => "highlights",
            Self::Query(_) => "query",
            Self::ChangeTracking(_) => "changeTracking",
            Self::Attributes { .. } => "attributes",
            Self::Branding => "branding",
            Self::Product => "product",
            Self::Menu => "menu",
            Self::RawBase64 => "rawBase64",
            Self::Audio => "audio",
            Self::Video => "video",
        }
    }

    /// Whether a language model answers it from the page's text.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Summary | Self::Json(_) | Self::Question(_) | Self::Highlights(_) | Self::Query(_))
    }
}

/// What to read out of a page as data. Without either field: its main facts, in the model's own form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JsonFormat {
    /// What is wanted, at most 10,000 characters; in version 1 of the API with as many that stand before it.
    pub prompt: Option<String>,
    /// JSON schema that the data fits; valid and bounded, see [`super::json_schema`].
    pub schema: Option<Value>,
    /// The older place of [`ScrapeOptions::check_prompt_injection`].
    pub check_prompt_injection: bool,
    /// Mode `learn`: the model learns to read the pages of a site, which then are read without it. There is a schema.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub learn: bool,
}

/// A question about the page, 1 to 10,000 characters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub question: String,
}

/// What to quote the page about, 1 to 10,000 characters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Highlights {
    pub query: String,
}

/// The older form of both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Query {
    /// 1 to 10,000 characters.
    pub prompt: String,
    /// Quote the page instead of answering. Default false.
    pub direct_quote: bool,
}

/// How the changes of a page are told (wire 3.4).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangeTracking {
    /// Mode `git-diff`: the lines that differ.
    pub git_diff: bool,
    /// Mode `json`: the fields that differ, read by a language model.
    pub json: bool,
    /// What those fields are, as for [`JsonFormat`].
    pub schema: Option<Value>,
    pub prompt: Option<String>,
    /// Keeps histories of one page apart. At most 256 characters.
    pub tag: Option<String>,
    /// Set where a monitor looks: callers cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<Box<Watch>>,
}

/// One attribute of the elements that a CSS selector chooses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeSelector {
    /// 1 to 1,000 characters.
    pub selector: String,
    /// 1 to 1,000 characters.
    pub attribute: String,
}

/// Which proxies to use (spec 4.7). `stealth` on the wire is `Enhanced`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyMode {
    Basic,
    Enhanced,
    Auto,
}

/// What is taken out of a page's texts, and how (wire 3.2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Redaction {
    pub mode: RedactMode,
    /// Kinds of data; empty: all that the mode can find.
    pub entities: Vec<Entity>,
    pub replace_style: ReplaceStyle,
}

impl Redaction {
    /// The kinds to take out.
    pub fn entities(&self) -> Vec<Entity> {
        match (self.entities.as_slice(), self.mode) {
            ([], RedactMode::Fast) => Entity::BY_FORM.to_vec(),
            ([], _) => Entity::BY_FORM.iter().chain(Entity::BY_SENSE).copied().collect(),
            (named, _) => named.to_vec(),
        }
    }

    /// Those of them that only a language model can tell.
    pub fn names(&self) -> Vec<Entity> {
        self.entities().into_iter().filter(|entity| Entity::BY_SENSE.contains(entity)).collect()
    }

    /// Whether the caller has named kinds that only a language model can tell, not only left them in the default.
    pub fn asks_for_names(&self) -> bool {
        self.entities.iter().any(|entity| Entity::BY_SENSE.contains(entity))
    }

    /// Whether a form counts without its check.
    pub fn is_aggressive(&self) -> bool {
        self.mode == RedactMode::Aggressive
    }
}

/// How data of persons is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RedactMode {
    /// By form, with its check where it has one; names and places by a language model.
    #[default]
    Accurate,
    /// The same, and a form counts without its check.
    Aggressive,
    /// By form only.
    Fast,
}

/// A kind of data of persons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Entity {
    Person,
    Email,
    Phone,
    /// Where a person lives or is.
    Location,
    /// Cards, accounts, social security numbers.
    Financial,
    /// Keys, tokens, passwords, IP addresses.
    Secret,
}

impl Entity {
    /// Kinds that have a form.
    pub const BY_FORM: &[Self] = &[Self::Email, Self::Phone, Self::Financial, Self::Secret];
    /// Kinds that have none.
    pub const BY_SENSE: &[Self] = &[Self::Person, Self::Location];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "PERSON",
            Self::Email => "EMAIL",
            Self::Phone => "PHONE",
            Self::Location => "LOCATION",
            Self::Financial => "FINANCIAL",
            Self::Secret => "SECRET",
        }
    }
}

/// What stands in place of what was taken out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplaceStyle {
    /// `<EMAIL>`
    #[default]
    Tag,
    /// As many `*` as it had characters.
    Mask,
    /// Nothing.
    Remove,
}

/// Which files are turned into documents (wire 3.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Parsers {
    /// How PDFs are read; absent: they are answered as base64.
    pub pdf: Option<PdfParser>,
    /// Read the text of images, where a program for that is installed.
    pub image: bool,
}

impl Default for Parsers {
    fn default() -> Self {
        Self { pdf: Some(PdfParser::default()), image: false }
    }
}

/// How PDFs are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PdfParser {
    pub mode: PdfMode,
    /// Only this many pages, from the first, 1 to 10,000. Absent: all, up to [`MAX_PDF_PAGES`].
    pub max_pages: Option<u32>,
    /// Answer each page's markdown by itself too.
    pub pages: bool,
    /// Mark in the markdown where a page begins.
    pub page_markers: bool,
    /// Answer the blocks of each page too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blocks: bool,
}

/// Most pages read of one PDF (wire 3.5).
pub const MAX_PDF_PAGES: u32 = 10_000;

/// Where the text of a PDF comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PdfMode {
    /// The file's own text only.
    Fast,
    /// The file's own text; pages without any are recognised from their picture.
    #[default]
    Auto,
    /// Every page is recognised from its picture.
    Ocr,
}
