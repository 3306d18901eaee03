//! What an API process writes down once a minute: how the queue stands, what it counted itself, and which keys were used.

use tokio::task::JoinHandle;
use weir_shared::domain::figures::Gauges;
use weir_shared::figures::memory_bytes;
use weir_shared::lasting;
use weir_shared::store::StoreResult;
use weir_shared::store::accounts::keys;
use weir_shared::store::work::queue_depth;

use crate::app::{App, AppData};

/// Starts it, where there is a console. It ends, after a last row, when the process stops.
pub fn start(app: &AppData) -> Option<JoinHandle<()>> {
    if !app.settings.api.console.is_on {
        return None;
    }
    let app = app.clone();
    let runtime = app.runtime.clone();
    Some(runtime.spawn(lasting::again("figures of the minute", move || write(app.clone()))))
}

async fn write(app: AppData) {
    let (figures, over) = (app.figures.clone(), app.stopping.clone());
    figures.run(&app.db, || gauges(&app), over).await;
}

async fn gauges(app: &App) -> Gauges {
    if let Err(error) = note_keys(app).await {
        tracing::debug!(%error, "when keys were used could not be written");
    }
    let queue = queue_depth::queue_stats(&app.db).await.ok();
    let now = app.db.now();
    Gauges {
        queued: queue.map(|queue| queue.queued),
        running: queue.map(|queue| queue.running),
        oldest_ms: queue.map(|queue| queue.oldest.map_or(0, |oldest| now.ms_since(oldest))),
        memory_bytes: memory_bytes(),
        ..Gauges::default()
    }
}

/// Writes down which keys were used in this minute.
async fn note_keys(app: &App) -> StoreResult<()> {
    let used = app.callers.take_used();
    if used.is_empty() { Ok(()) } else { keys::used(&app.db, &used, app.db.now()).await }
}
