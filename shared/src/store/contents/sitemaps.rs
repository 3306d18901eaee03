//! Sitemaps kept for a team, compressed, until they are a week old (spec 4.9).

use crate::ids::TeamId;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// Bytes kept for one team; past that nothing new is kept until something expires.
const TEAM_BYTES: i64 = 128 << 20;

/// The file under `key`, unless it has expired.
pub async fn get(db: &Db, team: TeamId, key: &str, now: Timestamp) -> StoreResult<Option<Vec<u8>>> {
    const SQL: &str = "SELECT body FROM sitemap WHERE team_id = $1 AND key = $2 AND expires_at > $3";
    let found: Option<(Vec<u8>,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(key).bind(now).fetch_optional(pool).await?);
    Ok(found.map(|row| row.0))
}

/// Keeps files under their keys; older ones there are replaced. Returns how many fitted into the team's room: the first
/// ones. Rows are taken in one order, whoever else keeps the same files at the moment.
pub async fn put(
    tx: &mut Tx,
    team: TeamId,
    files: &[(String, Vec<u8>)],
    now: Timestamp,
    expires_at: Timestamp,
) -> StoreResult<usize> {
    const USED: &str =
        "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM sitemap WHERE team_id = $1 AND expires_at > $2";
    const PUT: &str = "INSERT INTO sitemap (team_id, key, size, body, expires_at) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (team_id, key) DO UPDATE SET size = excluded.size, body = excluded.body, \
        expires_at = excluded.expires_at";
    let (mut used,): (i64,) = on_db!(tx, |conn| sqlx::query_as(USED).bind(team).bind(now).fetch_one(conn).await?);
    let fits = |(_, body): &&(String, Vec<u8>)| {
        used += body.len() as i64;
        used <= TEAM_BYTES
    };
    let mut kept: Vec<_> = files.iter().take_while(fits).collect();
    kept.sort_unstable_by_key(|(key, _)| key);
    for (key, body) in &kept {
        on_db!(tx, |conn| {
            sqlx::query(PUT)
                .bind(team)
                .bind(key)
                .bind(body.len() as i64)
                .bind(body)
                .bind(expires_at)
                .execute(conn)
                .await?
                .rows_affected()
        });
    }
    Ok(kept.len())
}

/// Removes a part of the files that have expired. Returns how many.
pub async fn expire(tx: &mut Tx, now: Timestamp) -> StoreResult<u64> {
    const SQL: &str = "DELETE FROM sitemap WHERE expires_at <= $1 AND (team_id, key) IN \
        (SELECT team_id, key FROM sitemap WHERE expires_at <= $1 LIMIT 200)";
    Ok(on_db!(tx, |conn| sqlx::query(SQL).bind(now).execute(conn).await?.rows_affected()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::testing;

    #[tokio::test]
    async fn a_file_is_kept_for_its_team_until_it_expires() {
        for db in testing::databases().await {
            let (team, other) = (TeamId::new(), TeamId::new());
            let (now, end) = (Timestamp(1_000), Timestamp(2_000));
            let files = [("a".to_owned(), vec![1, 2]), ("b".to_owned(), vec![3])];
            let mut tx = db.begin().await.unwrap();
            assert_eq!(put(&mut tx, team, &files, now, end).await.unwrap(), 2);
            assert_eq!(put(&mut tx, team, &[("a".to_owned(), vec![9])], now, end).await.unwrap(), 1);
            tx.commit().await.unwrap();
            assert_eq!(get(&db, team, "a", now).await.unwrap(), Some(vec![9]));
            assert_eq!(get(&db, team, "b", now).await.unwrap(), Some(vec![3]));
            assert_eq!(get(&db, other, "a", now).await.unwrap(), None);
            assert_eq!(get(&db, team, "a", end).await.unwrap(), None);
            let mut tx = db.begin().await.unwrap();
            assert_eq!(expire(&mut tx, now).await.unwrap(), 0);
            assert_eq!(expire(&mut tx, end).await.unwrap(), 2);
            tx.commit().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_teams_room_is_bounded() {
        for db in testing::databases().await {
            let team = TeamId::new();
            let large = |n: usize| (format!("k{n}"), vec![0; 40 << 20]);
            let mut tx = db.begin().await.unwrap();
            let files: Vec<_> = (0..4).map(large).collect();
            assert_eq!(put(&mut tx, team, &files, Timestamp(1), Timestamp(9)).await.unwrap(), 3);
            assert_eq!(put(&mut tx, team, &[large(9)], Timestamp(9), Timestamp(19)).await.unwrap(), 1);
        }
    }
}
