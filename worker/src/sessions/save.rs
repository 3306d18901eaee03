//! A profile's archive on its way to become the profile's state.
//!
//! A commit whose answer is lost may have happened, so every step here may be asked for again: what the rows name by then
//! is never removed.

use weir_shared::blobs::Blobs;
use weir_shared::domain::session::EndReason;
use weir_shared::fault::FaultPoint;
use weir_shared::ids::SessionId;
use weir_shared::store::profiles::{self, Published};
use weir_shared::store::{Db, StoreResult, sessions};

/// An archive in the blobs.
#[derive(Debug)]
pub(super) struct Archive {
    pub blob: String,
    pub size: i64,
    /// What an earlier try replaced, if that try was committed.
    replaced: Option<String>,
}

impl Archive {
    /// One that is not published yet.
    pub(super) fn new(blob: String, size: i64) -> Self {
        Self { blob, size, replaced: None }
    }

    /// Takes down how a try to publish it went. `false`: the profile belongs to somebody else by now.
    pub(super) fn tried(&mut self, published: Published) -> bool {
        match published {
            Published::Saved { replaced, .. } => {
                self.replaced = replaced.or(self.replaced.take());
                true
            }
            Published::Refused => {
                self.replaced = Some(self.blob.clone());
                false
            }
        }
    }

    /// Removes the blob that nothing names any more, once the last try is known to be committed.
    pub(super) async fn tidy(&mut self, blobs: &Blobs) {
        if let Some(unused) = self.replaced.take() {
            let blobs = blobs.clone();
            let _ = tokio::task::spawn_blocking(move || blobs.remove(&unused)).await;
        }
    }
}

/// Destroys a session's row, in one transaction with the publication of its archive, if there is one. After an error it
/// may be called again.
pub(super) async fn destroy(
    db: &Db,
    blobs: &Blobs,
    id: SessionId,
    reason: EndReason,
    mut archive: Option<&mut Archive>,
) -> StoreResult<()> {
    if archive.is_some() {
        db.faults().reach(FaultPoint::BetweenBlobAndRow)?;
    }
    let mut tx = db.begin().await?;
    if let Some(archive) = &mut archive {
        let published = profiles::publish(&mut tx, id, &archive.blob, archive.size, db.now()).await?;
        archive.tried(published);
    }
    sessions::destroy(&mut tx, id, reason, db.now()).await?;
    tx.commit().await?;
    if let Some(archive) = archive {
        archive.tidy(blobs).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use weir_shared::config::DatabaseUrl;
    use weir_shared::domain::node::NodeState;
    use weir_shared::domain::profile::ProfileUse;
    use weir_shared::domain::session::{CreateSession, SessionKind};
    use weir_shared::fault::Fault;
    use weir_shared::ids::{TeamId, WorkerId};
    use weir_shared::store::{self, PoolUse, nodes, teams};

    use super::*;

    async fn place(db: &Db, team: TeamId) -> SessionId {
        let profile = Some(ProfileUse { name: "p".to_owned(), save_changes: true });
        let request = CreateSession {
            ttl: 60,
            activity_ttl: 60,
            stream_web_view: false,
            profile,
            block_ads: true,
            location: None,
            warning: None,
        };
        let new = sessions::NewSession {
            team,
            key: None,
            kind: SessionKind::Browser,
            page: None,
            request: &request,
            default_limit: 10,
            metered: false,
            avoid: &[],
            only: None,
        };
        let mut tx = db.begin().await.unwrap();
        let id = sessions::create(&mut tx, &new, db.now()).await.unwrap().unwrap().id;
        tx.commit().await.unwrap();
        id
    }

    #[tokio::test]
    async fn a_save_whose_answer_was_lost_loses_nothing() {
        let root = std::env::temp_dir().join(format!("weir-save-{}", weir_shared::random::id()));
        let url = DatabaseUrl::Sqlite(root.join("weir.db"));
        let (db, blobs) = (Db::connect(&url, 2, PoolUse::Rows).await.unwrap(), Blobs::open(&root).unwrap());
        store::migrate(&db).await.unwrap();
        let (now, id) = (db.now(), WorkerId::new());
        let node = nodes::NodeRow {
            id,
            name: "worker".into(),
            host: "host".into(),
            pid: 1,
            address: "127.0.0.1:1".into(),
            state: NodeState::Live,
            slots: 1,
            session_slots: 2,
            sessions_refused: None,
            started_at: now,
            heartbeat_at: now,
        };
        let mut tx = db.begin().await.unwrap();
        let team = teams::insert(&mut tx, "a", now).await.unwrap();
        nodes::insert(&mut tx, &node).await.unwrap();
        tx.commit().await.unwrap();
        let end = async |id, archive: &mut Archive| destroy(&db, &blobs, id, EndReason::Deleted, Some(archive)).await;

        let (first, mut archive) = (place(&db, team).await, Archive::new("one".to_owned(), 3));
        blobs.put("one", b"one").unwrap();
        db.faults().arm(FaultPoint::BetweenBlobAndRow, Fault::Fail, 1);
        assert!(end(first, &mut archive).await.is_err());
        assert!(profiles::current(&db, team, "p").await.unwrap().is_none() && blobs.get("one").is_ok());
        end(first, &mut archive).await.unwrap();
        // Saved a second time, as by a worker that did not hear of its commit.
        end(first, &mut archive).await.unwrap();
        assert_eq!(profiles::current(&db, team, "p").await.unwrap().unwrap().blob, "one");
        assert_eq!(blobs.get("one").unwrap(), b"one");

        // The archive that it replaced is removed by the try whose commit is confirmed.
        let (second, mut archive) = (place(&db, team).await, Archive::new("two".to_owned(), 3));
        blobs.put("two", b"two").unwrap();
        let mut tx = db.begin().await.unwrap();
        archive.tried(profiles::publish(&mut tx, second, "two", 3, now).await.unwrap());
        sessions::destroy(&mut tx, second, EndReason::Deleted, now).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(blobs.get("one").unwrap(), b"one", "nobody heard of the commit");
        end(second, &mut archive).await.unwrap();
        assert_eq!(blobs.get("two").unwrap(), b"two");
        assert!(blobs.get("one").is_err());

        // A saver that was given up removes its own archive alone.
        let mut late = Archive::new("late".to_owned(), 4);
        blobs.put("late", b"late").unwrap();
        end(first, &mut late).await.unwrap();
        assert!(blobs.get("late").is_err() && blobs.get("two").is_ok());
        db.close().await;
        std::fs::remove_dir_all(root).unwrap();
    }
}
