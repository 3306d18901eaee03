//! Versions of pages whose content has left the store. Nobody finds them any more, so they may wait: they are looked for in
//! windows, in the order of their keys, and no index has to be written for them with every page that is stored.

use sqlx::AssertSqlSafe;

use crate::clock::Stopwatch;
use crate::store::db::slices::Slices;
use crate::store::{Db, StoreResult};
use crate::{on_db, on_pool};

use super::cache::{Age, unlocked};

/// A walk through all versions, newest and earlier ones. It begins with the process, which does not know what went before.
#[derive(Debug)]
pub struct Orphans {
    /// Where the next window begins; `None`: there is nothing to look for.
    next: Option<Place>,
    /// Contents went while it was on its way.
    is_news: bool,
}

/// A table, and the key and digest of the version that was looked at last.
type Place = (Age, String, String);

impl Default for Orphans {
    fn default() -> Self {
        Self { next: Some(beginning(Age::Newest)), is_news: false }
    }
}

/// Key and digest of the last of so many versions after this one; `None`: there are fewer.
pub(super) async fn end_of_window(
    db: &Db,
    age: Age,
    (key, digest): (&str, &str),
    rows: i64,
) -> StoreResult<Option<(String, String)>> {
    let table = age.table();
    let last = format!(
        "SELECT key, digest FROM {table} WHERE (key, digest) > ($1, $2) ORDER BY key, digest LIMIT 1 OFFSET $3"
    );
    Ok(on_pool!(db, |pool| {
        let query = sqlx::query_as(AssertSqlSafe(last)).bind(key).bind(digest).bind(rows - 1);
        query.fetch_optional(pool).await?
    }))
}

fn beginning(age: Age) -> Place {
    (age, String::new(), String::new())
}

impl Orphans {
    /// Notes that contents have gone.
    pub fn expect(&mut self) {
        self.is_news = self.next.is_some();
        self.next.get_or_insert_with(|| beginning(Age::Newest));
    }

    /// Looks through the next window. Returns how many versions of it went.
    ///
    /// # Errors
    /// When the database cannot be asked; the same window is looked through again then.
    pub async fn remove(&mut self, db: &Db, slices: &mut Slices) -> StoreResult<u64> {
        let Some((age, key, digest)) = &self.next else { return Ok(0) };
        let table = age.table();
        let last = end_of_window(db, *age, (key, digest), slices.rows()).await?;
        let began = Stopwatch::start();
        let mut tx = db.begin_relaxed().await?;
        let mut delete = format!(
            "DELETE FROM {table} WHERE (key, digest) IN (SELECT key, digest FROM {table} v WHERE (key, digest) > ($1, $2) \
             AND NOT EXISTS (SELECT 1 FROM page_content c WHERE c.digest = v.digest)"
        );
        if last.is_some() {
            delete.push_str(" AND (key, digest) <= ($3, $4)");
        }
        delete.push_str(unlocked(&tx));
        delete.push(')');
        let gone = on_db!(&mut tx, |conn| {
            let mut query = sqlx::query(AssertSqlSafe(delete)).bind(key).bind(digest);
            if let Some((key, digest)) = &last {
                query = query.bind(key).bind(digest);
            }
            query.execute(conn).await?.rows_affected()
        });
        tx.commit().await?;
        slices.pause(began).await;
        self.next = match (age, last) {
            (age, Some((key, digest))) => Some((*age, key, digest)),
            (Age::Newest, None) => Some(beginning(Age::Earlier)),
            (Age::Earlier, None) => std::mem::take(&mut self.is_news).then(|| beginning(Age::Newest)),
        };
        Ok(gone)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::store::testing;

    async fn count(db: &Db, sql: &'static str) -> i64 {
        let (count,): (i64,) = on_pool!(db, |pool| sqlx::query_as(sql).fetch_one(pool).await.unwrap());
        count
    }

    async fn run(db: &Db, sql: String) {
        let mut tx = db.begin().await.unwrap();
        on_db!(&mut tx, |conn| sqlx::query(AssertSqlSafe(sql)).execute(conn).await.unwrap().rows_affected());
        tx.commit().await.unwrap();
    }

    /// Stores versions of these numbers, each of a content of its own.
    async fn store(db: &Db, numbers: std::ops::Range<i64>) {
        for n in numbers {
            run(
                db,
                format!(
                    "INSERT INTO page_content (digest, size, packed, used_at, body) VALUES ('of {n}', 1, 1, {n}, '')"
                ),
            )
            .await;
            for table in [Age::Newest, Age::Earlier].map(Age::table) {
                run(
                    db,
                    format!(
                        "INSERT INTO {table} (key, team_id, url, digest, head, stored_at, expires_at) \
                         VALUES ('k{}', 't', 'u', 'of {n}', '', 0, 9)",
                        if table == Age::Newest.table() { n } else { n / 7 }
                    ),
                )
                .await;
            }
        }
    }

    async fn walk(db: &Db, orphans: &mut Orphans) -> u64 {
        let (mut slices, mut gone) = (Slices::default(), 0);
        while orphans.next.is_some() {
            gone += orphans.remove(db, &mut slices).await.unwrap();
        }
        gone
    }

    #[tokio::test]
    async fn versions_whose_content_is_gone_go_in_windows_and_others_stay() {
        for db in testing::databases().await {
            store(&db, 0..700).await;
            let mut orphans = Orphans::default();
            assert_eq!(walk(&db, &mut orphans).await, 0);
            run(&db, "DELETE FROM page_content WHERE used_at % 3 = 0".to_owned()).await;
            assert_eq!(walk(&db, &mut orphans).await, 0, "nobody has said that something went");
            orphans.expect();
            // What goes behind the walk's back is found by the next one.
            let first = orphans.remove(&db, &mut Slices::default()).await.unwrap();
            assert!((1..234).contains(&first), "one window: {first}");
            run(&db, "DELETE FROM page_content WHERE used_at % 3 = 1".to_owned()).await;
            orphans.expect();
            assert_eq!(first + walk(&db, &mut orphans).await, 2 * (234 + 233));
            for table in ["SELECT COUNT(*) FROM page_version", "SELECT COUNT(*) FROM page_earlier"] {
                assert_eq!(count(&db, table).await, 233);
            }
        }
    }
}
