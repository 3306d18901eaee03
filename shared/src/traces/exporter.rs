//! Sends ended spans to the collector: OTLP over HTTP in its JSON form, from a thread of its own.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::{Side, TraceParent};
use crate::clock;
use crate::operator_http;

/// Spans that wait for the collector; further ones fall out.
const LINE: usize = 8_192;
/// Spans in one call at most. When as many wait they are sent.
const CALL: usize = 1_024;
/// How long the first of a line waits for so many.
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

/// The line of spans to the collector.
#[derive(Debug)]
pub struct Traces(Arc<Line>);

#[derive(Debug)]
struct Line {
    spans: Mutex<Vec<Record>>,
    /// The first span of a line has come. The thread is woken once a call, not once a span.
    has_come: Notify,
    /// A call is full.
    is_full: Notify,
    /// What is left is to be sent at once.
    is_ending: Notify,
    /// Everything from before the end was told of is sent.
    is_sent: Notify,
    /// Spans that found the line full.
    lost: AtomicU64,
}

impl Traces {
    /// Starts the thread that sends.
    pub(super) fn start(url: url::Url, service: &'static str) -> anyhow::Result<Self> {
        Self::start_with(url, service, LINGER)
    }

    fn start_with(url: url::Url, service: &'static str, linger: Duration) -> anyhow::Result<Self> {
        let line = Arc::new(Line {
            spans: Mutex::default(),
            has_come: Notify::new(),
            is_full: Notify::new(),
            is_ending: Notify::new(),
            is_sent: Notify::new(),
            lost: AtomicU64::new(0),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let sender = Sender { line: Arc::clone(&line), url, service, linger, told_at: None };
        std::thread::Builder::new().name("traces".to_owned()).spawn(move || runtime.block_on(sender.run()))?;
        Ok(Self(line))
    }

    pub(super) fn send(&self, record: Record) {
        let mut spans = self.0.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.len() >= LINE {
            drop(spans);
            if self.0.lost.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!("the collector of traces is too slow; spans are left out");
            }
            return;
        }
        spans.push(record);
        let count = spans.len();
        drop(spans);
        match count {
            1 => self.0.has_come.notify_one(),
            CALL => self.0.is_full.notify_one(),
            _ => {}
        }
    }

    /// Sends what is left, within a bound.
    pub async fn finish(&self) {
        self.0.is_ending.notify_one();
        let _ = tokio::time::timeout(LAST, self.0.is_sent.notified()).await;
        let lost = self.0.lost.load(Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(spans = lost, "spans were left out");
        }
    }
}

struct Sender {
    line: Arc<Line>,
    url: url::Url,
    service: &'static str,
    linger: Duration,
    /// When the log last told of a failure.
    told_at: Option<tokio::time::Instant>,
}

impl Sender {
    async fn run(mut self) {
        let line = Arc::clone(&self.line);
        let mut is_ending = false;
        while !is_ending {
            let lingers = async {
                line.has_come.notified().await;
                let _ = tokio::time::timeout(self.linger, line.is_full.notified()).await;
            };
            tokio::select! {
                () = lingers => {}
                () = line.is_ending.notified() => is_ending = true,
            }
            let spans = std::mem::take(&mut *line.spans.lock().unwrap_or_else(PoisonError::into_inner));
            for part in spans.chunks(CALL) {
                self.post(part).await;
            }
        }
        line.is_sent.notify_one();
    }

    /// One call; what the collector does not take is not sent again.
    async fn post(&mut self, spans: &[Record]) {
        let count = spans.len();
        let body = document(self.service, spans);
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

/// The JSON of OTLP: ids in hexadecimal digits, numbers of 64 bits as text. Written at once, without a tree of values.
fn document(service: &str, spans: &[Record]) -> String {
    let mut text = String::with_capacity(512 + spans.len() * 640);
    text.push_str(r#"{"resourceSpans":[{"resource":{"attributes":["#);
    write_values(
        &mut text,
        &[
            ("service.name", Value::Word(service.to_owned())),
            ("service.version", Value::Word(env!("CARGO_PKG_VERSION").to_owned())),
            ("process.pid", Value::Number(std::process::id().into())),
        ],
    );
    text.push_str(r#"]},"scopeSpans":[{"scope":{"name":"weir"},"spans":["#);
    for (n, record) in spans.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        write_span(&mut text, record);
    }
    text.push_str("]}]}]}");
    text
}

fn write_span(text: &mut String, record: &Record) {
    let kind = match record.side {
        Side::Internal => 1,
        Side::Server => 2,
        Side::Client => 3,
        Side::Consumer => 5,
    };
    let TraceParent { trace, span, .. } = record.own;
    let _ = write!(text, r#"{{"traceId":"{trace:032x}","spanId":"{span:016x}","flags":1,"parentSpanId":""#);
    if let Some(parent) = record.parent {
        let _ = write!(text, "{parent:016x}");
    }
    text.push_str(r#"","name":"#);
    write_word(text, &record.name);
    let (began, ended) = (record.began, record.ended);
    let _ = write!(text, r#","kind":{kind},"startTimeUnixNano":"{began}","endTimeUnixNano":"{ended}","attributes":["#);
    write_values(text, &record.values);
    match &record.error {
        None => text.push_str(r#"],"status":{}}"#),
        Some(code) => {
            if !record.values.is_empty() {
                text.push(',');
            }
            write_value(text, "error.type", &Value::Word(code.clone()));
            text.push_str(r#"],"status":{"code":2}}"#);
        }
    }
}

fn write_values(text: &mut String, values: &[(&'static str, Value)]) {
    for (n, (key, value)) in values.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        write_value(text, key, value);
    }
}

fn write_value(text: &mut String, key: &str, value: &Value) {
    text.push_str(r#"{"key":"#);
    write_word(text, key);
    text.push_str(r#","value":{"#);
    match value {
        Value::Word(word) => {
            text.push_str(r#""stringValue":"#);
            write_word(text, word);
        }
        Value::Number(number) => {
            let _ = write!(text, r#""intValue":"{number}""#);
        }
    }
    text.push_str("}}");
}

/// A text in quotes.
fn write_word(text: &mut String, word: &str) {
    if word.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'"' && b != b'\\') {
        text.extend(["\"", word, "\""]);
    } else {
        text.push_str(&serde_json::Value::from(word).to_string());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A line of spans waits for company until a call is full and no longer: a busy process would lose spans otherwise.
    #[test]
    fn a_full_call_is_sent_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap()).parse().unwrap();
        let traces = Traces::start_with(url, "weir-test", Duration::from_secs(3_600)).unwrap();
        let own = TraceParent { trace: 1, span: 2, is_sampled: true };
        for _ in 0..CALL {
            let (name, side) = (Cow::Borrowed("page"), Side::Internal);
            traces.send(Record { own, parent: None, name, side, began: 5, ended: 7, values: Vec::new(), error: None });
        }
        let (mut call, _) = listener.accept().unwrap();
        call.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut got, mut part) = (String::new(), [0; 65_536]);
        while got.matches("\"spanId\"").count() < CALL {
            let count = call.read(&mut part).unwrap();
            assert!(count > 0, "the call ended early");
            got.push_str(std::str::from_utf8(&part[..count]).unwrap());
        }
        call.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    }

    #[test]
    fn what_is_written_is_json_whatever_the_words_are() {
        let own = TraceParent { trace: 1, span: 2, is_sampled: true };
        let record = |error: Option<&str>, values| Record {
            own,
            parent: error.map(|_| 3),
            name: "GET /\"quoted\"".into(),
            side: Side::Server,
            began: 5,
            ended: 7,
            values,
            error: error.map(str::to_owned),
        };
        let word = ("word", Value::Word("back\\slash\nline \u{e4}".to_owned()));
        let spans = [
            record(None, Vec::new()),
            record(Some("CODE"), vec![word, ("number", Value::Number(-4))]),
            record(Some("X"), Vec::new()),
        ];
        let text = document("weir-test", &spans);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let spans = &json["resourceSpans"][0]["scopeSpans"][0]["spans"];
        assert_eq!(spans[0]["traceId"], format!("{:032x}", 1));
        assert_eq!((&spans[0]["parentSpanId"], &spans[1]["parentSpanId"]), (&"".into(), &"0000000000000003".into()));
        assert_eq!(spans[0]["name"], "GET /\"quoted\"");
        assert_eq!(spans[1]["attributes"][0]["value"]["stringValue"], "back\\slash\nline \u{e4}");
        assert_eq!(spans[1]["attributes"][1]["value"]["intValue"], "-4");
        assert_eq!(spans[2]["attributes"][0]["key"], "error.type");
        assert_eq!((spans[1]["status"]["code"].as_i64(), spans[0]["status"]["code"].as_i64()), (Some(2), None));
    }
}
