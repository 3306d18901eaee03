//! Shapes that several of the console's answers share.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::domain::job::JobStatus;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId, TeamId};
use weir_shared::store::StoreResult;
use weir_shared::store::accounts::teams;
use weir_shared::store::work::jobs::JobRow;
use weir_shared::store::work::pages::PageRow;
use weir_shared::time::Timestamp;

use crate::app::App;

/// A team as things name their owner.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ConsoleOwner")]
pub struct Team {
    pub id: TeamId,
    pub name: String,
}

/// The names of teams.
pub struct TeamNames(BTreeMap<TeamId, String>);

impl TeamNames {
    /// Those of all teams: there are few, and lists over all of them need most.
    pub async fn load(app: &App) -> StoreResult<Self> {
        Ok(Self(teams::list(&app.db).await?.into_iter().map(|team| (team.id, team.name)).collect()))
    }

    /// The team of this id.
    pub fn of(&self, id: TeamId) -> Team {
        Team { id, name: self.0.get(&id).cloned().unwrap_or_default() }
    }
}

/// A job in lists.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsoleJob")]
pub struct Job {
    pub id: JobId,
    pub team: Team,
    /// scrape, batch, crawl, map, search, extract or agent.
    pub kind: &'static str,
    /// scraping, completed, failed or cancelled.
    pub status: &'static str,
    /// The first address; empty where nothing may be kept.
    pub target: String,
    pub total: i64,
    pub queued: i64,
    pub running: i64,
    pub completed: i64,
    pub failed: i64,
    pub credits_used: i64,
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    #[schemars(extend("format" = "date-time"))]
    pub finished_at: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: String,
    /// Pages a second since it began, while it runs.
    pub rate: Option<f64>,
    /// What is left at this rate, milliseconds.
    pub left_ms: Option<i64>,
}

impl Job {
    /// As the row says now.
    pub fn new(row: &JobRow, names: &TeamNames, now: Timestamp) -> Self {
        let waiting = row.waiting();
        let ended = row.completed + row.failed;
        let is_running = row.status == JobStatus::Scraping;
        let took = now.ms_since(row.created_at).max(1);
        let rate = (is_running && ended > 0).then(|| ended as f64 * 1_000.0 / took as f64);
        let open = waiting.queued + waiting.running;
        Self {
            id: row.id,
            team: names.of(row.team_id),
            kind: row.kind.as_str(),
            status: row.status.as_str(),
            target: row.target.clone(),
            total: row.pages(),
            queued: if is_running { waiting.queued } else { 0 },
            running: waiting.running,
            completed: row.completed,
            failed: row.failed,
            credits_used: row.credits_used,
            created_at: row.created_at.to_iso(),
            finished_at: row.finished_at.map(Timestamp::to_iso),
            expires_at: row.expires_at.to_iso(),
            rate,
            left_ms: rate.map(|rate| (open as f64 * 1_000.0 / rate) as i64),
        }
    }
}

/// A page of a job.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConsolePage")]
pub struct Page {
    pub id: PageId,
    /// Its place in the request, from 0.
    pub index: i64,
    pub url: String,
    /// queued, running, done, failed or cancelled.
    pub status: &'static str,
    #[schemars(extend("format" = "date-time"))]
    pub queued_at: String,
    #[schemars(extend("format" = "date-time"))]
    pub started_at: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    pub finished_at: Option<String>,
    /// How often a worker took it.
    pub claims: i64,
    /// Tries that failed.
    pub tries: i64,
    pub replays: i64,
    pub code: Option<String>,
    pub error: Option<String>,
    /// It failed for a reason that may have passed.
    pub worth_replaying: bool,
}

/// Whether a failure of this code may have passed.
pub fn is_worth_replaying(code: Option<&str>) -> bool {
    code.and_then(ErrorCode::from_code).is_some_and(ErrorCode::is_worth_replaying)
}

impl From<PageRow> for Page {
    fn from(row: PageRow) -> Self {
        Self {
            id: row.id,
            index: row.idx,
            url: row.url,
            status: row.state.as_str(),
            queued_at: row.queued_at.to_iso(),
            started_at: row.started_at.map(Timestamp::to_iso),
            finished_at: row.finished_at.map(Timestamp::to_iso),
            claims: row.claims,
            tries: row.tries,
            replays: row.replays,
            worth_replaying: is_worth_replaying(row.error_code.as_deref()),
            code: row.error_code,
            error: row.error,
        }
    }
}
