//! The console's roles, and what its cookies and links hold.

use sha2::{Digest, Sha256};

use super::capability::keyed;
use super::words::words;
use crate::random;

words! {
    /// What somebody who is signed in may see and do.
    Role {
        /// Its own team's things.
        Team = "team",
        /// Every team's things.
        Operator = "operator",
        /// Sees every team's things and changes nothing.
        Reader = "reader",
    }
}

/// A secret for a cookie or a link: 256 bits, 64 characters of lower-case hex.
///
/// # Errors
/// When the system has no randomness to give.
pub fn secret() -> Result<String, rand::rand_core::OsError> {
    let mut bytes = [0; 32];
    random::fill_secret(&mut bytes)?;
    Ok(hex::encode(bytes))
}

/// What is stored of a secret.
pub fn digest(secret: &str) -> String {
    hex::encode(Sha256::digest(secret.as_bytes()))
}

/// What every request that changes something carries beside the cookie. A page of another site cannot know it: it is made
/// from what the cookie holds, which no script can read.
pub fn csrf_token(cookie: &str) -> String {
    let mac = hmac::Mac::finalize(keyed(cookie.as_bytes(), b"console:csrf"));
    hex::encode(mac.into_bytes())
}

/// What tells a session from others and is no secret: answers name whose they are by it.
pub fn mark(cookie: &str) -> String {
    let mac = hmac::Mac::finalize(keyed(cookie.as_bytes(), b"console:session"));
    hex::encode(&mac.into_bytes()[..8])
}

/// Whether two texts are the same; takes the same time for every wrong one of a length.
pub fn is_same(given: &str, right: &str) -> bool {
    let right = hmac::Mac::finalize(keyed(b"console:compare", right.as_bytes())).into_bytes();
    hmac::Mac::verify_slice(keyed(b"console:compare", given.as_bytes()), &right).is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn secrets_are_long_and_what_is_made_from_them_differs() {
        let (a, b) = (secret().unwrap(), secret().unwrap());
        assert!(a.len() == 64 && a != b);
        assert!(digest(&a) != a && digest(&a) != csrf_token(&a) && csrf_token(&a) != csrf_token(&b));
        assert_eq!(csrf_token(&a), csrf_token(&a));
        assert!(mark(&a) == mark(&a) && mark(&a) != mark(&b));
        assert!(![&a, &digest(&a), &csrf_token(&a)].iter().any(|secret| secret.contains(&mark(&a))));
        assert!(is_same("one", "one") && !is_same("one", "ones") && !is_same("", "one"));
    }
}
