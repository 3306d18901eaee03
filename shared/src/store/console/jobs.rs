//! Jobs of all kinds in one list, newest first, narrowed by whatever the console's address says.
//!
//! The order is that of the ids, which is that of time. What narrows the list and never changes stands in one index with
//! them (`job_list`), so that a hundred thousand jobs are looked through without their rows; the few that failed or were
//! cancelled, and the failures of a code, have indexes of their own. One call looks through [`WINDOW`] entries at most, and
//! says where to go on.

use crate::domain::job::{JobKind, JobStatus, PageState};
use crate::ids::{JobId, TeamId};
use crate::on_pool;
use crate::store::{Db, StoreResult};
use crate::time::Timestamp;

/// Entries of an index that one statement looks through at most.
const WINDOW: i64 = 200_000;
/// Candidates of one round; those that are in another state fall out afterwards.
const ROUND: i64 = 1_000;
/// Rounds of one call.
const ROUNDS: usize = 12;

/// Which jobs; `None` means any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub team: Option<TeamId>,
    /// This one alone, if it matches.
    pub job: Option<JobId>,
    pub kind: Option<JobKind>,
    pub status: Option<JobStatus>,
    /// The registered domain of its first address.
    pub site: Option<String>,
    pub since: Option<Timestamp>,
    /// It has a page that failed so.
    pub code: Option<String>,
}

/// Jobs that were found, newest first, and before which to go on; `None`: there are no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub jobs: Vec<JobId>,
    pub next: Option<JobId>,
}

/// Up to `want` jobs that match, from before a job on. There may be fewer while there are more to come.
pub async fn matching(
    db: &Db,
    filter: &Filter,
    before: Option<JobId>,
    want: usize,
    now: Timestamp,
) -> StoreResult<Found> {
    let mut found = Found { jobs: Vec::new(), next: before };
    for _ in 0..ROUNDS {
        let round = (want - found.jobs.len()).min(ROUND as usize) as i64;
        let (candidates, next) = candidates(db, filter, found.next, round).await?;
        found.jobs.extend(still_so(db, filter, &candidates, now).await?);
        found.next = next;
        if found.next.is_none() || found.jobs.len() >= want {
            break;
        }
    }
    Ok(found)
}

/// Adds what narrows the candidates and stands in `job_list`.
fn push_fixed<D: sqlx::Database>(select: &mut sqlx::QueryBuilder<D>, filter: &Filter)
where
    String: for<'a> sqlx::Encode<'a, D> + sqlx::Type<D>,
    i64: for<'a> sqlx::Encode<'a, D> + sqlx::Type<D>,
{
    if let Some(team) = filter.team {
        select.push(" AND team_id = ").push_bind(team.to_string());
    }
    if let Some(kind) = filter.kind {
        select.push(" AND kind = ").push_bind(kind.as_str().to_owned());
    }
    if let Some(since) = filter.since {
        select.push(" AND created_at >= ").push_bind(since.0);
    }
    if let Some(site) = &filter.site {
        select.push(" AND site = ").push_bind(site.clone());
    }
}

/// The next jobs that may match, and before which to go on.
async fn candidates(
    db: &Db,
    filter: &Filter,
    before: Option<JobId>,
    limit: i64,
) -> StoreResult<(Vec<JobId>, Option<JobId>)> {
    let before = before.unwrap_or(JobId(uuid::Uuid::max()));
    if let Some(job) = filter.job {
        return Ok((named(db, filter, job).await?.filter(|job| *job < before).into_iter().collect(), None));
    }
    let is_windowed = filter.code.is_none() && matches!(filter.status, None | Some(JobStatus::Completed));
    let rows: Vec<(JobId,)> = on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new("SELECT ");
        if let Some(code) = &filter.code {
            select.push("DISTINCT job_id FROM page WHERE state = ").push(PageState::Failed.sql());
            select.push(" AND error_code = ").push_bind(code.clone());
            select.push(" AND job_id < ").push_bind(before).push(" ORDER BY job_id DESC LIMIT ").push_bind(limit);
        } else if let Some(status) = filter.status.filter(|_| !is_windowed) {
            // The word itself, so that the index that holds no other is taken; by its limit the inner part stays by itself,
            // or all jobs would be gone through in the order of their ids.
            select.push("id FROM (SELECT id, team_id, kind, created_at, site FROM job WHERE status = ");
            select.push(status.sql());
            if status != JobStatus::Scraping {
                select.push(" AND id < ").push_bind(before).push(" ORDER BY id DESC");
            }
            select.push(" LIMIT ").push_bind(WINDOW).push(") AS newest WHERE id < ").push_bind(before);
            push_fixed(&mut select, filter);
            select.push(" ORDER BY id DESC LIMIT ").push_bind(limit);
        } else {
            select.push("id FROM (SELECT id, team_id, kind, created_at, site FROM job WHERE id < ").push_bind(before);
            select.push(" ORDER BY id DESC LIMIT ").push_bind(WINDOW).push(") AS newest WHERE 1 = 1");
            push_fixed(&mut select, filter);
            select.push(" ORDER BY id DESC LIMIT ").push_bind(limit);
        }
        select.build_query_as().fetch_all(pool).await?
    });
    let is_full = rows.len() as i64 == limit;
    let next = match rows.last() {
        Some(last) if is_full => Some(last.0),
        _ if is_windowed => window_end(db, before).await?,
        _ => None,
    };
    Ok((rows.into_iter().map(|row| row.0).collect(), next))
}

/// The one job that is asked for, unless it has no page that failed as the filter says.
async fn named(db: &Db, filter: &Filter, job: JobId) -> StoreResult<Option<JobId>> {
    const SQL: &str = sql!(
        "SELECT job_id FROM page WHERE job_id = $1 AND state = ",
        PageState::Failed.sql(),
        " AND error_code = $2 LIMIT 1"
    );
    let Some(code) = &filter.code else { return Ok(Some(job)) };
    let found: Option<(JobId,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(job).bind(code).fetch_optional(pool).await?);
    Ok(found.map(|row| row.0))
}

/// The last entry of a window that is full.
async fn window_end(db: &Db, before: JobId) -> StoreResult<Option<JobId>> {
    const SQL: &str = "SELECT id FROM job WHERE id < $1 ORDER BY id DESC LIMIT 1 OFFSET $2";
    let last: Option<(JobId,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(before).bind(WINDOW - 1).fetch_optional(pool).await?);
    Ok(last.map(|row| row.0))
}

/// Those of the candidates that match as a whole and are not gone, newest first.
async fn still_so(db: &Db, filter: &Filter, candidates: &[JobId], now: Timestamp) -> StoreResult<Vec<JobId>> {
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<(JobId,)> = on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new(sql!(
            "SELECT id FROM job WHERE (status = ",
            JobStatus::Scraping.sql(),
            " OR expires_at > "
        ));
        select.push_bind(now).push(")");
        if let Some(status) = filter.status {
            select.push(" AND status = ").push_bind(status.as_str());
        }
        push_fixed(&mut select, filter);
        select.push(" AND id IN (");
        let mut list = select.separated(", ");
        for id in candidates {
            list.push_bind(*id);
        }
        select.push(") ORDER BY id DESC");
        select.build_query_as().persistent(false).fetch_all(pool).await?
    });
    Ok(rows.into_iter().map(|row| row.0).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::testing;
    use crate::store::work::cancel;

    async fn all(db: &Db, filter: &Filter, step: usize) -> Vec<JobId> {
        let (mut jobs, mut next) = (Vec::new(), None);
        for _ in 0..100 {
            let found = matching(db, filter, next, step, db.now()).await.unwrap();
            jobs.extend(found.jobs);
            next = found.next;
            if next.is_none() {
                return jobs;
            }
        }
        panic!("no end");
    }

    #[tokio::test]
    async fn lists_are_narrowed_and_paged_without_gaps() {
        for db in testing::databases().await {
            let (acme, other) = (testing::team(&db, "acme").await, testing::team(&db, "other").await);
            let mut made = Vec::new();
            for n in 0..9 {
                let team = if n % 3 == 0 { other } else { acme };
                let kind = if n % 2 == 0 { JobKind::Batch } else { JobKind::Scrape };
                made.push((testing::job(&db, team, kind, 2, None).await.0, team, kind));
            }
            let mut tx = db.begin().await.unwrap();
            cancel::job(&mut tx, made[4].0, db.now()).await.unwrap();
            tx.commit().await.unwrap();
            made.reverse();
            let of = |f: &dyn Fn(&(JobId, TeamId, JobKind)) -> bool| -> Vec<JobId> {
                made.iter().filter(|job| f(job)).map(|job| job.0).collect()
            };
            for step in [1, 2, 3, 50] {
                assert_eq!(all(&db, &Filter::default(), step).await, of(&|_| true));
                let team = Filter { team: Some(acme), ..Filter::default() };
                assert_eq!(all(&db, &team, step).await, of(&|job| job.1 == acme));
                let kind = Filter { kind: Some(JobKind::Batch), ..team.clone() };
                assert_eq!(all(&db, &kind, step).await, of(&|job| job.1 == acme && job.2 == JobKind::Batch));
                let status = |status| Filter { status: Some(status), ..Filter::default() };
                assert_eq!(all(&db, &status(JobStatus::Cancelled), step).await, [made[4].0]);
                assert_eq!(all(&db, &status(JobStatus::Scraping), step).await.len(), 8);
                assert!(all(&db, &status(JobStatus::Completed), step).await.is_empty());
                let site = |site: &str| Filter { site: Some(site.to_owned()), ..Filter::default() };
                assert_eq!(all(&db, &site("site.test"), step).await.len(), 9);
                assert!(all(&db, &site("other.test"), step).await.is_empty());
                let since = |ms| Filter { since: Some(db.now().plus_ms(ms)), ..Filter::default() };
                assert_eq!(all(&db, &since(-60_000), step).await.len(), 9);
                assert!(all(&db, &since(60_000), step).await.is_empty());
            }
            let code = Filter { code: Some("SCRAPE_TIMEOUT".to_owned()), ..Filter::default() };
            assert!(all(&db, &code, 5).await.is_empty());
            let mut tx = db.begin().await.unwrap();
            const FAIL: &str = "UPDATE page SET state = 'failed', error_code = 'SCRAPE_TIMEOUT', finished_at = 1 \
                WHERE job_id = $1";
            for job in [made[1].0, made[6].0] {
                crate::on_db!(&mut tx, |conn| sqlx::query(FAIL).bind(job).execute(conn).await.unwrap().rows_affected());
            }
            tx.commit().await.unwrap();
            assert_eq!(all(&db, &code, 1).await, [made[1].0, made[6].0]);
            // One job by its id, if all else fits.
            let one = |n: usize| Filter { job: Some(made[n].0), ..Filter::default() };
            assert_eq!(all(&db, &one(3), 5).await, [made[3].0]);
            let team = |team| Filter { team: Some(team), ..one(0) };
            assert_eq!([all(&db, &team(acme), 5).await.len(), all(&db, &team(other), 5).await.len()], [1, 0]);
            let failed = |n| Filter { code: code.code.clone(), ..one(n) };
            assert_eq!([all(&db, &failed(1), 5).await, all(&db, &failed(3), 5).await], [vec![made[1].0], vec![]]);
            let found = matching(&db, &one(3), Some(made[3].0), 5, db.now()).await.unwrap();
            assert_eq!((found.jobs, found.next), (vec![], None));
            // What has ended and expired is not there any more. What runs is.
            let late = matching(&db, &Filter::default(), None, 50, db.now().plus_ms(90_000_000)).await.unwrap();
            assert_eq!(late.jobs, of(&|job| job.0 != made[4].0));
        }
    }
}
