//! Checks begin: their targets become ordinary batches and crawls, so that limits, fairness, credits and retries are those
//! of every page.

use weir_shared::config::LimitSettings;
use weir_shared::domain::activity::Endpoint;
use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::crawl::CrawlOptions;
use weir_shared::domain::job::JobKind;
use weir_shared::domain::monitor::{Billing, CheckMove, ORIGIN, Progress, Target, What, tracked};
use weir_shared::domain::price;
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::domain::target::without_user;
use weir_shared::ids::{JobId, TeamId};
use weir_shared::queue;
use weir_shared::store::accounts::activity::{self, Entry};
use weir_shared::store::accounts::credits::{self, Funds};
use weir_shared::store::accounts::team_lock;
use weir_shared::store::accounts::teams::{self, TeamRow};
use weir_shared::store::monitors::checks::{self, CheckRow, End, News, Start};
use weir_shared::store::monitors::{self, MonitorRow};
use weir_shared::store::work::crawls::{self, NewCrawl};
use weir_shared::store::work::jobs::{self, NewJob};
use weir_shared::store::work::page::rows;
use weir_shared::store::work::queue_depth;
use weir_shared::store::{StoreError, StoreResult, Tx};
use weir_shared::time::Timestamp;

use super::{AGAIN_MS, Monitors};

/// When a check is looked after first.
const FIRST_LOOK_MS: i64 = 500;
/// When a check is tried again whose team has as many pages waiting as it may.
const FULL_MS: i64 = 30_000;
/// Pages that begin in one transaction, where more than one check does.
const PAGES: i64 = 1_000;

/// A target that is about to begin.
struct Begun {
    target: Target,
    options: ScrapeOptions,
    /// The first address, as lists show it.
    shown: String,
}

/// A check that is about to begin.
struct Beginning<'a> {
    check: &'a CheckRow,
    monitor: MonitorRow,
    begun: Vec<Begun>,
    goal: Option<String>,
    /// Pages that are to wait at once, and the credits that the team must have.
    pages: i64,
    credits: i64,
}

/// What keeps a check from beginning.
enum Obstacle {
    /// The team has as many pages waiting as it may.
    Full,
    /// It never can.
    Never(CheckMove, Option<&'static str>),
}

impl Monitors {
    /// Begins checks of a team, as many as one transaction may have pages.
    pub(super) async fn start(&self, checks: &[CheckRow]) -> StoreResult<()> {
        let db = &self.context.process.db;
        let Some(first) = checks.first() else { return Ok(()) };
        let mut monitors = monitors::of_checks(db, checks).await?;
        let Some(team) = teams::by_id(db, first.team_id).await? else { return Ok(()) };
        let (mut waiting, mut unread) = (Vec::with_capacity(checks.len()), Vec::new());
        for check in checks {
            // One that was deleted has ended its check.
            let Some(monitor) = monitors.remove(&check.monitor_id) else { continue };
            match self.beginning(check, monitor) {
                Ok(new) => waiting.push(new),
                Err(error) => {
                    tracing::warn!(%error, check.id = %check.id, "a check's monitor cannot be read; it is tried again");
                    unread.push(check);
                }
            }
        }
        self.put_off(unread, db.now().plus_ms(AGAIN_MS)).await?;
        if team.zero_data_retention {
            let text = "The team keeps nothing, so there is nothing to compare pages with.";
            let all: Vec<_> = waiting.iter().map(|new| (new.check, CheckMove::GiveUp, Some(text))).collect();
            return self.give_up(&all).await;
        }
        let mut pages = 0;
        let fits = waiting.iter().take_while(|new| {
            pages += new.pages;
            pages <= PAGES
        });
        let rest = waiting.split_off(fits.count().max(1).min(waiting.len()));
        match self.begin_together(&team, &waiting).await {
            Err(StoreError::Unavailable(error)) => return Err(StoreError::Unavailable(error)),
            Err(error) if waiting.len() > 1 => {
                tracing::warn!(%error, checks = waiting.len(), "checks cannot begin together; each begins by itself");
                for new in waiting.chunks(1) {
                    let outcome = self.begin_together(&team, new).await;
                    self.again(outcome, std::slice::from_ref(new[0].check)).await;
                }
            }
            outcome => outcome?,
        }
        if rest.is_empty() {
            return Ok(());
        }
        // They are due at once, behind what other teams have due.
        self.put_off(rest.iter().map(|new| new.check).collect(), db.now()).await
    }

    fn beginning<'a>(&self, check: &'a CheckRow, monitor: MonitorRow) -> StoreResult<Beginning<'a>> {
        let spec = monitor.spec()?;
        let goal = spec.judged_by().filter(|_| self.context.process.settings.model.is_some()).map(str::to_owned);
        let begun: Vec<Begun> =
            spec.targets.into_iter().map(|target| begin(&monitor, target, goal.as_deref())).collect();
        let (pages, credits) = need(&begun);
        Ok(Beginning { check, monitor, begun, goal, pages, credits })
    }

    /// Begins checks of a team in one transaction.
    async fn begin_together(&self, team: &TeamRow, new: &[Beginning<'_>]) -> StoreResult<()> {
        let process = &self.context.process;
        let (db, settings) = (&process.db, &process.settings);
        let mut tx = db.begin().await?;
        if team_lock::lock_to_begin(&mut tx, team.id).await?.is_none() {
            return Ok(());
        }
        let obstacles = obstacles(&mut tx, team, new, &settings.limits).await?;
        let now = db.now();
        let full: Vec<&CheckRow> = new
            .iter()
            .zip(&obstacles)
            .filter(|(_, o)| matches!(o, Some(Obstacle::Full)))
            .map(|(n, _)| n.check)
            .collect();
        checks::put_off(&mut tx, &full, now.plus_ms(FULL_MS)).await?;

        let free = new.iter().zip(&obstacles).filter(|(_, obstacle)| obstacle.is_none());
        let free: Vec<(&Beginning<'_>, Vec<Progress>)> = free.map(|(new, _)| (new, new.targets())).collect();
        let billing = if settings.limits.metered { Billing::Reserved } else { Billing::NotApplicable };
        let starts: Vec<Start<'_>> =
            free.iter().map(|(new, targets)| Start { check: new.check, targets, billing }).collect();
        let started = checks::start(&mut tx, &starts, now.plus_ms(FIRST_LOOK_MS), now).await?;
        let ours: Vec<_> = free.iter().filter(|(new, _)| started.contains(&new.check.id)).collect();
        let expires_at = now.plus_ms(settings.result_ttl.as_millis() as i64);
        let jobs = ours.iter().flat_map(|(new, targets)| new.jobs(targets, now, expires_at));
        write(&mut tx, team.id, &jobs.collect::<Vec<_>>(), now).await?;
        let pages: i64 = ours.iter().map(|(new, _)| new.pages).sum();
        queue::team_wakeups(&mut tx, team.id, usize::try_from(pages).unwrap_or(0)).await?;
        tx.commit().await?;

        let never = new.iter().zip(obstacles).filter_map(|(new, obstacle)| match obstacle {
            Some(Obstacle::Never(by, error)) => Some((new.check, by, error)),
            _ => None,
        });
        self.give_up(&never.collect::<Vec<_>>()).await
    }

    /// Ends checks that do not begin.
    async fn give_up(&self, given_up: &[(&CheckRow, CheckMove, Option<&str>)]) -> StoreResult<()> {
        if given_up.is_empty() {
            return Ok(());
        }
        let db = &self.context.process.db;
        let targets: Vec<Vec<Progress>> =
            given_up.iter().map(|(check, ..)| check.targets()).collect::<StoreResult<_>>()?;
        let mut ends: Vec<End<'_>> = Vec::with_capacity(given_up.len());
        for ((check, by, error), targets) in given_up.iter().zip(&targets) {
            let (summary, billing) = (check.summary(), Billing::NotApplicable);
            ends.push(End { check, by: *by, targets, summary, credits: 0, billing, error: *error });
        }
        let mut tx = db.begin().await?;
        let now = db.now();
        let ended = checks::finish(&mut tx, &ends, now).await?;
        let over = given_up.iter().filter(|(check, ..)| ended.contains(&check.id));
        let news: Vec<News<'_>> = over.map(|(check, ..)| News { check, pages: &[], ended: true }).collect();
        checks::tell(&mut tx, &news, now).await?;
        tx.commit().await
    }
}

/// What keeps each of these checks from beginning. The team is locked.
async fn obstacles(
    tx: &mut Tx,
    team: &TeamRow,
    new: &[Beginning<'_>],
    limits: &LimitSettings,
) -> StoreResult<Vec<Option<Obstacle>>> {
    let bound = team.queue.unwrap_or(limits.team_queue);
    let mut waiting = queue_depth::team_waiting(tx, team.id).await?;
    let all = new.iter().map(|new| new.credits).fold(0, i64::saturating_add);
    let mut left = match credits::check_funds(tx, team.id, all, limits.metered).await? {
        Funds::Enough => i64::MAX,
        Funds::Short { left } => left,
    };
    let mut obstacle = |new: &Beginning<'_>| {
        if new.pages > bound {
            let text = "The targets have more pages than the team may have waiting.";
            return Some(Obstacle::Never(CheckMove::GiveUp, Some(text)));
        }
        if waiting + new.pages > bound {
            return Some(Obstacle::Full);
        }
        if new.credits > left {
            return Some(Obstacle::Never(CheckMove::Skip, None));
        }
        waiting += new.pages;
        left = left.saturating_sub(new.credits);
        None
    };
    Ok(new.iter().map(&mut obstacle).collect())
}

fn begin(monitor: &MonitorRow, target: Target, goal: Option<&str>) -> Begun {
    let options = match &target.what {
        What::Scrape { options, noise, .. } | What::Crawl { options, noise, .. } => {
            tracked(options, monitor.id, &target.id, noise, goal)
        }
        What::Search(_) => ScrapeOptions::default(),
    };
    let shown = match &target.what {
        What::Scrape { urls, .. } => urls.first().map(|url| without_user(url)).unwrap_or_default(),
        What::Crawl { url, .. } => without_user(url),
        What::Search(_) => String::new(),
    };
    Begun { target, options, shown }
}

/// Pages that are to wait at once, and the credits that a team must have for a beginning.
fn need(begun: &[Begun]) -> (i64, i64) {
    let (mut pages, mut credits) = (0, 0_i64);
    for Begun { target, options, .. } in begun {
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

/// The job of a target, to be written.
struct TargetJob<'a> {
    row: NewJob<'a>,
    what: &'a What,
}

impl Beginning<'_> {
    /// Its targets as they are when it runs: each with its job.
    fn targets(&self) -> Vec<Progress> {
        let progress = |Begun { target, .. }: &Begun| {
            let mut progress = Progress::new(target.id.clone(), target.kind());
            progress.goal.clone_from(&self.goal);
            match &target.what {
                // A search is made when its turn comes, as it is now.
                What::Search(search) => progress.search = Some(Box::new(search.clone())),
                _ => progress.job = Some(JobId::new()),
            }
            progress
        };
        self.begun.iter().map(progress).collect()
    }

    /// The jobs of its `targets`.
    fn jobs(&self, targets: &[Progress], now: Timestamp, expires_at: Timestamp) -> Vec<TargetJob<'_>> {
        let mut jobs = Vec::with_capacity(targets.len());
        for (Begun { target, options, shown }, progress) in self.begun.iter().zip(targets) {
            let Some(id) = progress.job else { continue };
            let (kind, total, crawl): (_, _, Option<&CrawlOptions>) = match &target.what {
                What::Scrape { urls, .. } => (JobKind::Batch, urls.len() as i64, None),
                What::Crawl { crawl, .. } => (JobKind::Crawl, crawls::first_pages(crawl), Some(crawl)),
                What::Search(_) => continue,
            };
            let at_once = |crawl: &CrawlOptions| if crawl.delay.is_some() { Some(1) } else { crawl.max_concurrency };
            let row = NewJob {
                id,
                team: self.monitor.team_id,
                key: self.monitor.api_key_id,
                kind,
                options,
                target: shown,
                origin: Some(ORIGIN),
                max_concurrency: crawl.and_then(at_once),
                webhook: None,
                total,
                created_at: now,
                expires_at,
            };
            jobs.push(TargetJob { row, what: &target.what });
        }
        jobs
    }
}

/// Writes jobs of a team with their pages.
async fn write(tx: &mut Tx, team: TeamId, new: &[TargetJob<'_>], now: Timestamp) -> StoreResult<()> {
    let rows: Vec<NewJob<'_>> = new.iter().map(|job| job.row).collect();
    jobs::insert_all(tx, &rows).await?;
    let (mut pages, mut entries): (Vec<(JobId, &[String])>, _) = (Vec::new(), Vec::with_capacity(new.len()));
    for TargetJob { row, what } in new {
        match what {
            What::Scrape { urls, .. } => pages.push((row.id, urls)),
            What::Crawl { url, crawl, .. } => {
                crawls::insert(tx, &NewCrawl { job: row.id, team, url, options: crawl, limit: crawl.limit }, now)
                    .await?;
            }
            What::Search(_) => {}
        }
        let (endpoint, version) = (Endpoint::from(row.kind), ApiVersion::V2);
        let target = Some(row.target.to_owned());
        entries.push(Entry { id: row.id.0, endpoint, version, target, created_at: now });
    }
    rows::insert_of_jobs(tx, team, &pages, now).await?;
    activity::record_all(tx, team, &entries).await
}
