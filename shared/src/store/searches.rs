//! Searches: what is written of one when its hits are known. The pages of hits that are scraped are a job's.

use crate::domain::activity::Endpoint;
use crate::domain::api_version::ApiVersion;
use crate::domain::job::JobKind;
use crate::ids::{JobId, KeyId, TeamId};
use crate::on_db;
use crate::time::Timestamp;

use super::activity::{self, Entry};
use super::credits::{ENTERED_ONCE, LEDGER_ENTRY, add_used};
use super::{StoreResult, Tx};

/// A search that is answered.
pub struct NewSearch<'a> {
    pub id: JobId,
    pub team: TeamId,
    pub key: Option<KeyId>,
    pub version: ApiVersion,
    /// What was looked for; `None`: nothing of it is kept.
    pub query: Option<&'a str>,
    /// Its price, without the pages of its hits.
    pub credits: i64,
    pub created_at: Timestamp,
}

/// Writes it into the list of what the team asked for, and bills it.
pub async fn record(tx: &mut Tx, search: &NewSearch<'_>) -> StoreResult<()> {
    const BILL: &str = sql!(LEDGER_ENTRY, "VALUES ($1, $2, $3, $4, $5, $6)", ENTERED_ONCE);
    let target = search.query.map(str::to_owned);
    let entry = Entry {
        id: search.id.0,
        endpoint: Endpoint::Search,
        version: search.version,
        target,
        created_at: search.created_at,
    };
    activity::record(tx, search.team, &entry).await?;
    if search.credits == 0 {
        return Ok(());
    }
    let entered = on_db!(tx, |conn| {
        sqlx::query(BILL)
            .bind(format!("search:{}", search.id))
            .bind(search.team)
            .bind(search.key)
            .bind(JobKind::Search.credit_kind())
            .bind(search.credits)
            .bind(search.created_at)
            .execute(conn)
            .await?
            .rows_affected()
    });
    if entered == 1 {
        add_used(tx, search.team, search.credits).await?;
    }
    Ok(())
}
