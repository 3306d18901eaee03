//! Traces by OTLP (`WEIR_OTLP_URL`): what a request and the pages that it asked for went through, over all processes.
//!
//! ```text
//! POST /v2/batch/scrape       the API; a child of the caller's `traceparent`, if there is one
//! ├─ queue                    the worker: from the page's row to its claim
//! ├─ page                     an attempt, from its claim to its committed end
//! │  ├─ claim, fetch, render, extract
//! │  └─ commit
//! └─ webhook                  one try of a delivery
//! ```
//!
//! The parent lies among the options of the job's row, so a page is traced by whoever takes it. Spans name ids, hosts,
//! statuses and error codes: no content, no path or query of a page, no header, no key; with zero data retention no host.
//! Without the setting there is one comparison where a span would begin. With it, spans wait in a bounded line, and fall
//! out when the collector is slow or away: nobody waits for it.

mod exporter;
mod parent;

use std::fmt::Display;
use std::sync::OnceLock;

use futures_util::future::Either;
use tokio::task::futures::TaskLocalFuture;

pub use self::exporter::Traces;
use self::exporter::{Attributes, Record};
pub use self::parent::TraceParent;
use crate::clock;
use crate::random;
use crate::time::Timestamp;

static TRACES: OnceLock<Traces> = OnceLock::new();

tokio::task_local! {
    /// The span that this task works under.
    static CURRENT: TraceParent;
}

/// Whose side of a call a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Internal,
    Server,
    Client,
    Consumer,
}

/// Begins to send spans of this process to a collector, until [`Traces::finish`]. Once a process.
///
/// # Errors
/// When the thread that sends cannot be started.
pub fn start(url: &url::Url, service: &'static str) -> anyhow::Result<&'static Traces> {
    let traces = Traces::start(url.clone(), service)?;
    Ok(TRACES.get_or_init(|| traces))
}

/// Whether spans are sent at all.
pub fn is_on() -> bool {
    TRACES.get().is_some()
}

/// The span that this task works under, for what is stored or sent on its behalf.
pub fn current() -> Option<TraceParent> {
    TRACES.get()?;
    CURRENT.try_with(|parent| *parent).ok()
}

/// Runs work under a span, if there is one.
pub fn under<F: Future>(parent: Option<TraceParent>, work: F) -> Either<F, TaskLocalFuture<TraceParent, F>> {
    match parent {
        None => Either::Left(work),
        Some(parent) => Either::Right(CURRENT.scope(parent, work)),
    }
}

/// What is under way. It is sent when it is dropped. Empty where there are no traces, or the caller wants none.
#[derive(Debug, Default)]
#[must_use = "a span ends when it is dropped"]
pub struct Span(Option<Box<Record>>);

/// Begins a span below `parent`, or a new trace where there is none.
pub fn begin(parent: Option<TraceParent>, name: &'static str, side: Side) -> Span {
    if !is_on() || parent.is_some_and(|parent| !parent.is_sampled) {
        return Span(None);
    }
    let id = u64::from_be_bytes(random::bytes()).max(1);
    let own = match parent {
        Some(parent) => TraceParent { span: id, ..parent },
        None => TraceParent { trace: u128::from_be_bytes(random::bytes()).max(1), span: id, is_sampled: true },
    };
    Span(Some(Box::new(Record {
        own,
        parent: parent.map(|parent| parent.span),
        name: name.into(),
        side,
        began: clock::nanoseconds(),
        ended: 0,
        attributes: Attributes::default(),
        has_failed: false,
    })))
}

/// Begins a span below `parent`; none where there is no such.
pub fn below(parent: Option<TraceParent>, name: &'static str, side: Side) -> Span {
    match parent {
        Some(_) => begin(parent, name, side),
        None => Span(None),
    }
}

impl Span {
    /// What its children are told.
    pub fn own(&self) -> Option<TraceParent> {
        self.0.as_ref().map(|record| record.own)
    }

    /// It began earlier, at a time of the rows.
    pub fn began_at(mut self, at: Timestamp) -> Self {
        if let Some(record) = &mut self.0 {
            record.began = nanoseconds_of(at).min(record.began);
        }
        self
    }

    /// It has ended already, at a time of the rows.
    pub fn ended_at(mut self, at: Timestamp) {
        if let Some(record) = &mut self.0 {
            record.ended = nanoseconds_of(at);
        }
    }

    /// It is called otherwise.
    pub fn rename(&mut self, name: impl FnOnce() -> String) {
        if let Some(record) = &mut self.0 {
            record.name = name().into();
        }
    }

    /// A word about it: an id, a code. Written only where it is sent.
    pub fn word(&mut self, key: &'static str, value: impl Display) {
        if let Some(record) = &mut self.0 {
            record.attributes.word(key, value);
        }
    }

    /// A number about it.
    pub fn number(&mut self, key: &'static str, value: i64) {
        if let Some(record) = &mut self.0 {
            record.attributes.number(key, value);
        }
    }

    /// It failed, with this code; the first one stays.
    pub fn fail(&mut self, code: &str) {
        if let Some(record) = self.0.as_mut().filter(|record| !record.has_failed) {
            record.has_failed = true;
            record.attributes.word("error.type", code);
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let (Some(mut record), Some(traces)) = (self.0.take(), TRACES.get()) {
            if record.ended == 0 {
                record.ended = clock::nanoseconds();
            }
            // The clock may have been set meanwhile.
            record.ended = record.ended.max(record.began);
            traces.send(&record);
        }
    }
}

fn nanoseconds_of(at: Timestamp) -> u64 {
    at.0.unsigned_abs().saturating_mul(1_000_000)
}
