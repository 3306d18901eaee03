//! Hits that are scraped: pages of one job, so that limits, fairness, cache, credits and retries are those of every page.

use std::collections::HashMap;

use weir_shared::clock;
use weir_shared::domain::job::{JobKind, JobStatus, PageState};
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::domain::search::{SearchRequest, Source};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::queue;
use weir_shared::store::Tx;
use weir_shared::store::contents::retention::expiry;
use weir_shared::store::work::cancel;
use weir_shared::store::work::documents::{self, Part};
use weir_shared::store::work::jobs::{self, JobRow, NewJob};
use weir_shared::store::work::page::rows;
use weir_shared::store::work::pages::{self, PageRow};
use weir_shared::texts::counted;
use weir_shared::time::Timestamp;

use super::answer::{Item, Page};
use super::asked::Asked;
use crate::app::{App, AppData};
use crate::endpoints::outage::{self, patiently};
use crate::endpoints::{direct, retention};
use crate::error::{ApiError, ApiResult};

/// Documents of an answer together, bytes of JSON: it comes in one piece.
const MOST: usize = 50 << 20;
/// The most hits that two sources can have together.
const MAX_PAGES: i64 = 200;

/// What became of the pages.
pub(super) struct Scraped {
    /// By their place in the job.
    pub pages: HashMap<usize, Page>,
    pub credits: i64,
    pub warning: Option<String>,
}

/// The addresses to scrape, each once: of web and news, not of pictures. The hits learn their place among them; those
/// that may not be reached fail here.
pub(super) fn addresses(app: &App, search: &SearchRequest, groups: &mut [(Source, Vec<Item>)]) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    if search.scrape.is_none() {
        return urls;
    }
    for item in groups.iter_mut().filter(|(source, _)| *source != Source::Images).flat_map(|(_, items)| items) {
        match app.check_target(item.url()) {
            Ok(()) => {
                let known = urls.iter().position(|url| url == item.url());
                item.page = Some(known.unwrap_or(urls.len()));
                if known.is_none() {
                    urls.push(item.url().to_owned());
                }
            }
            Err(error) => item.fail(error.code().status(), error.to_string()),
        }
    }
    urls
}

/// Writes the job, its pages and their wake-ups.
pub(super) async fn insert(
    app: &App,
    tx: &mut Tx,
    asked: &Asked,
    options: &ScrapeOptions,
    target: &str,
    urls: &[String],
    now: Timestamp,
) -> ApiResult<()> {
    let (team, key) = (asked.caller.team_id(), asked.caller.key);
    let job = NewJob {
        id: asked.id,
        team,
        key,
        kind: JobKind::Search,
        options,
        target,
        origin: asked.search.origin.as_deref(),
        max_concurrency: None,
        webhook: None,
        total: urls.len() as i64,
        created_at: now,
        expires_at: match options.zero_retention {
            true => expiry(now, asked.search.timeout.cast_signed()),
            false => now.plus_ms(app.settings.result_ttl.as_millis() as i64),
        },
    };
    jobs::insert(tx, &job).await?;
    rows::insert_many(tx, asked.id, team, 0, urls, now).await?;
    queue::team_wakeups(tx, team, urls.len()).await?;
    Ok(())
}

/// Waits until the pages have ended, or the caller wants its answer: those that have not by then are cancelled.
/// While the database is away they go on.
pub(super) async fn wait(app: &AppData, asked: &Asked, options: &ScrapeOptions, total: usize) -> ApiResult<Scraped> {
    let ended = async {
        wait_for_end(app, asked).await?;
        outage::read(|| async { end(app, asked.id).await }).await
    };
    let End { job, rows, found, is_whole } =
        ended.await.inspect_err(|error| direct::leave_after(error, app, asked.id))?;
    if options.zero_retention {
        retention::forget(app, asked.id).await;
        let open: Vec<PageId> = rows.iter().filter(|row| row.finished_at.is_none()).map(|row| row.id).collect();
        if !open.is_empty() {
            app.runtime.spawn(forget_at_end(app.clone(), asked.id, open));
        }
    }
    let late = rows.iter().filter(|row| !matches!(row.state, PageState::Done | PageState::Failed)).count();
    let mut warnings = Vec::new();
    if late > 0 {
        let were = if late == 1 { "was" } else { "were" };
        warnings.push(format!("{late} of {} {were} not scraped within the timeout.", counted(total, "page")));
    }
    if !is_whole {
        warnings.push("Pages beyond 50 MB together are left out.".to_owned());
    }
    let warning = (!warnings.is_empty()).then(|| warnings.join(" "));
    Ok(Scraped { pages: found, credits: job.credits_used, warning })
}

/// Waits until the pages have ended, the caller wants its answer or the process stops.
async fn wait_for_end(app: &App, asked: &Asked) -> ApiResult<()> {
    let mut job = patiently(asked.deadline, || async { load(app, asked.id).await }).await?;
    while job.status == JobStatus::Scraping && clock::instant() < asked.deadline {
        let seen = (job.completed, job.failed, job.status);
        let changed = patiently(asked.deadline, || async {
            app.wake.job_changed(asked.id, seen, asked.deadline).await?;
            load(app, asked.id).await
        });
        tokio::select! {
            changed = changed => job = changed?,
            () = app.stopping.cancelled() => break,
        }
    }
    Ok(())
}

/// A search's job at its end, and what became of each page.
struct End {
    job: JobRow,
    rows: Vec<PageRow>,
    found: HashMap<usize, Page>,
    is_whole: bool,
}

/// Cancels the pages that have not ended, and reads the others.
async fn end(app: &App, id: JobId) -> ApiResult<End> {
    let mut job = load(app, id).await?;
    if job.status == JobStatus::Scraping {
        let mut tx = app.db.begin().await?;
        cancel::job(&mut tx, id, app.db.now()).await?;
        tx.commit().await?;
        job = load(app, id).await?;
    }
    let rows = pages::list(&app.db, id, None, MAX_PAGES).await?;
    let (found, is_whole) = read(app, id, &rows).await?;
    Ok(End { job, rows, found, is_whole })
}

async fn load(app: &App, id: JobId) -> ApiResult<JobRow> {
    jobs::load(&app.db, id).await?.ok_or_else(ApiError::job_not_found)
}

/// Pages that go on after the answer are forgotten one by one, as they end.
async fn forget_at_end(app: AppData, job: JobId, open: Vec<PageId>) {
    for page in open {
        retention::forget_at_end(app.clone(), job, page).await;
    }
}

/// What became of each page. `false`: not all documents are there, because they are too large together.
async fn read(app: &App, job: JobId, rows: &[PageRow]) -> ApiResult<(HashMap<usize, Page>, bool)> {
    let place: HashMap<PageId, usize> = rows.iter().map(|row| (row.id, row.idx as usize)).collect();
    let mut found = HashMap::new();
    let (mut skip, mut bytes) = (0, 0);
    while bytes < MOST {
        let part = documents::find(&app.db, job, Part { skip, limit: MAX_PAGES, max_bytes: MOST - bytes }).await?;
        let part = part.open(&app.db, &app.blobs).await?;
        if part.is_empty() {
            break;
        }
        skip += part.len() as i64;
        for document in part {
            bytes += document.json.get().len();
            if let (Some(place), Ok(fields)) = (place.get(&document.page_id), serde_json::from_str(document.json.get()))
            {
                found.insert(*place, Page::Document(fields));
            }
        }
    }
    for row in rows {
        let place = row.idx as usize;
        if found.contains_key(&place) {
            continue;
        }
        let code = row.error_code.as_deref().and_then(ErrorCode::from_code);
        let failed = match (row.state, &row.error) {
            (PageState::Failed, Some(text)) => {
                // Some errors are told with status 200, which would say here that the page answered well.
                let status = code.map(ErrorCode::status).filter(|status| *status >= 400);
                (status.unwrap_or(ErrorCode::Unknown.status()), text.clone())
            }
            (PageState::Done, _) => (ErrorCode::PageTooLarge.status(), "The pages are too large together.".to_owned()),
            _ => (ErrorCode::Timeout.status(), "The page was not scraped within the search's timeout.".to_owned()),
        };
        found.insert(place, Page::Failed(failed.0, failed.1));
    }
    let is_whole = rows
        .iter()
        .all(|row| row.state != PageState::Done || matches!(found.get(&(row.idx as usize)), Some(Page::Document(_))));
    Ok((found, is_whole))
}
