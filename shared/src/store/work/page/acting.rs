//! Actions that may have an effect on a page's site are begun by one claim of the page, whoever dies of it.

use crate::domain::job::PageState;
use crate::on_db;
use crate::store::{Db, StoreResult};

use super::rows::Claimed;

/// Writes down that this claim begins with them. `false`: an earlier one has, or the page is not this claim's any more. What was
/// begun before a replay does not count: processes of a release that knows nothing of this leave it in the row, but every
/// replay begins the count of claims anew, which is never lowered for a page whose actions have begun.
///
/// # Errors
/// When the database does not answer; the claim may ask again.
pub async fn begin(db: &Db, page: &Claimed) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "UPDATE page SET acted = epoch WHERE id = $1 AND epoch = $2 AND (COALESCE(acted, epoch) = epoch \
         OR claims = 1) AND state = ",
        PageState::Running.sql()
    );
    let mut tx = db.begin().await?;
    let begun =
        on_db!(&mut tx, |conn| sqlx::query(SQL).bind(page.id).bind(page.epoch).execute(conn).await?.rows_affected());
    tx.commit().await?;
    Ok(begun > 0)
}
