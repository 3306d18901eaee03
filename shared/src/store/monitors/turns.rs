//! Whose rows are taken next: teams with something due have turns, and within a team the oldest comes first. So nobody's
//! checks stand behind all that another team has due.

use std::collections::VecDeque;

use crate::ids::TeamId;
use crate::on_db;
use crate::store::{StoreResult, Tx};
use crate::time::Timestamp;

/// The statement that names teams with due rows in a table, from one to the next by its index: `$1` now, `$2` how many
/// teams. They are drawn by chance, so that each has its turn where there are more than that.
macro_rules! teams_with {
    ($table:literal, $at:literal) => {
        concat!(
            "WITH RECURSIVE waiting (team_id) AS (SELECT MIN(team_id) FROM ",
            $table,
            " WHERE ",
            $at,
            " IS NOT NULL UNION ALL SELECT (SELECT MIN(d.team_id) FROM ",
            $table,
            " d WHERE d.",
            $at,
            " IS NOT NULL AND d.team_id > waiting.team_id) FROM waiting WHERE waiting.team_id IS NOT NULL) \
             SELECT w.team_id FROM waiting w WHERE w.team_id IS NOT NULL AND EXISTS (SELECT 1 FROM ",
            $table,
            " d WHERE d.team_id = w.team_id AND d.",
            $at,
            " <= $1) ORDER BY RANDOM() LIMIT $2"
        )
    };
}
pub(super) use teams_with;

/// The turns of one claim.
pub(super) struct Turns {
    /// Teams with how many rows each may take in this round.
    waiting: VecDeque<(TeamId, i64)>,
    /// Those that took all that they might: what the others leave is theirs.
    again: Vec<TeamId>,
    room: i64,
}

impl Turns {
    /// Begins a claim of up to `limit` rows for the teams that `teams` finds, a statement of [`teams_with`].
    pub(super) async fn begin(tx: &mut Tx, teams: &'static str, now: Timestamp, limit: i64) -> StoreResult<Self> {
        let found: Vec<(TeamId,)> =
            on_db!(tx, |conn| sqlx::query_as(teams).bind(now).bind(limit).fetch_all(conn).await?);
        Ok(Self { waiting: VecDeque::new(), again: found.into_iter().map(|row| row.0).collect(), room: limit })
    }

    /// The next team, with how many of its rows may be taken.
    pub(super) fn next(&mut self) -> Option<(TeamId, i64)> {
        if self.waiting.is_empty() {
            let share = (self.room / self.again.len().max(1) as i64).max(1);
            self.waiting = self.again.drain(..).map(|team| (team, share)).collect();
        }
        let (team, share) = self.waiting.pop_front().filter(|_| self.room > 0)?;
        Some((team, share.min(self.room)))
    }

    /// So many of the rows that it might take are there.
    pub(super) fn took(&mut self, team: TeamId, share: i64, rows: usize) {
        let rows = rows as i64;
        self.room -= rows;
        if rows >= share {
            self.again.push(team);
        }
    }
}
