//! Browser sessions are offered once the sandbox has been tried. Pages do not wait for it.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use weir_shared::blocking;
use weir_shared::ids::WorkerId;
use weir_shared::store::work::nodes;

use crate::context::Process;
use crate::exec::Assets;
use crate::sessions::{SessionResources, Sessions, Vault};

/// Tries the sandbox, then takes sessions or says why not and tries again.
pub(super) async fn run(process: Arc<Process>, id: WorkerId, draining: CancellationToken, fenced: CancellationToken) {
    let wanted = process.settings.worker.sessions;
    if wanted == 0 {
        return;
    }
    let mut pause = Duration::from_secs(1);
    loop {
        match process.session_resources.get_or_try_init(|| prepare_sessions(&process)).await {
            Ok(resources) => {
                // Those of this life, when this has begun again after it broke: they stay.
                if process.sessions().is_none() {
                    let (draining, fenced) = (draining.clone(), fenced.clone());
                    process.set_sessions(Some(Sessions::start(Arc::clone(resources), id, draining, fenced)));
                }
                return write_offer(&process, id, wanted as i64, None, &draining, &fenced).await;
            }
            Err(why) => {
                tracing::error!(why, "this worker takes no browser sessions; it is tried again");
                write_offer(&process, id, 0, Some(&why), &draining, &fenced).await;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(60));
    }
}

async fn write_offer(
    process: &Process,
    id: WorkerId,
    slots: i64,
    refused: Option<&str>,
    draining: &CancellationToken,
    fenced: &CancellationToken,
) {
    while !draining.is_cancelled() && !fenced.is_cancelled() {
        let offer = async {
            let mut tx = process.db.begin().await?;
            nodes::offer_sessions(&mut tx, id, slots, refused).await?;
            tx.commit().await
        };
        match offer.await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(%error, "sessions cannot be offered yet");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn prepare_sessions(process: &Arc<Process>) -> Result<Arc<SessionResources>, String> {
    let (settings, sandbox) = (&process.settings, Arc::clone(&process.sandbox));
    sandbox.probe().await.map_err(|e| e.to_string())?;
    let runners = settings.worker.runners.clone();
    let (programs, writing) = sandbox.programs().ok_or("this worker is stopping")?;
    let find = move || {
        let _writing = writing;
        Assets::find(&runners, &programs)
    };
    let assets = blocking::run(find).await.map_err(|e| e.to_string())?.map_err(|e| format!("{e:#}"))?;
    Ok(Arc::new(SessionResources {
        db: process.db.clone(),
        blobs: process.blobs.clone(),
        assets: Arc::new(assets),
        sandbox,
        vault: Vault::new(process.secret.as_bytes()),
        metrics: process.metrics.clone(),
        proxies: Arc::clone(&process.proxies),
        ads: Arc::clone(&process.ads),
        warm: settings.browser.warm,
    }))
}
