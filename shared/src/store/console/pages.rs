//! Pages of a job, from a cursor on, each state by the index that has it in an order; and failures over all jobs.

use crate::domain::job::PageState;
use crate::domain::target::without_user;
use crate::ids::{JobId, PageId, TeamId};
use crate::on_pool;
use crate::store::work::pages::{Columns, PageRow, row, select_page};
use crate::store::{Db, StoreResult};
use crate::time::Timestamp;

/// Pages that one call looks through at most.
const WINDOW: i64 = 20_000;

/// Where a list goes on: after this time and place of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct After {
    /// Failed: of the failure. Waiting: before which it is not taken. Else 0.
    pub at: i64,
    pub idx: i64,
}

/// Before everything.
pub const START: After = After { at: i64::MIN, idx: -1 };

/// Which pages of a job; `None` means any.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    pub state: Option<PageState>,
    /// A part of their address, in letters of either case. A name and a password in an address are not looked at.
    pub part: Option<&'a str>,
}

/// Pages of a job after a place, and where to go on; `None`: there are no more. Failed ones come in the order of their
/// failure, waiting ones in that in which they are taken, the others, and those that are looked for by their address, in the
/// order of the request. There may be fewer than `limit` while there are more to come.
pub async fn list(
    db: &Db,
    job: JobId,
    team: TeamId,
    wanted: Wanted<'_>,
    after: After,
    limit: i64,
) -> StoreResult<(Vec<PageRow>, Option<After>)> {
    let Wanted { state, part } = wanted;
    if part.is_some() {
        return in_order(db, job, wanted, after, limit).await;
    }
    const FAILED: &str = select_page!(
        "WHERE job_id = $1 AND state = ",
        PageState::Failed.sql(),
        " AND (finished_at, idx) > ($2, $3) AND idx >= 0 ORDER BY finished_at, idx LIMIT $4"
    );
    const QUEUED: &str = select_page!(
        "WHERE job_id = $1 AND state = ",
        PageState::Queued.sql(),
        " AND (run_at, idx) > ($2, $3) AND idx >= 0 ORDER BY run_at, idx LIMIT $4"
    );
    const RUNNING: &str = select_page!(
        "WHERE team_id = $2 AND job_id = $1 AND state = ",
        PageState::Running.sql(),
        " AND idx > $3 ORDER BY idx LIMIT $4"
    );
    let rows: Vec<Columns> = match state {
        Some(PageState::Failed) => on_pool!(db, |pool| {
            sqlx::query_as(FAILED).bind(job).bind(after.at).bind(after.idx).bind(limit + 1).fetch_all(pool).await?
        }),
        Some(PageState::Queued) => on_pool!(db, |pool| {
            sqlx::query_as(QUEUED).bind(job).bind(after.at).bind(after.idx).bind(limit + 1).fetch_all(pool).await?
        }),
        Some(PageState::Running) => on_pool!(db, |pool| {
            sqlx::query_as(RUNNING).bind(job).bind(team).bind(after.idx).bind(limit + 1).fetch_all(pool).await?
        }),
        Some(PageState::Done | PageState::Cancelled) | None => {
            return in_order(db, job, wanted, after, limit).await;
        }
    };
    let (rows, is_more) = up_to(limit, rows)?;
    let next = match (rows.last().filter(|_| is_more), state) {
        (Some(last), Some(PageState::Failed)) => {
            Some(After { at: last.finished_at.unwrap_or(Timestamp(0)).0, idx: last.idx })
        }
        (Some(last), Some(PageState::Queued)) => Some(After { at: run_at(db, last.id).await?, idx: last.idx }),
        (Some(last), _) => Some(After { at: 0, idx: last.idx }),
        (None, _) => None,
    };
    Ok((rows, next))
}

/// So many of the rows that were found, and whether there was one more: a full list may be the end.
fn up_to(limit: i64, found: Vec<Columns>) -> StoreResult<(Vec<PageRow>, bool)> {
    let is_more = found.len() as i64 > limit;
    let rows = found.into_iter().take(usize::try_from(limit).unwrap_or(0)).map(row).collect::<StoreResult<_>>()?;
    Ok((rows, is_more))
}

async fn run_at(db: &Db, page: PageId) -> StoreResult<i64> {
    const SQL: &str = "SELECT run_at FROM page WHERE id = $1";
    let found: Option<(i64,)> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(page).fetch_optional(pool).await?);
    Ok(found.map_or(i64::MAX, |row| row.0))
}

/// The pattern of SQL for texts that hold this one.
fn holding(part: &str) -> String {
    let mut pattern = String::from("%");
    for letter in part.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

/// In the order of the request, some thousands at a time.
async fn in_order(
    db: &Db,
    job: JobId,
    wanted: Wanted<'_>,
    after: After,
    limit: i64,
) -> StoreResult<(Vec<PageRow>, Option<After>)> {
    const SQL: &str = select_page!(
        "WHERE id IN (SELECT id FROM (SELECT id, state, idx FROM page WHERE job_id = $1 AND idx > $2 ORDER BY idx LIMIT \
         $5) AS next WHERE $3 IS NULL OR state = $3 ORDER BY idx LIMIT $4) ORDER BY idx"
    );
    // Whether one with an "@" is meant is told below, by what is shown of it: its password is not to be guessed at.
    const OF_ADDRESS: &str = select_page!(
        "WHERE id IN (SELECT id FROM (SELECT id, state, idx, url FROM page WHERE job_id = $1 AND idx > $2 ORDER BY idx \
         LIMIT $5) AS next WHERE ($3 IS NULL OR state = $3) AND (LOWER(url) LIKE LOWER($6) ESCAPE '\\' OR url LIKE '%@%') \
         ORDER BY idx LIMIT $4) ORDER BY idx"
    );
    const LAST: &str = "SELECT idx FROM page WHERE job_id = $1 AND idx > $2 ORDER BY idx LIMIT 1 OFFSET $3";
    let after = after.idx.max(-1);
    let pattern = wanted.part.map(holding);
    let rows: Vec<Columns> = on_pool!(db, |pool| {
        let rows = sqlx::query_as(if pattern.is_some() { OF_ADDRESS } else { SQL })
            .bind(job)
            .bind(after)
            .bind(wanted.state.map(PageState::as_str))
            .bind(limit + 1)
            .bind(WINDOW);
        match &pattern {
            Some(pattern) => rows.bind(pattern).fetch_all(pool).await?,
            None => rows.fetch_all(pool).await?,
        }
    });
    let (mut rows, is_more) = up_to(limit, rows)?;
    let next = match rows.last() {
        Some(last) if is_more => Some(last.idx),
        _ => {
            let end: Option<(i64,)> = on_pool!(db, |pool| {
                sqlx::query_as(LAST).bind(job).bind(after).bind(WINDOW - 1).fetch_optional(pool).await?
            });
            end.map(|row| row.0)
        }
    };
    if let Some(part) = wanted.part.map(str::to_lowercase) {
        let is_told = |page: &PageRow| !page.has_user && !page.url.contains('@');
        rows.retain(|page| is_told(page) || page.url.to_lowercase().contains(&part));
    }
    Ok((rows, next.map(|idx| After { at: 0, idx })))
}

/// A page that failed for good, as the list of failures needs it.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Failure {
    pub id: PageId,
    pub job_id: JobId,
    pub team_id: TeamId,
    pub url: String,
    pub error_code: Option<String>,
    pub error: Option<String>,
    pub finished_at: Timestamp,
}

/// Failures since a time, newest first, from before one on.
pub async fn failures(
    db: &Db,
    team: Option<TeamId>,
    since: Timestamp,
    before: Option<(Timestamp, PageId)>,
    limit: i64,
) -> StoreResult<Vec<Failure>> {
    const COLUMNS: &str = "SELECT id, job_id, team_id, url, error_code, error, finished_at FROM page WHERE state = ";
    let (at, id) = before.unwrap_or((Timestamp(i64::MAX), PageId(uuid::Uuid::max())));
    let mut failures: Vec<Failure> = on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new(COLUMNS);
        select.push(PageState::Failed.sql());
        if let Some(team) = team {
            select.push(" AND team_id = ").push_bind(team);
        }
        select.push(" AND finished_at >= ").push_bind(since).push(" AND (finished_at, id) < (").push_bind(at);
        select.push(", ").push_bind(id).push(") ORDER BY finished_at DESC, id DESC LIMIT ").push_bind(limit);
        select.build_query_as().fetch_all(pool).await?
    });
    for failure in &mut failures {
        failure.url = without_user(&failure.url);
    }
    Ok(failures)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::domain::job::JobKind;
    use crate::on_db;
    use crate::store::testing;

    #[tokio::test]
    async fn pages_of_each_state_are_paged_without_gaps() {
        for db in testing::databases().await {
            let team = testing::team(&db, "acme").await;
            let (job, pages) = testing::job(&db, team, JobKind::Batch, 10, None).await;
            let mut tx = db.begin().await.unwrap();
            for (n, page) in pages.iter().enumerate().filter(|(n, _)| n % 2 == 0) {
                const FAIL: &str = "UPDATE page SET state = 'failed', finished_at = $2 WHERE id = $1";
                let at = 100 - n as i64;
                on_db!(&mut tx, |conn| {
                    sqlx::query(FAIL).bind(*page).bind(at).execute(conn).await.unwrap().rows_affected()
                });
            }
            tx.commit().await.unwrap();
            for (state, expected) in [
                (None, vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
                (Some(PageState::Failed), vec![8, 6, 4, 2, 0]),
                (Some(PageState::Queued), vec![1, 3, 5, 7, 9]),
                (Some(PageState::Running), vec![]),
                (Some(PageState::Done), vec![]),
            ] {
                for step in [1, 2, 3, 50] {
                    let (mut seen, mut after) = (Vec::new(), Some(START));
                    while let Some(from) = after {
                        let wanted = Wanted { state, part: None };
                        let (rows, next) = list(&db, job, team, wanted, from, step).await.unwrap();
                        seen.extend(rows.iter().map(|row| row.idx));
                        assert!(next.is_none() || next > Some(from) || state.is_none());
                        after = next;
                    }
                    assert_eq!(seen, expected, "{state:?} {step}");
                }
            }
            for state in [None, Some(PageState::Failed), Some(PageState::Queued)] {
                let wanted = Wanted { state, part: None };
                let most = if state.is_some() { 5 } else { 10 };
                let (rows, next) = list(&db, job, team, wanted, START, most).await.unwrap();
                assert_eq!((rows.len() as i64, next), (most, None), "a list that ends with its piece says so");
            }
            for (n, url) in [(1, "https://shop.test/Kettles/50%_off"), (2, "https://ada:kettle@shop.test/cups")] {
                let mut tx = db.begin().await.unwrap();
                on_db!(&mut tx, |conn| {
                    let rename = sqlx::query("UPDATE page SET url = $2 WHERE id = $1").bind(pages[n]).bind(url);
                    rename.execute(conn).await.unwrap().rows_affected()
                });
                tx.commit().await.unwrap();
            }
            for (part, state, expected) in [
                ("kettle", None, vec![1]),
                ("KETTLES/50%_OFF", None, vec![1]),
                ("kettles", Some(PageState::Queued), vec![1]),
                ("kettles", Some(PageState::Failed), vec![]),
                ("shop.test", None, vec![1, 2]),
                ("shop_test", None, vec![]),
                ("ada", None, vec![]),
                ("", Some(PageState::Failed), vec![0, 2, 4, 6, 8]),
            ] {
                for step in [1, 3, 50] {
                    let (mut seen, mut after) = (Vec::new(), Some(START));
                    while let Some(from) = after {
                        let wanted = Wanted { state, part: Some(part) };
                        let (rows, next) = list(&db, job, team, wanted, from, step).await.unwrap();
                        seen.extend(rows.iter().map(|row| row.idx));
                        assert!(next.is_none_or(|next| next.idx > from.idx), "{part}");
                        after = next;
                    }
                    assert_eq!(seen, expected, "{part} {state:?} {step}");
                }
            }
            let newest = failures(&db, Some(team), Timestamp(0), None, 2).await.unwrap();
            assert_eq!(newest.iter().map(|f| f.finished_at.0).collect::<Vec<_>>(), [100, 98]);
            let last = newest.last().unwrap();
            let rest = failures(&db, None, Timestamp(93), Some((last.finished_at, last.id)), 9).await.unwrap();
            assert_eq!(rest.iter().map(|f| f.finished_at.0).collect::<Vec<_>>(), [96, 94]);
            assert!(failures(&db, Some(TeamId::new()), Timestamp(0), None, 2).await.unwrap().is_empty());
        }
    }
}
