//! Results on SQLite: statements in one string, of few sizes, so that they stay prepared.

use std::collections::BTreeMap;

use crate::domain::job::JobKind;
use crate::ids::TeamId;
use crate::store::StoreResult;
use crate::store::accounts::credits::{ENTERED_ONCE, LEDGER_ENTRY};
use crate::store::db::writer::SqliteTx;
use crate::store::work::page::rules::{
    INSERT_CONTENT, INSERT_DOCUMENT, INSERT_VERSION, KNOWN_CONTENT, REPLACE_VERSION,
};
use crate::time::Timestamp;

use super::Results;

/// Writes them. Returns what was entered in the ledger, by team.
pub async fn write(tx: &mut SqliteTx, results: Results<'_>, now: Timestamp) -> StoreResult<BTreeMap<TeamId, i64>> {
    let is_kept = is_usual(&results);
    let Results { documents, bills, contents, versions } = results;
    let mut query = sqlx::QueryBuilder::new("");
    if !documents.is_empty() {
        query.push(INSERT_DOCUMENT);
        query.push_values(documents, |mut values, (end, seq, document)| {
            values
                .push_bind(end.page.job_id)
                .push_bind(seq)
                .push_bind(end.page.id)
                .push_bind(document.size)
                .push_bind(document.body.inline())
                .push_bind(document.body.blob())
                .push_bind(document.steps.as_deref());
        });
        query.push("; ");
    }
    if !contents.is_empty() {
        query.push(INSERT_CONTENT);
        query.push_values(contents, |mut values, version| {
            values
                .push_bind(version.digest.as_str())
                .push_bind(version.size)
                .push_bind(version.packed)
                .push_bind(now)
                .push_bind(version.body.blob())
                .push_bind(version.body.inline());
        });
        query.push(KNOWN_CONTENT).push("; ");
    }
    if !versions.is_empty() {
        query.push(INSERT_VERSION);
        query.push_values(versions, |mut values, (place, version, end)| {
            values
                .push_bind(place.0.as_str())
                .push_bind(end.page.team_id)
                .push_bind(version.url.as_str())
                .push_bind(version.site.as_deref())
                .push_bind(version.digest.as_str())
                .push_bind(version.head.as_str())
                .push_bind(now)
                .push_bind(now.plus_ms(version.counts_ms))
                .push_bind(now);
        });
        query.push(REPLACE_VERSION).push("; ");
    }
    if !bills.is_empty() {
        query.push(LEDGER_ENTRY);
        query.push_values(bills, |mut values, (end, credits)| {
            values
                .push_bind(format!("page:{}", end.page.id))
                .push_bind(end.page.team_id)
                .push_bind(end.key)
                .push_bind(end.kind.unwrap_or(JobKind::Batch).credit_kind())
                .push_bind(credits)
                .push_bind(now);
        });
        query.push(sql!(ENTERED_ONCE, " RETURNING team_id, amount"));
    }
    let entered: Vec<(TeamId, i64)> = query.build_query_as().persistent(is_kept).fetch_all(&mut **tx).await?;
    let mut sums = BTreeMap::new();
    for (team, amount) in entered {
        *sums.entry(team).or_default() += amount;
    }
    Ok(sums)
}

/// Most pages leave all of it, so that there are few kinds of statements; the others are not kept prepared.
fn is_usual(results: &Results<'_>) -> bool {
    let documents = results.documents.len();
    let is_usual = |count: usize| count == 0 || count == documents;
    documents == results.bills.len()
        && is_usual(results.contents.len())
        && (documents == 0 || is_usual(results.versions.len()))
}
