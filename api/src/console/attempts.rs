//! How often somebody may try to sign in with what can be guessed, the operator's own words: failures are counted by address
//! and in total, a minute at a time. A process counts by itself, so that guessing costs the database nothing.
//!
//! Strangers can use all of it up, and behind a proxy all addresses are one. So what cannot be guessed is not counted: a key
//! that was generated, and a link.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use weir_shared::error_code::ErrorCode;
use weir_shared::time::Timestamp;

use crate::error::{ApiError, ApiResult};
use crate::http::peers::network;

/// Failures a minute from one address, and in total.
const OF_ADDRESS: u32 = 10;
const IN_ALL: u32 = 100;
/// Length of a window, milliseconds.
const WINDOW_MS: i64 = 60_000;

/// Failures of the current minute.
#[derive(Default)]
pub struct Attempts(Mutex<Window>);

#[derive(Default)]
struct Window {
    minute: i64,
    in_all: u32,
    /// Entries of addresses that were admitted, and of some that were not.
    of_address: HashMap<IpAddr, u32>,
}

/// One who tries.
fn who(address: Option<IpAddr>) -> IpAddr {
    address.map_or(IpAddr::from([0, 0, 0, 0]), network)
}

impl Attempts {
    /// Counts a try of this address as a failure until it has [`Attempts::succeeded`], so that many at once are counted, too.
    ///
    /// # Errors
    /// 429 when it, or all together, have failed too often.
    pub fn admit(&self, address: Option<IpAddr>, now: Timestamp) -> ApiResult<()> {
        let minute = now.0.div_euclid(WINDOW_MS);
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.minute != minute {
            *window = Window { minute, ..Window::default() };
        }
        let own = window.of_address.get(&who(address)).copied().unwrap_or_default();
        if own >= OF_ADDRESS || window.in_all >= IN_ALL {
            let left = Timestamp((minute + 1) * WINDOW_MS).ms_since(now).unsigned_abs().div_ceil(1_000).max(1);
            let text =
                format!("Too many failed sign-ins. Please retry after {left}s, or use a link: weir console link");
            return Err(ApiError::new(ErrorCode::RateLimited, text).retry_after(left));
        }
        *window.of_address.entry(who(address)).or_default() += 1;
        window.in_all += 1;
        Ok(())
    }

    /// A try that was admitted was no failure.
    pub fn succeeded(&self, address: Option<IpAddr>) {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        window.in_all = window.in_all.saturating_sub(1);
        if let Some(own) = window.of_address.get_mut(&who(address)) {
            *own = own.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_all_together_fail_only_so_often_a_minute() {
        let attempts = Attempts::default();
        let four = |n: u32| Some(IpAddr::from(n.to_be_bytes()));
        let now = Timestamp(600_000);
        for _ in 0..OF_ADDRESS {
            assert!(attempts.admit(four(1), now).is_ok());
        }
        assert_eq!(attempts.admit(four(1), now).map_err(|e| e.code()), Err(ErrorCode::RateLimited));
        attempts.succeeded(four(1));
        assert!(attempts.admit(four(1), now).is_ok() && attempts.admit(four(1), now).is_err());
        for n in OF_ADDRESS..IN_ALL {
            assert!(attempts.admit(four(n + 10), now).is_ok());
        }
        assert!(attempts.admit(four(9_999), now).is_err(), "all together");
        assert!(attempts.admit(four(1), now.plus_ms(WINDOW_MS)).is_ok(), "the next minute");
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let six = |text: &str| who(text.parse().ok());
        assert_eq!(six("2001:db8:1:2::1"), six("2001:db8:1:2:ffff::9"));
        assert_ne!(six("2001:db8:1:2::1"), six("2001:db8:1:3::1"));
        assert_eq!(six("::ffff:10.0.0.1"), six("10.0.0.1"));
    }
}
