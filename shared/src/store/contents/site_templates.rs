//! What a team's pages of one site have in common, as workers have seen it; what the bytes say is theirs to know.
//!
//! A row is of use and not needed: one that is lost is learned again. Workers write what they have learned now and then, each
//! together with what others have written since.

use sqlx::AssertSqlSafe;

use crate::ids::TeamId;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// How long a row stays to which nothing is added, milliseconds.
const KEPT_MS: i64 = 90 * 86_400_000;
/// Rows of all teams; beyond them those go to which nothing was added for longest.
const MOST: i64 = 20_000;
/// Rows removed at once.
const STEP: i64 = 500;

/// What is known.
///
/// # Errors
/// When the database cannot be asked.
pub async fn read(db: &Db, team: TeamId, origin: &str) -> StoreResult<Option<Vec<u8>>> {
    const SQL: &str = "SELECT body FROM site_template WHERE team_id = $1 AND origin = $2";
    let row: Option<(Vec<u8>,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(origin).fetch_optional(pool).await?);
    Ok(row.map(|row| row.0))
}

/// Writes what `add` makes of what is there.
///
/// # Errors
/// When it cannot be written.
pub async fn write(
    db: &Db,
    team: TeamId,
    origin: &str,
    now: Timestamp,
    add: impl FnOnce(Option<Vec<u8>>) -> Vec<u8>,
) -> StoreResult<()> {
    const READ: &str = "SELECT body FROM site_template WHERE team_id = $1 AND origin = $2";
    const WRITE: &str = "INSERT INTO site_template (team_id, origin, body, changed_at) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (team_id, origin) DO UPDATE SET body = excluded.body, changed_at = excluded.changed_at";
    let mut tx = db.begin_relaxed().await?;
    let read = if matches!(tx, Tx::Postgres(_)) { format!("{READ} FOR UPDATE") } else { READ.to_owned() };
    let row: Option<(Vec<u8>,)> = on_db!(&mut tx, |conn| {
        sqlx::query_as(AssertSqlSafe(read)).bind(team).bind(origin).fetch_optional(conn).await?
    });
    let body = add(row.map(|row| row.0));
    on_db!(&mut tx, |conn| {
        sqlx::query(WRITE).bind(team).bind(origin).bind(body.as_slice()).bind(now).execute(conn).await?.rows_affected()
    });
    tx.commit().await
}

/// Removes what is too old or too much. Returns whether there may be more.
///
/// # Errors
/// When it cannot be removed.
pub async fn expire(tx: &mut Tx, now: Timestamp) -> StoreResult<bool> {
    const OLD: &str = "DELETE FROM site_template WHERE changed_at < $1 AND (team_id, origin) IN \
        (SELECT team_id, origin FROM site_template WHERE changed_at < $1 LIMIT $2)";
    const MANY: &str = "DELETE FROM site_template WHERE (team_id, origin) IN \
        (SELECT team_id, origin FROM site_template ORDER BY changed_at DESC LIMIT $1 OFFSET $2)";
    let before = now.plus_ms(-KEPT_MS);
    let old = on_db!(&mut *tx, |conn| sqlx::query(OLD).bind(before).bind(STEP).execute(conn).await?.rows_affected());
    let many = on_db!(tx, |conn| sqlx::query(MANY).bind(STEP).bind(MOST).execute(conn).await?.rows_affected());
    Ok((old + many) as i64 >= STEP)
}
