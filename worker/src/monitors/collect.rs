//! A check goes on: what its pages came to is written down as they end, and when all targets are over it ends itself.

use std::collections::HashMap;

use weir_shared::blocking;
use weir_shared::domain::job::{JobKind, JobStatus};
use weir_shared::domain::monitor::{Billing, PageStatus, Progress, Summary, TargetType, outcome};
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::monitors::checks::{self, CheckRow, End, News, Step};
use weir_shared::store::monitors::pages::{self as found_pages, Address, Found, Known, NewPage};
use weir_shared::store::work::crawls;
use weir_shared::store::work::documents::{self, Part};
use weir_shared::store::work::jobs::{self, JobRow};
use weir_shared::store::work::pages::{self, PageRow};
use weir_shared::store::{StoreError, StoreResult, Tx};
use weir_shared::time::Timestamp;

use super::found::{self, Looked};
use super::{LEASE_MS, Monitors};

/// Documents that are looked at together, and about how many bytes of them.
pub(super) const DOCUMENTS: i64 = 20;
pub(super) const DOCUMENT_BYTES: usize = 8 << 20;
/// Pages that are written in one transaction where there is no document.
const ROWS: i64 = 200;
/// Between two looks at a check that runs: a fifth of the time that it has taken, within these bounds.
const LEAST_PAUSE_MS: i64 = 500;
const LONGEST_PAUSE_MS: i64 = 15_000;

/// A check in hand.
pub(super) struct InHand<'a> {
    pub check: &'a CheckRow,
    pub targets: Vec<Progress>,
    pub summary: Summary,
    /// The last pages of a target, [`DOCUMENTS`] at most, which are written with what comes next: most often the check's end.
    pub last: Vec<Found>,
}

/// Whether the check is still ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    Yes,
    /// Somebody else has it, or it was ended.
    No,
}

impl<'a> InHand<'a> {
    pub(super) fn of(check: &'a CheckRow) -> StoreResult<Self> {
        Ok(Self { check, targets: check.targets()?, summary: check.summary(), last: Vec::new() })
    }

    /// The jobs of its targets that are not over.
    pub(super) fn open_jobs(&self) -> impl Iterator<Item = JobId> {
        self.targets.iter().filter(|target| !target.is_over).filter_map(|target| target.job)
    }

    /// The addresses of a target's pages.
    pub(super) fn addresses<'u>(&self, n: usize, urls: impl Iterator<Item = &'u str>) -> Vec<Address> {
        urls.map(|url| Address::new(self.check.monitor_id, &self.targets[n].target_id, url)).collect()
    }

    /// What these documents of a target, up to `last`, say of their pages, by what is known of their addresses.
    pub(super) fn meet(
        &mut self,
        n: usize,
        looked: Vec<Looked>,
        last: i64,
        known: &HashMap<Address, Known>,
    ) -> StoreResult<Vec<Found>> {
        let monitor = self.check.monitor_id;
        let progress = &mut self.targets[n];
        let judged: Vec<bool> = looked.iter().map(Looked::is_judged).collect();
        let mut pages = Vec::with_capacity(looked.len());
        for page in looked {
            let address = Address::new(monitor, &progress.target_id, &page.url);
            pages.push(page.found(&progress.target_id, known.get(&address))?);
        }
        progress.documents = last;
        progress.unread += pages.iter().filter(|page| page.status == PageStatus::Error).count() as i64;
        if progress.goal.is_some() {
            let changed = pages.iter().zip(&judged).filter(|(page, _)| page.status == PageStatus::Changed);
            progress.unjudged += changed.filter(|(_, is_judged)| !**is_judged).count() as i64;
        }
        Ok(pages)
    }

    /// All that a target's job brought is looked at.
    pub(super) fn close(&mut self, n: usize, job: &JobRow) {
        let target = &mut self.targets[n];
        target.is_over = true;
        target.credits = job.credits_used;
        if job.status == JobStatus::Cancelled {
            target.error = Some("It was cancelled.".to_owned());
        }
    }

    /// Writes how far the check is, in a transaction that does more. [`Held::No`]: it must not be committed.
    pub(super) async fn save(&self, tx: &mut Tx, next_at: Timestamp, now: Timestamp) -> StoreResult<Held> {
        let step = Step { targets: &self.targets, summary: self.summary, next_at };
        Ok(if checks::save(tx, self.check, &step, now).await? { Held::Yes } else { Held::No })
    }
}

impl Monitors {
    /// Looks after a check that runs: every target as far as it has come.
    pub(super) async fn carry_on(&self, check: &CheckRow) -> StoreResult<()> {
        let mut hand = InHand::of(check)?;
        for n in 0..hand.targets.len() {
            if hand.targets[n].is_over {
                continue;
            }
            if self.write_last(&mut hand).await? == Held::No {
                return Ok(());
            }
            let held = match hand.targets[n].kind {
                TargetType::Search => self.search(&mut hand, n).await?,
                TargetType::Scrape | TargetType::Crawl => self.collect(&mut hand, n).await?,
            };
            if held == Held::No {
                return Ok(());
            }
        }
        if hand.targets.iter().all(|target| target.is_over) {
            return self.finish(vec![hand]).await;
        }
        if self.write_last(&mut hand).await? == Held::No {
            return Ok(());
        }
        let db = &self.context.process.db;
        let now = db.now();
        let pause = pause_ms(check, now);
        let mut tx = db.begin().await?;
        if hand.save(&mut tx, now.plus_ms(pause), now).await? == Held::Yes {
            tx.commit().await?;
        }
        Ok(())
    }

    /// Writes down what a target's job has brought since the last look.
    async fn collect(&self, hand: &mut InHand<'_>, n: usize) -> StoreResult<Held> {
        let db = &self.context.process.db;
        // Read before its documents: when it has ended by then, they are all there.
        let job = match hand.targets[n].job {
            Some(id) => jobs::load(db, id).await?,
            None => None,
        };
        let Some(job) = job else {
            hand.targets[n].is_over = true;
            hand.targets[n].error = Some("Its pages expired before they were looked at.".to_owned());
            return Ok(Held::Yes);
        };
        if self.documents(hand, n, &job).await? == Held::No || self.failures(hand, n, &job).await? == Held::No {
            return Ok(Held::No);
        }
        if job.status == JobStatus::Scraping {
            return Ok(Held::Yes);
        }
        if self.missing(hand, n, &job).await? == Held::No {
            return Ok(Held::No);
        }
        hand.close(n, &job);
        Ok(Held::Yes)
    }

    async fn documents(&self, hand: &mut InHand<'_>, n: usize, job: &JobRow) -> StoreResult<Held> {
        let process = &self.context.process;
        while job.status == JobStatus::Scraping || hand.targets[n].documents < job.completed {
            let (skip, limit, max_bytes) = (hand.targets[n].documents, DOCUMENTS, DOCUMENT_BYTES);
            let part = documents::find(&process.db, job.id, Part { skip, limit, max_bytes }).await?;
            let part = part.open(&process.db, &process.blobs).await?;
            let Some(last) = part.last().map(|document| document.seq) else { break };
            let looked = blocking(move || part.iter().map(Looked::read).collect::<StoreResult<Vec<_>>>()).await?;
            let addresses = hand.addresses(n, looked.iter().map(|page| page.url.as_str()));
            let known = found_pages::known(&process.db, &addresses).await?;
            let pages = hand.meet(n, looked, last, &known)?;
            let is_all = job.status != JobStatus::Scraping && last >= job.completed;
            if is_all && job.kind == JobKind::Batch && job.failed <= hand.targets[n].failures {
                hand.last = pages;
            } else if self.write(hand, &pages).await? == Held::No {
                return Ok(Held::No);
            }
        }
        Ok(Held::Yes)
    }

    /// Writes the last pages of a target, where there are some that are not written yet.
    async fn write_last(&self, hand: &mut InHand<'_>) -> StoreResult<Held> {
        let last = std::mem::take(&mut hand.last);
        if last.is_empty() { Ok(Held::Yes) } else { self.write(hand, &last).await }
    }

    /// Pages that failed since the last look, by the time of their failure. Two that fail at once may be written down
    /// the other way round, and clocks are set back: what was passed over so is looked for when the job has ended.
    async fn failures(&self, hand: &mut InHand<'_>, n: usize, job: &JobRow) -> StoreResult<Held> {
        let db = &self.context.process.db;
        while hand.targets[n].failures < job.failed {
            let rows = pages::failed_since(db, job.id, hand.targets[n].failed_at, ROWS).await?;
            let Some(last) = rows.last() else { break };
            hand.targets[n].failed_at = last.finished_at.map(|at| (at, last.idx));
            if self.fail(hand, n, rows).await? == Held::No {
                return Ok(Held::No);
            }
        }
        if job.status == JobStatus::Scraping || hand.targets[n].failures >= job.failed {
            return Ok(Held::Yes);
        }
        let told = found_pages::failed(db, hand.check.id).await?;
        let mut after = None;
        loop {
            let rows = pages::failed_since(db, job.id, after, ROWS).await?;
            let Some(last) = rows.last() else { return Ok(Held::Yes) };
            after = last.finished_at.map(|at| (at, last.idx));
            let rows: Vec<_> = rows.into_iter().filter(|page| !told.contains(&page.id)).collect();
            if !rows.is_empty() && self.fail(hand, n, rows).await? == Held::No {
                return Ok(Held::No);
            }
        }
    }

    /// Writes down pages that failed.
    async fn fail(&self, hand: &mut InHand<'_>, n: usize, rows: Vec<PageRow>) -> StoreResult<Held> {
        let db = &self.context.process.db;
        let target = hand.targets[n].target_id.clone();
        let addresses = hand.addresses(n, rows.iter().map(|page| page.url.as_str()));
        let known = found_pages::known(db, &addresses).await?;
        hand.targets[n].failures += rows.len() as i64;
        let pages = rows.into_iter().zip(&addresses);
        let pages = pages.map(|(page, address)| found::failed(page, &target, known.get(address)));
        let pages = pages.collect::<StoreResult<Vec<_>>>()?;
        self.write(hand, &pages).await
    }

    /// Pages that a crawl has not met any more. Nothing is said of a crawl that did not see the whole site: one that was
    /// cut short by its limit, or that could not read a page which may have led on.
    async fn missing(&self, hand: &mut InHand<'_>, n: usize, job: &JobRow) -> StoreResult<Held> {
        let db = &self.context.process.db;
        let is_whole = job.failed == 0 && hand.targets[n].unread == 0;
        if job.kind != JobKind::Crawl || job.status != JobStatus::Completed || !is_whole {
            return Ok(Held::Yes);
        }
        let limit = crawls::page_limit(db, job.id).await?;
        if limit.is_none_or(|limit| job.completed >= limit) {
            return Ok(Held::Yes);
        }
        loop {
            let target = hand.targets[n].target_id.clone();
            let missing = found_pages::missing(db, hand.check, &target, ROWS).await?;
            if missing.is_empty() {
                return Ok(Held::Yes);
            }
            let pages = missing.into_iter().map(|(url, scrape)| found::gone(url, scrape, &target));
            let pages = pages.collect::<StoreResult<Vec<_>>>()?;
            if self.write(hand, &pages).await? == Held::No {
                return Ok(Held::No);
            }
        }
    }

    /// Writes what was found, what is known by it and who is told, and commits.
    async fn write(&self, hand: &mut InHand<'_>, found: &[Found]) -> StoreResult<Held> {
        let tx = self.context.process.db.begin().await?;
        self.write_in(tx, hand, found).await
    }

    /// The same in a transaction that does more.
    pub(super) async fn write_in(&self, mut tx: Tx, hand: &mut InHand<'_>, found: &[Found]) -> StoreResult<Held> {
        let now = self.context.process.db.now();
        let before = hand.summary.total();
        found.iter().for_each(|page| hand.summary.add(page.status));
        if hand.save(&mut tx, now.plus_ms(LEASE_MS), now).await? == Held::No {
            return Ok(Held::No);
        }
        let pages: Vec<NewPage<'_>> = NewPage::of(hand.check, before, found).collect();
        found_pages::insert(&mut tx, &pages, now).await?;
        checks::tell(&mut tx, &[News { check: hand.check, pages: &ids(found), ended: false }], now).await?;
        tx.commit().await?;
        Ok(Held::Yes)
    }

    /// Ends checks whose targets are all over, in one transaction.
    pub(super) async fn finish(&self, mut hands: Vec<InHand<'_>>) -> StoreResult<()> {
        if hands.is_empty() {
            return Ok(());
        }
        let process = &self.context.process;
        let before: Vec<i64> = hands.iter().map(|hand| hand.summary.total()).collect();
        for hand in &mut hands {
            hand.last.iter().for_each(|page| hand.summary.add(page.status));
        }
        let ends: Vec<End<'_>> = hands.iter().map(InHand::end).collect();
        let ttl_ms = process.settings.result_ttl.as_millis() as i64;
        let mut tx = process.db.begin().await?;
        let now = process.db.now();
        let ended = checks::finish(&mut tx, &ends, now).await?;
        let (mut pages, mut news, mut jobs) = (Vec::new(), Vec::new(), Vec::<JobId>::new());
        for (hand, before) in hands.iter().zip(before).filter(|(hand, _)| ended.contains(&hand.check.id)) {
            pages.extend(NewPage::of(hand.check, before, &hand.last));
            news.push((hand.check, ids(&hand.last)));
            jobs.extend(hand.targets.iter().filter_map(|target| target.job));
        }
        found_pages::insert(&mut tx, &pages, now).await?;
        // What a long check brought can be read as long as what a short one did, or nearly so.
        jobs::keep_until(&mut tx, &jobs, now.plus_ms(ttl_ms / 2), now.plus_ms(ttl_ms)).await?;
        let news: Vec<News<'_>> = news.iter().map(|(check, pages)| News { check, pages, ended: true }).collect();
        checks::tell(&mut tx, &news, now).await?;
        tx.commit().await?;
        for end in ends.iter().filter(|end| ended.contains(&end.check.id)) {
            let (word, changed) = (end.by.to().as_str(), end.summary.total() - end.summary.same);
            tracing::info!(check.id = %end.check.id, monitor.id = %end.check.monitor_id, word, changed, "a check has ended");
        }
        Ok(())
    }
}

impl InHand<'_> {
    /// How it ends, all of its targets being over.
    fn end(&self) -> End<'_> {
        let credits = self.targets.iter().map(|target| target.credits).sum();
        let billing = match (self.check.billing, credits) {
            (_, 1..) => Billing::Confirmed,
            (Billing::Reserved, _) => Billing::Released,
            (billing, _) => billing,
        };
        End {
            check: self.check,
            by: outcome(&self.summary, &self.targets),
            targets: &self.targets,
            summary: self.summary,
            credits,
            billing,
            error: self.targets.iter().find_map(|target| target.error.as_deref()),
        }
    }
}

fn ids(found: &[Found]) -> Vec<PageId> {
    found.iter().map(|page| page.id).collect()
}

/// How long a check that runs is left alone.
pub(super) fn pause_ms(check: &CheckRow, now: Timestamp) -> i64 {
    let age = check.started_at.map_or(0, |started| now.ms_since(started));
    (age / 5).clamp(LEAST_PAUSE_MS, LONGEST_PAUSE_MS)
}

/// Work that computes, off the async threads.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> StoreResult<T> + Send + 'static,
) -> StoreResult<T> {
    blocking::run(work).await.map_err(|error| StoreError::Corrupt(error.to_string()))?
}
