//! The counts of jobs, changed with the pages they count; whether a job ends with that, and who is told.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::job::{JobKind, JobMove, JobStatus, WebhookEvent};
use crate::domain::webhook::WebhookSpec;
use crate::ids::{JobId, PageId, TeamId};
use crate::queue;
use crate::store::db::signals::{Signal, notify_done};
use crate::store::work::cancel;
use crate::store::work::frontier::Growth;
use crate::store::work::webhooks::{self, Event};
use crate::store::{StoreError, StoreResult, Tx};
use crate::time::Timestamp;

use super::rules::job_after;

/// Counts to add to a job.
#[derive(Default)]
pub(super) struct Delta {
    pub completed: i64,
    pub failed: i64,
    pub queued: i64,
    pub credits: i64,
    /// Pages whose end receivers of webhooks are told of.
    pub pages: Vec<PageId>,
    /// Page rows that came or went.
    pub total: i64,
    pub hidden: i64,
}

/// What came of new counts.
#[derive(Default)]
pub(super) struct Counted {
    /// Jobs that ended.
    pub ended: Vec<JobId>,
    /// Place of the first document that each job gets now, in its order of completion.
    pub first_seq: BTreeMap<JobId, i64>,
    /// Page rows that came and that nobody is on the way to, by team.
    pub grown: BTreeMap<TeamId, usize>,
}

/// Adds counts to jobs in the order of their ids, and queues the events of their webhooks.
pub(super) async fn count(
    tx: &mut Tx,
    deltas: &BTreeMap<JobId, Delta>,
    growth: &BTreeMap<JobId, Growth>,
    now: Timestamp,
) -> StoreResult<Counted> {
    let mut counted = Counted::default();
    for (job, delta) in deltas {
        let after = add(tx, *job, delta, now).await?;
        counted.first_seq.insert(*job, after.completed - delta.completed + 1);
        let new = growth.get(job).filter(|growth| growth.was_idle).map_or(0, |growth| growth.pages);
        if new > 0 {
            *counted.grown.entry(after.team).or_insert(0) += usize::try_from(new).unwrap_or(0);
        }
        // Nothing of an ended job is left to end, so it ended with these pages.
        let has_ended = matches!(after.status, JobStatus::Completed | JobStatus::Failed);
        if has_ended {
            counted.ended.push(*job);
        }
        if after.waits_for_pages {
            queue::task_wakeup(tx, *job, Duration::ZERO).await?;
        }
        let webhook: Option<WebhookSpec> = after.webhook.as_deref().map(serde_json::from_str).transpose()?;
        if let Some(spec) = webhook {
            let end = has_ended.then_some(after.status);
            let pages: &[PageId] = if after.kind.is_task() { &[] } else { &delta.pages };
            queue_events(tx, after.team, *job, &spec, pages, end, now).await?;
            if after.status == JobStatus::Cancelled && spec.wants(WebhookEvent::Cancelled) {
                cancel::tell_end(tx, *job, after.team, now).await?;
            }
        }
    }
    Ok(counted)
}

/// A job after its counts were changed.
struct After {
    team: TeamId,
    status: JobStatus,
    completed: i64,
    webhook: Option<String>,
    kind: JobKind,
    /// It is a task whose pages have all ended: it may go on.
    waits_for_pages: bool,
}

/// Adds to the counts of one job, and ends it when these were its last pages.
///
/// Postgres tells whoever waits in the same statement: the page's name where somebody waits for one page, the job's
/// otherwise.
async fn add(tx: &mut Tx, job: JobId, delta: &Delta, now: Timestamp) -> StoreResult<After> {
    macro_rules! update {
        ($($more:expr),*) => {
            sql!(
                "UPDATE job SET completed = completed + $2, failed = failed + $3, queued = queued + $4, \
                 due_at = CASE WHEN $4 > 0 THEN 0 ELSE due_at END, credits_used = credits_used + $5, \
                 total = total + $7, hidden = hidden - $8, ",
                job_after!("$2", "$3", "$7", "$6"),
                " WHERE id = $1 RETURNING team_id, status, completed, webhook, kind, total, failed"
                $(, $more)*
            )
        };
    }
    type Row = (TeamId, String, i64, Option<String>, String, i64, i64);
    macro_rules! bound {
        ($sql:expr) => {
            sqlx::query_as($sql)
                .bind(job)
                .bind(delta.completed)
                .bind(delta.failed)
                .bind(delta.queued)
                .bind(delta.credits)
                .bind(now)
                .bind(delta.total)
                .bind(delta.hidden)
        };
    }
    tx.tell(Signal::End);
    let row: Row = match tx {
        Tx::Sqlite(tx) => bound!(update!()).fetch_one(&mut **tx).await?,
        Tx::Postgres(tx) => {
            const SQL: &str = update!(", ", notify_done!(rank "$9"));
            bound!(SQL).bind(delta.pages.first().copied()).fetch_one(&mut **tx).await?
        }
    };
    let status: JobStatus = row.1.parse().map_err(StoreError::Corrupt)?;
    // A page that comes back to an ended (cancelled) job is not waiting any more.
    if delta.queued > 0 && status != JobStatus::Scraping {
        cancel::drop_late(tx, job, delta.queued, now).await?;
    }
    let kind: JobKind = row.4.parse().map_err(StoreError::Corrupt)?;
    let waits_for_pages = kind.is_task() && status == JobStatus::Scraping && row.2 + row.6 >= row.5;
    Ok(After { team: row.0, status, completed: row.2, webhook: row.3, kind, waits_for_pages })
}

/// Queues what the job's receiver wants to know: ends of pages, and the job's own (`end`), if it was not told of it before.
async fn queue_events(
    tx: &mut Tx,
    team: TeamId,
    job: JobId,
    spec: &WebhookSpec,
    pages: &[PageId],
    end: Option<JobStatus>,
    now: Timestamp,
) -> StoreResult<()> {
    let of = |page, event| Event { team, job, page, event };
    let mut events = Vec::new();
    if spec.wants(WebhookEvent::Page) {
        events.extend(pages.iter().map(|page| of(Some(*page), WebhookEvent::Page)));
    }
    if let Some(status) = end {
        let event = if status == JobMove::Fail.to() { WebhookEvent::Failed } else { WebhookEvent::Completed };
        if spec.wants(event) && !webhooks::was_told(tx, job, event).await? {
            events.push(of(None, event));
        }
    }
    webhooks::queue_all(tx, &events, now).await
}
