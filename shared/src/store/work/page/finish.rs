//! The end of a page's attempt: result, counts, credits, webhooks and the next wake-ups in one transaction, for many
//! pages at once.
//!
//! Every page is fenced by its epoch: an attempt that another claim, a cancel or a replay has overtaken changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::fault::FaultPoint;
use crate::ids::{JobId, PageId, TeamId};
use crate::store::contents::{derived, snapshots};
use crate::store::work::frontier::{self, Settled};
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, queue};

use super::counts::{self, Counted, Delta};
use super::end::{Finished, Outcome, Report};
use super::fast;
use super::moves::move_pages;
use super::results::{self, Results, billed_before, write_results};
use crate::store::contents::version::Body;

/// Writes the ends of many attempts in one transaction. Pages of one group should be of few teams.
pub async fn finish(db: &Db, group: &[Finished], now: Timestamp) -> StoreResult<Report> {
    if group.iter().any(has_blob) {
        db.faults().reach(FaultPoint::BetweenBlobAndRow)?;
    }
    let report = commit(db, group, now).await?;
    db.faults().reach(FaultPoint::AfterCommit)?;
    Ok(report)
}

fn has_blob(end: &Finished) -> bool {
    let is_blob = |body: &Body| matches!(body, Body::Blob(_));
    end.outcome.document().is_some_and(|(document, _)| is_blob(&document.body))
        || end.outcome.version().is_some_and(|version| is_blob(&version.body))
}

async fn commit(db: &Db, group: &[Finished], now: Timestamp) -> StoreResult<Report> {
    if let [end] = group
        && let Some(report) = fast::finish(db, end, now).await?
    {
        return Ok(report);
    }
    let mut tx = db.begin().await?;
    let report = finish_many(&mut tx, group, now).await?;
    db.faults().reach(FaultPoint::BeforeCommit)?;
    tx.commit().await?;
    Ok(report)
}

/// The same in a transaction that does more.
pub async fn finish_many(tx: &mut Tx, group: &[Finished], now: Timestamp) -> StoreResult<Report> {
    let mut teams: Vec<TeamId> = group.iter().map(|f| f.page.team_id).collect();
    teams.sort_unstable();
    teams.dedup();

    let moved = move_pages(tx, group, &teams, now).await?;
    teams.retain(|team| moved.iter().any(|page| page.has_deferred_pages && page.team_id == *team));
    let replayed: Vec<PageId> = moved.iter().filter(|page| page.replays > 0).map(|page| page.id).collect();
    let billed = billed_before(tx, &replayed).await?;
    let written: Vec<PageId> = moved.into_iter().map(|page| page.id).collect();
    let mut live: Vec<&Finished> = group.iter().filter(|f| written.contains(&f.page.id)).collect();
    write_attempts(tx, &live, now).await?;
    let settled = frontier::settle(tx, &live, now).await?;
    let Tally { deltas, pauses } = tally(&live, &settled, &replayed, &billed, now);
    live.retain(|end| !settled.dropped.contains(&end.page.id));
    let Counted { ended, first_seq, grown } = counts::count(tx, &deltas, &settled.jobs, now).await?;
    store(tx, &live, first_seq, now).await?;
    invite(tx, &teams, pauses, grown).await?;
    Ok(Report { written, ended })
}

/// What ends come to.
struct Tally {
    deltas: BTreeMap<JobId, Delta>,
    /// Teams with pages that wait again, with the longest time until one is due, milliseconds.
    pauses: BTreeMap<TeamId, i64>,
}

/// Adds up what ends change in the counts of their jobs. Of pages that were `replayed`, those that are `billed` cost
/// nothing more.
fn tally(live: &[&Finished], settled: &Settled, replayed: &[PageId], billed: &[PageId], now: Timestamp) -> Tally {
    let mut pauses: BTreeMap<TeamId, i64> = BTreeMap::new();
    let mut deltas: BTreeMap<JobId, Delta> = BTreeMap::new();
    for end in live {
        let delta = deltas.entry(end.page.job_id).or_default();
        if settled.dropped.contains(&end.page.id) {
            delta.total -= 1;
            continue;
        }
        match &end.outcome {
            Outcome::Done { credits, .. } | Outcome::Crawled { credits, .. } => {
                delta.completed += 1;
                delta.credits += if billed.contains(&end.page.id) { 0 } else { *credits };
                delta.pages.push(end.page.id);
            }
            Outcome::Failed { credits, .. } => {
                delta.failed += 1;
                delta.credits += if billed.contains(&end.page.id) { 0 } else { *credits };
                // The failure of a page is told once: not again when a replay fails.
                if !replayed.contains(&end.page.id) {
                    delta.pages.push(end.page.id);
                }
            }
            // Nothing but a dropped one: its crawl is gone.
            Outcome::Blocked { .. } | Outcome::SitemapsRead { .. } => {}
            Outcome::Retry { run_at, .. } | Outcome::Postponed { run_at } => {
                delta.queued += 1;
                let pause = pauses.entry(end.page.team_id).or_insert(0);
                *pause = (*pause).max(run_at.ms_since(now));
            }
            Outcome::Lost { .. } | Outcome::GivenBack => {
                delta.queued += 1;
                pauses.entry(end.page.team_id).or_insert(0);
            }
        }
    }
    for (job, growth) in &settled.jobs {
        let delta = deltas.entry(*job).or_default();
        delta.total += growth.pages;
        delta.queued += growth.pages;
        delta.hidden += growth.hidden;
    }
    Tally { deltas, pauses }
}

/// Stores what the pages brought.
async fn store(
    tx: &mut Tx,
    live: &[&Finished],
    mut first_seq: BTreeMap<JobId, i64>,
    now: Timestamp,
) -> StoreResult<()> {
    // Contents before versions, each in the order of their keys over all parts, because every writer locks them so.
    let (contents, versions) = (results::contents(live), results::versions(live));
    let parts = results::parts(tx, live);
    let (mut contents, is_one) = (contents.into_iter(), parts.len() == 1);
    for part in parts {
        let mut results = Results::of(part, &mut first_seq);
        results.contents = contents.by_ref().take(part.len()).collect();
        if is_one {
            results.versions.clone_from(&versions);
        }
        write_results(tx, results, now).await?;
    }
    if !is_one {
        for part in results::parts(tx, &versions) {
            write_results(tx, Results::of_versions(part), now).await?;
        }
    }
    for end in live {
        if let Some(snapshot) = end.outcome.document().and_then(|(document, _)| document.snapshot.as_ref()) {
            snapshots::put(tx, end.page.team_id, snapshot, now).await?;
        }
    }
    for made in results::derived(live) {
        derived::put(tx, made, now).await?;
    }
    Ok(())
}

/// Sends wake-ups for pages that wait again, for pages that are new, and for what a limit kept waiting in teams with `deferred` pages.
async fn invite(
    tx: &mut Tx,
    deferred: &[TeamId],
    mut pauses: BTreeMap<TeamId, i64>,
    grown: BTreeMap<TeamId, usize>,
) -> StoreResult<()> {
    for team in deferred {
        const SQL: &str = "UPDATE team SET starved = FALSE WHERE id = $1";
        on_db!(tx, |conn| sqlx::query(SQL).bind(*team).execute(conn).await?.rows_affected());
        // Others wait for the place that a page has just left, also when that page itself is put off for long.
        match pauses.get(team) {
            Some(pause) if *pause > 0 => queue::team_wakeup(tx, *team, Duration::ZERO).await?,
            Some(_) => {}
            None => {
                pauses.insert(*team, 0);
            }
        }
    }
    for (team, pause) in pauses {
        queue::team_wakeup(tx, team, Duration::from_millis(pause.max(0) as u64)).await?;
    }
    for (team, pages) in grown {
        queue::team_wakeups(tx, team, pages).await?;
    }
    Ok(())
}

/// The history of tries that did not work.
async fn write_attempts(tx: &mut Tx, ends: &[&Finished], now: Timestamp) -> StoreResult<()> {
    const SQL: &str = "INSERT INTO page_attempt (page_id, epoch, job_id, worker, started_at, ended_at, code, error) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (page_id, epoch) DO NOTHING";
    for end in ends {
        let (code, error) = match &end.outcome {
            Outcome::Failed { code, error, .. } | Outcome::Retry { code, error, .. } => (code.code(), error.as_str()),
            Outcome::Lost { reason } => (None, *reason),
            _ => continue,
        };
        on_db!(tx, |conn| {
            sqlx::query(SQL)
                .bind(end.page.id)
                .bind(end.page.epoch)
                .bind(end.page.job_id)
                .bind(end.page.owner)
                .bind(end.page.started_at)
                .bind(now)
                .bind(code)
                .bind(error)
                .execute(conn)
                .await?
                .rows_affected()
        });
    }
    Ok(())
}
