//! The moves of a session, each guarded by the state it starts from, and its bill.

use crate::domain::session::{self, Bill, EndReason, SessionKind, SessionMove, SessionState};
use crate::ids::{KeyId, PageId, SessionId, TeamId};
use crate::store::accounts::credits::{self, Charge};
use crate::store::accounts::team_lock;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// What the worker has found for a session.
#[derive(Debug, Clone, Copy, Default)]
pub struct Found<'a> {
    /// The version of the profile that was loaded.
    pub profile: Option<i64>,
    /// What was asked for and is not so.
    pub warning: Option<&'a str>,
}

/// The browser is there: from now on the session takes calls, lives and costs. `false`: it was given up meanwhile; the
/// browser must end.
pub async fn activate(tx: &mut Tx, id: SessionId, found: Found<'_>, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "UPDATE browser_session SET state = ",
        SessionMove::Activate.to().sql(),
        ", opened_at = $2, last_activity = $2, expires_at = $2 + ttl_ms, profile_version = $3, warning = $4 \
         WHERE id = $1 AND state = ",
        SessionMove::Activate.from().sql()
    );
    // The team's activity begins to show it now: failed attempts to open a session are not shown.
    const ACTIVITY: &str = "INSERT INTO activity (team_id, created_at, id, endpoint, target) SELECT team_id, \
        opened_at, id, kind, (SELECT page.url FROM page WHERE page.id = browser_session.page_id) \
        FROM browser_session WHERE id = $1";
    let done = on_db!(tx, |conn| {
        let update = sqlx::query(SQL).bind(id).bind(now).bind(found.profile).bind(found.warning);
        update.execute(conn).await?.rows_affected()
    });
    if done == 1 {
        on_db!(tx, |conn| sqlx::query(ACTIVITY).bind(id).execute(conn).await?.rows_affected());
    }
    Ok(done == 1)
}

/// Writes down when sessions were last used, whatever order the times come in. Returns those that live, or are about to:
/// the browser of any other must end.
pub async fn touch(tx: &mut Tx, used: &[(SessionId, Timestamp)]) -> StoreResult<Vec<SessionId>> {
    if used.is_empty() {
        return Ok(Vec::new());
    }
    let live: Vec<(SessionId,)> = on_db!(tx, |conn| {
        let mut update = sqlx::QueryBuilder::new("WITH used (id, at) AS (VALUES ");
        for (i, (id, at)) in used.iter().enumerate() {
            update.push(if i == 0 { "(CAST(" } else { ", (CAST(" }).push_bind(*id);
            update.push(" AS TEXT), CAST(").push_bind(*at);
            update.push(" AS BIGINT))");
        }
        update.push(sql!(
            ") UPDATE browser_session SET last_activity = \
             CASE WHEN used.at > last_activity THEN used.at ELSE last_activity END FROM used \
             WHERE browser_session.id = used.id AND state IN (",
            SessionState::Opening.sql(),
            ", ",
            SessionState::Active.sql(),
            ") RETURNING browser_session.id"
        ));
        update.build_query_as().fetch_all(conn).await?
    });
    Ok(live.into_iter().map(|row| row.0).collect())
}

/// The session takes no more calls from `at` on; what follows is not billed. It keeps its slot and its lease until
/// [`destroy`]. `false`: it was not active.
pub async fn begin_close(tx: &mut Tx, id: SessionId, reason: EndReason, at: Timestamp) -> StoreResult<bool> {
    let Some(row) = lock(tx, id).await? else { return Ok(false) };
    if row.state != SessionMove::BeginClose.from() {
        return Ok(false);
    }
    const SQL: &str = sql!(
        "UPDATE browser_session SET state = ",
        SessionMove::BeginClose.to().sql(),
        ", ended_at = $2, end_reason = $3 WHERE id = $1 AND state = ",
        SessionMove::BeginClose.from().sql()
    );
    let bill = session::bill(row.opened_at, row.expires_at, at, reason);
    let done = on_db!(tx, |conn| {
        sqlx::query(SQL).bind(id).bind(bill.ended_at).bind(reason).execute(conn).await?.rows_affected()
    });
    Ok(done == 1)
}

/// Adds to what is to be said of a session, with its end at the latest. Told again after that, it changes nothing.
pub async fn warn(tx: &mut Tx, id: SessionId, text: &str) -> StoreResult<()> {
    const SQL: &str = sql!(
        "UPDATE browser_session SET warning = COALESCE(warning || ' ', '') || $2 WHERE id = $1 AND (state <> ",
        SessionState::Destroyed.sql(),
        " OR warning IS NULL)"
    );
    // The team's lock stands before the row's, and who writes this mostly ends the session next.
    if lock(tx, id).await?.is_some() {
        on_db!(tx, |conn| sqlx::query(SQL).bind(id).bind(text).execute(conn).await?.rows_affected());
    }
    Ok(())
}

/// Why a session of this page did not open, where nobody has heard of it and it was placed after `since`. It is told once:
/// whoever takes it says it to its caller.
pub async fn take_failure(db: &Db, team: TeamId, page: PageId, since: Timestamp) -> StoreResult<Option<String>> {
    const FIND: &str = "SELECT warning FROM browser_session WHERE team_id = $1 AND created_at > $2 AND page_id = $3 \
        AND opened_at IS NULL AND ended_at IS NOT NULL AND warning IS NOT NULL ORDER BY created_at DESC LIMIT 1";
    const TAKE: &str = "UPDATE browser_session SET warning = NULL WHERE team_id = $1 AND created_at > $2 \
        AND page_id = $3 AND opened_at IS NULL AND ended_at IS NOT NULL AND warning IS NOT NULL";
    let found: Option<(String,)> =
        on_pool!(db, |pool| sqlx::query_as(FIND).bind(team).bind(since).bind(page).fetch_optional(pool).await?);
    let Some((why,)) = found else { return Ok(None) };
    let mut tx = db.begin().await?;
    let taken = on_db!(&mut tx, |conn| {
        sqlx::query(TAKE).bind(team).bind(since).bind(page).execute(conn).await?.rows_affected()
    });
    tx.commit().await?;
    Ok((taken > 0).then_some(why))
}

/// What a destroyed session came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    pub duration_ms: i64,
    /// Billed, once.
    pub credits: i64,
}

/// Destroys a session: slot and lease are free, and it is billed once, until `at` or the moment it began to close. Told
/// again, it answers the same and changes nothing. `None`: no such session.
pub async fn destroy(tx: &mut Tx, id: SessionId, reason: EndReason, at: Timestamp) -> StoreResult<Option<Ended>> {
    let Some(row) = lock(tx, id).await? else { return Ok(None) };
    if let Some(duration_ms) = row.duration_ms {
        return Ok(Some(Ended { duration_ms, credits: row.credits }));
    }
    const SQL: &str = sql!(
        "UPDATE browser_session SET state = ",
        SessionMove::Finish.to().sql(),
        ", ended_at = $2, end_reason = $3, duration_ms = $4, credits = $5 WHERE id = $1 AND state IN (",
        SessionMove::GiveUp.from().sql(),
        ", ",
        SessionMove::Lose.from().sql(),
        ", ",
        SessionMove::Finish.from().sql(),
        ")"
    );
    const LEASE: &str = "DELETE FROM profile_lease WHERE session_id = $1";
    // What began to close keeps the reason and the time it began with, unless nobody was ever told of it.
    let given_up = reason == EndReason::NotOpened;
    let reason = row.end_reason.filter(|_| !given_up).unwrap_or(reason);
    let Bill { ended_at, duration_ms, credits } =
        session::bill(row.opened_at, row.expires_at, row.ended_at.unwrap_or(at), reason);
    on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(id)
            .bind(ended_at)
            .bind(reason)
            .bind(duration_ms)
            .bind(credits)
            .execute(&mut *conn)
            .await?;
        sqlx::query(LEASE).bind(id).execute(conn).await?.rows_affected()
    });
    if credits > 0 {
        let charge = Charge {
            entry: format!("session:{id}"),
            team: row.team_id,
            key: row.api_key_id,
            kind: row.kind.as_str(),
            amount: credits,
            at: ended_at,
        };
        credits::charge(tx, charge).await?;
    }
    Ok(Some(Ended { duration_ms, credits }))
}

/// What the end of a session is computed from.
#[derive(sqlx::FromRow)]
struct Locked {
    team_id: TeamId,
    api_key_id: Option<KeyId>,
    kind: SessionKind,
    state: SessionState,
    opened_at: Option<Timestamp>,
    expires_at: Timestamp,
    ended_at: Option<Timestamp>,
    end_reason: Option<EndReason>,
    duration_ms: Option<i64>,
    credits: i64,
}

/// Locks the session's team, then the session. `None`: no such session.
async fn lock(tx: &mut Tx, id: SessionId) -> StoreResult<Option<Locked>> {
    const OWNER: &str = "SELECT team_id FROM browser_session WHERE id = $1";
    const ROW: &str = "SELECT team_id, api_key_id, kind, state, opened_at, expires_at, ended_at, end_reason, \
        duration_ms, credits FROM browser_session WHERE id = $1";
    const ROW_LOCKED: &str = "SELECT team_id, api_key_id, kind, state, opened_at, expires_at, ended_at, end_reason, \
        duration_ms, credits FROM browser_session WHERE id = $1 FOR NO KEY UPDATE";
    let owner: Option<(TeamId,)> = on_db!(tx, |conn| sqlx::query_as(OWNER).bind(id).fetch_optional(conn).await?);
    let Some((team,)) = owner else { return Ok(None) };
    team_lock::lock(tx, team).await?;
    // On SQLite the transaction holds the lock of the whole file already.
    Ok(match tx {
        Tx::Sqlite(tx) => sqlx::query_as(ROW).bind(id).fetch_optional(&mut **tx).await?,
        Tx::Postgres(tx) => sqlx::query_as(ROW_LOCKED).bind(id).fetch_optional(&mut **tx).await?,
    })
}
