//! What ends leave besides the state of their pages and jobs: documents, what the site has sent, the bill.

use std::collections::BTreeMap;

use sqlx::{Postgres, Transaction};

use crate::domain::cache::CacheKey;
use crate::domain::job::JobKind;
use crate::ids::{JobId, PageId, TeamId};
use crate::on_db;
use crate::store::credits::{self, ENTERED_ONCE, LEDGER_ENTRY, used_more};
use crate::store::derived::Derived;
use crate::store::signals::SqliteTx;
use crate::store::{StoreResult, Tx};
use crate::time::Timestamp;

use super::end::{Encoded, Finished, Outcome, Version};
use super::rules::{INSERT_CONTENT, INSERT_DOCUMENT, INSERT_VERSION, KNOWN_CONTENT, REPLACE_VERSION};

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

    /// Most pages leave all of it, so that there are few kinds of statements; the others are not kept prepared.
    fn is_usual(&self) -> bool {
        let documents = self.documents.len();
        let is_usual = |count: usize| count == 0 || count == documents;
        documents == self.bills.len()
            && is_usual(self.contents.len())
            && (documents == 0 || is_usual(self.versions.len()))
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

/// Adds the statement that stores documents to a query.
macro_rules! push_documents {
    ($query:ident, $documents:expr) => {
        $query.push(INSERT_DOCUMENT);
        $query.push_values($documents, |mut values, (end, seq, document)| {
            values
                .push_bind(end.page.job_id)
                .push_bind(seq)
                .push_bind(end.page.id)
                .push_bind(document.size)
                .push_bind(document.body.inline())
                .push_bind(document.body.blob())
                .push_bind(document.steps.as_deref());
        });
    };
}

/// Adds the statement that stores what sites have sent.
macro_rules! push_contents {
    ($query:ident, $contents:expr, $now:ident) => {
        $query.push(INSERT_CONTENT);
        $query.push_values($contents, |mut values, version| {
            values
                .push_bind(version.digest.as_str())
                .push_bind(version.size)
                .push_bind(version.packed)
                .push_bind($now)
                .push_bind(version.body.blob())
                .push_bind(version.body.inline());
        });
        $query.push(KNOWN_CONTENT);
    };
}

/// Adds the statement that says where it is found.
macro_rules! push_versions {
    ($query:ident, $rows:expr, $now:ident, $before:expr, $after:expr) => {
        $query.push(INSERT_VERSION);
        $query.push($before);
        $query.push_values($rows, |mut values, (place, version, end)| {
            values
                .push_bind(place.0.as_str())
                .push_bind(end.page.team_id)
                .push_bind(version.url.as_str())
                .push_bind(version.site.as_deref())
                .push_bind(version.digest.as_str())
                .push_bind(version.head.as_str())
                .push_bind($now)
                .push_bind($now.plus_ms(version.counts_ms))
                .push_bind($now);
        });
        $query.push($after);
        $query.push(REPLACE_VERSION);
    };
}

/// Adds the statement that writes the bills, and gives those that are new.
macro_rules! push_bills {
    ($query:ident, $bills:expr, $now:ident) => {
        $query.push(LEDGER_ENTRY);
        $query.push_values($bills, |mut values, (end, credits)| {
            values
                .push_bind(format!("page:{}", end.page.id))
                .push_bind(end.page.team_id)
                .push_bind(end.key)
                .push_bind(end.kind.unwrap_or(JobKind::Batch).credit_kind())
                .push_bind(credits)
                .push_bind($now);
        });
        $query.push(sql!(ENTERED_ONCE, " RETURNING team_id, amount"));
    };
}

/// Stores documents and what sites have sent, and writes one ledger entry a billed page. A replayed page keeps its key,
/// so it is billed once. All of it goes to the database in one go.
pub(super) async fn write_results(tx: &mut Tx, results: Results<'_>, now: Timestamp) -> StoreResult<()> {
    if results.is_empty() {
        return Ok(());
    }
    match tx {
        Tx::Postgres(tx) => write_postgres(tx, results, now).await,
        Tx::Sqlite(inner) => {
            let mut sums: BTreeMap<TeamId, i64> = BTreeMap::new();
            for (team, amount) in write_sqlite(inner, results, now).await? {
                *sums.entry(team).or_default() += amount;
            }
            for (team, amount) in sums {
                credits::add_used(tx, team, amount).await?;
            }
            Ok(())
        }
    }
}

/// Statements in one string. Returns what was entered in the ledger.
async fn write_sqlite(tx: &mut SqliteTx, results: Results<'_>, now: Timestamp) -> StoreResult<Vec<(TeamId, i64)>> {
    let is_kept = results.is_usual();
    let Results { documents, bills, contents, versions } = results;
    let mut query = sqlx::QueryBuilder::new("");
    if !documents.is_empty() {
        push_documents!(query, documents);
        query.push("; ");
    }
    if !contents.is_empty() {
        push_contents!(query, contents, now);
        query.push("; ");
    }
    if !versions.is_empty() {
        push_versions!(query, versions, now, "", "");
        query.push("; ");
    }
    if !bills.is_empty() {
        push_bills!(query, bills, now);
    }
    Ok(query.build_query_as().persistent(is_kept).fetch_all(&mut **tx).await?)
}

/// Parts of one statement, the sums among them, which SQLite cannot.
async fn write_postgres(
    tx: &mut Transaction<'static, Postgres>,
    results: Results<'_>,
    now: Timestamp,
) -> StoreResult<()> {
    let is_kept = results.is_usual();
    let Results { documents, bills, contents, versions } = results;
    let mut query = sqlx::QueryBuilder::new("WITH ");
    if !documents.is_empty() {
        query.push("stored AS (");
        push_documents!(query, documents);
        query.push("), ");
    }
    // Versions come after the contents: parts of a statement run in the order in which they need each other.
    let has_contents = !contents.is_empty();
    if has_contents {
        query.push("came AS (");
        push_contents!(query, contents, now);
        query.push(" RETURNING 1), ");
    }
    if !versions.is_empty() {
        query.push("kept AS (");
        let after =
            if has_contents { ") AS given WHERE (SELECT COUNT(*) FROM came) >= 0" } else { ") AS given WHERE TRUE" };
        push_versions!(query, versions, now, "SELECT * FROM (", after);
        query.push("), ");
    }
    if bills.is_empty() {
        query.push("nothing AS (SELECT 1) SELECT 1");
    } else {
        query.push("entered AS (");
        push_bills!(query, bills, now);
        query.push(sql!(
            ") ",
            used_more!("sums.amount"),
            " FROM (SELECT team_id, CAST(SUM(amount) AS BIGINT) AS amount FROM entered GROUP BY team_id) AS sums \
             WHERE team.id = sums.team_id"
        ));
    }
    query.build().persistent(is_kept).execute(&mut **tx).await?;
    Ok(())
}
