//! A job of one page that somebody waits for: written with its page and its wake-up in one go.

use sqlx::Row as _;

use crate::domain::activity::Endpoint;
use crate::domain::api_version::ApiVersion;
use crate::ids::PageId;
use crate::queue::{PageWakeup, Turn, insert_wakeup};
use crate::store::db::signals::Signal;
use crate::store::work::jobs::{NewJob, insert_job};
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
    (wakeup $sqlite_or_postgres:ident) => {
        insert_wakeup!($sqlite_or_postgres "$22" "$23" "$24" "$25" "$26")
    };
    ($scrape:ident, $not_before:ident, $sqlite_or_postgres:ident, $conn:expr) => {{
        let job = &$scrape.job;
        let wakeup = PageWakeup::new(job.team, $scrape.page, $not_before)?;
        scrape_values!(insert_scrape!($sqlite_or_postgres), $scrape, job)
            .bind(wakeup.id)
            .bind(wakeup.queue)
            .bind(wakeup.payload)
            .bind(wakeup.attempts)
            .bind(wakeup.not_before)
            .fetch_all($conn)
            .await?
            .last()
            .ok_or(sqlx::Error::RowNotFound)?
            .try_get::<Turn, _>(0)?
    }};
    (sqlite) => {
        sql!(insert_job!(), "; ", insert_scrape!(page), "; ", insert_scrape!(shown), "; ", insert_scrape!(wakeup sqlite))
    };
    (postgres) => {
        sql!(
            "WITH new_job AS (",
            insert_job!(),
            "), new_page AS (",
            insert_scrape!(page),
            "), new_wakeup AS (",
            insert_scrape!(wakeup postgres),
            ") ",
            insert_scrape!(shown),
            " RETURNING (SELECT turn FROM new_wakeup)"
        )
    };
}

/// Writes the job with its page, what the team sees of it and its wake-up, in the first turn from `not_before` on that its
/// team may have. Returns the turn.
pub async fn insert_scrape(tx: &mut Tx, scrape: &NewScrape<'_>, not_before: Turn) -> StoreResult<Turn> {
    tx.tell(Signal::Scrape);
    Ok(match tx {
        Tx::Sqlite(tx) => insert_scrape!(scrape, not_before, sqlite, &mut **tx),
        Tx::Postgres(tx) => insert_scrape!(scrape, not_before, postgres, &mut **tx),
    })
}

/// The same as a transaction of its own. All of the answer is waited for: on Postgres the row comes before the commit.
pub async fn insert_scrape_alone(db: &Db, scrape: &NewScrape<'_>, not_before: Turn) -> StoreResult<Turn> {
    if let Db::Postgres(PostgresDb { pool, .. }) = db {
        return Ok(insert_scrape!(scrape, not_before, postgres, pool));
    }
    let mut tx = db.begin_relaxed().await?;
    let turn = insert_scrape(&mut tx, scrape, not_before).await?;
    tx.commit().await?;
    Ok(turn)
}
