//! One try at a claimed page, within the page's time, and what the try comes to: done, failed for good, or another try.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::Instant;
use weir_shared::clock;
use weir_shared::domain::job::JobKind;
use weir_shared::domain::price;
use weir_shared::error_code::ErrorCode;
use weir_shared::guests::Urgency;
use weir_shared::llm::Allowance;
use weir_shared::store::work::jobs::JobSpec;
use weir_shared::store::work::page::end::Outcome;
use weir_shared::store::work::page::rows::Claimed;

use super::cached::from_store;
use super::complete::{complete, refuse_unreadable};
use super::error::PageError;
use super::load::Loaded;
use super::next_try::next_try;
use super::product::{Engine, Product};
use super::proxy_retry::load_page;
use super::rest;
use super::task::PageTask;
use super::uploaded::from_upload;
use crate::learn;

/// Time kept back for extraction and the commit.
const RESERVE: Duration = Duration::from_millis(50);
/// How long a place for what the site has sent is waited for, once the page has its document.
const FOR_A_PLACE: Duration = Duration::from_secs(5);

/// What comes of one try.
pub type Tried = Result<(Product, Engine), PageError>;

/// The page without asking its site, within the page's time. `None`: the site is to be asked.
pub async fn attempt_stored(task: &PageTask) -> Option<Tried> {
    let time = time(task);
    let found = within(task, &time, from_store(task, &time)).await;
    found.map(|product| product.map(|product| (product, Engine::Cache))).transpose()
}

/// One try at asking the site, within the page's time.
///
/// # Errors
/// When there is no document, or not in time.
pub async fn attempt(task: &PageTask) -> Tried {
    let time = time(task);
    learn::line(task).await?;
    within(task, &time, scrape(task, &time)).await
}

fn time(task: &PageTask) -> Allowance {
    let deadline = deadline(&task.page, &task.spec, clock::instant());
    match task.holder().1 {
        Urgency::Direct => Allowance::until(deadline),
        Urgency::Background => Allowance::of_background(deadline),
    }
}

async fn within<T>(
    task: &PageTask,
    time: &Allowance,
    work: impl Future<Output = Result<T, PageError>>,
) -> Result<T, PageError> {
    // On the heap, so that what is wrapped around it here and below moves a pointer and not ten kilobytes at each step.
    let work = AssertUnwindSafe(Box::pin(work)).catch_unwind();
    tokio::select! {
        biased;
        done = work => done.unwrap_or_else(|_| Err(PageError::again(ErrorCode::Unknown, "Internal error."))),
        () = time.over(RESERVE) => Err(PageError::timed_out(task.options())),
    }
}

async fn scrape(task: &PageTask, time: &Allowance) -> Tried {
    refuse_unreadable(&task.context, task.options())?;
    let loaded = match &task.options().upload {
        Some(upload) => from_upload(task, upload, time.ends()).await?,
        None => load_patiently(task, time.ends()).await?,
    };
    let mut product = complete(task, loaded.made, time).await?;
    keep_sent(task, &mut product).await;
    Ok((product, loaded.engine))
}

/// Finds a place for what the site has sent. The page does without where there is none, or none soon.
async fn keep_sent(task: &PageTask, product: &mut Product) {
    let process = &task.context.process;
    let Some(version) = &mut product.document.version else { return };
    let settled = tokio::time::timeout(FOR_A_PLACE, version.settle(&process.db, &process.blobs)).await;
    let error = match settled {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "there was no place for it in time".to_owned(),
    };
    tracing::warn!(error, page.id = %task.page.id, "what a site has sent cannot be kept");
    product.document.version = None;
}

/// Asks for the page, and again where its site wants to be asked later and the page's own time allows it.
async fn load_patiently(task: &PageTask, deadline: Instant) -> Result<Loaded, PageError> {
    let mut task = task.clone();
    loop {
        let mut error = match load_page(&task, deadline).await {
            Ok(loaded) => return Ok(loaded),
            Err(error) => error,
        };
        if !rest::wait(&mut task, &mut error).await {
            return Err(error);
        }
    }
}

/// Once claimed a page has its whole `timeout`, however long it was in the queue. For a caller on the line further tries
/// are within the time that is left since the call, and have a third of it at least.
pub fn deadline(page: &Claimed, spec: &JobSpec, started: Instant) -> Instant {
    let timeout = Duration::from_millis(u64::from(spec.options.timeout));
    if page.tries == 0 || page.limited || spec.kind != JobKind::Scrape {
        return started + timeout;
    }
    let waited = Duration::from_millis(page.started_at.ms_since(page.queued_at).unsigned_abs());
    started + timeout.saturating_sub(waited).max(timeout / 3)
}

/// Whether a page comes back without having lost a try; how often is bounded by its claims. A caller on the line would wait
/// for longer than its time.
fn is_free(error: &PageError, kind: JobKind) -> bool {
    error.is_uncounted && kind != JobKind::Scrape
}

/// Turns a result into the end of the attempt: done, failed for good, or another try after a pause.
pub fn judge(task: &PageTask, result: Tried) -> Outcome {
    let PageTask { context, page, spec, .. } = task;
    let pages = &context.process.metrics.pages;
    let error = match result {
        Ok((product, engine)) => {
            pages.with_label_values(&[engine.as_str(), "done"]).inc();
            let _ = task.attempted.engine.set(engine.as_str());
            return Outcome::Done { document: product.document, credits: product.credits };
        }
        Err(error) => error,
    };
    if let Some(pause_ms) = error.early_ms {
        return Outcome::Postponed { run_at: context.process.db.now().plus_ms(pause_ms) };
    }
    if is_free(&error, spec.kind) && !task.attempted.has_acted() {
        pages.with_label_values(&["none", "retry"]).inc();
        return Outcome::Lost { reason: "the browser was lost under it and others" };
    }
    // Where a caller waits, the next try begins at once.
    let next = || next_try(page, spec.kind == JobKind::Scrape, context.process.db.now());
    let rested = error.rest.as_ref().and_then(|rest| rest.run_at);
    let again = rested.or_else(|| error.is_retryable.then(next).flatten()).filter(|_| !task.attempted.has_acted());
    let outcome = if again.is_some() { "retry" } else { "failed" };
    pages.with_label_values(&["none", outcome]).inc();
    tracing::info!(
        page.id = %page.id, job.id = %page.job_id, job.attempt = page.claims,
        code = error.code.code().unwrap_or(""), outcome, "a page failed"
    );
    match again {
        Some(run_at) => Outcome::Retry { code: error.code, error: error.message, run_at },
        None => Outcome::Failed { code: error.code, error: error.message, credits: price::of_failure(error.code) },
    }
}

#[cfg(test)]
mod tests {
    use weir_shared::domain::scrape::ScrapeOptions;
    use weir_shared::time::Timestamp;

    use super::*;
    use crate::browser::RenderError;
    use crate::testing::claimed_page;

    #[test]
    fn a_jobs_page_that_waits_to_be_alone_loses_no_try() {
        let (waits, lost) = (PageError::from(RenderError::AloneLater), PageError::from(RenderError::BrowserLost));
        assert!(waits.is_retryable && lost.is_retryable);
        assert!(is_free(&waits, JobKind::Batch) && is_free(&waits, JobKind::Crawl));
        assert!(!is_free(&waits, JobKind::Scrape) && !is_free(&lost, JobKind::Batch));
    }

    #[test]
    fn a_page_claimed_late_has_its_whole_timeout() {
        let spec = |kind| {
            let options = ScrapeOptions { timeout: 9_000, ..ScrapeOptions::default() };
            JobSpec { kind, key: None, options, webhook: None, crawl: None, given: Vec::new() }
        };
        let page = |waited: i64, tries: i64| Claimed {
            claims: tries + 1,
            tries,
            started_at: Timestamp(1_000 + waited),
            ..claimed_page()
        };
        let started = clock::instant();
        let left = |page: &Claimed, kind| (deadline(page, &spec(kind), started) - started).as_millis();
        for kind in [JobKind::Scrape, JobKind::Batch, JobKind::Map] {
            assert_eq!(left(&page(0, 0), kind), 9_000);
            assert_eq!(left(&page(5_900, 0), kind), 9_000, "{kind:?}");
        }
        assert_eq!(left(&page(2_000, 1), JobKind::Scrape), 7_000, "the time of the tries before is gone");
        assert_eq!(left(&page(8_000, 2), JobKind::Scrape), 3_000);
        assert_eq!(left(&page(8_000, 2), JobKind::Batch), 9_000);
        assert_eq!(left(&Claimed { limited: true, ..page(8_000, 1) }, JobKind::Scrape), 9_000);
    }
}
