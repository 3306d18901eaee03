//! A worker's connections to the database.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use weir_shared::config::DatabaseUrl;
use weir_shared::store::{Db, PoolUse, nodes};

/// Connections for rows, and for wake-ups.
const ROWS: u32 = 8;
const WAKEUPS: u32 = 6;
/// Connections for the ends of pages of teams whose lock somebody holds, at most.
const LATE_ENDS: u32 = 4;
/// How long a worker that was started first waits for the tables.
const TABLES: Duration = Duration::from_secs(30);

/// One pool for each use. On SQLite they are one: the queue library stands in line with our own writers.
pub(super) struct Pools {
    pub rows: Db,
    pub wakeups: Db,
    /// Ends of pages have a connection of their own: what they need is warm in one server process, not cold in eight.
    pub ends: Db,
    /// For teams whose lock somebody holds.
    pub late_ends: Db,
}

impl Pools {
    /// Opens them, and waits until the tables are there.
    pub async fn connect(url: &DatabaseUrl) -> anyhow::Result<Self> {
        let rows = Db::connect(url, ROWS, PoolUse::Rows).await?;
        let pools = match &rows {
            Db::Sqlite(_) => Self { wakeups: rows.clone(), ends: rows.clone(), late_ends: rows.clone(), rows },
            Db::Postgres(_) => Self {
                wakeups: Db::connect(url, WAKEUPS, PoolUse::Wakeups).await?,
                ends: Db::connect(url, 1, PoolUse::Ends).await?,
                late_ends: Db::connect(url, LATE_ENDS, PoolUse::LateEnds).await?,
                rows,
            },
        };
        wait_for_tables(&pools.rows).await?;
        Ok(pools)
    }

    /// Closes them, the one for rows last.
    pub async fn close(self) {
        self.wakeups.close().await;
        self.ends.close().await;
        self.late_ends.close().await;
        self.rows.close().await;
    }
}

/// The tables come with `weir migrate` or the first `weir serve`; a worker started first waits for them.
async fn wait_for_tables(db: &Db) -> anyhow::Result<()> {
    let end = Instant::now() + TABLES;
    let mut told = false;
    loop {
        match nodes::list(db).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > end => {
                return Err(error).context("the database has no tables yet: run `weir migrate` first");
            }
            Err(_) => {
                if !told {
                    tracing::info!("waiting for the database's tables (`weir migrate`)");
                    told = true;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
