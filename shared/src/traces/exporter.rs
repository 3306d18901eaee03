//! Sends ended spans to the collector: OTLP over HTTP in its JSON form, from a thread of its own.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::sync::{mpsc, oneshot};

use super::{Side, TraceParent};
use crate::clock;
use crate::operator_http;

/// Spans that wait for the collector; further ones fall out.
const LINE: usize = 8_192;
/// Spans in one call at most.
const CALL: usize = 1_024;
/// How long the first of a call waits for company.
const LINGER: Duration = Duration::from_secs(1);
/// Bound on one call.
const PATIENCE: Duration = Duration::from_secs(5);
/// The log tells of a collector that fails this often.
const TELL: Duration = Duration::from_secs(60);
/// Bound on sending what is left at the end of the process.
const LAST: Duration = Duration::from_secs(2);

/// A span that has ended.
#[derive(Debug)]
pub(super) struct Record {
    pub own: TraceParent,
    pub parent: Option<u64>,
    pub name: Cow<'static, str>,
    pub side: Side,
    /// Nanoseconds since 1970.
    pub began: u64,
    pub ended: u64,
    pub values: Vec<(&'static str, Value)>,
    pub error: Option<String>,
}

/// What is said of a span.
#[derive(Debug)]
pub(super) enum Value {
    Word(String),
    Number(i64),
}

/// Something for the thread that sends.
enum Note {
    Span(Box<Record>),
    /// Send what there is, and say so.
    Finish(oneshot::Sender<()>),
}

/// The line of spans to the collector.
#[derive(Debug)]
pub struct Traces {
    line: mpsc::Sender<Note>,
    /// Spans that found the line full since the log told of it.
    lost: AtomicU64,
}

impl Traces {
    /// Starts the thread that sends.
    pub(super) fn start(url: url::Url, service: &'static str) -> anyhow::Result<Self> {
        let (line, notes) = mpsc::channel(LINE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let sender = Sender { url, service, told_at: None };
        std::thread::Builder::new().name("traces".to_owned()).spawn(move || runtime.block_on(sender.run(notes)))?;
        Ok(Self { line, lost: AtomicU64::new(0) })
    }

    pub(super) fn send(&self, record: Box<Record>) {
        if self.line.try_send(Note::Span(record)).is_err() && self.lost.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!("the collector of traces is too slow; spans are left out");
        }
    }

    /// Sends what is left, within a bound.
    pub async fn finish(&self) {
        let (done, wait) = oneshot::channel();
        let work = async {
            if self.line.send(Note::Finish(done)).await.is_ok() {
                let _ = wait.await;
            }
        };
        let _ = tokio::time::timeout(LAST, work).await;
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(spans = lost, "spans were left out");
        }
    }
}

struct Sender {
    url: url::Url,
    service: &'static str,
    /// When the log last told of a failure.
    told_at: Option<tokio::time::Instant>,
}

impl Sender {
    async fn run(mut self, mut notes: mpsc::Receiver<Note>) {
        while let Some(first) = notes.recv().await {
            let (mut spans, mut finished) = (Vec::new(), Vec::new());
            let mut take = |note| match note {
                Note::Span(record) => spans.push(span(&record)),
                Note::Finish(done) => finished.push(done),
            };
            let until = clock::deadline(LINGER);
            let mut next = Some(first);
            let mut count = 0;
            while let Some(note) = next {
                let is_last = matches!(note, Note::Finish(_));
                take(note);
                count += 1;
                next = match count < CALL && !is_last {
                    true => tokio::time::timeout_at(until, notes.recv()).await.ok().flatten(),
                    false => None,
                };
            }
            if !spans.is_empty() {
                self.post(spans).await;
            }
            for done in finished {
                let _ = done.send(());
            }
        }
    }

    /// One call; what the collector does not take is not sent again.
    async fn post(&mut self, spans: Vec<Json>) {
        let count = spans.len();
        let body = document(self.service, spans).to_string();
        let call = operator_http::client().post(self.url.clone()).header("content-type", "application/json").body(body);
        let failure = match call.timeout(PATIENCE).send().await {
            Ok(answer) if answer.status().is_success() => return,
            Ok(answer) => answer.status().to_string(),
            Err(error) => error.without_url().to_string(),
        };
        if self.told_at.is_none_or(|at| at.elapsed() > TELL) {
            self.told_at = Some(clock::instant());
            tracing::warn!(error = failure, spans = count, "the collector of traces takes none (WEIR_OTLP_URL)");
        }
    }
}

fn document(service: &str, spans: Vec<Json>) -> Json {
    let of_process = [
        attribute("service.name", &Value::Word(service.to_owned())),
        attribute("service.version", &Value::Word(env!("CARGO_PKG_VERSION").to_owned())),
        attribute("process.pid", &Value::Number(std::process::id().into())),
    ];
    json!({"resourceSpans": [{
        "resource": {"attributes": of_process},
        "scopeSpans": [{"scope": {"name": "weir"}, "spans": spans}],
    }]})
}

/// The JSON of OTLP: ids in hexadecimal digits, numbers of 64 bits as text.
fn span(record: &Record) -> Json {
    let kind = match record.side {
        Side::Internal => 1,
        Side::Server => 2,
        Side::Client => 3,
        Side::Consumer => 5,
    };
    let mut values: Vec<Json> = record.values.iter().map(|(key, value)| attribute(key, value)).collect();
    if let Some(code) = &record.error {
        values.push(attribute("error.type", &Value::Word(code.clone())));
    }
    json!({
        "traceId": format!("{:032x}", record.own.trace),
        "spanId": format!("{:016x}", record.own.span),
        "parentSpanId": record.parent.map(|parent| format!("{parent:016x}")).unwrap_or_default(),
        "flags": 1,
        "name": record.name,
        "kind": kind,
        "startTimeUnixNano": record.began.to_string(),
        "endTimeUnixNano": record.ended.to_string(),
        "attributes": values,
        "status": if record.error.is_some() { json!({"code": 2}) } else { json!({}) },
    })
}

fn attribute(key: &str, value: &Value) -> Json {
    let value = match value {
        Value::Word(word) => json!({"stringValue": word}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
    };
    json!({"key": key, "value": value})
}
