//! What was made of stored contents at a cost: answers of a language model, recognised text. It is written with the end of
//! the page that it was made for, goes with its content, and counts into the room of all that is kept.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// What a row takes besides its body, about, bytes.
pub(super) const ROW: i64 = 300;
/// Rows of one content; past that the oldest go.
const MOST: i64 = 64;
/// Longest body, bytes, and what it may unpack to.
const LONGEST: usize = 1 << 20;
const UNPACKED: usize = 16 << 20;

/// What was made of one content.
#[derive(Debug, Clone)]
pub struct Derived {
    /// The content.
    pub digest: String,
    pub pieces: Vec<Piece>,
}

/// One thing that was made.
#[derive(Debug, Clone)]
pub struct Piece {
    /// What tells how it was made.
    key: String,
    body: Vec<u8>,
}

impl Piece {
    /// Makes it ready to be stored. `None`: it is too long to be kept. Computes.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn pack(key: String, value: &impl Serialize) -> std::io::Result<Option<Self>> {
        let json = serde_json::to_vec(value).map_err(std::io::Error::other)?;
        if json.len() > UNPACKED {
            return Ok(None);
        }
        let body = weir_packing::compress(&json)?;
        Ok((body.len() <= LONGEST).then_some(Self { key, body }))
    }
}

/// What was made so of a content, not before `from`.
///
/// # Errors
/// When the database cannot be asked, or what it says cannot be read.
pub async fn get<T: DeserializeOwned>(db: &Db, digest: &str, key: &str, from: Timestamp) -> StoreResult<Option<T>> {
    const SQL: &str = "SELECT body FROM page_derived WHERE digest = $1 AND key = $2 AND made_at >= $3";
    let found: Option<(Vec<u8>,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(digest).bind(key).bind(from).fetch_optional(pool).await?);
    let Some((body,)) = found else { return Ok(None) };
    let json = weir_packing::decompress(&body, UNPACKED).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(Some(serde_json::from_slice(&json)?))
}

/// Keeps what was made of contents that are still there. Those of one transaction come in the order of their digests, as
/// every writer of these rows has them.
pub(in crate::store) async fn put(tx: &mut Tx, derived: &Derived, now: Timestamp) -> StoreResult<()> {
    const PUT: &str = "INSERT INTO page_derived (digest, key, made_at, packed, body) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (digest, key) DO UPDATE SET made_at = excluded.made_at, packed = excluded.packed, \
        body = excluded.body";
    const TRIM: &str = "DELETE FROM page_derived WHERE digest = $1 AND key IN (SELECT key FROM page_derived \
        WHERE digest = $1 ORDER BY made_at DESC, key LIMIT 1000 OFFSET $2)";
    if !is_there(tx, &derived.digest).await? {
        return Ok(());
    }
    let mut pieces: Vec<&Piece> = derived.pieces.iter().collect();
    pieces.sort_unstable_by(|one, other| one.key.cmp(&other.key));
    for piece in pieces {
        on_db!(tx, |conn| {
            sqlx::query(PUT)
                .bind(&derived.digest)
                .bind(&piece.key)
                .bind(now)
                .bind(piece.body.len() as i64)
                .bind(&piece.body)
                .execute(conn)
                .await?
                .rows_affected()
        });
    }
    on_db!(tx, |conn| sqlx::query(TRIM).bind(&derived.digest).bind(MOST).execute(conn).await?.rows_affected());
    Ok(())
}

/// Whether the content is kept; it stays so until the end of the transaction.
async fn is_there(tx: &mut Tx, digest: &str) -> StoreResult<bool> {
    const SQL: &str = "SELECT digest FROM page_content WHERE digest = $1";
    // The weakest lock that its removal waits for; uses may still be written down.
    const LOCKING: &str = "SELECT digest FROM page_content WHERE digest = $1 FOR KEY SHARE";
    let sql = if matches!(tx, Tx::Postgres(_)) { LOCKING } else { SQL };
    let found: Option<(String,)> = on_db!(tx, |conn| sqlx::query_as(sql).bind(digest).fetch_optional(conn).await?);
    Ok(found.is_some())
}
