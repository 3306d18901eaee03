//! The rules of a page's life as parts of SQL, each once: the statements of both databases, the general ones and the fast
//! ones, are put together from them.
//!
//! Where a part names a value, its caller says where the statement has it: `"$2"` is a placeholder.

use crate::domain::job::{PageMove, PageState};

/// The columns of [`super::rows::Claimed`].
pub(super) const CLAIMED_COLUMNS: &str =
    "id, job_id, team_id, idx, url, depth, epoch, claims, tries, queued_at, started_at, owner";

/// A page is taken into work by the worker `$1` at the time `$2`: what changes in its row.
pub(super) const TAKE: &str = sql!(
    "state = ",
    PageMove::Claim.to().sql(),
    ", owner = $1, started_at = $2, epoch = epoch + 1, claims = claims + 1"
);

/// The same for a row that is written as taken already: the further columns, and their values.
pub(super) const TAKEN_COLUMNS: &str = ", owner, started_at, epoch, claims";
macro_rules! taken {
    ($worker:literal, $now:literal) => {
        concat!(", ", $worker, ", ", $now, ", 1, 1")
    };
}
pub(super) use taken;

/// Which pages may be taken at the time `$2`.
pub(super) const IS_DUE: &str = sql!("state = ", PageMove::Claim.from().sql(), " AND run_at <= $2");

/// The same where a page is named by its id. The index of waiting pages does not serve `state || ''`: Postgres believes
/// that few pages wait, and would otherwise read them all.
pub(super) const IS_DUE_BY_ID: &str = sql!("state || '' = ", PageMove::Claim.from().sql(), " AND run_at <= $2");

/// An attempt ends its page only while the page is in work, by the attempt of the same epoch.
macro_rules! is_ours {
    ($epoch:literal) => {
        sql!(
            concat!("page.epoch = ", $epoch, " AND page.state || '' = "),
            $crate::domain::job::PageState::Running.sql()
        )
    };
}
pub(super) use is_ours;

/// What a team's pages in work are counted by: the beginning is completed with the team.
pub(super) const RUNNING_OF: &str = "(SELECT COUNT(*) FROM page AS other WHERE other.team_id = ";
pub(super) const RUNNING: &str = sql!(" AND other.state = ", PageState::Running.sql(), ")");

/// Whether a team may have one more page in work: it has fewer than its own limit, or than the default where it has none.
/// [`room`] is the same rule for a claim that counts by job.
///
/// On Postgres one statement both locks the team, as `held`, and counts afterwards, which takes a function.
macro_rules! has_room {
    (held, $default:literal) => {
        concat!("pages_running(held.id) < COALESCE(held.concurrency, ", $default, ")")
    };
    ($team:literal, $limit:literal, $default:literal) => {
        sql!(
            $crate::store::work::page::rules::RUNNING_OF,
            $team,
            $crate::store::work::page::rules::RUNNING,
            concat!(" < COALESCE(", $limit, ", ", $default, ")")
        )
    };
}
pub(super) use has_room;

/// How many more pages a team may have in work: see `has_room!`.
pub(super) fn room(limit: Option<i64>, default: i64, running: i64) -> i64 {
    (limit.unwrap_or(default) - running).max(0)
}

/// What a job becomes when so many pages more have completed and failed and so many rows came to it. It ends with its
/// last page. A batch completes even when every page failed: the failures are in its errors. A crawl fails when it has
/// nothing but failures: its start page could not be read. A scrape or map is its one page. A task ends its job itself.
macro_rules! job_after {
    ($completed:literal, $failed:literal, $rows:literal, $now:literal) => {
        sql!(
            "status = CASE WHEN ",
            job_after!(goes_on $completed, $failed, $rows),
            concat!(
                " THEN status WHEN kind IN ('scrape', 'crawl', 'map') AND failed + ",
                $failed,
                " > 0 AND completed + ",
                $completed,
                " = 0 THEN "
            ),
            $crate::domain::job::JobMove::Fail.to().sql(),
            " ELSE ",
            $crate::domain::job::JobMove::Complete.to().sql(),
            " END, finished_at = CASE WHEN ",
            job_after!(goes_on $completed, $failed, $rows),
            concat!(" THEN finished_at ELSE ", $now, " END")
        )
    };
    (goes_on $completed:literal, $failed:literal, $rows:literal) => {
        sql!(
            "status <> ",
            $crate::domain::job::JobMove::Complete.from().sql(),
            " OR kind IN (",
            $crate::domain::job::JobKind::Extract.sql(),
            ", ",
            $crate::domain::job::JobKind::Agent.sql(),
            concat!(") OR completed + failed + ", $completed, " + ", $failed, " < total + ", $rows)
        )
    };
}
pub(in crate::store) use job_after;

/// A page is done and leaves its worker.
macro_rules! done {
    ($now:literal) => {
        sql!(
            "state = ",
            $crate::domain::job::PageMove::Finish.to().sql(),
            concat!(", finished_at = ", $now, ", owner = NULL, error_code = NULL, error = NULL")
        )
    };
}
pub(super) use done;

/// The beginning of the statement that stores documents.
pub(super) const INSERT_DOCUMENT: &str = "INSERT INTO document (job_id, seq, page_id, size, body, blob, steps) ";

/// The statement that stores what sites have sent, around its rows. What is there already is used once more.
pub(super) const INSERT_CONTENT: &str = "INSERT INTO page_content (digest, size, packed, used_at, blob, body) ";
pub(super) const KNOWN_CONTENT: &str = " ON CONFLICT (digest) DO UPDATE SET used_at = excluded.used_at";

/// The statement that says what it is the newest answer to, around its rows. Whoever stored one before is replaced; the
/// database keeps it among the earlier ones where its content was another.
pub(super) const INSERT_VERSION: &str =
    "INSERT INTO page_version (key, team_id, url, site, digest, head, stored_at, expires_at, since) ";
pub(super) const REPLACE_VERSION: &str = " ON CONFLICT (key) DO UPDATE SET team_id = excluded.team_id, url = excluded.url, \
     site = excluded.site, digest = excluded.digest, head = excluded.head, stored_at = excluded.stored_at, \
     expires_at = excluded.expires_at, since = CASE WHEN page_version.digest = excluded.digest \
     THEN page_version.since ELSE excluded.since END";
