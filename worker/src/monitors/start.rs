//! A check begins: its targets become ordinary batches and crawls, so that limits, fairness, credits and retries are those
//! of every page.

use weir_shared::domain::activity::Endpoint;
use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::crawl::CrawlOptions;
use weir_shared::domain::job::JobKind;
use weir_shared::domain::monitor::{Billing, CheckMove, ORIGIN, Progress, Target, What, tracked};
use weir_shared::domain::price;
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::ids::JobId;
use weir_shared::queue;
use weir_shared::store::activity::{self, Entry};
use weir_shared::store::crawls::{self, NewCrawl};
use weir_shared::store::credits::{self, Funds};
use weir_shared::store::jobs::{self, NewJob};
use weir_shared::store::monitors::checks::{self, CheckRow, End};
use weir_shared::store::monitors::{self, MonitorRow};
use weir_shared::store::page::rows;
use weir_shared::store::{StoreResult, Tx, queue_depth, team_lock, teams};
use weir_shared::time::Timestamp;

use super::Monitors;

/// When a check is looked after first.
const FIRST_LOOK_MS: i64 = 1_000;
/// When a check is tried again whose team has as many pages waiting as it may.
const FULL_MS: i64 = 30_000;

/// Pages of a target that is about to begin.
struct Begun<'a> {
    target: &'a Target,
    options: ScrapeOptions,
}

impl Monitors {
    /// Begins a check, in one transaction.
    pub(super) async fn start(&self, check: &CheckRow) -> StoreResult<()> {
        let process = &self.context.process;
        let (db, settings) = (&process.db, &process.settings);
        let Some(monitor) = monitors::load_any(db, check.monitor_id).await? else { return Ok(()) };
        let spec = monitor.spec()?;
        let Some(team) = teams::by_id(db, check.team_id).await? else { return Ok(()) };
        if team.zero_data_retention {
            let text = "The team keeps nothing, so there is nothing to compare pages with.";
            return self.give_up(check, CheckMove::GiveUp, Some(text)).await;
        }
        let goal = spec.judged_by().filter(|_| settings.model.is_some());
        let begun: Vec<Begun<'_>> = spec.targets.iter().map(|target| begin(&monitor, target, goal)).collect();
        let (pages, credits) = need(&begun);

        let mut tx = db.begin().await?;
        team_lock::lock(&mut tx, team.id).await?;
        let bound = team.queue.unwrap_or(settings.limits.team_queue);
        let waiting = queue_depth::team_waiting(&mut tx, team.id).await?;
        let now = db.now();
        if pages > bound {
            drop(tx);
            let text = "The targets have more pages than the team may have waiting.";
            return self.give_up(check, CheckMove::GiveUp, Some(text)).await;
        }
        if waiting + pages > bound {
            checks::put_off(&mut tx, check, now.plus_ms(FULL_MS)).await?;
            return tx.commit().await;
        }
        let metered = settings.limits.metered;
        if credits::check_funds(&mut tx, team.id, credits, metered).await? != Funds::Enough {
            drop(tx);
            return self.give_up(check, CheckMove::Skip, None).await;
        }
        let expires_at = now.plus_ms(settings.result_ttl.as_millis() as i64);
        let mut targets = Vec::with_capacity(begun.len());
        for begun in &begun {
            targets.push(write(&mut tx, &monitor, begun, goal, now, expires_at).await?);
        }
        let billing = if metered { Billing::Reserved } else { Billing::NotApplicable };
        if !checks::start(&mut tx, check, &targets, billing, now.plus_ms(FIRST_LOOK_MS), now).await? {
            return Ok(());
        }
        queue::team_wakeups(&mut tx, team.id, usize::try_from(pages).unwrap_or(0)).await?;
        tx.commit().await
    }

    /// Ends a check that does not begin.
    async fn give_up(&self, check: &CheckRow, by: CheckMove, error: Option<&str>) -> StoreResult<()> {
        let db = &self.context.process.db;
        let (targets, summary) = (check.targets()?, check.summary());
        let end = End { by, targets: &targets, summary, credits: 0, billing: Billing::NotApplicable, error };
        let mut tx = db.begin().await?;
        if checks::finish(&mut tx, check, &end, db.now()).await? {
            checks::tell(&mut tx, check, &[], true, db.now()).await?;
            tx.commit().await?;
        }
        Ok(())
    }
}

fn begin<'a>(monitor: &MonitorRow, target: &'a Target, goal: Option<&str>) -> Begun<'a> {
    let options = match &target.what {
        What::Scrape { options, noise, .. } | What::Crawl { options, noise, .. } => {
            tracked(options, monitor.id, &target.id, noise, goal)
        }
        What::Search(_) => ScrapeOptions::default(),
    };
    Begun { target, options }
}

/// Pages that are to wait at once, and the credits that a team must have for a beginning.
fn need(begun: &[Begun<'_>]) -> (i64, i64) {
    let (mut pages, mut credits) = (0, 0_i64);
    for Begun { target, options } in begun {
        let own = match &target.what {
            What::Scrape { urls, .. } => urls.len() as i64,
            What::Crawl { crawl, .. } => crawls::first_pages(crawl),
            What::Search(_) => 0,
        };
        pages += own;
        credits = credits.saturating_add(match &target.what {
            What::Search(_) => target.estimated_credits(),
            _ => own.saturating_mul(price::most(options)),
        });
    }
    (pages, credits)
}

/// Writes the job of a target.
async fn write(
    tx: &mut Tx,
    monitor: &MonitorRow,
    begun: &Begun<'_>,
    goal: Option<&str>,
    now: Timestamp,
    expires_at: Timestamp,
) -> StoreResult<Progress> {
    let Begun { target, options } = begun;
    let mut progress = Progress::new(target.id.clone(), target.kind());
    progress.goal = goal.map(str::to_owned);
    let (kind, url, total, crawl): (_, _, _, Option<&CrawlOptions>) = match &target.what {
        What::Scrape { urls, .. } => {
            (JobKind::Batch, urls.first().map(String::as_str).unwrap_or_default(), urls.len() as i64, None)
        }
        What::Crawl { url, crawl, .. } => (JobKind::Crawl, url.as_str(), crawls::first_pages(crawl), Some(crawl)),
        // A search is made when its turn comes, as it is now.
        What::Search(search) => {
            progress.search = Some(Box::new(search.clone()));
            return Ok(progress);
        }
    };
    let (id, team) = (JobId::new(), monitor.team_id);
    let row = NewJob {
        id,
        team,
        key: monitor.api_key_id,
        kind,
        options,
        target: url,
        origin: Some(ORIGIN),
        max_concurrency: crawl.and_then(|crawl| if crawl.delay.is_some() { Some(1) } else { crawl.max_concurrency }),
        webhook: None,
        total,
        created_at: now,
        expires_at,
    };
    jobs::insert(tx, &row).await?;
    match &target.what {
        What::Scrape { urls, .. } => {
            rows::insert_many(tx, id, team, 0, urls, now).await?;
        }
        What::Crawl { url, crawl, .. } => {
            crawls::insert(tx, &NewCrawl { job: id, team, url, options: crawl, limit: crawl.limit }, now).await?;
        }
        What::Search(_) => {}
    }
    let (endpoint, version) = (Endpoint::from(kind), ApiVersion::V2);
    let entry = Entry { id: id.0, endpoint, version, target: Some(url.to_owned()), created_at: now };
    activity::record(tx, team, &entry).await?;
    progress.job = Some(id);
    Ok(progress)
}
