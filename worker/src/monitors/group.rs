//! Many checks at once. Most have a few pages that are all there when they are looked at first: those end together, and
//! those that wait for their pages are put off together. What is left takes steps of its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use weir_shared::domain::job::{JobKind, JobStatus};
use weir_shared::ids::{CheckId, JobId};
use weir_shared::store::monitors::checks::CheckRow;
use weir_shared::store::monitors::pages::{self as found_pages, Address};
use weir_shared::store::work::documents;
use weir_shared::store::work::jobs::{self, JobRow};
use weir_shared::store::{StoreError, StoreResult};

use super::collect::{DOCUMENT_BYTES, DOCUMENTS, InHand, blocking, pause_ms};
use super::found::Looked;
use super::{EVERY, Monitors};

/// What a check needs.
enum Need {
    /// Its pages are all there.
    End,
    /// Nothing has come since the last look.
    Patience,
    /// A step of its own.
    Step,
}

impl Monitors {
    /// Looks after checks that run. What cannot be done for many together is left to a step of each check's own.
    pub(super) async fn look_after(self: Arc<Self>, checks: Vec<CheckRow>) {
        let outcome = self.group(&checks).await;
        let (left, outcome) = match outcome {
            Ok(left) => (left, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        self.again(outcome, &checks).await;
        let mut crowded = Vec::new();
        for check in checks.into_iter().filter(|check| left.contains(&check.id)) {
            let Some(place) = self.places.take(check.team_id) else {
                crowded.push(check);
                continue;
            };
            let monitors = Arc::clone(&self);
            self.own_steps.spawn(async move {
                let _place = place;
                let outcome = tokio::select! {
                    outcome = monitors.carry_on(&check) => outcome,
                    () = monitors.context.fenced.cancelled() => return,
                };
                monitors.again(outcome, std::slice::from_ref(&check)).await;
            });
        }
        let until = self.context.process.db.now().plus_ms(EVERY.as_millis() as i64);
        let outcome = self.put_off(crowded.iter().collect(), until).await;
        self.again(outcome, &crowded).await;
    }

    /// Does what can be done for many together. Returns the checks that are left.
    async fn group(&self, checks: &[CheckRow]) -> StoreResult<Vec<CheckId>> {
        let db = &self.context.process.db;
        let (mut hands, mut left) = (Vec::with_capacity(checks.len()), Vec::new());
        for check in checks {
            match InHand::of(check) {
                Ok(hand) => hands.push(hand),
                // Its own step says so, and holds nobody else up.
                Err(_) => left.push(check.id),
            }
        }
        let ids: Vec<JobId> = hands.iter().flat_map(InHand::open_jobs).collect();
        // Read before their documents: those of a job that has ended by then are all there.
        let jobs = jobs::by_ids(db, &ids).await?.into_iter().map(|job| (job.id, job)).collect();
        let (mut ending, mut patient) = (Vec::new(), BTreeMap::<i64, Vec<&CheckRow>>::new());
        let now = db.now();
        for hand in hands {
            match need(&hand, &jobs) {
                Need::End => ending.push(hand),
                Need::Patience => patient.entry(pause_ms(hand.check, now)).or_default().push(hand.check),
                Need::Step => left.push(hand.check.id),
            }
        }
        for (pause, checks) in patient {
            self.put_off(checks, now.plus_ms(pause)).await?;
        }
        let all: Vec<CheckId> = ending.iter().map(|hand| hand.check.id).collect();
        match self.end_together(ending, &jobs).await {
            Ok(own) => left.extend(own),
            Err(StoreError::Unavailable(error)) => return Err(StoreError::Unavailable(error)),
            Err(error) => {
                tracing::warn!(%error, checks = all.len(), "checks cannot end together; each ends by itself");
                left.extend(all);
            }
        }
        Ok(left)
    }

    /// Ends checks whose jobs have ended. Returns those that are left.
    async fn end_together(&self, ending: Vec<InHand<'_>>, jobs: &HashMap<JobId, JobRow>) -> StoreResult<Vec<CheckId>> {
        let mut left = Vec::new();
        let ending = self.read(ending, jobs, &mut left).await?;
        self.finish(ending).await?;
        Ok(left)
    }

    /// Reads the pages of checks whose jobs have ended. Those whose documents are too large, or gone, are `left`.
    async fn read<'a>(
        &self,
        hands: Vec<InHand<'a>>,
        jobs: &HashMap<JobId, JobRow>,
        left: &mut Vec<CheckId>,
    ) -> StoreResult<Vec<InHand<'a>>> {
        let process = &self.context.process;
        let ids: Vec<JobId> = hands.iter().flat_map(InHand::open_jobs).collect();
        let found = documents::of_jobs(&process.db, &process.blobs, &ids, DOCUMENT_BYTES).await?;
        let read = |(job, documents): (JobId, Vec<documents::StoredDocument>)| {
            Ok((job, documents.iter().map(Looked::read).collect::<StoreResult<Vec<_>>>()?))
        };
        let mut found: HashMap<JobId, Vec<Looked>> =
            blocking(move || found.into_iter().map(read).collect::<StoreResult<_>>()).await?;
        let (mut whole, mut addresses) = (Vec::with_capacity(hands.len()), Vec::new());
        for hand in hands {
            let is_whole = hand.open_jobs().all(|id| {
                let looked = found.get(&id).map_or(0, Vec::len) as i64;
                jobs.get(&id).is_some_and(|job| job.completed == looked)
            });
            if !is_whole {
                left.push(hand.check.id);
                continue;
            }
            for target in hand.targets.iter().filter(|target| !target.is_over) {
                let looked = target.job.and_then(|job| found.get(&job)).into_iter().flatten();
                let address = |page: &Looked| Address::new(hand.check.monitor_id, &target.target_id, &page.url);
                addresses.extend(looked.map(address));
            }
            whole.push(hand);
        }
        let known = found_pages::known(&process.db, &addresses).await?;
        let mut last = Vec::with_capacity(whole.len());
        for mut hand in whole {
            for n in 0..hand.targets.len() {
                let Some(job) = hand.targets[n].job.filter(|_| !hand.targets[n].is_over) else { continue };
                let (Some(job), looked) = (jobs.get(&job), found.remove(&job).unwrap_or_default()) else { continue };
                let pages = hand.meet(n, looked, job.completed, &known)?;
                hand.last.extend(pages);
                hand.close(n, job);
            }
            last.push(hand);
        }
        Ok(last)
    }
}

/// What a check needs, as its jobs stand.
fn need(hand: &InHand<'_>, jobs: &HashMap<JobId, JobRow>) -> Need {
    let (mut pages, mut is_ended, mut is_waiting) = (0, true, true);
    for target in hand.targets.iter().filter(|target| !target.is_over) {
        let Some(job) = target.job.and_then(|job| jobs.get(&job)) else { return Need::Step };
        let is_running = job.status == JobStatus::Scraping;
        is_waiting &= is_running && job.completed == target.documents && job.failed == target.failures;
        is_ended &= job.kind == JobKind::Batch
            && job.status == JobStatus::Completed
            && job.failed == target.failures
            && target.documents == 0;
        pages += job.completed;
    }
    match (is_ended && pages <= DOCUMENTS, is_waiting) {
        (true, _) => Need::End,
        (_, true) => Need::Patience,
        _ => Need::Step,
    }
}
