//! A page of a scrape or batch on a profile (spec 4.7): a browser of its own that begins with what the profile holds, as a
//! session's does, and is packed again when the page is done.
//!
//! ```text
//! lease (when it saves) -> archive, browser, cookies -> the page -> browser closes -> archive -> published, lease freed
//! ```
//!
//! The lease counts for the attempt alone; what is left of it when this worker dies is freed by the sweeper.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use weir_shared::domain::profile::ProfileUse;
use weir_shared::store::sessions::profiles::{self, PageLease, Published};
use weir_shared::store::work::page::rows::Claimed;
use weir_shared::store::{Db, StoreError, StoreResult};
use weir_shared::{blocking, clock};

use super::cookies::settable;
use super::resources::{OpenError, SessionResources};
use super::save::{Archive, not_saved};
use super::start::{load, owner, start};
use crate::browser::{RenderError, RenderRequest, Rendered, Solo};
use crate::sandbox::Exit;

/// Browsers of this kind that one worker runs at once.
static BROWSERS: Semaphore = Semaphore::const_new(4);
/// What is kept back of a page's time to save its profile, at most.
const SAVING: Duration = Duration::from_secs(8);
/// Before each further try to write that it is saved.
const PAUSES: [Duration; 3] = [Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1_500)];

/// How such a browser goes out. It lets ads pass: the page refuses them itself.
#[derive(Debug, Clone, Copy)]
pub struct PageExit {
    /// The egress proxy that it uses.
    pub egress: SocketAddr,
    /// The place of the operator's proxy behind it; `None`: it connects by itself.
    pub upstream: Option<usize>,
}

/// A page to be rendered on a profile.
#[derive(Clone, Copy)]
pub struct OnProfile<'a> {
    pub resources: &'a SessionResources,
    pub exit: PageExit,
    pub page: &'a Claimed,
    pub profile: &'a ProfileUse,
}

/// Why there is no page.
#[derive(Debug)]
pub enum PageTrouble {
    /// Another page of the same job saves the profile.
    InLine,
    /// Somebody else saves it.
    Busy,
    Render(RenderError),
}

impl From<RenderError> for PageTrouble {
    fn from(error: RenderError) -> Self {
        Self::Render(error)
    }
}

impl From<StoreError> for PageTrouble {
    fn from(error: StoreError) -> Self {
        Self::Render(RenderError::Unavailable(error.to_string()))
    }
}

impl From<OpenError> for PageTrouble {
    fn from(error: OpenError) -> Self {
        Self::Render(RenderError::Unavailable(error.to_string()))
    }
}

/// Renders a page on its profile. With it, what its caller is to hear of a profile that could not be saved.
pub async fn render(work: OnProfile<'_>, request: RenderRequest) -> Result<(Rendered, Option<String>), PageTrouble> {
    let OnProfile { resources, page, profile, .. } = work;
    let waiting = tokio::time::timeout_at(request.deadline, BROWSERS.acquire());
    let _place = waiting.await.map_err(|_| RenderError::Timeout)?;
    if !profile.save_changes {
        let (rendered, solo) = open(work, request).await?;
        solo.stop().await;
        return Ok((rendered, None));
    }
    let mut tx = resources.db.begin().await?;
    let lease = profiles::take_for_page(&mut tx, page, &profile.name).await?;
    tx.commit().await?;
    match lease {
        PageLease::Taken => {}
        PageLease::InLine => return Err(PageTrouble::InLine),
        PageLease::Busy => return Err(PageTrouble::Busy),
    }
    let outcome = save(work, request).await;
    let release = async {
        let mut tx = resources.db.begin().await?;
        profiles::release_for_page(&mut tx, page).await?;
        tx.commit().await
    };
    if let Err(error) = release.await {
        tracing::warn!(page.id = %page.id, %error, "a profile's lease is left to the sweeper");
    }
    outcome
}

async fn open(work: OnProfile<'_>, request: RenderRequest) -> Result<(Rendered, Solo), PageTrouble> {
    let OnProfile { resources, exit, page, profile } = work;
    let saved = load(resources, page.team_id, &profile.name).await?.map(|(_, saved)| saved);
    let (dir, browser, cookies) = start(&resources.sandbox, saved).await?;
    let way = Exit { upstream: exit.upstream, refuses_ads: false };
    resources.sandbox.let_out(&browser, way, request.sites.refused()).map_err(OpenError::from)?;
    let cookies: Vec<Value> = match &cookies {
        Some(cookies) => serde_json::from_slice(cookies).unwrap_or_default(),
        None => Vec::new(),
    };
    let cookies = cookies.into_iter().map(settable).collect();
    let solo = Solo::connect(browser, dir, exit.egress, Arc::clone(&resources.ads), cookies).await;
    let solo = solo.map_err(|error| RenderError::Unavailable(format!("{error:#}")))?;
    match solo.render(request).await {
        Ok(rendered) => Ok((rendered, solo)),
        Err(error) => {
            solo.stop().await;
            Err(error.into())
        }
    }
}

async fn save(work: OnProfile<'_>, request: RenderRequest) -> Result<(Rendered, Option<String>), PageTrouble> {
    let OnProfile { resources, page, .. } = work;
    let left = request.deadline.saturating_duration_since(clock::instant());
    let kept_back = SAVING.min(left / 3);
    let deadline = request.deadline - kept_back;
    let (rendered, solo) = open(work, RenderRequest { deadline, ..request }).await?;
    // Some of it is for what comes after: a page without its profile saved is better than none.
    let packed = pack(work, &solo, clock::deadline(kept_back / 2)).await;
    solo.stop().await;
    match packed {
        Ok(()) => Ok((rendered, None)),
        Err(error) => {
            resources.metrics.profile_failures.inc();
            tracing::warn!(page.id = %page.id, error = format!("{error:#}"), "a page's profile is not saved");
            Ok((rendered, Some(not_saved(&error))))
        }
    }
}

async fn pack(work: OnProfile<'_>, solo: &Solo, by: Instant) -> anyhow::Result<()> {
    let OnProfile { resources, page, profile, .. } = work;
    let cookies = solo.close().await?;
    let home = solo.home().ok_or_else(|| anyhow::anyhow!("the browser's folder is gone"))?;
    let (vault, owner) = (resources.vault.clone(), owner(page.team_id, &profile.name));
    let packed = blocking::run(move || vault.pack(&home, &cookies, &owner)).await??;
    let key = format!("profiles/{}/{}-{}.bin", page.team_id, page.id, page.epoch);
    let archive = Archive::store(&resources.db, &resources.blobs, key, packed, by).await?;
    let mut pauses = PAUSES.into_iter();
    let is_saved = loop {
        match publish(&resources.db, page, &profile.name, &archive).await {
            Ok(is_saved) => break is_saved,
            // The commit may have happened all the same: the next try looks at the row.
            Err(error) => match pauses.next() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error.into()),
            },
        }
    };
    if !is_saved {
        anyhow::bail!("another attempt has taken over");
    }
    resources.metrics.profile_bytes.inc_by(archive.size.unsigned_abs());
    Ok(())
}

/// `false`: the attempt does not hold the profile any more.
async fn publish(db: &Db, page: &Claimed, name: &str, archive: &Archive) -> StoreResult<bool> {
    let mut tx = db.begin().await?;
    let (blob, size) = (&archive.blob, archive.size);
    let published = profiles::publish_for_page(&mut tx, page, name, blob, size, db.now()).await?;
    tx.commit().await?;
    Ok(published != Published::Refused)
}
