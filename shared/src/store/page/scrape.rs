//! A job of one page that somebody waits for: written with its page and its wake-up in one go.

use crate::domain::activity::Endpoint;
use crate::domain::api_version::ApiVersion;
use crate::ids::PageId;
use crate::queue::{PageWakeup, insert_wakeup};
use crate::store::jobs::{NewJob, insert_job};
use crate::store::signals::Signal;
use crate::store::{Db, PostgresDb, StoreResult, Tx};

use super::rows::insert_page;

/// A job of one page that somebody waits for.
pub struct NewScrape<'a> {
    pub job: NewJob<'a>,
    pub page: PageId,
    pub url: &'a str,
    pub endpoint: Endpoint,
    pub version: ApiVersion,
}

/// What a scrape's statements write of its page and into the list of what the team asked for: `$1` to `$16` are those of
/// the job, `$17` to `$21` its own.
macro_rules! scrape_values {
    (page $state:ident) => {
        sql!("$17, $1, $2, 0, $18, 0, ", $crate::domain::job::PageState::$state.sql(), ", $12, $12")
    };
    (into_shown) => {
        "INSERT INTO activity (team_id, created_at, id, endpoint, target, api_version) "
    };
    (shown) => {
        "$2, $12, $17, $19, $20, $21"
    };
    ($sql:expr, $scrape:ident, $job:ident) => {
        insert_job!($sql, $job)
            .bind($scrape.page)
            .bind($scrape.url)
            .bind($scrape.endpoint.as_str())
            .bind(Some($job.target).filter(|target| !target.is_empty()))
            .bind($scrape.version.as_str())
    };
}
pub(super) use scrape_values;

/// The statement that writes job, page, what the team sees of it and the wake-up, and its values.
macro_rules! insert_scrape {
    (page) => {
        sql!(insert_page!(), "VALUES (", scrape_values!(page Queued), ")")
    };
    (shown) => {
        sql!(scrape_values!(into_shown), "VALUES (", scrape_values!(shown), ")")
    };
    ($scrape:ident, $sqlite_or_postgres:ident, $conn:expr) => {{
        let job = &$scrape.job;
        let wakeup = PageWakeup::new(job.team, $scrape.page)?;
        scrape_values!(insert_scrape!($sqlite_or_postgres), $scrape, job)
            .bind(wakeup.id)
            .bind(wakeup.queue)
            .bind(wakeup.payload)
            .bind(wakeup.attempts)
            .execute($conn)
            .await?;
    }};
    (sqlite) => {
        sql!(insert_job!(), "; ", insert_scrape!(page), "; ", insert_scrape!(shown), "; ", insert_wakeup!(sqlite))
    };
    (postgres) => {
        sql!(
            "WITH new_job AS (",
            insert_job!(),
            "), new_page AS (",
            insert_scrape!(page),
            "), new_wakeup AS (",
            insert_wakeup!(postgres),
            ") ",
            insert_scrape!(shown)
        )
    };
}

/// Writes the job with its page, what the team sees of it and its wake-up.
pub async fn insert_scrape(tx: &mut Tx, scrape: &NewScrape<'_>) -> StoreResult<()> {
    tx.tell(Signal::Scrape);
    match tx {
        Tx::Sqlite(tx) => insert_scrape!(scrape, sqlite, &mut **tx),
        Tx::Postgres(tx) => insert_scrape!(scrape, postgres, &mut **tx),
    }
    Ok(())
}

/// The same as a transaction of its own.
pub async fn insert_scrape_alone(db: &Db, scrape: &NewScrape<'_>) -> StoreResult<()> {
    if let Db::Postgres(PostgresDb { pool, .. }) = db {
        insert_scrape!(scrape, postgres, pool);
        return Ok(());
    }
    let mut tx = db.begin_relaxed().await?;
    insert_scrape(&mut tx, scrape).await?;
    tx.commit().await
}
