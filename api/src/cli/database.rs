//! The database that a command works on, and the teams it names.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use weir_shared::config::{DatabaseUrl, Settings};
use weir_shared::ids::TeamId;
use weir_shared::store::accounts::teams::TeamRow;
use weir_shared::store::db::migrations;
use weir_shared::store::{self, Db, PoolUse, StoreError};

use crate::server;

/// The database for a command, which is to be there: a command that is given in another folder than the service's would
/// otherwise make an empty one, and answer of that. It is left in the shape that it has, because older processes may be
/// using it.
///
/// # Errors
/// When there is none, or it cannot be reached.
pub(super) async fn open(settings: &Settings) -> anyhow::Result<Db> {
    let db = existing(settings).await?;
    if is_empty(&db).await? {
        bail!("the database of DATABASE_URL is empty: `weir serve` or `weir migrate` makes its tables");
    }
    Ok(db)
}

/// As [`open`], but one that is not there is made: for what comes before the first start of a service.
///
/// # Errors
/// When it cannot be reached or made.
pub(super) async fn open_or_make(settings: &Settings) -> anyhow::Result<Db> {
    let db = server::connect(settings, PoolUse::Commands).await?;
    if is_empty(&db).await? {
        store::migrate(&db).await?;
    }
    Ok(db)
}

async fn existing(settings: &Settings) -> anyhow::Result<Db> {
    if let Some(path) = missing_file(settings) {
        bail!(
            "there is no database at {}: give the command in the service's folder and with its settings, or set DATABASE_URL",
            path.display()
        );
    }
    server::connect(settings, PoolUse::Commands).await
}

/// Where SQLite's file is to be, if it is not there.
pub(super) fn missing_file(settings: &Settings) -> Option<&Path> {
    match &settings.database_url {
        DatabaseUrl::Sqlite(path) if !path.exists() => Some(path),
        DatabaseUrl::Sqlite(_) | DatabaseUrl::Postgres(_) => None,
    }
}

async fn is_empty(db: &Db) -> anyhow::Result<bool> {
    match store::accounts::teams::default_id(db).await {
        Ok(_) => Ok(false),
        Err(StoreError::Unavailable(error)) => Ok(error.as_database_error().is_some_and(migrations::is_missing_table)),
        Err(error) => Err(error.into()),
    }
}

/// The team of this name, or an error that says so. One that is removed is none that anything can be done with.
pub(super) async fn team_named(db: &Db, name: &str) -> anyhow::Result<TeamRow> {
    let found = store::accounts::teams::by_name(db, name).await?;
    let team = found.with_context(|| format!("there is no team named {name}"))?;
    ensure!(team.removed_at.is_none(), "the team {name} is removed already, and what was its own goes by itself");
    Ok(team)
}

/// The id of a team that may be named in a filter.
pub(super) async fn team_filter(db: &Db, name: Option<&str>) -> anyhow::Result<Option<TeamId>> {
    match name {
        Some(name) => Ok(Some(team_named(db, name).await?.id)),
        None => Ok(None),
    }
}
