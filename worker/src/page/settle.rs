//! A large document on its way to its place among the blobs, off the threads that compute.
//!
//! Where that place is away, the work that was done waits for it, and the page's slot is somebody else's meanwhile.

use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::{sleep_until, timeout_at};
use weir_shared::blobs::Blobs;
use weir_shared::domain::job::JobKind;
use weir_shared::error_code::ErrorCode;
use weir_shared::slots::Slot;
use weir_shared::store::contents::version::Body;
use weir_shared::store::work::page::end::Encoded;
use weir_shared::{blocking, clock};

use super::attempt;
use super::error::PageError;
use super::task::PageTask;

/// Bytes of documents that may wait without a slot; one that finds no room keeps its slot until there is some.
const ROOM: usize = 64 << 20;
/// What the room is counted in, bytes.
const UNIT: usize = 1 << 10;
/// How long a document of a job waits for its place before its page is tried again.
const PATIENCE: Duration = Duration::from_secs(300);
/// Pauses between two tries: the first, and the longest.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

static WAITING: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(ROOM / UNIT));

/// Puts a large document among the blobs; nothing is to be done for a small one. Gives the slot back as soon as the page
/// does without.
///
/// # Errors
/// When there has been no place for it for so long: for a job's page minutes, for a caller on the line the time of the page.
pub async fn settle(task: &PageTask, document: &mut Encoded, slot: Slot) -> Result<(), PageError> {
    let Some(packed) = document.body.take_large() else { return Ok(()) };
    let PageTask { context, page, spec, .. } = task;
    let now = clock::instant();
    let end = match spec.kind {
        JobKind::Scrape => attempt::deadline(page, spec, now),
        _ => now + PATIENCE,
    };
    let units = packed.len().min(ROOM).div_ceil(UNIT);
    let room = WAITING.acquire_many(u32::try_from(units).unwrap_or(u32::MAX));
    // The semaphore is never closed.
    let Ok(_room) = timeout_at(end, room).await else { return Err(no_place()) };
    drop(slot);
    let (key, packed) = (Blobs::key(page.job_id, page.id, page.epoch), Bytes::from(packed));
    let mut pause = PAUSE;
    loop {
        let Err(error) = put(context.process.blobs.clone(), key.clone(), packed.clone()).await else {
            document.body = Body::Blob(key);
            return Ok(());
        };
        let next = clock::instant() + pause;
        if next >= end {
            tracing::error!(%error, page.id = %page.id, "a document cannot be stored");
            return Err(no_place());
        }
        tracing::warn!(%error, page.id = %page.id, "a document cannot be stored now; it is kept and tried again");
        sleep_until(next).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn no_place() -> PageError {
    PageError::again(ErrorCode::Unknown, "The document could not be stored.")
}

async fn put(blobs: Blobs, key: String, packed: Bytes) -> std::io::Result<()> {
    blocking::run(move || blobs.put(&key, &packed)).await?
}
