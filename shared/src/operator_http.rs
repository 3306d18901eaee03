//! Calls to what the operator has configured: a language model, search backends. Their addresses are the operator's
//! choice, so the address guard does not apply to them; what they answer is data from outside, read with a bound.

use std::sync::OnceLock;
use std::time::Duration;

/// Bound on making a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// One client a process; its connections are kept. It follows no redirect.
pub fn client() -> &'static reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Fails when another thread has installed it already, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let builder =
            reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).connect_timeout(CONNECT);
        builder.build().unwrap_or_else(|error| {
            tracing::error!(%error, "the client for the operator's services has only its defaults");
            reqwest::Client::new()
        })
    })
}

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadError {
    TooLong,
    /// The connection ended before it did.
    Cut,
}

/// A body of at most `most` bytes.
///
/// # Errors
/// When it is longer, or does not come whole.
pub async fn read(mut response: reqwest::Response, most: usize) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if bytes.len() + chunk.len() <= most => bytes.extend_from_slice(&chunk),
            Ok(Some(_)) => return Err(ReadError::TooLong),
            Ok(None) => return Ok(bytes),
            Err(_) => return Err(ReadError::Cut),
        }
    }
}
