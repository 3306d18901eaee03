//! TLS that verifies certificates by the system's roots. They are read and parsed once in a process, at its start, which
//! takes 9 ms.

use std::io;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls_platform_verifier::BuilderVerifierExt as _;

/// For whatever speaks no HTTP over it yet.
///
/// # Errors
/// When the system's root certificates cannot be read.
pub fn config() -> io::Result<ClientConfig> {
    static CONFIG: OnceLock<ClientConfig> = OnceLock::new();
    let mut config = match CONFIG.get() {
        Some(config) => config.clone(),
        None => {
            let read = read()?;
            CONFIG.get_or_init(|| read).clone()
        }
    };
    // What one client was given for coming back is none of another's.
    config.resumption = Resumption::default();
    Ok(config)
}

/// The same for HTTP, in both versions that are spoken.
///
/// # Errors
/// As [`config`].
pub fn http_config() -> io::Result<ClientConfig> {
    let mut config = config()?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn read() -> io::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_platform_verifier())
        .map_err(io::Error::other)?;
    Ok(config.with_no_client_auth())
}
