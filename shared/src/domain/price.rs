//! What a page costs: the one place for the prices of CONTRACT 11.3, in credits.

use super::scrape::ScrapeOptions;
use crate::error_code::ErrorCode;

/// A page of a scrape, batch or crawl.
const PAGE: i64 = 1;
/// A page of which nothing is kept.
const ZERO_RETENTION: i64 = 1;
/// A page in lockdown that was there, and one that was not.
pub const LOCKDOWN_HIT: i64 = 5;
const LOCKDOWN_MISS: i64 = 1;

/// The price of a page that was asked for and delivered.
pub fn of_page(options: &ScrapeOptions) -> i64 {
    PAGE + if options.zero_retention { ZERO_RETENTION } else { 0 }
}

/// The most that a page may cost: what a team must have to ask for it.
pub fn at_most(options: &ScrapeOptions) -> i64 {
    if options.cache.lockdown { LOCKDOWN_HIT } else { of_page(options) }
}

/// The price of a page that failed: nothing, unless its name does not exist, or it was not there in lockdown.
pub fn of_failure(code: ErrorCode) -> i64 {
    match code {
        ErrorCode::DnsResolution => 1,
        ErrorCode::LockdownCacheMiss => LOCKDOWN_MISS,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_those_published() {
        let mut options = ScrapeOptions::default();
        assert_eq!((of_page(&options), at_most(&options)), (1, 1));
        options.zero_retention = true;
        assert_eq!((of_page(&options), at_most(&options)), (2, 2));
        options.cache.lockdown = true;
        assert_eq!(at_most(&options), 5);
        for (code, credits) in [
            (ErrorCode::DnsResolution, 1),
            (ErrorCode::LockdownCacheMiss, 1),
            (ErrorCode::NoCachedData, 0),
            (ErrorCode::Timeout, 0),
        ] {
            assert_eq!(of_failure(code), credits);
        }
    }
}
