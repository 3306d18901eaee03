//! Sessions as they are stored: one, those of a team, those of a worker.

use crate::domain::location::Location;
use crate::domain::node::NodeState;
use crate::domain::profile::ProfileUse;
use crate::domain::session::{self, EndReason, SessionKind, SessionState};
use crate::ids::{PageId, SessionId, TeamId, WorkerId};
use crate::on_pool;
use crate::store::work::nodes;
use crate::store::{Db, StoreResult};
use crate::time::Timestamp;

use super::life::Ended;

/// Most rows of one list.
const LIST: i64 = 1_000;

/// Whether a session `s` counts as the one of its page: it lives, or it was opened for somebody.
pub(super) const IS_OF_PAGE: &str =
    sql!("(s.ended_at IS NULL OR (s.opened_at IS NOT NULL AND s.end_reason <> ", EndReason::NotOpened.sql(), "))");

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
    /// What was asked for and is not so, once it is open or has ended; why it did not open, until somebody has heard of it.
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
