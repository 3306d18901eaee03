//! Whether there is anything that the workers who sweep and tidy have to look after.
//!
//! On a service at rest there is not, and one read says so: the tasks themselves ask a table each, or begin a transaction,
//! which on SQLite takes the lock that every writer waits for. What is asked here may be more than what a task then finds
//! to do, and is never less.

use crate::domain::monitor::MonitorStatus;
use crate::domain::node::NodeState;
use crate::domain::session::SessionState;
use crate::domain::webhook::DeliveryState;
use crate::on_pool;
use crate::queue::{DONE_ON_POSTGRES, DONE_ON_SQLITE};
use crate::store::work::nodes::DEAD_MS;
use crate::store::work::page::rescue::IS_ORPHAN;
use crate::store::{Db, StoreResult};
use crate::time::Timestamp;

use super::sweep::{IS_TO_KEEP, to_keep};
/// Silent workers since `$1`, their pages; sessions and profiles in use; pages, deliveries and tasks that wait and were
/// due at `$2`.
const LOOK: &str = sql!(
    "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM worker_node WHERE state <> ",
    NodeState::Dead.sql(),
    " AND heartbeat_at < $1 LIMIT 1) AS found) + (SELECT COUNT(*) FROM (SELECT 1 FROM page WHERE ",
    IS_ORPHAN,
    " LIMIT 1) AS found) + (SELECT COUNT(*) FROM (SELECT 1 FROM browser_session WHERE state <> ",
    SessionState::Destroyed.sql(),
    " LIMIT 1) AS found) + (SELECT COUNT(*) FROM (SELECT 1 FROM profile_lease LIMIT 1) AS found) \
     + (SELECT COUNT(*) FROM (SELECT 1 FROM job WHERE queued > 0 LIMIT 1) AS found) \
     + (SELECT COUNT(*) FROM (SELECT 1 FROM webhook_delivery WHERE state = ",
    DeliveryState::Waiting.sql(),
    " AND next_at <= $2 LIMIT 1) AS found) \
     + (SELECT COUNT(*) FROM (SELECT 1 FROM task WHERE owner IS NOT NULL LIMIT 1) AS found) \
     + (SELECT COUNT(*) FROM (SELECT 1 FROM task WHERE due_at IS NOT NULL AND due_at <= $2 LIMIT 1) AS found)"
);

/// Whether a sweep may find something to do. `forgotten`: what was due then and still waits is to be reminded of.
pub async fn is_wanted(db: &Db, now: Timestamp, forgotten: Timestamp) -> StoreResult<bool> {
    let silent = now.plus_ms(-DEAD_MS);
    let found: (i64,) = on_pool!(db, |pool| sqlx::query_as(LOOK).bind(silent).bind(forgotten).fetch_one(pool).await?);
    Ok(found.0 > 0)
}

/// Teams that are removed; jobs and checks that somebody has cancelled, shortened or deleted; those that keep nothing; what is due at `$1`; jobs that
/// run for long.
const UNTIDY: &str = sql!(
    "EXISTS (SELECT 1 FROM job WHERE dropping) OR EXISTS (SELECT 1 FROM job WHERE zero_retention) \
     OR EXISTS (SELECT 1 FROM job WHERE ",
    IS_TO_KEEP,
    ") OR EXISTS (SELECT 1 FROM job WHERE expires_at <= $1) OR EXISTS (SELECT 1 FROM job_draft WHERE due_at <= $1) \
     OR EXISTS (SELECT 1 FROM monitor_check WHERE expires_at <= $1 AND next_at IS NULL) \
     OR EXISTS (SELECT 1 FROM monitor WHERE shortens) OR EXISTS (SELECT 1 FROM monitor WHERE status = ",
    MonitorStatus::Deleted.sql(),
    ") OR EXISTS (SELECT 1 FROM team WHERE removed_at IS NOT NULL)"
);

/// Whether who tidies may find something that is not left for its seldom rounds. `ttl_ms`: how long results stay.
pub async fn is_untidy(db: &Db, now: Timestamp, ttl_ms: i64) -> StoreResult<bool> {
    const ON_SQLITE: &str = sql!("SELECT EXISTS (SELECT 1 FROM ", DONE_ON_SQLITE, ") OR ", UNTIDY);
    const ON_POSTGRES: &str = sql!("SELECT EXISTS (SELECT 1 FROM ", DONE_ON_POSTGRES, ") OR ", UNTIDY);
    let look = match db {
        Db::Sqlite(_) => ON_SQLITE,
        Db::Postgres(_) => ON_POSTGRES,
    };
    let (begun, expiring) = to_keep(now, ttl_ms);
    let found: (bool,) =
        on_pool!(db, |pool| sqlx::query_as(look).bind(now).bind(begun).bind(expiring).fetch_one(pool).await?);
    Ok(found.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::JobKind;
    use crate::domain::node::NodeState;
    use crate::ids::WorkerId;
    use crate::store::testing;
    use crate::store::work::nodes::{self, NodeRow};

    fn worker(db: &Db) -> NodeRow {
        NodeRow {
            id: WorkerId::new(),
            name: "w".to_owned(),
            host: "h".to_owned(),
            pid: 1,
            address: "127.0.0.1:1".to_owned(),
            state: NodeState::Live,
            slots: 1,
            session_slots: 0,
            sessions_refused: None,
            started_at: db.now(),
            heartbeat_at: db.now(),
        }
    }

    #[tokio::test]
    async fn a_service_at_rest_asks_for_no_sweep_and_anything_that_may_be_lost_does() {
        for db in testing::databases().await {
            let wanted = async |after_ms: i64| {
                let now = db.now();
                is_wanted(&db, now.plus_ms(after_ms), now).await.expect("an answer")
            };
            assert!(!wanted(0).await, "nothing is there");
            let mut tx = db.begin().await.expect("a transaction");
            nodes::insert(&mut tx, &worker(&db)).await.expect("a worker");
            tx.commit().await.expect("a commit");
            assert!(!wanted(DEAD_MS / 2).await, "a worker lives");
            assert!(wanted(DEAD_MS + 1000).await, "the worker has fallen silent");
            let team = testing::team(&db, "t").await;
            testing::job(&db, team, JobKind::Batch, 1, None).await;
            assert!(wanted(0).await, "a page waits");
        }
    }

    #[tokio::test]
    async fn a_service_at_rest_is_tidy_until_something_is_over() {
        for db in testing::databases().await {
            let (now, day) = (db.now(), 86_400_000);
            let untidy = async |after_ms: i64| is_untidy(&db, now.plus_ms(after_ms), day).await.expect("an answer");
            assert!(!untidy(0).await, "nothing is there");
            let team = testing::team(&db, "t").await;
            testing::job(&db, team, JobKind::Batch, 1, None).await;
            assert!(!untidy(day / 4).await, "a job that runs");
            assert!(untidy(day / 2).await, "its results are to stay for longer");
            assert!(untidy(365 * day).await, "its time is over");
        }
    }
}
