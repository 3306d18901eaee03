//! Searches: what is written of one when its hits are known. The pages of hits that are scraped are a job's.

use crate::domain::activity::Endpoint;
use crate::domain::api_version::ApiVersion;
use crate::domain::job::JobKind;
use crate::ids::{JobId, KeyId, TeamId};
use crate::store::accounts::activity::{self, Entry};
use crate::store::accounts::credits::{self, Charge};
use crate::store::accounts::team_lock;
use crate::store::{StoreResult, Tx};
use crate::time::Timestamp;

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

/// Writes it into the list of what the team asked for, and bills it. The team is locked from then on.
pub async fn record(tx: &mut Tx, search: &NewSearch<'_>) -> StoreResult<()> {
    team_lock::lock(tx, search.team).await?;
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
    let charge = Charge {
        entry: format!("search:{}", search.id),
        team: search.team,
        key: search.key,
        kind: JobKind::Search.credit_kind(),
        amount: search.credits,
        at: search.created_at,
    };
    credits::charge(tx, charge).await
}
