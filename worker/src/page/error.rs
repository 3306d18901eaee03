//! Why a page has no document, and whether another try or another proxy may bring one.

use std::time::Duration;

use url::Url;
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::error_code::ErrorCode;
use weir_shared::texts;
use weir_shared::time::Timestamp;

use crate::browser::RenderError;
use crate::fetch::FetchError;

/// Why a page has no document.
#[derive(Debug)]
pub struct PageError {
    pub code: ErrorCode,
    /// What clients are told.
    pub message: String,
    /// Another try may bring the page.
    pub is_retryable: bool,
    /// It was not this page's doing, as far as anybody knows: the try is not counted, where nobody waits on the line.
    pub is_uncounted: bool,
    /// Nothing has failed: another page goes first, and this one is to come back after so many milliseconds.
    pub early_ms: Option<i64>,
    /// The site wants to be asked again later, and the page can wait until then.
    pub rest: Option<Box<Rest>>,
    /// Whose doing it was, where that decides on the next proxy route.
    fault: Fault,
}

/// A site that wants to be asked again later.
#[derive(Debug)]
pub struct Rest {
    /// Who said so: where the redirects ended.
    pub url: Url,
    /// For how long.
    pub pause: Duration,
    /// When a page of a job comes back, once that is written down.
    pub run_at: Option<Timestamp>,
}

/// Who may be behind a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Anybody,
    /// The operator's proxy.
    Proxy,
    /// The site, perhaps because of who asks.
    Site,
}

impl PageError {
    /// Final: another try would end the same way.
    pub fn last(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            // A page's scripts, or a model, may have written some of it.
            message: texts::without_nul(message.into()),
            is_retryable: false,
            is_uncounted: false,
            early_ms: None,
            rest: None,
            fault: Fault::Anybody,
        }
    }

    /// Worth another try.
    pub fn again(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { is_retryable: true, ..Self::last(code, message) }
    }

    /// Another page goes first, and this one comes back. The code and the message are told only where it cannot wait.
    pub fn early(code: ErrorCode, message: impl Into<String>, pause_ms: i64) -> Self {
        Self { early_ms: Some(pause_ms), ..Self::last(code, message) }
    }

    /// The site has answered that it wants to be asked later.
    pub fn resting(status: u16, rest: Rest) -> Self {
        let host = rest.url.host_str().unwrap_or_default();
        let text = format!("{host} answered with status {status} and asks for a pause of {} s.", rest.pause.as_secs());
        Self { rest: Some(rest.into()), fault: Fault::Site, ..Self::again(ErrorCode::Site, text) }
    }

    /// The page took longer than its `timeout`.
    pub fn timed_out(options: &ScrapeOptions) -> Self {
        let text = format!("The page timed out: it was not done within {} ms.", options.timeout);
        Self::last(ErrorCode::Timeout, text)
    }

    /// A file that no document can be made of. `media_type` is empty where the site did not say.
    pub fn unsupported(media_type: &str) -> Self {
        let what = match media_type {
            "" => "this kind of file".to_owned(),
            _ => format!("files of type {media_type}"),
        };
        Self::last(ErrorCode::UnsupportedFile, format!("Weir cannot turn {what} into a document yet."))
    }

    /// The operator's proxy failed.
    pub fn is_of_proxy(&self) -> bool {
        self.fault == Fault::Proxy
    }

    /// The site may have refused us, and answer another address.
    pub fn may_be_refusal(&self) -> bool {
        self.fault != Fault::Anybody
    }
}

impl From<FetchError> for PageError {
    fn from(error: FetchError) -> Self {
        let fault = match error {
            FetchError::Proxy { .. } => Fault::Proxy,
            FetchError::Connect { .. } | FetchError::Cut { .. } | FetchError::Protocol { .. } => Fault::Site,
            _ => Fault::Anybody,
        };
        let is_retryable = error.is_retryable();
        Self { is_retryable, fault, ..Self::last(error.code(), error.message()) }
    }
}

impl From<RenderError> for PageError {
    fn from(error: RenderError) -> Self {
        let fault = match error {
            RenderError::Proxy => Fault::Proxy,
            RenderError::Site(_) => Fault::Site,
            _ => Fault::Anybody,
        };
        let (is_retryable, is_uncounted) = (error.is_retryable(), matches!(error, RenderError::AloneLater));
        Self { is_retryable, is_uncounted, fault, ..Self::last(error.code(), error.message()) }
    }
}
