//! Requests of the current minute by team and bucket, over all API processes (spec 7.2).

use crate::ids::TeamId;
use crate::store::{Db, StoreResult};
use crate::{on_db, on_pool};

/// Adds `count` requests to a minute, given as its number since 1970, and returns all of it so far. A process whose
/// clock is behind adds to the minute that the others have begun; what lies further ahead is of a clock that was wrong, and
/// begins anew.
pub async fn add(db: &Db, team: TeamId, bucket: &str, minute: i64, count: i64) -> StoreResult<i64> {
    const SQL: &str = "INSERT INTO rate_window (team_id, bucket, minute, taken) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (team_id, bucket) DO UPDATE SET \
        taken = CASE WHEN rate_window.minute IN (excluded.minute, excluded.minute + 1) \
        THEN rate_window.taken + excluded.taken ELSE excluded.taken END, \
        minute = CASE WHEN rate_window.minute = excluded.minute + 1 THEN rate_window.minute ELSE excluded.minute END \
        RETURNING taken";
    let mut tx = db.begin_relaxed().await?;
    let taken: (i64,) = on_db!(&mut tx, |conn| {
        sqlx::query_as(SQL).bind(team).bind(bucket).bind(minute).bind(count).fetch_one(conn).await?
    });
    tx.commit().await?;
    Ok(taken.0)
}

/// What a team has taken of each bucket in a minute.
pub async fn taken(db: &Db, team: TeamId, minute: i64) -> StoreResult<Vec<(String, i64)>> {
    const SQL: &str = "SELECT bucket, taken FROM rate_window WHERE team_id = $1 AND minute = $2 ORDER BY bucket";
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(minute).fetch_all(pool).await?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::testing;

    #[tokio::test]
    async fn a_minute_adds_up_for_everybody_and_the_next_one_starts_anew() {
        for db in testing::databases().await {
            let (team, other) = (TeamId::new(), TeamId::new());
            let adds = (0..20).map(|_| add(&db, team, "map", 5, 3));
            let mut totals: Vec<i64> =
                futures_util::future::join_all(adds).await.into_iter().map(Result::unwrap).collect();
            totals.sort_unstable();
            assert_eq!(totals, (1..=20).map(|n| 3 * n).collect::<Vec<_>>());
            assert_eq!(add(&db, team, "scrape", 5, 1).await.unwrap(), 1);
            assert_eq!(add(&db, other, "map", 5, 1).await.unwrap(), 1);
            assert_eq!(add(&db, team, "map", 6, 2).await.unwrap(), 2);
            assert_eq!(add(&db, team, "map", 5, 2).await.unwrap(), 4, "a clock that is behind");
            assert_eq!(add(&db, team, "crawl", 65, 9).await.unwrap(), 9);
            assert_eq!(add(&db, team, "crawl", 5, 2).await.unwrap(), 2, "a clock that was ahead");
            assert_eq!(add(&db, team, "crawl", 5, 2).await.unwrap(), 4);
            assert_eq!(taken(&db, team, 6).await.unwrap(), [("map".to_owned(), 4)]);
            assert_eq!(taken(&db, team, 5).await.unwrap(), [("crawl".to_owned(), 4), ("scrape".to_owned(), 1)]);
        }
    }
}
