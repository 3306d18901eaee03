//! Why there is no map.

use weir_shared::error_code::ErrorCode;

use crate::fetch::FetchError;

/// Why there is no map.
#[derive(Debug)]
pub struct MapError {
    pub code: ErrorCode,
    /// What clients are told.
    pub message: String,
}

impl MapError {
    /// Ours, not the site's: the details are in the log.
    pub fn internal() -> Self {
        Self { code: ErrorCode::Unknown, message: "Internal error.".to_owned() }
    }
}

impl From<FetchError> for MapError {
    /// A name that does not exist and an address that is forbidden are told as for pages (wire 2.3).
    fn from(error: FetchError) -> Self {
        let code = match error.code() {
            code @ (ErrorCode::DnsResolution | ErrorCode::AddressBlocked | ErrorCode::BadRequest) => code,
            _ => ErrorCode::MapFailed,
        };
        Self { code, message: error.message() }
    }
}
