//! Which headers of a request are no caller's: they say how it goes over its connection, and only the program that sends it
//! knows. For pages they are left out without an error, as browsers do; for webhooks they are refused.

/// In lower case.
const OF_THE_SENDER: [&str; 14] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a caller may have requests carry a header of this name.
pub fn may_carry(header: &str) -> bool {
    !OF_THE_SENDER.iter().any(|name| header.eq_ignore_ascii_case(name))
}
