//! Room for the bodies of requests: those of one key that are read or worked on at the same time stay within a bound, so
//! that one caller cannot fill the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use weir_shared::error_code::ErrorCode;
use weir_shared::ids::KeyId;

use crate::error::{ApiError, ApiResult};

/// Bytes of bodies that a key may have at once.
const PER_KEY: usize = 64 << 20;
/// Seconds after which a caller whose bodies take all the room may try again: most are read in far less.
const RETRY_SECONDS: u64 = 1;

/// The rooms of the keys that have bodies now.
#[derive(Debug, Default, Clone)]
pub struct Bodies(Arc<Mutex<HashMap<Option<KeyId>, usize>>>);

/// One body's room, given back when it is dropped.
#[derive(Debug)]
pub struct Room {
    bodies: Bodies,
    key: Option<KeyId>,
    bytes: usize,
}

impl Bodies {
    /// Room for a body of a key (`None`: of everybody, where no key is asked for), empty so far.
    pub fn room(&self, key: Option<KeyId>) -> Room {
        Room { bodies: self.clone(), key, bytes: 0 }
    }
}

impl Room {
    /// Makes sure that there is room for a body of this length.
    ///
    /// # Errors
    /// 429 when the key's other bodies leave no room for it.
    pub fn reach(&mut self, bytes: usize) -> ApiResult<()> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return Ok(()) };
        let mut taken = self.bodies.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_key = taken.entry(self.key).or_default();
        if *of_key + more > PER_KEY {
            let text = format!(
                "The bodies of your requests that are worked on take up {} MB together. Please retry after \
                 {RETRY_SECONDS}s, or send fewer large ones at once.",
                PER_KEY >> 20
            );
            if *of_key == 0 {
                taken.remove(&self.key);
            }
            return Err(ApiError::new(ErrorCode::RateLimited, text).retry_after(RETRY_SECONDS));
        }
        *of_key += more;
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut taken = self.bodies.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_key) = taken.get_mut(&self.key) {
            *of_key -= self.bytes;
            if *of_key == 0 {
                taken.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_keys_bodies_share_a_bound_that_others_do_not_notice() {
        let bodies = Bodies::default();
        let (one, other) = (Some(KeyId::new()), Some(KeyId::new()));
        let mut first = bodies.room(one);
        first.reach(PER_KEY - 10).unwrap();
        first.reach(PER_KEY - 20).unwrap();
        let mut second = bodies.room(one);
        second.reach(10).unwrap();
        let error = second.reach(11).unwrap_err();
        assert_eq!(error.code(), ErrorCode::RateLimited);
        bodies.room(other).reach(PER_KEY).unwrap();
        assert!(bodies.room(None).reach(PER_KEY + 1).is_err());
        drop(first);
        second.reach(PER_KEY).unwrap();
        drop(second);
        assert!(bodies.0.lock().unwrap().is_empty(), "nothing is left of bodies that are gone");
    }
}
