//! Results on Postgres: one statement for any number of rows, whose columns come as arrays. So it is always the same and
//! stays prepared, while rows in its text would have to be read and planned anew for each number of them.

use sqlx::{Postgres, Transaction};

use crate::domain::job::JobKind;
use crate::store::StoreResult;
use crate::store::accounts::credits::{ENTERED_ONCE, LEDGER_ENTRY, used_more};
use crate::store::db::sql::column;
use crate::store::work::page::rules::{
    INSERT_CONTENT, INSERT_DOCUMENT, INSERT_VERSION, KNOWN_CONTENT, REPLACE_VERSION,
};
use crate::time::Timestamp;

use super::Results;

/// Versions come after the contents: parts of a statement run in the order in which they need each other.
const WRITE: &str = sql!(
    "WITH stored AS (",
    INSERT_DOCUMENT,
    "SELECT * FROM UNNEST($2, $3, $4, $5, $6, $7, $8)), came AS (",
    INSERT_CONTENT,
    "SELECT digest, size, packed, $1, blob, body FROM UNNEST($9, $10, $11, $12, $13) \
     AS given (digest, size, packed, blob, body)",
    KNOWN_CONTENT,
    " RETURNING 1), kept AS (",
    INSERT_VERSION,
    "SELECT key, team_id, url, site, digest, head, $1, expires_at, $1 FROM UNNEST($14, $15, $16, $17, $18, $19, $20) \
     AS given (key, team_id, url, site, digest, head, expires_at) WHERE (SELECT COUNT(*) FROM came) >= 0",
    REPLACE_VERSION,
    "), entered AS (",
    LEDGER_ENTRY,
    "SELECT key, team_id, api_key_id, kind, amount, $1 FROM UNNEST($21, $22, $23, $24, $25) \
     AS given (key, team_id, api_key_id, kind, amount)",
    ENTERED_ONCE,
    " RETURNING team_id, amount) ",
    used_more!("sums.amount"),
    " FROM (SELECT team_id, CAST(SUM(amount) AS BIGINT) AS amount FROM entered GROUP BY team_id) AS sums \
     WHERE team.id = sums.team_id"
);

/// Writes them, and adds what was entered in the ledger to the sums of its teams.
pub async fn write(tx: &mut Transaction<'static, Postgres>, results: &Results<'_>, now: Timestamp) -> StoreResult<()> {
    let Results { documents, bills, contents, versions } = results;
    sqlx::query(WRITE)
        .bind(now)
        .bind(column(documents, |(end, ..)| end.page.job_id))
        .bind(column(documents, |(_, seq, _)| *seq))
        .bind(column(documents, |(end, ..)| end.page.id))
        .bind(column(documents, |(.., document)| document.size))
        .bind(column(documents, |(.., document)| document.body.inline()))
        .bind(column(documents, |(.., document)| document.body.blob()))
        .bind(column(documents, |(.., document)| document.steps.as_deref()))
        .bind(column(contents, |version| version.digest.as_str()))
        .bind(column(contents, |version| version.size))
        .bind(column(contents, |version| version.packed))
        .bind(column(contents, |version| version.body.blob()))
        .bind(column(contents, |version| version.body.inline()))
        .bind(column(versions, |(place, ..)| place.0.as_str()))
        .bind(column(versions, |(.., end)| end.page.team_id))
        .bind(column(versions, |(_, version, _)| version.url.as_str()))
        .bind(column(versions, |(_, version, _)| version.site.as_deref()))
        .bind(column(versions, |(_, version, _)| version.digest.as_str()))
        .bind(column(versions, |(_, version, _)| version.head.as_str()))
        .bind(column(versions, |(_, version, _)| now.plus_ms(version.counts_ms)))
        .bind(column(bills, |(end, _)| format!("page:{}", end.page.id)))
        .bind(column(bills, |(end, _)| end.page.team_id))
        .bind(column(bills, |(end, _)| end.key))
        .bind(column(bills, |(end, _)| end.kind.unwrap_or(JobKind::Batch).credit_kind()))
        .bind(column(bills, |(_, credits)| *credits))
        .execute(&mut **tx)
        .await?;
    Ok(())
}
