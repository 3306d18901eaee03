//! The format `changeTracking` of a page.

use serde_json::{Map, Value};
use tokio::time::Instant;
use weir_shared::domain::cache;
use weir_shared::domain::scrape::{ChangeTracking, JsonFormat};
use weir_shared::domain::watch::Watch;
use weir_shared::error_code::ErrorCode;
use weir_shared::guests::Holder;
use weir_shared::store::contents::cache as store;
use weir_shared::store::contents::snapshots::{self, Snapshot};

use super::failure::{page_error, warning};
use crate::changes::{self, Status};
use crate::page::cpu::blocking;
use crate::page::draft::{Draft, Made, Tracked};
use crate::page::error::PageError;
use crate::page::make::stored::from_stored;
use crate::page::sent::Kept;
use crate::page::task::PageTask;
use crate::reader::{PageText, ReadError, Reader};

/// Compares the page with what it was, and makes ready what the next one is compared with.
pub async fn track(
    task: &PageTask,
    tracking: &ChangeTracking,
    reader: &Reader<'_>,
    deadline: Instant,
    draft: &mut Draft,
) -> Result<(), PageError> {
    let (page, options) = (&task.page, task.options());
    let is_gone = matches!(draft.response.status, 404 | 410);
    if tracking.watch.is_some() && draft.response.status >= 400 && !is_gone {
        // What a site says of its trouble is no version of its page: that of before stays to be compared with.
        return Ok(());
    }
    let key = changes::key(&task.address(), options, tracking);
    let found = snapshots::get(&task.context.process.db, page.team_id, &key).await.map_err(|error| {
        tracing::warn!(%error, page.id = %page.id, "a page's history cannot be read");
        PageError::again(ErrorCode::Unknown, "The page's history could not be read.")
    })?;
    let (previous, before) = found.unzip();
    let (markdown, is_cut) = match (&draft.document.markdown, is_gone) {
        (Some(markdown), false) => changes::comparable(markdown),
        _ => Default::default(),
    };
    if is_cut {
        draft.warn("changeTracking: only the first 2 MiB of the page's text are compared.");
    }
    let now = Snapshot { is_gone, markdown, ..Snapshot::default() };
    let status = Status::of(before.as_ref(), &now);
    let mut compared = Compared { status, before, now, is_of_before: false, told: Map::new() };
    compared.make_anew(task, deadline).await;
    if let Some(watch) = &tracking.watch {
        compared = compared.without_noise(watch, task.holder()).await?;
    }
    if tracking.json && !is_gone {
        compared.read(reader, tracking, draft).await?;
    }
    compared.write_diff(tracking, task.holder(), draft).await?;
    if let Some(goal) = tracking.watch.as_ref().and_then(|watch| watch.goal.as_deref()) {
        compared.judge(reader, goal, draft).await;
    }
    let mut report = changes::report(compared.status, previous, is_gone || says_noindex(draft));
    report.append(&mut compared.told);
    draft.document.change_tracking = Some(Value::Object(report));
    if options.zero_retention {
        draft.warn("changeTracking: nothing of this page is kept, so it is not compared with the next one.");
        return Ok(());
    }
    let (scraped_at, monitor) = (task.context.process.db.now(), tracking.watch.as_ref().map(|watch| watch.monitor));
    let Compared { now: snapshot, is_of_before, .. } = compared;
    draft.tracked = Some(Tracked { key, scraped_at, monitor, snapshot, is_of_before }.into());
    Ok(())
}

/// A page and what it was, as far as they are compared.
struct Compared {
    status: Status,
    before: Option<Snapshot>,
    now: Snapshot,
    /// The text that is kept of now is that of before.
    is_of_before: bool,
    /// What the modes add to the report.
    told: Map<String, Value>,
}

impl Compared {
    /// Of a page that reads differently, the earlier version is made anew where it is still stored: it may be another
    /// release of ours that read it, and not the page that has changed.
    async fn make_anew(&mut self, task: &PageTask, deadline: Instant) {
        if self.status != Status::Changed {
            return;
        }
        let Some(before) = &mut self.before else { return };
        if let Some(digest) = &before.version
            && let Some(markdown) = made_anew(task, digest, deadline).await
        {
            before.markdown = markdown;
            self.status = Status::of(Some(before), &self.now);
        }
    }

    /// What differs only by what does not count is the same, and stays what the next page is compared with.
    async fn without_noise(mut self, watch: &Watch, holder: Holder) -> Result<Self, PageError> {
        if self.status != Status::Changed {
            return Ok(self);
        }
        let noise = watch.noise.clone();
        blocking(holder, move || {
            let rules = noise.rules().map_err(|problem| PageError::last(ErrorCode::Unknown, problem))?;
            if let Some(before) = &self.before
                && rules.is_same(&before.markdown, &self.now.markdown)
            {
                self.status = Status::Same;
                self.now.markdown.clone_from(&before.markdown);
                self.now.version.clone_from(&before.version);
                self.is_of_before = true;
            }
            Ok(self)
        })
        .await
    }

    /// Reads the page's data and tells which fields differ. For a watched page of which nothing but its fields is
    /// compared, those decide, and without them it fails: its earlier version stays to be compared with.
    async fn read(
        &mut self,
        reader: &Reader<'_>,
        tracking: &ChangeTracking,
        draft: &mut Draft,
    ) -> Result<(), PageError> {
        let earlier = self.before.as_ref().filter(|before| !before.is_gone);
        let was = match data(reader, tracking, draft, earlier, &mut self.now).await {
            Ok(was) => was,
            Err(error) if tracking.watch.is_some() && !tracking.git_diff => {
                return Err(page_error("changeTracking in json mode", &error));
            }
            Err(error) => {
                draft.warn(&warning("changeTracking in json mode is missing", &error));
                return Ok(());
            }
        };
        draft.bill.data = true;
        let is = self.now.data.as_ref().unwrap_or(&Value::Null);
        if let Some(was) = was.filter(|_| self.status == Status::Changed) {
            let differs = match &tracking.watch {
                None => changes::data_diff(&was, is),
                Some(watch) => {
                    let rules = watch.noise.rules().map_err(|problem| PageError::last(ErrorCode::Unknown, problem))?;
                    Value::Object(rules.data_diff(&was, is))
                }
            };
            let is_same = differs.as_object().is_some_and(Map::is_empty);
            if is_same && tracking.watch.is_some() && !tracking.git_diff {
                self.status = Status::Same;
            } else {
                self.told.insert("json".to_owned(), differs);
            }
        }
        if tracking.watch.is_some() {
            self.told.insert("data".to_owned(), is.clone());
        }
        Ok(())
    }

    /// The lines that differ, where they are asked for.
    async fn write_diff(
        &mut self,
        tracking: &ChangeTracking,
        holder: Holder,
        draft: &mut Draft,
    ) -> Result<(), PageError> {
        if self.status != Status::Changed || !tracking.git_diff {
            return Ok(());
        }
        let Some(before) = &self.before else { return Ok(()) };
        let (before, now) = (before.markdown.clone(), self.now.markdown.clone());
        let noise = tracking.watch.as_ref().map(|watch| watch.noise.clone());
        let work = move || {
            let Some(noise) = noise else { return Ok(changes::diff(&before, &now)) };
            let rules = noise.rules().map_err(|problem| PageError::last(ErrorCode::Unknown, problem))?;
            Ok(changes::diff(&rules.tidy(&before), &rules.tidy(&now)))
        };
        let (diff, is_cut) = blocking(holder, work).await?;
        self.told.insert("diff".to_owned(), diff);
        if is_cut {
            draft.warn("changeTracking: the diff was cut at 1 MiB.");
        }
        Ok(())
    }

    /// What the language model says of a change. A page is delivered without, where it says nothing.
    async fn judge(&mut self, reader: &Reader<'_>, goal: &str, draft: &mut Draft) {
        if self.status != Status::Changed || !reader.has_model() {
            return;
        }
        let text = self.told.get("diff").and_then(|diff| diff["text"].as_str().map(str::to_owned));
        let text = text.or_else(|| self.told.get("json").map(Value::to_string)).unwrap_or_default();
        let page = PageText { url: &draft.response.url, markdown: &text, structured: None };
        match reader.judge_change(goal, page).await {
            Ok(judgement) => {
                self.told.insert("judgment".to_owned(), judgement);
                draft.bill.judged = true;
            }
            Err(error) => draft.warn(&warning("The judgement of the change is missing", &error)),
        }
    }
}

/// The text of a stored version, as it is compared. `None`: it is not stored any more, or a model has worked on the text.
async fn made_anew(task: &PageTask, digest: &str, deadline: Instant) -> Option<String> {
    let (options, process) = (task.options(), &task.context.process);
    if options.only_clean_content || options.redact_pii.is_some() {
        return None;
    }
    let places = cache::all_places(&task.address(), options, task.page.team_id);
    if places.is_empty() {
        return None;
    }
    let found = match store::find_content(&process.db, &places, digest).await {
        Ok(found) => found?,
        Err(error) => {
            tracing::warn!(%error, page.id = %task.page.id, "an earlier version of a page cannot be read");
            return None;
        }
    };
    let brought = found.clone().bring(&process.blobs).await.ok()?;
    let content = blocking(task.holder(), move || Ok(brought.unpack().ok())).await.ok()??;
    let kept = Kept::new(&found, content, options)?;
    match Box::pin(from_stored(task, &found, kept, deadline)).await {
        Ok(Some(Made::Unread(draft))) => draft.document.markdown.map(|text| changes::comparable(&text).0),
        _ => None,
    }
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
