//! Rows of what processes did by the minute and by the hour (see [`crate::figures`]), and how things stand at this moment.

use crate::domain::figures::Figures;
use crate::domain::job::PageState;
use crate::domain::node::NodeState;
use crate::domain::session::SessionState;
use crate::ids::TeamId;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// How long minutes are kept, milliseconds: a day and an hour.
pub const MINUTES_KEPT_MS: i64 = 25 * 3_600_000;
/// How long hours are kept, milliseconds: eight days.
pub const HOURS_KEPT_MS: i64 = 8 * 86_400_000;
/// Rows removed at once.
const STEP: i64 = 2_000;
/// Rows written by one statement: five values each.
const AT_ONCE: usize = 200;

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    Minute,
    Hour,
}

impl Span {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
        }
    }

    /// Its length, milliseconds.
    pub const fn ms(self) -> i64 {
        match self {
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
        }
    }

    /// When the one began that this moment is in.
    pub const fn start(self, at: Timestamp) -> Timestamp {
        Timestamp(at.0 - at.0.rem_euclid(self.ms()))
    }
}

/// A row to be written.
#[derive(Debug, Clone)]
pub struct Row {
    pub span: Span,
    /// `None`: the whole process.
    pub team: Option<TeamId>,
    pub at: Timestamp,
    pub process: String,
    pub figures: Figures,
}

/// Writes rows; what was told of the same span before is replaced.
pub async fn write(db: &Db, rows: &[Row]) -> StoreResult<()> {
    let mut tx = db.begin_relaxed().await?;
    for part in rows.chunks(AT_ONCE) {
        let bodies: Vec<String> =
            part.iter().map(|row| serde_json::to_string(&row.figures)).collect::<Result<_, _>>()?;
        on_db!(&mut tx, |conn| {
            let mut insert = sqlx::QueryBuilder::new("INSERT INTO figure (span, team_id, at, process, body) ");
            insert.push_values(part.iter().zip(&bodies), |mut values, (row, body)| {
                values
                    .push_bind(row.span.as_str())
                    .push_bind(row.team.map(|team| team.to_string()).unwrap_or_default())
                    .push_bind(row.at)
                    .push_bind(row.process.as_str())
                    .push_bind(body.as_str());
            });
            insert.push(" ON CONFLICT (span, team_id, at, process) DO UPDATE SET body = excluded.body");
            insert.build().persistent(false).execute(conn).await?.rows_affected()
        });
    }
    tx.commit().await
}

/// What processes did between two moments, oldest first; of a team, or of everybody.
pub async fn read(
    db: &Db,
    span: Span,
    team: Option<TeamId>,
    from: Timestamp,
    to: Timestamp,
) -> StoreResult<Vec<(Timestamp, Figures)>> {
    const SQL: &str =
        "SELECT at, body FROM figure WHERE span = $1 AND team_id = $2 AND at >= $3 AND at < $4 ORDER BY at";
    let team = team.map(|team| team.to_string()).unwrap_or_default();
    let rows: Vec<(Timestamp, String)> = on_pool!(db, |pool| {
        sqlx::query_as(SQL).bind(span.as_str()).bind(team).bind(from).bind(to).fetch_all(pool).await?
    });
    rows.into_iter().map(|(at, body)| Ok((at, serde_json::from_str(&body)?))).collect()
}

/// Removes a part of what is too old.
pub async fn expire(tx: &mut Tx, now: Timestamp) -> StoreResult<()> {
    const SQL: &str = "DELETE FROM figure WHERE (span, team_id, at, process) IN \
        (SELECT span, team_id, at, process FROM figure WHERE span = $1 AND at < $2 LIMIT $3)";
    for (span, kept) in [(Span::Minute, MINUTES_KEPT_MS), (Span::Hour, HOURS_KEPT_MS)] {
        let before = now.plus_ms(-kept);
        on_db!(tx, |conn| {
            sqlx::query(SQL).bind(span.as_str()).bind(before).bind(STEP).execute(conn).await?.rows_affected()
        });
    }
    Ok(())
}

/// One line of how things stand at this moment.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Line {
    /// `queue`, `running`, `sessions` of a team, or `node`.
    pub what: String,
    /// The team, or the worker.
    pub id: String,
    /// A worker's name, state and load.
    pub name: Option<String>,
    pub state: Option<String>,
    pub load: Option<String>,
    /// Pages, sessions, or a worker's slots.
    pub count: i64,
    /// Jobs, or a worker's session slots.
    pub more: i64,
    /// Of the oldest job with pages that wait, or of a worker's last heartbeat.
    pub at: Option<i64>,
}

/// How things stand at this moment, for all teams, in one statement.
pub async fn now(db: &Db) -> StoreResult<Vec<Line>> {
    const SQL: &str = sql!(
        "SELECT 'queue' AS what, team_id AS id, NULL AS name, NULL AS state, NULL AS load, \
         CAST(SUM(queued) AS BIGINT) AS count, COUNT(*) AS more, MIN(created_at) AS at \
         FROM job WHERE queued > 0 GROUP BY team_id \
         UNION ALL SELECT 'running', team_id, NULL, NULL, NULL, COUNT(*), 0, NULL FROM page WHERE state = ",
        PageState::Running.sql(),
        " GROUP BY team_id UNION ALL SELECT 'sessions', team_id, NULL, NULL, NULL, COUNT(*), 0, NULL \
         FROM browser_session WHERE state <> ",
        SessionState::Destroyed.sql(),
        " GROUP BY team_id UNION ALL SELECT 'node', id, name, state, load, slots, session_slots, heartbeat_at \
         FROM worker_node WHERE state <> ",
        NodeState::Dead.sql()
    );
    Ok(on_pool!(db, |pool| sqlx::query_as(SQL).fetch_all(pool).await?))
}
