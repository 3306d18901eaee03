//! `weir migrate`: applies the migrations of this build, or says which are missing.

use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use weir_shared::config::Settings;
use weir_shared::store::db::migrations::{self, Shape};
use weir_shared::store::{self, Db, PoolUse};
use weir_shared::telemetry;

use super::database::missing_file;
use super::output::{Output, say};
use crate::server;

const STOPPED: &str = "stopped before the end";

/// Runs until it is done or told to stop.
pub async fn run(settings: &Settings, check: bool, output: Output) -> anyhow::Result<ExitCode> {
    let _log = telemetry::init(&settings.log)?;
    let stop = server::stop_signal()?;
    if check {
        let shape = stop.run_until_cancelled(look(settings, &stop)).await.context(STOPPED)??;
        return report(&shape, output);
    }
    let db = connect(settings, &stop).await?;
    store::migrate_patiently(&db, &stop).await?.context(STOPPED)?;
    db.close().await;
    Ok(ExitCode::SUCCESS)
}

async fn connect(settings: &Settings, stop: &CancellationToken) -> anyhow::Result<Db> {
    let db = server::connect_patiently(settings, PoolUse::Commands, stop).await?;
    db.context("stopped before the database was there")
}

/// How the database differs; nothing is made.
async fn look(settings: &Settings, stop: &CancellationToken) -> anyhow::Result<Shape> {
    if missing_file(settings).is_some() {
        return Ok(migrations::shape_of_no_file());
    }
    let db = connect(settings, stop).await?;
    let shape = migrations::shape(&db).await?;
    db.close().await;
    Ok(shape)
}

fn report(shape: &Shape, output: Output) -> anyhow::Result<ExitCode> {
    if output.json {
        let found = json!({"missing": shape.missing, "newer": shape.newer, "damaged": shape.damaged});
        say(format_args!("{found}"));
    } else {
        for name in &shape.missing {
            say(format_args!("to be applied: {name}"));
        }
        if shape.missing.is_empty() && shape.damaged.is_empty() {
            say(format_args!("the database fits"));
        }
    }
    shape.accept()?;
    Ok(if shape.missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
