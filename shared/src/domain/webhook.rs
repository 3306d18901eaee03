//! Webhooks of a job (wire 7): where to, which events, what is echoed, how a body is signed.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::Sha256;

use super::api_version::ApiVersion;
use super::job::WebhookEvent;
use super::states::states;

states! {
    /// State of a delivery.
    DeliveryState {
        /// To be tried, for the first time or again.
        Waiting = "waiting",
        /// The receiver took it.
        Delivered = "delivered",
        /// Given up, until it is replayed.
        Dead = "dead",
    }
    /// How a delivery goes on.
    DeliveryMove {
        Deliver: Waiting => Delivered,
        /// A try failed, and there is a time for the next.
        Retry: Waiting => Waiting,
        /// The last try failed.
        GiveUp: Waiting => Dead,
        Replay: Dead => Waiting,
    }
}

impl DeliveryMove {
    /// What a try makes of a delivery: it failed or not, and it is to be tried again or not.
    pub const fn after_try(failed: bool, again: bool) -> Self {
        match (failed, again) {
            (false, _) => Self::Deliver,
            (true, true) => Self::Retry,
            (true, false) => Self::GiveUp,
        }
    }
}

/// A webhook as validated and stored with its job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebhookSpec {
    pub url: String,
    /// Custom headers of every delivery.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Echoed in every delivery.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// Words of [`WebhookEvent`]; empty: all.
    #[serde(default)]
    pub events: Vec<String>,
    /// That of the call which started the job: documents of its deliveries are of this version.
    #[serde(default)]
    pub version: ApiVersion,
}

impl WebhookSpec {
    /// Whether this event is wanted.
    pub fn wants(&self, event: WebhookEvent) -> bool {
        self.events.is_empty() || self.events.iter().any(|e| e == event.as_str())
    }
}

/// `sha256=<lower-case hex>` of the raw body (spec 6).
pub fn signature(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_hmac_sha256_in_hex() {
        assert_eq!(
            signature("key", b"The quick brown fox jumps over the lazy dog"),
            "sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"
        );
    }
}
