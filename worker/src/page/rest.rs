//! Sites that want to be asked later: they answer 429 or 503 with `Retry-After` (decisions, scrape).
//!
//! ```text
//! scrape              the caller is on the line: its page waits inside of its own time and asks again
//! batch, crawl,       the page goes back to the queue until then, and so do all pages of the team's jobs that would ask
//! search              the host meanwhile: no slot sleeps, other hosts go on
//! ```
//!
//! A page that cannot wait (its time or its tries are over) has the site's answer as its document, as any other status.
//! The rest of a host is a row of its team (`turns`): it outlives every worker, and keeps no other team waiting.

use std::time::Duration;

use tokio::time::Instant;
use weir_shared::clock;
use weir_shared::domain::job::{JobKind, MAX_TRIES};
use weir_shared::domain::target::fetch_url;
use weir_shared::store::StoreResult;
use weir_shared::store::accounts::turns;
use weir_shared::store::work::jobs;
use weir_shared::store::work::page::end::Outcome;
use weir_shared::store::work::page::rows::SITEMAP_IDX;
use weir_shared::time::Timestamp;

use super::error::{PageError, Rest};
use super::request::PageRequest;
use super::task::PageTask;
use crate::fetch::Fetched;

/// The shortest pause: a site may say 0 and mean what it says next.
const LEAST: Duration = Duration::from_secs(1);
/// The longest pause that pages of jobs wait for. Who asks for more is answered with what the site says.
const MOST: Duration = Duration::from_secs(3_600);
/// Time that a page on the line keeps for being asked for again.
const ANSWER: Duration = Duration::from_millis(500);

/// What an answer asks for, where that is a pause and the page can wait. The error says to come back; it becomes a wait in
/// [`super::attempt`].
///
/// # Errors
/// That the site wants to be asked later, and the page can wait for it.
pub async fn respect(task: &PageTask, fetched: &Fetched, deadline: Instant) -> Result<(), PageError> {
    let Some(asked) = fetched.retry_after.filter(|_| matches!(fetched.status, 429 | 503)) else { return Ok(()) };
    match pause(task, asked, deadline).await {
        Some(pause) => {
            let rest = Rest { url: fetched.url.clone(), pause, run_at: None };
            Err(PageError::resting(fetched.status, rest))
        }
        None => Ok(()),
    }
}

/// The same of a page that a browser has rendered. It does not show the heads of answers without showing those of all that
/// a page loads, so the site is asked once more without it, where it has refused.
///
/// # Errors
/// As for [`respect`].
pub async fn respect_rendered(
    task: &PageTask,
    request: &PageRequest,
    status: u16,
    deadline: Instant,
) -> Result<(), PageError> {
    if !matches!(status, 429 | 503) || !can_come_back(task) {
        return Ok(());
    }
    match task.context.process.fetcher.fetch(request.to_fetch(task.options(), deadline)).await {
        Ok(fetched) => respect(task, &fetched, deadline).await,
        Err(_) => Ok(()),
    }
}

/// Whether a page may be asked for again at all.
fn can_come_back(task: &PageTask) -> bool {
    let has_tries = task.spec.kind == JobKind::Scrape || task.page.tries + 1 < MAX_TRIES;
    !task.attempted.has_acted() && task.spec.kind != JobKind::Map && has_tries
}

/// How long the page waits; `None`: it cannot.
async fn pause(task: &PageTask, asked: Duration, deadline: Instant) -> Option<Duration> {
    if !can_come_back(task) {
        return None;
    }
    match task.spec.kind {
        JobKind::Map => None,
        JobKind::Scrape => {
            // Who goes on saying "at once" is asked less and less.
            let pause = asked.max(LEAST * 2_u32.pow(task.rests.min(10)));
            (clock::instant() + pause + ANSWER < deadline).then_some(pause)
        }
        JobKind::Batch | JobKind::Crawl | JobKind::Search | JobKind::Extract | JobKind::Agent => {
            let pause = asked.max(LEAST);
            if pause > MOST {
                return None;
            }
            let until = after(task, pause);
            let job = jobs::load(&task.context.process.db, task.page.job_id).await.ok().flatten()?;
            (until < job.expires_at && until <= latest(task)).then_some(pause)
        }
    }
}

fn after(task: &PageTask, pause: Duration) -> Timestamp {
    task.context.process.db.now().plus_ms(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX))
}

/// By when a page of a job must be asked for: somebody waits for those of a search.
fn latest(task: &PageTask) -> Timestamp {
    match task.spec.kind {
        JobKind::Search => task.page.queued_at.plus_ms(task.options().timeout.into()),
        _ => Timestamp(i64::MAX),
    }
}

/// Has the page wait where it is, if somebody is on the line for it; else writes down that the host rests, and when the
/// page comes back. `true`: the wait is over, and the page is to be asked for again.
pub async fn wait(task: &mut PageTask, error: &mut PageError) -> bool {
    let Some(rest) = &mut error.rest else { return false };
    if task.spec.kind == JobKind::Scrape {
        tokio::time::sleep(rest.pause).await;
        task.rests += 1;
        return true;
    }
    rest.run_at = Some(begin(task, rest).await.unwrap_or_else(|error| {
        // The page itself is put off all the same; others will hear it from the site.
        tracing::warn!(%error, page.id = %task.page.id, "a host's rest cannot be written down");
        after(task, rest.pause)
    }));
    false
}

async fn begin(task: &PageTask, rest: &Rest) -> StoreResult<Timestamp> {
    let (page, db) = (&task.page, &task.context.process.db);
    let until = after(task, rest.pause);
    let mut tx = db.begin_relaxed().await?;
    turns::begin_rest(&mut tx, page.team_id, &rest.url, until).await?;
    let back = turns::rest_of(&mut tx, page.team_id, &rest.url, page.job_id, latest(task), db.now()).await?;
    tx.commit().await?;
    Ok(back.unwrap_or(until))
}

/// The end of an attempt that is not made, because the page's host rests. `None`: it is made.
pub async fn resting(task: &PageTask) -> Option<Outcome> {
    let page = &task.page;
    if !page.may_rest || page.idx == SITEMAP_IDX || task.spec.kind.is_direct() {
        return None;
    }
    match run_at(task).await {
        Ok(run_at) => run_at.map(|run_at| Outcome::Postponed { run_at }),
        Err(error) => {
            tracing::warn!(%error, page.id = %page.id, "a host's rest cannot be asked for; the page goes back");
            Some(Outcome::GivenBack)
        }
    }
}

async fn run_at(task: &PageTask) -> StoreResult<Option<Timestamp>> {
    let (page, db) = (&task.page, &task.context.process.db);
    let Ok(url) = fetch_url(&page.url) else { return Ok(None) };
    let mut tx = db.begin_relaxed().await?;
    let back = turns::rest_of(&mut tx, page.team_id, &url, page.job_id, latest(task), db.now()).await?;
    tx.commit().await?;
    Ok(back)
}
