//! Reads what a box prints, always, and keeps what belongs to the call of the moment.
//!
//! A pipe that nobody reads would stop the code; output that nobody limits would fill the worker. So everything is read,
//! the first [`OUTPUT_LIMIT`] bytes of a call are kept, and the call's marker tells where its output ends. What comes
//! between calls is dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::Notify;

use super::OUTPUT_LIMIT;

/// Bytes read at once: a pipe's size.
const CHUNK: usize = 64 << 10;

/// What a call printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Output {
    pub text: String,
    /// More was printed than was kept; the text says so.
    pub is_truncated: bool,
    /// The marker was seen, so nothing is missing.
    pub is_whole: bool,
}

/// One stream of a box.
#[derive(Debug)]
pub(super) struct Capture {
    shared: Arc<Shared>,
    reader: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<StreamState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct StreamState {
    call: Option<Collected>,
    /// The stream has ended.
    ended: bool,
}

#[derive(Debug)]
struct Collected {
    marker: Vec<u8>,
    kept: Vec<u8>,
    /// The last bytes, which may be the beginning of the marker.
    pending: Vec<u8>,
    /// Bytes before the marker so far, `pending` not counted.
    total: u64,
    done: bool,
}

impl Capture {
    pub fn start(mut stream: pipe::Receiver) -> Self {
        let shared = Arc::new(Shared::default());
        let sink = Arc::clone(&shared);
        let reader = tokio::spawn(async move {
            let mut chunk = vec![0; CHUNK];
            while let Ok(n @ 1..) = stream.read(&mut chunk).await {
                sink.feed(&chunk[..n]);
            }
            sink.state().ended = true;
            sink.changed.notify_waiters();
        });
        Self { shared, reader }
    }

    /// What comes from now on belongs to the call with this marker.
    pub fn begin(&self, marker: &str) {
        let marker = marker.as_bytes().to_vec();
        let call = Collected { marker, kept: Vec::new(), pending: Vec::new(), total: 0, done: false };
        self.shared.state().call = Some(call);
    }

    /// The call's output: up to its marker, to the end of the stream, or what has come when `limit` has passed.
    pub async fn finish(&self, limit: Duration) -> Output {
        let complete = async {
            loop {
                let changed = self.shared.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if self.shared.state().is_complete() {
                    return;
                }
                changed.await;
            }
        };
        let _ = tokio::time::timeout(limit, complete).await;
        let call = self.shared.state().call.take();
        call.map(Collected::into_output).unwrap_or_default()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn feed(&self, bytes: &[u8]) {
        let is_complete = {
            let mut state = self.state();
            let Some(call) = &mut state.call else { return };
            call.feed(bytes);
            call.done
        };
        if is_complete {
            self.changed.notify_waiters();
        }
    }
}

impl StreamState {
    fn is_complete(&self) -> bool {
        self.ended || self.call.as_ref().is_none_or(|call| call.done)
    }
}

impl Collected {
    fn feed(&mut self, bytes: &[u8]) {
        if self.done {
            return;
        }
        let mut window = std::mem::take(&mut self.pending);
        window.extend_from_slice(bytes);
        let sure = match memchr::memmem::find(&window, &self.marker) {
            Some(at) => {
                self.done = true;
                at
            }
            None => window.len().saturating_sub(self.marker.len() - 1),
        };
        if !self.done {
            self.pending = window.split_off(sure);
        }
        self.keep(&window[..sure]);
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = OUTPUT_LIMIT - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn into_output(mut self) -> Output {
        let pending = std::mem::take(&mut self.pending);
        self.keep(&pending);
        let is_truncated = self.total > self.kept.len() as u64;
        if is_truncated {
            // Not in the middle of a character.
            let whole = self.kept.len() - cut_tail(&self.kept);
            self.kept.truncate(whole);
        }
        let mut text = String::from_utf8_lossy(&self.kept).into_owned();
        if is_truncated {
            text.push_str(&format!("\n[output truncated: {} of {} bytes kept]\n", self.kept.len(), self.total));
        }
        Output { text, is_truncated, is_whole: self.done }
    }
}

/// How many bytes at the end are the beginning of a character that is cut off.
fn cut_tail(bytes: &[u8]) -> usize {
    for n in 1..=bytes.len().min(3) {
        let length = match bytes[bytes.len() - n] {
            0x80..=0xBF => continue,
            0xF0.. => 4,
            0xE0.. => 3,
            0xC0.. => 2,
            _ => 1,
        };
        return if length > n { n } else { 0 };
    }
    0
}

/// The end of `text`, at most `limit` bytes, whole characters.
pub(super) fn tail(text: &str, limit: usize) -> &str {
    let mut from = text.len().saturating_sub(limit);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    const MARKER: &str = "0123456789abcdef";
    const SOON: Duration = Duration::from_secs(5);

    fn collected(chunks: &[&[u8]]) -> Output {
        let mut call = Collected { marker: MARKER.into(), kept: vec![], pending: vec![], total: 0, done: false };
        chunks.iter().for_each(|chunk| call.feed(chunk));
        call.into_output()
    }

    #[test]
    fn output_ends_at_the_marker_wherever_it_is_cut() {
        let text = format!("höllo\n{MARKER}later");
        for at in 0..text.len() {
            let (one, two) = text.as_bytes().split_at(at);
            let output = collected(&[one, two]);
            assert_eq!((output.text.as_str(), output.is_whole), ("höllo\n", true), "cut at {at}");
        }
        let bytewise: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(collected(&bytewise).text, "höllo\n");
    }

    #[test]
    fn what_has_come_counts_when_the_marker_never_does() {
        let output = collected(&[b"half a line 0123"]);
        assert_eq!((output.text.as_str(), output.is_whole), ("half a line 0123", false));
    }

    #[test]
    fn too_much_is_cut_between_characters_and_says_so() {
        for lead in 0..4 {
            let text = "x".repeat(lead) + &"€".repeat(OUTPUT_LIMIT / 2) + MARKER;
            let output = collected(&[text.as_bytes()]);
            let (kept, note) = output.text.split_once("\n[output truncated: ").unwrap();
            assert!(output.is_truncated && output.is_whole);
            assert!(kept.len() <= OUTPUT_LIMIT && kept.len() > OUTPUT_LIMIT - 3 && kept.ends_with('€'));
            assert_eq!(note, format!("{} of {} bytes kept]\n", kept.len(), text.len() - MARKER.len()));
        }
    }

    #[tokio::test]
    async fn output_between_calls_is_read_and_dropped() {
        let (mut writer, reader) = pipe::pipe().unwrap();
        let capture = Capture::start(reader);
        writer.write_all(&vec![b'x'; 300 << 10]).await.unwrap();
        // What is left in the pipe is read in the turns of this thread.
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        capture.begin(MARKER);
        writer.write_all(format!("now{MARKER}").as_bytes()).await.unwrap();
        assert_eq!(capture.finish(SOON).await.text, "now");
        drop(writer);
        capture.begin(MARKER);
        assert_eq!(capture.finish(SOON).await, Output::default());
    }
}
