//! The ledger in the long run: entries older than 90 days are merged by day, kind and key, so that it grows with the days
//! and not with the pages. Sums stay as they are, to the credit.
//!
//! An entry names what was billed, so that nothing is billed twice. After 90 days nothing of that is under way any more.
//!
//! What is merged of a day stands in one entry at its first moment. It goes in slices, each a transaction of its own, which
//! takes entries and adds them to that one: whatever dies in between has lost nothing, and what is begun anew finds the
//! rest. Nothing is inserted, because the months are added up by what is inserted.

use std::collections::BTreeMap;

use crate::clock::Stopwatch;
use crate::fault::FaultPoint;
use crate::ids::{KeyId, TeamId};
use crate::store::db::settings;
use crate::store::db::slices::Slices;
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

const DAY_MS: i64 = 86_400_000;
/// Entries stay by themselves for so long, milliseconds.
const KEPT_MS: i64 = 90 * DAY_MS;
/// The setting that says up to when all is merged.
const MERGED: &str = "ledger_merged_until";

/// An entry of a slice: its own key, kind, the caller's key, amount.
type Entry = (String, String, Option<KeyId>, i64);

/// The first moment of a day (UTC).
fn day_of(at: Timestamp) -> Timestamp {
    Timestamp(at.0.div_euclid(DAY_MS) * DAY_MS)
}

/// Merges what is old enough. Returns how many entries are gone. One look at a setting when there is nothing to do, which
/// is so all day.
pub async fn merge(db: &Db, slices: &mut Slices, now: Timestamp) -> StoreResult<u64> {
    const TEAMS: &str = "SELECT id FROM team";
    let until = day_of(now.plus_ms(-KEPT_MS));
    let merged: Option<Timestamp> = settings::find(db, MERGED).await?.and_then(|text| text.parse().ok()).map(Timestamp);
    // One that lies ahead is of a clock that did.
    let merged = merged.filter(|merged| *merged <= until);
    if merged == Some(until) {
        return Ok(0);
    }
    let mut gone = 0;
    let teams: Vec<(TeamId,)> = on_pool!(db, |pool| sqlx::query_as(TEAMS).fetch_all(pool).await?);
    for (team,) in teams {
        let mut from = merged.unwrap_or(Timestamp(i64::MIN));
        while let Some(first) = first_entry(db, team, from, until).await? {
            let day = day_of(first);
            gone += merge_day(db, slices, team, day).await?;
            from = day.plus_ms(DAY_MS);
        }
    }
    let mut tx = db.begin_relaxed().await?;
    settings::set(&mut tx, MERGED, &until.0.to_string()).await?;
    tx.commit().await?;
    Ok(gone)
}

/// When a team's first entry in a span of time was made.
async fn first_entry(db: &Db, team: TeamId, from: Timestamp, to: Timestamp) -> StoreResult<Option<Timestamp>> {
    const SQL: &str =
        "SELECT MIN(created_at) FROM credit_entry WHERE team_id = $1 AND created_at >= $2 AND created_at < $3";
    let (first,): (Option<Timestamp>,) =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(from).bind(to).fetch_one(pool).await?);
    Ok(first)
}

async fn merge_day(db: &Db, slices: &mut Slices, team: TeamId, day: Timestamp) -> StoreResult<u64> {
    let mut gone = 0;
    loop {
        let rows = slices.rows();
        let mut tx = db.begin_relaxed().await?;
        let began = Stopwatch::start();
        let entries = slice(&mut tx, team, day, rows).await?;
        if entries.is_empty() {
            return Ok(gone);
        }
        let mut groups: BTreeMap<(String, Option<KeyId>), (i64, Vec<String>)> = BTreeMap::new();
        for (entry, kind, key, amount) in entries {
            let (sum, names) = groups.entry((kind, key)).or_default();
            *sum =
                sum.checked_add(amount).ok_or_else(|| StoreError::Corrupt("the ledger's sum is too large".into()))?;
            names.push(entry);
        }
        for ((kind, key), (sum, names)) in groups {
            gone += add_up(&mut tx, team, day, (&kind, key), sum, names).await?;
        }
        db.faults().reach(FaultPoint::BeforeCommit)?;
        tx.commit().await?;
        slices.pause(began).await;
    }
}

/// Some entries of a day that are not merged. What somebody else is just merging is left to it.
async fn slice(tx: &mut Tx, team: TeamId, day: Timestamp, limit: i64) -> StoreResult<Vec<Entry>> {
    const SQL: &str = "SELECT key, kind, api_key_id, amount FROM credit_entry WHERE team_id = $1 AND created_at > $2 \
        AND created_at < $3 ORDER BY created_at LIMIT $4";
    let sql = match tx {
        Tx::Sqlite(_) => SQL,
        Tx::Postgres(_) => {
            const LOCKED: &str = sql!(SQL, " FOR UPDATE SKIP LOCKED");
            LOCKED
        }
    };
    let end = day.plus_ms(DAY_MS);
    Ok(on_db!(tx, |conn| sqlx::query_as(sql).bind(team).bind(day).bind(end).bind(limit).fetch_all(conn).await?))
}

/// Adds entries of one kind and key to that of the day; without one, the first of them becomes it. Returns how many are
/// gone.
async fn add_up(
    tx: &mut Tx,
    team: TeamId,
    day: Timestamp,
    (kind, key): (&str, Option<KeyId>),
    sum: i64,
    mut names: Vec<String>,
) -> StoreResult<u64> {
    const OF_DAY: &str = "SELECT key FROM credit_entry WHERE team_id = $1 AND created_at = $2 AND kind = $3 \
        AND COALESCE(api_key_id, '') = $4 ORDER BY key LIMIT 1";
    const ADD: &str = "UPDATE credit_entry SET amount = amount + $2 WHERE key = $1";
    const BECOME: &str = "UPDATE credit_entry SET amount = $2, created_at = $3 WHERE key = $1";
    let key = key.map(|key| key.to_string()).unwrap_or_default();
    let of_day: Option<(String,)> = on_db!(&mut *tx, |conn| {
        sqlx::query_as(OF_DAY).bind(team).bind(day).bind(kind).bind(key).fetch_optional(conn).await?
    });
    on_db!(&mut *tx, |conn| {
        let query = match of_day {
            Some((of_day,)) => sqlx::query(ADD).bind(of_day).bind(sum),
            None => sqlx::query(BECOME).bind(names.swap_remove(0)).bind(sum).bind(day),
        };
        query.execute(conn).await?.rows_affected()
    });
    if names.is_empty() {
        return Ok(0);
    }
    Ok(on_db!(tx, |conn| {
        let mut delete = sqlx::QueryBuilder::new("DELETE FROM credit_entry WHERE key IN (");
        let mut list = delete.separated(", ");
        for name in &names {
            list.push_bind(name);
        }
        delete.push(")");
        delete.build().persistent(false).execute(conn).await?.rows_affected()
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::fault::Fault;
    use crate::store::accounts::credits;
    use crate::store::console::usage;
    use crate::store::testing;

    /// A day long ago, and a time at which it is old enough.
    const OLD: i64 = 20_000 * DAY_MS;
    const NOW: i64 = OLD + 91 * DAY_MS + 5;

    async fn enter(db: &Db, team: TeamId, key: Option<KeyId>, kind: &str, amount: i64, at: i64) {
        const ENTRY: &str = "INSERT INTO credit_entry (key, team_id, api_key_id, kind, amount, created_at) \
            VALUES ($1, $2, $3, $4, $5, $6)";
        let mut tx = db.begin().await.unwrap();
        let name = crate::random::id().to_string();
        on_db!(&mut tx, |conn| {
            let query = sqlx::query(ENTRY).bind(name).bind(team).bind(key).bind(kind).bind(amount).bind(at);
            query.execute(conn).await.unwrap().rows_affected()
        });
        tx.commit().await.unwrap();
    }

    /// What the ledger says of a team: by month and key, by day, and in how many entries.
    async fn said(db: &Db, team: TeamId) -> (Vec<credits::Month>, Vec<usage::DayRow>, i64) {
        let months = credits::history(db, team, true).await.unwrap();
        let days = usage::by_day(db, team, Timestamp(0), Timestamp(i64::MAX)).await.unwrap();
        const COUNT: &str = "SELECT COUNT(*) FROM credit_entry WHERE team_id = $1";
        let (entries,): (i64,) = on_pool!(db, |pool| sqlx::query_as(COUNT).bind(team).fetch_one(pool).await.unwrap());
        (months, days, entries)
    }

    #[tokio::test]
    async fn old_entries_are_merged_by_day_kind_and_key_and_sums_stay() {
        for db in testing::databases().await {
            let (acme, other) = (testing::team(&db, "acme").await, testing::team(&db, "other").await);
            let (one, two) = (KeyId::new(), KeyId::new());
            for n in 0..300 {
                let (day, at) = (n % 3, n * 250_000 + 1);
                enter(
                    &db,
                    acme,
                    [None, Some(one), Some(two)][n as usize % 3],
                    ["scrape", "map"][n as usize % 2],
                    n + 1,
                    OLD - day * DAY_MS + at,
                )
                .await;
            }
            enter(&db, acme, None, "scrape", 7, OLD).await;
            enter(&db, other, None, "scrape", 1_000, OLD + 5).await;
            enter(&db, acme, None, "scrape", 1, OLD + DAY_MS).await;
            enter(&db, acme, None, "scrape", 2, OLD + DAY_MS + 1).await;
            let (months, days, entries) = said(&db, acme).await;
            let before_other = said(&db, other).await;
            assert_eq!(entries, 303);
            // It breaks off in its third slice, and another worker begins anew.
            db.faults().arm(FaultPoint::BeforeCommit, Fault::Fail, 3);
            assert!(merge(&db, &mut Slices::default(), Timestamp(NOW)).await.is_err());
            let (broken_months, broken_days, some) = said(&db, acme).await;
            assert_eq!((&broken_months, &broken_days), (&months, &days));
            assert!(some < entries, "{some}");
            let (first, second) = (&mut Slices::default(), &mut Slices::default());
            let (a, b) = tokio::join!(merge(&db, first, Timestamp(NOW)), merge(&db, second, Timestamp(NOW)));
            assert_eq!(a.unwrap() + b.unwrap(), (some - said(&db, acme).await.2).unsigned_abs());
            let (merged_months, merged_days, few) = said(&db, acme).await;
            assert_eq!((&merged_months, &merged_days), (&months, &days));
            // Of each day and key two kinds at most, the entry that stood at the day's first moment, and two young ones. Where
            // two workers merge a day at once, each may leave one.
            assert!(few <= 2 * 9 + 3, "{few}");
            assert_eq!(said(&db, other).await, before_other);
            // Nothing is left to do until the next day, whose entries are old enough then.
            assert_eq!(merge(&db, &mut Slices::default(), Timestamp(NOW)).await.unwrap(), 0);
            assert_eq!(merge(&db, &mut Slices::default(), Timestamp(NOW + DAY_MS)).await.unwrap(), 1);
            assert_eq!(said(&db, acme).await, (months, days, few - 1));
        }
    }

    #[tokio::test]
    async fn more_than_a_slice_of_one_day_becomes_one_entry() {
        for db in testing::databases().await {
            let team = testing::team(&db, "acme").await;
            let mut tx = db.begin().await.unwrap();
            // Twelve hundred entries in one statement.
            const MANY: &str = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1200) \
                INSERT INTO credit_entry (key, team_id, kind, amount, created_at) \
                SELECT 'many:' || CAST(n AS TEXT), $1, 'scrape', n, $2 + n FROM n";
            on_db!(&mut tx, |conn| sqlx::query(MANY).bind(team).bind(OLD).execute(conn).await.unwrap().rows_affected());
            tx.commit().await.unwrap();
            assert_eq!(merge(&db, &mut Slices::default(), Timestamp(NOW)).await.unwrap(), 1_199);
            let (months, days, entries) = said(&db, team).await;
            assert_eq!((months[0].credits, days[0].credits, entries), (720_600, 720_600, 1));
        }
    }
}
