//! Profiles: browser state that sessions and pages of a team share under a name (spec 2.1).
//!
//! The row names the last complete archive. Only the session or page that holds the profile's lease replaces it, so a
//! saver that was given up meanwhile cannot overwrite the work of the next one. A page's lease bears its id, counts only
//! for the attempt that is the page's current one, and is freed by the sweeper when its worker could not.

use crate::domain::job::PageState;
use crate::ids::{SessionId, TeamId};
use crate::store::accounts::team_lock;
use crate::store::contents::waste;
use crate::store::work::page::rows::Claimed;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// The state that was saved last.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ProfileVersion {
    /// 1 upwards.
    pub version: i64,
    /// Key of the blob.
    pub blob: String,
    /// Bytes of the blob.
    pub size: i64,
}

/// What is saved under the name; `None`: nothing yet. A reader whose blob is gone reads this again: a newer version has
/// taken its place.
pub async fn current(db: &Db, team: TeamId, name: &str) -> StoreResult<Option<ProfileVersion>> {
    const SQL: &str = "SELECT version, blob, size FROM profile WHERE team_id = $1 AND name = $2";
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(name).fetch_optional(pool).await?))
}

/// How a save ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// Sessions load it from now on, and the blob that it replaces is waste. A save whose answer was lost may be asked for
    /// again.
    Saved { version: i64 },
    /// The session is not the profile's saver, or not any more, or its blob has waited for too long.
    Refused,
}

/// Makes `blob`, which was put with [`waste::put`], the profile's state. The session must hold the lease, which it keeps
/// until it is destroyed.
pub async fn publish(tx: &mut Tx, session: SessionId, blob: &str, size: i64, now: Timestamp) -> StoreResult<Published> {
    const LEASE: &str = "SELECT team_id, name FROM profile_lease WHERE session_id = $1";
    // Another try of this save may have been committed, its lease with it.
    const SAVED: &str = "SELECT p.version FROM browser_session s \
        JOIN profile p ON p.team_id = s.team_id AND p.name = s.profile_name WHERE s.id = $1 AND p.blob = $2";
    let found: Option<(TeamId, String)> =
        on_db!(tx, |conn| sqlx::query_as(LEASE).bind(session).fetch_optional(conn).await?);
    if let Some((team, name)) = found {
        team_lock::lock(tx, team).await?;
        // The lease may have gone while we waited for the lock.
        let held: Option<(TeamId, String)> =
            on_db!(tx, |conn| sqlx::query_as(LEASE).bind(session).fetch_optional(conn).await?);
        if held.is_some() {
            return replace(tx, team, &name, blob, size, now).await;
        }
    }
    let saved: Option<(i64,)> =
        on_db!(tx, |conn| sqlx::query_as(SAVED).bind(session).bind(blob).fetch_optional(conn).await?);
    Ok(saved.map_or(Published::Refused, |(version,)| Published::Saved { version }))
}

async fn replace(
    tx: &mut Tx,
    team: TeamId,
    name: &str,
    blob: &str,
    size: i64,
    now: Timestamp,
) -> StoreResult<Published> {
    const OLD: &str = "SELECT version, blob FROM profile WHERE team_id = $1 AND name = $2";
    const SQL: &str = "INSERT INTO profile (team_id, name, version, blob, size, updated_at) \
        VALUES ($1, $2, 1, $3, $4, $5) ON CONFLICT (team_id, name) DO UPDATE SET version = profile.version + 1, \
        blob = excluded.blob, size = excluded.size, updated_at = excluded.updated_at RETURNING version";
    let old: Option<(i64, String)> =
        on_db!(tx, |conn| sqlx::query_as(OLD).bind(team).bind(name).fetch_optional(conn).await?);
    if let Some((version, _)) = old.as_ref().filter(|(_, old)| old == blob) {
        return Ok(Published::Saved { version: *version });
    }
    if !waste::keep(tx, blob, now).await? {
        return Ok(Published::Refused);
    }
    if let Some((_, old)) = old {
        waste::expect(tx, &[old], now).await?;
    }
    let saved: (i64,) = on_db!(tx, |conn| {
        sqlx::query_as(SQL).bind(team).bind(name).bind(blob).bind(size).bind(now).fetch_one(conn).await?
    });
    Ok(Published::Saved { version: saved.0 })
}

/// Whether a page may save a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageLease {
    Taken,
    /// Another page of the same job saves it, and will be done.
    InLine,
    /// Somebody else saves it.
    Busy,
}

/// The attempt is still the page's current one.
const IS_CURRENT: &str = "SELECT COUNT(*) FROM page WHERE id = $1 AND epoch = $2 AND state || '' = 'running'";

async fn is_current(tx: &mut Tx, page: &Claimed) -> StoreResult<bool> {
    let found: (i64,) =
        on_db!(tx, |conn| sqlx::query_as(IS_CURRENT).bind(page.id).bind(page.epoch).fetch_one(conn).await?);
    Ok(found.0 > 0)
}

/// Takes the lease of a profile for a page that is worked on.
pub async fn take_for_page(tx: &mut Tx, page: &Claimed, name: &str) -> StoreResult<PageLease> {
    const TAKE: &str = "INSERT INTO profile_lease (team_id, name, session_id) VALUES ($1, $2, $3) \
        ON CONFLICT DO NOTHING";
    const HOLDER: &str = "SELECT session_id FROM profile_lease WHERE team_id = $1 AND name = $2";
    const SAME_JOB: &str = "SELECT COUNT(*) FROM page WHERE id = $1 AND job_id = $2 AND state || '' = 'running'";
    team_lock::lock(tx, page.team_id).await?;
    if !is_current(tx, page).await? {
        return Ok(PageLease::Busy);
    }
    on_db!(tx, |conn| {
        sqlx::query(TAKE).bind(page.team_id).bind(name).bind(page.id).execute(conn).await?.rows_affected()
    });
    let holder: Option<(String,)> =
        on_db!(tx, |conn| sqlx::query_as(HOLDER).bind(page.team_id).bind(name).fetch_optional(conn).await?);
    let Some((holder,)) = holder else { return Ok(PageLease::Busy) };
    if holder == page.id.to_string() {
        return Ok(PageLease::Taken);
    }
    let same: (i64,) =
        on_db!(tx, |conn| sqlx::query_as(SAME_JOB).bind(holder).bind(page.job_id).fetch_one(conn).await?);
    Ok(if same.0 > 0 { PageLease::InLine } else { PageLease::Busy })
}

/// Makes `blob`, which was put with [`waste::put`], the profile's state, if the attempt still holds the lease.
pub async fn publish_for_page(
    tx: &mut Tx,
    page: &Claimed,
    name: &str,
    blob: &str,
    size: i64,
    now: Timestamp,
) -> StoreResult<Published> {
    const HELD: &str = "SELECT COUNT(*) FROM profile_lease WHERE team_id = $1 AND name = $2 AND session_id = $3";
    team_lock::lock(tx, page.team_id).await?;
    let owner = (page.team_id, page.id);
    let held: (i64,) =
        on_db!(tx, |conn| sqlx::query_as(HELD).bind(owner.0).bind(name).bind(owner.1).fetch_one(conn).await?);
    if held.0 == 0 || !is_current(tx, page).await? {
        return Ok(Published::Refused);
    }
    replace(tx, page.team_id, name, blob, size, now).await
}

/// Gives the lease of a page's attempt back.
pub async fn release_for_page(tx: &mut Tx, page: &Claimed) -> StoreResult<()> {
    const SQL: &str = "DELETE FROM profile_lease WHERE session_id = $1 AND EXISTS (SELECT 1 FROM page \
        WHERE page.id = $1 AND page.epoch = $2)";
    on_db!(tx, |conn| sqlx::query(SQL).bind(page.id).bind(page.epoch).execute(conn).await?.rows_affected());
    Ok(())
}

/// Frees leases of pages that nobody works on. Returns how many.
pub async fn free_abandoned(tx: &mut Tx) -> StoreResult<u64> {
    const SQL: &str = sql!(
        "DELETE FROM profile_lease WHERE EXISTS (SELECT 1 FROM page \
         WHERE page.id = profile_lease.session_id AND page.state <> ",
        PageState::Running.sql(),
        ") OR (NOT EXISTS (SELECT 1 FROM page WHERE page.id = profile_lease.session_id) \
         AND NOT EXISTS (SELECT 1 FROM browser_session s WHERE s.id = profile_lease.session_id))"
    );
    Ok(on_db!(tx, |conn| sqlx::query(SQL).execute(conn).await?.rows_affected()))
}

/// What became of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// It is gone, and its blob is waste.
    Removed,
    /// Nothing is saved under this name.
    Missing,
    /// A live session will save it.
    Busy,
}

/// Forgets a profile.
pub async fn remove(tx: &mut Tx, team: TeamId, name: &str, now: Timestamp) -> StoreResult<Removal> {
    const LEASE: &str = "SELECT COUNT(*) FROM profile_lease WHERE team_id = $1 AND name = $2";
    const SQL: &str = "DELETE FROM profile WHERE team_id = $1 AND name = $2 RETURNING blob";
    team_lock::lock(tx, team).await?;
    let savers: (i64,) = on_db!(tx, |conn| sqlx::query_as(LEASE).bind(team).bind(name).fetch_one(conn).await?);
    if savers.0 > 0 {
        return Ok(Removal::Busy);
    }
    let removed: Option<(String,)> =
        on_db!(tx, |conn| sqlx::query_as(SQL).bind(team).bind(name).fetch_optional(conn).await?);
    let Some((blob,)) = removed else { return Ok(Removal::Missing) };
    waste::expect(tx, &[blob], now).await?;
    Ok(Removal::Removed)
}

/// Forgets up to `limit` profiles of a team that nobody saves any more. Returns how many.
pub async fn remove_of_team(tx: &mut Tx, team: TeamId, limit: i64, now: Timestamp) -> StoreResult<u64> {
    const SQL: &str = "DELETE FROM profile WHERE (team_id, name) IN (SELECT p.team_id, p.name FROM profile p \
        WHERE p.team_id = $1 AND NOT EXISTS (SELECT 1 FROM profile_lease l WHERE l.team_id = p.team_id \
        AND l.name = p.name) LIMIT $2) RETURNING blob";
    team_lock::lock(tx, team).await?;
    let removed: Vec<(String,)> = on_db!(tx, |conn| sqlx::query_as(SQL).bind(team).bind(limit).fetch_all(conn).await?);
    let blobs: Vec<String> = removed.into_iter().map(|row| row.0).collect();
    waste::expect(tx, &blobs, now).await?;
    Ok(blobs.len() as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::domain::job::JobKind;
    use crate::ids::WorkerId;
    use crate::store::testing;
    use crate::store::work::page::claim;
    use crate::store::work::page::end::{Finished, Outcome};
    use crate::store::work::page::finish::finish_many;

    async fn claimed(db: &Db, team: TeamId, page: crate::ids::PageId) -> Claimed {
        claim::claim_one(db, team, page, WorkerId::new(), 50, db.now()).await.unwrap().unwrap().0
    }

    #[tokio::test]
    async fn one_page_at_a_time_saves_a_profile_as_long_as_its_attempt_counts() {
        for db in testing::databases().await {
            let team = testing::team(&db, "a").await;
            let (_, ids) = testing::job(&db, team, JobKind::Batch, 2, None).await;
            let (_, other) = testing::job(&db, team, JobKind::Batch, 1, None).await;
            let (one, two) = (claimed(&db, team, ids[0]).await, claimed(&db, team, ids[1]).await);
            let stranger = claimed(&db, team, other[0]).await;
            let now = db.now();
            let mut tx = db.begin().await.unwrap();
            assert_eq!(take_for_page(&mut tx, &one, "p").await.unwrap(), PageLease::Taken);
            assert_eq!(take_for_page(&mut tx, &one, "p").await.unwrap(), PageLease::Taken);
            assert_eq!(take_for_page(&mut tx, &two, "p").await.unwrap(), PageLease::InLine);
            assert_eq!(take_for_page(&mut tx, &stranger, "p").await.unwrap(), PageLease::Busy);
            assert_eq!(take_for_page(&mut tx, &stranger, "q").await.unwrap(), PageLease::Taken);
            assert_eq!(remove(&mut tx, team, "p", now).await.unwrap(), Removal::Busy);
            assert_eq!(
                publish_for_page(&mut tx, &one, "p", "blob", 4, now).await.unwrap(),
                Published::Refused,
                "not put"
            );
            waste::expect(&mut tx, &["blob".to_owned()], now.plus_ms(waste::OWNERLESS_MS)).await.unwrap();
            let saved = publish_for_page(&mut tx, &one, "p", "blob", 4, now).await.unwrap();
            assert_eq!(saved, Published::Saved { version: 1 });
            assert_eq!(publish_for_page(&mut tx, &two, "p", "x", 1, now).await.unwrap(), Published::Refused);
            release_for_page(&mut tx, &one).await.unwrap();
            assert_eq!(take_for_page(&mut tx, &two, "p").await.unwrap(), PageLease::Taken);
            tx.commit().await.unwrap();
            assert_eq!(current(&db, team, "p").await.unwrap().unwrap().blob, "blob");

            // Its worker is lost: what that attempt still does counts no more, and the sweeper frees the lease.
            let mut tx = db.begin().await.unwrap();
            assert_eq!(free_abandoned(&mut tx).await.unwrap(), 0);
            let lost = Outcome::Lost { reason: "test" };
            let end = [Finished { page: two.clone(), kind: None, key: None, outcome: lost }];
            finish_many(&mut tx, &end, now).await.unwrap();
            assert_eq!(publish_for_page(&mut tx, &two, "p", "late", 1, now).await.unwrap(), Published::Refused);
            assert_eq!(free_abandoned(&mut tx).await.unwrap(), 1);
            assert_eq!(take_for_page(&mut tx, &stranger, "p").await.unwrap(), PageLease::Busy, "it has one of its own");
            tx.commit().await.unwrap();
        }
    }
}
