//! `weir migrate`: applies the migrations of this build, or says which are missing.

use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use weir_shared::config::{DatabaseUrl, Settings};
use weir_shared::store::migrations::{self, Shape};
use weir_shared::store::{self, Db, PoolUse};
use weir_shared::telemetry;

use super::output::Output;
use crate::server;

/// Runs until it is done or told to stop.
pub async fn run(settings: &Settings, check: bool, output: Output) -> anyhow::Result<ExitCode> {
    telemetry::init(&settings.log)?;
    let stop = server::stop_signal()?;
    let work = async {
        if check {
            let shape = look(settings, &stop).await?;
            return say(&shape, output);
        }
        let db = connect(settings, &stop).await?;
        store::migrate(&db).await?;
        db.close().await;
        Ok(ExitCode::SUCCESS)
    };
    stop.run_until_cancelled(work).await.context("stopped before the end")?
}

async fn connect(settings: &Settings, stop: &CancellationToken) -> anyhow::Result<Db> {
    let db = server::connect_patiently(settings, PoolUse::Commands, stop).await?;
    db.context("stopped before the database was there")
}

/// How the database differs; nothing is made.
async fn look(settings: &Settings, stop: &CancellationToken) -> anyhow::Result<Shape> {
    if let DatabaseUrl::Sqlite(path) = &settings.database_url
        && !path.exists()
    {
        return Ok(migrations::shape_of_no_file());
    }
    let db = connect(settings, stop).await?;
    let shape = migrations::shape(&db).await?;
    db.close().await;
    Ok(shape)
}

fn say(shape: &Shape, output: Output) -> anyhow::Result<ExitCode> {
    if output.json {
        let found = json!({"missing": shape.missing, "newer": shape.newer, "damaged": shape.damaged});
        println!("{found}");
    } else {
        for name in &shape.missing {
            println!("to be applied: {name}");
        }
        if shape.missing.is_empty() && shape.damaged.is_empty() {
            println!("the database fits");
        }
    }
    shape.accept()?;
    Ok(if shape.missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
