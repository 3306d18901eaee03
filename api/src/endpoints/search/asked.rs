//! What its steps know of a search.

use tokio::time::Instant;
use weir_shared::domain::search::SearchRequest;
use weir_shared::ids::JobId;

use crate::callers::auth::Caller;

/// A search whose hits are known.
pub(super) struct Asked {
    pub id: JobId,
    pub caller: Caller,
    pub search: SearchRequest,
    /// When the caller wants its answer.
    pub deadline: Instant,
}
