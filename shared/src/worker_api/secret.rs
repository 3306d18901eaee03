//! The secret of an installation, by which a worker knows that a call comes from one of its API processes.

use sha2::{Digest, Sha256};

/// Header that every call carries.
pub const SECRET_HEADER: &str = "x-weir-internal";

/// The secret that calls must carry. Only its digest is kept.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// The installation's internal secret.
    pub fn new(secret: &str) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// Whether a call with this value of [`SECRET_HEADER`] comes from the API; `None`: the header is missing. Digests
    /// are compared, in full, so that the time it takes does not tell where the values differ.
    pub fn admits(&self, given: Option<&[u8]>) -> bool {
        let given: [u8; 32] = Sha256::digest(given.unwrap_or_default()).into();
        given.iter().zip(&self.0).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}
