//! How a crawl grows: what its pages and sitemaps lead to becomes rows in the transaction that ends the page, or, where it
//! is much, in slices before that ([`enter_ahead`]), so that nothing is lost or fetched twice whatever dies.
//!
//! An address is in the frontier once, by its key. As long as there is room under the crawl's limit it gets a page row
//! at once; beyond it some wait, for pages that turn out to be duplicates or forbidden free their room again. All of
//! this happens under the team's lock, so that the limit holds to the page however many workers there are.

mod urls;

use std::collections::{BTreeMap, HashSet};

use crate::domain::crawl::{AddressMove, AddressState};
use crate::domain::job::{JobKind, JobStatus, PageMove, PageState};
use crate::fault::FaultPoint;
use crate::ids::{JobId, PageId, TeamId};
use crate::store::accounts::team_lock;
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool, queue};

use super::page::end::{Discovery, Finished, Found, Outcome};
use super::page::rows::{self, Claimed, NewPage, SITEMAP_IDX};
use super::{crawls, jobs};
use urls::NewUrl;

/// Rows in one statement.
const ROWS: usize = 1_000;
/// Most addresses that wait for room.
const MAX_WAITING: i64 = 1_000;
/// Most forbidden addresses remembered: no more are listed either.
const MAX_BLOCKED: i64 = 10_000;
/// Pages that may be dropped beyond the limit's own number before the crawl takes in no more.
const DROPPED_SPARE: i64 = 100;

/// Stands in the row of a page that is delivered and about an error. Rows of crawls under way are found by these words, so
/// they are never changed.
const IS_ERROR: &str = "the site answered with an error";

/// What the ends of some pages changed beyond their own rows.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Pages that are not delivered; they leave the job's total.
    pub dropped: HashSet<PageId>,
    pub jobs: BTreeMap<JobId, Growth>,
}

#[derive(Debug, Default)]
pub(super) struct Growth {
    /// Page rows added.
    pub pages: i64,
    /// Of the job no page was due, so nobody is on the way to these.
    pub was_idle: bool,
    /// Hidden page rows that ended.
    pub hidden: i64,
}

/// The counts of a crawl while a transaction changes them.
#[derive(sqlx::FromRow)]
struct CrawlCounts {
    page_limit: i64,
    admitted: i64,
    next_seq: i64,
    discovered: i64,
    waiting: i64,
    blocked: i64,
    dropped: i64,
    status: String,
}

impl CrawlCounts {
    async fn load(tx: &mut Tx, job: JobId) -> StoreResult<Option<Self>> {
        const SQL: &str = "SELECT c.page_limit, c.admitted, c.next_seq, c.discovered, c.waiting, c.blocked, c.dropped, \
            j.status FROM crawl c JOIN job j ON j.id = c.job_id WHERE c.job_id = $1";
        Ok(on_db!(tx, |conn| sqlx::query_as(SQL).bind(job).fetch_optional(conn).await?))
    }

    async fn save(&self, tx: &mut Tx, job: JobId) -> StoreResult<()> {
        const SQL: &str = "UPDATE crawl SET admitted = $2, next_seq = $3, discovered = $4, waiting = $5, blocked = $6, \
            dropped = $7 WHERE job_id = $1";
        on_db!(tx, |conn| {
            sqlx::query(SQL)
                .bind(job)
                .bind(self.admitted)
                .bind(self.next_seq)
                .bind(self.discovered)
                .bind(self.waiting)
                .bind(self.blocked)
                .bind(self.dropped)
                .execute(conn)
                .await?
                .rows_affected()
        });
        Ok(())
    }

    fn is_running(&self) -> bool {
        self.status == JobStatus::Scraping.as_str()
    }

    /// Pages that may still be taken in.
    fn room(&self) -> i64 {
        if self.is_tired() { 0 } else { (self.page_limit - self.admitted).max(0) }
    }

    /// Addresses that may still be entered: for the room there is, and some to wait for more of it. They are as many for
    /// a small limit, because what waits may be nothing but pages that are known already.
    fn wanted(&self) -> i64 {
        if self.is_tired() { 0 } else { (self.room() + MAX_WAITING - self.waiting).max(0) }
    }

    fn is_tired(&self) -> bool {
        is_tired(self.dropped, self.page_limit)
    }
}

/// A site that answers with the same pages again and again is not asked for ever.
fn is_tired(dropped: i64, page_limit: i64) -> bool {
    dropped > page_limit.saturating_add(DROPPED_SPARE)
}

/// Settles what the ends of pages mean for their crawls. `ends` are those whose end was written; the teams are locked.
pub(super) async fn settle(tx: &mut Tx, ends: &[&Finished], now: Timestamp) -> StoreResult<Settled> {
    let mut settled = Settled::default();
    let mut by_job: BTreeMap<JobId, Vec<&Finished>> = BTreeMap::new();
    for end in ends {
        let concerns_a_crawl = match end.outcome {
            Outcome::Crawled { .. } => end.outcome.changes_crawl() || end.page.idx == 0,
            Outcome::Blocked { .. } | Outcome::SitemapsRead { .. } => true,
            // A page that others are the same as says something by failing, as do the start page and the step that reads
            // the sitemaps.
            Outcome::Failed { .. } => !matches!(end.kind, Some(JobKind::Scrape | JobKind::Batch)),
            _ => false,
        };
        if concerns_a_crawl {
            by_job.entry(end.page.job_id).or_default().push(end);
        }
    }
    for (job, ends) in by_job {
        let Some(mut state) = CrawlCounts::load(tx, job).await? else { continue };
        let growth = settle_job(tx, job, &mut state, &ends, &mut settled.dropped, now).await?;
        state.save(tx, job).await?;
        settled.jobs.insert(job, growth);
    }
    Ok(settled)
}

async fn settle_job(
    tx: &mut Tx,
    job: JobId,
    state: &mut CrawlCounts,
    ends: &[&Finished],
    dropped: &mut HashSet<PageId>,
    now: Timestamp,
) -> StoreResult<Growth> {
    let mut growth = Growth::default();
    let (mut found, mut blocked) = (Vec::new(), Vec::new());
    // Pages that have come to nothing: others that said they were the same are asked for again.
    let mut speaks_for_none = Vec::new();
    for end in ends {
        let page = &end.page;
        match &end.outcome {
            Outcome::Crawled { document, discovery, .. } => {
                settle_crawled(tx, state, page, (document.is_some(), discovery), dropped).await?;
                if document.is_none() || discovery.is_error {
                    speaks_for_none.push(page.id);
                }
                found.extend(discovery.found.iter().map(|f| (f, page.depth + 1)));
                blocked.extend(discovery.blocked.iter().map(|f| (f, page.depth + 1)));
            }
            Outcome::Blocked { key } => {
                speaks_for_none.push(page.id);
                forbid(tx, page, key).await?;
                drop_page(tx, page.id, "robots.txt forbids it").await?;
                dropped.insert(page.id);
                state.admitted -= 1;
                state.discovered -= 1;
                state.blocked += 1;
                if page.idx == 0 {
                    settle_base(tx, job, &page.url).await?;
                    crawls::warn(tx, job, "robots.txt forbids the start page, so it was not read.").await?;
                }
            }
            Outcome::SitemapsRead { warning } => {
                dropped.insert(page.id);
                growth.hidden += 1;
                if let Some(sentence) = warning {
                    crawls::warn(tx, job, sentence).await?;
                }
            }
            Outcome::Failed { .. } if page.idx == SITEMAP_IDX => {
                dropped.insert(page.id);
                growth.hidden += 1;
                crawls::warn(tx, job, "The sitemaps could not be read to their end.").await?;
            }
            Outcome::Failed { .. } => {
                speaks_for_none.push(page.id);
                if page.idx == 0 {
                    settle_base(tx, job, &page.url).await?;
                }
            }
            _ => {}
        }
    }
    if state.is_running() {
        // From now on there is no room, so what is left out here never comes.
        if state.is_tired() && state.admitted < state.page_limit && (state.waiting > 0 || !found.is_empty()) {
            let sentence = "So many pages were others again, or led out of the crawl, that it took in no more addresses: \
                it has fewer pages than its limit allows.";
            crawls::warn(tx, job, sentence).await?;
        }
        growth.was_idle = !has_due_pages(tx, job, now).await?;
        growth.pages = revive(tx, job, state, &speaks_for_none, now).await?;
        growth.pages += grow(tx, job, ends[0].page.team_id, state, &found, &blocked, now).await?;
    }
    Ok(growth)
}

/// What a page that was read means for its crawl, beside its links: it may be another one again, and the start page says where
/// the site is. `is_wanted`: its document is one of those asked for.
async fn settle_crawled(
    tx: &mut Tx,
    state: &mut CrawlCounts,
    page: &Claimed,
    (is_wanted, discovery): (bool, &Discovery),
    dropped: &mut HashSet<PageId>,
) -> StoreResult<()> {
    let job = page.job_id;
    let mut reason = (!is_wanted).then(|| "it is not one of the pages asked for".to_owned());
    if let Some(landing) = discovery.landing.as_ref().filter(|_| reason.is_none())
        && take_alias(tx, job, state, page, landing, dropped).await?.is_some()
    {
        reason = Some("another page is the same".to_owned());
    }
    if let Some(canonical) = discovery.canonical.as_ref().filter(|_| reason.is_none()) {
        let owner = take_alias(tx, job, state, page, canonical, dropped).await?;
        reason = owner.filter(|owner| !owner.is_error).map(|owner| stands_for(owner.page));
    }
    if discovery.is_error {
        note_error(tx, page.id).await?;
    }
    if let Some(reason) = &reason {
        drop_page(tx, page.id, reason).await?;
        dropped.insert(page.id);
        state.admitted -= 1;
        state.dropped += 1;
    }
    if let Some(base) = discovery.base_of(page) {
        settle_base(tx, job, base).await?;
    }
    if let Some(sentence) = &discovery.warning {
        crawls::warn(tx, job, sentence).await?;
    }
    Ok(())
}

/// Whether pages of the job are due already: whoever comes for them takes new ones too.
async fn has_due_pages(tx: &mut Tx, job: JobId, now: Timestamp) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "SELECT id FROM page WHERE job_id = $1 AND state = ",
        PageState::Queued.sql(),
        " AND run_at <= $2 LIMIT 1"
    );
    let found: Option<(PageId,)> =
        on_db!(tx, |conn| sqlx::query_as(SQL).bind(job).bind(now).fetch_optional(conn).await?);
    Ok(found.is_some())
}

/// Takes in what was found: page rows as far as there is room, waiting ones beyond. Returns the number of page rows.
async fn grow(
    tx: &mut Tx,
    job: JobId,
    team: TeamId,
    state: &mut CrawlCounts,
    found: &[(&Found, i64)],
    blocked: &[(&Found, i64)],
    now: Timestamp,
) -> StoreResult<i64> {
    let mut seen = HashSet::new();
    let fresh: Vec<(&Found, i64)> = found.iter().copied().filter(|(f, _)| seen.insert(f.key.as_str())).collect();
    let mut grown = 0;
    if state.waiting == 0 && fresh.len() as i64 <= state.room() {
        grown += take_in(tx, job, team, state, &fresh, now).await?;
    } else {
        // Some are known already: it goes on until enough new ones were among them.
        let mut rest = fresh.as_slice();
        loop {
            let wanted = usize::try_from(state.wanted()).unwrap_or(0);
            let (rows, after) = rest.split_at(wanted.min(ROWS).min(rest.len()));
            if rows.is_empty() {
                break;
            }
            let new = insert_urls(tx, job, state, rows, AddressState::Waiting).await?;
            state.waiting += new;
            state.discovered += new;
            rest = after;
        }
    }
    grown += admit_waiting(tx, job, team, state, now).await?;
    let fresh: Vec<(&Found, i64)> = blocked.iter().copied().filter(|(f, _)| seen.insert(f.key.as_str())).collect();
    for chunk in fresh.chunks(ROWS) {
        let room = usize::try_from(MAX_BLOCKED - state.blocked).unwrap_or(0);
        if room > 0 {
            state.blocked +=
                insert_urls(tx, job, state, &chunk[..chunk.len().min(room)], AddressState::Blocked).await?;
        }
    }
    Ok(grown)
}

/// Gives each new address a page row at once. There is room for all.
async fn take_in(
    tx: &mut Tx,
    job: JobId,
    team: TeamId,
    state: &mut CrawlCounts,
    found: &[(&Found, i64)],
    now: Timestamp,
) -> StoreResult<i64> {
    let mut grown = 0;
    for chunk in found.chunks(ROWS) {
        let first = state.next_seq;
        state.next_seq += chunk.len() as i64;
        let ids: Vec<PageId> = chunk.iter().map(|_| PageId::new()).collect();
        let urls = chunk.iter().zip(&ids).zip(first..).map(|(((found, depth), id), seq)| NewUrl {
            key: &found.key,
            page: Some(*id),
            url: None,
            depth: *depth,
            seq,
        });
        let new = urls::enter(tx, job, AddressState::Taken, &urls.collect::<Vec<_>>()).await?;
        let new: HashSet<PageId> = new.into_iter().flatten().collect();
        let pages: Vec<NewPage<'_>> = chunk
            .iter()
            .zip(&ids)
            .enumerate()
            .filter(|(_, (_, id))| new.contains(id))
            .map(|(i, ((found, depth), id))| NewPage { id: *id, idx: first + i as i64, url: &found.url, depth: *depth })
            .collect();
        rows::insert(tx, job, team, &pages, now).await?;
        grown += pages.len() as i64;
    }
    state.admitted += grown;
    state.discovered += grown;
    Ok(grown)
}

/// Inserts addresses without page rows. Returns how many are new.
async fn insert_urls(
    tx: &mut Tx,
    job: JobId,
    state: &mut CrawlCounts,
    found: &[(&Found, i64)],
    as_state: AddressState,
) -> StoreResult<i64> {
    let first = state.next_seq;
    state.next_seq += found.len() as i64;
    let urls = found.iter().zip(first..).map(|((found, depth), seq)| NewUrl {
        key: &found.key,
        page: None,
        url: Some(&found.url),
        depth: *depth,
        seq,
    });
    let new = urls::enter(tx, job, as_state, &urls.collect::<Vec<_>>()).await?;
    Ok(new.len() as i64)
}

/// Gives waiting addresses a page row as far as there is room, in the order they were met.
async fn admit_waiting(
    tx: &mut Tx,
    job: JobId,
    team: TeamId,
    state: &mut CrawlCounts,
    now: Timestamp,
) -> StoreResult<i64> {
    const NEXT: &str = sql!(
        "SELECT key, url, depth, seq FROM crawl_url WHERE job_id = $1 AND state = ",
        AddressState::Waiting.sql(),
        " ORDER BY seq LIMIT $2"
    );
    let mut grown = 0;
    loop {
        let want = state.room().min(state.waiting).min(ROWS as i64);
        if want <= 0 {
            return Ok(grown);
        }
        let rows: Vec<(String, Option<String>, i64, i64)> =
            on_db!(tx, |conn| sqlx::query_as(NEXT).bind(job).bind(want).fetch_all(conn).await?);
        if rows.is_empty() {
            return Err(StoreError::Corrupt(format!("crawl {job} counts waiting addresses that are not there")));
        }
        let ids: Vec<PageId> = rows.iter().map(|_| PageId::new()).collect();
        let admitted: Vec<(&str, PageId)> = rows.iter().zip(&ids).map(|(row, id)| (row.0.as_str(), *id)).collect();
        urls::admit(tx, job, &admitted).await?;
        let pages: Vec<NewPage<'_>> = rows
            .iter()
            .zip(&ids)
            .map(|((_, url, depth, seq), id)| NewPage {
                id: *id,
                idx: *seq,
                url: url.as_deref().unwrap_or_default(),
                depth: *depth,
            })
            .collect();
        rows::insert(tx, job, team, &pages, now).await?;
        let count = pages.len() as i64;
        state.waiting -= count;
        state.admitted += count;
        grown += count;
    }
}

/// Why a page is not delivered that calls itself another one: [`revive`] finds it in the rows by these words, so they are
/// never changed.
fn stands_for(owner: PageId) -> String {
    format!("it is the same as page {owner}, as it says itself")
}

/// Asks again for pages that were dropped because they called themselves one of `gone`, as far as there is room. Returns
/// how many.
async fn revive(tx: &mut Tx, job: JobId, state: &mut CrawlCounts, gone: &[PageId], now: Timestamp) -> StoreResult<i64> {
    const SQL: &str = sql!(
        "UPDATE page SET state = ",
        PageMove::Revive.to().sql(),
        ", run_at = $3, finished_at = NULL, error = NULL WHERE id IN (SELECT id FROM page WHERE job_id = $1 AND state = ",
        PageMove::Revive.from().sql(),
        " AND error = $2 ORDER BY idx LIMIT $4)"
    );
    let mut revived = 0;
    for page in gone {
        // Few crawls have such pages: nothing is looked for in the others.
        let most = state.room().min(state.dropped);
        if most == 0 {
            break;
        }
        let count = on_db!(tx, |conn| {
            sqlx::query(SQL).bind(job).bind(stands_for(*page)).bind(now).bind(most).execute(conn).await?.rows_affected()
        });
        let count = i64::try_from(count).unwrap_or(0);
        state.admitted += count;
        state.dropped -= count;
        revived += count;
    }
    Ok(revived)
}

/// Of a page that is delivered: it is about an error, so no other page is the same.
async fn note_error(tx: &mut Tx, page: PageId) -> StoreResult<()> {
    const SQL: &str = "UPDATE page SET error = $2 WHERE id = $1";
    on_db!(tx, |conn| sqlx::query(SQL).bind(page).bind(IS_ERROR).execute(conn).await?.rows_affected());
    Ok(())
}

/// The page that has an address, and will be or is delivered.
struct Owner {
    page: PageId,
    /// It is delivered, and is about an error.
    is_error: bool,
}

/// Enters a further address of a page. `Some`: a page that is or will be delivered has it already.
async fn take_alias(
    tx: &mut Tx,
    job: JobId,
    state: &mut CrawlCounts,
    page: &Claimed,
    key: &str,
    dropped: &HashSet<PageId>,
) -> StoreResult<Option<Owner>> {
    const HOLDER: &str = "SELECT u.state, u.page_id, p.state, p.error FROM crawl_url u \
        LEFT JOIN page p ON p.id = u.page_id WHERE u.job_id = $1 AND u.key = $2";
    const ENTER: &str = sql!(
        "INSERT INTO crawl_url (job_id, key, state, page_id, depth, seq) VALUES ($1, $2, ",
        AddressState::Taken.sql(),
        ", $3, $4, $5)"
    );
    const TAKE: &str = sql!(
        "UPDATE crawl_url SET state = ",
        AddressMove::Join.to().sql(),
        ", page_id = $3, url = NULL WHERE job_id = $1 AND key = $2"
    );
    type Holder = (String, Option<PageId>, Option<String>, Option<String>);
    let holder: Option<Holder> =
        on_db!(tx, |conn| sqlx::query_as(HOLDER).bind(job).bind(key).fetch_optional(conn).await?);
    match holder {
        None => {
            let seq = state.next_seq;
            state.next_seq += 1;
            state.discovered += 1;
            on_db!(tx, |conn| {
                sqlx::query(ENTER)
                    .bind(job)
                    .bind(key)
                    .bind(page.id)
                    .bind(page.depth)
                    .bind(seq)
                    .execute(conn)
                    .await?
                    .rows_affected()
            });
            return Ok(None);
        }
        Some((_, Some(owner), ..)) if owner == page.id => return Ok(None),
        Some((_, Some(owner), Some(its), error)) => {
            let its: PageState = its.parse().map_err(StoreError::Corrupt)?;
            let is_delivered = matches!(its, PageState::Queued | PageState::Running | PageState::Done);
            if is_delivered && !dropped.contains(&owner) {
                return Ok(Some(Owner { page: owner, is_error: error.as_deref() == Some(IS_ERROR) }));
            }
        }
        Some((its, ..)) => match its.parse::<AddressState>().map_err(StoreError::Corrupt)? {
            AddressState::Waiting => state.waiting -= 1,
            AddressState::Blocked => {
                state.blocked -= 1;
                state.discovered += 1;
            }
            AddressState::Taken => {}
        },
    }
    on_db!(tx, |conn| sqlx::query(TAKE).bind(job).bind(key).bind(page.id).execute(conn).await?.rows_affected());
    Ok(None)
}

/// A page whose end was written as done, or at least as ended, does not count any more.
async fn drop_page(tx: &mut Tx, page: PageId, reason: &str) -> StoreResult<()> {
    const SQL: &str = sql!("UPDATE page SET state = ", PageMove::Withdraw.to().sql(), ", error = $2 WHERE id = $1");
    on_db!(tx, |conn| sqlx::query(SQL).bind(page).bind(reason).execute(conn).await?.rows_affected());
    Ok(())
}

async fn forbid(tx: &mut Tx, page: &Claimed, key: &str) -> StoreResult<()> {
    const SQL: &str = sql!(
        "UPDATE crawl_url SET state = ",
        AddressMove::Forbid.to().sql(),
        ", page_id = NULL, url = $3 WHERE job_id = $1 AND key = $2"
    );
    on_db!(tx, |conn| {
        sqlx::query(SQL).bind(page.job_id).bind(key).bind(page.url.as_str()).execute(conn).await?.rows_affected()
    });
    Ok(())
}

async fn settle_base(tx: &mut Tx, job: JobId, base: &str) -> StoreResult<()> {
    const SQL: &str = "UPDATE crawl SET base = $2 WHERE job_id = $1 AND base IS NULL";
    on_db!(tx, |conn| sqlx::query(SQL).bind(job).bind(base).execute(conn).await?.rows_affected());
    Ok(())
}

/// Addresses of a crawl that are entered while the page that leads to them, or the step that reads the sitemaps, is still
/// in work.
#[derive(Debug, Clone, Copy)]
pub struct Ahead<'a> {
    pub found: &'a [Found],
    pub blocked: &'a [Found],
    /// Links from the start page.
    pub depth: i64,
    /// Where the site is, where the start page leads to them: nobody works on them without knowing that.
    pub base: Option<&'a str>,
}

/// What a crawl still takes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Addresses to be asked for.
    pub found: bool,
    /// Addresses that robots.txt forbids, for the list of them.
    pub blocked: bool,
}

/// Takes in addresses before the end of the page they are from: so many that one transaction for all would keep others
/// waiting, or such as come bit by bit. They stay whatever becomes of the page, and whoever works on it next enters them
/// again without effect. Nothing is wanted any more where the crawl has ended, or the page is somebody else's now.
pub async fn enter_ahead(db: &Db, page: &Claimed, ahead: Ahead<'_>, now: Timestamp) -> StoreResult<Wanted> {
    const FENCE: &str = sql!("SELECT 1 FROM page WHERE id = $1 AND epoch = $2 AND state = ", PageState::Running.sql());
    let (job, team) = (page.job_id, page.team_id);
    let mut tx = db.begin().await?;
    team_lock::lock(&mut tx, team).await?;
    let ours: Option<(i32,)> =
        on_db!(&mut tx, |conn| sqlx::query_as(FENCE).bind(page.id).bind(page.epoch).fetch_optional(conn).await?);
    let state = CrawlCounts::load(&mut tx, job).await?;
    let Some(mut state) = state.filter(|state| ours.is_some() && state.is_running()) else {
        return Ok(Wanted { found: false, blocked: false });
    };
    if let Some(base) = ahead.base {
        settle_base(&mut tx, job, base).await?;
    }
    let was_idle = !has_due_pages(&mut tx, job, now).await?;
    let found: Vec<(&Found, i64)> = ahead.found.iter().map(|f| (f, ahead.depth)).collect();
    let blocked: Vec<(&Found, i64)> = ahead.blocked.iter().map(|f| (f, ahead.depth)).collect();
    let grown = grow(&mut tx, job, team, &mut state, &found, &blocked, now).await?;
    state.save(&mut tx, job).await?;
    if grown > 0 {
        jobs::grow(&mut tx, job, grown).await?;
        if was_idle {
            queue::team_wakeups(&mut tx, team, usize::try_from(grown).unwrap_or(usize::MAX)).await?;
        }
    }
    tx.commit().await?;
    db.faults().reach(FaultPoint::EnteredAhead)?;
    Ok(Wanted { found: state.wanted() > 0, blocked: state.blocked < MAX_BLOCKED })
}

/// Whether a crawl wants no further addresses, whatever becomes of its pages: it has ended, takes in no more, or has all
/// the pages that its limit allows, ended.
pub async fn is_full(db: &Db, job: JobId) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "SELECT c.page_limit, c.dropped, j.completed + j.failed FROM crawl c JOIN job j ON j.id = c.job_id \
         WHERE c.job_id = $1 AND j.status = ",
        JobStatus::Scraping.sql()
    );
    let found: Option<(i64, i64, i64)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).fetch_optional(pool).await?);
    Ok(found.is_none_or(|(limit, dropped, ended)| ended >= limit || is_tired(dropped, limit)))
}

#[cfg(test)]
#[path = "frontier_tests.rs"]
mod tests;
