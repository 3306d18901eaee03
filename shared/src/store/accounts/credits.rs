//! What teams were granted and have used: how an entry of the ledger is written, how it is read, and how a team's funds are
//! checked before work is accepted.

use crate::domain::job::JobStatus;
use crate::domain::session::SessionState;
use crate::ids::{KeyId, TeamId};
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::team_lock;

/// How an entry is written into the ledger: around its values, once for each key.
pub(in crate::store) const LEDGER_ENTRY: &str =
    "INSERT INTO credit_entry (key, team_id, api_key_id, kind, amount, created_at) ";
pub(in crate::store) const ENTERED_ONCE: &str = " ON CONFLICT (key) DO NOTHING";

/// How the team's sum grows by what was entered, which the statement has as `$amount`.
macro_rules! used_more {
    ($amount:literal) => {
        concat!("UPDATE team SET credits_used = credits_used + ", $amount)
    };
}
pub(in crate::store) use used_more;

/// What one thing cost a team.
pub(in crate::store) struct Charge<'a> {
    /// Names the thing: it is billed once, however often this is done.
    pub entry: String,
    pub team: TeamId,
    pub key: Option<KeyId>,
    /// As the ledger says it.
    pub kind: &'a str,
    /// More than 0.
    pub amount: i64,
    pub at: Timestamp,
}

/// Enters a charge in the ledger, and adds it to what the team has used if it is new there. The caller holds the team's
/// lock: an entry adds to the row of its month, which whoever ends pages has after the team's.
pub(in crate::store) async fn charge(tx: &mut Tx, charge: Charge<'_>) -> StoreResult<()> {
    const ENTRY: &str = sql!(LEDGER_ENTRY, "VALUES ($1, $2, $3, $4, $5, $6)", ENTERED_ONCE);
    let Charge { entry, team, key, kind, amount, at } = charge;
    let entered = on_db!(tx, |conn| {
        sqlx::query(ENTRY)
            .bind(entry)
            .bind(team)
            .bind(key)
            .bind(kind)
            .bind(amount)
            .bind(at)
            .execute(conn)
            .await?
            .rows_affected()
    });
    if entered == 1 { add_used(tx, team, amount).await } else { Ok(()) }
}

/// Adds to what a team has used: the caller has entered it in the ledger.
pub(in crate::store) async fn add_used(tx: &mut Tx, team: TeamId, amount: i64) -> StoreResult<()> {
    const SQL: &str = sql!(used_more!("$2"), " WHERE id = $1");
    on_db!(tx, |conn| sqlx::query(SQL).bind(team).bind(amount).execute(conn).await?.rows_affected());
    Ok(())
}

/// The most that pages of running jobs which are not billed yet can cost, and the whole ttl of live sessions.
const RESERVED: &str = sql!(
    "SELECT CAST((SELECT COALESCE(SUM((total - completed - failed) * page_credits), 0) FROM job \
     WHERE team_id = $1 AND status = ",
    JobStatus::Scraping.sql(),
    ") + (SELECT COALESCE(SUM(credits), 0) FROM browser_session WHERE team_id = $1 AND state <> ",
    SessionState::Destroyed.sql(),
    ") AS BIGINT)"
);

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
        // What was granted before grants had bounds may be anything.
        self.granted.saturating_sub(self.used).saturating_sub(self.reserved)
    }
}

/// The most credits that a team can have been granted in all, and the most at once: sums with what it has used and what is
/// held back stay far from the ends of their type.
pub const MOST_GRANTED: i64 = 1_000_000_000_000;

/// What became of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// What the team was granted in all now.
    Granted(i64),
    /// Refused: it would have been below 0 or over [`MOST_GRANTED`] in all.
    OutOfRange {
        /// What the team was granted in all before, and is still.
        granted: i64,
    },
    NoTeam,
}

/// Grants credits; a negative number takes some back, at most what was granted.
pub async fn grant(tx: &mut Tx, team: TeamId, amount: i64) -> StoreResult<Grant> {
    // The bound is on what there was before, so that no sum leaves its type: SQLite would make it a floating-point number.
    const SQL: &str = "UPDATE team SET credits_granted = credits_granted + $2 \
        WHERE id = $1 AND credits_granted BETWEEN $3 AND $4 RETURNING credits_granted";
    let (least, most) =
        if amount < 0 { (amount.saturating_neg(), i64::MAX) } else { (i64::MIN, MOST_GRANTED.saturating_sub(amount)) };
    let granted: Option<(i64,)> = on_db!(tx, |conn| {
        sqlx::query_as(SQL).bind(team).bind(amount).bind(least).bind(most).fetch_optional(conn).await?
    });
    if let Some((granted,)) = granted {
        return Ok(Grant::Granted(granted));
    }
    let there: Option<(i64, i64)> = on_db!(tx, |conn| sqlx::query_as(ACCOUNT).bind(team).fetch_optional(conn).await?);
    Ok(there.map_or(Grant::NoTeam, |(granted, _)| Grant::OutOfRange { granted }))
}

/// Whether that much was granted to a team in all.
pub async fn has_granted(db: &Db, team: TeamId, granted: i64) -> StoreResult<bool> {
    Ok(balance(db, team).await?.is_some_and(|balance| balance.granted == granted))
}

/// The account of a team; `None`: no such team.
pub async fn balance(db: &Db, team: TeamId) -> StoreResult<Option<Balance>> {
    let found: Option<(i64, i64)> =
        on_pool!(db, |pool| sqlx::query_as(ACCOUNT).bind(team).fetch_optional(pool).await?);
    let Some((granted, used)) = found else { return Ok(None) };
    let reserved: (i64,) = on_pool!(db, |pool| sqlx::query_as(RESERVED).bind(team).fetch_one(pool).await?);
    Ok(Some(Balance { granted, used, reserved: reserved.0 }))
}

/// What a team used in one calendar month (UTC).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Month {
    /// Its first moment.
    pub start: Timestamp,
    /// With the split by key, the key; `None` also for what was billed without one.
    pub key: Option<KeyId>,
    pub credits: i64,
}

/// The months in which a team used anything, oldest first; with `by_key`, one entry a month and key.
pub async fn history(db: &Db, team: TeamId, by_key: bool) -> StoreResult<Vec<Month>> {
    const MONTHS: &str = "SELECT month, '', CAST(SUM(amount) AS BIGINT) FROM credit_month WHERE team_id = $1 \
        GROUP BY month ORDER BY month";
    const KEYS: &str = "SELECT month, api_key_id, amount FROM credit_month WHERE team_id = $1 \
        ORDER BY month, api_key_id";
    let sql = if by_key { KEYS } else { MONTHS };
    let rows: Vec<(Timestamp, String, i64)> =
        on_pool!(db, |pool| sqlx::query_as(sql).bind(team).fetch_all(pool).await?);
    let month = |(start, key, credits): (Timestamp, String, i64)| {
        let key = (!key.is_empty()).then(|| key.parse()).transpose();
        let key = key.map_err(|e: uuid::Error| StoreError::Corrupt(e.to_string()))?;
        Ok(Month { start, key, credits })
    };
    rows.into_iter().map(month).collect()
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
    use crate::domain::scrape::{Format, JsonFormat, ScrapeOptions};
    use crate::ids::JobId;
    use crate::store::accounts::teams;
    use crate::store::testing;
    use crate::store::work::jobs;

    async fn team_with(db: &Db, credits: i64) -> TeamId {
        team_named(db, "acme", credits).await
    }

    async fn team_named(db: &Db, name: &str, credits: i64) -> TeamId {
        let mut tx = db.begin().await.unwrap();
        let team = teams::insert(&mut tx, name, Timestamp(1)).await.unwrap();
        assert_eq!(grant(&mut tx, team, credits).await.unwrap(), Grant::Granted(credits));
        tx.commit().await.unwrap();
        team
    }

    async fn insert_job(tx: &mut Tx, team: TeamId, total: i64) {
        insert_job_of(tx, team, total, ScrapeOptions::default()).await;
    }

    async fn insert_job_of(tx: &mut Tx, team: TeamId, total: i64, options: ScrapeOptions) {
        let job = jobs::NewJob {
            id: JobId::new(),
            team,
            key: None,
            kind: JobKind::Batch,
            options: &options,
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
            let (team, rich) = (team_with(&db, 10).await, team_named(&db, "rich", 100).await);
            let mut tx = db.begin().await.unwrap();
            assert_eq!(check_funds(&mut tx, team, 10, true).await.unwrap(), Funds::Enough);
            insert_job(&mut tx, team, 7).await;
            assert_eq!(check_funds(&mut tx, team, 4, true).await.unwrap(), Funds::Short { left: 3 });
            assert_eq!(check_funds(&mut tx, team, 3, true).await.unwrap(), Funds::Enough);
            // Pages that a model reads cost more.
            let formats = vec![Format::Json(JsonFormat::default())];
            insert_job_of(&mut tx, rich, 3, ScrapeOptions { formats, ..ScrapeOptions::default() }).await;
            assert_eq!(check_funds(&mut tx, rich, 86, true).await.unwrap(), Funds::Short { left: 85 });
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
            assert_eq!(grant(&mut tx, TeamId::new(), 1).await.unwrap(), Grant::NoTeam);
        }
    }

    #[tokio::test]
    async fn what_a_team_was_granted_stays_within_its_bounds() {
        for db in testing::databases().await {
            let team = team_with(&db, 7).await;
            let mut tx = db.begin().await.unwrap();
            for amount in [-8, i64::MIN, MOST_GRANTED - 6, MOST_GRANTED + 1, i64::MAX] {
                let refused = grant(&mut tx, team, amount).await.unwrap();
                assert_eq!(refused, Grant::OutOfRange { granted: 7 }, "{amount}");
            }
            for (amount, granted) in [(-7, 0), (MOST_GRANTED, MOST_GRANTED), (0, MOST_GRANTED), (-1, MOST_GRANTED - 1)]
            {
                assert_eq!(grant(&mut tx, team, amount).await.unwrap(), Grant::Granted(granted), "{amount}");
            }
            tx.commit().await.unwrap();
            assert_eq!(balance(&db, team).await.unwrap().unwrap().granted, MOST_GRANTED - 1);
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

    #[tokio::test]
    async fn the_history_adds_up_the_ledger_by_month_and_key() {
        // Ends and starts of months in UTC, and an entry told twice.
        const MAY: i64 = 1_746_057_600_000;
        const JUNE: i64 = 1_748_736_000_000;
        for db in testing::databases().await {
            let (team, other) = (team_with(&db, 0).await, testing::team(&db, "other").await);
            let key = KeyId::new();
            let mut tx = db.begin().await.unwrap();
            for (name, team, key, amount, at) in [
                ("a", team, Some(key), 5, MAY),
                ("b", team, Some(key), 7, JUNE - 1),
                ("b", team, Some(key), 7, JUNE - 1),
                ("c", team, None, 2, JUNE - 1),
                ("d", team, None, 1, JUNE),
                ("e", other, Some(key), 100, JUNE),
            ] {
                const ENTRY: &str = "INSERT INTO credit_entry (key, team_id, api_key_id, kind, amount, created_at) \
                    VALUES ($1, $2, $3, 'scrape', $4, $5) ON CONFLICT (key) DO NOTHING";
                on_db!(&mut tx, |conn| {
                    let query = sqlx::query(ENTRY).bind(name).bind(team).bind(key).bind(amount).bind(at);
                    query.execute(conn).await.unwrap().rows_affected()
                });
            }
            tx.commit().await.unwrap();
            let month = |start, key, credits| Month { start: Timestamp(start), key, credits };
            let months = history(&db, team, false).await.unwrap();
            assert_eq!(months, [month(MAY, None, 14), month(JUNE, None, 1)]);
            assert_eq!(months[0].start.plus_month(), months[1].start);
            let keys = history(&db, team, true).await.unwrap();
            assert_eq!(keys, [month(MAY, None, 2), month(MAY, Some(key), 12), month(JUNE, None, 1)]);
        }
    }
}
