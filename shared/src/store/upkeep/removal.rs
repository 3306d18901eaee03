//! A team that an operator has removed. One transaction says so, and what was the team's goes afterwards, in steps that find
//! what there is to do in the rows: whoever tidies goes on where somebody else has died.
//!
//! ```text
//! mark    its row says so and bears another name; its keys and the console's sessions have ended     one transaction
//! stop    monitors deleted, jobs cancelled, sessions destroyed, deliveries dropped                   one each
//! empty   the rows of every table; blobs by what is written down as waste with them                  slices
//! forget  its own row, once nobody can have anything of it in hand any more                          one transaction
//! ```
//!
//! From the mark on nothing of the team is begun ([`team_lock::lock_to_begin`]). Processes of the release before do not ask for
//! the mark: of what they write meanwhile the steps find the rest, because they are gone through until the last one.

use std::collections::HashSet;

use crate::clock::Stopwatch;
use crate::domain::job::{JobStatus, PageState};
use crate::domain::monitor::MonitorStatus;
use crate::domain::session::{EndReason, SessionState};
use crate::domain::webhook::DeliveryState;
use crate::ids::{JobId, MonitorId, SessionId, TeamId};
use crate::store::accounts::{keys, team_lock, teams};
use crate::store::contents::of_team;
use crate::store::contents::orphans::Orphans;
use crate::store::db::slices::Slices;
use crate::store::sessions::{self, profiles};
use crate::store::work::cancel;
use crate::store::{Db, StoreResult, Tx, console, monitors};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::sweep;

/// How long the row of a team stays at least, milliseconds: longer than a page, a file or a process may go on with what it had
/// in hand.
pub const STRAGGLERS_MS: i64 = 20 * 60_000;
/// Jobs, monitors and sessions that are looked for together.
const STEP: i64 = 500;
/// So often in one round, before what others wait for has its turn.
const LOOKS: usize = 50;

/// How rows of a table that names teams go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    /// By the team, to which an index leads.
    ByTeam(OfTeam),
    /// With the jobs that they are of.
    WithJobs,
    /// With the monitors.
    WithMonitors,
    /// With the mark.
    WithMark,
    /// In walks through all that there is: [`of_team`].
    InWalks,
    /// Whoever's they are: nobody reads them any more, and the cache drops them.
    WithTheRelease,
    /// With the blobs that they name.
    WithBlobs,
}

/// Rows of a team in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OfTeam {
    key: &'static str,
    /// What else is to hold for them, before the team; it leads to the index.
    among: &'static str,
}

const fn by(key: &'static str) -> Goes {
    Goes::ByTeam(OfTeam { key, among: "" })
}

const fn among(key: &'static str, among: &'static str) -> Goes {
    Goes::ByTeam(OfTeam { key, among })
}

/// Every table whose rows name a team, in the order in which they are emptied. A test finds those that are missing here by
/// the databases' own lists of columns.
pub(super) const TABLES: [(&str, Goes); 31] = [
    ("console_session", Goes::WithMark),
    ("console_link", Goes::WithMark),
    ("monitor", Goes::WithMonitors),
    ("monitor_check", Goes::WithMonitors),
    ("job", Goes::WithJobs),
    ("page", Goes::WithJobs),
    ("crawl", Goes::WithJobs),
    ("task", Goes::WithJobs),
    ("webhook_delivery", Goes::WithJobs),
    ("browser_session", among("id", sql!("state = ", SessionState::Destroyed.sql(), " AND "))),
    ("profile_lease", by("team_id, name")),
    ("profile", Goes::WithBlobs),
    // Its files are waste already, for when nobody can be sending them any more.
    ("upload", by("id")),
    ("page_snapshot", by("team_id, key")),
    ("sitemap", by("team_id, key")),
    ("site_template", by("team_id, origin")),
    ("learning_page", by("team_id, site, wish, page")),
    ("learning", by("team_id, site, wish")),
    ("extractor", Goes::InWalks),
    ("page_version", Goes::InWalks),
    ("page_earlier", Goes::InWalks),
    ("cached_page", Goes::WithTheRelease),
    ("activity", by("team_id, endpoint, created_at, id")),
    ("feedback", by("id")),
    ("idempotency_key", by("team_id, key")),
    ("rate_window", by("team_id, bucket")),
    ("figure", among("span, team_id, at, process", "span IN ('minute', 'hour') AND ")),
    ("credit_entry", by("key")),
    ("credit_month", by("team_id, month, api_key_id")),
    ("model_month", by("team_id, month, api_key_id")),
    ("api_key", by("id")),
];

/// What a team has, for whoever is about to remove it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Holdings {
    /// Keys that are not revoked.
    pub keys: i64,
    pub jobs: i64,
    /// Those of them that run.
    pub running: i64,
    pub documents: i64,
    pub monitors: i64,
    /// Browser sessions that live.
    pub sessions: i64,
    pub profiles: i64,
    /// Files that were sent and are not parsed.
    pub files: i64,
    /// Bytes of documents, of versions of tracked pages and of profiles, as they are stored.
    pub bytes: i64,
}

/// Counts what a team has.
///
/// # Errors
/// When the database cannot be asked.
pub async fn holdings(db: &Db, team: TeamId) -> StoreResult<Holdings> {
    const SQL: &str = sql!(
        "SELECT (SELECT COUNT(*) FROM api_key WHERE team_id = $1 AND revoked_at IS NULL) AS keys, \
         (SELECT COUNT(*) FROM job WHERE team_id = $1) AS jobs, \
         (SELECT COUNT(*) FROM job WHERE team_id = $1 AND status = ",
        JobStatus::Scraping.sql(),
        ") AS running, (SELECT COUNT(*) FROM document WHERE job_id IN (SELECT id FROM job WHERE team_id = $1)) AS documents, \
         (SELECT COUNT(*) FROM monitor WHERE team_id = $1 AND status <> ",
        MonitorStatus::Deleted.sql(),
        ") AS monitors, (SELECT COUNT(*) FROM browser_session WHERE team_id = $1 AND state <> ",
        SessionState::Destroyed.sql(),
        ") AS sessions, (SELECT COUNT(*) FROM profile WHERE team_id = $1) AS profiles, \
         (SELECT COUNT(*) FROM upload WHERE team_id = $1 AND name <> '') AS files, CAST(\
         (SELECT COALESCE(SUM(size), 0) FROM document WHERE job_id IN (SELECT id FROM job WHERE team_id = $1)) \
         + (SELECT COALESCE(SUM(size), 0) FROM page_snapshot WHERE team_id = $1) \
         + (SELECT COALESCE(SUM(size), 0) FROM profile WHERE team_id = $1) AS BIGINT) AS bytes"
    );
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).fetch_one(pool).await?))
}

/// What follows the name of a team that is removed, so that its own may be given again.
const MARK: &str = " || ' (removed ' || id || ')'";

/// The team that had this name until it was removed, as long as its row is there; of several the one that was removed last.
///
/// # Errors
/// When the database cannot be asked.
pub async fn once_named(db: &Db, name: &str) -> StoreResult<Option<TeamId>> {
    const SQL: &str = sql!(
        "SELECT id FROM team WHERE removed_at IS NOT NULL AND name = $1",
        MARK,
        " ORDER BY removed_at DESC, id DESC LIMIT 1"
    );
    let found: Option<(TeamId,)> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(name).fetch_optional(pool).await?);
    Ok(found.map(|row| row.0))
}

/// Whether a team is removed, or nothing is left of it any more.
///
/// # Errors
/// When the database cannot be asked.
pub async fn is_marked(db: &Db, team: TeamId) -> StoreResult<bool> {
    Ok(teams::by_id(db, team).await?.is_none_or(|team| team.removed_at.is_some()))
}

/// Removes a team: from the commit on its keys are nobody's, nothing of it is begun, and its name may be given again. `false`:
/// there is none, it is removed already, or it is the default team, which every API process makes at its start.
///
/// # Errors
/// When the database cannot be written.
pub async fn mark(tx: &mut Tx, team: TeamId, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "UPDATE team SET removed_at = $2, name = name",
        MARK,
        " WHERE id = $1 AND removed_at IS NULL AND name <> $3"
    );
    team_lock::lock(tx, team).await?;
    let marked = on_db!(tx, |conn| {
        sqlx::query(SQL).bind(team).bind(now).bind(teams::DEFAULT_TEAM).execute(conn).await?.rows_affected()
    });
    if marked == 0 {
        return Ok(false);
    }
    keys::revoke_all(tx, team, now).await?;
    console::sign_ins::end_of_team(tx, team).await?;
    Ok(true)
}

/// What was stopped of a team.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stopped {
    pub jobs: u64,
    pub monitors: u64,
    pub sessions: u64,
    /// Webhook deliveries that nobody is told of any more.
    pub deliveries: u64,
}

/// Stops what a removed team has under way. Told again it stops what has come since.
///
/// # Errors
/// When the database cannot be written.
pub async fn stop(db: &Db, slices: &mut Slices, team: TeamId, now: Timestamp) -> StoreResult<Stopped> {
    Ok(Stopped {
        monitors: delete_monitors(db, slices, team, now).await?,
        jobs: cancel_jobs(db, slices, team, now).await?,
        sessions: end_sessions(db, slices, team, now).await?,
        deliveries: drop_deliveries(db, slices, team).await?,
    })
}

async fn delete_monitors(db: &Db, slices: &mut Slices, team: TeamId, now: Timestamp) -> StoreResult<u64> {
    const SOME: &str =
        sql!("SELECT id FROM monitor WHERE team_id = $1 AND status <> ", MonitorStatus::Deleted.sql(), " LIMIT $2");
    let mut deleted = 0;
    loop {
        let found: Vec<(MonitorId,)> =
            on_pool!(db, |pool| sqlx::query_as(SOME).bind(team).bind(STEP).fetch_all(pool).await?);
        for (id,) in &found {
            let mut tx = db.begin().await?;
            let began = Stopwatch::start();
            deleted += u64::from(monitors::delete(&mut tx, team, *id, now).await?);
            tx.commit().await?;
            slices.pause(began).await;
        }
        if (found.len() as i64) < STEP {
            return Ok(deleted);
        }
    }
}

async fn cancel_jobs(db: &Db, slices: &mut Slices, team: TeamId, now: Timestamp) -> StoreResult<u64> {
    const SOME: &str =
        sql!("SELECT id FROM job WHERE team_id = $1 AND status = ", JobStatus::Scraping.sql(), " LIMIT $2");
    // Pages of a job that is still being written: without its draft the job is not accepted.
    const DRAFTS: &str = "UPDATE job_draft SET due_at = 0 WHERE due_at > 0 AND (SELECT page.team_id FROM page \
        WHERE page.job_id = job_draft.job_id LIMIT 1) = $1";
    let mut cancelled = 0;
    loop {
        let found: Vec<(JobId,)> =
            on_pool!(db, |pool| sqlx::query_as(SOME).bind(team).bind(STEP).fetch_all(pool).await?);
        for (id,) in &found {
            let mut tx = db.begin().await?;
            let began = Stopwatch::start();
            cancelled += u64::from(cancel::job(&mut tx, *id, now).await?);
            tx.commit().await?;
            slices.pause(began).await;
        }
        if (found.len() as i64) < STEP {
            break;
        }
    }
    let mut tx = db.begin_relaxed().await?;
    on_db!(&mut tx, |conn| sqlx::query(DRAFTS).bind(team).execute(conn).await?.rows_affected());
    tx.commit().await?;
    Ok(cancelled)
}

/// Their workers find that they are over, and end the browsers.
async fn end_sessions(db: &Db, slices: &mut Slices, team: TeamId, now: Timestamp) -> StoreResult<u64> {
    const SOME: &str = sql!(
        "SELECT id, state FROM browser_session WHERE team_id = $1 AND state <> ",
        SessionState::Destroyed.sql(),
        " LIMIT $2"
    );
    let mut ended = 0;
    loop {
        let found: Vec<(SessionId, SessionState)> =
            on_pool!(db, |pool| sqlx::query_as(SOME).bind(team).bind(STEP).fetch_all(pool).await?);
        for (id, state) in &found {
            let reason = if *state == SessionState::Opening { EndReason::NotOpened } else { EndReason::Deleted };
            let mut tx = db.begin().await?;
            let began = Stopwatch::start();
            ended += u64::from(sessions::destroy(&mut tx, *id, reason, now).await?.is_some());
            tx.commit().await?;
            slices.pause(began).await;
        }
        if (found.len() as i64) < STEP {
            return Ok(ended);
        }
    }
}

async fn drop_deliveries(db: &Db, slices: &mut Slices, team: TeamId) -> StoreResult<u64> {
    // Those that wait are few, and have an index.
    const SOME: &str = sql!(
        "DELETE FROM webhook_delivery WHERE id IN (SELECT id FROM webhook_delivery WHERE state = ",
        DeliveryState::Waiting.sql(),
        " AND team_id = $1 LIMIT $2"
    );
    let mut dropped = 0;
    loop {
        let rows = slices.rows();
        let mut tx = db.begin_relaxed().await?;
        let began = Stopwatch::start();
        let sql = if matches!(tx, Tx::Postgres(_)) { sql!(SOME, " FOR UPDATE SKIP LOCKED)") } else { sql!(SOME, ")") };
        let gone = on_db!(&mut tx, |conn| sqlx::query(sql).bind(team).bind(rows).execute(conn).await?.rows_affected());
        tx.commit().await?;
        dropped += gone;
        if gone > 0 {
            slices.pause(began).await;
        }
        if gone < rows.unsigned_abs() {
            return Ok(dropped);
        }
    }
}

/// How much is left of a removed team, but for its row, and what is found by walks alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    pub jobs: i64,
    /// Tables that have rows of it, that of the jobs among them.
    pub tables: Vec<&'static str>,
}

/// Looks for what is left of a team.
///
/// # Errors
/// When the database cannot be asked.
pub async fn left(db: &Db, team: TeamId) -> StoreResult<Left> {
    const JOBS: &str = "SELECT COUNT(*) FROM job WHERE team_id = $1";
    let (jobs,): (i64,) = on_pool!(db, |pool| sqlx::query_as(JOBS).bind(team).fetch_one(pool).await?);
    let mut tables = Vec::new();
    for (table, goes) in TABLES {
        let among = match (table, goes) {
            // A session that lives is left, too.
            ("job" | "monitor" | "profile" | "browser_session", _) => "",
            (_, Goes::ByTeam(of)) => of.among,
            _ => continue,
        };
        if any(db, table, among, team).await? {
            tables.push(table);
        }
    }
    Ok(Left { jobs, tables })
}

async fn any(db: &Db, table: &str, among: &str, team: TeamId) -> StoreResult<bool> {
    let found: Option<(i32,)> = on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new("SELECT 1 FROM ");
        select.push(table).push(" WHERE ").push(among).push("team_id = ").push_bind(team).push(" LIMIT 1");
        select.build_query_as().persistent(false).fetch_optional(pool).await?
    });
    Ok(found.is_some())
}

/// Removes rows of a team from one table, until none is left or those that are left are being written by somebody.
async fn remove_rows(db: &Db, slices: &mut Slices, table: &str, of: OfTeam, team: TeamId) -> StoreResult<u64> {
    let mut gone = 0;
    // A look takes no turn of a writer's.
    while any(db, table, of.among, team).await? {
        let rows = slices.rows();
        let mut tx = db.begin_relaxed().await?;
        let began = Stopwatch::start();
        let lock = if matches!(tx, Tx::Postgres(_)) { " FOR UPDATE SKIP LOCKED" } else { "" };
        let removed = on_db!(&mut tx, |conn| {
            let mut delete = sqlx::QueryBuilder::new("DELETE FROM ");
            delete.push(table).push(" WHERE (").push(of.key).push(") IN (SELECT ").push(of.key).push(" FROM ");
            delete.push(table).push(" WHERE ").push(of.among).push("team_id = ").push_bind(team);
            delete.push(" LIMIT ").push_bind(rows).push(lock).push(")");
            delete.build().persistent(false).execute(conn).await?.rows_affected()
        });
        tx.commit().await?;
        gone += removed;
        if removed < rows.unsigned_abs() {
            break;
        }
        slices.pause(began).await;
    }
    Ok(gone)
}

/// Removes the jobs of a team that have ended, but for those with pages that a worker still has: what it stores for them is
/// found with them.
async fn remove_jobs(db: &Db, slices: &mut Slices, team: TeamId, now: Timestamp) -> StoreResult<u64> {
    const SOME: &str = sql!(
        "SELECT id, zero_retention FROM job WHERE team_id = $1 AND status <> ",
        JobStatus::Scraping.sql(),
        " AND NOT EXISTS (SELECT 1 FROM page WHERE page.team_id = $1 AND page.job_id = job.id AND page.state = ",
        PageState::Running.sql(),
        ") LIMIT $2"
    );
    let mut gone = 0;
    for _ in 0..LOOKS {
        let found: Vec<(JobId, bool)> =
            on_pool!(db, |pool| sqlx::query_as(SOME).bind(team).bind(STEP).fetch_all(pool).await?);
        let mut removed = 0;
        for keeps_nothing in [false, true] {
            let jobs: Vec<JobId> = found.iter().filter(|job| job.1 == keeps_nothing).map(|job| job.0).collect();
            if !jobs.is_empty() {
                removed += sweep::remove_jobs(db, slices, &jobs, keeps_nothing, now).await?;
            }
        }
        gone += removed;
        // Of those that are left somebody writes rows.
        if removed == 0 {
            break;
        }
    }
    Ok(gone)
}

async fn remove_profiles(db: &Db, slices: &mut Slices, team: TeamId, now: Timestamp) -> StoreResult<u64> {
    let mut gone = 0;
    while any(db, "profile", "", team).await? {
        let mut tx = db.begin_relaxed().await?;
        let began = Stopwatch::start();
        let removed = profiles::remove_of_team(&mut tx, team, slices.rows(), now).await?;
        tx.commit().await?;
        gone += removed;
        if removed == 0 {
            break;
        }
        slices.pause(began).await;
    }
    Ok(gone)
}

/// Removes everything of a team to which an index leads. Returns how many rows went, without those below jobs and monitors.
async fn empty(db: &Db, slices: &mut Slices, team: TeamId, now: Timestamp) -> StoreResult<u64> {
    let mut gone = monitors::removal::remove_of_team(db, slices, team).await?;
    gone += remove_jobs(db, slices, team, now).await?;
    for (table, goes) in TABLES {
        gone += match goes {
            Goes::ByTeam(of) => remove_rows(db, slices, table, of, team).await?,
            Goes::WithBlobs => remove_profiles(db, slices, team, now).await?,
            _ => 0,
        };
    }
    Ok(gone)
}

/// Removes the row of a team of which nothing else is left.
async fn forget(db: &Db, team: TeamId, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = "DELETE FROM team WHERE id = $1 AND removed_at <= $2";
    let mut tx = db.begin().await?;
    team_lock::lock(&mut tx, team).await?;
    let before = now.plus_ms(-STRAGGLERS_MS);
    let gone = on_db!(&mut tx, |conn| sqlx::query(SQL).bind(team).bind(before).execute(conn).await?.rows_affected());
    tx.commit().await?;
    Ok(gone == 1)
}

/// What one process knows of removals from round to round.
#[derive(Debug, Default)]
pub struct Removals {
    /// Teams for which it has walked through the tables in which no index leads to them.
    walked: HashSet<TeamId>,
}

/// What came of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// Rows that went, without those below jobs and monitors.
    pub rows: u64,
    /// Teams of which nothing is left.
    pub teams: u64,
}

impl Removals {
    /// Goes on with all teams that are removed.
    ///
    /// # Errors
    /// When the database cannot be asked; the next round goes on.
    pub async fn go_on(&mut self, db: &Db, slices: &mut Slices, orphans: &mut Orphans) -> StoreResult<Round> {
        const SOME: &str = "SELECT id, removed_at FROM team WHERE removed_at IS NOT NULL ORDER BY removed_at";
        let removed: Vec<(TeamId, Timestamp)> = on_pool!(db, |pool| sqlx::query_as(SOME).fetch_all(pool).await?);
        let mut round = Round::default();
        for (team, since) in removed {
            stop(db, slices, team, db.now()).await?;
            round.rows += empty(db, slices, team, db.now()).await?;
            if self.walked.insert(team) {
                round.rows += walk(db, slices, orphans, team).await?;
            }
            let is_late = db.now().ms_since(since) >= STRAGGLERS_MS;
            if !is_late || !left(db, team).await?.tables.is_empty() {
                continue;
            }
            // What somebody had in hand then may have come since.
            round.rows += walk(db, slices, orphans, team).await?;
            if forget(db, team, db.now()).await? {
                self.walked.remove(&team);
                round.teams += 1;
                tracing::info!(team.id = %team, "nothing is left of a team that was removed");
            }
        }
        Ok(round)
    }
}

async fn walk(db: &Db, slices: &mut Slices, orphans: &mut Orphans, team: TeamId) -> StoreResult<u64> {
    let gone = of_team::remove(db, slices, team, db.now()).await?;
    if gone > 0 {
        orphans.expect();
    }
    Ok(gone)
}
