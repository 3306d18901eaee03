//! Sends ended spans to the collector: OTLP over HTTP in its JSON form, from a thread of its own.
//!
//! What is said of a span is written in that form as it is said, and the span as it ends, by the thread that works on it.
//! Kept to be written later, its words would be read from memory that has gone cold and freed by another thread.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
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
/// What a span takes besides what is said of it, about, bytes.
const SPAN: usize = 320;
/// How long the first of a line waits for so many.
const LINGER: Duration = Duration::from_secs(1);
/// Bound on one call.
const PATIENCE: Duration = Duration::from_secs(5);
/// The log tells of a collector that fails this often.
const TELL: Duration = Duration::from_secs(60);
/// Bound on sending what is left at the end of the process.
const LAST: Duration = Duration::from_secs(2);

/// What is known of a span.
#[derive(Debug)]
pub(super) struct Record {
    pub own: TraceParent,
    pub parent: Option<u64>,
    pub name: Cow<'static, str>,
    pub side: Side,
    /// Nanoseconds since 1970.
    pub began: u64,
    pub ended: u64,
    /// What is said of it, as it is sent.
    pub attributes: Attributes,
    pub has_failed: bool,
}

/// Names and values in the form that they are sent in.
#[derive(Debug, Default)]
pub(super) struct Attributes(String);

impl Attributes {
    /// What one of two or three takes, bytes.
    const USUAL: usize = 256;

    pub fn word(&mut self, key: &'static str, word: impl fmt::Display) {
        self.begin(key);
        self.0.push_str(r#""stringValue":""#);
        let _ = write!(Quoted(&mut self.0), "{word}");
        self.0.push_str("\"}}");
    }

    pub fn number(&mut self, key: &'static str, number: i64) {
        self.begin(key);
        let _ = write!(self.0, r#""intValue":"{number}"}}}}"#);
    }

    fn begin(&mut self, key: &'static str) {
        match self.0.is_empty() {
            true => self.0.reserve(Self::USUAL),
            false => self.0.push(','),
        }
        self.0.extend([r#"{"key":""#, key, r#"","value":{"#]);
    }
}

/// The line of spans to the collector.
#[derive(Debug)]
pub struct Traces(Arc<Line>);

#[derive(Debug)]
struct Line {
    spans: Mutex<Waiting>,
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

/// Spans that wait, as they are sent.
#[derive(Debug, Default)]
struct Waiting {
    calls: Vec<Call>,
    /// Of all calls.
    count: usize,
}

/// The spans of one call, with commas between them.
#[derive(Debug, Default)]
struct Call {
    spans: String,
    count: usize,
}

impl Waiting {
    fn push(&mut self, span: &str) {
        if self.calls.last().is_none_or(|call| call.count == CALL) {
            self.calls.push(Call::default());
        }
        let Some(call) = self.calls.last_mut() else { return };
        if call.count > 0 {
            call.spans.push(',');
        }
        call.spans.push_str(span);
        call.count += 1;
        self.count += 1;
    }
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

    pub(super) fn send(&self, record: &Record) {
        let mut text = String::with_capacity(SPAN + record.attributes.0.len());
        write_span(&mut text, record);
        let count = {
            let mut spans = self.0.spans.lock().unwrap_or_else(PoisonError::into_inner);
            (spans.count < LINE).then(|| {
                spans.push(&text);
                spans.count
            })
        };
        let Some(count) = count else {
            if self.0.lost.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!("the collector of traces is too slow; spans are left out");
            }
            return;
        };
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
            for call in spans.calls {
                self.post(call).await;
            }
        }
        line.is_sent.notify_one();
    }

    /// One call; what the collector does not take is not sent again.
    async fn post(&mut self, Call { spans, count }: Call) {
        let body = document(self.service, &spans);
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

/// The JSON of OTLP: ids in hexadecimal digits, numbers of 64 bits as text.
fn document(service: &str, spans: &str) -> String {
    let mut process = Attributes::default();
    process.word("service.name", service);
    process.word("service.version", env!("CARGO_PKG_VERSION"));
    process.number("process.pid", std::process::id().into());
    let begin = r#"{"resourceSpans":[{"resource":{"attributes":["#;
    let scope = r#"]},"scopeSpans":[{"scope":{"name":"weir"},"spans":["#;
    [begin, &process.0, scope, spans, "]}]}]}"].concat()
}

fn write_span(text: &mut String, record: &Record) {
    let kind = match record.side {
        Side::Internal => "1",
        Side::Server => "2",
        Side::Client => "3",
        Side::Consumer => "5",
    };
    let TraceParent { trace, span, .. } = record.own;
    text.push_str(r#"{"traceId":""#);
    text.push_str(&hex::encode(trace.to_be_bytes()));
    text.push_str(r#"","spanId":""#);
    text.push_str(&hex::encode(span.to_be_bytes()));
    text.push_str(r#"","flags":1,"parentSpanId":""#);
    if let Some(parent) = record.parent {
        text.push_str(&hex::encode(parent.to_be_bytes()));
    }
    text.push_str(r#"","name":""#);
    let _ = Quoted(text).write_str(&record.name);
    let (began, ended) = (record.began, record.ended);
    text.extend([r#"","kind":"#, kind]);
    let _ = write!(text, r#","startTimeUnixNano":"{began}","endTimeUnixNano":"{ended}","attributes":["#);
    text.push_str(&record.attributes.0);
    text.push_str(if record.has_failed { r#"],"status":{"code":2}}"# } else { r#"],"status":{}}"# });
}

/// Writes into a JSON text between its quotes.
struct Quoted<'a>(&'a mut String);

impl fmt::Write for Quoted<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if part.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'"' && b != b'\\') {
            self.0.push_str(part);
        } else {
            let quoted = serde_json::Value::from(part).to_string();
            self.0.push_str(&quoted[1..quoted.len() - 1]);
        }
        Ok(())
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
            let (name, side, attributes) = (Cow::Borrowed("page"), Side::Internal, Attributes::default());
            traces.send(&Record { own, parent: None, name, side, began: 5, ended: 7, attributes, has_failed: false });
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
        let record = |parent, has_failed, attributes| Record {
            own,
            parent,
            name: "GET /\"quoted\"".into(),
            side: Side::Server,
            began: 5,
            ended: 7,
            attributes,
            has_failed,
        };
        let mut said = Attributes::default();
        said.word("word", "back\\slash\nline \u{e4}");
        said.word("parts", format_args!("{}{}\"{}", "ok ", 5, "\t"));
        said.number("number", -4);
        let mut waiting = Waiting::default();
        for record in [record(None, false, Attributes::default()), record(Some(0x1f), true, said)] {
            let mut span = String::new();
            write_span(&mut span, &record);
            waiting.push(&span);
        }
        let text = document("weir-test", &waiting.calls[0].spans);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let process = &json["resourceSpans"][0]["resource"]["attributes"];
        assert_eq!(process[0]["value"]["stringValue"], "weir-test");
        let spans = &json["resourceSpans"][0]["scopeSpans"][0]["spans"];
        assert_eq!((spans.as_array().map(Vec::len), waiting.count), (Some(2), 2));
        assert_eq!(spans[0]["traceId"], format!("{:032x}", 1));
        assert_eq!((&spans[0]["parentSpanId"], &spans[1]["parentSpanId"]), (&"".into(), &"000000000000001f".into()));
        assert_eq!((&spans[0]["name"], &spans[0]["kind"]), (&"GET /\"quoted\"".into(), &2.into()));
        assert_eq!((&spans[0]["startTimeUnixNano"], &spans[0]["endTimeUnixNano"]), (&"5".into(), &"7".into()));
        assert_eq!(spans[0]["attributes"], serde_json::json!([]));
        assert_eq!(spans[1]["attributes"][0]["value"]["stringValue"], "back\\slash\nline \u{e4}");
        assert_eq!(spans[1]["attributes"][1]["value"]["stringValue"], "ok 5\"\t");
        assert_eq!(spans[1]["attributes"][2]["value"]["intValue"], "-4");
        assert_eq!((spans[1]["status"]["code"].as_i64(), spans[0]["status"]["code"].as_i64()), (Some(2), None));
    }

    #[test]
    fn a_line_is_sent_in_calls_of_a_bounded_length() {
        let mut waiting = Waiting::default();
        (0..=CALL).for_each(|_| waiting.push("{}"));
        assert_eq!(waiting.calls.iter().map(|call| call.count).collect::<Vec<_>>(), [CALL, 1]);
        assert_eq!((waiting.count, waiting.calls[1].spans.as_str()), (CALL + 1, "{}"));
    }
}
