//! What a team used, by day: read off the ledger itself, so that it is what was billed.

use crate::ids::TeamId;
use crate::on_pool;
use crate::store::{Db, StoreResult};
use crate::time::Timestamp;

/// Length of a day (UTC), milliseconds.
pub const DAY_MS: i64 = 86_400_000;

/// Credits of one day, kind and key.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DayRow {
    /// Number of the day since 1970.
    pub day: i64,
    pub kind: String,
    /// "": without a key.
    pub key: String,
    pub credits: i64,
}

/// What a team used between two moments, by day, kind and key.
pub async fn by_day(db: &Db, team: TeamId, from: Timestamp, to: Timestamp) -> StoreResult<Vec<DayRow>> {
    const SQL: &str = "SELECT created_at / 86400000 AS day, kind, COALESCE(api_key_id, '') AS key, \
        CAST(SUM(amount) AS BIGINT) AS credits FROM credit_entry \
        WHERE team_id = $1 AND created_at >= $2 AND created_at < $3 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(from).bind(to).fetch_all(pool).await?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::on_db;
    use crate::store::testing;

    #[tokio::test]
    async fn credits_are_added_up_by_day_kind_and_key() {
        for db in testing::databases().await {
            let (acme, other) = (testing::team(&db, "acme").await, testing::team(&db, "other").await);
            const ENTRY: &str = "INSERT INTO credit_entry (key, team_id, api_key_id, kind, amount, created_at) \
                VALUES ($1, $2, $3, $4, $5, $6)";
            let mut tx = db.begin().await.unwrap();
            for (n, (team, key, kind, amount, at)) in [
                (acme, None, "scrape", 1, 0),
                (acme, None, "scrape", 2, DAY_MS - 1),
                (acme, Some("k"), "scrape", 4, 5),
                (acme, None, "crawl", 8, DAY_MS),
                (acme, None, "crawl", 16, 2 * DAY_MS),
                (other, None, "scrape", 32, 5),
            ]
            .into_iter()
            .enumerate()
            {
                on_db!(&mut tx, |conn| {
                    let insert = sqlx::query(ENTRY).bind(n.to_string()).bind(team).bind(key).bind(kind);
                    insert.bind(i64::from(amount)).bind(at).execute(conn).await.unwrap().rows_affected()
                });
            }
            tx.commit().await.unwrap();
            let days = by_day(&db, acme, Timestamp(0), Timestamp(2 * DAY_MS)).await.unwrap();
            let days: Vec<_> = days.iter().map(|d| (d.day, d.kind.as_str(), d.key.as_str(), d.credits)).collect();
            assert_eq!(days, [(0, "scrape", "", 3), (0, "scrape", "k", 4), (1, "crawl", "", 8)]);
        }
    }
}
