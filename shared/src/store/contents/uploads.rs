//! Files that callers send: blobs that are gone after a while, whoever dies meanwhile. Those that come apart from the call
//! that parses them have a row, by which every API process finds them.

use std::mem;

use bytes::BytesMut;

use super::retention;
use crate::blobs::{BlobWriter, Blobs};
use crate::domain::upload::{MOST_UNPARSED, UNPARSED_WINDOW_MS, VALID_MS};
use crate::ids::{JobId, KeyId, TeamId};
use crate::store::accounts::team_lock;
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{blocking, on_db, on_pool};

/// After which an upload is removed at the latest once nothing new can come of it, milliseconds: longer than any page that
/// reads it, and any file that is on its way, may take.
const KEPT_MS: i64 = 20 * 60_000;
/// Bytes that are written together.
const STEP: usize = 1 << 20;

/// Begins a file under an id of its own. It is removed by [`remove`], or some minutes later by itself: that is written
/// down before anything of the file is.
pub async fn begin(db: &Db) -> StoreResult<JobId> {
    let id = JobId::new();
    let mut tx = db.begin().await?;
    note_waste(&mut tx, id, db.now().plus_ms(KEPT_MS)).await?;
    tx.commit().await?;
    Ok(id)
}

async fn note_waste(tx: &mut Tx, id: JobId, due: Timestamp) -> StoreResult<()> {
    const SQL: &str = "INSERT INTO blob_waste (job_id, due_at) VALUES ($1, $2)";
    on_db!(tx, |conn| sqlx::query(SQL).bind(id).bind(due).execute(conn).await?.rows_affected());
    Ok(())
}

/// Removes a file now. Where that fails it is done later.
pub async fn remove(blobs: &Blobs, id: JobId) {
    let blobs = blobs.clone();
    let _ = blocking::run(move || blobs.remove_job(id)).await;
}

/// A file that is coming. Dropped before its end it leaves nothing.
#[derive(Debug)]
pub struct Receiving {
    /// Among the blobs.
    key: String,
    /// `None`: a write is under way, or has failed.
    writer: Option<BlobWriter>,
    /// Up to [`STEP`] bytes: a sender may have each of its bytes come alone, which is not to cost more than one.
    waiting: BytesMut,
}

impl Receiving {
    /// Begins a blob of the upload `id`, whose end stands in the rows already ([`begin`], [`offer`]).
    pub async fn begin(blobs: &Blobs, id: JobId) -> StoreResult<Self> {
        let (blobs, key) = (blobs.clone(), Blobs::upload_key(id));
        let opened = key.clone();
        let writer = blocking(move || blobs.writer(&opened)).await?;
        Ok(Self { key, writer: Some(writer), waiting: BytesMut::new() })
    }

    /// Adds a piece.
    pub async fn push(&mut self, piece: &[u8]) -> StoreResult<()> {
        if self.waiting.len() + piece.len() > STEP {
            self.write().await?;
        }
        if self.waiting.is_empty() {
            self.waiting.reserve(STEP);
        }
        self.waiting.extend_from_slice(piece);
        Ok(())
    }

    async fn write(&mut self) -> StoreResult<()> {
        let piece = mem::take(&mut self.waiting).freeze();
        if piece.is_empty() {
            return Ok(());
        }
        let mut writer = self.take()?;
        self.writer = Some(blocking(move || writer.write(piece).map(|()| writer)).await?);
        Ok(())
    }

    /// Stores it whole. Returns where it lies among the blobs.
    pub async fn end(mut self) -> StoreResult<String> {
        self.write().await?;
        let writer = self.take()?;
        blocking(move || writer.finish()).await?;
        Ok(self.key)
    }

    fn take(&mut self) -> StoreResult<BlobWriter> {
        let broken = || StoreError::BlobsAway(std::io::Error::other("an earlier part of the file was not written"));
        self.writer.take().ok_or_else(broken)
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> StoreResult<T> {
    blocking::run(work).await.flatten().map_err(StoreError::BlobsAway)
}

/// An address to be given out for a file.
#[derive(Debug)]
pub struct NewUpload<'a> {
    pub team: TeamId,
    pub key: Option<KeyId>,
    /// Without folders.
    pub name: &'a str,
    pub content_type: Option<&'a str>,
}

/// What came of asking for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    Given {
        id: JobId,
        expires_at: Timestamp,
    },
    /// The team has as many unparsed files as it may, the oldest of them until then.
    TooMany {
        until: Timestamp,
    },
}

/// Gives an address out, if the team may have one.
pub async fn offer(db: &Db, new: &NewUpload<'_>) -> StoreResult<Offered> {
    // Of those that were parsed there is no row.
    const UNPARSED: &str = "SELECT COUNT(*), MIN(created_at) FROM upload WHERE team_id = $1 AND created_at > $2";
    const INSERT: &str = "INSERT INTO upload (id, team_id, api_key_id, name, content_type, created_at, expires_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let (id, now) = (JobId::new(), db.now());
    let expires_at = now.plus_ms(VALID_MS);
    let since = now.plus_ms(-UNPARSED_WINDOW_MS);
    let mut tx = db.begin().await?;
    team_lock::lock(&mut tx, new.team).await?;
    let (count, oldest): (i64, Option<Timestamp>) =
        on_db!(&mut tx, |conn| sqlx::query_as(UNPARSED).bind(new.team).bind(since).fetch_one(conn).await?);
    if count >= MOST_UNPARSED {
        return Ok(Offered::TooMany { until: oldest.unwrap_or(now).plus_ms(UNPARSED_WINDOW_MS) });
    }
    note_waste(&mut tx, id, expires_at.plus_ms(KEPT_MS)).await?;
    on_db!(&mut tx, |conn| {
        sqlx::query(INSERT)
            .bind(id)
            .bind(new.team)
            .bind(new.key)
            .bind(new.name)
            .bind(new.content_type)
            .bind(now)
            .bind(expires_at)
            .execute(conn)
            .await?
            .rows_affected()
    });
    tx.commit().await?;
    Ok(Offered::Given { id, expires_at })
}

/// An upload that was not parsed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadRow {
    pub team: TeamId,
    /// Whose room among the bodies the file takes while it comes.
    pub key: Option<KeyId>,
    /// The file has come whole.
    pub is_there: bool,
}

/// The upload; `None`: it was parsed, or it is long gone.
pub async fn find(db: &Db, id: JobId) -> StoreResult<Option<UploadRow>> {
    const SQL: &str = "SELECT team_id, api_key_id, blob IS NOT NULL FROM upload WHERE id = $1";
    let found: Option<(TeamId, Option<KeyId>, bool)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?);
    Ok(found.map(|(team, key, is_there)| UploadRow { team, key, is_there }))
}

/// The file of an upload has come: it lies under `blob`. `false`: another one came before, or the address has expired.
pub async fn arrived(db: &Db, id: JobId, blob: &str) -> StoreResult<bool> {
    const SQL: &str = "UPDATE upload SET blob = $2 WHERE id = $1 AND blob IS NULL AND expires_at > $3";
    let mut tx = db.begin().await?;
    let now = db.now();
    let done =
        on_db!(&mut tx, |conn| sqlx::query(SQL).bind(id).bind(blob).bind(now).execute(conn).await?.rows_affected());
    tx.commit().await?;
    Ok(done == 1)
}

/// An upload that one caller parses, and nobody else meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    id: JobId,
    until: Timestamp,
    /// Where the file lies among the blobs.
    pub blob: String,
    pub name: String,
    pub content_type: Option<String>,
}

/// Takes an upload to parse it until `until`: who dies meanwhile gives it back by that. `None`: there is none, its file has
/// not come, or somebody else parses it; [`find`] tells.
pub async fn claim(db: &Db, id: JobId, until: Timestamp) -> StoreResult<Option<Claimed>> {
    const SQL: &str = "UPDATE upload SET claimed_until = $2 WHERE id = $1 AND blob IS NOT NULL AND name <> '' \
        AND (claimed_until IS NULL OR claimed_until <= $3) RETURNING blob, name, content_type";
    let now = db.now();
    let mut tx = db.begin().await?;
    let found: Option<(String, String, Option<String>)> =
        on_db!(&mut tx, |conn| sqlx::query_as(SQL).bind(id).bind(until).bind(now).fetch_optional(conn).await?);
    tx.commit().await?;
    Ok(found.map(|(blob, name, content_type)| Claimed { id, until, blob, name, content_type }))
}

/// Gives an upload back that was not parsed: it may be tried again.
pub async fn release(db: &Db, claimed: &Claimed) -> StoreResult<()> {
    const SQL: &str = "UPDATE upload SET claimed_until = NULL WHERE id = $1 AND claimed_until = $2";
    let mut tx = db.begin().await?;
    on_db!(&mut tx, |conn| {
        sqlx::query(SQL).bind(claimed.id).bind(claimed.until).execute(conn).await?.rows_affected()
    });
    tx.commit().await
}

/// An upload was parsed: nothing of it is kept.
pub async fn done(db: &Db, blobs: &Blobs, claimed: &Claimed) -> StoreResult<()> {
    const SQL: &str = "DELETE FROM upload WHERE id = $1";
    let mut tx = db.begin().await?;
    retention::overwrite(&mut tx, true).await?;
    on_db!(&mut tx, |conn| sqlx::query(SQL).bind(claimed.id).execute(conn).await?.rows_affected());
    retention::overwrite(&mut tx, false).await?;
    tx.commit().await?;
    remove(blobs, claimed.id).await;
    Ok(())
}

/// Takes out of the rows what expired uploads say of their files, and the rows that count no more. Their blobs go by
/// themselves.
pub async fn expire(tx: &mut Tx, now: Timestamp) -> StoreResult<()> {
    const NAMES: &str = "UPDATE upload SET name = '', content_type = NULL, blob = NULL \
        WHERE created_at < $1 AND name <> ''";
    const ROWS: &str = "DELETE FROM upload WHERE created_at < $1";
    let (names, rows) = (now.plus_ms(-VALID_MS - KEPT_MS), now.plus_ms(-UNPARSED_WINDOW_MS));
    on_db!(tx, |conn| {
        sqlx::query(NAMES).bind(names).execute(&mut *conn).await?;
        sqlx::query(ROWS).bind(rows).execute(conn).await?.rows_affected()
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::contents::waste;
    use crate::store::testing;

    fn blobs() -> Blobs {
        Blobs::open(&std::env::temp_dir().join(format!("weir-blobs-{}", crate::random::id()))).unwrap()
    }

    async fn given(db: &Db, team: TeamId) -> JobId {
        let new = NewUpload { team, key: None, name: "a.pdf", content_type: Some("application/pdf") };
        match offer(db, &new).await.unwrap() {
            Offered::Given { id, .. } => id,
            Offered::TooMany { .. } => panic!("too many"),
        }
    }

    async fn sent(db: &Db, blobs: &Blobs, id: JobId, text: &'static str) -> bool {
        let mut file = Receiving::begin(blobs, id).await.unwrap();
        for piece in text.as_bytes().chunks(2) {
            file.push(piece).await.unwrap();
        }
        let blob = file.end().await.unwrap();
        arrived(db, id, &blob).await.unwrap()
    }

    #[tokio::test]
    async fn the_first_file_that_comes_whole_is_parsed_by_one_and_gone() {
        for db in testing::databases().await {
            let (blobs, team) = (blobs(), testing::team(&db, "a").await);
            let id = given(&db, team).await;
            let until = db.now().plus_ms(60_000);
            assert_eq!(claim(&db, id, until).await.unwrap(), None, "nothing has come");
            assert_eq!(find(&db, id).await.unwrap(), Some(UploadRow { team, key: None, is_there: false }));
            drop(Receiving::begin(&blobs, id).await.unwrap());
            assert!(sent(&db, &blobs, id, "the first").await);
            assert!(!sent(&db, &blobs, id, "the second").await);

            let one = claim(&db, id, until).await.unwrap().unwrap();
            assert_eq!((one.name.as_str(), one.content_type.as_deref()), ("a.pdf", Some("application/pdf")));
            assert_eq!(blobs.get(&one.blob).unwrap(), b"the first");
            assert_eq!(claim(&db, id, until).await.unwrap(), None, "somebody parses it");
            release(&db, &one).await.unwrap();
            let again = claim(&db, id, until.plus_ms(1)).await.unwrap().unwrap();
            // Who is late gives nothing back that another has.
            release(&db, &one).await.unwrap();
            assert_eq!(claim(&db, id, until).await.unwrap(), None);
            done(&db, &blobs, &again).await.unwrap();
            assert_eq!((find(&db, id).await.unwrap(), claim(&db, id, until).await.unwrap()), (None, None));
            assert!(blobs.get(&one.blob).is_err());
        }
    }

    #[tokio::test]
    async fn a_team_has_ten_unparsed_files_in_a_day() {
        for db in testing::databases().await {
            let (team, other) = (testing::team(&db, "a").await, testing::team(&db, "b").await);
            // At once, as over several processes.
            let asked = futures_util::future::join_all((0..12).map(|_| async {
                let new = NewUpload { team, key: None, name: "a.pdf", content_type: None };
                offer(&db, &new).await.unwrap()
            }));
            let asked = asked.await;
            let ids = asked.iter().filter_map(|offered| match offered {
                Offered::Given { id, .. } => Some(*id),
                Offered::TooMany { until } => {
                    assert!(*until > db.now().plus_ms(UNPARSED_WINDOW_MS - 60_000));
                    None
                }
            });
            let ids = ids.collect::<Vec<_>>();
            assert_eq!(ids.len(), MOST_UNPARSED as usize);
            given(&db, other).await;
            let blobs = blobs();
            assert!(sent(&db, &blobs, ids[0], "x").await);
            let claimed = claim(&db, ids[0], db.now().plus_ms(1_000)).await.unwrap().unwrap();
            done(&db, &blobs, &claimed).await.unwrap();
            given(&db, team).await;
        }
    }

    #[tokio::test]
    async fn what_expires_loses_its_name_then_its_file_then_its_row() {
        for db in testing::databases().await {
            let (blobs, team) = (blobs(), testing::team(&db, "a").await);
            let id = given(&db, team).await;
            assert!(sent(&db, &blobs, id, "never parsed").await);
            let count = async |sql: &'static str| -> i64 {
                let found: (i64,) = on_pool!(&db, |pool| sqlx::query_as(sql).fetch_one(pool).await.unwrap());
                found.0
            };
            let expire_at = async |after: i64| {
                let mut tx = db.begin().await.unwrap();
                expire(&mut tx, db.now().plus_ms(after)).await.unwrap();
                tx.commit().await.unwrap();
            };
            expire_at(VALID_MS).await;
            assert_eq!(count("SELECT COUNT(*) FROM upload WHERE name = 'a.pdf'").await, 1);
            let blob = claim(&db, id, db.now()).await.unwrap().unwrap().blob;
            expire_at(VALID_MS + KEPT_MS + 60_000).await;
            assert_eq!(count("SELECT COUNT(*) FROM upload WHERE name = '' AND content_type IS NULL").await, 1);
            assert_eq!(claim(&db, id, db.now()).await.unwrap(), None);
            assert_eq!(blobs.get(&blob).unwrap(), b"never parsed");
            waste::remove_of_jobs(&db, &blobs, db.now().plus_ms(VALID_MS + KEPT_MS + 60_000)).await.unwrap();
            assert!(blobs.get(&blob).is_err());
            expire_at(UNPARSED_WINDOW_MS + 60_000).await;
            assert_eq!(count("SELECT COUNT(*) FROM upload").await, 0);
        }
    }
}
