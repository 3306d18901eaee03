//! The table of every error code and status a client can meet. Codes are released words: they never change.
//!
//! A page's result, a webhook and an HTTP answer carry the same codes, so the table stands here and
//! not in the API. Statuses are plain numbers; only the API knows HTTP types.

/// Declares [`ErrorCode`]: `Variant = status, "CODE";` with `""` for outcomes that carry no `code` on the wire.
macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $status:literal, $code:literal;)+) => {
        /// One outcome a client can meet (wire 2).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $name,)+ }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name,)+];

            /// HTTP status of a direct answer with this code.
            pub const fn status(self) -> u16 { match self { $(Self::$name => $status,)+ } }

            /// The word on the wire; `None` where an outcome has a status and a text only.
            pub fn code(self) -> Option<&'static str> {
                let word = match self { $(Self::$name => $code,)+ };
                if word.is_empty() { None } else { Some(word) }
            }

            /// The variant for a stored word, for codes read back from rows.
            pub fn from_code(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|c| c.code() == Some(word))
            }
        }
    };
}

impl ErrorCode {
    /// Whether a page that failed so may well do better later, by itself: `WEIR_REPLAY_CRON` tries these again. Not
    /// where the answer would be the same (a name that does not exist, a file of the wrong kind), nor where the page took
    /// its workers down.
    pub const fn is_worth_replaying(self) -> bool {
        matches!(
            self,
            Self::Site
                | Self::Timeout
                | Self::ConcurrencyQueueTimeout
                | Self::AllEnginesFailed
                | Self::ModelFailed
                | Self::Unknown
        )
    }
}

error_codes! {
    /// The body breaks the schema (wire 2.2).
    BadRequest = 400, "BAD_REQUEST";
    /// The body is not JSON.
    InvalidJson = 400, "BAD_REQUEST_INVALID_JSON";
    /// A path id is not a UUID, or another plain 400 without a code.
    Invalid = 400, "";
    /// No key, or an unknown one (spec 5).
    Unauthorized = 401, "UNAUTHORIZED";
    /// The team cannot pay (`WEIR_CREDITS=metered`).
    InsufficientCredits = 402, "INSUFFICIENT_CREDITS";
    /// Another team owns the thing (spec 5.4).
    Forbidden = 403, "FORBIDDEN";
    /// The address guard refuses the target: not a public address.
    AddressBlocked = 403, "unsafe_domain_blocked";
    /// An agent is to use another product's catalogue (wire 23).
    ExchangeNotEnabled = 403, "exchange_not_enabled";
    /// No run of this team's is of that thread (wire 23).
    ThreadNotFound = 404, "thread_not_found";
    /// The body of the request did not come in time (wire 1.8).
    BodyTimeout = 408, "REQUEST_TIMEOUT";
    /// Another run of the thread has not ended (wire 23).
    ThreadBusy = 409, "thread_busy";
    /// Unknown, expired or not visible to this team.
    NotFound = 404, "NOT_FOUND";
    /// The path is known, the method is not.
    MethodNotAllowed = 405, "METHOD_NOT_ALLOWED";
    /// The thing is in a state that forbids the call: finished, key reused.
    Conflict = 409, "CONFLICT";
    /// A browser session that has ended (spec 7).
    Gone = 410, "GONE";
    /// The body is over 10 MB (wire 1.8).
    PayloadTooLarge = 413, "PAYLOAD_TOO_LARGE";
    /// Too many requests (spec 7.2).
    RateLimited = 429, "RATE_LIMITED";
    /// The team has as many pages waiting as it may.
    QueueFull = 429, "QUEUE_FULL";
    /// The team has as many uploads that were not parsed as it may (wire 21).
    UnparsedUploads = 429, "PARSE_UPLOAD_UNPARSED_LIMIT_REACHED";
    /// The team has as many browser sessions as it may (spec 8).
    TooManySessions = 429, "TOO_MANY_SESSIONS";
    /// An operation that this build does not have.
    NotImplemented = 501, "NOT_IMPLEMENTED";
    /// The browser failed before anything of the caller's was done: the official clients send the same request again.
    BrowserFailed = 502, "BROWSER_FAILED";
    /// No worker here takes browser sessions.
    BrowserNotConfigured = 503, "BROWSER_NOT_CONFIGURED";
    /// Database or every worker away; worth another try.
    Unavailable = 503, "UNAVAILABLE";
    /// No search backend is configured here (`WEIR_SEARCH_URL`).
    SearchNotConfigured = 503, "SEARCH_NOT_CONFIGURED";
    /// No search backend answered as it should. Not 502, which the official clients would send again.
    SearchBackendFailed = 503, "SEARCH_BACKEND_FAILED";
    /// The search did not end within its `timeout`.
    SearchTimeout = 408, "SEARCH_TIMEOUT";
    /// Nothing the client can act on. Details go to the log only.
    Unknown = 500, "UNKNOWN_ERROR";

    /// Name resolution failed. Answered as 200 with `success:false`, billed 1 credit (wire 2.3).
    DnsResolution = 200, "SCRAPE_DNS_RESOLUTION_ERROR";
    /// The certificate is not trusted where it has to be (`skipTlsVerification`), or the TLS handshake failed.
    Ssl = 500, "SCRAPE_SSL_ERROR";
    /// The target refused, reset or cut the connection, or broke HTTP.
    Site = 500, "SCRAPE_SITE_ERROR";
    /// Every engine failed for reasons of ours (browser crashed on each try, for instance).
    AllEnginesFailed = 500, "SCRAPE_ALL_ENGINES_FAILED";
    /// The page did not finish within `timeout`.
    Timeout = 408, "SCRAPE_TIMEOUT";
    /// The page waited too long for a free slot of its team.
    ConcurrencyQueueTimeout = 408, "CONCURRENCY_QUEUE_TIMEOUT";
    /// The body is larger than the caps, on the wire or unpacked.
    PageTooLarge = 500, "SCRAPE_PAGE_TOO_LARGE";
    /// The content type cannot be turned into a document.
    UnsupportedFile = 500, "SCRAPE_UNSUPPORTED_FILE_ERROR";
    /// What says it is a PDF is an HTML page, most likely one against robots.
    PdfAntibot = 500, "SCRAPE_PDF_ANTIBOT_ERROR";
    /// Reading the PDF takes longer than `timeout` leaves.
    PdfInsufficientTime = 500, "SCRAPE_PDF_INSUFFICIENT_TIME_ERROR";
    /// The PDF's pages are pictures, and their text is not to be or cannot be recognised here.
    PdfOcrRequired = 500, "SCRAPE_PDF_OCR_REQUIRED";
    /// The page offers no sound.
    AudioUnsupported = 500, "SCRAPE_AUDIO_UNSUPPORTED_URL";
    /// The page offers no film.
    VideoUnsupported = 500, "SCRAPE_VIDEO_UNSUPPORTED_URL";
    /// A file whose name and type say nothing that is read (wire 21).
    UnsupportedUpload = 400, "UNSUPPORTED_FILE_TYPE";
    /// An option that means nothing for a file (wire 21).
    ParseUnsupportedOptions = 400, "PARSE_UNSUPPORTED_OPTIONS";
    /// Only a rendered page has colours and fonts; the address gives a file.
    BrandingNotSupported = 500, "SCRAPE_BRANDING_NOT_SUPPORTED";
    /// An option that this build does not have yet and that would change the result.
    OptionNotAvailable = 400, "SCRAPE_OPTION_NOT_AVAILABLE";
    /// An action could not be carried out: its element is missing, its script failed (wire 3.6).
    Action = 500, "SCRAPE_ACTION_ERROR";
    /// Actions are asked for where none are possible: the address gives a file and no page.
    ActionsNotSupported = 400, "SCRAPE_ACTIONS_NOT_SUPPORTED";
    /// A format or option needs a language model, and none is configured here (`WEIR_LLM_URL`). Asking again
    /// does not help, so it is the caller's to change.
    ModelNotConfigured = 400, "SCRAPE_MODEL_NOT_CONFIGURED";
    /// The language model failed, or its answers could not be used.
    ModelFailed = 500, "SCRAPE_MODEL_FAILED";
    /// The page's text tries to instruct a language model, and the caller asked to be told.
    PromptInjection = 403, "SCRAPE_PROMPT_INJECTION_DETECTED";
    /// `minAge` was set and the cache holds no such page (spec 4.7).
    NoCachedData = 404, "SCRAPE_NO_CACHED_DATA";
    /// `lockdown` and a cache miss (spec 4.7).
    LockdownCacheMiss = 404, "SCRAPE_LOCKDOWN_CACHE_MISS";
    /// Another session or page is writing to the profile.
    ProfileBusy = 409, "SCRAPE_PROFILE_BUSY";
    /// The job was cancelled before the page was done.
    JobCancelled = 500, "SCRAPE_JOB_CANCELLED";
    /// The map was not done within its `timeout` (wire 9).
    MapTimeout = 408, "MAP_TIMEOUT";
    /// Neither the page nor a sitemap of the site could be read.
    MapFailed = 500, "MAP_FAILED";
    /// Tried as often as allowed; the page took its worker down each time.
    RetryLimit = 500, "SCRAPE_RETRY_LIMIT";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_code_stands_on_the_page_about_the_wire() {
        let page = include_str!("../../docs/wire.md");
        for error in ErrorCode::ALL {
            let Some(code) = error.code() else { continue };
            let (status, code) = (format!("| {}", error.status()), format!("`{code}`"));
            let is_told = page.lines().any(|line| line.starts_with(&status) && line.contains(&code));
            assert!(is_told, "docs/wire.md has no row of status {} with {code}", error.status());
        }
    }
}
