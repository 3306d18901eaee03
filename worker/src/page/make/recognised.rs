//! Text of pictures. To recognise it takes seconds, so what was read of a stored file is kept with it.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use weir_shared::store::contents::derived::{self, Piece};
use weir_shared::time::Timestamp;

use crate::page::draft::SiteResponse;
use crate::page::task::PageTask;
use crate::pdf::ocr::{self, OcrError, Recognised};

/// The text of the named pages of a PDF, by page, if wanted with its blocks.
///
/// # Errors
/// As for [`ocr::pages`].
pub async fn pages(
    task: &PageTask,
    response: &mut SiteResponse,
    file: &Bytes,
    numbers: &[u32],
    with_blocks: bool,
    deadline: Instant,
) -> Result<BTreeMap<u32, Recognised>, OcrError> {
    let key = if with_blocks { "pages with blocks" } else { "pages" };
    let mut known: BTreeMap<u32, Recognised> = kept(task, response, key).await.unwrap_or_default();
    let missing: Vec<u32> = numbers.iter().copied().filter(|number| !known.contains_key(number)).collect();
    if !missing.is_empty() {
        let sandbox = &task.context.process.sandbox;
        known.extend(ocr::pages(sandbox, file, &missing, with_blocks, deadline).await?);
        // A page on which nothing was found may have been too much for its reader just now.
        let read: BTreeMap<u32, &Recognised> =
            known.iter().filter(|page| !page.1.markdown.is_empty()).map(|(number, page)| (*number, page)).collect();
        keep(task, response, key, &read);
    }
    known.retain(|number, _| numbers.contains(number));
    Ok(known)
}

/// The text of an image.
///
/// # Errors
/// As for [`ocr::image`].
pub async fn image(
    task: &PageTask,
    response: &mut SiteResponse,
    file: &Bytes,
    deadline: Instant,
) -> Result<String, OcrError> {
    if let Some(known) = kept(task, response, "image").await {
        return Ok(known);
    }
    let read = ocr::image(&task.context.process.sandbox, file, deadline).await?;
    if !read.is_empty() {
        keep(task, response, "image", &read);
    }
    Ok(read)
}

/// The text is the file's own, so it is the same for all who have the file, however old it is.
async fn kept<T: DeserializeOwned>(task: &PageTask, response: &SiteResponse, key: &str) -> Option<T> {
    let stored = response.stored.as_ref()?;
    let found = derived::get(&task.context.process.db, &stored.digest, key, Timestamp(0)).await;
    found.unwrap_or_else(|error| {
        tracing::warn!(%error, page.id = %task.page.id, "what was recognised in a stored file cannot be read");
        None
    })
}

fn keep(task: &PageTask, response: &mut SiteResponse, key: &str, read: &impl Serialize) {
    if task.keeps_derived() {
        response.derived.extend(Piece::pack(key.to_owned(), read).ok().flatten());
    }
}
