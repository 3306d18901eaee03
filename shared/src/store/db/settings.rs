//! Values that the installation makes for itself once, such as the secret between API and workers.

use crate::random;
use crate::store::{Db, StoreResult, Tx};
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
}
