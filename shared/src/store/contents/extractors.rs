//! What is learned of the pages of a site (wire 3.4, mode `learn`): pages that the model reads for it, the extractors that
//! it has written, and who does what at the moment.
//!
//! ```text
//! learning        a row for each team, site and wish, which whoever changes anything below locks first
//!   learning_page   pages: being read, by one worker, or read
//!   extractor       validated ──> retired
//! ```
//!
//! What a worker does has an end, after which another may do it; that of a dead worker has ended.

use crate::domain::extractor::{ExtractorMove, ExtractorState};
use crate::domain::node::NodeState;
use crate::ids::{ExtractorId, TeamId, WorkerId};
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// How long what is learned stays without being used, and pages that nothing was learned from, milliseconds.
pub const KEPT_MS: i64 = 90 * 86_400_000;
pub const PAGES_KEPT_MS: i64 = 7 * 86_400_000;
/// Bytes of pages that are kept for one team at once.
const TEAM_BYTES: i64 = 64 << 20;
/// Extractors of one site that are in use at once.
pub const MOST: i64 = 8;
/// Doubts that are looked into, for each thousand pages.
pub const DOUBTS: i64 = 2;
/// Checks in a row that may fail before an extractor goes.
pub const STRIKES: i64 = 2;
/// Rows removed at once.
const STEP: i64 = 200;

/// Who is still at work: the holder in column `$holder` until `$until`, at time `$now`, unless it is dead.
macro_rules! is_at_work {
    ($holder:literal, $until:literal, $now:literal) => {
        sql!(
            $holder,
            " IS NOT NULL AND ",
            $until,
            " > ",
            $now,
            " AND NOT EXISTS (SELECT 1 FROM worker_node n WHERE n.id = ",
            $holder,
            " AND n.state = ",
            NodeState::Dead.sql(),
            ")"
        )
    };
}

/// Whose pages, of which site, read for what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Topic {
    pub team: TeamId,
    pub site: String,
    pub wish: String,
}

/// A statement with what a topic is of as its next three values.
macro_rules! bind_topic {
    ($statement:expr, $topic:expr) => {
        $statement.bind($topic.team).bind(&$topic.site).bind(&$topic.wish)
    };
}

/// How far learning is.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Learning {
    pub misses: i64,
    pub failures: i64,
    pub rests_until: Timestamp,
    pub rounds: i64,
    pub rounds_since: Timestamp,
    /// An extractor is being written.
    #[sqlx(try_from = "i64")]
    pub is_writing: Flag,
}

impl Default for Learning {
    /// Nothing was learned yet.
    fn default() -> Self {
        let (never, is_writing) = (Timestamp(0), Flag(false));
        Self { misses: 0, failures: 0, rests_until: never, rounds: 0, rounds_since: never, is_writing }
    }
}

/// A truth as both databases compute it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flag(pub bool);

impl From<i64> for Flag {
    fn from(value: i64) -> Self {
        Self(value != 0)
    }
}

/// A page that is being read, or was.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct LearningPage {
    pub page: String,
    pub sketch: String,
    #[sqlx(try_from = "i64")]
    pub is_read: Flag,
}

/// An extractor in use.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Stored {
    pub id: ExtractorId,
    pub epoch: i64,
    pub pages: i64,
    pub next_check: i64,
}

const LEARNING: &str = sql!(
    "SELECT misses, failures, rests_until, rounds, rounds_since, CAST(CASE WHEN ",
    is_at_work!("writer", "writer_until", "$4"),
    " THEN 1 ELSE 0 END AS BIGINT) AS is_writing FROM learning WHERE team_id = $1 AND site = $2 AND wish = $3"
);

const PAGES: &str = sql!(
    "SELECT page, sketch, CAST(CASE WHEN reader IS NULL THEN 1 ELSE 0 END AS BIGINT) AS is_read FROM learning_page \
     WHERE team_id = $1 AND site = $2 AND wish = $3 AND (reader IS NULL OR ",
    is_at_work!("reader", "reader_until", "$4"),
    ") ORDER BY made_at, page"
);

/// How far learning is, and the pages of it.
pub async fn look(db: &Db, topic: &Topic, now: Timestamp) -> StoreResult<(Learning, Vec<LearningPage>)> {
    let learning: Option<Learning> =
        on_pool!(db, |pool| bind_topic!(sqlx::query_as(LEARNING), topic).bind(now).fetch_optional(pool).await?);
    let Some(learning) = learning else { return Ok(Default::default()) };
    let pages = on_pool!(db, |pool| bind_topic!(sqlx::query_as(PAGES), topic).bind(now).fetch_all(pool).await?);
    Ok((learning, pages))
}

/// The same, with the row locked until the transaction ends; it is made if there is none.
pub async fn lock(tx: &mut Tx, topic: &Topic, now: Timestamp) -> StoreResult<(Learning, Vec<LearningPage>)> {
    const LOCK: &str = "INSERT INTO learning (team_id, site, wish, used_at) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (team_id, site, wish) DO UPDATE SET used_at = excluded.used_at";
    on_db!(tx, |conn| bind_topic!(sqlx::query(LOCK), topic).bind(now).execute(conn).await?.rows_affected());
    let learning = on_db!(tx, |conn| bind_topic!(sqlx::query_as(LEARNING), topic).bind(now).fetch_one(conn).await?);
    let pages = on_db!(tx, |conn| bind_topic!(sqlx::query_as(PAGES), topic).bind(now).fetch_all(conn).await?);
    Ok((learning, pages))
}

/// A page is to be read by this worker until then. Under the lock.
pub async fn begin_reading(
    tx: &mut Tx,
    topic: &Topic,
    page: &str,
    reader: WorkerId,
    now: Timestamp,
    until: Timestamp,
) -> StoreResult<()> {
    // What stands there is of a worker whose time is over.
    const SQL: &str = "INSERT INTO learning_page (team_id, site, wish, page, reader, reader_until, made_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (team_id, site, wish, page) DO UPDATE SET \
        reader = excluded.reader, reader_until = excluded.reader_until, made_at = excluded.made_at";
    on_db!(tx, |conn| {
        bind_topic!(sqlx::query(SQL), topic)
            .bind(page)
            .bind(reader)
            .bind(until)
            .bind(now)
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(())
}

/// Nothing is to be learned from a page that this worker has read.
pub async fn leave(tx: &mut Tx, topic: &Topic, page: &str, reader: WorkerId) -> StoreResult<()> {
    const SQL: &str =
        "DELETE FROM learning_page WHERE team_id = $1 AND site = $2 AND wish = $3 AND page = $4 AND reader = $5";
    on_db!(tx, |conn| {
        bind_topic!(sqlx::query(SQL), topic).bind(page).bind(reader).execute(conn).await?.rows_affected()
    });
    Ok(())
}

/// Keeps a page that this worker has read. `false`: it was not for it to read any more, or the team has no room for it.
pub async fn keep(
    tx: &mut Tx,
    topic: &Topic,
    page: &str,
    reader: WorkerId,
    sketch: &str,
    body: &[u8],
) -> StoreResult<bool> {
    const ROOM: &str = "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM learning_page WHERE team_id = $1";
    const KEEP: &str = "UPDATE learning_page SET reader = NULL, reader_until = NULL, sketch = $6, body = $7, size = $8 \
        WHERE team_id = $1 AND site = $2 AND wish = $3 AND page = $4 AND reader = $5";
    let (used,): (i64,) = on_db!(tx, |conn| sqlx::query_as(ROOM).bind(topic.team).fetch_one(conn).await?);
    let size = body.len() as i64;
    if used + size > TEAM_BYTES {
        leave(tx, topic, page, reader).await?;
        return Ok(false);
    }
    let kept = on_db!(tx, |conn| {
        bind_topic!(sqlx::query(KEEP), topic)
            .bind(page)
            .bind(reader)
            .bind(sketch)
            .bind(body)
            .bind(size)
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(kept == 1)
}

/// What was kept of a page.
pub async fn body(tx: &mut Tx, topic: &Topic, page: &str) -> StoreResult<Option<Vec<u8>>> {
    const SQL: &str = "SELECT body FROM learning_page WHERE team_id = $1 AND site = $2 AND wish = $3 AND page = $4 \
        AND reader IS NULL";
    let found: Option<(Option<Vec<u8>>,)> =
        on_db!(tx, |conn| bind_topic!(sqlx::query_as(SQL), topic).bind(page).fetch_optional(conn).await?);
    Ok(found.and_then(|row| row.0))
}

/// Removes pages that were read. Under the lock.
pub async fn forget(tx: &mut Tx, topic: &Topic, pages: &[String]) -> StoreResult<()> {
    const SQL: &str = "DELETE FROM learning_page WHERE team_id = $1 AND site = $2 AND wish = $3 AND page = $4 \
        AND reader IS NULL";
    for page in pages {
        on_db!(&mut *tx, |conn| {
            bind_topic!(sqlx::query(SQL), topic).bind(page).execute(conn).await?.rows_affected()
        });
    }
    Ok(())
}

/// An extractor is to be written by this worker until then. Under the lock, when nobody else is at it.
pub async fn begin_writing(tx: &mut Tx, topic: &Topic, writer: WorkerId, until: Timestamp) -> StoreResult<()> {
    const SQL: &str =
        "UPDATE learning SET writer = $4, writer_until = $5 WHERE team_id = $1 AND site = $2 AND wish = $3";
    on_db!(tx, |conn| {
        bind_topic!(sqlx::query(SQL), topic).bind(writer).bind(until).execute(conn).await?.rows_affected()
    });
    Ok(())
}

/// The worker's writing has ended. `false`: it was not its any more, and what it wrote does not count. Under the lock.
pub async fn end_writing(tx: &mut Tx, topic: &Topic, writer: WorkerId) -> StoreResult<bool> {
    const SQL: &str = "UPDATE learning SET writer = NULL, writer_until = NULL \
        WHERE team_id = $1 AND site = $2 AND wish = $3 AND writer = $4";
    let ended =
        on_db!(tx, |conn| bind_topic!(sqlx::query(SQL), topic).bind(writer).execute(conn).await?.rows_affected());
    Ok(ended == 1)
}

/// Writes down how far learning is. Under the lock.
pub async fn set(tx: &mut Tx, topic: &Topic, learning: &Learning) -> StoreResult<()> {
    const SQL: &str = "UPDATE learning SET misses = $4, failures = $5, rests_until = $6, rounds = $7, rounds_since = $8 \
        WHERE team_id = $1 AND site = $2 AND wish = $3";
    on_db!(tx, |conn| {
        bind_topic!(sqlx::query(SQL), topic)
            .bind(learning.misses)
            .bind(learning.failures)
            .bind(learning.rests_until)
            .bind(learning.rounds)
            .bind(learning.rounds_since)
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(())
}

/// The extractors in use, the newest first.
pub async fn in_use(db: &Db, topic: &Topic) -> StoreResult<Vec<Stored>> {
    const SQL: &str = sql!(
        "SELECT id, epoch, pages, next_check FROM extractor WHERE team_id = $1 AND site = $2 AND wish = $3 \
         AND state = ",
        ExtractorState::Validated.sql(),
        " ORDER BY made_at DESC, id DESC LIMIT $4"
    );
    Ok(on_pool!(db, |pool| bind_topic!(sqlx::query_as(SQL), topic).bind(MOST).fetch_all(pool).await?))
}

/// What an extractor is, with its epoch.
pub async fn form(db: &Db, id: ExtractorId) -> StoreResult<Option<(i64, String)>> {
    const SQL: &str = "SELECT epoch, body FROM extractor WHERE id = $1";
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?))
}

/// Puts an extractor in use; of more than [`MOST`] the one goes that was not used for longest. Under the lock.
pub async fn insert(
    tx: &mut Tx,
    topic: &Topic,
    body: &str,
    next_check: i64,
    now: Timestamp,
) -> StoreResult<ExtractorId> {
    const INSERT: &str = sql!(
        "INSERT INTO extractor (id, team_id, site, wish, state, epoch, body, next_check, made_at, used_at) \
         VALUES ($1, $2, $3, $4, ",
        ExtractorState::Validated.sql(),
        ", 0, $5, $6, $7, $7)"
    );
    const RETIRE: &str = sql!(
        "UPDATE extractor SET state = ",
        ExtractorMove::Retire.to().sql(),
        " WHERE state = ",
        ExtractorMove::Retire.from().sql(),
        " AND id IN (SELECT id FROM extractor WHERE team_id = $1 AND site = $2 AND wish = $3 AND state = ",
        ExtractorMove::Retire.from().sql(),
        " ORDER BY used_at DESC, id DESC LIMIT 1000 OFFSET $4)"
    );
    let id = ExtractorId::new();
    on_db!(&mut *tx, |conn| {
        bind_topic!(sqlx::query(INSERT).bind(id), topic)
            .bind(body)
            .bind(next_check)
            .bind(now)
            .execute(conn)
            .await?
            .rows_affected()
    });
    on_db!(tx, |conn| bind_topic!(sqlx::query(RETIRE), topic).bind(MOST).execute(conn).await?.rows_affected());
    Ok(id)
}

/// Counts pages that an extractor has read.
pub async fn count(db: &Db, id: ExtractorId, pages: i64, now: Timestamp) -> StoreResult<()> {
    const SQL: &str = "UPDATE extractor SET pages = pages + $2, used_at = $3 WHERE id = $1";
    let mut tx = db.begin_relaxed().await?;
    on_db!(&mut tx, |conn| sqlx::query(SQL).bind(id).bind(pages).bind(now).execute(conn).await?.rows_affected());
    tx.commit().await
}

/// Takes the check that is due, if one is; the next one comes `after` so many more pages. `false`: none is due, or somebody
/// else has it.
pub async fn take_check(db: &Db, id: ExtractorId, after: i64) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "UPDATE extractor SET next_check = pages + $2 WHERE id = $1 AND next_check <= pages AND state = ",
        ExtractorState::Validated.sql()
    );
    let mut tx = db.begin_relaxed().await?;
    let taken = on_db!(&mut tx, |conn| sqlx::query(SQL).bind(id).bind(after).execute(conn).await?.rows_affected());
    tx.commit().await?;
    Ok(taken == 1)
}

/// Whether one more doubt is looked into.
pub async fn take_doubt(db: &Db, id: ExtractorId) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "UPDATE extractor SET doubts = doubts + 1 WHERE id = $1 AND doubts < $2 * (1 + pages / 1000) AND state = ",
        ExtractorState::Validated.sql()
    );
    let mut tx = db.begin_relaxed().await?;
    let taken = on_db!(&mut tx, |conn| sqlx::query(SQL).bind(id).bind(DOUBTS).execute(conn).await?.rows_affected());
    tx.commit().await?;
    Ok(taken == 1)
}

/// Writes what was learned of an extractor's pages since; its strikes are over. `false`: somebody else has changed it.
pub async fn rewrite(db: &Db, id: ExtractorId, epoch: i64, body: &str) -> StoreResult<bool> {
    const SQL: &str = "UPDATE extractor SET body = $3, epoch = epoch + 1, strikes = 0 WHERE id = $1 AND epoch = $2";
    let mut tx = db.begin_relaxed().await?;
    let written =
        on_db!(&mut tx, |conn| sqlx::query(SQL).bind(id).bind(epoch).bind(body).execute(conn).await?.rows_affected());
    tx.commit().await?;
    Ok(written == 1)
}

/// An extractor did not agree with the model's reading. The next page is held against it, too; the second time in a row it
/// goes.
pub async fn strike(db: &Db, id: ExtractorId) -> StoreResult<()> {
    const SQL: &str = sql!(
        "UPDATE extractor SET strikes = strikes + 1, next_check = 0, state = CASE WHEN strikes + 1 >= $2 THEN ",
        ExtractorMove::Retire.to().sql(),
        " ELSE state END WHERE id = $1 AND state = ",
        ExtractorMove::Retire.from().sql()
    );
    let mut tx = db.begin_relaxed().await?;
    on_db!(&mut tx, |conn| sqlx::query(SQL).bind(id).bind(STRIKES).execute(conn).await?.rows_affected());
    tx.commit().await
}

/// An extractor did agree.
pub async fn acquit(db: &Db, id: ExtractorId) -> StoreResult<()> {
    const SQL: &str = "UPDATE extractor SET strikes = 0 WHERE id = $1 AND strikes > 0";
    let mut tx = db.begin_relaxed().await?;
    on_db!(&mut tx, |conn| sqlx::query(SQL).bind(id).execute(conn).await?.rows_affected());
    tx.commit().await
}

/// Removes a part of what was not used for too long. `true` while there is more. What was learned of a site comes first, as
/// for whoever goes on learning, who has its pages and extractors only then.
pub async fn expire(tx: &mut Tx, now: Timestamp) -> StoreResult<bool> {
    const EXTRACTORS: &str = "DELETE FROM extractor WHERE used_at < $1 AND id IN \
        (SELECT id FROM extractor WHERE used_at < $1 LIMIT $2)";
    const PAGES: &str = "DELETE FROM learning_page WHERE made_at < $1 AND (team_id, site, wish, page) IN \
        (SELECT team_id, site, wish, page FROM learning_page WHERE made_at < $1 LIMIT $2)";
    const LEARNING: &str = "DELETE FROM learning WHERE used_at < $1 AND (team_id, site, wish) IN \
        (SELECT team_id, site, wish FROM learning WHERE used_at < $1 LIMIT $2)";
    // The age is asked for once more where the row is deleted: a row that was waited for may be in use again.
    let old = now.plus_ms(-KEPT_MS);
    let mut more = false;
    for (sql, before) in [(LEARNING, old), (PAGES, now.plus_ms(-PAGES_KEPT_MS)), (EXTRACTORS, old)] {
        let gone =
            on_db!(&mut *tx, |conn| sqlx::query(sql).bind(before).bind(STEP).execute(conn).await?.rows_affected());
        more |= gone == STEP as u64;
    }
    Ok(more)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::testing;

    fn topic(team: TeamId) -> Topic {
        Topic { team, site: "shop.test".to_owned(), wish: "w".repeat(64) }
    }

    fn read(pages: &[LearningPage]) -> Vec<(&str, bool)> {
        pages.iter().map(|page| (page.page.as_str(), page.is_read.0)).collect()
    }

    /// Those in use, in their order.
    async fn bodies(db: &Db, topic: &Topic) -> String {
        let mut bodies = Vec::new();
        for stored in in_use(db, topic).await.unwrap() {
            bodies.push(form(db, stored.id).await.unwrap().unwrap().1);
        }
        bodies.join(" ")
    }

    #[tokio::test]
    async fn pages_are_read_by_one_worker_at_a_time_and_kept_for_the_team() {
        for db in testing::databases().await {
            let (team, other) = (testing::team(&db, "a").await, testing::team(&db, "b").await);
            let (one, two, now) = (WorkerId::new(), WorkerId::new(), db.now());
            let (topic, theirs) = (topic(team), topic(other));
            assert_eq!(look(&db, &topic, now).await.unwrap(), Default::default());
            let mut tx = db.begin().await.unwrap();
            assert!(lock(&mut tx, &topic, now).await.unwrap().1.is_empty());
            begin_reading(&mut tx, &topic, "p", one, now, now.plus_ms(100)).await.unwrap();
            begin_reading(&mut tx, &topic, "q", one, now, now.plus_ms(900)).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(read(&look(&db, &topic, now).await.unwrap().1), [("p", false), ("q", false)]);
            assert_eq!(look(&db, &theirs, now).await.unwrap(), Default::default(), "teams are walls");
            let later = now.plus_ms(500);
            assert_eq!(read(&look(&db, &topic, later).await.unwrap().1), [("q", false)], "its time is over");
            let mut tx = db.begin().await.unwrap();
            begin_reading(&mut tx, &topic, "p", two, later, later.plus_ms(100)).await.unwrap();
            assert!(!keep(&mut tx, &topic, "p", one, "s", b"x").await.unwrap(), "another one reads it");
            assert!(keep(&mut tx, &topic, "p", two, "s", b"x").await.unwrap());
            leave(&mut tx, &topic, "q", one).await.unwrap();
            leave(&mut tx, &topic, "p", two).await.unwrap();
            assert_eq!(body(&mut tx, &topic, "p").await.unwrap().as_deref(), Some(&b"x"[..]));
            assert_eq!(body(&mut tx, &theirs, "p").await.unwrap(), None);
            tx.commit().await.unwrap();
            assert_eq!(read(&look(&db, &topic, later).await.unwrap().1), [("p", true)]);
            let mut tx = db.begin().await.unwrap();
            forget(&mut tx, &topic, &["p".to_owned()]).await.unwrap();
            tx.commit().await.unwrap();
            assert!(look(&db, &topic, later).await.unwrap().1.is_empty());
        }
    }

    #[tokio::test]
    async fn one_worker_writes_at_a_time_until_its_time_is_over() {
        for db in testing::databases().await {
            let topic = topic(testing::team(&db, "a").await);
            let (one, two, now) = (WorkerId::new(), WorkerId::new(), db.now());
            let mut tx = db.begin().await.unwrap();
            lock(&mut tx, &topic, now).await.unwrap();
            begin_writing(&mut tx, &topic, one, now.plus_ms(100)).await.unwrap();
            tx.commit().await.unwrap();
            assert!(look(&db, &topic, now).await.unwrap().0.is_writing.0);
            assert!(!look(&db, &topic, now.plus_ms(100)).await.unwrap().0.is_writing.0);
            let mut tx = db.begin().await.unwrap();
            lock(&mut tx, &topic, now).await.unwrap();
            begin_writing(&mut tx, &topic, two, now.plus_ms(900)).await.unwrap();
            assert!(!end_writing(&mut tx, &topic, one).await.unwrap(), "it came too late");
            assert!(end_writing(&mut tx, &topic, two).await.unwrap());
            let rests = Learning { failures: 2, rests_until: now.plus_ms(5), rounds: 3, ..Learning::default() };
            set(&mut tx, &topic, &rests).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(look(&db, &topic, now).await.unwrap().0, rests);
        }
    }

    #[tokio::test]
    async fn extractors_are_used_newest_first_checked_and_retired() {
        for db in testing::databases().await {
            let (team, other) = (testing::team(&db, "a").await, testing::team(&db, "b").await);
            let (topic, now) = (topic(team), db.now());
            let mut ids = Vec::new();
            for n in 0..=MOST {
                let mut tx = db.begin().await.unwrap();
                lock(&mut tx, &topic, now).await.unwrap();
                ids.push(insert(&mut tx, &topic, &format!("{n}"), 50, now.plus_ms(n)).await.unwrap());
                tx.commit().await.unwrap();
            }
            assert_eq!(bodies(&db, &topic).await, "8 7 6 5 4 3 2 1", "the oldest has gone");
            let theirs = Topic { team: other, ..topic.clone() };
            assert!(in_use(&db, &theirs).await.unwrap().is_empty(), "teams are walls");

            let id = ids[8];
            assert!(!take_check(&db, id, 250).await.unwrap(), "none is due");
            count(&db, id, 50, now.plus_ms(20)).await.unwrap();
            assert!(take_check(&db, id, 250).await.unwrap() && !take_check(&db, id, 250).await.unwrap());
            assert!(take_doubt(&db, id).await.unwrap() && take_doubt(&db, id).await.unwrap());
            assert!(!take_doubt(&db, id).await.unwrap(), "two for a thousand pages");
            strike(&db, id).await.unwrap();
            assert!(take_check(&db, id, 250).await.unwrap(), "the next page is held against it");
            acquit(&db, id).await.unwrap();
            strike(&db, id).await.unwrap();
            assert!(rewrite(&db, id, 0, "new").await.unwrap() && !rewrite(&db, id, 0, "late").await.unwrap());
            strike(&db, id).await.unwrap();
            assert_eq!(bodies(&db, &topic).await, "new 7 6 5 4 3 2 1");
            strike(&db, id).await.unwrap();
            assert_eq!(bodies(&db, &topic).await, "7 6 5 4 3 2 1", "twice in a row");

            let mut tx = db.begin().await.unwrap();
            assert!(!expire(&mut tx, now.plus_ms(KEPT_MS + 4)).await.unwrap());
            tx.commit().await.unwrap();
            assert_eq!(bodies(&db, &topic).await, "7 6 5 4");
        }
    }
}
