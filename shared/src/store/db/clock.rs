//! One clock for every process: the database's. Machines whose clocks differ agree on heartbeats, leases and expiry.

use std::time::Duration;

use super::error::{StoreError, StoreResult};
use super::handle::{Db, PostgresDb};
use crate::time::Timestamp;
use crate::{clock, lasting};

/// Between two looks at the database's clock.
const LOOK: Duration = Duration::from_secs(5);
/// An answer that took longer says too little, milliseconds.
const SLOWEST_ANSWER_MS: i64 = 1_000;
/// Differences below this are left alone, milliseconds.
const LEAST_STEP_MS: i64 = 50;

/// What the database's machine takes for the time now.
///
/// # Errors
/// When the database does not answer.
pub async fn database_time(db: &Db) -> StoreResult<Timestamp> {
    // The two databases ask for the time in different statements.
    let now: (i64,) = match db {
        Db::Sqlite(db) => {
            let now = "SELECT CAST((julianday('now') - 2440587.5) * 86400000.0 AS BIGINT)";
            sqlx::query_as(now).fetch_one(&db.pool).await?
        }
        Db::Postgres(PostgresDb { pool, .. }) => {
            sqlx::query_as("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)")
                .fetch_one(pool)
                .await?
        }
    };
    Ok(Timestamp(now.0))
}

/// Brings [`crate::clock`] into step with the database. A file's processes share a machine and its clock.
///
/// # Errors
/// When the database does not answer.
pub async fn keep_step(db: &Db) -> StoreResult<()> {
    if matches!(db, Db::Sqlite(_)) {
        return Ok(());
    }
    let (asked, known) = (clock::since_boot(), clock::of_database());
    let theirs = database_time(db).await?;
    let took = clock::since_boot().saturating_sub(asked);
    let (half_ms, took_ms) = (took.as_millis() as i64 / 2, took.as_millis() as i64);
    let ahead = theirs.ms_since(known.plus_ms(half_ms));
    if took_ms > SLOWEST_ANSWER_MS {
        return Ok(());
    }
    if ahead.abs() >= LEAST_STEP_MS.max(took_ms) {
        tracing::info!(ms = ahead, "the database's clock is ahead of the one in use by so much; its time is used");
    } else if clock::is_of_database() {
        return Ok(());
    }
    clock::follow_database(theirs, asked + took / 2);
    Ok(())
}

/// Keeps step until the database is closed.
pub fn follow(db: &Db) {
    if matches!(db, Db::Sqlite(_)) {
        return;
    }
    let db = db.clone();
    tokio::spawn(lasting::again("clock of the database", move || keep_in_step(db.clone())));
}

async fn keep_in_step(db: Db) {
    loop {
        tokio::time::sleep(LOOK).await;
        match keep_step(&db).await {
            Ok(()) => {}
            Err(StoreError::Unavailable(sqlx::Error::PoolClosed)) => return,
            Err(error) => tracing::debug!(%error, "the database does not tell its time"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::testing;

    #[tokio::test]
    async fn both_databases_tell_the_time_and_are_followed() {
        for db in testing::databases().await {
            let difference = database_time(&db).await.unwrap().0 - clock::of_machine().0;
            assert!(difference.abs() < 5_000, "{difference}");
            keep_step(&db).await.unwrap();
            assert!((clock::of_database().0 - clock::of_machine().0).abs() < 5_000);
            if matches!(db, Db::Postgres(_)) {
                // Whatever was taken for its time, the database is asked again.
                clock::follow_database(Timestamp(0), clock::since_boot());
                assert!(clock::of_database().0 < 60_000, "this machine's wall clock is not asked");
                keep_step(&db).await.unwrap();
            }
            assert!((clock::of_database().0 - clock::of_machine().0).abs() < 5_000);
        }
    }
}
