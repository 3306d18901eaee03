//! What can go wrong between us and a page, as the client is told it.
//!
//! Texts are for the user: they name the host that was asked for, never an address it resolved to,
//! a proxy, or a library's own words.

use std::error::Error as StdError;
use std::io;

use rustix::io::Errno;
use weir_shared::error_code::ErrorCode;
use weir_shared::guard::{GuardError, NOT_REACHED, PORT_NOT_REACHED};

use super::decode::BodyError;

/// Why a fetch gave no page. An answer of any status is a page and not one of these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The target, or a redirect's target, is not a public address.
    #[error("The address of {host} is not a public one, {}", NOT_REACHED)]
    Blocked { host: String },
    /// The target, or a redirect's target, is on a port that browsers refuse.
    #[error("Port {port} of {host} is one that browsers refuse, {}", PORT_NOT_REACHED)]
    Port { host: String, port: u16 },
    /// The caller does not want the target, or a redirect's target, to be asked.
    #[error("The site {host} is blocked by the lists of threatProtection")]
    SiteRefused { host: String },
    /// The name has no address, or is not a valid name.
    #[error("DNS resolution failed for hostname: {host}")]
    Dns { host: String },
    /// No name server answers for the name, or none can be asked.
    #[error("DNS resolution failed for hostname: {host}: no name server answers for it at the moment")]
    NameServer { host: String },
    /// The resolver did not answer in time.
    #[error("DNS resolution took too long for hostname: {host}")]
    DnsTimeout { host: String },
    /// The certificate was refused or the handshake failed; `reason` says which, in a few words.
    #[error("The TLS connection to {host} failed: {reason}")]
    Tls { host: String, reason: &'static str },
    /// The same where something was to be sent that only the caller has, and untrusted certificates are not accepted for
    /// that unless the caller says so.
    #[error(
        "The TLS connection to {host} failed: {reason}. Headers, cookies, profiles and passwords are not sent over a \
         certificate that cannot be trusted unless the request itself sets skipTlsVerification to true"
    )]
    Untrusted { host: String, reason: &'static str },
    /// No connection: refused, reset, unreachable or slower than the connect timeout.
    #[error("Could not connect to {host}: {reason}")]
    Connect { host: String, reason: &'static str },
    /// The connection ended inside an answer, or before one.
    #[error("{host} closed the connection before the answer was complete")]
    Cut { host: String },
    /// What came is not HTTP.
    #[error("{host} sent an answer that is not valid HTTP")]
    Protocol { host: String },
    /// The body is not what its `Content-Encoding` says.
    #[error("{host} sent a body that cannot be decoded")]
    Undecodable { host: String },
    /// The deadline passed.
    #[error("The page did not load within the timeout")]
    Timeout,
    /// The body is over a cap, in bytes.
    #[error("The page is larger than {} MiB", limit / (1024 * 1024))]
    TooLarge { limit: usize },
    /// A chain came back to a URL it had been at, in the same state.
    #[error("The page redirects in a loop")]
    RedirectLoop,
    /// More hops than allowed.
    #[error("The page redirects more than {limit} times")]
    TooManyRedirects { limit: u32 },
    /// A `Location` with another scheme than http or https.
    #[error("The page redirects to an address that is not http or https")]
    BadRedirect,
    /// An address that no request can be written for: longer than HTTP's library takes, or with characters in its host that
    /// it does not take and no name has.
    #[error("{host} cannot be asked: the address is too long, or its host has characters that no name has")]
    BadAddress { host: String },
    /// A caller's header that HTTP cannot carry; `what` is `name` or `value`.
    #[error("Invalid header {what}: {name}")]
    InvalidHeader { name: String, what: &'static str },
    /// Not an http or https URL.
    #[error("URL uses unsupported protocol")]
    UnsupportedUrl,
    /// The upstream proxy could not be reached or did not do its work.
    #[error("The proxy could not reach {host}")]
    Proxy { host: String },
    /// This process has no descriptor or buffer left for a connection.
    #[error("No connection is available at the moment")]
    NoRoom,
    /// Ours; the detail is in the log.
    #[error("The page could not be fetched")]
    Internal,
}

impl FetchError {
    /// Code on the wire.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Blocked { .. } | Self::Port { .. } | Self::SiteRefused { .. } => ErrorCode::AddressBlocked,
            Self::Dns { .. } => ErrorCode::DnsResolution,
            Self::Tls { .. } | Self::Untrusted { .. } => ErrorCode::Ssl,
            // Not that of a name that does not exist, which is billed and never tried again.
            Self::NameServer { .. }
            | Self::DnsTimeout { .. }
            | Self::Connect { .. }
            | Self::Cut { .. }
            | Self::Protocol { .. }
            | Self::Undecodable { .. }
            | Self::RedirectLoop
            | Self::TooManyRedirects { .. }
            | Self::BadRedirect
            | Self::BadAddress { .. }
            | Self::Proxy { .. } => ErrorCode::Site,
            Self::Timeout => ErrorCode::Timeout,
            Self::TooLarge { .. } => ErrorCode::PageTooLarge,
            Self::InvalidHeader { .. } | Self::UnsupportedUrl => ErrorCode::BadRequest,
            Self::NoRoom => ErrorCode::AllEnginesFailed,
            Self::Internal => ErrorCode::Unknown,
        }
    }

    /// Whether the same fetch may well succeed a little later. A timeout is not: it used up the time
    /// the page had.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::NameServer { .. }
                | Self::DnsTimeout { .. }
                | Self::Connect { .. }
                | Self::Cut { .. }
                | Self::Protocol { .. }
                | Self::Proxy { .. }
                | Self::NoRoom
        )
    }

    /// Text for the user.
    pub fn message(&self) -> String {
        self.to_string()
    }

    pub(super) fn from_guard(error: GuardError, asked: &str) -> Self {
        match error {
            GuardError::Blocked { host, .. } => Self::Blocked { host },
            GuardError::Port { host, port } => Self::Port { host, port },
            GuardError::Dns { host } | GuardError::InvalidHost { host } => Self::Dns { host },
            GuardError::NameServer { host } => Self::NameServer { host },
            GuardError::Timeout => Self::DnsTimeout { host: asked.to_owned() },
            GuardError::Unsupported => Self::UnsupportedUrl,
        }
    }

    pub(super) fn from_body(error: BodyError, host: &str) -> Self {
        match error {
            BodyError::TooLarge(limit) => Self::TooLarge { limit },
            BodyError::Corrupt => Self::Undecodable { host: host.to_owned() },
        }
    }

    /// Judges a failed request or body by what is found along its chain of sources, because the
    /// outer layers say no more than "error sending request".
    pub(super) fn from_reqwest(error: &reqwest::Error, host: &str, is_tls: bool, is_proxied: bool) -> Self {
        let host = host.to_owned();
        let causes = causes(error);
        for cause in &causes {
            if let Some(refused) = cause.downcast_ref::<GuardError>() {
                return Self::from_guard(refused.clone(), &host);
            }
            if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
                return Self::Tls { host, reason: tls_reason(tls) };
            }
            // TLS wants a valid name before anybody is asked for its address.
            if cause.is::<rustls::pki_types::InvalidDnsNameError>() {
                return Self::Dns { host };
            }
        }
        let system = causes.iter().rev().find_map(|cause| cause.downcast_ref::<io::Error>());
        let kind = system.map(io::Error::kind);
        if error.is_connect() {
            if system.is_some_and(is_of_this_machine) {
                return Self::NoRoom;
            }
            if is_proxied {
                // The proxy lives and says no: that is about the site.
                let is_refused = causes.iter().any(|cause| cause.to_string() == "tunnel error: unsuccessful");
                let reason = "the proxy could not reach it";
                return if is_refused { Self::Connect { host, reason } } else { Self::Proxy { host } };
            }
            if error.is_timeout() {
                return Self::Connect { host, reason: "timed out" };
            }
            return match kind {
                Some(io::ErrorKind::ConnectionRefused) => Self::Connect { host, reason: "connection refused" },
                Some(io::ErrorKind::TimedOut) => Self::Connect { host, reason: "timed out" },
                Some(io::ErrorKind::UnexpectedEof) if is_tls => {
                    Self::Tls { host, reason: "the handshake was broken off" }
                }
                Some(io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted) => {
                    Self::Connect { host, reason: "connection reset" }
                }
                Some(io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable) => {
                    Self::Connect { host, reason: "no route to it" }
                }
                _ => Self::Connect { host, reason: "connection failed" },
            };
        }
        if error.is_timeout() {
            return Self::Timeout;
        }
        for cause in &causes {
            if let Some(http) = cause.downcast_ref::<hyper::Error>() {
                if http.is_parse() || http.is_parse_too_large() || http.is_parse_status() {
                    return Self::Protocol { host };
                }
                if http.is_incomplete_message()
                    || http.is_closed()
                    || http.is_canceled()
                    || http.is_body_write_aborted()
                {
                    return Self::Cut { host };
                }
            }
        }
        match kind {
            Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => Self::Protocol { host },
            Some(_) => Self::Cut { host },
            None if error.is_builder() => Self::BadAddress { host },
            None => Self::Protocol { host },
        }
    }
}

/// The error and everything below it. `io::Error` hides the error it wraps from `source()`, and both
/// TLS errors and our own refusals travel inside one.
fn causes<'e>(error: &'e (dyn StdError + 'static)) -> Vec<&'e (dyn StdError + 'static)> {
    let mut found = Vec::with_capacity(8);
    let mut next = Some(error);
    while let Some(cause) = next {
        found.push(cause);
        let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn StdError + 'static)),
            None => cause.source(),
        };
        if found.len() > 32 {
            break;
        }
    }
    found
}

/// Whether the machine had nothing left to make a connection with, which no site is to blame for.
fn is_of_this_machine(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}

/// Whether a connection taken from the pool turned out to be closed by the other side: nothing of an
/// answer came, so asking once more on a new connection is what browsers do.
pub(super) fn is_stale_connection(error: &reqwest::Error) -> bool {
    !error.is_connect()
        && !error.is_timeout()
        && causes(error).iter().any(|cause| {
            let http = cause.downcast_ref::<hyper::Error>();
            let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
            http.is_some_and(|e| e.is_incomplete_message() || e.is_canceled() || e.is_closed())
                || matches!(io, Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe))
        })
}

/// Whether a body ended because a TLS connection was closed without the farewell message.
pub(super) fn is_missing_close_notify(error: &reqwest::Error) -> bool {
    causes(error)
        .iter()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::UnexpectedEof))
}

fn tls_reason(error: &rustls::Error) -> &'static str {
    use rustls::CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(bad) => match bad {
            Bad::Expired | Bad::ExpiredContext { .. } => "the certificate has expired",
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => "the certificate is not valid yet",
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => "the certificate is for another name",
            Bad::Revoked => "the certificate is revoked",
            Bad::UnknownIssuer => "the certificate's issuer is not trusted",
            _ => "the certificate is not trusted",
        },
        rustls::Error::InvalidMessage(_) => "the site does not speak TLS on this port",
        rustls::Error::PeerIncompatible(_) => "no common TLS version or cipher",
        rustls::Error::AlertReceived(_) => "the site refused the handshake",
        _ => "the handshake failed",
    }
}

#[cfg(test)]
mod tests {
    use weir_shared::domain::price;

    use super::*;

    #[test]
    fn a_page_whose_name_cannot_be_looked_up_is_tried_again_and_not_billed_as_one_that_does_not_exist() {
        let host = || "a.test".to_owned();
        for away in [GuardError::NameServer { host: host() }, GuardError::Timeout] {
            let error = FetchError::from_guard(away, "a.test");
            assert!(error.is_retryable() && error.code().is_worth_replaying(), "{error}");
            assert_eq!(price::of_failure(error.code()), 0, "{error}");
        }
        let missing = FetchError::from_guard(GuardError::Dns { host: host() }, "a.test");
        assert!(!missing.is_retryable() && !missing.code().is_worth_replaying());
        assert_eq!((missing.code(), price::of_failure(missing.code())), (ErrorCode::DnsResolution, 1));
    }

    #[test]
    fn a_machine_without_descriptors_is_no_fault_of_the_sites() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            assert!(is_of_this_machine(&io::Error::from(errno)), "{errno}");
        }
        for errno in [Errno::CONNREFUSED, Errno::CONNRESET, Errno::NETUNREACH, Errno::ADDRNOTAVAIL] {
            assert!(!is_of_this_machine(&io::Error::from(errno)), "{errno}");
        }
        assert!(!is_of_this_machine(&io::Error::other("of no system call")));
        assert!(FetchError::NoRoom.is_retryable());
    }
}
