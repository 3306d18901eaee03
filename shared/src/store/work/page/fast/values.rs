//! What the fast statements of both databases are given, in the order of their placeholders.

use crate::domain::job::JobKind;
use crate::store::contents::version::Version;
use crate::store::work::page::end::{Encoded, Finished, Outcome};
use crate::store::work::page::rows::insert_page;
use crate::store::work::page::rules::{TAKEN_COLUMNS, job_after, taken};
use crate::store::work::page::scrape::scrape_values;

/// The end of a page that somebody waits for and that is simply done.
pub struct DirectEnd<'a> {
    pub end: &'a Finished,
    pub kind: JobKind,
    pub document: &'a Encoded,
    pub credits: i64,
}

impl<'a> DirectEnd<'a> {
    /// The end as such a one, if it is.
    pub fn of(end: &'a Finished) -> Option<Self> {
        let Outcome::Done { document, credits } = &end.outcome else { return None };
        let has_one_place = document.version.as_ref().is_none_or(|version| version.places.len() == 1);
        let is_plain = document.snapshot.is_none() && document.derived.is_none() && has_one_place;
        let kind = end.kind.filter(|kind| kind.is_direct() && is_plain)?;
        Some(Self { end, kind, document, credits: *credits })
    }

    /// What the site has sent, where that is kept.
    pub fn version(&self) -> Option<&'a Version> {
        self.document.version.as_deref()
    }
}

/// `$1` to `$23` of the statements that end a page.
macro_rules! end_values {
    ($sql:expr, $direct:ident, $now:ident) => {{
        let (page, document, version) = (&$direct.end.page, $direct.document, $direct.version());
        let place = version.and_then(|version| version.places.first());
        sqlx::query_as::<_, (String,)>($sql)
            .bind(page.id)
            .bind(page.epoch)
            .bind(page.team_id)
            .bind(page.job_id)
            .bind($now)
            .bind($direct.credits)
            .bind(document.size)
            .bind(document.body.inline())
            .bind(document.body.blob())
            .bind(place.map(|place| place.0.as_str()))
            .bind(version.map(|version| version.url.as_str()))
            .bind(version.and_then(|version| version.site.as_deref()))
            .bind(version.map(|version| version.digest.as_str()))
            .bind($direct.end.key)
            .bind($direct.kind.credit_kind())
            .bind(page.dispatched)
            .bind(document.steps.as_deref())
            .bind(version.map(|version| version.head.as_str()))
            .bind(version.map(|version| version.size))
            .bind(version.map(|version| version.packed))
            .bind(version.and_then(|version| version.body.blob()))
            .bind(version.and_then(|version| version.body.inline()))
            .bind(version.map(|version| $now.plus_ms(version.counts_ms)))
    }};
}
pub(super) use end_values;

/// `$1` to `$24` of the statements that write a scrape whose page is claimed.
macro_rules! claimed_values {
    ($sql:expr, $scrape:ident, $worker:ident, $now:ident, $default_limit:ident) => {{
        let job = &$scrape.job;
        scrape_values!($sql, $scrape, job).bind($worker).bind($now).bind($default_limit)
    }};
}
pub(super) use claimed_values;

/// The page of such a scrape: `$22` is the worker and `$23` the time it has it from.
pub const INSERT_PAGE_CLAIMED: &str =
    sql!(insert_page!(TAKEN_COLUMNS), "SELECT ", scrape_values!(page Running), taken!("$22", "$23"));

/// What an end counts in its job.
pub const COUNT_DONE: &str = sql!(
    "UPDATE job SET completed = completed + 1, credits_used = credits_used + $6, ",
    job_after!("1", "0", "0", "$5")
);
