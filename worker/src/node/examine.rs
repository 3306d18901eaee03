//! What this machine can do as a worker: tried, not guessed, with the sandbox as a worker makes it.

use std::sync::Arc;
use std::time::Duration;

use weir_shared::blocking;
use weir_shared::config::Settings;
use weir_shared::examination::{Examination, Limits};

use super::prepare::{Doors, sandbox_config};
use crate::fetch::{AdHosts, ProxyPools};
use crate::pdf::ocr;
use crate::sandbox::Sandbox;

/// Bound on the end of the boxes that were tried.
const LAST_BOXES: Duration = Duration::from_secs(5);

/// Tries it. Beside a worker that runs it harms nobody.
///
/// # Errors
/// When the proxies that boxes see the network through cannot be opened.
pub async fn examine(settings: &Settings) -> anyhow::Result<Examination> {
    let (proxies, no_ads) = (ProxyPools::new(&settings.net), Arc::new(AdHosts::read(&[])?));
    let doors = Doors::open(&settings.net.guard(), &proxies, &no_ads).await?;
    let config = sandbox_config(settings, &doors);
    let mut found = Examination {
        run_dir: Ok(()),
        limits: None,
        boxes: None,
        reads_pages: ocr::reads_pages(),
        reads_images: ocr::reads_images(),
    };
    match blocking::run(move || Sandbox::prepare(config)).await? {
        Err(error) => found.run_dir = Err(format!("{error:#}")),
        Ok(sandbox) => {
            let sandbox = Arc::new(sandbox);
            let limits = sandbox.status().limits;
            found.limits = Some(Limits { name: limits.name().to_owned(), is_cgroup: limits.is_cgroup() });
            found.boxes = Some(sandbox.probe().await.map_err(|error| error.to_string()));
            sandbox.close(LAST_BOXES).await;
        }
    }
    Ok(found)
}
