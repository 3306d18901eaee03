//! Page rows as they are written, and a page as the worker has it that claimed it.

use sqlx::{Postgres, Transaction};

use crate::domain::job::PageState;
use crate::ids::{JobId, PageId, TeamId, WorkerId};
use crate::store::db::sql::column;
use crate::store::db::writer::SqliteTx;
use crate::store::{StoreResult, Tx};
use crate::time::Timestamp;

/// Rows in one INSERT on Postgres, which is a way to the server and back.
const ROWS_AT_ONCE: usize = 1_000;
/// Rows in one INSERT on SQLite. To read the text of a statement takes longer than to write its rows, so it is kept
/// prepared, which one of a size that comes again and again can be.
const KEPT_ROWS: usize = 100;

/// Place of the page row that stands for reading the sitemaps: it is claimed, fenced and rescued like a page, and never
/// shown. The start page is number 0.
pub const SITEMAP_IDX: i64 = -1;

/// A page that this worker may work on now, fenced by `epoch`.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Claimed {
    pub id: PageId,
    pub job_id: JobId,
    pub team_id: TeamId,
    pub idx: i64,
    pub url: String,
    /// Links from the start page of a crawl.
    pub depth: i64,
    pub epoch: i64,
    /// Claims so far, this one included.
    pub claims: i64,
    /// Own failed tries before this one.
    pub tries: i64,
    pub queued_at: Timestamp,
    pub started_at: Timestamp,
    /// The worker that has it.
    pub owner: Option<WorkerId>,
    /// A concurrency limit made it wait.
    #[sqlx(default)]
    pub limited: bool,
    /// A host rests for its team: perhaps the one that it would ask.
    #[sqlx(default)]
    pub may_rest: bool,
    /// It came by direct dispatch: its worker tells whoever waits for it ([`crate::worker_api::direct`]).
    #[sqlx(default)]
    pub dispatched: bool,
}

/// The beginning of every statement that writes page rows, with further columns if there are any.
macro_rules! insert_page {
    ($($more:expr)?) => {
        sql!("INSERT INTO page (id, job_id, team_id, idx, url, depth, state, run_at, queued_at" $(, $more)?, ") ")
    };
}
pub(in crate::store) use insert_page;

/// A page row to be written, queued.
pub(in crate::store) struct NewPage<'a> {
    pub id: PageId,
    pub idx: i64,
    pub url: &'a str,
    pub depth: i64,
}

/// Inserts page rows; the job's counts are the caller's to change.
pub(in crate::store) async fn insert(
    tx: &mut Tx,
    job: JobId,
    team: TeamId,
    pages: &[NewPage<'_>],
    now: Timestamp,
) -> StoreResult<()> {
    let pages: Vec<(JobId, &NewPage<'_>)> = pages.iter().map(|page| (job, page)).collect();
    insert_all(tx, team, &pages, now).await
}

/// The same for several jobs of a team.
async fn insert_all(tx: &mut Tx, team: TeamId, pages: &[(JobId, &NewPage<'_>)], now: Timestamp) -> StoreResult<()> {
    match tx {
        Tx::Postgres(tx) => {
            for chunk in pages.chunks(ROWS_AT_ONCE) {
                insert_on_postgres(tx, team, chunk, now).await?;
            }
        }
        Tx::Sqlite(tx) => {
            for chunk in pages.chunks(KEPT_ROWS) {
                insert_on_sqlite(tx, team, chunk, now).await?;
            }
        }
    }
    Ok(())
}

async fn insert_on_postgres(
    tx: &mut Transaction<'static, Postgres>,
    team: TeamId,
    pages: &[(JobId, &NewPage<'_>)],
    now: Timestamp,
) -> StoreResult<()> {
    const SQL: &str = sql!(
        insert_page!(),
        "SELECT id, job_id, $1, idx, url, depth, ",
        PageState::Queued.sql(),
        ", $2, $2 FROM UNNEST($3, $4, $5, $6, $7) AS given (id, job_id, idx, url, depth)"
    );
    let insert = sqlx::query(SQL)
        .bind(team)
        .bind(now)
        .bind(column(pages, |(_, page)| page.id))
        .bind(column(pages, |(job, _)| *job))
        .bind(column(pages, |(_, page)| page.idx))
        .bind(column(pages, |(_, page)| page.url))
        .bind(column(pages, |(_, page)| page.depth));
    insert.execute(&mut **tx).await?;
    Ok(())
}

async fn insert_on_sqlite(
    tx: &mut SqliteTx,
    team: TeamId,
    pages: &[(JobId, &NewPage<'_>)],
    now: Timestamp,
) -> StoreResult<()> {
    let mut insert = sqlx::QueryBuilder::new(insert_page!());
    insert.push_values(pages, |mut values, (job, page)| {
        values
            .push_bind(page.id)
            .push_bind(*job)
            .push_bind(team)
            .push_bind(page.idx)
            .push_bind(page.url)
            .push_bind(page.depth)
            .push(PageState::Queued.sql())
            .push_bind(now)
            .push_bind(now);
    });
    insert.build().persistent(matches!(pages.len(), 1 | KEPT_ROWS)).execute(&mut **tx).await?;
    Ok(())
}

/// Inserts the pages of a job, queued. Returns their ids in the order of `urls`.
pub async fn insert_many(
    tx: &mut Tx,
    job: JobId,
    team: TeamId,
    first_idx: i64,
    urls: &[String],
    now: Timestamp,
) -> StoreResult<Vec<PageId>> {
    let pages: Vec<NewPage<'_>> =
        (first_idx..).zip(urls).map(|(idx, url)| NewPage { id: PageId::new(), idx, url, depth: 0 }).collect();
    insert(tx, job, team, &pages, now).await?;
    Ok(pages.into_iter().map(|page| page.id).collect())
}

/// Inserts the pages of several jobs of a team, queued.
pub async fn insert_of_jobs(tx: &mut Tx, team: TeamId, jobs: &[(JobId, &[String])], now: Timestamp) -> StoreResult<()> {
    let mut all: Vec<(JobId, NewPage<'_>)> = Vec::new();
    for (job, urls) in jobs {
        all.extend((0..).zip(*urls).map(|(idx, url)| (*job, NewPage { id: PageId::new(), idx, url, depth: 0 })));
    }
    let pages: Vec<(JobId, &NewPage<'_>)> = all.iter().map(|(job, page)| (*job, page)).collect();
    insert_all(tx, team, &pages, now).await
}
