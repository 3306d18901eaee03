//! Where a session comes to: the team's place, its credits, the profile's lease and a worker's slot, in one transaction.

use crate::domain::node::{Load, NodeState};
use crate::domain::session::{self, CreateSession, SessionKind, SessionState};
use crate::ids::{KeyId, PageId, SessionId, TeamId, WorkerId};
use crate::on_db;
use crate::store::accounts::credits::{self, Funds};
use crate::store::accounts::team_lock;
use crate::store::work::nodes;
use crate::store::{StoreError, StoreResult, Tx};
use crate::time::Timestamp;

use super::rows::IS_OF_PAGE;

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
    /// Workers that could not be reached a moment ago, or did not take it: none of these.
    pub avoid: &'a [WorkerId],
    /// The only worker that will do: the one that asks for itself.
    pub only: Option<WorkerId>,
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
    /// The same, but for those of workers that are to be avoided, or every worker is silent.
    Away,
    /// Workers live, and none takes sessions: why, if one of them says.
    NotOffered { why: Option<String> },
    /// The same as [`NotPlaced::Full`], [`NotPlaced::Away`] or [`NotPlaced::NotOffered`], but a worker that has just started may
    /// still say that it takes sessions.
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
    let limit = if team.is_removed { 0 } else { team.sessions.unwrap_or(new.default_limit) };
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
    let (worker, address) = match choose_worker(tx, new, now).await? {
        Ok(chosen) => chosen,
        Err(refusal) => return Ok(Err(refusal)),
    };
    insert(tx, id, worker, new, version, need, now).await?;
    Ok(Ok(Placed { id, worker, address }))
}

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
    load: Option<String>,
    started_at: Timestamp,
    taken: i64,
}

impl Candidate {
    /// It has just started, and may still say that it takes sessions.
    fn may_offer(&self, now: Timestamp) -> bool {
        self.session_slots == 0
            && self.sessions_refused.is_none()
            && now.ms_since(self.started_at) < TRIAL_MS
            && !self.takes_none()
    }

    /// It has said that it takes none. Those of earlier releases do not say so.
    fn takes_none(&self) -> bool {
        let load = self.load.as_deref().and_then(|load| serde_json::from_str::<Load>(load).ok());
        load.is_some_and(|load| load.takes_no_sessions)
    }
}

/// How long after its start a worker may need until it says whether it takes sessions: the trial of its sandbox has 20 s.
const TRIAL_MS: i64 = 30_000;

async fn choose_worker(
    tx: &mut Tx,
    new: &NewSession<'_>,
    now: Timestamp,
) -> StoreResult<Result<(WorkerId, String), NotPlaced>> {
    const SQL: &str = sql!(
        "SELECT n.id, n.address, n.session_slots, n.sessions_refused, n.load, n.started_at, (SELECT COUNT(*) \
         FROM browser_session s WHERE s.worker_id = n.id AND s.state <> ",
        SessionState::Destroyed.sql(),
        ") AS taken FROM worker_node n WHERE n.state = ",
        NodeState::Live.sql(),
        " AND n.heartbeat_at >= $1 ORDER BY n.started_at, n.id"
    );
    const SILENT: &str = sql!("SELECT COUNT(*) FROM worker_node WHERE state = ", NodeState::Live.sql());
    // A statement of its own, so that the count reads what the placement before us committed. SQLite holds the whole
    // file already.
    if let Tx::Postgres(tx) = tx {
        sqlx::query("SELECT pg_advisory_xact_lock(hashtext('weir session placement'))").execute(&mut **tx).await?;
    }
    let since = now.plus_ms(-nodes::DEAD_MS);
    let mut workers: Vec<Candidate> = on_db!(tx, |conn| sqlx::query_as(SQL).bind(since).fetch_all(conn).await?);
    if workers.is_empty() {
        // After an outage of the database all are silent for a moment.
        let silent: (i64,) = on_db!(tx, |conn| sqlx::query_as(SILENT).fetch_one(conn).await?);
        return Ok(Err(if silent.0 > 0 { NotPlaced::Away } else { NotPlaced::NoWorker }));
    }
    let may_come = workers.iter().any(|w| w.may_offer(now));
    if workers.iter().all(|w| w.session_slots == 0) {
        if may_come {
            return Ok(Err(NotPlaced::NotYet));
        }
        let why = workers.into_iter().find_map(|w| w.sessions_refused);
        return Ok(Err(NotPlaced::NotOffered { why }));
    }
    workers.retain(|w| w.taken < w.session_slots && new.only.is_none_or(|only| w.id == only));
    let refusal = match (may_come && new.only.is_none(), workers.is_empty()) {
        (true, _) => NotPlaced::NotYet,
        (false, true) => NotPlaced::Full,
        (false, false) => NotPlaced::Away,
    };
    workers.retain(|w| !new.avoid.contains(&w.id));
    // Of workers with equal room the one that has run longest.
    let best = workers.into_iter().rev().max_by_key(|w| w.session_slots - w.taken);
    Ok(best.map(|w| (w.id, w.address)).ok_or(refusal))
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
