//! What ends leave besides the state of their pages and jobs: documents, their place in the cache, the bill.

use std::collections::BTreeMap;

use sqlx::{Postgres, Transaction};

use crate::domain::cache::CacheKey;
use crate::domain::job::JobKind;
use crate::ids::{JobId, PageId, TeamId};
use crate::on_db;
use crate::store::credits::{self, ENTERED_ONCE, LEDGER_ENTRY, used_more};
use crate::store::signals::SqliteTx;
use crate::store::{StoreResult, Tx};
use crate::time::Timestamp;

use super::end::{CacheEntry, Encoded, Finished, Outcome};
use super::rules::{INSERT_CACHED, INSERT_DOCUMENT, REPLACE_CACHED};

/// A document with its place in the cache and its packed size.
pub(super) type CachedRow<'a> = (&'a CacheEntry, &'a Finished, i64);

/// The documents among these ends that have a place in the cache, in the order of their keys, each once: transactions
/// of other teams may write the same ones.
pub(super) fn cached_rows<'a>(ends: &[&'a Finished]) -> Vec<CachedRow<'a>> {
    let mut rows: BTreeMap<&CacheKey, CachedRow<'a>> = BTreeMap::new();
    for end in ends {
        let Some((document, _)) = end.outcome.document() else { continue };
        if let Some(entry) = &document.cache {
            rows.insert(&entry.key, (entry, end, document.packed));
        }
    }
    rows.into_values().collect()
}

/// The document and the bill of a page that is done and whose rows say so already.
pub(in crate::store) async fn write_done(tx: &mut Tx, end: &Finished, now: Timestamp) -> StoreResult<()> {
    write_results(tx, Results::of(&[end], &mut BTreeMap::new(), cached_rows(&[end])), now).await
}

/// What ends leave besides the state of their pages and jobs.
pub(super) struct Results<'a> {
    /// With its place in the order of its job.
    documents: Vec<(&'a Finished, i64, &'a Encoded)>,
    /// With its credits.
    bills: Vec<(&'a Finished, i64)>,
    cached: Vec<CachedRow<'a>>,
}

impl<'a> Results<'a> {
    pub(super) fn of(ends: &[&'a Finished], first_seq: &mut BTreeMap<JobId, i64>, cached: Vec<CachedRow<'a>>) -> Self {
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
        Self { documents, bills: ends.iter().filter_map(bill).collect(), cached }
    }

    fn is_empty(&self) -> bool {
        self.documents.is_empty() && self.bills.is_empty() && self.cached.is_empty()
    }

    /// Most pages leave all of it, so that there are few kinds of statements; the others are not kept prepared.
    fn is_usual(&self) -> bool {
        let documents = self.documents.len();
        documents == self.bills.len() && (self.cached.is_empty() || documents == self.cached.len())
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

/// Adds the statement that enters documents in the cache.
macro_rules! push_cached {
    ($query:ident, $rows:expr, $now:ident) => {
        $query.push(INSERT_CACHED);
        $query.push_values($rows, |mut values, (entry, end, packed)| {
            values
                .push_bind(entry.key.0.as_str())
                .push_bind(end.page.team_id)
                .push_bind(entry.url.as_str())
                .push_bind(entry.site.as_deref())
                .push_bind(end.page.id)
                .push_bind(packed)
                .push_bind($now);
        });
        $query.push(REPLACE_CACHED);
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

/// Stores documents, enters them in the cache, and writes one ledger entry a billed page. A replayed page keeps its key,
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
    let Results { documents, bills, cached } = results;
    let mut query = sqlx::QueryBuilder::new("");
    if !documents.is_empty() {
        push_documents!(query, documents);
        query.push("; ");
    }
    if !cached.is_empty() {
        push_cached!(query, cached, now);
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
    let Results { documents, bills, cached } = results;
    let mut query = sqlx::QueryBuilder::new("WITH ");
    if !documents.is_empty() {
        query.push("stored AS (");
        push_documents!(query, documents);
        query.push("), ");
    }
    if !cached.is_empty() {
        query.push("kept AS (");
        push_cached!(query, cached, now);
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
