//! Where extraction and encoding run: on threads that may compute for long, and not more of them than are of use.

use std::num::NonZero;
use std::sync::LazyLock;

use tokio::sync::Semaphore;
use weir_shared::error_code::ErrorCode;

use super::error::PageError;

/// Pieces of CPU work at once: more threads would not be faster, and each keeps memory of its own.
static CORES: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(2 * std::thread::available_parallelism().map_or(2, NonZero::get)));

/// CPU work off the async threads.
///
/// # Errors
/// What `work` answers; `UNKNOWN_ERROR` when it panics.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PageError> + Send + 'static,
) -> Result<T, PageError> {
    // The semaphore is never closed.
    let _turn = CORES.acquire().await;
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "extraction panicked");
        Err(PageError::last(ErrorCode::Unknown, "Internal error while reading the page."))
    })
}
