//! The start of a session's browser: cold or from a saved profile, in its box, with nobody to serve yet.

use std::sync::Arc;

use weir_shared::ids::TeamId;
use weir_shared::store::sessions::profiles;
use weir_shared::{blocking, random};

use super::profile::Vault;
use super::resources::{OpenError, SessionResources};
use crate::sandbox::{BrowserBox, BrowserSpec, Purpose, Sandbox, SandboxError, SessionDir};

/// Size of a session's window, CSS pixels.
pub const WINDOW: (u32, u32) = (1280, 720);

/// A browser that runs in its box, serves nobody yet and has no way out of it.
pub(super) struct Started {
    pub dir: Arc<SessionDir>,
    pub browser: Arc<BrowserBox>,
    pub cookies: Option<Vec<u8>>,
}

impl Started {
    pub(super) fn is_alive(&self) -> bool {
        !self.browser.has_exited()
    }

    /// Kills it. Its directory goes with the last handle to it.
    pub(super) async fn discard(self) {
        self.browser.kill().await;
    }
}

/// A profile to begin with.
pub(super) struct Saved {
    archive: Vec<u8>,
    vault: Vault,
    owner: String,
}

/// Starts a browser, from a saved profile if there is one.
pub(super) async fn start_cold(sandbox: &Arc<Sandbox>, saved: Option<Saved>) -> Result<Started, OpenError> {
    let (dir, browser, cookies) = start(sandbox, saved).await?;
    Ok(Started { dir: Arc::new(dir), browser: Arc::new(browser), cookies })
}

/// The same, as its parts.
pub(super) async fn start(
    sandbox: &Arc<Sandbox>,
    saved: Option<Saved>,
) -> Result<(SessionDir, BrowserBox, Option<Vec<u8>>), OpenError> {
    let maker = Arc::clone(sandbox);
    let prepared = blocking::run(move || -> Result<_, OpenError> {
        let name = format!("s{}", random::hex::<4>());
        let dir = maker.session_dir(&name).map_err(|e| SandboxError::Failed(format!("{e:#}")))?;
        let Some(saved) = saved else { return Ok((dir, None)) };
        match saved.vault.unpack(saved.archive, &dir.home, &saved.owner, dir.owner()) {
            Ok(cookies) => Ok((dir, Some(cookies))),
            Err(error) => Err(OpenError::Profile(error.to_string())),
        }
    });
    let (dir, cookies) = prepared.await.map_err(|e| SandboxError::Failed(e.to_string()))??;
    let spec = BrowserSpec { purpose: Purpose::Session { window: WINDOW }, exit: None, extra_flags: Vec::new() };
    let browser = sandbox.start_browser(&dir, spec).await?;
    Ok((dir, browser, cookies))
}

/// The last complete version of a profile, if there is one.
pub(super) async fn load(
    resources: &SessionResources,
    team: TeamId,
    name: &str,
) -> Result<Option<(i64, Saved)>, OpenError> {
    let mut problem = String::new();
    // A version may be replaced, and its archive removed, between the row and the blob.
    for _ in 0..3 {
        let Some(current) = profiles::current(&resources.db, team, name).await? else { return Ok(None) };
        let (blobs, key) = (resources.blobs.clone(), current.blob);
        match blocking::run(move || blobs.get(&key)).await {
            Ok(Ok(archive)) => {
                let saved = Saved { archive, vault: resources.vault.clone(), owner: owner(team, name) };
                return Ok(Some((current.version, saved)));
            }
            Ok(Err(error)) => problem = error.to_string(),
            Err(error) => problem = error.to_string(),
        }
    }
    Err(OpenError::Profile(problem))
}

/// Whose profile an archive is: authenticated with it.
pub(super) fn owner(team: TeamId, name: &str) -> String {
    format!("{team}/{name}")
}
