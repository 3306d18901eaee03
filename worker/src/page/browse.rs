//! A page in a browser: in the worker's pool, or in one of its own with what a profile holds.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use weir_shared::domain::job::JobKind;
use weir_shared::domain::profile::ProfileUse;
use weir_shared::error_code::ErrorCode;
use weir_shared::store::work::page::acting;

use super::error::PageError;
use super::request::PageRequest;
use super::task::PageTask;
use crate::browser::{Permit, RenderError, RenderRequest, Rendered};
use crate::sessions;
use crate::sessions::page::{OnProfile, PageExit, PageTrouble};

/// How soon a page that waits for its profile looks again, milliseconds.
const LINE_MS: i64 = 500;

/// Renders the page. What a browser could not do with it is the inner error: there may be another way to its document.
///
/// # Errors
/// When the profile is in use, or there is no browser for profiles.
pub async fn browse(
    task: &PageTask,
    request: &mut PageRequest,
    deadline: Instant,
) -> Result<Result<Rendered, RenderError>, PageError> {
    match &task.options().profile {
        Some(profile) => on_profile(task, request, profile, deadline).await,
        None => Ok(in_pool(task, request, deadline).await),
    }
}

impl Permit for PageTask {
    fn begin(&self) -> BoxFuture<'_, Result<bool, String>> {
        let begin = async {
            self.attempted.may_act(self.context.acting.token());
            let begun = acting::begin(&self.context.process.db, &self.page).await;
            let begun = begun.map_err(|error| format!("that the actions begin cannot be written down: {error}"))?;
            if begun {
                self.attempted.acts();
            }
            Ok(begun)
        };
        begin.boxed()
    }
}

async fn in_pool(task: &PageTask, request: &PageRequest, deadline: Instant) -> Result<Rendered, RenderError> {
    let Some(browsers) = &task.context.process.browsers else {
        return Err(RenderError::Unavailable("this worker has no browsers (WEIR_PAGE_BROWSERS=0)".to_owned()));
    };
    browsers.render(request.to_render(task, deadline)).await
}

/// The page in a browser of its own, with what the profile holds.
async fn on_profile(
    task: &PageTask,
    request: &mut PageRequest,
    profile: &ProfileUse,
    deadline: Instant,
) -> Result<Result<Rendered, RenderError>, PageError> {
    let process = &task.context.process;
    let Some(resources) = process.session_resources.get() else {
        let text = "No browser for profiles is available at the moment.";
        return Err(PageError::again(ErrorCode::AllEnginesFailed, text));
    };
    let upstream = request.route.place();
    let proxy = upstream.and_then(|place| process.upstreams.get(place)).map(|[open, _]| open);
    let exit = PageExit { egress: proxy.unwrap_or(&process.egress).addr(), upstream };
    // The whole browser goes that way, and not this page alone.
    let rendering = RenderRequest { upstream: None, ..request.to_render(task, deadline) };
    let busy = "Another session is currently writing to this profile. Try again when it has ended, or set saveChanges \
        to false.";
    let work = OnProfile { resources, exit, page: &task.page, profile };
    match sessions::page::render(work, rendering).await {
        Ok((rendered, warning)) => {
            request.warnings.extend(warning);
            Ok(Ok(rendered))
        }
        Err(PageTrouble::InLine) => Err(PageError::early(ErrorCode::ProfileBusy, busy, LINE_MS)),
        Err(PageTrouble::Busy) if task.spec.kind == JobKind::Scrape => {
            Err(PageError::last(ErrorCode::ProfileBusy, busy))
        }
        Err(PageTrouble::Busy) => Err(PageError::again(ErrorCode::ProfileBusy, busy)),
        Err(PageTrouble::Render(error)) => Ok(Err(error)),
    }
}
