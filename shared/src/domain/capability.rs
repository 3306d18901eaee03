//! What the addresses of a browser session carry instead of a key: a secret per session and use (wire 8.5).
//!
//! A token is computed from the installation's internal secret and never stored, so every API process knows it and a
//! read of the database does not. Whether the session still lives is for its row to say.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::ids::SessionId;

/// What a token lets its bearer do with one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Capability {
    /// Drive it over the DevTools protocol.
    Cdp,
    /// Watch it.
    View,
    /// Watch it and use its mouse and keyboard.
    Control,
}

impl Capability {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Cdp => "cdp",
            Self::View => "view",
            Self::Control => "control",
        }
    }
}

fn mac(secret: &[u8], kind: Capability, id: SessionId) -> Hmac<Sha256> {
    keyed(secret, format!("{}:{id}", kind.as_str()).as_bytes())
}

/// A text with the installation's secret. What it says begins with a word that no other use has.
pub(super) fn keyed(secret: &[u8], text: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(text);
    mac
}

/// The token, 64 characters of lower-case hex.
pub fn token(secret: &[u8], kind: Capability, id: SessionId) -> String {
    hex::encode(mac(secret, kind, id).finalize().into_bytes())
}

/// Whether `given` is the token; takes the same time for every wrong one.
pub fn verify(secret: &[u8], kind: Capability, id: SessionId, given: &str) -> bool {
    hex::decode(given).is_ok_and(|bytes| mac(secret, kind, id).verify_slice(&bytes).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_one_use_of_one_session() {
        let (id, secret) = (SessionId::new(), b"a secret".as_slice());
        let view = token(secret, Capability::View, id);
        assert_eq!(view.len(), 64);
        assert!(verify(secret, Capability::View, id, &view));
        assert!(!verify(secret, Capability::Control, id, &view));
        assert!(!verify(secret, Capability::View, SessionId::new(), &view));
        assert!(!verify(b"another", Capability::View, id, &view));
        for wrong in ["", "zz", &view[..62], &format!("{view}00")] {
            assert!(!verify(secret, Capability::View, id, wrong), "{wrong}");
        }
    }
}
