//! What teams were granted and have used. The ledger's entries are written where a page ends; here they are read, and
//! a team's funds are checked before work is accepted.

use crate::ids::TeamId;
use crate::{on_db, on_pool};

use super::{Db, StoreError, StoreResult, Tx, team_lock};

/// Pages of running jobs that are not billed yet, and the whole ttl of live sessions.
const RESERVED: &str = "SELECT CAST((SELECT COALESCE(SUM(total - completed - failed), 0) FROM job \
    WHERE team_id = $1 AND status = 'scraping') + (SELECT COALESCE(SUM(credits), 0) FROM browser_session \
    WHERE team_id = $1 AND state <> 'destroyed') AS BIGINT)";

const ACCOUNT: &str = "SELECT credits_granted, credits_used FROM team WHERE id = $1";

/// A team's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balance {
    pub granted: i64,
    pub used: i64,
    /// Held back for pages that running jobs still have to do, and for live sessions.
    pub reserved: i64,
}

impl Balance {
    /// What new work may cost; below zero when the team owes.
    pub fn left(&self) -> i64 {
        self.granted - self.used - self.reserved
    }
}

/// Grants credits; a negative number takes some back. `false`: no such team.
pub async fn grant(tx: &mut Tx, team: TeamId, amount: i64) -> StoreResult<bool> {
    const SQL: &str = "UPDATE team SET credits_granted = credits_granted + $2 WHERE id = $1";
    let done = on_db!(tx, |conn| sqlx::query(SQL).bind(team).bind(amount).execute(conn).await?.rows_affected());
    Ok(done == 1)
}

/// The account of a team; `None`: no such team.
pub async fn balance(db: &Db, team: TeamId) -> StoreResult<Option<Balance>> {
    let found: Option<(i64, i64)> =
        on_pool!(db, |pool| sqlx::query_as(ACCOUNT).bind(team).fetch_optional(pool).await?);
    let Some((granted, used)) = found else { return Ok(None) };
    let reserved: (i64,) = on_pool!(db, |pool| sqlx::query_as(RESERVED).bind(team).fetch_one(pool).await?);
    Ok(Some(Balance { granted, used, reserved: reserved.0 }))
}

/// Whether a team can pay for new work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Funds {
    Enough,
    /// What is left is less than needed.
    Short {
        left: i64,
    },
}

/// Checks that a team can pay `need` credits, and keeps others from spending them until the transaction ends: the
/// caller inserts the job, which reserves them, in the same one. Without metering everything is affordable.
pub async fn check_funds(tx: &mut Tx, team: TeamId, need: i64, metered: bool) -> StoreResult<Funds> {
    if !metered {
        return Ok(Funds::Enough);
    }
    // The lock is a statement of its own, so that what follows reads what the one before us committed.
    team_lock::lock(tx, team).await?.ok_or_else(|| StoreError::Corrupt(format!("team {team} is gone")))?;
    let (granted, used): (i64, i64) = on_db!(tx, |conn| sqlx::query_as(ACCOUNT).bind(team).fetch_one(conn).await?);
    let reserved: (i64,) = on_db!(tx, |conn| sqlx::query_as(RESERVED).bind(team).fetch_one(conn).await?);
    let balance = Balance { granted, used, reserved: reserved.0 };
    Ok(if balance.left() >= need { Funds::Enough } else { Funds::Short { left: balance.left() } })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::domain::job::JobKind;
    use crate::domain::scrape::ScrapeOptions;
    use crate::ids::JobId;
    use crate::store::{jobs, teams, testing};
    use crate::time::Timestamp;

    async fn team_with(db: &Db, credits: i64) -> TeamId {
        let mut tx = db.begin().await.unwrap();
        let team = teams::insert(&mut tx, "acme", Timestamp(1)).await.unwrap();
        assert!(grant(&mut tx, team, credits).await.unwrap());
        tx.commit().await.unwrap();
        team
    }

    async fn insert_job(tx: &mut Tx, team: TeamId, total: i64) {
        let job = jobs::NewJob {
            id: JobId::new(),
            team,
            key: None,
            kind: JobKind::Batch,
            options: &ScrapeOptions::default(),
            target: "https://example.com",
            origin: None,
            max_concurrency: None,
            webhook: None,
            total,
            created_at: Timestamp(1),
            expires_at: Timestamp(9),
        };
        jobs::insert(tx, &job).await.unwrap();
    }

    #[tokio::test]
    async fn running_pages_are_held_back_from_what_is_left() {
        for db in testing::databases().await {
            let team = team_with(&db, 10).await;
            let mut tx = db.begin().await.unwrap();
            assert_eq!(check_funds(&mut tx, team, 10, true).await.unwrap(), Funds::Enough);
            insert_job(&mut tx, team, 7).await;
            assert_eq!(check_funds(&mut tx, team, 4, true).await.unwrap(), Funds::Short { left: 3 });
            assert_eq!(check_funds(&mut tx, team, 3, true).await.unwrap(), Funds::Enough);
            tx.commit().await.unwrap();
            let balance = balance(&db, team).await.unwrap().unwrap();
            assert_eq!((balance.granted, balance.used, balance.reserved, balance.left()), (10, 0, 7, 3));
        }
    }

    #[tokio::test]
    async fn without_metering_everything_is_affordable() {
        for db in testing::databases().await {
            let team = team_with(&db, 0).await;
            let mut tx = db.begin().await.unwrap();
            assert_eq!(check_funds(&mut tx, team, 1_000_000, false).await.unwrap(), Funds::Enough);
        }
    }

    #[tokio::test]
    async fn an_unknown_team_has_no_account() {
        for db in testing::databases().await {
            assert_eq!(balance(&db, TeamId::new()).await.unwrap(), None);
            let mut tx = db.begin().await.unwrap();
            assert!(!grant(&mut tx, TeamId::new(), 1).await.unwrap());
        }
    }

    #[tokio::test]
    async fn requests_at_once_cannot_spend_the_same_credits() {
        for db in testing::databases().await {
            let team = team_with(&db, 5).await;
            let tries = (0..8).map(|_| {
                let db = db.clone();
                tokio::spawn(async move {
                    let mut tx = db.begin().await.unwrap();
                    let funds = check_funds(&mut tx, team, 2, true).await.unwrap();
                    if funds == Funds::Enough {
                        insert_job(&mut tx, team, 2).await;
                    }
                    tx.commit().await.unwrap();
                    funds == Funds::Enough
                })
            });
            let outcomes = futures_util::future::join_all(tries).await;
            assert_eq!(outcomes.into_iter().filter(|o| *o.as_ref().unwrap()).count(), 2);
        }
    }
}
