//! Turns: how often something may be asked for, over all workers, where robots.txt or a crawl's caller asks for a pause.
//! And rests: a host is not asked by a team's jobs for a while, because it has asked for that itself.

use sha2::{Digest as _, Sha256};
use url::Url;

use crate::domain::job::JobStatus;
use crate::ids::{JobId, TeamId};
use crate::on_db;
use crate::store::{StoreResult, Tx};
use crate::time::Timestamp;

/// How often something may be asked for, over all workers: a host whose robots.txt asks for a pause, a crawl whose caller
/// does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pace {
    pub name: String,
    pub pause_ms: i64,
}

/// The answer to whoever asks for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn<'a> {
    /// Go ahead; the next one may after the pause.
    Now,
    /// Not before this time: such is the pace of this one.
    NotBefore(Timestamp, &'a Pace),
}

/// Asks for the next turn under every one of `paces`: all are taken, or none. Those of more crawls than one come last.
pub async fn take_turns<'a>(tx: &mut Tx, paces: &'a [Pace], now: Timestamp) -> StoreResult<Turn<'a>> {
    const LEAVE: &str = "UPDATE turn SET next_at = $2 WHERE name = $1";
    for (taken, pace) in paces.iter().enumerate() {
        let Some(at) = take_turn(tx, pace, now).await? else { continue };
        for pace in paces.iter().take(taken) {
            on_db!(tx, |conn| sqlx::query(LEAVE).bind(&pace.name).bind(now).execute(conn).await?.rows_affected());
        }
        return Ok(Turn::NotBefore(at, pace));
    }
    Ok(Turn::Now)
}

/// A turn, or the time before which there is none. The row is locked until the transaction ends.
async fn take_turn(tx: &mut Tx, pace: &Pace, now: Timestamp) -> StoreResult<Option<Timestamp>> {
    // `booked` is for processes of earlier releases only.
    const TAKE: &str = "INSERT INTO turn (name, next_at, booked) VALUES ($1, $2, $2) ON CONFLICT (name) DO UPDATE SET \
        next_at = excluded.next_at, booked = excluded.booked WHERE turn.next_at <= $3";
    const NEXT: &str = "SELECT next_at FROM turn WHERE name = $1";
    let next = now.plus_ms(pace.pause_ms);
    let taken = on_db!(tx, |conn| {
        sqlx::query(TAKE).bind(&pace.name).bind(next).bind(now).execute(conn).await?.rows_affected()
    });
    if taken == 1 {
        return Ok(None);
    }
    let next: (Timestamp,) = on_db!(tx, |conn| sqlx::query_as(NEXT).bind(&pace.name).fetch_one(conn).await?);
    Ok(Some(next.0))
}

/// A host in the names of turns: a digest, because the row stays longer than addresses of requests that keep nothing.
pub fn host(url: &Url) -> String {
    hex::encode(Sha256::digest(url.origin().ascii_serialization()))
}

/// The name of a host's rest, which is its team's alone: what a site tells one team keeps no other one waiting.
fn rest(team: TeamId, url: &Url) -> String {
    format!("rest:{team}:{}", host(url))
}

/// The beginning of the name of the row that says until when any host rests for a team, for SQL.
pub(super) const ANY_REST: &str = "'rest:' || ";

/// Between pages of a job that come back after a rest, milliseconds: the first of them finds out whether it is over.
const REST_PACE_MS: i64 = 100;

/// A rest of the host of `url` until `until`, or of one until later that is written already.
pub async fn begin_rest(tx: &mut Tx, team: TeamId, url: &Url, until: Timestamp) -> StoreResult<()> {
    const REST: &str = "INSERT INTO turn (name, next_at, booked) VALUES ($1, $2, $2) ON CONFLICT (name) DO UPDATE SET \
        next_at = CASE WHEN turn.next_at > excluded.next_at THEN turn.next_at ELSE excluded.next_at END";
    // In this order everywhere, so that no two transactions wait for each other.
    for name in [rest(team, url), format!("rest:{team}")] {
        on_db!(tx, |conn| sqlx::query(REST).bind(name).bind(until).execute(conn).await?.rows_affected());
    }
    Ok(())
}

/// When a page of `job` that would ask `url` is to come back, because the host rests. `None`: it may ask, for the host
/// does not rest, or does so past the job's end or `latest`, when the page could not come back.
pub async fn rest_of(
    tx: &mut Tx,
    team: TeamId,
    url: &Url,
    job: JobId,
    latest: Timestamp,
    now: Timestamp,
) -> StoreResult<Option<Timestamp>> {
    const RESTS: &str = "SELECT turn.next_at FROM turn, job WHERE turn.name = $1 AND turn.next_at > $2 \
        AND turn.next_at <= $3 AND job.id = $4 AND job.expires_at > turn.next_at";
    let pace = Pace { name: rest(team, url), pause_ms: REST_PACE_MS };
    let until: Option<(Timestamp,)> = on_db!(tx, |conn| {
        sqlx::query_as(RESTS).bind(&pace.name).bind(now).bind(latest).bind(job).fetch_optional(conn).await?
    });
    if until.is_none() {
        return Ok(None);
    }
    book_turn(tx, &pace, job).await.map(Some)
}

/// A time for a page of `job` to come back at, after a turn was refused: its pages that wait do not all come at once.
///
/// Each crawl has a line of its own, no longer than its pages that have not ended. Where pages of several crawls come at
/// one time, one of them is first and the others go to the end of their crawls' lines: crawls of a host go on side by
/// side, and one that is cancelled or expires takes its line with it.
pub async fn book_turn(tx: &mut Tx, pace: &Pace, job: JobId) -> StoreResult<Timestamp> {
    const LINE: &str = "SELECT turn.next_at, turn_line.free_at, job.total - job.completed - job.failed FROM turn \
        LEFT JOIN turn_line ON turn_line.name = turn.name AND turn_line.job_id = $2 \
        LEFT JOIN job ON job.id = $2 WHERE turn.name = $1";
    const BOOK: &str = "INSERT INTO turn_line (name, job_id, free_at) VALUES ($1, $2, $3) \
        ON CONFLICT (name, job_id) DO UPDATE SET free_at = excluded.free_at";
    let (next, free, open): (Timestamp, Option<Timestamp>, Option<i64>) =
        on_db!(tx, |conn| sqlx::query_as(LINE).bind(&pace.name).bind(job).fetch_one(conn).await?);
    let end = next.plus_ms(pace.pause_ms.saturating_mul(open.unwrap_or(0)));
    let at = free.unwrap_or(next).max(next).min(end);
    let free = at.plus_ms(pace.pause_ms);
    on_db!(tx, |conn| sqlx::query(BOOK).bind(&pace.name).bind(job).bind(free).execute(conn).await?.rows_affected());
    Ok(at)
}

/// Removes turns that nobody has asked for since `before`, and the lines of crawls that have ended.
pub(in crate::store) async fn prune_turns(tx: &mut Tx, before: Timestamp) -> StoreResult<()> {
    const TURNS: &str = "DELETE FROM turn WHERE next_at < $1";
    const LINES: &str = sql!(
        "DELETE FROM turn_line WHERE free_at < $1 OR NOT EXISTS (SELECT 1 FROM job \
         WHERE job.id = turn_line.job_id AND job.status = ",
        JobStatus::Scraping.sql(),
        ")"
    );
    on_db!(tx, |conn| {
        sqlx::query(TURNS).bind(before).execute(&mut *conn).await?;
        sqlx::query(LINES).bind(before).execute(conn).await?.rows_affected()
    });
    Ok(())
}
