//! What the store of pages and the list of extractors have of a team that is removed. No index leads to it, for every page
//! that is stored would have to write one, so it is looked for in windows, in the order of keys: one walk through these
//! tables for a team, in which no transaction passes much.
//!
//! The contents of its pages go with their versions. Where another team has a page of the same bytes, that is fetched again.

use sqlx::AssertSqlSafe;

use crate::clock::Stopwatch;
use crate::ids::{ExtractorId, TeamId};
use crate::store::db::slices::Slices;
use crate::store::{Db, StoreResult};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::cache::{self, Age, unlocked};
use super::orphans::end_of_window;

/// Contents that are removed together.
const CONTENTS: usize = 500;

/// Removes what these tables have of the team. Returns how many rows went.
///
/// # Errors
/// When the database cannot be asked; asked again it begins anew.
pub async fn remove(db: &Db, slices: &mut Slices, team: TeamId, now: Timestamp) -> StoreResult<u64> {
    let mut gone = remove_extractors(db, slices, team).await?;
    for age in [Age::Newest, Age::Earlier] {
        gone += remove_versions(db, slices, age, team, now).await?;
    }
    Ok(gone)
}

async fn remove_versions(db: &Db, slices: &mut Slices, age: Age, team: TeamId, now: Timestamp) -> StoreResult<u64> {
    let table = age.table();
    let (mut from, mut gone) = (Some((String::new(), String::new())), 0);
    while let Some((key, digest)) = from.take() {
        let last = end_of_window(db, age, (&key, &digest), slices.rows()).await?;
        let began = Stopwatch::start();
        let end = if last.is_some() { " AND (key, digest) <= ($4, $5)" } else { "" };
        let window = format!("FROM {table} WHERE team_id = $1 AND (key, digest) > ($2, $3){end}");
        let digests = format!("SELECT DISTINCT digest {window}");
        let digests: Vec<(String,)> = on_pool!(db, |pool| {
            let mut query = sqlx::query_as(AssertSqlSafe(digests)).bind(team).bind(&key).bind(&digest);
            if let Some((key, digest)) = &last {
                query = query.bind(key).bind(digest);
            }
            query.fetch_all(pool).await?
        });
        if !digests.is_empty() {
            // The contents first: whoever goes on after us finds them by what is left.
            let digests: Vec<String> = digests.into_iter().map(|row| row.0).collect();
            for part in digests.chunks(CONTENTS) {
                cache::drop_contents(db, part, now).await?;
            }
            let mut tx = db.begin_relaxed().await?;
            let lock = unlocked(&tx);
            let delete = format!("DELETE FROM {table} WHERE (key, digest) IN (SELECT key, digest {window}{lock})");
            gone += on_db!(&mut tx, |conn| {
                let mut query = sqlx::query(AssertSqlSafe(delete)).bind(team).bind(&key).bind(&digest);
                if let Some((key, digest)) = &last {
                    query = query.bind(key).bind(digest);
                }
                query.execute(conn).await?.rows_affected()
            });
            tx.commit().await?;
        }
        slices.pause(began).await;
        from = last;
    }
    Ok(gone)
}

async fn remove_extractors(db: &Db, slices: &mut Slices, team: TeamId) -> StoreResult<u64> {
    const LAST: &str = "SELECT id FROM extractor WHERE id > $1 ORDER BY id LIMIT 1 OFFSET $2";
    const DELETE: &str = "DELETE FROM extractor WHERE id > $1 AND id <= $2 AND team_id = $3";
    /// No id comes after it.
    const END: &str = "g";
    let (mut from, mut gone) = (String::new(), 0);
    while from != END {
        let rows = slices.rows();
        let last: Option<(ExtractorId,)> =
            on_pool!(db, |pool| sqlx::query_as(LAST).bind(&from).bind(rows - 1).fetch_optional(pool).await?);
        let to = last.map_or_else(|| END.to_owned(), |(last,)| last.to_string());
        let began = Stopwatch::start();
        let mut tx = db.begin_relaxed().await?;
        gone += on_db!(&mut tx, |conn| {
            sqlx::query(DELETE).bind(&from).bind(&to).bind(team).execute(conn).await?.rows_affected()
        });
        tx.commit().await?;
        slices.pause(began).await;
        from = to;
    }
    Ok(gone)
}
