//! The list of what a team asked for (spec 4.12). Written in the transaction that accepts the call, read by key.

use uuid::Uuid;

use crate::domain::activity::{Cursor, Endpoint};
use crate::domain::api_version::ApiVersion;
use crate::ids::TeamId;
use crate::store::db::parts::parts;
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// Entries removed in one transaction.
const STEP: i64 = 1_000;

/// A call that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What its results are found by.
    pub id: Uuid,
    pub endpoint: Endpoint,
    pub version: ApiVersion,
    /// `None`: nothing of it may be kept, or it has none.
    pub target: Option<String>,
    pub created_at: Timestamp,
}

/// Writes an entry.
pub async fn record(tx: &mut Tx, team: TeamId, entry: &Entry) -> StoreResult<()> {
    record_all(tx, team, std::slice::from_ref(entry)).await
}

/// Writes several entries.
pub async fn record_all(tx: &mut Tx, team: TeamId, entries: &[Entry]) -> StoreResult<()> {
    for part in parts(entries) {
        on_db!(&mut *tx, |conn| {
            let mut insert = sqlx::QueryBuilder::new(
                "INSERT INTO activity (team_id, created_at, id, endpoint, target, api_version) ",
            );
            insert.push_values(part, |mut row, entry| {
                row.push_bind(team)
                    .push_bind(entry.created_at)
                    .push_bind(entry.id.to_string())
                    .push_bind(entry.endpoint.as_str())
                    .push_bind(entry.target.as_deref())
                    .push_bind(entry.version.as_str());
            });
            insert.build().execute(conn).await?.rows_affected()
        });
    }
    Ok(())
}

/// Up to `limit` entries of a team after `since` and before the cursor, newest first.
pub async fn page(
    db: &Db,
    team: TeamId,
    endpoint: Option<Endpoint>,
    since: Timestamp,
    before: Option<Cursor>,
    limit: i64,
) -> StoreResult<Vec<Entry>> {
    macro_rules! select {
        ($filter:literal) => {
            concat!(
                "SELECT id, endpoint, api_version, target, created_at FROM activity WHERE team_id = $1 AND created_at > $2 \
                 AND (created_at, id) < ($3, $4) ",
                $filter,
                " ORDER BY created_at DESC, id DESC LIMIT $5"
            )
        };
    }
    type Columns = (String, String, String, Option<String>, Timestamp);
    let sql = if endpoint.is_some() { select!("AND endpoint = $6") } else { select!("") };
    let (time, id) = before.map_or((Timestamp(i64::MAX), String::new()), |c| (c.created_at, c.id.to_string()));
    let rows: Vec<Columns> = on_pool!(db, |pool| {
        let query = sqlx::query_as(sql).bind(team).bind(since).bind(time).bind(id).bind(limit);
        match endpoint {
            Some(endpoint) => query.bind(endpoint.as_str()).fetch_all(pool).await?,
            None => query.fetch_all(pool).await?,
        }
    });
    let entry = |(id, endpoint, version, target, created_at): Columns| {
        let id = Uuid::parse_str(&id).map_err(|e| StoreError::Corrupt(e.to_string()))?;
        let (endpoint, version) = (endpoint.parse(), version.parse());
        Ok(Entry {
            id,
            endpoint: endpoint.map_err(StoreError::Corrupt)?,
            version: version.map_err(StoreError::Corrupt)?,
            target,
            created_at,
        })
    };
    rows.into_iter().map(entry).collect()
}

/// Removes a part of what is older than `before`. Returns `true` while there may be more.
pub async fn forget(tx: &mut Tx, before: Timestamp) -> StoreResult<bool> {
    const SQL: &str = "DELETE FROM activity WHERE (team_id, endpoint, created_at, id) IN \
        (SELECT team_id, endpoint, created_at, id FROM activity WHERE created_at < $1 LIMIT $2)";
    let gone = on_db!(tx, |conn| sqlx::query(SQL).bind(before).bind(STEP).execute(conn).await?.rows_affected());
    Ok(gone >= STEP.unsigned_abs())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::testing;

    async fn write(db: &Db, team: TeamId, entries: &[(Endpoint, i64)]) -> Vec<Uuid> {
        let mut tx = db.begin().await.unwrap();
        let mut ids = Vec::new();
        for (endpoint, at) in entries {
            let target = (*endpoint != Endpoint::Browser).then(|| format!("http://site.test/{at}"));
            let version = if at % 2 == 0 { ApiVersion::V1 } else { ApiVersion::V2 };
            let entry =
                Entry { id: crate::random::id(), endpoint: *endpoint, version, target, created_at: Timestamp(*at) };
            record(&mut tx, team, &entry).await.unwrap();
            ids.push(entry.id);
        }
        tx.commit().await.unwrap();
        ids
    }

    #[tokio::test]
    async fn pages_are_newest_first_and_new_entries_do_not_move_them() {
        for db in testing::databases().await {
            let (team, other) = (testing::team(&db, "a").await, testing::team(&db, "b").await);
            // Several entries have the same time.
            let all: Vec<_> = (0..10).map(|n| (Endpoint::ALL[n % Endpoint::ALL.len()], 100 + n as i64 / 3)).collect();
            let mut ids = write(&db, team, &all).await;
            write(&db, other, &[(Endpoint::Scrape, 100)]).await;
            ids.reverse();

            let mut seen = Vec::new();
            let mut cursor = None;
            loop {
                let found = page(&db, team, None, Timestamp(0), cursor, 4).await.unwrap();
                let Some(last) = found.last() else { break };
                cursor = Some(Cursor { created_at: last.created_at, id: last.id });
                seen.extend(found.iter().map(|entry| entry.id));
                write(&db, team, &[(Endpoint::Map, 500)]).await;
            }
            assert_eq!(seen, ids);

            let recent = page(&db, team, None, Timestamp(101), None, 100).await.unwrap();
            assert!(recent.iter().all(|entry| entry.created_at > Timestamp(101)));
        }
    }

    #[tokio::test]
    async fn a_filter_keeps_one_endpoint_and_old_entries_are_forgotten() {
        for db in testing::databases().await {
            let team = testing::team(&db, "a").await;
            let all: Vec<_> = Endpoint::ALL.iter().enumerate().map(|(n, endpoint)| (*endpoint, n as i64)).collect();
            let ids = write(&db, team, &all).await;
            for (n, endpoint) in Endpoint::ALL.iter().enumerate() {
                let found = page(&db, team, Some(*endpoint), Timestamp(-1), None, 100).await.unwrap();
                assert_eq!(found.len(), 1, "{endpoint:?}");
                let version = if n % 2 == 0 { ApiVersion::V1 } else { ApiVersion::V2 };
                assert_eq!((found[0].id, found[0].endpoint, found[0].version), (ids[n], *endpoint, version));
                assert_eq!(found[0].target.is_none(), *endpoint == Endpoint::Browser);
            }
            let mut tx = db.begin().await.unwrap();
            assert!(!forget(&mut tx, Timestamp(4)).await.unwrap());
            tx.commit().await.unwrap();
            let left = page(&db, team, None, Timestamp(-1), None, 100).await.unwrap();
            assert_eq!(left.len(), ids.len() - 4);
        }
    }
}
