//! The fenced step of an attempt's end: its page leaves the worker, if the attempt is still the page's current one.

use sqlx::{Postgres, Transaction};

use crate::domain::job::{PageMove, PageState};
use crate::error_code::ErrorCode;
use crate::ids::{PageId, TeamId};
use crate::store::db::parts::parts;
use crate::store::db::sql::column;
use crate::store::db::writer::SqliteTx;
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
    match tx {
        Tx::Postgres(tx) => move_on_postgres(tx, group, teams, now).await,
        Tx::Sqlite(tx) => {
            let mut moved = Vec::with_capacity(group.len());
            for part in parts(group) {
                moved.append(&mut move_on_sqlite(tx, part, now).await?);
            }
            Ok(moved)
        }
    }
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

impl Left<'_> {
    fn finished_at(&self, now: Timestamp) -> Option<Timestamp> {
        (self.by.to() != PageState::Queued).then_some(now)
    }

    fn code(&self) -> Option<&'static str> {
        self.code.map(|code| code.code().unwrap_or("UNKNOWN_ERROR"))
    }
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

/// What becomes of a page, of the row that `ended` has for it. Of a page whose actions have begun every claim counts, so that its
/// first one after a replay can be told ([`super::acting`]).
const MOVE: &str = "UPDATE page SET state = ended.state, run_at = COALESCE(ended.run_at, page.run_at), \
    finished_at = ended.finished_at, owner = NULL, tries = page.tries + ended.tried, \
    claims = page.claims - CASE WHEN page.acted IS NULL THEN ended.claimed ELSE 0 END, error_code = ended.code, \
    error = ended.error FROM ended";
const IS_ITS_ROW: &str = sql!(" WHERE page.id = ended.id AND ", is_ours!("ended.epoch"));
const MOVED: &str = " RETURNING page.id, page.team_id, page.replays, ";

/// A page is moved after its team is locked: it is joined to the lock. Planned anew each time, because a plan that was made
/// while the table was small would read all of it later.
async fn move_on_postgres(
    tx: &mut Transaction<'static, Postgres>,
    group: &[Finished],
    teams: &[TeamId],
    now: Timestamp,
) -> StoreResult<Vec<Moved>> {
    const SQL: &str = sql!(
        "WITH ended AS (SELECT * FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         AS ended (id, epoch, state, run_at, finished_at, tried, claimed, code, error)), \
         held AS (SELECT id, starved FROM team WHERE id = ANY($10) ORDER BY id FOR NO KEY UPDATE) ",
        MOVE,
        ", held",
        IS_ITS_ROW,
        " AND held.id = page.team_id",
        MOVED,
        "held.starved"
    );
    let left: Vec<Left<'_>> = group.iter().map(left_by).collect();
    let query = sqlx::query_as(SQL)
        .bind(column(group, |end| end.page.id))
        .bind(column(group, |end| end.page.epoch))
        .bind(column(&left, |left| left.by.to().as_str()))
        .bind(column(group, |end| end.outcome.run_at()))
        .bind(column(&left, |left| left.finished_at(now)))
        .bind(column(&left, |left| i64::from(left.is_try)))
        .bind(column(&left, |left| i64::from(left.is_unclaimed)))
        .bind(column(&left, Left::code))
        .bind(column(&left, |left| left.error))
        .bind(teams);
    Ok(query.persistent(false).fetch_all(&mut **tx).await?)
}

/// Nothing is locked: SQLite holds the whole file already.
async fn move_on_sqlite(tx: &mut SqliteTx, group: &[Finished], now: Timestamp) -> StoreResult<Vec<Moved>> {
    let mut update =
        sqlx::QueryBuilder::new("WITH ended (id, epoch, state, run_at, finished_at, tried, claimed, code, error) AS (");
    update.push_values(group, |mut values, end| {
        let left = left_by(end);
        values
            .push_bind(end.page.id)
            .push_bind(end.page.epoch)
            .push_bind(left.by.to().as_str())
            .push_bind(end.outcome.run_at())
            .push_bind(left.finished_at(now))
            .push_bind(i64::from(left.is_try))
            .push_bind(i64::from(left.is_unclaimed))
            .push_bind(left.code())
            .push_bind(left.error);
    });
    update.push(") ").push(sql!(MOVE, IS_ITS_ROW, MOVED, "(SELECT starved FROM team WHERE id = team_id) AS starved"));
    Ok(update.build_query_as().fetch_all(&mut **tx).await?)
}
