//! Work that one process at a time does for all: a named lease with an end.

use crate::clock::APART_MS;
use crate::domain::node::NodeState;
use crate::ids::WorkerId;
use crate::on_db;
use crate::store::{StoreResult, Tx};
use crate::time::Timestamp;

/// Takes or renews the lease until `until`. `false`: another holder's is still running. That of a worker that is known
/// to be dead ends with it, and one that is to run far beyond `until` was taken by a clock that was ahead.
pub async fn take(tx: &mut Tx, name: &str, holder: WorkerId, now: Timestamp, until: Timestamp) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "INSERT INTO lease (name, holder, until) VALUES ($1, $2, $3) \
         ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until \
         WHERE lease.holder = excluded.holder OR lease.until < $4 OR lease.until > $5 \
         OR EXISTS (SELECT 1 FROM worker_node n WHERE n.id = lease.holder AND n.state = ",
        NodeState::Dead.sql(),
        ")"
    );
    let done = on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(name)
            .bind(holder)
            .bind(until)
            .bind(now)
            .bind(until.plus_ms(APART_MS))
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(done == 1)
}
