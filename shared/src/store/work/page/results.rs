//! What ends leave besides the state of their pages and jobs: documents, what the site has sent, the bill.

mod postgres;
mod sqlite;

use std::collections::BTreeMap;

use crate::domain::cache::CacheKey;
use crate::ids::{JobId, PageId};
use crate::on_db;
use crate::store::accounts::credits;
use crate::store::contents::derived::Derived;
use crate::store::db::parts;
use crate::store::{StoreResult, Tx};
use crate::time::Timestamp;

use super::end::{Encoded, Finished, Outcome};
use crate::store::contents::version::Version;

/// Pages whose results go to Postgres at once: what they brought is in memory once more meanwhile.
const AT_ONCE: usize = 32;

/// What goes to the database at once, of a list.
pub(super) fn parts<'l, T>(tx: &Tx, list: &'l [T]) -> Vec<&'l [T]> {
    match tx {
        Tx::Postgres(_) => list.chunks(AT_ONCE).collect(),
        Tx::Sqlite(_) => parts::parts(list).collect(),
    }
}

/// What one page's site has sent, at one of its places.
pub(super) type VersionRow<'a> = (&'a CacheKey, &'a Version, &'a Finished);

/// What sites have sent for these pages, in the order of their digests, each once: transactions of other teams may write
/// the same.
pub(super) fn contents<'a>(ends: &[&'a Finished]) -> Vec<&'a Version> {
    let versions = ends.iter().filter_map(|end| end.outcome.version());
    let rows: BTreeMap<&str, &Version> = versions.map(|version| (version.digest.as_str(), version)).collect();
    rows.into_values().collect()
}

/// Where it is found, in the order of the keys, each once.
pub(super) fn versions<'a>(ends: &[&'a Finished]) -> Vec<VersionRow<'a>> {
    let mut rows: BTreeMap<&CacheKey, VersionRow<'a>> = BTreeMap::new();
    for end in ends {
        if let Some(version) = end.outcome.version() {
            rows.extend(version.places.iter().map(|place| (place, (place, version, *end))));
        }
    }
    rows.into_values().collect()
}

/// What was made of them at a cost, in the order of the digests.
pub(super) fn derived<'a>(ends: &[&'a Finished]) -> Vec<&'a Derived> {
    let made = |end: &&'a Finished| end.outcome.document()?.0.derived.as_deref();
    let mut all: Vec<&Derived> = ends.iter().filter_map(made).collect();
    all.sort_by(|one, other| one.digest.cmp(&other.digest));
    all
}

/// What ends leave besides the state of their pages and jobs.
#[derive(Default)]
pub(super) struct Results<'a> {
    /// With its place in the order of its job.
    documents: Vec<(&'a Finished, i64, &'a Encoded)>,
    /// With its credits.
    bills: Vec<(&'a Finished, i64)>,
    pub contents: Vec<&'a Version>,
    pub versions: Vec<VersionRow<'a>>,
}

impl<'a> Results<'a> {
    /// Documents and bills.
    pub(super) fn of(ends: &[&'a Finished], first_seq: &mut BTreeMap<JobId, i64>) -> Self {
        let mut documents = Vec::new();
        for end in ends {
            if let Some((document, _)) = end.outcome.document() {
                let seq = first_seq.entry(end.page.job_id).or_insert(1);
                documents.push((*end, *seq, document));
                *seq += 1;
            }
        }
        let bill = |end: &&'a Finished| {
            let credits = match &end.outcome {
                Outcome::Failed { credits, .. } => *credits,
                other => other.document()?.1,
            };
            (credits > 0).then_some((*end, credits))
        };
        Self { documents, bills: ends.iter().filter_map(bill).collect(), ..Self::default() }
    }

    /// Where what sites have sent is found, and nothing else.
    pub(super) fn of_versions(versions: &[VersionRow<'a>]) -> Self {
        Self { versions: versions.to_vec(), ..Self::default() }
    }

    fn is_empty(&self) -> bool {
        self.documents.is_empty() && self.bills.is_empty() && self.contents.is_empty() && self.versions.is_empty()
    }
}

/// Which of these pages have an entry in the ledger already: what they are billed is in their job's count too.
pub(super) async fn billed_before(tx: &mut Tx, pages: &[PageId]) -> StoreResult<Vec<PageId>> {
    const SQL: &str = "SELECT COUNT(*) FROM credit_entry WHERE key = $1";
    let mut billed = Vec::new();
    for page in pages {
        let key = format!("page:{page}");
        let found: (i64,) = on_db!(tx, |conn| sqlx::query_as(SQL).bind(key).fetch_one(conn).await?);
        if found.0 > 0 {
            billed.push(*page);
        }
    }
    Ok(billed)
}

/// Stores documents and what sites have sent, and writes one ledger entry a billed page. A replayed page keeps its key,
/// so it is billed once. All of it goes to the database in one go.
pub(super) async fn write_results(tx: &mut Tx, results: Results<'_>, now: Timestamp) -> StoreResult<()> {
    if results.is_empty() {
        return Ok(());
    }
    match tx {
        Tx::Postgres(tx) => postgres::write(tx, &results, now).await,
        Tx::Sqlite(inner) => {
            for (team, amount) in sqlite::write(inner, results, now).await? {
                credits::add_used(tx, team, amount).await?;
            }
            Ok(())
        }
    }
}
