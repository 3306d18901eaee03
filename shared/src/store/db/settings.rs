//! Values that the installation makes for itself, such as the secret between API and workers, or remembers, such as when
//! what failed was replayed last.

use crate::random;
use crate::schedule::Schedule;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// What API and workers know each other by, and what the addresses of sessions are made from: `given`, or one that is
/// made on the first start and kept.
pub async fn internal_secret(db: &Db, given: Option<&str>) -> StoreResult<String> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let mut tx = db.begin().await?;
    let secret = get_or_set(&mut tx, "internal_secret", &random::hex::<32>()).await?;
    tx.commit().await?;
    Ok(secret)
}

/// The stored value, or `made` stored now. Whoever comes first wins; all get the same.
pub async fn get_or_set(tx: &mut Tx, name: &str, made: &str) -> StoreResult<String> {
    const INSERT: &str = "INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    const SELECT: &str = "SELECT value FROM setting WHERE name = $1";
    on_db!(tx, |conn| sqlx::query(INSERT).bind(name).bind(made).execute(conn).await?.rows_affected());
    let row: (String,) = on_db!(tx, |conn| sqlx::query_as(SELECT).bind(name).fetch_one(conn).await?);
    Ok(row.0)
}

/// A stored value.
pub(in crate::store) async fn find(db: &Db, name: &str) -> StoreResult<Option<String>> {
    const SQL: &str = "SELECT value FROM setting WHERE name = $1";
    let found: Option<(String,)> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(name).fetch_optional(pool).await?);
    Ok(found.map(|row| row.0))
}

/// Name of the value that says until when the moments of `WEIR_REPLAY_CRON` are done: milliseconds, and the expression.
const REPLAYED: &str = "replayed_until";

/// Until when the moments of this schedule are done. `None`: another schedule's are written down, or none.
///
/// # Errors
/// When the database does not answer.
pub async fn replayed_until(db: &Db, schedule: &Schedule) -> StoreResult<Option<Timestamp>> {
    let found = find(db, REPLAYED).await?;
    let until = found.as_deref().and_then(|value| value.split_once(' '));
    Ok(until.filter(|(_, of)| *of == schedule.as_str()).and_then(|(at, _)| at.parse().ok()).map(Timestamp))
}

/// Writes down that they are done until then.
///
/// # Errors
/// When the database takes nothing.
pub async fn set_replayed_until(db: &Db, schedule: &Schedule, at: Timestamp) -> StoreResult<()> {
    let mut tx = db.begin().await?;
    set(&mut tx, REPLAYED, &format!("{} {}", at.0, schedule.as_str())).await?;
    tx.commit().await
}

/// Forgets it: there is no schedule, and one that is set later has nothing to make up for.
///
/// # Errors
/// When the database does not answer.
pub async fn forget_replays(db: &Db) -> StoreResult<()> {
    const SQL: &str = "DELETE FROM setting WHERE name = $1";
    if find(db, REPLAYED).await?.is_none() {
        return Ok(());
    }
    let mut tx = db.begin().await?;
    on_db!(&mut tx, |conn| sqlx::query(SQL).bind(REPLAYED).execute(conn).await?.rows_affected());
    tx.commit().await
}

/// Stores a value in the place of what was there.
pub(in crate::store) async fn set(tx: &mut Tx, name: &str, value: &str) -> StoreResult<()> {
    const SQL: &str = "INSERT INTO setting (name, value) VALUES ($1, $2) \
        ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    on_db!(tx, |conn| sqlx::query(SQL).bind(name).bind(value).execute(conn).await?.rows_affected());
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::testing;

    #[tokio::test]
    async fn the_internal_secret_is_made_once_unless_it_is_given() {
        for db in testing::databases().await {
            let made = internal_secret(&db, None).await.unwrap();
            assert_eq!((made.len(), internal_secret(&db, None).await.unwrap()), (64, made));
            assert_eq!(internal_secret(&db, Some("given from outside")).await.unwrap(), "given from outside");
        }
    }

    #[tokio::test]
    async fn moments_are_done_for_the_schedule_that_has_them() {
        for db in testing::databases().await {
            let [hourly, daily]: [Schedule; 2] = ["0 * * * *", "0 0 * * *"].map(|cron| cron.parse().unwrap());
            assert_eq!(replayed_until(&db, &hourly).await.unwrap(), None);
            forget_replays(&db).await.unwrap();
            for at in [Timestamp(1_000), Timestamp(2_000)] {
                set_replayed_until(&db, &hourly, at).await.unwrap();
                assert_eq!(replayed_until(&db, &hourly).await.unwrap(), Some(at));
                assert_eq!(replayed_until(&db, &daily).await.unwrap(), None);
            }
            forget_replays(&db).await.unwrap();
            assert_eq!(replayed_until(&db, &hourly).await.unwrap(), None);
        }
    }
}
