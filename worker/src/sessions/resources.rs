//! What sessions need of their worker, and why one may not open.

use std::sync::Arc;

use weir_shared::blobs::Blobs;
use weir_shared::store::{Db, StoreError};

use super::profile::Vault;
use crate::exec::Assets;
use crate::fetch::{AdHosts, ProxyPools};
use crate::metrics::Metrics;
use crate::sandbox::{Sandbox, SandboxError};

/// What sessions need of their worker.
pub struct SessionResources {
    pub db: Db,
    pub blobs: Blobs,
    pub assets: Arc<Assets>,
    pub sandbox: Arc<Sandbox>,
    pub vault: Vault,
    pub metrics: Metrics,
    /// The operator's proxies.
    pub proxies: Arc<ProxyPools>,
    /// What browsers whose callers want no ads are kept from.
    pub ads: Arc<AdHosts>,
    /// Browsers that wait started.
    pub warm: usize,
}

/// Why a session could not be opened. The row is destroyed, unbilled.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0}")]
    Sandbox(#[from] SandboxError),
    #[error("the browser did not answer: {0}")]
    Browser(String),
    #[error("the profile could not be loaded: {0}")]
    Profile(String),
    /// The text is for the caller, and names no proxy.
    #[error("The proxies that this session may go through cannot be reached, and it never goes past them.")]
    NoProxy,
    /// The scrape that it continues cannot be brought back. The text is for the caller.
    #[error("{0}")]
    Replay(String),
    #[error("the session is not this worker's to open")]
    NotOurs,
    #[error("the session is not to be opened any more")]
    NotOpening,
    #[error("this worker is stopping")]
    Stopping,
    #[error(transparent)]
    Store(#[from] StoreError),
}
