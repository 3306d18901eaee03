//! What extractions and agents share: how a task is accepted, and how its job is found again.

use uuid::Uuid;
use weir_shared::domain::activity::Endpoint;
use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::job::{JobKind, WebhookEvent};
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::domain::task::{TaskSpec, UP_FRONT};
use weir_shared::domain::webhook::WebhookSpec;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::store::accounts::activity::{self, Entry};
use weir_shared::store::accounts::{credits, team_lock};
use weir_shared::store::work::jobs::{self, JobRow, NewJob};
use weir_shared::store::work::tasks::{self, NewTask, TaskRow};
use weir_shared::store::work::webhooks;

use super::direct::refuse_short_funds;
use super::outage::commit_job;
use super::retention;
use crate::app::App;
use crate::callers::auth::Caller;
use crate::error::{ApiError, ApiResult};

/// Longest target as lists show it, characters.
const TARGET: usize = 200;

/// A task to be accepted.
pub(super) struct Wanted<'a> {
    pub kind: JobKind,
    pub spec: &'a TaskSpec,
    pub scrape: &'a ScrapeOptions,
    pub webhook: Option<&'a WebhookSpec>,
    pub origin: Option<&'a str>,
    pub version: ApiVersion,
    /// Of an agent: its thread and its place there.
    pub thread: Option<(Uuid, i64)>,
}

/// Tasks are read by a language model: without one they are refused before anything is done.
pub(super) fn refuse_without_model(app: &App, what: &str) -> ApiResult<()> {
    if app.settings.model.is_some() {
        return Ok(());
    }
    let text =
        format!("{what} needs a language model, and none is configured on this server (WEIR_LLM_URL, WEIR_LLM_MODEL).");
    Err(ApiError::new(ErrorCode::ModelNotConfigured, text))
}

/// A thread has one run at a time.
pub(super) fn thread_busy() -> ApiError {
    ApiError::new(ErrorCode::ThreadBusy, "Another run of this thread has not ended. Please wait for it.")
}

/// Writes the task with its job, and the delivery that announces it, in one transaction.
///
/// # Errors
/// 402 without funds, 409 when another call has taken its place in the thread meanwhile.
pub(super) async fn accept(app: &App, caller: &Caller, wanted: &Wanted<'_>) -> ApiResult<JobId> {
    let (id, now, team) = (JobId::new(), app.db.now(), caller.team_id());
    let target = match wanted.spec.urls().first() {
        Some(url) => retention::shown(wanted.scrape, url),
        None => wanted.spec.prompt().filter(|_| !wanted.scrape.zero_retention).map(str::to_owned),
    };
    let target: Option<String> = target.map(|text| text.chars().take(TARGET).collect());
    let job = NewJob {
        id,
        team,
        key: caller.key,
        kind: wanted.kind,
        options: wanted.scrape,
        target: target.as_deref().unwrap_or_default(),
        origin: wanted.origin,
        max_concurrency: None,
        webhook: wanted.webhook,
        total: 0,
        created_at: now,
        expires_at: now.plus_ms(app.settings.result_ttl.as_millis() as i64),
    };
    let mut tx = app.db.begin().await?;
    team_lock::lock(&mut tx, team).await?;
    let funds = credits::check_funds(&mut tx, team, UP_FRONT, app.settings.limits.metered).await?;
    refuse_short_funds(funds, UP_FRONT)?;
    if let Some(place) = wanted.thread
        && tasks::is_taken(&mut tx, place).await?
    {
        return Err(thread_busy());
    }
    tasks::insert(&mut tx, &NewTask { job: &job, spec: wanted.spec, thread: wanted.thread }).await?;
    let entry =
        Entry { id: id.0, endpoint: Endpoint::from(wanted.kind), version: wanted.version, target, created_at: now };
    activity::record(&mut tx, team, &entry).await?;
    if wanted.webhook.is_some_and(|hook| hook.wants(WebhookEvent::Started)) {
        webhooks::queue(&mut tx, team, id, None, WebhookEvent::Started, now).await?;
    }
    commit_job(app, tx, id).await?;
    Ok(id)
}

/// The caller's job of one of these kinds, with its task.
pub(super) async fn own(
    app: &App,
    caller: &Caller,
    id: JobId,
    kinds: &[JobKind],
    unknown: &'static str,
) -> ApiResult<(JobRow, TaskRow)> {
    let not_found = || ApiError::new(ErrorCode::NotFound, unknown);
    let is_own =
        |job: &JobRow| kinds.contains(&job.kind) && job.team_id == caller.team_id() && !job.has_expired(app.db.now());
    let job = jobs::load(&app.db, id).await?.filter(is_own).ok_or_else(not_found)?;
    let task = tasks::load(&app.db, id).await?.ok_or_else(not_found)?;
    Ok((job, task))
}
