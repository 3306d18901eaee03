//! The format `changeTracking` of a page.

use serde_json::Value;
use weir_shared::domain::scrape::{ChangeTracking, JsonFormat};
use weir_shared::error_code::ErrorCode;
use weir_shared::store::snapshots::{self, Packed, Snapshot};
use weir_shared::time::Timestamp;

use super::failure::warning;
use crate::changes::{self, Status};
use crate::page::cpu::blocking;
use crate::page::draft::Draft;
use crate::page::error::PageError;
use crate::page::task::PageTask;
use crate::reader::{PageText, ReadError, Reader};

/// Compares the page with what it was, and makes ready what the next one is compared with.
pub async fn track(
    task: &PageTask,
    tracking: &ChangeTracking,
    reader: &Reader<'_>,
    draft: &mut Draft,
) -> Result<(), PageError> {
    let (page, options) = (&task.page, task.options());
    let key = changes::key(&page.url, options, tracking);
    let found = snapshots::get(&task.context.process.db, page.team_id, &key).await.map_err(|error| {
        tracing::warn!(%error, page.id = %page.id, "a page's history cannot be read");
        PageError::again(ErrorCode::Unknown, "The page's history could not be read.")
    })?;
    let (previous, before) = found.unzip();
    let is_gone = matches!(draft.response.status, 404 | 410);
    let (markdown, is_cut) = match (&draft.document.markdown, is_gone) {
        (Some(markdown), false) => changes::comparable(markdown),
        _ => Default::default(),
    };
    if is_cut {
        draft.warn("changeTracking: only the first 2 MiB of the page's text are compared.");
    }
    let mut now = Snapshot { is_gone, markdown, ..Snapshot::default() };
    let status = Status::of(before.as_ref(), &now);
    let mut report = changes::report(status, previous, is_gone || says_noindex(draft));
    let is_changed = status == Status::Changed;
    if tracking.json && !is_gone {
        let earlier = before.as_ref().filter(|before| !before.is_gone);
        match data(reader, tracking, draft, earlier, &mut now).await {
            Ok(Some(was)) if is_changed => {
                let is = now.data.as_ref().unwrap_or(&Value::Null);
                report.insert("json".to_owned(), changes::data_diff(&was, is));
                draft.bill.data = true;
            }
            Ok(_) => draft.bill.data = true,
            Err(error) => draft.warn(&warning("changeTracking in json mode is missing", &error)),
        }
    }
    let earlier = before.filter(|_| is_changed && tracking.git_diff);
    let scraped_at = Timestamp::now();
    let work = move || {
        let diff = earlier.map(|before| changes::diff(&before.markdown, &now.markdown));
        let packed = Packed::new(key, scraped_at, &now)
            .map_err(|_| PageError::again(ErrorCode::Unknown, "The page's history could not be written."))?;
        Ok((diff, packed))
    };
    let (diff, packed) = blocking(work).await?;
    if let Some((diff, is_cut)) = diff {
        report.insert("diff".to_owned(), diff);
        if is_cut {
            draft.warn("changeTracking: the diff was cut at 1 MiB.");
        }
    }
    draft.document.change_tracking = Some(Value::Object(report));
    if options.zero_retention {
        draft.warn("changeTracking: nothing of this page is kept, so it is not compared with the next one.");
    } else {
        draft.snapshot = Some(Box::new(packed));
    }
    Ok(())
}

/// Reads the data of now into its snapshot, unless the page is as it was; gives that of before, where there is one.
async fn data(
    reader: &Reader<'_>,
    tracking: &ChangeTracking,
    draft: &Draft,
    before: Option<&Snapshot>,
    now: &mut Snapshot,
) -> Result<Option<Value>, ReadError> {
    let wanted =
        JsonFormat { prompt: tracking.prompt.clone(), schema: tracking.schema.clone(), ..JsonFormat::default() };
    let by = changes::data_key(tracking);
    let known = before.filter(|before| before.data_by.as_ref() == Some(&by)).and_then(|before| before.data.clone());
    let is_same = before.is_some_and(|before| before.markdown == now.markdown);
    let was = match (before, known) {
        (_, Some(known)) => Some(known),
        // It was tracked without this mode, or for other fields.
        (Some(before), None) if !is_same => Some(read(reader, &wanted, None, draft, &before.markdown).await?),
        _ => None,
    };
    now.data = match &was {
        Some(was) if is_same => Some(was.clone()),
        was => Some(read(reader, &wanted, was.as_ref(), draft, &now.markdown).await?),
    };
    now.data_by = Some(by);
    Ok(was)
}

/// Of two versions only the text is read: what the page says of itself as data is there for one of them alone.
async fn read(
    reader: &Reader<'_>,
    wanted: &JsonFormat,
    like: Option<&Value>,
    draft: &Draft,
    markdown: &str,
) -> Result<Value, ReadError> {
    let page = PageText { url: &draft.response.url, markdown, structured: None };
    reader.data(wanted, like, page).await.map(|read| read.value)
}

/// Whether the page asks not to be found.
fn says_noindex(draft: &Draft) -> bool {
    let says = |text: &str| {
        text.split([',', ' ']).any(|word| matches!(word.trim().to_ascii_lowercase().as_str(), "noindex" | "none"))
    };
    match draft.document.metadata.get("robots") {
        Some(Value::String(text)) => says(text),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).any(says),
        _ => false,
    }
}
