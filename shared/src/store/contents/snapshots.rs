//! What pages looked like when a team last tracked their changes (wire 3.4). Written with the end of the page, in its
//! transaction, so that a page that is worked on twice is never compared with itself.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::APART_MS;
use crate::domain::monitor::MonitorStatus;
use crate::ids::{MonitorId, TeamId};
use crate::store::accounts::team_lock;
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// Bytes kept for one team; past that the oldest go.
const TEAM_BYTES: i64 = 256 << 20;
/// How long a page is remembered that is not tracked again, milliseconds: 90 days. Those of monitors that look more seldom
/// stay until they look, see [`crate::store::monitors::removal::forget`].
pub const KEPT_MS: i64 = 90 * 86_400_000;
/// A snapshot may unpack to this many bytes.
const UNPACKED: usize = 16 << 20;
/// Rows removed at once.
const STEP: i64 = 200;

/// A page as it was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Snapshot {
    /// The target said that the page is gone.
    pub is_gone: bool,
    pub markdown: String,
    /// What a language model read out of it, if that was asked for.
    pub data: Option<Value>,
    /// By what it was read: a digest of schema and prompt.
    pub data_by: Option<String>,
    /// The stored content that the text was made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A snapshot ready to be kept.
#[derive(Debug, Clone)]
pub struct Packed {
    /// What the page is found by: 64 characters.
    pub key: String,
    pub scraped_at: Timestamp,
    /// The monitor that it goes with.
    monitor: Option<MonitorId>,
    body: Vec<u8>,
}

impl Packed {
    /// Packs a snapshot. Computes.
    pub fn new(key: String, scraped_at: Timestamp, snapshot: &Snapshot) -> std::io::Result<Self> {
        let json = serde_json::to_vec(snapshot).map_err(std::io::Error::other)?;
        Ok(Self { key, scraped_at, monitor: None, body: zstd::bulk::compress(&json, 3)? })
    }

    /// The same for a page that a monitor watches: it goes when the monitor is deleted.
    pub fn of_monitor(self, monitor: Option<MonitorId>) -> Self {
        Self { monitor, ..self }
    }
}

/// The page as it last was, and when.
pub async fn get(db: &Db, team: TeamId, key: &str) -> StoreResult<Option<(Timestamp, Snapshot)>> {
    const SQL: &str = "SELECT scraped_at, body FROM page_snapshot WHERE team_id = $1 AND key = $2";
    let found: Option<(Timestamp, Vec<u8>)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(key).fetch_optional(pool).await?);
    let Some((at, body)) = found else { return Ok(None) };
    let json = weir_packing::decompress(&body, UNPACKED).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(Some((at, serde_json::from_slice(&json)?)))
}

/// Keeps a snapshot; an older one of the page goes, a newer one stays, unless it is of a clock that was ahead. That of a
/// page whose monitor was deleted is not kept: nobody would remove it. Whether the team has too many by then, [`weigh`]
/// sees: to add them up for each page would take longer the more there are.
pub async fn put(tx: &mut Tx, team: TeamId, packed: &Packed, now: Timestamp) -> StoreResult<()> {
    const PUT: &str = sql!(
        "INSERT INTO page_snapshot (team_id, key, scraped_at, size, body, monitor_id) \
        SELECT $1, $2, $3, $4, $5, $6 WHERE $6 IS NULL OR EXISTS (SELECT 1 FROM monitor WHERE id = $6 AND status <> ",
        MonitorStatus::Deleted.sql(),
        ") ON CONFLICT (team_id, key) DO UPDATE SET scraped_at = excluded.scraped_at, size = excluded.size, \
        body = excluded.body WHERE page_snapshot.scraped_at <= excluded.scraped_at \
        OR page_snapshot.scraped_at > $7"
    );
    on_db!(tx, |conn| {
        sqlx::query(PUT)
            .bind(team)
            .bind(&packed.key)
            .bind(packed.scraped_at)
            .bind(packed.body.len() as i64)
            .bind(&packed.body)
            .bind(packed.monitor)
            .bind(now.plus_ms(APART_MS))
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(())
}

/// Drops the oldest snapshots of teams that have too many. Returns how many.
pub async fn weigh(db: &Db) -> StoreResult<u64> {
    const FULL: &str = "SELECT team_id, CAST(SUM(size) AS BIGINT) FROM page_snapshot GROUP BY team_id \
        HAVING SUM(size) > $1";
    const OLDEST: &str = "SELECT key, size FROM page_snapshot WHERE team_id = $1 ORDER BY scraped_at LIMIT $2";
    const DROP: &str = "DELETE FROM page_snapshot WHERE team_id = $1 AND key = $2";
    let full: Vec<(TeamId, i64)> = on_pool!(db, |pool| sqlx::query_as(FULL).bind(TEAM_BYTES).fetch_all(pool).await?);
    let mut dropped = 0;
    for (team, used) in full {
        let mut over = used - TEAM_BYTES;
        while over > 0 {
            let mut tx = db.begin_relaxed().await?;
            // Takes the lock first, as every writer of these rows does.
            team_lock::lock(&mut tx, team).await?;
            let oldest: Vec<(String, i64)> =
                on_db!(&mut tx, |conn| sqlx::query_as(OLDEST).bind(team).bind(STEP).fetch_all(conn).await?);
            if oldest.is_empty() {
                break;
            }
            for (key, size) in oldest {
                if over <= 0 {
                    break;
                }
                over -= size;
                dropped +=
                    on_db!(&mut tx, |conn| sqlx::query(DROP).bind(team).bind(key).execute(conn).await?.rows_affected());
            }
            tx.commit().await?;
        }
    }
    Ok(dropped)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::testing;

    fn packed(key: &str, at: i64, markdown: &str) -> Packed {
        let snapshot = Snapshot { markdown: markdown.to_owned(), ..Snapshot::default() };
        Packed::new(key.to_owned(), Timestamp(at), &snapshot).unwrap()
    }

    #[tokio::test]
    async fn the_newest_is_kept_for_each_team() {
        for db in testing::databases().await {
            let (team, other) = (testing::team(&db, "a").await, testing::team(&db, "b").await);
            let mut tx = db.begin().await.unwrap();
            let (now, ahead) = (Timestamp(40), 41 + APART_MS);
            for (key, at, text) in [("k", 10, "first"), ("k", 30, "third"), ("k", 20, "second")] {
                put(&mut tx, team, &packed(key, at, text), now).await.unwrap();
            }
            // Of a clock that was ahead, as is known when it is right again.
            for (at, text) in [(ahead, "wrong"), (35, "right")] {
                put(&mut tx, team, &packed("set back", at, text), now).await.unwrap();
            }
            tx.commit().await.unwrap();
            let found = get(&db, team, "k").await.unwrap().unwrap();
            assert_eq!((found.0, found.1.markdown.as_str()), (Timestamp(30), "third"));
            assert_eq!(get(&db, team, "set back").await.unwrap().unwrap().1.markdown, "right");
            assert!(get(&db, other, "k").await.unwrap().is_none(), "teams are walls");
        }
    }

    #[tokio::test]
    async fn the_oldest_give_way() {
        for db in testing::databases().await {
            let team = testing::team(&db, "a").await;
            let mut tx = db.begin().await.unwrap();
            put(&mut tx, team, &packed("old", 1, "x"), Timestamp(9)).await.unwrap();
            put(&mut tx, team, &packed("new", 2, "x"), Timestamp(9)).await.unwrap();
            // Make the old version count as large as all the room that the team has.
            let full = format!("UPDATE page_snapshot SET size = {TEAM_BYTES} WHERE key = 'old'");
            on_db!(&mut tx, |conn| {
                sqlx::query(sqlx::AssertSqlSafe(full)).execute(conn).await.unwrap().rows_affected()
            });
            put(&mut tx, team, &packed("newest", 3, "x"), Timestamp(9)).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(weigh(&db).await.unwrap(), 1);
            assert_eq!(weigh(&db).await.unwrap(), 0);
            for (key, is_there) in [("old", false), ("new", true), ("newest", true)] {
                assert_eq!(get(&db, team, key).await.unwrap().is_some(), is_there, "{key}");
            }
        }
    }
}
