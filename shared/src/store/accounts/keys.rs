//! API keys: only their SHA-256 is stored, so that a copy of the database opens no door.

use sha2::{Digest, Sha256};

use crate::ids::{KeyId, TeamId};
use crate::random;
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::teams::{self, TeamRow, team_columns};

/// What every key of ours begins with.
const KEY_PREFIX: &str = "weir_";
/// Random characters after it: 238 bits.
const KEY_LENGTH: usize = 40;
/// Characters of a key kept readable, to tell keys apart in lists.
const SHOWN: usize = 10;
/// Characters of a key: they fit an HTTP token, because a key can be a WebSocket subprotocol (wire 6).
const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A fresh key from the system's randomness.
///
/// # Errors
/// When the system has no randomness to give.
pub fn generate() -> Result<String, rand::rand_core::OsError> {
    let mut key = String::with_capacity(KEY_PREFIX.len() + KEY_LENGTH);
    key.push_str(KEY_PREFIX);
    let mut bytes = [0_u8; 64];
    while key.len() < KEY_PREFIX.len() + KEY_LENGTH {
        random::fill_secret(&mut bytes)?;
        // Bytes past the last whole multiple of the alphabet would make its first letters likelier.
        let fair = bytes.iter().filter(|b| usize::from(**b) < 4 * ALPHABET.len());
        let missing = KEY_PREFIX.len() + KEY_LENGTH - key.len();
        key.extend(fair.take(missing).map(|b| char::from(ALPHABET[usize::from(*b) % ALPHABET.len()])));
    }
    Ok(key)
}

/// Whether it looks like a key of [`generate`], which nobody guesses. The operator's own words may be any others.
pub fn is_generated(key: &str) -> bool {
    let random = key.strip_prefix(KEY_PREFIX).unwrap_or_default().as_bytes();
    random.len() == KEY_LENGTH && random.iter().all(|byte| ALPHABET.contains(byte))
}

/// SHA-256 of a key, lower-case hex: what is stored and looked up.
pub fn digest(key: &str) -> String {
    hex::encode(Sha256::digest(key.as_bytes()))
}

/// Stores a key for a team.
///
/// # Errors
/// [`StoreError::Conflict`] when the key exists already.
pub async fn insert(tx: &mut Tx, team: TeamId, key: &str, now: Timestamp) -> StoreResult<KeyId> {
    const SQL: &str = "INSERT INTO api_key (id, team_id, hash, prefix, created_at) VALUES ($1, $2, $3, $4, $5)";
    let id = KeyId::new();
    let prefix: String = key.chars().take(SHOWN.min(key.chars().count() / 2)).collect();
    on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(id)
            .bind(team)
            .bind(digest(key))
            .bind(&prefix)
            .bind(now)
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(id)
}

/// A key just made; its text is shown once and never again.
#[derive(Debug, Clone)]
pub struct CreatedKey {
    pub id: KeyId,
    pub key: String,
}

/// Makes a key for a team.
pub async fn create(tx: &mut Tx, team: TeamId, now: Timestamp) -> StoreResult<CreatedKey> {
    let key = generate().map_err(|e| StoreError::Unavailable(sqlx::Error::Io(std::io::Error::other(e.to_string()))))?;
    let id = insert(tx, team, &key, now).await?;
    Ok(CreatedKey { id, key })
}

/// What became of a key given from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// It opens the team's door from now on.
    Added,
    /// It opens the team's door, as before.
    Usable,
    /// It was revoked and stays so.
    Revoked,
    /// It belongs to another team.
    OtherTeams,
}

/// Makes sure that a key from outside (`WEIR_API_KEY`, the key file) is stored for a team.
pub async fn ensure(tx: &mut Tx, team: TeamId, key: &str, now: Timestamp) -> StoreResult<Given> {
    const SELECT: &str = "SELECT team_id, revoked_at FROM api_key WHERE hash = $1";
    let hash = digest(key);
    let found: Option<(TeamId, Option<Timestamp>)> =
        on_db!(tx, |conn| sqlx::query_as(SELECT).bind(&hash).fetch_optional(conn).await?);
    match found {
        None => insert(tx, team, key, now).await.map(|_| Given::Added),
        Some((_, Some(_))) => Ok(Given::Revoked),
        Some((owner, None)) if owner == team => Ok(Given::Usable),
        Some(_) => Ok(Given::OtherTeams),
    }
}

/// The owner of a key that is not revoked, unless it is removed: what every request needs, in one query.
pub async fn find(db: &Db, digest: &str) -> StoreResult<Option<(KeyId, TeamRow)>> {
    const SQL: &str = concat!(
        "SELECT ",
        team_columns!(),
        ", k.id FROM api_key k JOIN team t ON t.id = k.team_id WHERE k.hash = $1 AND k.revoked_at IS NULL \
         AND t.removed_at IS NULL"
    );
    type Row = (
        TeamId,
        String,
        Option<i64>,
        Option<i64>,
        Option<i64>,
        bool,
        bool,
        Option<String>,
        Timestamp,
        Option<Timestamp>,
        KeyId,
    );
    let found: Option<Row> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(digest).fetch_optional(pool).await?);
    found.map(|r| Ok((r.10, teams::row((r.0, r.1, r.2, r.3, r.4, r.5, r.6, r.7, r.8, r.9))?))).transpose()
}

/// A key as lists show it.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct KeyRow {
    pub id: KeyId,
    pub team_id: TeamId,
    pub team: String,
    /// Its first characters.
    pub prefix: String,
    /// For people.
    pub name: Option<String>,
    pub created_at: Timestamp,
    /// To the minute.
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// The statement of [`KeyRow`], in a macro so that each statement stays one literal.
macro_rules! select_key {
    ($rest:literal) => {
        concat!(
            "SELECT k.id, k.team_id, t.name AS team, k.prefix, k.name, k.created_at, k.last_used_at, k.revoked_at \
             FROM api_key k JOIN team t ON t.id = k.team_id ",
            $rest
        )
    };
}

/// The key, whosever it is.
pub async fn load(db: &Db, id: KeyId) -> StoreResult<Option<KeyRow>> {
    const SQL: &str = select_key!("WHERE k.id = $1");
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?))
}

/// Gives a key a name, or takes it away. `false`: there is no such key.
pub async fn rename(tx: &mut Tx, id: KeyId, name: Option<&str>) -> StoreResult<bool> {
    const SQL: &str = "UPDATE api_key SET name = $2 WHERE id = $1";
    let done = on_db!(tx, |conn| sqlx::query(SQL).bind(id).bind(name).execute(conn).await?.rows_affected());
    Ok(done == 1)
}

/// Notes that keys were used.
pub async fn used(db: &Db, ids: &[KeyId], now: Timestamp) -> StoreResult<()> {
    let mut tx = db.begin_relaxed().await?;
    for part in ids.chunks(500) {
        on_db!(&mut tx, |conn| {
            let mut update = sqlx::QueryBuilder::new("UPDATE api_key SET last_used_at = ");
            update.push_bind(now).push(" WHERE id IN (");
            let mut list = update.separated(", ");
            for id in part {
                list.push_bind(*id);
            }
            update.push(")");
            update.build().persistent(false).execute(conn).await?.rows_affected()
        });
    }
    tx.commit().await
}

/// Keys of a team, or of all, oldest first.
pub async fn list(db: &Db, team: Option<TeamId>) -> StoreResult<Vec<KeyRow>> {
    const SQL: &str = select_key!("WHERE $1 IS NULL OR k.team_id = $1 ORDER BY k.created_at, k.id");
    let team = team.map(|t| t.to_string());
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).fetch_all(pool).await?))
}

/// Ends all keys of a team. Returns how many.
pub async fn revoke_all(tx: &mut Tx, team: TeamId, now: Timestamp) -> StoreResult<u64> {
    const SQL: &str = "UPDATE api_key SET revoked_at = $2 WHERE team_id = $1 AND revoked_at IS NULL";
    Ok(on_db!(tx, |conn| sqlx::query(SQL).bind(team).bind(now).execute(conn).await?.rows_affected()))
}

/// Ends a key. `false`: unknown, or revoked before.
pub async fn revoke(tx: &mut Tx, id: KeyId, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = "UPDATE api_key SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
    let done = on_db!(tx, |conn| sqlx::query(SQL).bind(id).bind(now).execute(conn).await?.rows_affected());
    Ok(done == 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::testing;

    #[test]
    fn a_key_is_an_http_token_and_never_the_same() {
        let (a, b) = (generate().unwrap(), generate().unwrap());
        assert_ne!(a, b);
        assert_eq!(a.len(), KEY_PREFIX.len() + KEY_LENGTH);
        assert!(a.starts_with("weir_") && a.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_'));
        assert!(is_generated(&a));
        for other in [
            "",
            "weir_",
            "secret",
            &a[..a.len() - 1],
            &format!("{a}A"),
            &a.replace("weir_", "fc-__"),
            &a.replace(&a[6..7], "-"),
        ] {
            assert!(!is_generated(other), "{other}");
        }
    }

    #[test]
    fn the_digest_is_sha_256_in_hex() {
        assert_eq!(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[tokio::test]
    async fn a_key_finds_its_team_until_it_is_revoked() {
        for db in testing::databases().await {
            let mut tx = db.begin().await.unwrap();
            let team = teams::insert(&mut tx, "acme", Timestamp(1)).await.unwrap();
            let made = create(&mut tx, team, Timestamp(2)).await.unwrap();
            tx.commit().await.unwrap();
            let (id, row) = find(&db, &digest(&made.key)).await.unwrap().unwrap();
            assert_eq!((id, row.id, row.name.as_str()), (made.id, team, "acme"));
            assert_eq!(find(&db, &digest("other")).await.unwrap(), None);

            let mut tx = db.begin().await.unwrap();
            assert!(revoke(&mut tx, made.id, Timestamp(3)).await.unwrap());
            assert!(!revoke(&mut tx, made.id, Timestamp(4)).await.unwrap());
            assert!(!revoke(&mut tx, KeyId::new(), Timestamp(4)).await.unwrap());
            tx.commit().await.unwrap();
            assert_eq!(find(&db, &digest(&made.key)).await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn lists_show_the_prefix_and_never_the_key() {
        for db in testing::databases().await {
            let mut tx = db.begin().await.unwrap();
            let acme = teams::insert(&mut tx, "acme", Timestamp(1)).await.unwrap();
            let other = teams::insert(&mut tx, "other", Timestamp(1)).await.unwrap();
            let made = create(&mut tx, acme, Timestamp(2)).await.unwrap();
            create(&mut tx, other, Timestamp(3)).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(list(&db, None).await.unwrap().len(), 2);
            let mine = list(&db, Some(acme)).await.unwrap();
            assert_eq!((mine.len(), mine[0].id, mine[0].team.as_str()), (1, made.id, "acme"));
            assert!(made.key.starts_with(&mine[0].prefix) && mine[0].prefix.len() == SHOWN);
        }
    }

    #[tokio::test]
    async fn a_key_has_a_name_and_is_known_to_be_used() {
        for db in testing::databases().await {
            let team = testing::team(&db, "acme").await;
            let mut tx = db.begin().await.unwrap();
            let id = create(&mut tx, team, Timestamp(2)).await.unwrap().id;
            assert!(rename(&mut tx, id, Some("ci")).await.unwrap());
            assert!(!rename(&mut tx, KeyId::new(), Some("ci")).await.unwrap());
            tx.commit().await.unwrap();
            used(&db, &[id, KeyId::new()], Timestamp(9)).await.unwrap();
            let row = load(&db, id).await.unwrap().unwrap();
            assert_eq!((row.name.as_deref(), row.last_used_at), (Some("ci"), Some(Timestamp(9))));
            assert_eq!(load(&db, KeyId::new()).await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn a_key_from_outside_is_stored_once_and_a_revoked_one_stays_revoked() {
        for db in testing::databases().await {
            let mut tx = db.begin().await.unwrap();
            let acme = teams::insert(&mut tx, "acme", Timestamp(1)).await.unwrap();
            let other = teams::insert(&mut tx, "other", Timestamp(1)).await.unwrap();
            assert_eq!(ensure(&mut tx, acme, "given-key", Timestamp(2)).await.unwrap(), Given::Added);
            assert_eq!(ensure(&mut tx, acme, "given-key", Timestamp(3)).await.unwrap(), Given::Usable);
            assert_eq!(ensure(&mut tx, other, "given-key", Timestamp(3)).await.unwrap(), Given::OtherTeams);
            tx.commit().await.unwrap();
            let id = list(&db, Some(acme)).await.unwrap()[0].id;
            let mut tx = db.begin().await.unwrap();
            revoke(&mut tx, id, Timestamp(4)).await.unwrap();
            assert_eq!(ensure(&mut tx, acme, "given-key", Timestamp(5)).await.unwrap(), Given::Revoked);
        }
    }
}
