//! What ends leave besides the state of their pages and jobs: documents, their place in the cache, the bill.

use std::collections::BTreeMap;

use crate::domain::cache::CacheKey;
use crate::domain::job::JobKind;
use crate::ids::{JobId, TeamId};
use crate::on_db;
use crate::store::{StoreResult, Tx};
use crate::time::Timestamp;

use super::end::{Body, CacheEntry, Encoded, Finished, Outcome};

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

/// Adds the statement that writes such rows to a query. Whoever stored a page before is replaced.
macro_rules! push_cached {
    ($query:ident, $rows:ident, $now:ident) => {
        $query.push("INSERT INTO cached_page (key, team_id, url, site, page_id, bytes, cached_at) ");
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
        $query.push(replace_row!());
    };
}

/// The end of such a statement.
macro_rules! replace_row {
    () => {
        " ON CONFLICT (key) DO UPDATE SET team_id = excluded.team_id, url = excluded.url, site = excluded.site, \
         page_id = excluded.page_id, bytes = excluded.bytes, body = NULL, size = NULL, cached_at = excluded.cached_at"
    };
}
pub(super) use replace_row;

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
}

/// Stores documents, enters them in the cache, and writes one ledger entry a billed page. A replayed page keeps its key,
/// so it is billed once. All of it goes to the database in one go.
pub(super) async fn write_results(tx: &mut Tx, results: Results<'_>, now: Timestamp) -> StoreResult<()> {
    let Results { documents, bills, cached } = results;
    if documents.is_empty() && bills.is_empty() && cached.is_empty() {
        return Ok(());
    }
    // Most pages leave all of it, so that there are few kinds of statements.
    let is_kept = documents.len() == bills.len() && (cached.is_empty() || documents.len() == cached.len());
    macro_rules! push_documents {
        ($query:ident) => {
            $query.push("INSERT INTO document (job_id, seq, page_id, size, body, blob) ");
            $query.push_values(documents, |mut values, (end, seq, document)| {
                let (body, blob) = match &document.body {
                    Body::Inline(bytes) => (Some(bytes.as_slice()), None),
                    Body::Blob(key) => (None, Some(key.as_str())),
                };
                values
                    .push_bind(end.page.job_id)
                    .push_bind(seq)
                    .push_bind(end.page.id)
                    .push_bind(document.size)
                    .push_bind(body)
                    .push_bind(blob);
            });
        };
    }
    macro_rules! push_bills {
        ($query:ident) => {
            $query.push("INSERT INTO credit_entry (key, team_id, api_key_id, kind, amount, created_at) ");
            $query.push_values(bills, |mut values, (end, credits)| {
                values
                    .push_bind(format!("page:{}", end.page.id))
                    .push_bind(end.page.team_id)
                    .push_bind(end.key)
                    .push_bind(end.kind.unwrap_or(JobKind::Batch).credit_kind())
                    .push_bind(credits)
                    .push_bind(now);
            });
            $query.push(" ON CONFLICT (key) DO NOTHING RETURNING team_id, amount");
        };
    }
    let entered: Vec<(TeamId, i64)> = match tx {
        Tx::Sqlite(tx) => {
            let mut query = sqlx::QueryBuilder::new("");
            if !documents.is_empty() {
                push_documents!(query);
                query.push("; ");
            }
            if !cached.is_empty() {
                push_cached!(query, cached, now);
                query.push("; ");
            }
            if !bills.is_empty() {
                push_bills!(query);
            }
            query.build_query_as().persistent(is_kept).fetch_all(&mut **tx).await?
        }
        // Parts of one statement, the sums among them, which SQLite cannot.
        Tx::Postgres(tx) => {
            let mut query = sqlx::QueryBuilder::new("WITH ");
            if !documents.is_empty() {
                query.push("stored AS (");
                push_documents!(query);
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
                push_bills!(query);
                query.push(
                    ") UPDATE team SET credits_used = credits_used + sums.amount FROM (SELECT team_id, \
                     CAST(SUM(amount) AS BIGINT) AS amount FROM entered GROUP BY team_id) AS sums \
                     WHERE team.id = sums.team_id",
                );
            }
            query.build().persistent(is_kept).execute(&mut **tx).await?;
            return Ok(());
        }
    };
    let mut sums: BTreeMap<TeamId, i64> = BTreeMap::new();
    for (team, amount) in entered {
        *sums.entry(team).or_default() += amount;
    }
    for (team, amount) in sums {
        const SQL: &str = "UPDATE team SET credits_used = credits_used + $2 WHERE id = $1";
        on_db!(tx, |conn| sqlx::query(SQL).bind(team).bind(amount).execute(conn).await?.rows_affected());
    }
    Ok(())
}
