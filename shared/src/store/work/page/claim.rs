//! Pages are taken into work: of a team, in the order of its jobs and within its limits, or one that somebody waits for.

use std::collections::HashMap;

use crate::domain::job::PageState;
use crate::ids::{JobId, PageId, TeamId, WorkerId};
use crate::on_db;
use crate::store::accounts::team_lock;
use crate::store::work::jobs::{self, JobSpec, SpecColumns};
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;

use super::rows::Claimed;
use super::rules::{self, CLAIMED_COLUMNS, IS_DUE, IS_DUE_BY_ID, TAKE, has_room};

/// What a claim brought.
#[derive(Debug, Default)]
pub struct Claim {
    pub pages: Vec<Claimed>,
    /// The claim was filled: there is probably more.
    pub more: bool,
    /// When the next page of the team is due that only its time keeps waiting; not asked when there is `more`.
    pub next_at: Option<Timestamp>,
}

const RUNNING_BY_JOB: &str = sql!(
    "SELECT job_id, COUNT(*) FROM page WHERE team_id = $1 AND state = ",
    PageState::Running.sql(),
    " GROUP BY job_id"
);

/// Jobs that a claim looks at in one go, besides those that already have pages in work.
const LOOK: usize = 50;
/// Looks in one claim: each but the last puts off, empties or fills to its limit as many jobs as it saw.
const LOOKS: usize = 20;

/// Takes up to `want` pages of a team: direct scrapes first, then its jobs in turn, within the limits of the team
/// (`default_limit` when it has none of its own) and of each job.
///
/// A claim cut short by a limit leaves a mark, so that the next finished page sends a wake-up. A job found without a page
/// that is due is put off until one is, or until another page of it comes to wait: claims do not see it until then.
///
/// Whoever moves a waiting page holds its team's lock, so what the inner SELECT finds waiting still is. To ask again
/// would cost: Postgres believes that few pages wait and reads them all, once for each page it takes.
pub async fn claim(
    tx: &mut Tx,
    team: TeamId,
    worker: WorkerId,
    want: usize,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<Claim> {
    // Each part is read in the order of the index; only what they bring is sorted.
    const JOBS: &str = "SELECT id, max_concurrency, limited_at, queued FROM (SELECT * FROM (SELECT id, \
        max_concurrency, limited_at, queued, rank, last_served FROM job WHERE team_id = $1 AND queued > 0 \
        AND due_at = 0 ORDER BY rank, last_served, id LIMIT $3) AS ready UNION ALL SELECT * FROM (SELECT id, \
        max_concurrency, limited_at, queued, rank, last_served FROM job WHERE team_id = $1 AND queued > 0 \
        AND due_at > 0 AND due_at <= $2 ORDER BY due_at LIMIT $3) AS woken) AS jobs \
        ORDER BY rank, last_served, id LIMIT $3";
    const NEXT: &str = "SELECT MIN(due_at) FROM job WHERE team_id = $1 AND queued > 0 AND due_at > $2";

    let Some(state) = team_lock::lock_to_begin(tx, team).await? else { return Ok(Claim::default()) };
    let running: Vec<(JobId, i64)> =
        on_db!(tx, |conn| sqlx::query_as(RUNNING_BY_JOB).bind(team).fetch_all(conn).await?);
    let busy: i64 = running.iter().map(|r| r.1).sum();
    let mut running: HashMap<JobId, i64> = running.into_iter().collect();
    let mut room = rules::room(state.concurrency, default_limit, busy).min(want as i64);

    let mut claim = Claim::default();
    let mut limited = Vec::new();
    let mut may_be_more = true;
    for _ in 0..LOOKS {
        // Those at their own limit have pages in work, so they do not use up what is looked at.
        let look = if room > 0 { LOOK + running.len() } else { LOOK };
        let jobs: Vec<(JobId, Option<i64>, Option<Timestamp>, i64)> =
            on_db!(tx, |conn| sqlx::query_as(JOBS).bind(team).bind(now).bind(look as i64).fetch_all(conn).await?);
        let is_last = jobs.len() < look;
        for (job, max, limited_at, queued) in jobs {
            let free = max.map_or(i64::MAX, |m| m - running.get(&job).copied().unwrap_or(0));
            let take = room.min(free);
            if take <= 0 {
                limited.push(job);
                continue;
            }
            let mut pages = take_from(tx, job, worker, take, queued, now).await?;
            let count = pages.len() as i64;
            if count == 0 {
                continue;
            }
            room -= count;
            *running.entry(job).or_insert(0) += count;
            for page in &mut pages {
                page.limited = limited_at.is_some_and(|at| at >= page.queued_at);
                page.may_rest = state.rests_until.is_some_and(|until| until > now);
            }
            claim.pages.append(&mut pages);
            if count == take {
                // It may have more, which a limit or only the size of this claim keeps waiting.
                limited.push(job);
            }
        }
        may_be_more = room > 0 && !is_last;
        if !may_be_more {
            break;
        }
    }
    claim.more = may_be_more || claim.pages.len() == want;
    if claim.more {
        return Ok(claim);
    }
    if !limited.is_empty() {
        limited.sort_unstable();
        limited.dedup();
        mark_limited(tx, team, state.has_deferred_pages, &limited, now).await?;
    }
    let next: (Option<Timestamp>,) =
        on_db!(tx, |conn| sqlx::query_as(NEXT).bind(team).bind(now).fetch_one(conn).await?);
    claim.next_at = next.0;
    Ok(claim)
}

/// Takes up to `most` of the `queued` pages of a job, in their order. A job with fewer that are due is put off until the
/// next one is.
async fn take_from(
    tx: &mut Tx,
    job: JobId,
    worker: WorkerId,
    most: i64,
    queued: i64,
    now: Timestamp,
) -> StoreResult<Vec<Claimed>> {
    const CLAIM: &str = sql!(
        "UPDATE page SET ",
        TAKE,
        " WHERE id IN (SELECT id FROM page WHERE job_id = $3 AND ",
        IS_DUE,
        " ORDER BY run_at, idx LIMIT $4) RETURNING ",
        CLAIMED_COLUMNS
    );
    const TAKEN: &str = "UPDATE job SET queued = queued - $2, last_served = $3, due_at = $4 WHERE id = $1";
    const PUT_OFF: &str = "UPDATE job SET due_at = $2 WHERE id = $1";

    let mut pages: Vec<Claimed> =
        on_db!(tx, |conn| sqlx::query_as(CLAIM).bind(worker).bind(now).bind(job).bind(most).fetch_all(conn).await?);
    let count = pages.len() as i64;
    let due = if count < most.min(queued) { next_due(tx, job).await? } else { Timestamp(0) };
    if pages.is_empty() {
        on_db!(tx, |conn| sqlx::query(PUT_OFF).bind(job).bind(due).execute(conn).await?.rows_affected());
        return Ok(pages);
    }
    on_db!(tx, |conn| {
        sqlx::query(TAKEN).bind(job).bind(count).bind(now).bind(due).execute(conn).await?.rows_affected()
    });
    // RETURNING of an UPDATE gives its rows in an undefined order.
    pages.sort_by_key(|page| page.idx);
    Ok(pages)
}

/// When the first page of the job that waits is due.
async fn next_due(tx: &mut Tx, job: JobId) -> StoreResult<Timestamp> {
    const NEXT: &str = sql!("SELECT MIN(run_at) FROM page WHERE job_id = $1 AND state = ", PageState::Queued.sql());
    let next: (Option<Timestamp>,) = on_db!(tx, |conn| sqlx::query_as(NEXT).bind(job).fetch_one(conn).await?);
    Ok(next.0.unwrap_or(Timestamp(0)))
}

/// Takes one page somebody waits for, with its job's spec. `None`: it is taken, ended, or its team is at its limit
/// (then a mark is left).
pub async fn claim_one(
    db: &Db,
    team: TeamId,
    page: PageId,
    worker: WorkerId,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<Option<(Claimed, JobSpec)>> {
    let mut tx = db.begin_claim().await?;
    let claimed = claim_or_mark(&mut tx, team, page, worker, default_limit, now).await?;
    tx.commit().await?;
    Ok(claimed)
}

async fn claim_or_mark(
    tx: &mut Tx,
    team: TeamId,
    page: PageId,
    worker: WorkerId,
    default_limit: i64,
    now: Timestamp,
) -> StoreResult<Option<(Claimed, JobSpec)>> {
    const CLAIM: &str = sql!(
        "UPDATE page SET ",
        TAKE,
        " WHERE id = $3 AND ",
        IS_DUE_BY_ID,
        " AND ",
        has_room!("$4", "$5", "$6"),
        " RETURNING ",
        CLAIMED_COLUMNS
    );
    const TAKEN: &str = "UPDATE job SET queued = queued - 1, last_served = $2 WHERE id = $1 \
        RETURNING kind, api_key_id, options, webhook";
    const JOB: &str = sql!("SELECT job_id FROM page WHERE id = $1 AND ", IS_DUE);

    let Some(state) = team_lock::lock_to_begin(tx, team).await? else { return Ok(None) };
    let taken: Option<Claimed> = on_db!(tx, |conn| {
        sqlx::query_as(CLAIM)
            .bind(worker)
            .bind(now)
            .bind(page)
            .bind(team)
            .bind(state.concurrency)
            .bind(default_limit)
            .fetch_optional(conn)
            .await?
    });
    let Some(taken) = taken else {
        let job: Option<(JobId,)> =
            on_db!(tx, |conn| sqlx::query_as(JOB).bind(page).bind(now).fetch_optional(conn).await?);
        if let Some((job,)) = job {
            mark_limited(tx, team, state.has_deferred_pages, &[job], now).await?;
        }
        return Ok(None);
    };
    let spec: SpecColumns =
        on_db!(tx, |conn| sqlx::query_as(TAKEN).bind(taken.job_id).bind(now).fetch_one(conn).await?);
    Ok(Some((taken, jobs::read_spec(spec)?)))
}

async fn mark_limited(tx: &mut Tx, team: TeamId, is_marked: bool, jobs: &[JobId], now: Timestamp) -> StoreResult<()> {
    if !is_marked {
        const TEAM: &str = "UPDATE team SET starved = TRUE WHERE id = $1";
        on_db!(tx, |conn| sqlx::query(TEAM).bind(team).execute(conn).await?.rows_affected());
    }
    on_db!(tx, |conn| {
        let mut update = sqlx::QueryBuilder::new("UPDATE job SET limited_at = ");
        update.push_bind(now).push(" WHERE id IN (");
        let mut list = update.separated(", ");
        for job in jobs {
            list.push_bind(*job);
        }
        update.push(")");
        update.build().execute(conn).await?.rows_affected()
    });
    Ok(())
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
