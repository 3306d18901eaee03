//! Browser sessions: placed, used, ended and billed.
//!
//! Every transition is guarded by the state it starts from, so that of several processes one moves the row. Whoever
//! destroys a session also frees its profile's lease and writes its one ledger entry, in the same transaction.
//!
//! Lock order: team, session. Placements of different teams stand in line at a lock of their own, taken after the
//! team's, so that a worker's free slots are counted once at a time.

use crate::domain::location::Location;
use crate::domain::node::NodeState;
use crate::domain::profile::ProfileUse;
use crate::domain::session::{self, Bill, CreateSession, EndReason, SessionKind, SessionMove, SessionState};
use crate::ids::{KeyId, PageId, SessionId, TeamId, WorkerId};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::credits::{self, ENTERED_ONCE, Funds, LEDGER_ENTRY};
use super::{Db, StoreError, StoreResult, Tx, nodes, team_lock};

#[cfg(test)]
mod tests;

/// A session that has not become active after this long is given up.
pub const OPENING_MS: i64 = 45_000;
/// A session that its worker has not ended this long after its ttl is ended by the others.
pub const OVERDUE_MS: i64 = 60_000;
/// A session that has been closing for this long is destroyed: longer than the largest profile needs.
pub const CLOSING_MS: i64 = 180_000;
/// Most rows of one list.
const LIST: i64 = 1_000;
/// Rows removed, or sessions ended, in one go.
const STEP: i64 = 500;

/// A session to be placed.
#[derive(Debug, Clone)]
pub struct NewSession<'a> {
    pub team: TeamId,
    pub key: Option<KeyId>,
    pub kind: SessionKind,
    /// The scrape's page of an interact session.
    pub page: Option<PageId>,
    pub request: &'a CreateSession,
    /// Sessions at once of a team without a number of its own (`WEIR_TEAM_SESSIONS`).
    pub default_limit: i64,
    /// Whether teams need credits.
    pub metered: bool,
    /// A worker that could not be reached a moment ago: not this one.
    pub avoid: Option<WorkerId>,
}

/// Where a session was placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub id: SessionId,
    pub worker: WorkerId,
    /// The worker's private listener.
    pub address: String,
}

/// Why a session was not placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPlaced {
    /// The scrape has a session already, or had one.
    Taken,
    /// The team has as many as it may.
    TooMany { limit: i64 },
    /// The team cannot pay for the whole ttl.
    Short { need: i64, left: i64 },
    /// Another live session saves this profile.
    ProfileBusy,
    /// Every slot of every worker is taken.
    Full,
    /// Workers live, and none takes sessions: why, if one of them says.
    NotOffered { why: Option<String> },
    /// A worker that has just started may still say that it takes sessions.
    NotYet,
    /// No worker lives.
    NoWorker,
}

/// Places a session on the live worker with the most free slots, and takes everything it needs: the team's place, its
/// credits, the profile's lease. All of it or nothing; the caller commits, or drops the transaction on a refusal.
pub async fn create(tx: &mut Tx, new: &NewSession<'_>, now: Timestamp) -> StoreResult<Result<Placed, NotPlaced>> {
    const LIVE: &str =
        sql!("SELECT COUNT(*) FROM browser_session WHERE team_id = $1 AND state <> ", SessionState::Destroyed.sql());
    let team = team_lock::lock(tx, new.team).await?;
    let team = team.ok_or_else(|| StoreError::Corrupt(format!("team {} is gone", new.team)))?;
    // Under the team's lock: a page belongs to one team.
    if let Some(page) = new.page
        && session_of(tx, page).await?
    {
        return Ok(Err(NotPlaced::Taken));
    }
    let limit = team.sessions.unwrap_or(new.default_limit);
    let live: (i64,) = on_db!(tx, |conn| sqlx::query_as(LIVE).bind(new.team).fetch_one(conn).await?);
    if live.0 >= limit {
        return Ok(Err(NotPlaced::TooMany { limit }));
    }
    let need = session::credits_for(new.request.ttl_ms());
    if let Funds::Short { left } = credits::check_funds(tx, new.team, need, new.metered).await? {
        return Ok(Err(NotPlaced::Short { need, left }));
    }
    let id = SessionId::new();
    let mut version = None;
    if let Some(profile) = &new.request.profile {
        if profile.save_changes && !take_lease(tx, new.team, &profile.name, id).await? {
            return Ok(Err(NotPlaced::ProfileBusy));
        }
        version = profile_version(tx, new.team, &profile.name).await?;
    }
    let (worker, address) = match choose_worker(tx, new.avoid, now).await? {
        Ok(chosen) => chosen,
        Err(refusal) => return Ok(Err(refusal)),
    };
    insert(tx, id, worker, new, version, need, now).await?;
    Ok(Ok(Placed { id, worker, address }))
}

/// Whether a session `s` counts as the one of its page: it lives, or it was opened for somebody.
const IS_OF_PAGE: &str =
    sql!("(s.ended_at IS NULL OR (s.opened_at IS NOT NULL AND s.end_reason <> ", EndReason::NotOpened.sql(), "))");

async fn session_of(tx: &mut Tx, page: PageId) -> StoreResult<bool> {
    const SQL: &str = sql!("SELECT COUNT(*) FROM browser_session s WHERE s.page_id = $1 AND ", IS_OF_PAGE);
    let found: (i64,) = on_db!(tx, |conn| sqlx::query_as(SQL).bind(page).fetch_one(conn).await?);
    Ok(found.0 > 0)
}

/// The lease of a profile's one saver. `false`: another session has it.
async fn take_lease(tx: &mut Tx, team: TeamId, name: &str, session: SessionId) -> StoreResult<bool> {
    const SQL: &str = "INSERT INTO profile_lease (team_id, name, session_id) VALUES ($1, $2, $3) \
        ON CONFLICT (team_id, name) DO NOTHING";
    let taken =
        on_db!(tx, |conn| sqlx::query(SQL).bind(team).bind(name).bind(session).execute(conn).await?.rows_affected());
    Ok(taken == 1)
}

async fn profile_version(tx: &mut Tx, team: TeamId, name: &str) -> StoreResult<Option<i64>> {
    const SQL: &str = "SELECT version FROM profile WHERE team_id = $1 AND name = $2";
    let found: Option<(i64,)> =
        on_db!(tx, |conn| sqlx::query_as(SQL).bind(team).bind(name).fetch_optional(conn).await?);
    Ok(found.map(|f| f.0))
}

#[derive(sqlx::FromRow)]
struct Candidate {
    id: WorkerId,
    address: String,
    session_slots: i64,
    sessions_refused: Option<String>,
    started_at: Timestamp,
    taken: i64,
}

/// How long after its start a worker may need to try its sandbox.
const TRIAL_MS: i64 = 20_000;

async fn choose_worker(
    tx: &mut Tx,
    avoid: Option<WorkerId>,
    now: Timestamp,
) -> StoreResult<Result<(WorkerId, String), NotPlaced>> {
    const SQL: &str = sql!(
        "SELECT n.id, n.address, n.session_slots, n.sessions_refused, n.started_at, (SELECT COUNT(*) \
         FROM browser_session s WHERE s.worker_id = n.id AND s.state <> ",
        SessionState::Destroyed.sql(),
        ") AS taken FROM worker_node n WHERE n.state = ",
        NodeState::Live.sql(),
        " AND n.heartbeat_at >= $1 ORDER BY n.started_at, n.id"
    );
    // A statement of its own, so that the count reads what the placement before us committed. SQLite holds the whole
    // file already.
    if let Tx::Postgres(tx) = tx {
        sqlx::query("SELECT pg_advisory_xact_lock(hashtext('weir session placement'))").execute(&mut **tx).await?;
    }
    let since = now.plus_ms(-nodes::DEAD_MS);
    let mut workers: Vec<Candidate> = on_db!(tx, |conn| sqlx::query_as(SQL).bind(since).fetch_all(conn).await?);
    if workers.is_empty() {
        return Ok(Err(NotPlaced::NoWorker));
    }
    if workers.iter().all(|w| w.session_slots == 0) {
        if workers.iter().any(|w| w.sessions_refused.is_none() && now.ms_since(w.started_at) < TRIAL_MS) {
            return Ok(Err(NotPlaced::NotYet));
        }
        let why = workers.into_iter().find_map(|w| w.sessions_refused);
        return Ok(Err(NotPlaced::NotOffered { why }));
    }
    workers.retain(|w| w.taken < w.session_slots && Some(w.id) != avoid);
    // Of workers with equal room the one that has run longest.
    let best = workers.into_iter().rev().max_by_key(|w| w.session_slots - w.taken);
    Ok(best.map(|w| (w.id, w.address)).ok_or(NotPlaced::Full))
}

async fn insert(
    tx: &mut Tx,
    id: SessionId,
    worker: WorkerId,
    new: &NewSession<'_>,
    version: Option<i64>,
    reserve: i64,
    now: Timestamp,
) -> StoreResult<()> {
    const SQL: &str = sql!(
        "INSERT INTO browser_session (id, team_id, api_key_id, worker_id, state, kind, page_id, stream_web_view, \
         ttl_ms, activity_ttl_ms, profile_name, profile_save, profile_version, created_at, expires_at, last_activity, \
         credits, block_ads, location) VALUES ($1, $2, $3, $4, ",
        SessionState::Opening.sql(),
        ", $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $13, $15, $16, $17)"
    );
    let profile = new.request.profile.as_ref();
    let location = new.request.location.as_ref().map(serde_json::to_string).transpose()?;
    on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(id)
            .bind(new.team)
            .bind(new.key)
            .bind(worker)
            .bind(new.kind)
            .bind(new.page)
            .bind(new.request.stream_web_view)
            .bind(new.request.ttl_ms())
            .bind(new.request.activity_ttl_ms())
            .bind(profile.map(|p| p.name.as_str()))
            .bind(profile.map(|p| p.save_changes))
            .bind(version)
            .bind(now)
            .bind(now.plus_ms(new.request.ttl_ms()))
            .bind(reserve)
            .bind(new.request.block_ads)
            .bind(location.as_deref())
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(())
}

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

/// Writes down when sessions were last used, whatever order the times come in. Returns those that are still active:
/// the browser of any other must end.
pub async fn touch(tx: &mut Tx, used: &[(SessionId, Timestamp)]) -> StoreResult<Vec<SessionId>> {
    if used.is_empty() {
        return Ok(Vec::new());
    }
    let active: Vec<(SessionId,)> = on_db!(tx, |conn| {
        let mut update = sqlx::QueryBuilder::new("WITH used (id, at) AS (VALUES ");
        for (i, (id, at)) in used.iter().enumerate() {
            update.push(if i == 0 { "(CAST(" } else { ", (CAST(" }).push_bind(*id);
            update.push(" AS TEXT), CAST(").push_bind(*at);
            update.push(" AS BIGINT))");
        }
        update.push(sql!(
            ") UPDATE browser_session SET last_activity = \
             CASE WHEN used.at > last_activity THEN used.at ELSE last_activity END FROM used \
             WHERE browser_session.id = used.id AND state = ",
            SessionState::Active.sql(),
            " RETURNING browser_session.id"
        ));
        update.build_query_as().fetch_all(conn).await?
    });
    Ok(active.into_iter().map(|a| a.0).collect())
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
        charge(tx, id, &row, credits, ended_at).await?;
    }
    Ok(Some(Ended { duration_ms, credits }))
}

async fn charge(tx: &mut Tx, id: SessionId, row: &Locked, amount: i64, at: Timestamp) -> StoreResult<()> {
    const ENTRY: &str = sql!(LEDGER_ENTRY, "VALUES ($1, $2, $3, $4, $5, $6)", ENTERED_ONCE);
    let entered = on_db!(tx, |conn| {
        sqlx::query(ENTRY)
            .bind(format!("session:{id}"))
            .bind(row.team_id)
            .bind(row.api_key_id)
            .bind(row.kind)
            .bind(amount)
            .bind(at)
            .execute(conn)
            .await?
            .rows_affected()
    });
    if entered == 1 {
        credits::add_used(tx, row.team_id, amount).await?;
    }
    Ok(())
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

/// A session as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub id: SessionId,
    pub team_id: TeamId,
    pub worker_id: WorkerId,
    pub state: SessionState,
    pub kind: SessionKind,
    pub page_id: Option<PageId>,
    pub stream_web_view: bool,
    pub ttl_ms: i64,
    pub activity_ttl_ms: i64,
    pub profile: Option<ProfileUse>,
    /// The version of the profile that was loaded; `None`: it was empty.
    pub profile_version: Option<i64>,
    pub block_ads: bool,
    pub location: Option<Location>,
    /// What was asked for and is not so, once it is open.
    pub warning: Option<String>,
    pub created_at: Timestamp,
    pub opened_at: Option<Timestamp>,
    pub expires_at: Timestamp,
    pub last_activity: Timestamp,
    /// When it stopped taking calls.
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<EndReason>,
    /// Once destroyed.
    pub duration_ms: Option<i64>,
    /// Held back for its ttl while it lives, billed once it is destroyed.
    pub credits: i64,
    /// Its worker, unless that was declared dead or is forgotten.
    pub worker: Option<Owner>,
}

/// The worker of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its private listener.
    pub address: String,
    pub heartbeat_at: Timestamp,
}

impl SessionRow {
    /// Whether it has a slot, and a lease if it saves a profile.
    pub fn is_live(&self) -> bool {
        self.state != SessionState::Destroyed
    }

    /// Whether it lives on a worker that does not: [`end_orphans`] has work to do.
    pub fn is_orphan(&self, now: Timestamp) -> bool {
        let silent = |owner: &Owner| now.ms_since(owner.heartbeat_at) > nodes::DEAD_MS;
        self.is_live() && self.worker.as_ref().is_none_or(silent)
    }

    /// The bill so far: final once it takes no more calls.
    pub fn bill(&self, now: Timestamp) -> Ended {
        match self.duration_ms {
            Some(duration_ms) => Ended { duration_ms, credits: self.credits },
            None => {
                let reason = self.end_reason.unwrap_or(EndReason::Deleted);
                let bill = session::bill(self.opened_at, self.expires_at, self.ended_at.unwrap_or(now), reason);
                Ended { duration_ms: bill.duration_ms, credits: bill.credits }
            }
        }
    }
}

#[derive(sqlx::FromRow)]
struct Columns {
    id: SessionId,
    team_id: TeamId,
    worker_id: WorkerId,
    state: SessionState,
    kind: SessionKind,
    page_id: Option<PageId>,
    stream_web_view: bool,
    ttl_ms: i64,
    activity_ttl_ms: i64,
    profile_name: Option<String>,
    profile_save: Option<bool>,
    profile_version: Option<i64>,
    block_ads: bool,
    location: Option<String>,
    warning: Option<String>,
    created_at: Timestamp,
    opened_at: Option<Timestamp>,
    expires_at: Timestamp,
    last_activity: Timestamp,
    ended_at: Option<Timestamp>,
    end_reason: Option<EndReason>,
    duration_ms: Option<i64>,
    credits: i64,
    address: Option<String>,
    heartbeat_at: Option<Timestamp>,
}

/// The statement of [`Columns`], in a macro so that each statement stays one literal.
macro_rules! select_session {
    ($($rest:tt)+) => {
        sql!(
            "SELECT s.id, s.team_id, s.worker_id, s.state, s.kind, s.page_id, s.stream_web_view, s.ttl_ms, \
             s.activity_ttl_ms, s.profile_name, s.profile_save, s.profile_version, s.block_ads, s.location, s.warning, s.created_at, s.opened_at, \
             s.expires_at, s.last_activity, s.ended_at, s.end_reason, s.duration_ms, s.credits, n.address, \
             n.heartbeat_at FROM browser_session s \
             LEFT JOIN worker_node n ON n.id = s.worker_id AND n.state <> ", NodeState::Dead.sql(),
            " ",
            $($rest)+
        )
    };
}

fn row(c: Columns) -> SessionRow {
    SessionRow {
        id: c.id,
        team_id: c.team_id,
        worker_id: c.worker_id,
        state: c.state,
        kind: c.kind,
        page_id: c.page_id,
        stream_web_view: c.stream_web_view,
        ttl_ms: c.ttl_ms,
        activity_ttl_ms: c.activity_ttl_ms,
        profile: c.profile_name.zip(c.profile_save).map(|(name, save_changes)| ProfileUse { name, save_changes }),
        profile_version: c.profile_version,
        block_ads: c.block_ads,
        // Written by us; what cannot be read is as good as not given.
        location: c.location.and_then(|text| serde_json::from_str(&text).ok()),
        warning: c.warning,
        created_at: c.created_at,
        opened_at: c.opened_at,
        expires_at: c.expires_at,
        last_activity: c.last_activity,
        ended_at: c.ended_at,
        end_reason: c.end_reason,
        duration_ms: c.duration_ms,
        credits: c.credits,
        worker: c.address.zip(c.heartbeat_at).map(|(address, heartbeat_at)| Owner { address, heartbeat_at }),
    }
}

/// The session, whoever owns it.
pub async fn load(db: &Db, id: SessionId) -> StoreResult<Option<SessionRow>> {
    const SQL: &str = select_session!("WHERE s.id = $1");
    let found: Option<Columns> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?);
    Ok(found.map(row))
}

/// The one session of a scrape's page, whoever owns it; one that never opened does not count.
pub async fn of_page(db: &Db, page: PageId) -> StoreResult<Option<SessionRow>> {
    const SQL: &str = select_session!("WHERE s.page_id = $1 AND ", IS_OF_PAGE);
    let found: Option<Columns> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(page).fetch_optional(pool).await?);
    Ok(found.map(row))
}

/// Sessions of a team that it was told of, newest first, at most 1,000. `status` is one that clients know; those that
/// ended before `since` are left out.
pub async fn list(
    db: &Db,
    team: TeamId,
    status: Option<SessionState>,
    since: Timestamp,
) -> StoreResult<Vec<SessionRow>> {
    const SQL: &str = select_session!(
        "WHERE s.team_id = $1 AND s.opened_at IS NOT NULL AND (s.end_reason IS NULL OR s.end_reason <> ",
        EndReason::NotOpened.sql(),
        ") AND (s.ended_at IS NULL OR s.ended_at > $2) AND ($3 IS NULL OR (s.state = ",
        SessionState::Active.sql(),
        ") = ($3 = ",
        SessionState::Active.sql(),
        ")) ORDER BY s.created_at DESC, s.id DESC LIMIT $4"
    );
    let rows: Vec<Columns> = on_pool!(db, |pool| {
        sqlx::query_as(SQL).bind(team).bind(since).bind(status).bind(LIST).fetch_all(pool).await?
    });
    Ok(rows.into_iter().map(row).collect())
}

/// Live sessions of a team.
pub async fn live_count(db: &Db, team: TeamId) -> StoreResult<i64> {
    const SQL: &str =
        sql!("SELECT COUNT(*) FROM browser_session WHERE team_id = $1 AND state <> ", SessionState::Destroyed.sql());
    let found: (i64,) = on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).fetch_one(pool).await?);
    Ok(found.0)
}

/// Sessions of a team or of all from before one of them, newest first. Those that nobody was told of are left out.
pub async fn list_before(
    db: &Db,
    team: Option<TeamId>,
    status: Option<SessionState>,
    before: Option<SessionId>,
    limit: i64,
) -> StoreResult<Vec<SessionRow>> {
    const SQL: &str = select_session!(
        "WHERE s.id < $1 AND ($2 IS NULL OR s.team_id = $2) AND s.opened_at IS NOT NULL AND ($3 IS NULL OR (s.state = ",
        SessionState::Active.sql(),
        ") = ($3 = ",
        SessionState::Active.sql(),
        ")) ORDER BY s.id DESC LIMIT $4"
    );
    let before = before.unwrap_or(SessionId(uuid::Uuid::max()));
    let rows: Vec<Columns> = on_pool!(db, |pool| {
        sqlx::query_as(SQL)
            .bind(before)
            .bind(team.map(|team| team.to_string()))
            .bind(status)
            .bind(limit)
            .fetch_all(pool)
            .await?
    });
    Ok(rows.into_iter().map(row).collect())
}

/// Live sessions of a worker, oldest first.
pub async fn of_worker(db: &Db, worker: WorkerId) -> StoreResult<Vec<SessionRow>> {
    const SQL: &str = select_session!(
        "WHERE s.worker_id = $1 AND s.state <> ",
        SessionState::Destroyed.sql(),
        " ORDER BY s.created_at, s.id"
    );
    let rows: Vec<Columns> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(worker).fetch_all(pool).await?);
    Ok(rows.into_iter().map(row).collect())
}

/// Live sessions of workers that were declared dead or are forgotten, each with the last sign of life of its worker; in no
/// order, for which all sessions there ever were would be looked through.
pub async fn of_dead_workers(db: &Db, limit: i64) -> StoreResult<Vec<(SessionId, Timestamp)>> {
    const SQL: &str = sql!(
        "SELECT s.id, COALESCE(n.heartbeat_at, s.last_activity) FROM browser_session s \
         LEFT JOIN worker_node n ON n.id = s.worker_id WHERE s.state <> ",
        SessionState::Destroyed.sql(),
        " AND (n.id IS NULL OR ",
        "n.state = ",
        NodeState::Dead.sql(),
        ") LIMIT $1"
    );
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(limit).fetch_all(pool).await?))
}

/// Whether a live session's worker is dead, declared so or not. Cheap while there are none.
pub async fn orphans_exist(db: &Db, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "SELECT COUNT(*) FROM browser_session s LEFT JOIN worker_node n ON n.id = s.worker_id WHERE s.state <> ",
        SessionState::Destroyed.sql(),
        " AND (n.id IS NULL OR ",
        "n.state = ",
        NodeState::Dead.sql(),
        " OR n.heartbeat_at < $1)"
    );
    let before = now.plus_ms(-nodes::DEAD_MS);
    let found: (i64,) = on_pool!(db, |pool| sqlx::query_as(SQL).bind(before).fetch_one(pool).await?);
    Ok(found.0 > 0)
}

/// Destroys the sessions of workers that were declared dead, billed to the last sign of life. Returns how many.
///
/// Each in a transaction of its own: they belong to different teams. Call it after the burial is committed.
pub async fn end_orphans(db: &Db) -> StoreResult<usize> {
    let orphans = of_dead_workers(db, STEP).await?;
    for (id, heard) in &orphans {
        let mut tx = db.begin().await?;
        destroy(&mut tx, *id, EndReason::WorkerDied, *heard).await?;
        tx.commit().await?;
    }
    Ok(orphans.len())
}

/// Live sessions that their worker should have moved on long ago, with the reason and the time of their end.
pub async fn overdue(db: &Db, now: Timestamp, limit: i64) -> StoreResult<Vec<(SessionId, EndReason, Timestamp)>> {
    const SQL: &str = sql!(
        "SELECT id, state, expires_at FROM browser_session WHERE state <> ",
        SessionState::Destroyed.sql(),
        " AND ((state = ",
        SessionState::Opening.sql(),
        " AND created_at < $1) OR (state = ",
        SessionState::Active.sql(),
        " AND expires_at < $2) OR (state = ",
        SessionState::Closing.sql(),
        " AND ended_at < $3)) LIMIT $4"
    );
    let rows: Vec<(SessionId, SessionState, Timestamp)> = on_pool!(db, |pool| {
        sqlx::query_as(SQL)
            .bind(now.plus_ms(-OPENING_MS))
            .bind(now.plus_ms(-OVERDUE_MS))
            .bind(now.plus_ms(-CLOSING_MS))
            .bind(limit)
            .fetch_all(pool)
            .await?
    });
    let due = |(id, state, expires_at): (SessionId, SessionState, Timestamp)| match state {
        SessionState::Opening => (id, EndReason::NotOpened, now),
        // One that closes keeps its own reason and time.
        SessionState::Active | SessionState::Closing | SessionState::Destroyed => (id, EndReason::Ttl, expires_at),
    };
    Ok(rows.into_iter().map(due).collect())
}

/// Destroys the sessions of [`overdue`]. Returns how many.
pub async fn end_overdue(db: &Db, now: Timestamp) -> StoreResult<usize> {
    let due = overdue(db, now, STEP).await?;
    for (id, reason, at) in &due {
        let mut tx = db.begin().await?;
        destroy(&mut tx, *id, *reason, *at).await?;
        tx.commit().await?;
    }
    Ok(due.len())
}

/// Removes a part of the sessions that ended before `before`. Returns how many; the ledger keeps its entries.
pub async fn remove_old(tx: &mut Tx, before: Timestamp) -> StoreResult<u64> {
    const SQL: &str = sql!(
        "DELETE FROM browser_session WHERE id IN (SELECT id FROM browser_session WHERE state = ",
        SessionState::Destroyed.sql(),
        " AND ended_at < $1 ORDER BY ended_at LIMIT $2)"
    );
    Ok(on_db!(tx, |conn| sqlx::query(SQL).bind(before).bind(STEP).execute(conn).await?.rows_affected()))
}

/// Sessions and slots as operators watch them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounts {
    pub opening: i64,
    pub active: i64,
    pub closing: i64,
    /// What live workers offer.
    pub slots: i64,
}

/// How many live sessions each worker has that has any.
pub async fn by_worker(db: &Db) -> StoreResult<Vec<(WorkerId, i64)>> {
    const SQL: &str = sql!(
        "SELECT worker_id, COUNT(*) FROM browser_session WHERE state <> ",
        SessionState::Destroyed.sql(),
        " GROUP BY worker_id"
    );
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).fetch_all(pool).await?))
}

/// How many live sessions there are, and how many there could be.
pub async fn counts(db: &Db, now: Timestamp) -> StoreResult<SessionCounts> {
    const STATES: &str = sql!(
        "SELECT state, COUNT(*) FROM browser_session WHERE state <> ",
        SessionState::Destroyed.sql(),
        " GROUP BY state"
    );
    const SLOTS: &str = sql!(
        "SELECT CAST(COALESCE(SUM(session_slots), 0) AS BIGINT) FROM worker_node WHERE state = ",
        NodeState::Live.sql(),
        " AND heartbeat_at >= $1"
    );
    let since = now.plus_ms(-nodes::DEAD_MS);
    let slots: (i64,) = on_pool!(db, |pool| sqlx::query_as(SLOTS).bind(since).fetch_one(pool).await?);
    let states: Vec<(SessionState, i64)> = on_pool!(db, |pool| sqlx::query_as(STATES).fetch_all(pool).await?);
    let count = |state: SessionState| states.iter().find(|s| s.0 == state).map_or(0, |s| s.1);
    Ok(SessionCounts {
        opening: count(SessionState::Opening),
        active: count(SessionState::Active),
        closing: count(SessionState::Closing),
        slots: slots.0,
    })
}
