//! Why a page was not rendered, and whether another try may help.

use url::Url;
use weir_shared::error_code::ErrorCode;
use weir_shared::guard::NOT_REACHED;

use super::cdp::CdpError;

/// The outcome of a render that gave no document.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RenderError {
    /// The host has no address.
    #[error("the host name could not be resolved")]
    Dns,
    /// The address guard refuses the target, or a redirect of it.
    #[error("the address is not a public one")]
    AddressBlocked,
    /// The caller does not want the target, or where it leads, to be asked.
    #[error("the site is blocked by the caller")]
    SiteRefused,
    /// The TLS handshake failed, or the certificate is not trusted.
    #[error("TLS failed ({0})")]
    Ssl(String),
    /// The operator's proxy could not be reached or did not do its work.
    #[error("the proxy could not reach the site")]
    Proxy,
    /// The target refused, reset or cut the connection, or broke HTTP.
    #[error("the site did not answer properly ({0})")]
    Site(String),
    /// The deadline passed.
    #[error("the page did not finish in time")]
    Timeout,
    /// The document is over 50 MiB, or the page filled the disk of its browser.
    #[error("the page is too large")]
    PageTooLarge,
    /// Its process took more memory than a page may.
    #[error("the page takes too much memory")]
    OutOfMemory,
    /// It kept the browser's own process so busy that no other page got on.
    #[error("the page keeps the browser from other pages")]
    Flooding,
    /// A download, or a document of another kind than HTML. Another engine may turn it into a document.
    #[error("the address gives no HTML page")]
    NotHtml {
        /// As the browser saw it; absent for downloads.
        content_type: Option<String>,
        /// Where it lies.
        at: FileAt,
    },
    /// An action cannot be carried out; the text names it.
    #[error("{0}")]
    Action(String),
    /// An earlier try has begun with the page's actions: its worker was lost, or its crawl asks for the page once more.
    #[error("the actions were begun before")]
    ActedBefore,
    /// The page's process died, usually for lack of memory.
    #[error("the page crashed")]
    PageCrashed,
    /// Chromium died or was recycled under the page.
    #[error("the browser was lost")]
    BrowserLost,
    /// The same, and there is no time left to open the page alone, as is due after that.
    #[error("the browser was lost, and the page has to wait")]
    AloneLater,
    /// Browsers die under the page, also where it is their only one.
    #[error("the page takes the browser down")]
    TakesBrowserDown,
    /// No browser can be started here.
    #[error("no browser is available: {0}")]
    Unavailable(String),
    /// The protocol gave an answer that makes no sense. A bug, or a Chromium that is too new.
    #[error("the browser misbehaved: {0}")]
    Internal(String),
}

/// Where a file lies that is no page.
#[derive(Debug, Clone)]
pub enum FileAt {
    /// At the address that was asked for.
    Asked,
    /// Where the page's scripts have led.
    Led(Box<LedFile>),
    /// Nobody else can ask for it: a form was sent for it, or it is made by the page.
    Nowhere,
}

/// A file that a page has led to.
#[derive(Debug, Clone)]
pub struct LedFile {
    /// Its address, `http` or `https`.
    pub url: Url,
    /// What the site has had the page's browser keep for that address, each as a `Set-Cookie` header has it.
    pub cookies: Vec<String>,
}

impl RenderError {
    /// The word for clients.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Dns => ErrorCode::DnsResolution,
            Self::AddressBlocked | Self::SiteRefused => ErrorCode::AddressBlocked,
            Self::Ssl(_) => ErrorCode::Ssl,
            Self::Site(_) | Self::Proxy => ErrorCode::Site,
            Self::Timeout => ErrorCode::Timeout,
            Self::PageTooLarge | Self::OutOfMemory | Self::Flooding => ErrorCode::PageTooLarge,
            Self::NotHtml { .. } => ErrorCode::UnsupportedFile,
            Self::Action(_) => ErrorCode::Action,
            Self::ActedBefore
            | Self::PageCrashed
            | Self::BrowserLost
            | Self::AloneLater
            | Self::TakesBrowserDown
            | Self::Unavailable(_)
            | Self::Internal(_) => ErrorCode::AllEnginesFailed,
        }
    }

    /// Whether the failure is ours, so that the same page may succeed on another try.
    pub fn is_retryable(&self) -> bool {
        let is_of_browser = matches!(self, Self::PageCrashed | Self::BrowserLost | Self::AloneLater);
        is_of_browser || matches!(self, Self::Proxy | Self::Unavailable(_) | Self::Internal(_))
    }

    /// Whether the page itself lies behind an ad host (a click counter, say), which was refused. A reader would get
    /// there, so it is opened once more with ads.
    pub fn is_of_ads(&self) -> bool {
        matches!(self, Self::Site(net) if net.contains("BLOCKED_BY_CLIENT"))
    }

    /// A sentence for the user of the API; holds no address and no page content.
    pub fn message(&self) -> String {
        match self {
            Self::Dns => {
                "The host name of the URL could not be resolved. Check the spelling, and that the domain exists.".into()
            }
            Self::AddressBlocked => format!("The URL leads to an address that is not a public one, {NOT_REACHED}."),
            Self::SiteRefused => "The URL leads to a site that is blocked by the lists of threatProtection.".into(),
            Self::Ssl(net) => format!(
                "The TLS connection to the site failed ({net}). Set skipTlsVerification to true to accept untrusted \
                 certificates; headers, cookies, profiles and passwords are not sent over one otherwise."
            ),
            Self::Site(net) => format!("The site refused or broke the connection ({net})."),
            Self::Proxy => "The proxy could not reach the site.".into(),
            Self::Timeout => "The page did not finish loading within the timeout.".into(),
            Self::PageTooLarge => "The page is larger than 50 MiB.".into(),
            Self::OutOfMemory => "The page took more memory in the browser than one page may have.".into(),
            Self::Flooding => "The page kept the browser busier than one page may.".into(),
            Self::NotHtml { content_type: Some(kind), .. } => {
                format!("The URL gives a file of type {kind}, which is not a page.")
            }
            Self::NotHtml { content_type: None, .. } => "The URL gives a download, not a page.".into(),
            Self::Action(text) => text.clone(),
            Self::ActedBefore => {
                "An earlier try had begun with the page's actions, which may have had their effect: they are not begun again."
                    .into()
            }
            Self::PageCrashed => "The page crashed the browser's page process.".into(),
            Self::BrowserLost | Self::AloneLater => "The browser stopped while it loaded the page.".into(),
            Self::TakesBrowserDown => "The page takes the browser down.".into(),
            Self::Unavailable(_) => "No browser is available at the moment.".into(),
            Self::Internal(_) => "The browser failed to load the page.".into(),
        }
    }

    /// What a `net::ERR_…` text of a main document means.
    pub(super) fn from_net(text: &str) -> Self {
        let net = text.trim_start_matches("net::").to_owned();
        let is = |part: &str| net.contains(part);
        if is("NAME_NOT_RESOLVED") || is("NAME_RESOLUTION_FAILED") {
            Self::Dns
        } else if is("ERR_CERT_") || is("SSL") || is("BAD_CERT") {
            Self::Ssl(net)
        } else if is("TIMED_OUT") {
            Self::Site(net)
        } else {
            match net.as_str() {
                // A download; of one with an error's status the browser says the other.
                "ERR_ABORTED" | "ERR_INVALID_RESPONSE" => Self::NotHtml { content_type: None, at: FileAt::Asked },
                "ERR_INSUFFICIENT_RESOURCES" | "ERR_OUT_OF_MEMORY" => Self::PageCrashed,
                // The guard refuses these ports, too: whoever sees one first, the answer is the same.
                "ERR_UNSAFE_PORT" => Self::AddressBlocked,
                _ => Self::Site(net),
            }
        }
    }
}

impl From<CdpError> for RenderError {
    fn from(error: CdpError) -> Self {
        match error {
            CdpError::Closed => Self::BrowserLost,
            CdpError::Timeout { .. } => Self::Timeout,
            other => Self::Internal(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn net_errors_of_the_main_document_have_their_codes() {
        for (text, code) in [
            ("net::ERR_NAME_NOT_RESOLVED", ErrorCode::DnsResolution),
            ("net::ERR_CERT_AUTHORITY_INVALID", ErrorCode::Ssl),
            ("net::ERR_SSL_PROTOCOL_ERROR", ErrorCode::Ssl),
            ("net::ERR_CONNECTION_REFUSED", ErrorCode::Site),
            ("net::ERR_EMPTY_RESPONSE", ErrorCode::Site),
            ("net::ERR_TOO_MANY_REDIRECTS", ErrorCode::Site),
            ("net::ERR_ABORTED", ErrorCode::UnsupportedFile),
            ("net::ERR_INVALID_RESPONSE", ErrorCode::UnsupportedFile),
            ("net::ERR_UNSAFE_PORT", RenderError::AddressBlocked.code()),
        ] {
            assert_eq!(RenderError::from_net(text).code(), code, "{text}");
        }
    }

    #[test]
    fn only_failures_of_ours_are_tried_again() {
        assert!(RenderError::BrowserLost.is_retryable() && RenderError::AloneLater.is_retryable());
        assert!(!RenderError::TakesBrowserDown.is_retryable());
        assert!(!RenderError::Timeout.is_retryable());
        assert!(!RenderError::OutOfMemory.is_retryable() && !RenderError::Flooding.is_retryable());
        assert!(!RenderError::Dns.is_retryable() && !RenderError::ActedBefore.is_retryable());
    }

    /// A crawl asks again for a page that it had left out, whose first try ended well.
    #[test]
    fn actions_that_were_begun_before_are_no_sign_of_a_lost_worker() {
        let text = RenderError::ActedBefore.message();
        assert!(!text.contains("lost") && text.contains("may have had their effect"), "{text}");
    }
}
