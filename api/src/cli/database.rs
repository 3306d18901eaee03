//! The database that a command works on, and the teams it names.

use anyhow::Context;
use weir_shared::config::Settings;
use weir_shared::ids::TeamId;
use weir_shared::store::teams::TeamRow;
use weir_shared::store::{self, Db, PoolUse, StoreError, migrations};

use crate::server;

/// The database for a command. An empty one is brought into shape first; one that is there is left as it is, because
/// older processes may be using it.
pub(super) async fn open(settings: &Settings) -> anyhow::Result<Db> {
    let db = server::connect(settings, PoolUse::Commands).await?;
    let is_empty = match store::teams::by_name(&db, store::teams::DEFAULT_TEAM).await {
        Ok(_) => false,
        Err(StoreError::Unavailable(error)) => error.as_database_error().is_some_and(migrations::is_missing_table),
        Err(error) => return Err(error.into()),
    };
    if is_empty {
        store::migrate(&db).await?;
    }
    Ok(db)
}

/// The team of this name, or an error that says so.
pub(super) async fn team_named(db: &Db, name: &str) -> anyhow::Result<TeamRow> {
    store::teams::by_name(db, name).await?.with_context(|| format!("there is no team named {name}"))
}

/// The id of a team that may be named in a filter.
pub(super) async fn team_filter(db: &Db, name: Option<&str>) -> anyhow::Result<Option<TeamId>> {
    match name {
        Some(name) => Ok(Some(team_named(db, name).await?.id)),
        None => Ok(None),
    }
}
