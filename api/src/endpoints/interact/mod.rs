//! Interaction with a scrape (spec 2.3, 4.5, 4.6; wire 8.4): the one session that continues it.

pub mod run;
pub mod stop;

use std::time::Duration;

use tokio::time::Instant;
use weir_shared::clock;
use weir_shared::domain::session::SessionState;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::PageId;
use weir_shared::store::sessions::{self, SessionRow};

use crate::app::App;
use crate::endpoints::browser::end_orphans;
use crate::endpoints::outage::patiently;
use crate::error::{ApiError, ApiResult};

/// How often a call looks whether the session that another call opens is there.
const LOOK: Duration = Duration::from_millis(30);
/// Seconds after which a session that takes long to open may be there.
const RETRY_SECONDS: u64 = 2;

fn forbidden() -> ApiError {
    ApiError::new(ErrorCode::Forbidden, "Forbidden.")
}

/// The scrape's session, past its opening. `None`: it has none.
///
/// # Errors
/// 503 when it is still opening at `deadline`.
async fn opened(app: &App, page: PageId, deadline: Instant) -> ApiResult<Option<SessionRow>> {
    loop {
        match patiently(deadline, || async { Ok(sessions::of_page(&app.db, page).await?) }).await? {
            Some(row) if row.state == SessionState::Opening => {
                // Its worker may have died while it opened the session: then another one is opened.
                if row.is_orphan(app.db.now()) {
                    end_orphans(app).await?;
                }
            }
            found => return Ok(found),
        }
        if clock::deadline(LOOK) >= deadline {
            return Err(still_opening());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The page takes longer than the caller waits. Nothing was run; the session opens all the same.
fn still_opening() -> ApiError {
    let text = "The scrape's page is still being opened in its browser session; nothing was run. Please try again.";
    ApiError::new(ErrorCode::Unavailable, text).retry_after(RETRY_SECONDS)
}
