//! The rows of a frontier, many in one statement.

use sqlx::{Postgres, Transaction};

use crate::domain::crawl::{AddressMove, AddressState};
use crate::ids::{JobId, PageId};
use crate::store::db::sql::column;
use crate::store::db::writer::SqliteTx;
use crate::store::{StoreResult, Tx};

/// An address to be entered.
pub(super) struct NewUrl<'a> {
    pub key: &'a str,
    /// The page that it is taken in as.
    pub page: Option<PageId>,
    /// The address itself, where no page has it.
    pub url: Option<&'a str>,
    pub depth: i64,
    pub seq: i64,
}

const ENTER: &str = "INSERT INTO crawl_url (job_id, key, state, page_id, url, depth, seq) ";
const IF_NEW: &str = " ON CONFLICT (job_id, key) DO NOTHING RETURNING page_id";

/// Enters those that are not there yet. Returns one for each that is new, in no order: its page.
pub(super) async fn enter(
    tx: &mut Tx,
    job: JobId,
    state: AddressState,
    urls: &[NewUrl<'_>],
) -> StoreResult<Vec<Option<PageId>>> {
    let new: Vec<(Option<PageId>,)> = match tx {
        Tx::Postgres(tx) => {
            const SQL: &str = sql!(
                ENTER,
                "SELECT $1, key, $2, page_id, url, depth, seq FROM UNNEST($3, $4, $5, $6, $7) \
                 AS given (key, page_id, url, depth, seq)",
                IF_NEW
            );
            sqlx::query_as(SQL)
                .bind(job)
                .bind(state.as_str())
                .bind(column(urls, |url| url.key))
                .bind(column(urls, |url| url.page))
                .bind(column(urls, |url| url.url))
                .bind(column(urls, |url| url.depth))
                .bind(column(urls, |url| url.seq))
                .fetch_all(&mut **tx)
                .await?
        }
        Tx::Sqlite(tx) => {
            let mut insert = sqlx::QueryBuilder::new(ENTER);
            insert.push_values(urls, |mut values, url| {
                // Each value that is bound is one more to read.
                values.push_bind(job).push_bind(url.key).push(state.sql());
                match url.page {
                    Some(page) => values.push_bind(page),
                    None => values.push("NULL"),
                };
                match url.url {
                    Some(url) => values.push_bind(url),
                    None => values.push("NULL"),
                };
                values.push_bind(url.depth).push_bind(url.seq);
            });
            insert.push(IF_NEW);
            insert.build_query_as().persistent(urls.len() == 1).fetch_all(&mut **tx).await?
        }
    };
    Ok(new.into_iter().map(|row| row.0).collect())
}

/// What becomes of addresses that have waited, of the rows that `admitted` has for them, but for the job.
const ADMIT: &str = sql!(
    "UPDATE crawl_url SET state = ",
    AddressMove::Admit.to().sql(),
    ", page_id = admitted.page_id, url = NULL FROM admitted WHERE crawl_url.key = admitted.key AND crawl_url.job_id = "
);

/// Gives addresses that wait these pages.
pub(super) async fn admit(tx: &mut Tx, job: JobId, admitted: &[(&str, PageId)]) -> StoreResult<()> {
    match tx {
        Tx::Postgres(tx) => admit_on_postgres(tx, job, admitted).await,
        Tx::Sqlite(tx) => admit_on_sqlite(tx, job, admitted).await,
    }
}

/// Planned anew each time, because a plan that was made while the table was small would read all of it later.
async fn admit_on_postgres(
    tx: &mut Transaction<'static, Postgres>,
    job: JobId,
    admitted: &[(&str, PageId)],
) -> StoreResult<()> {
    const SQL: &str = sql!("WITH admitted AS (SELECT * FROM UNNEST($2, $3) AS admitted (key, page_id)) ", ADMIT, "$1");
    let update =
        sqlx::query(SQL).bind(job).bind(column(admitted, |(key, _)| *key)).bind(column(admitted, |(_, page)| *page));
    update.persistent(false).execute(&mut **tx).await?;
    Ok(())
}

async fn admit_on_sqlite(tx: &mut SqliteTx, job: JobId, admitted: &[(&str, PageId)]) -> StoreResult<()> {
    let mut update = sqlx::QueryBuilder::new("WITH admitted (key, page_id) AS (");
    update.push_values(admitted, |mut values, (key, page)| {
        values.push_bind(*key).push_bind(*page);
    });
    update.push(") ").push(ADMIT).push_bind(job);
    update.build().persistent(admitted.len() == 1).execute(&mut **tx).await?;
    Ok(())
}
