//! Earlier scrapes of an address, as long as they are kept.

use crate::domain::job::{JobKind, PageState};
use crate::domain::map::site_of;
use crate::ids::JobId;
use crate::on_pool;
use crate::store::work::pages::{Columns, PageRow, row, select_page};
use crate::store::{Db, StoreResult};
use crate::time::Timestamp;

/// Jobs of the site that are looked through, newest first.
const JOBS: i64 = 200;
/// Jobs with more pages than this are passed over: an address is looked for page by page.
const PAGES: i64 = 1_000;
/// Scrapes that are found at most.
const MOST: i64 = 50;

/// Pages of the same team and address as this one that have their document, newest first; `false`: there was more to look
/// through.
pub async fn of_address(db: &Db, page: &PageRow, now: Timestamp) -> StoreResult<(Vec<PageRow>, bool)> {
    const SOME: &str = sql!(
        "SELECT id, total, kind FROM job WHERE team_id = $1 AND site = $2 AND expires_at > $3 AND kind <> ",
        JobKind::Map.sql(),
        " ORDER BY created_at DESC LIMIT $4"
    );
    let Some(site) = site_of(&page.url) else { return Ok((Vec::new(), true)) };
    let jobs: Vec<(JobId, i64, String)> = on_pool!(db, |pool| sqlx::query_as(SOME)
        .bind(page.team_id)
        .bind(site)
        .bind(now)
        .bind(JOBS)
        .fetch_all(pool)
        .await?);
    let looked: Vec<JobId> = jobs.iter().filter(|job| job.1 <= PAGES).map(|job| job.0).collect();
    let is_whole = (jobs.len() as i64) < JOBS && looked.len() == jobs.len();
    if looked.is_empty() {
        return Ok((Vec::new(), is_whole));
    }
    let rows: Vec<Columns> = on_pool!(db, |pool| {
        let mut select = sqlx::QueryBuilder::new(select_page!(
            "WHERE state = ",
            PageState::Done.sql(),
            " AND url = (SELECT url FROM page WHERE id = "
        ));
        select.push_bind(page.id).push(") AND job_id IN (");
        let mut list = select.separated(", ");
        for job in &looked {
            list.push_bind(*job);
        }
        select.push(") ORDER BY finished_at DESC LIMIT ").push_bind(MOST);
        select.build_query_as().persistent(false).fetch_all(pool).await?
    });
    Ok((rows.into_iter().map(row).collect::<StoreResult<_>>()?, is_whole))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::on_db;
    use crate::store::testing;
    use crate::store::work::pages;

    #[tokio::test]
    async fn scrapes_of_an_address_are_found_for_its_team_only() {
        for db in testing::databases().await {
            let (acme, other) = (testing::team(&db, "acme").await, testing::team(&db, "other").await);
            let mut tx_jobs = Vec::new();
            for (n, team) in [acme, acme, other].into_iter().enumerate() {
                let (job, _) = testing::job(&db, team, JobKind::Batch, 2, None).await;
                const DONE: &str = "UPDATE page SET state = 'done', finished_at = $2 WHERE job_id = $1";
                let mut tx = db.begin().await.unwrap();
                on_db!(&mut tx, |conn| {
                    sqlx::query(DONE).bind(job).bind(n as i64).execute(conn).await.unwrap().rows_affected()
                });
                tx.commit().await.unwrap();
                tx_jobs.push(job);
            }
            // Two addresses that look alike where they are shown.
            const PRIVATE: &str = "UPDATE page SET url = 'http://me:secret@site.test/1' WHERE job_id = $1 AND idx = 0";
            let mut tx = db.begin().await.unwrap();
            on_db!(&mut tx, |conn| {
                sqlx::query(PRIVATE).bind(tx_jobs[0]).execute(conn).await.unwrap().rows_affected()
            });
            tx.commit().await.unwrap();
            let of = async |job: JobId, idx: usize| {
                let page = pages::list(&db, job, None, 9).await.unwrap().swap_remove(idx);
                assert_eq!(page.url, "http://site.test/1");
                let (rows, is_whole) = of_address(&db, &page, db.now()).await.unwrap();
                assert!(is_whole);
                rows.iter().map(|row| row.job_id).collect::<Vec<_>>()
            };
            assert_eq!(of(tx_jobs[0], 1).await, [tx_jobs[1], tx_jobs[0]]);
            assert_eq!(of(tx_jobs[0], 0).await, [tx_jobs[0]]);
            assert_eq!(of(tx_jobs[2], 1).await, [tx_jobs[2]]);
        }
    }
}
