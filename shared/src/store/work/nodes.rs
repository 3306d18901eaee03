//! Worker processes: who lives, where, and whose pages are orphans.

use crate::domain::node::{Load, NodeMove, NodeState};
use crate::ids::WorkerId;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool, queue};

/// Milliseconds between heartbeats.
pub const HEARTBEAT_MS: i64 = 2_000;
/// Without a heartbeat for this long a worker is dead to the others, as soon as one of them may judge ([`crate::witness`]).
pub const DEAD_MS: i64 = 9_000;
/// Without a heartbeat for this long a worker fences itself: it is cut off alone, perhaps, and others have what it had.
pub const FENCE_MS: i64 = 300_000;

/// One worker process.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct NodeRow {
    pub id: WorkerId,
    /// Host name and pid, for people.
    pub name: String,
    /// Boot id of the machine, which tells whether `pid` is ours to judge.
    pub host: String,
    pub pid: i64,
    /// Private listener the API reaches.
    pub address: String,
    pub state: NodeState,
    pub slots: i64,
    /// Browser sessions at once; 0: it takes none.
    pub session_slots: i64,
    /// Why it takes none although it should.
    pub sessions_refused: Option<String>,
    pub started_at: Timestamp,
    pub heartbeat_at: Timestamp,
}

/// The statement of [`NodeRow`], in a macro so that each statement stays one literal.
macro_rules! select_node {
    ($($rest:tt)+) => {
        sql!(
            "SELECT id, name, host, pid, address, state, slots, session_slots, sessions_refused, started_at, \
             heartbeat_at FROM worker_node ",
            $($rest)+
        )
    };
}

/// Announces a worker that starts.
pub async fn insert(tx: &mut Tx, node: &NodeRow) -> StoreResult<()> {
    const SQL: &str = sql!(
        "INSERT INTO worker_node (id, name, host, pid, address, state, slots, session_slots, sessions_refused, \
         started_at, heartbeat_at) VALUES ($1, $2, $3, $4, $5, ",
        NodeState::Live.sql(),
        ", $6, $7, $8, $9, $9)"
    );
    on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(node.id)
            .bind(&node.name)
            .bind(&node.host)
            .bind(node.pid)
            .bind(&node.address)
            .bind(node.slots)
            .bind(node.session_slots)
            .bind(node.sessions_refused.as_deref())
            .bind(node.started_at)
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(())
}

/// A sign of life of the process and of its workers in the queue library's books, which would otherwise hand their
/// wake-ups to others while they wait or drain. `load`: what it has to do at the moment, for people. Returns the state the
/// operator wants; `None`: declared dead.
pub async fn heartbeat(
    tx: &mut Tx,
    id: WorkerId,
    now: Timestamp,
    load: Option<&Load>,
) -> StoreResult<Option<NodeState>> {
    const OURS: &str = sql!(
        "UPDATE worker_node SET heartbeat_at = $2, load = COALESCE($3, load) WHERE id = $1 AND state <> ",
        NodeState::Dead.sql(),
        " RETURNING state"
    );
    let load = load.map(serde_json::to_string).transpose()?;
    let state: Option<(NodeState,)> =
        on_db!(tx, |conn| sqlx::query_as(OURS).bind(id).bind(now).bind(load).fetch_optional(conn).await?);
    let mine = format!("{id}/%");
    // The library's own tables, so the two differ.
    match tx {
        Tx::Sqlite(tx) => {
            sqlx::query("UPDATE Workers SET last_seen = strftime('%s', 'now') WHERE id LIKE $1")
                .bind(mine)
                .execute(&mut **tx)
                .await?;
        }
        Tx::Postgres(tx) => {
            sqlx::query("UPDATE apalis.workers SET last_seen = now() WHERE id LIKE $1")
                .bind(mine)
                .execute(&mut **tx)
                .await?;
        }
    }
    Ok(state.map(|s| s.0))
}

/// How a worker dies, whether it drained or not.
macro_rules! die {
    ($which:literal) => {
        sql!(
            "UPDATE worker_node SET state = ",
            NodeMove::Die.to().sql(),
            " WHERE state IN (",
            NodeMove::Die.from().sql(),
            ", ",
            NodeMove::Stop.from().sql(),
            ") AND ",
            $which
        )
    };
}

/// Declares one worker dead: what it has is given to others. Told again, it changes nothing.
pub async fn declare_dead(tx: &mut Tx, id: WorkerId) -> StoreResult<()> {
    const SQL: &str = die!("id = $1");
    on_db!(tx, |conn| sqlx::query(SQL).bind(id).execute(conn).await?.rows_affected());
    queue::give_back(tx, id).await
}

/// Says how many browser sessions a worker takes, or why it takes none.
pub async fn offer_sessions(tx: &mut Tx, id: WorkerId, slots: i64, refused: Option<&str>) -> StoreResult<()> {
    const SQL: &str = "UPDATE worker_node SET session_slots = $2, sessions_refused = $3 WHERE id = $1";
    on_db!(tx, |conn| sqlx::query(SQL).bind(id).bind(slots).bind(refused).execute(conn).await?.rows_affected());
    Ok(())
}

/// Says what keeps a worker's boxes within their bounds, for people.
pub async fn say_box_limits(tx: &mut Tx, id: WorkerId, limits: &str) -> StoreResult<()> {
    const SQL: &str = "UPDATE worker_node SET box_limits = $2 WHERE id = $1";
    on_db!(tx, |conn| sqlx::query(SQL).bind(id).bind(limits).execute(conn).await?.rows_affected());
    Ok(())
}

/// A worker with what it said of itself for people.
#[derive(Debug, Clone)]
pub struct NodeStory {
    pub node: NodeRow,
    /// `None`: it is of an earlier release.
    pub load: Option<Load>,
    pub box_limits: Option<String>,
}

/// Every worker known, newest first, with what it said of itself.
pub async fn stories(db: &Db) -> StoreResult<Vec<NodeStory>> {
    const SQL: &str = "SELECT id, load, box_limits FROM worker_node ORDER BY started_at DESC LIMIT 1000";
    type Said = (WorkerId, Option<String>, Option<String>);
    let said: Vec<Said> = on_pool!(db, |pool| sqlx::query_as(SQL).fetch_all(pool).await?);
    let story = |node: NodeRow| {
        let (load, box_limits) =
            said.iter().find(|s| s.0 == node.id).map(|s| (s.1.as_deref(), s.2.clone())).unwrap_or_default();
        let load = load.map(serde_json::from_str).transpose()?;
        Ok(NodeStory { node, load, box_limits })
    };
    list(db).await?.into_iter().map(story).collect()
}

/// What a live worker says of itself for whoever looks whether all is well. Those of earlier releases say less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub name: String,
    /// What keeps its boxes within their bounds.
    pub box_limits: Option<String>,
    /// Why it can start no browser for pages, while that is so.
    pub browser_problem: Option<String>,
}

/// The condition of each live worker.
pub async fn conditions(db: &Db, now: Timestamp) -> StoreResult<Vec<Condition>> {
    const SQL: &str = sql!(
        "SELECT name, box_limits, load FROM worker_node WHERE state = ",
        NodeState::Live.sql(),
        " AND heartbeat_at >= $1 ORDER BY started_at"
    );
    type Said = (String, Option<String>, Option<String>);
    let said: Vec<Said> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(now.plus_ms(-DEAD_MS)).fetch_all(pool).await?);
    let condition = |(name, box_limits, load): Said| {
        let load: Option<Load> = load.as_deref().map(serde_json::from_str).transpose()?;
        Ok(Condition { name, box_limits, browser_problem: load.and_then(|load| load.browser_problem) })
    };
    said.into_iter().map(condition).collect()
}

/// Asks a live worker, by name or id, to finish what it has and stop. `false`: no such worker.
pub async fn drain(tx: &mut Tx, name: &str) -> StoreResult<bool> {
    const SQL: &str = sql!(
        "UPDATE worker_node SET state = ",
        NodeMove::Drain.to().sql(),
        " WHERE (name = $1 OR id = $1) AND state = ",
        NodeMove::Drain.from().sql()
    );
    let done = on_db!(tx, |conn| sqlx::query(SQL).bind(name).execute(conn).await?.rows_affected());
    Ok(done > 0)
}

/// Declares workers dead whose heartbeat is older than [`DEAD_MS`], or so far ahead, which is of a clock that was set back
/// since. Returns how many.
pub async fn bury(tx: &mut Tx, now: Timestamp) -> StoreResult<u64> {
    const SQL: &str = die!("(heartbeat_at < $1 OR heartbeat_at > $2)");
    let before = now.plus_ms(-DEAD_MS);
    Ok(on_db!(tx, |conn| sqlx::query(SQL).bind(before).bind(now.plus_ms(DEAD_MS)).execute(conn).await?.rows_affected()))
}

/// Workers that may take work now.
pub async fn live(db: &Db, now: Timestamp) -> StoreResult<Vec<NodeRow>> {
    const SQL: &str =
        select_node!("WHERE state = ", NodeState::Live.sql(), " AND heartbeat_at >= $1 ORDER BY started_at");
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).bind(now.plus_ms(-DEAD_MS)).fetch_all(pool).await?))
}

/// Every worker known, newest first.
pub async fn list(db: &Db) -> StoreResult<Vec<NodeRow>> {
    const SQL: &str = select_node!("ORDER BY started_at DESC LIMIT 1000");
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).fetch_all(pool).await?))
}

/// Workers of one machine that are not declared dead.
pub async fn neighbours(tx: &mut Tx, host: &str) -> StoreResult<Vec<NodeRow>> {
    const SQL: &str = select_node!("WHERE state <> ", NodeState::Dead.sql(), " AND host = $1");
    Ok(on_db!(tx, |conn| sqlx::query_as(SQL).bind(host).fetch_all(conn).await?))
}
