//! Who is signed in to the console, and the links that sign in once. Only digests of what cookies and links hold are
//! stored, so that a copy of the database opens no door.

use crate::domain::console::Role;
use crate::ids::{KeyId, TeamId};
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// A session lasts this long at most, milliseconds: 12 h.
pub const LIFETIME_MS: i64 = 12 * 3_600_000;
/// It ends when nothing was asked with it for this long, milliseconds: 2 h.
pub const IDLE_MS: i64 = 2 * 3_600_000;
/// A link is good for this long, milliseconds: 10 min.
pub const LINK_MS: i64 = 10 * 60_000;
/// What is asked is noted at most this often, milliseconds.
const SEEN_EVERY_MS: i64 = 60_000;
/// Rows removed at once.
const STEP: i64 = 500;

/// Who signs in, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    pub role: Role,
    /// Of a team's session.
    pub team: Option<TeamId>,
    /// The API key that it begins with; `None`: a link.
    pub key: Option<KeyId>,
    /// Digest of the console key that it begins with; `None`: a link, or a team's session.
    pub console_key: Option<String>,
}

/// A session that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub who: SignIn,
    pub seen_at: Timestamp,
    pub expires_at: Timestamp,
}

/// Begins a session; `id` is the digest of what its cookie holds.
pub async fn insert(tx: &mut Tx, id: &str, who: &SignIn, now: Timestamp) -> StoreResult<Timestamp> {
    const SQL: &str = "INSERT INTO console_session \
        (id, role, team_id, api_key_id, console_key, created_at, seen_at, expires_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $6, $7)";
    let expires_at = now.plus_ms(LIFETIME_MS);
    on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(id)
            .bind(who.role)
            .bind(who.team)
            .bind(who.key)
            .bind(who.console_key.as_deref())
            .bind(now)
            .bind(expires_at)
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(expires_at)
}

type Columns = (Role, Option<TeamId>, Option<KeyId>, Option<String>, Timestamp, Timestamp);

/// The statement of [`Columns`]: sessions that have not ended, neither by time nor with their key. `$1` is now, `$2` the
/// last moment before which nothing may have been asked.
macro_rules! select_live {
    ($columns:literal, $which:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM console_session s WHERE s.expires_at > $1 AND s.seen_at > $2 AND (s.api_key_id IS NULL OR EXISTS \
             (SELECT 1 FROM api_key k WHERE k.id = s.api_key_id AND k.revoked_at IS NULL)) AND ",
            $which
        )
    };
}

/// The session, unless it has ended.
pub async fn find(db: &Db, id: &str, now: Timestamp) -> StoreResult<Option<SessionRow>> {
    const SQL: &str =
        select_live!("s.role, s.team_id, s.api_key_id, s.console_key, s.seen_at, s.expires_at", "s.id = $3");
    let found: Option<Columns> = on_pool!(db, |pool| {
        sqlx::query_as(SQL).bind(now).bind(now.plus_ms(-IDLE_MS)).bind(id).fetch_optional(pool).await?
    });
    Ok(found.map(|(role, team, key, console_key, seen_at, expires_at)| SessionRow {
        who: SignIn { role, team, key, console_key },
        seen_at,
        expires_at,
    }))
}

/// Which of these sessions have not ended.
pub async fn live_among(db: &Db, ids: &[String], now: Timestamp) -> StoreResult<Vec<String>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<(String,)> = on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new("SELECT s.id FROM console_session s WHERE s.expires_at > ");
        select.push_bind(now).push(" AND s.seen_at > ").push_bind(now.plus_ms(-IDLE_MS));
        select.push(
            " AND (s.api_key_id IS NULL OR EXISTS (SELECT 1 FROM api_key k WHERE k.id = s.api_key_id \
             AND k.revoked_at IS NULL)) AND s.id IN (",
        );
        let mut list = select.separated(", ");
        for id in ids {
            list.push_bind(id.as_str());
        }
        select.push(")");
        select.build_query_as().fetch_all(pool).await?
    });
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// Notes that something was asked with the session, at most once a minute.
pub async fn seen(db: &Db, id: &str, row: &SessionRow, now: Timestamp) -> StoreResult<()> {
    const SQL: &str = "UPDATE console_session SET seen_at = $2 WHERE id = $1 AND seen_at < $2";
    if now.ms_since(row.seen_at) < SEEN_EVERY_MS {
        return Ok(());
    }
    let mut tx = db.begin_relaxed().await?;
    on_db!(&mut tx, |conn| sqlx::query(SQL).bind(id).bind(now).execute(conn).await?.rows_affected());
    tx.commit().await
}

/// Ends a session. `false`: there is none.
pub async fn end(tx: &mut Tx, id: &str) -> StoreResult<bool> {
    const SQL: &str = "DELETE FROM console_session WHERE id = $1";
    let done = on_db!(tx, |conn| sqlx::query(SQL).bind(id).execute(conn).await?.rows_affected());
    Ok(done == 1)
}

/// Ends the sessions of a team, and takes back its links.
pub async fn end_of_team(tx: &mut Tx, team: TeamId) -> StoreResult<()> {
    const SESSIONS: &str = "DELETE FROM console_session WHERE team_id = $1";
    const LINKS: &str = "DELETE FROM console_link WHERE team_id = $1";
    for sql in [SESSIONS, LINKS] {
        on_db!(tx, |conn| sqlx::query(sql).bind(team).execute(conn).await?.rows_affected());
    }
    Ok(())
}

/// Makes a link; `id` is the digest of what it holds.
pub async fn insert_link(
    tx: &mut Tx,
    id: &str,
    role: Role,
    team: Option<TeamId>,
    now: Timestamp,
) -> StoreResult<Timestamp> {
    const SQL: &str = "INSERT INTO console_link (id, role, team_id, expires_at) VALUES ($1, $2, $3, $4)";
    let expires_at = now.plus_ms(LINK_MS);
    on_db!(tx, |conn| {
        sqlx::query(SQL).bind(id).bind(role).bind(team).bind(expires_at).execute(conn).await?.rows_affected()
    });
    Ok(expires_at)
}

/// Whether there is such a link, which is all that whoever makes one up is to cost.
pub async fn has_link(db: &Db, id: &str, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = "SELECT 1 FROM console_link WHERE id = $1 AND expires_at > $2";
    let found: Option<i32> =
        on_pool!(db, |pool| sqlx::query_scalar(SQL).bind(id).bind(now).fetch_optional(pool).await?);
    Ok(found.is_some())
}

/// Uses a link: it is gone afterwards. `None`: unknown, used or expired.
pub async fn use_link(tx: &mut Tx, id: &str, now: Timestamp) -> StoreResult<Option<SignIn>> {
    const SQL: &str = "DELETE FROM console_link WHERE id = $1 AND expires_at > $2 RETURNING role, team_id";
    let found: Option<(Role, Option<TeamId>)> =
        on_db!(tx, |conn| sqlx::query_as(SQL).bind(id).bind(now).fetch_optional(conn).await?);
    Ok(found.map(|(role, team)| SignIn { role, team, key: None, console_key: None }))
}

/// Removes a part of what has ended.
pub async fn expire(tx: &mut Tx, now: Timestamp) -> StoreResult<()> {
    const SESSIONS: &str = "DELETE FROM console_session WHERE id IN \
        (SELECT id FROM console_session WHERE expires_at <= $1 LIMIT $2)";
    const LINKS: &str = "DELETE FROM console_link WHERE expires_at <= $1";
    on_db!(tx, |conn| {
        sqlx::query(SESSIONS).bind(now).bind(STEP).execute(&mut *conn).await?;
        sqlx::query(LINKS).bind(now).execute(conn).await?.rows_affected()
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::accounts::keys;
    use crate::store::testing;

    #[tokio::test]
    async fn a_session_ends_by_itself_when_idle_at_sign_out_and_with_its_key() {
        for db in testing::databases().await {
            let team = testing::team(&db, "acme").await;
            let start = Timestamp(1_000_000_000);
            let mut tx = db.begin().await.unwrap();
            let key = keys::create(&mut tx, team, start).await.unwrap().id;
            let who = SignIn { role: Role::Team, team: Some(team), key: Some(key), console_key: None };
            let expires_at = insert(&mut tx, "a", &who, start).await.unwrap();
            let operator = SignIn { role: Role::Operator, team: None, key: None, console_key: Some("d".into()) };
            insert(&mut tx, "b", &operator, start).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(expires_at, start.plus_ms(LIFETIME_MS));
            let row = find(&db, "a", start).await.unwrap().unwrap();
            assert_eq!((&row.who, row.expires_at), (&who, expires_at));
            assert_eq!(find(&db, "b", start).await.unwrap().unwrap().who, operator);
            assert_eq!(find(&db, "c", start).await.unwrap(), None);
            // Idle, unless something is asked.
            let later = start.plus_ms(IDLE_MS);
            assert_eq!(find(&db, "a", later).await.unwrap(), None);
            seen(&db, "a", &row, start.plus_ms(SEEN_EVERY_MS - 1)).await.unwrap();
            assert_eq!(find(&db, "a", later).await.unwrap(), None, "not noted so soon");
            seen(&db, "a", &row, later.plus_ms(-1)).await.unwrap();
            assert!(find(&db, "a", later).await.unwrap().is_some());
            // Its time is over, however much is asked.
            let mut row = row;
            for hours in 2..12 {
                row.seen_at = Timestamp(0);
                seen(&db, "a", &row, start.plus_ms(hours * 3_600_000)).await.unwrap();
            }
            assert!(find(&db, "a", expires_at.plus_ms(-1)).await.unwrap().is_some());
            assert_eq!(find(&db, "a", expires_at).await.unwrap(), None);
            // Several at once.
            let ids = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
            let mut live = live_among(&db, &ids, start.plus_ms(1)).await.unwrap();
            live.sort_unstable();
            assert_eq!(live, ["a", "b"]);
            // The key is revoked, the other one signs out.
            let mut tx = db.begin().await.unwrap();
            assert!(keys::revoke(&mut tx, key, start).await.unwrap());
            assert!(end(&mut tx, "b").await.unwrap() && !end(&mut tx, "b").await.unwrap());
            tx.commit().await.unwrap();
            assert!(live_among(&db, &ids, start.plus_ms(1)).await.unwrap().is_empty());
            assert_eq!(find(&db, "a", start.plus_ms(1)).await.unwrap(), None);
            assert_eq!(find(&db, "b", start.plus_ms(1)).await.unwrap(), None);
            let mut tx = db.begin().await.unwrap();
            expire(&mut tx, expires_at).await.unwrap();
            assert!(!end(&mut tx, "a").await.unwrap(), "it is removed");
        }
    }

    #[tokio::test]
    async fn a_link_signs_in_once_and_not_for_long() {
        for db in testing::databases().await {
            let start = Timestamp(1_000);
            let mut tx = db.begin().await.unwrap();
            let until = insert_link(&mut tx, "x", Role::Operator, None, start).await.unwrap();
            insert_link(&mut tx, "y", Role::Reader, None, start).await.unwrap();
            assert_eq!(use_link(&mut tx, "x", until).await.unwrap(), None);
            let who = use_link(&mut tx, "x", until.plus_ms(-1)).await.unwrap().unwrap();
            assert_eq!((who.role, who.team, who.key, who.console_key), (Role::Operator, None, None, None));
            assert_eq!(use_link(&mut tx, "x", start).await.unwrap(), None);
            expire(&mut tx, until).await.unwrap();
            assert_eq!(use_link(&mut tx, "y", start).await.unwrap(), None);
        }
    }
}
