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
/// How long a worker that was started first waits for the tables.
const TABLES: Duration = Duration::from_secs(30);

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
        let are_there = stop.run_until_cancelled(wait_for_tables(&pools.rows)).await.transpose()?;
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

/// The tables come with `weir migrate` or the first `weir serve`; a worker started first waits for them. A database that
/// is newer than this worker is used as it is.
async fn wait_for_tables(db: &Db) -> anyhow::Result<()> {
    let end = clock::deadline(TABLES);
    let mut told = false;
    loop {
        match migrations::shape(db).await {
            Ok(shape) if shape.missing.is_empty() => return shape.accept(),
            Ok(shape) if clock::instant() > end => {
                bail!("the database lacks {}: run `weir migrate` first", shape.missing.join(", "));
            }
            Err(error) if clock::instant() > end => return Err(error).context("cannot read the database's shape"),
            _ => {
                if !told {
                    tracing::info!("waiting for the database's tables (`weir migrate`)");
                    told = true;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
