//! Values that the installation makes for itself once, such as the secret between API and workers.

use crate::on_db;

use super::{StoreResult, Tx};

/// The stored value, or `made` stored now. Whoever comes first wins; all get the same.
pub async fn get_or_set(tx: &mut Tx, name: &str, made: &str) -> StoreResult<String> {
    const INSERT: &str = "INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    const SELECT: &str = "SELECT value FROM setting WHERE name = $1";
    on_db!(tx, |conn| sqlx::query(INSERT).bind(name).bind(made).execute(conn).await?.rows_affected());
    let row: (String,) = on_db!(tx, |conn| sqlx::query_as(SELECT).bind(name).fetch_one(conn).await?);
    Ok(row.0)
}
