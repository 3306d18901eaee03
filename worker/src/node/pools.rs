//! A worker's connections to the database.

use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio_util::sync::CancellationToken;
use weir_shared::clock;
use weir_shared::config::DatabaseUrl;
use weir_shared::store::db::migrations;
use weir_shared::store::{Db, PoolUse};

/// Connections for rows, and for wake-ups.
const ROWS: u32 = 8;
const WAKEUPS: u32 = 6;
/// Connections for the ends of pages: of those that somebody waits for, and of groups.
const ENDS: u32 = 2;
/// Connections for the ends of pages of teams whose lock somebody holds, at most.
const LATE_ENDS: u32 = 4;
/// How long a worker that was started first waits for the tables, where nobody seems to make them.
const TABLES: Duration = Duration::from_secs(30);
/// Between two looks for them; and after how many of these it looks whether somebody makes them.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: u32 = 10;

/// One pool for each use. On SQLite, which has one writer, they are one but for the queue library's.
pub(super) struct Pools {
    pub rows: Db,
    pub wakeups: Db,
    /// Ends of pages have connections of their own: what they need is warm in two server processes, not cold in eight.
    pub ends: Db,
    /// For teams whose lock somebody holds.
    pub late_ends: Db,
}

impl Pools {
    /// Opens them, and waits until the server and its tables are there. `None`: `stop` was cancelled meanwhile.
    pub async fn connect(url: &DatabaseUrl, stop: &CancellationToken) -> anyhow::Result<Option<Self>> {
        let Some(rows) = Db::connect_patiently(url, ROWS, PoolUse::Rows, stop).await? else { return Ok(None) };
        let pools = match &rows {
            Db::Sqlite(_) => {
                let wakeups = Db::connect(url, 1, PoolUse::Wakeups).await?;
                Self { wakeups, ends: rows.clone(), late_ends: rows.clone(), rows }
            }
            Db::Postgres(_) => {
                let (wakeups, ends, late_ends) = tokio::try_join!(
                    Db::connect(url, WAKEUPS, PoolUse::Wakeups),
                    Db::connect(url, ENDS, PoolUse::Ends),
                    Db::connect(url, LATE_ENDS, PoolUse::LateEnds),
                )?;
                Self { rows, wakeups, ends, late_ends }
            }
        };
        let are_there = stop.run_until_cancelled(wait_for_tables(&pools.rows, TABLES)).await.transpose()?;
        Ok(are_there.map(|()| pools))
    }

    /// Closes them, the one for rows last.
    pub async fn close(self) {
        self.wakeups.close().await;
        self.ends.close().await;
        self.late_ends.close().await;
        self.rows.close().await;
    }
}

/// The tables come with `weir migrate` or the first `weir serve`; a worker started first waits for them: for as long as
/// somebody is at that, who may have to wait for minutes for others ([`migrations`]), and `patience` beyond it. A database that
/// is newer than this worker is used as it is.
async fn wait_for_tables(db: &Db, patience: Duration) -> anyhow::Result<()> {
    let mut end = clock::deadline(patience);
    let mut is_under_way = false;
    for look in 0_u32.. {
        let shape = migrations::shape(db).await;
        if let Ok(shape) = &shape
            && shape.missing.is_empty()
        {
            return shape.accept();
        }
        if look == 0 {
            tracing::info!("waiting for the database's tables (`weir migrate`)");
        }
        if look.is_multiple_of(LOOKS) && migrations::is_under_way(db).await.unwrap_or(false) {
            if !is_under_way {
                tracing::info!(
                    "somebody makes the database's tables, or waits to do so; the worker waits for the end of that"
                );
            }
            (end, is_under_way) = (clock::deadline(patience), true);
        }
        if clock::instant() > end {
            let missing = shape.context("cannot read the database's shape")?.missing.join(", ");
            bail!("the database lacks {missing}, and nobody is at it: run `weir migrate` first");
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use weir_shared::random;

    use super::*;

    #[tokio::test]
    async fn a_worker_whose_tables_nobody_makes_says_what_is_missing() {
        let folder = std::env::temp_dir().join(format!("weir-tables-{}", random::hex::<6>()));
        let url = DatabaseUrl::Sqlite(folder.join("weir.db"));
        let db = Db::connect(&url, 1, PoolUse::Rows).await.unwrap();
        let error = wait_for_tables(&db, Duration::ZERO).await.unwrap_err().to_string();
        assert!(error.contains("0001_core") && error.contains("run `weir migrate`"), "{error}");
        // Whoever has the file's lock may be about to make them.
        let other = Db::connect(&url, 1, PoolUse::Rows).await.unwrap();
        let held = other.begin().await.unwrap();
        let made = async {
            assert!(migrations::is_under_way(&db).await.unwrap());
            drop(held);
            weir_shared::store::migrate(&other).await.unwrap();
        };
        let (waited, ()) = tokio::join!(wait_for_tables(&db, TABLES), made);
        waited.unwrap();
        db.close().await;
        other.close().await;
        std::fs::remove_dir_all(folder).unwrap();
    }
}
