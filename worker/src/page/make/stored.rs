//! A page that was kept, made as if it came now.

use tokio::time::Instant;
use weir_shared::store::contents::cache::Found;

use super::fetched::{FromFetched, from_fetched};
use super::rendered::from_rendered;
use crate::page::draft::Made;
use crate::page::error::PageError;
use crate::page::request::PageRequest;
use crate::page::sent::Kept;
use crate::page::task::PageTask;

/// Makes it. `None`: what is asked for cannot be made of this.
///
/// # Errors
/// When nothing can be made of it, as if it came now.
pub async fn from_stored(
    task: &PageTask,
    found: &Found,
    kept: Kept,
    deadline: Instant,
) -> Result<Option<Made>, PageError> {
    let request = PageRequest::of_stored(task, found)?;
    match kept {
        Kept::Rendered(rendered) => Ok(Some(from_rendered(task, &request, *rendered).await?.0)),
        Kept::Fetched(fetched) => match from_fetched(task, &request, *fetched, deadline).await? {
            FromFetched::Page { made, .. } => Ok(Some(made)),
            FromFetched::NeedsBrowser | FromFetched::Refresh(_) => Ok(None),
        },
    }
}
