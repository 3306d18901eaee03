//! One page's way: read by an extractor, or by the model, and what is learned from it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use weir_shared::clock::{self, Stopwatch};
use weir_shared::domain::job::JobKind;
use weir_shared::domain::json_schema::Schema;
use weir_shared::domain::scrape::{JsonFormat, ScrapeOptions};
use weir_shared::domain::target::fetch_url;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::TeamId;
use weir_shared::llm::Allowance;
use weir_shared::store::StoreResult;
use weir_shared::store::contents::extractors::{self, Stored, Topic};

use super::compare::difference;
use super::known::Known;
use super::learned::{Reading, Verdict};
use super::rows::{self, NEXT_CHECK, Sample, Turn};
use super::write::{self, Order};
use crate::extract::{self, Page, PageInput, Sketch};
use crate::page::cpu::blocking;
use crate::page::error::PageError;
use crate::page::task::PageTask;

/// Largest page that is learned from, bytes of HTML, and packed.
const MAX_HTML: usize = 4 << 20;
const MAX_PACKED: usize = 1 << 20;
/// How long a page waits in its slot while others learn: of a batch, which then goes back to the queue, and one that somebody
/// waits for.
const PATIENCE: Duration = Duration::from_secs(2);
const LONG_PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks meanwhile.
const LOOK: Duration = Duration::from_millis(150);
/// Time beyond the page's own after which its reading counts as given up, milliseconds.
const GRACE_MS: i64 = 5_000;

/// A page's HTML, and what extractors have made of it while it was read for everything else.
#[derive(Debug)]
pub struct Source {
    html: Arc<str>,
    /// It came from a browser.
    rendered: bool,
    looked: Option<(InUse, Seen)>,
}

/// Extractors in use, with how often each was used.
type InUse = Vec<(Stored, Arc<Known>)>;

/// What is to be asked of a page as soon as it is parsed: its tree cannot leave its thread, and is not made twice.
pub struct Lookout {
    /// `None`: the page is not to be learned from.
    in_use: Option<InUse>,
    schema: Value,
}

impl Lookout {
    /// The one for a page; `None` where nothing is to be learned.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn of(task: &PageTask) -> Result<Option<Self>, PageError> {
        let Some(wanted) = task.options().learned() else { return Ok(None) };
        let process = &task.context.process;
        let may_learn = process.settings.model.is_some() && task.options().upload.is_none();
        let topic = topic(task.page.team_id, &task.page.url, task.options(), wanted).filter(|_| may_learn);
        let in_use = match topic {
            Some(topic) => Some(process.extractors.in_use(&process.db, &topic).await?),
            None => None,
        };
        Ok(Some(Self { in_use, schema: wanted.schema.clone().unwrap_or_default() }))
    }

    /// Has the extractors read a page. Computes.
    pub fn look(self, page: &Page, html: &str, rendered: bool) -> Source {
        let in_use = self.in_use.filter(|_| html.len() <= MAX_HTML);
        let looked = in_use.and_then(|in_use| {
            let known = known_in(&in_use);
            let seen = Seen::of(page, known, &self.schema).ok()?;
            Some((in_use, seen))
        });
        Source { html: html.into(), rendered, looked }
    }
}

fn known_in(in_use: &InUse) -> Vec<Arc<Known>> {
    in_use.iter().map(|(_, known)| Arc::clone(known)).collect()
}

/// Who reads a page.
pub enum Way {
    /// An extractor has.
    Read(Value),
    /// The model does.
    Ask(Box<Asked>),
}

/// A page that the model reads.
#[derive(Default)]
pub struct Asked {
    /// What is known of the page; `None`: nothing is to be learned from it.
    lesson: Option<Lesson>,
    /// A sentence for the caller.
    pub warning: Option<String>,
}

struct Lesson {
    topic: Topic,
    html: Arc<str>,
    rendered: bool,
    url: url::Url,
    /// It is this page's turn to be learned from.
    has_turn: bool,
    page: String,
    seen: Seen,
    /// The one that fits, and is held against the model's reading.
    checked: Option<usize>,
}

/// What the model's reading came to.
pub enum Told {
    /// The model's reading is delivered.
    ByModel,
    /// The extractor's is, with which it agrees, or without which there would be none.
    ByExtractor(Value),
}

/// What all extractors make of a page.
#[derive(Debug)]
struct Seen {
    readings: Vec<(Arc<Known>, Reading, Verdict)>,
    sketch: Sketch,
}

/// What a page's data is learned for: pages of one host and port, the same schema and prompt, and what of the options decides
/// on what the model is shown.
fn topic(team: TeamId, url: &str, options: &ScrapeOptions, wanted: &JsonFormat) -> Option<Topic> {
    let url = fetch_url(url).ok()?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let parts = json!([
        wanted.schema,
        wanted.prompt,
        options.only_main_content,
        options.only_clean_content,
        options.include_tags,
        options.exclude_tags,
        options.mobile,
        options.location,
    ]);
    let wish = hex::encode(Sha256::digest(parts.to_string()));
    Some(Topic { team, site: format!("{}{port}", url.host_str()?), wish })
}

/// A page by its address, without what is for the reader alone.
fn name_of(url: &str) -> String {
    hex::encode(Sha256::digest(url.split('#').next().unwrap_or_default()))
}

/// Whether a page can go back to the queue: nobody is on the line for it, and to ask for it again changes nothing.
fn can_be_put_off(task: &PageTask) -> bool {
    let options = task.options();
    let is_patient = matches!(task.spec.kind, JobKind::Batch | JobKind::Crawl | JobKind::Extract);
    is_patient && options.actions.is_empty() && options.profile.is_none() && options.upload.is_none()
}

fn back_in(pause_ms: i64) -> PageError {
    PageError::early(ErrorCode::Unknown, "Pages of the site are being read to learn how.", pause_ms)
}

/// Before a page is asked for: while its site is being learned, it goes back to the queue.
///
/// # Errors
/// That it does; when the rows cannot be read.
pub async fn line(task: &PageTask) -> Result<(), PageError> {
    let Some(wanted) = task.options().learned() else { return Ok(()) };
    let process = &task.context.process;
    let (page, extractors) = (&task.page, &process.extractors);
    if process.settings.model.is_none() || task.options().zero_retention || !can_be_put_off(task) {
        return Ok(());
    }
    let Some(topic) = topic(page.team_id, &page.url, task.options(), wanted) else { return Ok(()) };
    if extractors.has_some(&topic) && !extractors.waits(page.id) {
        return Ok(());
    }
    let now = process.db.now();
    let (learning, pages) = extractors::look(&process.db, &topic, now).await?;
    let is_busy = rows::turn(&learning, &pages, &name_of(&page.url), now) == Turn::Wait;
    if is_busy && (extractors.waits(page.id) || extractors.in_use(&process.db, &topic).await?.is_empty()) {
        return extractors.put_off(page.id).map_or(Ok(()), |pause_ms| Err(back_in(pause_ms)));
    }
    extractors.goes_on(page.id);
    Ok(())
}

/// Finds out who reads a page. `url`: where it came from.
///
/// # Errors
/// That the page goes back to the queue; when the rows cannot be read.
pub async fn begin(
    task: &PageTask,
    wanted: &JsonFormat,
    source: Option<Source>,
    url: &url::Url,
    status: u16,
    time: &Allowance,
) -> Result<Way, PageError> {
    let warned = |text: &str| Ok(Way::Ask(Box::new(Asked { warning: Some(text.to_owned()), ..Asked::default() })));
    let process = &task.context.process;
    if process.settings.model.is_none() || status >= 400 {
        return Ok(Way::Ask(Box::default()));
    }
    let Some(source) = source else {
        return warned("json: only web pages are learned; the language model has read this file.");
    };
    let known_topic = topic(task.page.team_id, &task.page.url, task.options(), wanted);
    let Some(topic) = known_topic.filter(|_| source.html.len() <= MAX_HTML && task.options().upload.is_none()) else {
        return warned("json: this page cannot be learned from; the language model has read it.");
    };
    let name = name_of(&task.page.url);
    let Source { html, rendered, looked } = source;
    let (in_use, seen) = match looked {
        Some(looked) => looked,
        None => {
            let in_use = process.extractors.in_use(&process.db, &topic).await?;
            let seen = look_again(task, (&html, rendered, url), known_in(&in_use), wanted).await?;
            (in_use, seen)
        }
    };
    let lesson = Lesson { topic, html, rendered, url: url.clone(), has_turn: false, page: name, seen, checked: None };
    find(task, wanted, lesson, in_use, time).await
}

async fn find(
    task: &PageTask,
    wanted: &JsonFormat,
    mut lesson: Lesson,
    mut in_use: InUse,
    time: &Allowance,
) -> Result<Way, PageError> {
    let process = &task.context.process;
    let (db, extractors) = (&process.db, &process.extractors);
    let ask = |lesson, warning| Ok(Way::Ask(Box::new(Asked { lesson, warning })));
    let left = time.ends().saturating_duration_since(clock::instant());
    let patience = if can_be_put_off(task) { PATIENCE } else { LONG_PATIENCE }.min(left / 2);
    let waited = Stopwatch::start();
    loop {
        if let Some(n) = lesson.seen.fitting() {
            let (known, reading, verdict) = &lesson.seen.readings[n];
            let stored = in_use.iter().map(|(stored, _)| stored).find(|stored| stored.id == known.id);
            let is_due = stored.is_some_and(|stored| stored.next_check <= stored.pages);
            if !task.options().zero_retention {
                extractors.count(db, known.id).await?;
                let is_checked = *verdict == Verdict::Doubtful && extractors::take_doubt(db, known.id).await?
                    || is_due && extractors::take_check(db, known.id, NEXT_CHECK).await?;
                if is_checked {
                    lesson.checked = Some(n);
                    return ask(Some(lesson), None);
                }
            }
            process.metrics.extracted_pages.inc();
            extractors.goes_on(task.page.id);
            return Ok(Way::Read(reading.value.clone()));
        }
        if task.options().zero_retention {
            let text =
                "json: nothing of this page is kept, so nothing was learned from it; the language model has read it.";
            return ask(None, Some(text.to_owned()));
        }
        match turn(task, &lesson, time, wanted).await? {
            Turn::Read => {
                lesson.has_turn = true;
                extractors.goes_on(task.page.id);
                return ask(Some(lesson), None);
            }
            Turn::Known => return ask(Some(lesson), None),
            Turn::Rest(until) => {
                let text = format!(
                    "json: no extractor fits this page, and none could be learned for it lately, so the language model has \
                     read it, and the page costs what the model's reading costs. Learning is tried again after {}.",
                    until.to_iso()
                );
                return ask(Some(lesson), Some(text));
            }
            Turn::Wait | Turn::Write(_) => {}
        }
        if waited.elapsed() >= patience {
            if can_be_put_off(task)
                && let Some(pause_ms) = extractors.put_off(task.page.id)
            {
                return Err(back_in(pause_ms));
            }
            return ask(Some(lesson), None);
        }
        tokio::time::sleep(LOOK).await;
        in_use = extractors.in_use(db, &lesson.topic).await?;
        let known = known_in(&in_use);
        if !lesson.seen.has_all(&known) {
            lesson.seen = look_again(task, (&lesson.html, lesson.rendered, &lesson.url), known, wanted).await?;
        }
    }
}

/// The page's turn. An extractor that is to be written is begun with.
async fn turn(task: &PageTask, lesson: &Lesson, time: &Allowance, wanted: &JsonFormat) -> Result<Turn, PageError> {
    let db = &task.context.process.db;
    let now = db.now();
    let (learning, pages) = extractors::look(db, &lesson.topic, now).await?;
    let turn = rows::turn(&learning, &pages, &lesson.page, now);
    if !matches!(turn, Turn::Read | Turn::Write(_)) {
        return Ok(turn);
    }
    let left = time.latest().saturating_duration_since(clock::instant()).as_millis();
    let reads_ms = i64::try_from(left).unwrap_or(0) + GRACE_MS;
    let turn = rows::take(db, &lesson.topic, &lesson.page, task.context.id, reads_ms).await?;
    if let Turn::Write(pages) = &turn {
        order(task, lesson, wanted, pages.clone());
    }
    // One may have come in use since it was looked: then there is no turn to take.
    if turn == Turn::Read && !lesson.seen.has_all(&known_of(task, lesson).await?) {
        rows::leave(db, &lesson.topic, &lesson.page, task.context.id, false).await?;
        return Ok(Turn::Wait);
    }
    Ok(turn)
}

async fn known_of(task: &PageTask, lesson: &Lesson) -> StoreResult<Vec<Arc<Known>>> {
    let process = &task.context.process;
    Ok(known_in(&process.extractors.in_use(&process.db, &lesson.topic).await?))
}

fn order(task: &PageTask, lesson: &Lesson, wanted: &JsonFormat, pages: Vec<String>) {
    let order = Order { topic: lesson.topic.clone(), wanted: wanted.clone(), key: task.spec.key, pages };
    write::begin(&task.context, order);
}

impl Seen {
    /// Has extractors read a page.
    ///
    /// # Errors
    /// When the schema is none.
    fn of(page: &Page, known: Vec<Arc<Known>>, schema: &Value) -> Result<Self, PageError> {
        let judge = Schema::new(schema).map_err(|why| PageError::last(ErrorCode::Unknown, why))?;
        let mut readings = Vec::with_capacity(known.len());
        for known in known {
            // One that takes too long on this page does not fit it.
            let reading = Reading::of(page, &known.extractor, schema).unwrap_or_default();
            let verdict = known.learned.judge(&reading, &judge);
            readings.push((known, reading, verdict));
        }
        Ok(Self { readings, sketch: page.sketch() })
    }

    fn has_all(&self, known: &[Arc<Known>]) -> bool {
        known.len() == self.readings.len() && known.iter().zip(&self.readings).all(|(a, (b, ..))| Arc::ptr_eq(a, b))
    }

    /// The first that fits; one about which something is new only where no other fits.
    fn fitting(&self) -> Option<usize> {
        let of = |wanted| self.readings.iter().position(|(_, _, verdict)| *verdict == wanted);
        of(Verdict::Fits).or_else(|| of(Verdict::Doubtful))
    }
}

/// Parses a page once more, for extractors that came in use while it waited.
async fn look_again(
    task: &PageTask,
    (html, rendered, url): (&Arc<str>, bool, &url::Url),
    known: Vec<Arc<Known>>,
    wanted: &JsonFormat,
) -> Result<Seen, PageError> {
    task.context.process.metrics.second_looks.inc();
    let (html, url) = (Arc::clone(html), url.clone());
    let schema = wanted.schema.clone().unwrap_or_default();
    blocking(task.holder(), move || {
        let page = extract::parse(&PageInput { url: &url, html: &html, rendered });
        Seen::of(&page, known, &schema)
    })
    .await
}

impl Asked {
    /// The page fails for another reason.
    pub async fn abandon(self, task: &PageTask) {
        if let Some(lesson) = self.lesson.filter(|lesson| lesson.has_turn) {
            lesson.leave(task, false).await;
        }
    }

    /// What the model has read, or that it did not: what is delivered, and what is learned from it.
    pub async fn finish(self, task: &PageTask, wanted: &JsonFormat, read: Option<&Value>) -> Told {
        let Some(lesson) = self.lesson else { return Told::ByModel };
        let checked = lesson.checked.map(|n| lesson.seen.readings[n].1.value.clone());
        let Some(data) = read else {
            if lesson.has_turn {
                lesson.leave(task, true).await;
            }
            // Nobody asked for the check.
            return checked.map_or(Told::ByModel, Told::ByExtractor);
        };
        let agrees = match lesson.compare(task, data).await {
            Ok(agrees) => agrees,
            Err(error) => {
                tracing::warn!(%error, page.id = %task.page.id, "what was learned from a page cannot be written down");
                lesson.checked.is_some_and(|n| difference(&lesson.seen.readings[n].1.value, data).is_none())
            }
        };
        if let (true, Some(value)) = (agrees, checked) {
            return Told::ByExtractor(value);
        }
        if agrees {
            if lesson.has_turn {
                lesson.leave(task, false).await;
            }
        } else if let Err(error) = lesson.learn(task, wanted, data).await {
            tracing::warn!(error = error.message, page.id = %task.page.id, "a page cannot be learned from");
        }
        Told::ByModel
    }
}

impl Lesson {
    async fn leave(&self, task: &PageTask, is_miss: bool) {
        let (db, worker) = (&task.context.process.db, task.context.id);
        if let Err(error) = rows::leave(db, &self.topic, &self.page, worker, is_miss).await {
            tracing::warn!(%error, page.id = %task.page.id, "a page's reading cannot be given up; its time will end");
        }
    }

    /// Holds what extractors made of the page against the model's reading. Whether one of them agrees.
    async fn compare(&self, task: &PageTask, data: &Value) -> StoreResult<bool> {
        let db = &task.context.process.db;
        let mut agrees = false;
        for (n, (known, reading, verdict)) in self.seen.readings.iter().enumerate() {
            let is_checked = self.checked == Some(n);
            // Those behind the one that fits were not asked.
            if self.checked.is_some() && !is_checked {
                continue;
            }
            let is_same = reading.is_whole() && difference(&reading.value, data).is_none();
            match (is_same, is_checked) {
                (true, _) if *verdict == Verdict::Fits => extractors::acquit(db, known.id).await?,
                (true, _) => {
                    let body = serde_json::to_string(&known.learned.widened(reading))?;
                    extractors::rewrite(db, known.id, known.epoch, &body).await?;
                }
                (false, true) => extractors::strike(db, known.id).await?,
                (false, false) => {}
            }
            agrees |= is_same;
            if is_same {
                break;
            }
        }
        Ok(agrees)
    }

    /// Keeps the page as one that is learned from, and has an extractor written when there are enough of them.
    async fn learn(mut self, task: &PageTask, wanted: &JsonFormat, data: &Value) -> Result<(), PageError> {
        let (db, worker) = (&task.context.process.db, task.context.id);
        if self.checked.is_some() && !self.has_turn {
            self.has_turn = rows::take(db, &self.topic, &self.page, worker, GRACE_MS).await? == Turn::Read;
        }
        if !self.has_turn {
            return Ok(());
        }
        let sample =
            Sample { url: self.url.clone(), html: self.html.to_string(), rendered: self.rendered, data: data.clone() };
        let packed = blocking(task.holder(), move || {
            let json = serde_json::to_vec(&sample).map_err(std::io::Error::other);
            let packed = json.and_then(|json| zstd::bulk::compress(&json, 3));
            packed.map_err(|_| PageError::last(ErrorCode::Unknown, "The page could not be packed."))
        })
        .await?;
        if packed.len() > MAX_PACKED {
            self.leave(task, true).await;
            return Ok(());
        }
        let due = rows::keep(db, &self.topic, &self.page, worker, &self.seen.sketch, &packed).await?;
        if let Some(pages) = due {
            order(task, &self, wanted, pages);
        }
        Ok(())
    }
}
