//! One runner in its box: the conversation on its control socket, and how it can end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use weir_shared::clock;
use weir_shared::random;

use super::LAST_MOMENT;
use super::boxes::{BoxHandle, Program, StartBox};
use super::capture::{Capture, Output, tail};
use crate::relay::Activity;

/// Longest line that a runner sends, bytes: a value of 1 Mi characters, each escaped at worst.
const LINE_LIMIT: usize = 16 << 20;
/// How long the end of a call's output may take once the runner has answered.
const OUTPUT_WAIT: Duration = Duration::from_secs(2);
/// The same when its box has ended or is being killed.
const LAST_OUTPUT_WAIT: Duration = Duration::from_millis(150);
// What a call that is given up still takes has room in the time that is kept for it.
const _: () = assert!(LAST_OUTPUT_WAIT.as_millis() + EXIT_WAIT.as_millis() < LAST_MOMENT.as_millis());
/// How long the exit code of a box may take to show once its runner has closed the line.
const EXIT_WAIT: Duration = Duration::from_millis(500);
/// How long a companion may take to do what it is prompted to.
const PROMPT_LIMIT: Duration = Duration::from_secs(5);
/// What a look at the browser's tabs adds to [`Activity::said`]: it is one message.
const LOOK: u64 = 2;
/// Kept of what a runner that does not start prints, bytes.
const LAST_WORDS: usize = 2000;

/// A box with a runner in it.
#[derive(Debug)]
pub(super) struct Runner {
    lines: Lines,
    control: OwnedWriteHalf,
    stdout: Capture,
    stderr: Capture,
    handle: Arc<dyn BoxHandle>,
    calls: u64,
    /// It could not reach the browser when it started.
    is_cut_off: bool,
    /// What [`Activity::said`] was after the runner had looked at the browser's tabs, if nothing else was said in that call.
    looked: Option<u64>,
}

/// How a call ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The runner has answered and waits for the next call, unless `is_broken`.
    Answered { exit: i32, value: Option<String>, is_cut: bool, is_broken: bool },
    /// The runner could not reach the browser; the code has not begun.
    Unreachable(String),
    /// The time is up. The box has to be killed.
    TimedOut,
    /// The runner has exited, because its code ended the process.
    Exited(i32),
    /// The session has ended. The box has to be killed.
    Closed,
}

#[derive(Serialize)]
struct Request<'a> {
    id: u64,
    code: &'a str,
    /// Milliseconds.
    timeout: u64,
    marker: &'a str,
    /// The browser was told nothing since the runner looked at its tabs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    quiet: bool,
}

/// What a runner says when it has started.
#[derive(Deserialize)]
struct Ready {
    #[serde(default)]
    unreachable: bool,
}

#[derive(Deserialize)]
struct Reply {
    id: u64,
    #[serde(default)]
    exit: i32,
    value: Option<String>,
    #[serde(default)]
    cut: bool,
    unreachable: Option<String>,
}

impl Runner {
    /// Starts `program` in a box and waits until it says that it is ready.
    ///
    /// # Errors
    /// What went wrong, with the program's last words.
    pub async fn start(boxes: &dyn StartBox, program: Program) -> Result<Self, String> {
        let started = boxes.start(program).await.map_err(|error| format!("{error:#}"))?;
        let (reader, control) = started.control.into_split();
        let mut runner = Self {
            lines: Lines { stream: reader, buffer: Vec::new() },
            control,
            stdout: Capture::start(started.stdout),
            stderr: Capture::start(started.stderr),
            handle: started.handle.into(),
            calls: 0,
            is_cut_off: false,
            looked: None,
        };
        runner.stderr.begin(&new_marker());
        if let Some(line) = runner.lines.next().await {
            runner.is_cut_off = serde_json::from_slice::<Ready>(&line).is_ok_and(|ready| ready.unreachable);
            return Ok(runner);
        }
        runner.handle.kill().await;
        let code = runner.handle.exited().now_or_never().flatten();
        let code = code.map_or_else(String::new, |code| format!(" with exit code {code}"));
        let words = runner.stderr.finish(LAST_OUTPUT_WAIT).await.text;
        Err(format!("the runner ended{code} before it was ready: {}", tail(words.trim(), LAST_WORDS)))
    }

    /// Whether it could not reach the browser when it started.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Whether its box still runs.
    pub fn is_alive(&self) -> bool {
        self.handle.exited().now_or_never().is_none()
    }

    /// The box, to end it.
    pub fn handle(&self) -> Arc<dyn BoxHandle> {
        Arc::clone(&self.handle)
    }

    /// Has a companion do what it does when it gets a line, and waits until it says that it is done.
    pub async fn prompt(&mut self) {
        let done = async {
            self.control.write_all(b"\n").await.ok()?;
            self.lines.next().await
        };
        let _ = tokio::time::timeout(PROMPT_LIMIT, done).await;
    }

    /// Runs code until it ends, its time is up at `until`, or `closed`.
    ///
    /// The outputs are complete unless the box has yet to be killed; [`last_output`](Self::last_output) brings the rest then.
    pub async fn call(
        &mut self,
        code: &str,
        until: Instant,
        activity: &Activity,
        closed: &CancellationToken,
    ) -> (Ended, Option<(Output, Output)>) {
        self.calls += 1;
        let marker = new_marker();
        self.stdout.begin(&marker);
        self.stderr.begin(&marker);
        let timeout = u64::try_from(until.duration_since(clock::instant()).as_millis()).unwrap_or(u64::MAX);
        let said = activity.said();
        let quiet = said.is_some() && self.looked.take() == said;
        let request = Request { id: self.calls, code, timeout, marker: &marker, quiet };
        let mut line = serde_json::to_vec(&request).expect("text and numbers can be written as JSON");
        line.push(b'\n');
        let answered = async {
            // A failed write shows as the end of the lines.
            let _ = self.control.write_all(&line).await;
            loop {
                let reply = self.lines.next().await?;
                // Code can write to the control socket, too, but it fools nobody but itself.
                match serde_json::from_slice::<Reply>(&reply) {
                    Ok(reply) if reply.id == self.calls => return Some(reply),
                    _ => {}
                }
            }
        };
        let reply = tokio::select! {
            reply = answered => reply,
            code = self.handle.exited() => return (Ended::Exited(code.unwrap_or(137)), None),
            () = tokio::time::sleep_until(until) => return (Ended::TimedOut, None),
            () = closed.cancelled() => return (Ended::Closed, None),
        };
        let Some(reply) = reply else {
            // The line is closed: the box is ending, or only its runner's descriptor is.
            let code = tokio::time::timeout(EXIT_WAIT, self.handle.exited()).await.ok().flatten();
            return (Ended::Exited(code.unwrap_or(137)), None);
        };
        let after_look = said.map(|said| said + if quiet { 0 } else { LOOK });
        self.looked = activity.said().filter(|now| Some(*now) == after_look);
        let wait = OUTPUT_WAIT.min(until.saturating_duration_since(clock::instant())).max(LAST_OUTPUT_WAIT);
        let (stdout, stderr) = tokio::join!(self.stdout.finish(wait), self.stderr.finish(wait));
        let is_broken = !(stdout.is_whole && stderr.is_whole);
        let ended = match reply.unreachable {
            Some(why) => Ended::Unreachable(why),
            None => Ended::Answered { exit: reply.exit, value: reply.value, is_cut: reply.cut, is_broken },
        };
        (ended, Some((stdout, stderr)))
    }

    /// What has been printed by a call whose box has ended or is being killed.
    pub async fn last_output(&self) -> (Output, Output) {
        tokio::join!(self.stdout.finish(LAST_OUTPUT_WAIT), self.stderr.finish(LAST_OUTPUT_WAIT))
    }
}

/// Text that no code prints by chance or on purpose.
fn new_marker() -> String {
    random::hex::<16>()
}

/// Lines of a stream, of bounded length.
#[derive(Debug)]
struct Lines {
    stream: OwnedReadHalf,
    buffer: Vec<u8>,
}

impl Lines {
    /// The next line; `None` when the stream ends, fails or exceeds the limit. Loses nothing when dropped half-way.
    async fn next(&mut self) -> Option<Vec<u8>> {
        let mut seen = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[seen..]) {
                let rest = self.buffer.split_off(seen + end + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.pop();
                return Some(line);
            }
            seen = self.buffer.len();
            if seen > LINE_LIMIT || self.stream.read_buf(&mut self.buffer).await.ok()? == 0 {
                return None;
            }
        }
    }
}
