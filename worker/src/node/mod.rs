//! A worker from its start to its end: one process, and one life after another in it. A life ends with a drain, which ends
//! the process too, or because the others count the worker as dead; then the next one begins under a new id.

mod examine;
mod heartbeat;
mod life;
mod load;
mod pools;
mod prepare;
mod registration;
mod session_offer;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;
use weir_shared::config::Settings;
use weir_shared::{blocking, lasting, memory, store, traces};

pub use examine::examine;

use crate::listener;
use crate::sandbox::Sandbox;
use life::LifeEnd;
use pools::Pools;

/// Bound on the end of the last boxes.
const LAST_BOXES: Duration = Duration::from_secs(5);

/// Bound on writing the last figures.
const LAST_FIGURES: Duration = Duration::from_secs(2);

/// Runs a worker until `stop` is cancelled and its work is drained.
///
/// # Errors
/// When the database, the sandbox or the address of the private listener cannot be used.
pub async fn run(settings: Settings, stop: CancellationToken) -> anyhow::Result<()> {
    let traces = settings.traces.as_ref().map(|url| traces::start(url, "weir-worker")).transpose()?;
    // First, for a database may be away for long, and a stop ends the wait.
    let run_dirs = settings.worker.run_dirs.clone();
    blocking::run(move || Sandbox::bury_the_dead(&run_dirs)).await??;
    let Some(pools) = Pools::connect(&settings.database_url, &stop).await? else { return Ok(()) };
    let secret = store::db::settings::internal_secret(&pools.rows, settings.internal_secret.as_deref()).await?;
    let process = Arc::new(prepare::process(settings, pools.rows.clone(), secret).await?);
    let socket = TcpListener::bind(process.settings.worker.bind)
        .with_context(|| format!("WEIR_WORKER_BIND={}: cannot listen there", process.settings.worker.bind))?;
    let (address, server) = listener::start(socket, Arc::clone(&process))?;
    let server_handle = server.handle();
    tokio::spawn(server);
    tracing::info!(%address, slots = process.settings.worker.concurrency, "the worker is ready");
    tokio::spawn(memory::forget_the_start());
    let over = CancellationToken::new();
    let write_figures = {
        let (process, over) = (Arc::clone(&process), over.clone());
        move || load::write_figures(Arc::clone(&process), over.clone())
    };
    let figures = tokio::spawn(lasting::again("figures of the minute", write_figures));
    while !stop.is_cancelled() {
        if life::live(&process, &pools, &address.to_string(), &stop).await? == LifeEnd::Drained {
            break;
        }
        tracing::warn!("this worker counted as dead; it starts again under a new id");
    }
    over.cancel();
    let _ = tokio::time::timeout(LAST_FIGURES, figures).await;
    if let Some(browsers) = &process.browsers {
        browsers.shutdown().await;
    }
    process.sandbox.close(LAST_BOXES).await;
    server_handle.stop(false).await;
    pools.close().await;
    if let Some(traces) = traces {
        traces.finish().await;
    }
    Ok(())
}
