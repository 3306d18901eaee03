//! The database that a command works on, and the teams it names.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use weir_shared::config::{DatabaseUrl, Settings};
use weir_shared::ids::TeamId;
use weir_shared::store::accounts::teams::TeamRow;
use weir_shared::store::db::migrations;
use weir_shared::store::{self, Db, PoolUse, StoreError, StoreResult, Tx};

use crate::endpoints::outage;
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

/// Commits what a command does that must not be done twice, or cannot be shown again. `unknown` says what is to be done where
/// the answer to the commit was lost, and `has_happened` has not found what it wrote.
///
/// # Errors
/// Those of the commit, with these words where it may have happened.
pub(super) async fn commit<F>(
    db: &Db,
    tx: Tx,
    has_happened: impl Fn() -> F,
    unknown: impl FnOnce() -> String,
) -> anyhow::Result<()>
where
    F: Future<Output = StoreResult<bool>>,
{
    let Err(error) = outage::commit_to(db, tx, has_happened).await else { return Ok(()) };
    let may_have_happened = error.leaves_commit_open();
    let error = anyhow::Error::from(error);
    Err(if may_have_happened { error.context(unknown()) } else { error })
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use weir_shared::fault::{Fault, FaultPoint};
    use weir_shared::random;
    use weir_shared::store::accounts::{keys, teams};

    use super::*;

    #[tokio::test]
    async fn a_commit_whose_answer_is_lost_is_done_or_says_what_to_do() {
        let folder = std::env::temp_dir().join(format!("weir-commands-{}", random::hex::<6>()));
        let db = Db::connect(&DatabaseUrl::Sqlite(folder.join("weir.db")), 1, PoolUse::Commands).await.unwrap();
        store::migrate(&db).await.unwrap();
        let made = async || {
            let mut tx = db.begin().await.unwrap();
            let team = teams::insert(&mut tx, &random::id().to_string(), db.now()).await.unwrap();
            let key = keys::create(&mut tx, team, db.now()).await.unwrap();
            db.faults().arm(FaultPoint::CallCommitted, Fault::Fail, 1);
            (tx, key.id)
        };
        let (tx, id) = made().await;
        let is_there = || async { Ok(keys::load(&db, id).await?.is_some()) };
        commit(&db, tx, is_there, || unreachable!("it is there")).await.unwrap();
        assert!(db.faults().have_happened());
        // What cannot be looked for is not known.
        let (tx, _) = made().await;
        let cannot = || async { Err(StoreError::Corrupt("no".to_owned())) };
        let error = commit(&db, tx, cannot, || "look for it by `weir key list`".to_owned()).await.unwrap_err();
        assert!(format!("{error:#}").starts_with("look for it by `weir key list`: "), "{error:#}");
        db.close().await;
        std::fs::remove_dir_all(folder).unwrap();
    }
}
