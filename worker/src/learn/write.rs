//! Has an extractor written from pages that were read, and judges it on them. It is nobody's page that waits for it: the
//! task ends by itself, or with the worker, and another worker may begin anew when its time is over.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use weir_shared::clock;
use weir_shared::domain::json_schema::Schema;
use weir_shared::domain::scrape::JsonFormat;
use weir_shared::fault::FaultPoint;
use weir_shared::guests::Urgency;
use weir_shared::ids::{KeyId, TeamId};
use weir_shared::llm::Allowance;
use weir_shared::store::contents::extractors::Topic;
use weir_shared::store::{StoreError, StoreResult};

use super::compare::{difference, misfit};
use super::learned::{Learned, Reading};
use super::rows::{self, Sample, WRITING_MS};
use crate::context::WorkerContext;
use crate::extract::extractor::Extractor;
use crate::extract::{self, PageInput};
use crate::page::cpu::blocking;
use crate::page::error::PageError;
use crate::reader::{Reader, Shown};

/// A kept page unpacks to this many bytes at most.
const UNPACKED: usize = 16 << 20;
/// Time that is kept back from the model for judging, of the time that writing may take.
const KEPT_BACK: Duration = Duration::from_secs(20);

/// What is written for whom.
pub struct Order {
    pub topic: Topic,
    pub wanted: JsonFormat,
    pub key: Option<KeyId>,
    /// The pages that it is written from.
    pub pages: Vec<String>,
}

/// Begins to write, beside everything else. The caller has written down that this worker does.
pub fn begin(context: &Arc<WorkerContext>, order: Order) {
    let context = Arc::clone(context);
    let (draining, fenced) = (context.draining.clone(), context.fenced.clone());
    let task = async move {
        let ended = tokio::select! {
            biased;
            () = fenced.cancelled() => return,
            () = draining.cancelled() => None,
            outcome = run(&context, &order) => Some(outcome),
        };
        let outcome = match ended {
            Some(outcome) => outcome,
            None => rows::give_up(&context.process.db, &order.topic, context.id).await,
        };
        if let Err(error) = outcome {
            tracing::warn!(%error, "an extractor could not be written down; it is written again");
        }
    };
    tokio::spawn(task);
}

async fn run(context: &Arc<WorkerContext>, order: &Order) -> StoreResult<()> {
    let process = &context.process;
    process.db.faults().reach(FaultPoint::WritingBegun)?;
    let mut tx = process.db.begin_relaxed().await?;
    let bodies = rows::bodies(&mut tx, &order.topic, &order.pages).await?;
    tx.commit().await?;
    let deadline = clock::deadline(Duration::from_millis(WRITING_MS.unsigned_abs()) - KEPT_BACK);
    let reader = Reader::new(process.asker((order.topic.team, Urgency::Background)), Allowance::until(deadline));
    let written = written(&reader, order, bodies).await;
    process.spent(order.topic.team, order.key, reader.meter.read()).await;
    process.db.faults().reach(FaultPoint::WritingDone)?;
    if let Err(why) = &written {
        tracing::info!(%why, "no extractor was learned");
    }
    let result = if written.is_ok() { "learned" } else { "failed" };
    process.metrics.extractors.with_label_values(&[result]).inc();
    rows::end_writing(&process.db, &order.topic, context.id, &order.pages, written.ok().as_ref()).await
}

/// An extractor that reads from each of the pages what the model has read there.
async fn written(reader: &Reader<'_>, order: &Order, bodies: Vec<Vec<u8>>) -> Result<Learned, String> {
    let schema = order.wanted.schema.clone().ok_or("there is no schema")?;
    let room = reader.room_for_pages(bodies.len());
    let team = order.topic.team;
    let (samples, shown) = off_thread(team, move || unpacked(&bodies, room)).await?;
    let samples = Arc::new(samples);
    let prompt = order.wanted.prompt.as_deref();
    let check = |form: Value| {
        let (samples, schema) = (Arc::clone(&samples), schema.clone());
        off_thread(team, move || judged(form, &schema, &samples))
    };
    reader.write_extractor(&schema, prompt, &shown, check).await.map_err(|error| error.to_string())
}

/// Work that computes, off the async threads.
async fn off_thread<T: Send + 'static>(
    team: TeamId,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    blocking((team, Urgency::Background), move || Ok::<_, PageError>(work())).await.map_err(|error| error.message)?
}

fn unpacked(bodies: &[Vec<u8>], room: usize) -> Result<(Vec<Sample>, Vec<Shown>), String> {
    let mut samples = Vec::new();
    let mut shown = Vec::new();
    for body in bodies {
        let json = zstd::bulk::decompress(body, UNPACKED).map_err(|error| error.to_string())?;
        let sample: Sample = serde_json::from_slice(&json).map_err(|error| error.to_string())?;
        let outline = parsed(&sample).outline(room);
        shown.push(Shown { url: sample.url.clone(), outline, data: sample.data.clone() });
        samples.push(sample);
    }
    if samples.len() < 2 {
        return Err("its pages are gone".to_owned());
    }
    Ok((samples, shown))
}

fn parsed(sample: &Sample) -> extract::Page {
    extract::parse(&PageInput { url: &sample.url, html: &sample.html, rendered: sample.rendered })
}

/// Judges what the model has written: its form, what the schema wants, and what it reads of each page.
fn judged(form: Value, schema: &Value, samples: &[Sample]) -> Result<Learned, String> {
    let extractor = Extractor::new(&form)?;
    misfit(&extractor.shape(), schema)?;
    let judge = Schema::new(schema)?;
    let mut readings = Vec::new();
    let mut wrong = Vec::new();
    for (n, sample) in samples.iter().enumerate() {
        let reading = Reading::of(&parsed(sample), &extractor, schema)
            .map_err(|_| "It takes too long on these pages, or makes too much of them.".to_owned())?;
        let fault = judge.faults(&reading.value).into_iter().next();
        let fault = difference(&reading.value, &sample.data).or(fault);
        wrong.extend(fault.map(|fault| format!("on page {}, {fault}", n + 1)));
        readings.push(reading);
    }
    if !wrong.is_empty() {
        return Err(format!("It reads something else: {}.", wrong.join("; ")));
    }
    Ok(Learned::new(form, &readings))
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        tracing::warn!(%error, "what was learned of a site cannot be read");
        Self::again(weir_shared::error_code::ErrorCode::Unknown, "What was learned of the site could not be read.")
    }
}
