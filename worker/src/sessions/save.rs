//! A profile's archive on its way to become the profile's state: it waits among the blobs until a row names it.
//!
//! A commit whose answer is lost may have happened, so every step here may be asked for again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use weir_shared::blobs::Blobs;
use weir_shared::clock;
use weir_shared::domain::session::EndReason;
use weir_shared::fault::FaultPoint;
use weir_shared::ids::SessionId;
use weir_shared::store::contents::waste;
use weir_shared::store::sessions::profiles::{self, Published};
use weir_shared::store::{Db, StoreError, StoreResult, sessions};

use super::profile::ProfileError;

/// Pauses between two tries to store an archive: the first, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];

/// What callers hear of a profile that was to be saved.
pub(super) const NOT_SAVED: &str = "The profile could not be saved; its last version stays.";

/// What the caller hears of a profile that was not saved: what is their own doing by name, the rest is ours.
pub(super) fn not_saved(error: &anyhow::Error) -> String {
    match error.downcast_ref::<ProfileError>() {
        Some(why @ (ProfileError::TooLarge | ProfileError::TooMany)) => {
            format!("The profile could not be saved, and its last version stays: {why}.")
        }
        _ => NOT_SAVED.to_owned(),
    }
}

/// What is written with a session's end besides its bill.
#[derive(Debug, Default)]
pub(super) struct Ending {
    pub archive: Option<Archive>,
    /// For the caller, beside what was said of the session before.
    pub warning: Option<String>,
}

/// An archive in the blobs.
#[derive(Debug, Clone)]
pub(super) struct Archive {
    pub blob: String,
    pub size: i64,
}

impl Archive {
    /// Stores one under this key. Where the blobs or the database are away it is tried again until then.
    pub(super) async fn store(db: &Db, blobs: &Blobs, key: String, packed: Vec<u8>, by: Instant) -> StoreResult<Self> {
        let packed = Arc::new(packed);
        let [mut pause, longest] = PAUSES;
        loop {
            // A silent place is not waited for any longer either: what is stored in the end has no owner then, and goes.
            let put = tokio::time::timeout_at(by, waste::put(db, blobs, &key, Arc::clone(&packed)));
            let error = match put.await {
                Ok(Ok(())) => return Ok(Self { blob: key, size: packed.len() as i64 }),
                Ok(Err(error)) => error,
                Err(_) => StoreError::BlobsAway(std::io::ErrorKind::TimedOut.into()),
            };
            if clock::instant() + pause >= by {
                return Err(error);
            }
            tracing::warn!(key, %error, "a profile cannot be stored yet");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }
}

/// Destroys a session's row, in one transaction with the publication of its archive, if there is one, and with what is to be
/// said of its end. After an error it may be called again.
pub(super) async fn destroy(db: &Db, id: SessionId, reason: EndReason, ending: &Ending) -> StoreResult<()> {
    let Ending { archive, warning } = ending;
    let mut warning = warning.as_deref();
    if archive.is_some() {
        db.faults().reach(FaultPoint::BetweenBlobAndRow)?;
    }
    let mut tx = db.begin().await?;
    if let Some(archive) = archive {
        let published = profiles::publish(&mut tx, id, &archive.blob, archive.size, db.now()).await?;
        if published == Published::Refused {
            tracing::warn!(session.id = %id, "the profile is not saved: it is somebody else's to save, or it took too long");
            warning = Some(NOT_SAVED);
        }
    }
    if let Some(text) = warning {
        sessions::warn(&mut tx, id, text).await?;
    }
    sessions::destroy(&mut tx, id, reason, db.now()).await?;
    tx.commit().await
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
    use weir_shared::store::accounts::teams;
    use weir_shared::store::work::nodes;
    use weir_shared::store::{self, PoolUse};

    use super::*;

    #[test]
    fn a_profile_that_is_too_large_is_told_with_its_bound() {
        for (error, words) in [
            (ProfileError::TooLarge.into(), "larger than 100 MiB"),
            (ProfileError::TooMany.into(), "more than 20000 files"),
        ] {
            let said = not_saved(&error);
            assert!(said.starts_with("The profile could not be saved") && said.contains(words), "{said}");
        }
        assert_eq!(not_saved(&anyhow::anyhow!("/a/path is gone")), NOT_SAVED);
    }

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
    async fn a_save_whose_answer_was_lost_loses_nothing_and_leaves_nothing() {
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
        let packed = |text: &str| text.as_bytes().to_vec();
        let soon = || clock::deadline(Duration::from_secs(60));
        let store = async |key: &str| Archive::store(&db, &blobs, key.to_owned(), packed(key), soon()).await.unwrap();
        let end = async |id, archive: &Archive| {
            let ending = Ending { archive: Some(archive.clone()), warning: None };
            destroy(&db, id, EndReason::Deleted, &ending).await
        };
        let said = async |id| sessions::load(&db, id).await.unwrap().unwrap().warning;
        let saved = async || profiles::current(&db, team, "p").await.unwrap().map(|version| version.blob);
        let kept = async |after_ms| {
            waste::remove(&db, &blobs, db.now().plus_ms(after_ms)).await.unwrap();
            ["one", "two", "late"].map(|key| blobs.get(key).is_ok_and(|bytes| bytes == key.as_bytes()))
        };

        let (first, archive) = (place(&db, team).await, store("one").await);
        db.faults().arm(FaultPoint::BetweenBlobAndRow, Fault::Fail, 1);
        assert!(end(first, &archive).await.is_err());
        assert_eq!((saved().await, kept(0).await), (None, [true, false, false]));
        end(first, &archive).await.unwrap();
        // Saved a second time, as by a worker that did not hear of its commit.
        end(first, &archive).await.unwrap();
        assert_eq!((saved().await, kept(waste::OWNERLESS_MS).await), (Some("one".to_owned()), [true, false, false]));
        assert_eq!(said(first).await, None);

        // The archive that it replaces goes, whoever hears of the commit.
        let (second, archive) = (place(&db, team).await, store("two").await);
        end(second, &archive).await.unwrap();
        assert_eq!((saved().await, kept(0).await), (Some("two".to_owned()), [false, true, false]));

        // One of a saver that was given up goes as well.
        end(first, &store("late").await).await.unwrap();
        assert_eq!((saved().await, kept(0).await), (Some("two".to_owned()), [false, true, true]));
        assert_eq!(kept(waste::OWNERLESS_MS).await, [false, true, false]);

        // What has waited for so long that it may be gone is not saved any more.
        let (third, archive) = (place(&db, team).await, store("late").await);
        assert_eq!(kept(waste::OWNERLESS_MS).await, [false, true, false]);
        end(third, &archive).await.unwrap();
        assert_eq!(saved().await.as_deref(), Some("two"));
        assert_eq!(said(third).await.as_deref(), Some(NOT_SAVED));
        db.close().await;
        std::fs::remove_dir_all(root).unwrap();
    }

    #[tokio::test]
    async fn an_archive_is_stored_when_its_place_is_back() {
        let root = std::env::temp_dir().join(format!("weir-save-{}", weir_shared::random::id()));
        let db = Db::connect(&DatabaseUrl::Sqlite(root.join("weir.db")), 2, PoolUse::Rows).await.unwrap();
        store::migrate(&db).await.unwrap();
        let (place, away) = (root.join("blobs"), root.join("away"));
        let blobs = Blobs::open(&place).unwrap();
        std::fs::rename(&place, &away).unwrap();
        std::fs::write(&place, "no folder").unwrap();
        let store = async |by| Archive::store(&db, &blobs, "one".to_owned(), b"one".to_vec(), by).await;
        assert!(store(clock::deadline(PAUSES[0] / 2)).await.is_err());
        let back = async {
            tokio::time::sleep(PAUSES[0]).await;
            std::fs::remove_file(&place).unwrap();
            std::fs::rename(&away, &place).unwrap();
        };
        let (stored, ()) = tokio::join!(store(clock::deadline(Duration::from_secs(60))), back);
        assert_eq!((stored.unwrap().size, blobs.get("one").unwrap().as_slice()), (3, b"one".as_slice()));
        db.close().await;
        std::fs::remove_dir_all(root).unwrap();
    }
}
