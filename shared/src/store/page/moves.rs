//! The fenced step of an attempt's end: its page leaves the worker, if the attempt is still the page's current one.

use crate::domain::job::{PageMove, PageState};
use crate::error_code::ErrorCode;
use crate::ids::{PageId, TeamId};
use crate::on_db;
use crate::store::parts::parts;
use crate::store::{StoreResult, Tx};
use crate::time::Timestamp;

use super::end::{Finished, Outcome};
use super::rows::SITEMAP_IDX;
use super::rules::is_ours;

/// A page that an attempt has moved.
#[derive(sqlx::FromRow)]
pub(super) struct Moved {
    pub id: PageId,
    pub team_id: TeamId,
    /// How often it was replayed.
    pub replays: i64,
    /// A claim of its team was cut short by a limit.
    #[sqlx(rename = "starved")]
    pub has_deferred_pages: bool,
}

/// The fenced step: locks the teams, and only attempts that are still the page's current ones move it. Returns those.
pub(super) async fn move_pages(
    tx: &mut Tx,
    group: &[Finished],
    teams: &[TeamId],
    now: Timestamp,
) -> StoreResult<Vec<Moved>> {
    // Postgres plans a join anew each time, for it must not keep to one that it has made for a small table.
    if matches!(tx, Tx::Postgres(_)) {
        return move_part(tx, group, teams, now, group.len() <= 4).await;
    }
    let mut moved = Vec::with_capacity(group.len());
    for part in parts(group) {
        moved.append(&mut move_part(tx, part, teams, now, true).await?);
    }
    Ok(moved)
}

/// What an end changes in its page.
struct Left<'a> {
    by: PageMove,
    /// It counts as a try of the page's own.
    is_try: bool,
    /// Its claim does not count.
    is_unclaimed: bool,
    code: Option<ErrorCode>,
    error: Option<&'a str>,
}

fn left_by(end: &Finished) -> Left<'_> {
    let left = |by| Left { by, is_try: false, is_unclaimed: false, code: None, error: None };
    match &end.outcome {
        Outcome::Done { .. } | Outcome::Crawled { .. } => left(PageMove::Finish),
        Outcome::Failed { error, .. } if end.page.idx == SITEMAP_IDX => {
            Left { is_try: true, error: Some(error), ..left(PageMove::Hide) }
        }
        Outcome::Failed { code, error, .. } => {
            Left { is_try: true, code: Some(*code), error: Some(error), ..left(PageMove::Fail) }
        }
        Outcome::Retry { .. } => Left { is_try: true, ..left(PageMove::Return) },
        Outcome::Lost { .. } => left(PageMove::Return),
        Outcome::GivenBack | Outcome::Postponed { .. } => Left { is_unclaimed: true, ..left(PageMove::Return) },
        Outcome::Blocked { .. } | Outcome::SitemapsRead { .. } => left(PageMove::Hide),
    }
}

async fn move_part(
    tx: &mut Tx,
    group: &[Finished],
    teams: &[TeamId],
    now: Timestamp,
    is_kept: bool,
) -> StoreResult<Vec<Moved>> {
    let locks = matches!(tx, Tx::Postgres(_));
    Ok(on_db!(tx, |conn| {
        let mut update = sqlx::QueryBuilder::new(
            "WITH ended (id, epoch, state, run_at, finished_at, tried, claimed, code, error) AS (VALUES ",
        );
        for (i, end) in group.iter().enumerate() {
            let left = left_by(end);
            let finished = (left.by.to() != PageState::Queued).then_some(now);
            let code = left.code.map(|c| c.code().unwrap_or("UNKNOWN_ERROR"));
            update.push(if i == 0 { "(CAST(" } else { ", (CAST(" }).push_bind(end.page.id);
            update.push(" AS TEXT), CAST(").push_bind(end.page.epoch);
            update.push(" AS BIGINT), CAST(").push_bind(left.by.to().as_str());
            update.push(" AS TEXT), CAST(").push_bind(end.outcome.run_at());
            update.push(" AS BIGINT), CAST(").push_bind(finished);
            update.push(" AS BIGINT), CAST(").push_bind(i64::from(left.is_try));
            update.push(" AS BIGINT), CAST(").push_bind(i64::from(left.is_unclaimed));
            update.push(" AS BIGINT), CAST(").push_bind(code);
            update.push(" AS TEXT), CAST(").push_bind(left.error);
            update.push(" AS TEXT))");
        }
        // SQLite holds the whole file already. A page is moved after its team is locked: it is joined to the lock.
        if locks {
            update.push("), held AS (SELECT id, starved FROM team WHERE id IN (");
            let mut ids = update.separated(", ");
            for team in teams {
                ids.push_bind(*team);
            }
            update.push(") ORDER BY id FOR NO KEY UPDATE");
        }
        update.push(
            ") UPDATE page SET state = ended.state, run_at = COALESCE(ended.run_at, page.run_at), \
             finished_at = ended.finished_at, owner = NULL, tries = page.tries + ended.tried, \
             claims = page.claims - ended.claimed, error_code = ended.code, error = ended.error FROM ended",
        );
        update.push(if locks { ", held" } else { "" });
        update.push(sql!(" WHERE page.id = ended.id AND ", is_ours!("ended.epoch")));
        update.push(if locks { " AND held.id = page.team_id" } else { "" });
        update.push(" RETURNING page.id, page.team_id, page.replays, ");
        update.push(if locks { "held.starved" } else { "(SELECT starved FROM team WHERE id = team_id) AS starved" });
        update.build_query_as().persistent(is_kept).fetch_all(conn).await?
    }))
}
