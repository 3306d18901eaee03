//! A claimed page from its start to its end, whatever kind of job it is of.

use std::sync::Arc;
use std::time::Duration;

use weir_shared::clock::Stopwatch;
use weir_shared::domain::figures::PageEnd;
use weir_shared::domain::job::{JobKind, is_worn_out};
use weir_shared::error_code::ErrorCode;
use weir_shared::slots::Slot;
use weir_shared::store::work::jobs::{self, JobSpec};
use weir_shared::store::work::page::end::{Finished, Outcome};
use weir_shared::store::work::page::rows::Claimed;
use weir_shared::time::Timestamp;
use weir_shared::traces::{self, Side, Span};

use super::attempt::{attempt, attempt_stored, judge};
use super::error::PageError;
use super::rest;
use super::settle::settle;
use super::steps::Attempted;
use super::task::PageTask;
use crate::context::WorkerContext;
use crate::dispatch::held::HeldPage;
use crate::finisher::EndSender;
use crate::{crawl, map};

/// How often it is looked whether the job of a page that takes long was cancelled.
const LOOK: Duration = Duration::from_secs(3);

/// Works on a claimed page and hands in its end, of which `end_sender` hears. The slot is given back before the end is
/// committed; the page is `held` until it is. Returns when the page's team is to be served again, where the page is only
/// put off.
pub async fn run(
    context: &Arc<WorkerContext>,
    page: Claimed,
    held: HeldPage,
    slot: Slot,
    end_sender: Option<EndSender>,
) -> Option<Timestamp> {
    let spec = match context.spec(page.job_id).await {
        Ok(Some(spec)) => spec,
        // The job is gone with its pages, or the sweeper takes the page back.
        Ok(None) => return None,
        Err(error) => {
            tracing::warn!(%error, page.id = %page.id, "a job's options cannot be read; the page goes back");
            let end = Finished { page, kind: None, key: None, outcome: Outcome::GivenBack };
            context.finisher.submit(end, held, None).await;
            return None;
        }
    };
    let started = Stopwatch::start();
    let mut span = attempt_span(&page, &spec);
    let (trace, attempted) = (span.own(), Arc::new(Attempted::begin()));
    let task = PageTask { context: Arc::clone(context), page, spec, rests: 0, trace, attempted };
    let mut outcome = tokio::select! {
        biased;
        () = context.fenced.cancelled() => return None,
        outcome = outcome(&task) => outcome,
        // It comes back to a job that has ended, and is cancelled as its other pages are.
        () = cancelled(&task) => Outcome::GivenBack,
        outcome = stopped(&task) => outcome,
    };
    if let Some(document) = outcome.document_mut() {
        document.steps = task.attempted.told();
        let settled = tokio::select! {
            biased;
            () = context.fenced.cancelled() => return None,
            settled = settle(&task, document, slot) => settled,
        };
        if let Err(error) = settled {
            outcome = judge(&task, Err(error));
        }
    } else {
        drop(slot);
    }
    let duration = started.elapsed();
    context.process.metrics.page_seconds.observe(duration.as_secs_f64());
    count(&task, &outcome, duration);
    let again = outcome.run_at();
    describe(&mut span, &outcome);
    let end = Finished { page: task.page, kind: Some(task.spec.kind), key: task.spec.key, outcome };
    context.finisher.submit(end, held.traced(span), end_sender).await;
    again
}

/// Returns when nobody wants the page any more.
async fn cancelled(task: &PageTask) {
    loop {
        tokio::time::sleep(LOOK).await;
        if let Ok(true) = jobs::is_cancelled(&task.context.process.db, task.page.job_id).await {
            return;
        }
    }
}

/// How the attempt ends when its worker does not wait for it any longer: another one begins it anew, but for actions that may
/// have had their effect.
async fn stopped(task: &PageTask) -> Outcome {
    const TEXT: &str = "The worker was stopped before the page's actions had come to their end. They may have had their \
        effect: they are not begun again.";
    task.context.giving_back.cancelled().await;
    if !task.attempted.may_have_acted() {
        return Outcome::GivenBack;
    }
    task.context.giving_up.cancelled().await;
    judge(task, Err(PageError::last(ErrorCode::AllEnginesFailed, TEXT)))
}

/// The span of the attempt, from its claim on, with those of what came before.
fn attempt_span(page: &Claimed, spec: &JobSpec) -> Span {
    if !traces::is_on() {
        return Span::default();
    }
    let parent = spec.options.trace_parent;
    traces::below(parent, "queue", Side::Internal).began_at(page.queued_at).ended_at(page.started_at);
    let mut span = traces::begin(parent, "page", Side::Consumer).began_at(page.started_at);
    span.word("weir.job.id", page.job_id);
    span.word("weir.page.id", page.id);
    span.number("weir.page.attempt", page.claims);
    let host = || url::Url::parse(&page.url).ok()?.host_str().map(str::to_owned);
    if !spec.options.zero_retention
        && let Some(host) = host()
    {
        span.word("server.address", host);
    }
    drop(traces::below(span.own(), "claim", Side::Internal).began_at(page.started_at));
    span
}

fn describe(span: &mut Span, outcome: &Outcome) {
    let (word, code) = match outcome {
        Outcome::Done { .. } | Outcome::Crawled { .. } | Outcome::SitemapsRead { .. } => ("done", None),
        Outcome::Failed { code, .. } => ("failed", Some(code)),
        Outcome::Retry { code, .. } => ("retry", Some(code)),
        Outcome::Blocked { .. } => ("blocked", None),
        Outcome::Postponed { .. } | Outcome::GivenBack => ("put back", None),
        Outcome::Lost { .. } => ("lost", None),
    };
    span.word("weir.page.outcome", word);
    if let Some(code) = code {
        span.fail(code.code().unwrap_or("UNKNOWN"));
    }
}

/// Counts a page that has ended, for the console's figures.
fn count(task: &PageTask, outcome: &Outcome, duration: Duration) {
    let engine = task.attempted.engine.get().copied().unwrap_or("none");
    let (code, credits) = match outcome {
        Outcome::Done { credits, .. } => (None, *credits),
        Outcome::Crawled { document, credits, .. } => (None, if document.is_some() { *credits } else { return }),
        Outcome::Failed { code, credits, .. } => (Some(code.code().unwrap_or("UNKNOWN_ERROR")), *credits),
        _ => return,
    };
    task.context.process.figures.page(PageEnd { team: task.page.team_id, engine, code, duration, credits });
}

/// How the attempt ends.
async fn outcome(task: &PageTask) -> Outcome {
    // The claim at hand is counted already.
    if is_worn_out(task.page.claims - 1) {
        return Outcome::Failed { code: ErrorCode::RetryLimit, error: "The page was given up.".to_owned(), credits: 0 };
    }
    // On the heap: every page's task would be as large as the largest of these.
    match (&task.spec.crawl, task.spec.kind) {
        (_, JobKind::Map) => Box::pin(map::work::run(task)).await,
        (Some(crawl), _) => Box::pin(crawl::page::work(task, &crawl.scope)).await,
        (None, _) => {
            if let Some(stored) = attempt_stored(task).await {
                return judge(task, stored);
            }
            match rest::resting(task).await {
                Some(outcome) => outcome,
                None => judge(task, attempt(task).await),
            }
        }
    }
}
