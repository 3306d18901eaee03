//! Whether a page's actions may begin, and whether they have: what has its effect on a site is not done twice.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;

use super::error::RenderError;

/// Where it is written down that a page's actions begin.
pub trait Permit: Send + Sync {
    /// Asked before the first action that may have an effect on the site. `false`: somebody has begun with them before.
    ///
    /// # Errors
    /// Why it cannot be told at the moment.
    fn begin(&self) -> BoxFuture<'_, Result<bool, String>>;
}

/// The actions of one page that may have an effect on its site.
#[derive(Clone, Default)]
pub struct Acting {
    permit: Option<Arc<dyn Permit>>,
    has_begun: Arc<AtomicBool>,
}

impl Acting {
    /// They begin when `permit` says so.
    pub fn with(permit: Arc<dyn Permit>) -> Self {
        Self { permit: Some(permit), has_begun: Arc::default() }
    }

    /// Whether one of them may have had its effect.
    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Called before each of them.
    ///
    /// # Errors
    /// [`RenderError::ActedBefore`], or that it cannot be told.
    pub(super) async fn begin(&self) -> Result<(), RenderError> {
        if self.has_begun() {
            return Ok(());
        }
        if let Some(permit) = &self.permit
            && !permit.begin().await.map_err(RenderError::Internal)?
        {
            return Err(RenderError::ActedBefore);
        }
        self.has_begun.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl fmt::Debug for Acting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acting").field("has_begun", &self.has_begun()).finish_non_exhaustive()
    }
}
