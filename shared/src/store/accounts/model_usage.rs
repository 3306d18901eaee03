//! Tokens that teams' pages have cost at the operator's language model, by calendar month and key. They are not billed.

use std::collections::BTreeMap;

use crate::ids::{KeyId, TeamId};
use crate::llm::Spent;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// Adds what was spent.
pub(in crate::store) async fn add(
    tx: &mut Tx,
    team: TeamId,
    key: Option<KeyId>,
    spent: Spent,
    now: Timestamp,
) -> StoreResult<()> {
    const SQL: &str = "INSERT INTO model_month (team_id, month, api_key_id, sent, received) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (team_id, month, api_key_id) DO UPDATE SET sent = model_month.sent + excluded.sent, \
        received = model_month.received + excluded.received";
    on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(team)
            .bind(now.month_start())
            .bind(key.map(|key| key.to_string()).unwrap_or_default())
            .bind(spent.sent)
            .bind(spent.received)
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(())
}

/// Writes down what a meter says. When that fails the answer is given all the same.
pub async fn record(db: &Db, team: TeamId, key: Option<KeyId>, spent: Spent) {
    if spent == Spent::default() {
        return;
    }
    let write = async {
        let mut tx = db.begin_relaxed().await?;
        add(&mut tx, team, key, spent, db.now()).await?;
        tx.commit().await
    };
    if let Err(error) = write.await {
        tracing::warn!(%error, team.id = %team, "a language model's tokens cannot be written down");
    }
}

/// What a team has spent, by the first moment of the month; with `by_key`, also by the key's id ("": without one).
pub async fn history(db: &Db, team: TeamId, by_key: bool) -> StoreResult<BTreeMap<(Timestamp, String), Spent>> {
    const MONTHS: &str = "SELECT month, '', CAST(SUM(sent) AS BIGINT), CAST(SUM(received) AS BIGINT) FROM model_month \
        WHERE team_id = $1 GROUP BY month";
    const KEYS: &str = "SELECT month, api_key_id, sent, received FROM model_month WHERE team_id = $1";
    let sql = if by_key { KEYS } else { MONTHS };
    let rows: Vec<(Timestamp, String, i64, i64)> =
        on_pool!(db, |pool| sqlx::query_as(sql).bind(team).fetch_all(pool).await?);
    Ok(rows.into_iter().map(|(month, key, sent, received)| ((month, key), Spent { sent, received })).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::testing;

    #[tokio::test]
    async fn tokens_add_up_by_month_and_key() {
        const MAY: i64 = 1_746_057_600_000;
        const JUNE: i64 = 1_748_736_000_000;
        for db in testing::databases().await {
            let (team, other) = (testing::team(&db, "a").await, testing::team(&db, "b").await);
            let key = KeyId::new();
            let mut tx = db.begin().await.unwrap();
            for (team, key, sent, at) in [
                (team, Some(key), 5, MAY),
                (team, Some(key), 7, JUNE - 1),
                (team, None, 1, JUNE - 1),
                (team, None, 2, JUNE),
                (other, Some(key), 100, JUNE),
            ] {
                add(&mut tx, team, key, Spent { sent, received: 2 * sent }, Timestamp(at)).await.unwrap();
            }
            tx.commit().await.unwrap();
            let sums = |list: BTreeMap<(Timestamp, String), Spent>| -> Vec<(i64, bool, i64, i64)> {
                list.into_iter().map(|((m, k), s)| (m.0, k.is_empty(), s.sent, s.received)).collect()
            };
            assert_eq!(sums(history(&db, team, false).await.unwrap()), [(MAY, true, 13, 26), (JUNE, true, 2, 4)]);
            let keys = sums(history(&db, team, true).await.unwrap());
            assert_eq!(keys, [(MAY, true, 1, 2), (MAY, false, 12, 24), (JUNE, true, 2, 4)]);
        }
    }
}
