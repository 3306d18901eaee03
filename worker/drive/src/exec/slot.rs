//! The runner of one language in one session: started when needed, one call at a time, replaced when it is gone.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio::time::{timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use weir_shared::clock::{self, Stopwatch};

use super::assets::Assets;
use super::boxes::{BoxHandle, StartBox};
use super::capture::{Output, tail};
use super::runner::{Ended, Runner};
use super::watch::Watch;
use super::{CLOSE_LIMIT, ExecError, Execution, IN_LINE_AT_LEAST, Language};
use crate::relay::Activity;

/// Bound on a start, whoever waits for it. A runner starts in 1 to 2 s on an idle machine.
const START_LIMIT: Duration = Duration::from_secs(30);

/// What is left at least of a call that is tried a second time.
const AGAIN_AT_LEAST: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug)]
pub(super) struct Slot {
    start: Start,
    activity: Arc<Activity>,
    closed: CancellationToken,
    /// Held during a call, so that calls of one language run one after another.
    state: Mutex<SlotState>,
}

#[derive(Debug, Default)]
enum SlotState {
    #[default]
    Empty,
    /// Goes on when the call that began it gives up.
    Starting(JoinHandle<Result<Runner, ExecError>>),
    Ready(Runner),
    /// The previous box is being killed.
    Ending(JoinHandle<()>),
}

/// What a start needs.
#[derive(Debug, Clone)]
struct Start {
    language: Language,
    boxes: Arc<dyn StartBox>,
    watch: Arc<Watch>,
    assets: Arc<Assets>,
    /// The shell's companion: keeps agent-browser's daemons.
    keeper: Option<Arc<Mutex<Option<Runner>>>>,
}

impl Slot {
    pub fn new(
        language: Language,
        boxes: Arc<dyn StartBox>,
        (watch, activity): (Arc<Watch>, Arc<Activity>),
        assets: Arc<Assets>,
        closed: CancellationToken,
    ) -> Self {
        let keeper = (language == Language::Bash).then(Arc::default);
        let start = Start { language, boxes, watch, assets, keeper };
        Self { start, activity, closed, state: Mutex::default() }
    }

    /// One call; see [`super::Runners::execute`]. It ends at `give_up` at the latest.
    pub async fn execute(&self, code: &str, limit: Duration, give_up: Instant) -> Result<Execution, ExecError> {
        let in_line = timeout_at(give_up - limit.min(IN_LINE_AT_LEAST), self.state.lock());
        let mut state = tokio::select! {
            state = in_line => state.map_err(|_| ExecError::Busy)?,
            () = self.closed.cancelled() => return Err(ExecError::Closed),
        };
        if self.closed.is_cancelled() {
            return Err(ExecError::Closed);
        }
        self.start.watch.begin();
        let mut runner = self.ready(&mut state, give_up).await?;
        let until = give_up.min(clock::deadline(limit));
        let (mut ended, mut outputs) = runner.call(code, until, &self.activity, &self.closed).await;
        let mut was_blocked = false;
        if matches!(ended, Ended::Unreachable(_)) {
            // The code has not begun: where a page was in the way it gets its time once more.
            was_blocked = self.start.watch.free().await > 0;
            if was_blocked && clock::instant() + AGAIN_AT_LEAST < give_up {
                let until = give_up.min(clock::deadline(limit));
                (ended, outputs) = runner.call(code, until, &self.activity, &self.closed).await;
            }
        }
        let ending = match ended {
            Ended::Answered { is_broken: false, .. } | Ended::Unreachable(_) => None,
            // Begins now, so that the answer does not wait for it.
            _ => Some(self.end(runner.handle(), matches!(ended, Ended::TimedOut))),
        };
        let outputs = match outputs {
            Some(outputs) => outputs,
            None => runner.last_output().await,
        };
        *state = ending.map_or_else(|| SlotState::Ready(runner), SlotState::Ending);
        drop(state);
        match ended {
            Ended::Answered { exit, value, is_cut, .. } => Ok(Execution::answered(exit, value, is_cut, outputs)),
            Ended::Unreachable(_) if was_blocked => Err(ExecError::Blocked),
            Ended::Unreachable(why) => Err(ExecError::Browser(why)),
            Ended::TimedOut => Ok(Execution::timed_out(limit, outputs)),
            Ended::Exited(code) => Ok(Execution::exited(code, outputs)),
            Ended::Closed => Err(ExecError::Closed),
        }
    }

    /// Begins to start the runner, unless it is there, on its way or in use.
    pub async fn warm(&self) {
        if let Ok(mut state) = self.state.try_lock()
            && matches!(*state, SlotState::Empty)
            && !self.closed.is_cancelled()
        {
            *state = SlotState::Starting(self.start.spawn(None));
        }
    }

    /// Kills the boxes and returns when they are gone. Calls under way have been told by `closed`.
    pub async fn close(&self) {
        let Ok(mut state) = timeout(CLOSE_LIMIT, self.state.lock()).await else { return };
        match std::mem::take(&mut *state) {
            SlotState::Empty => {}
            SlotState::Ready(runner) => runner.handle().kill().await,
            SlotState::Ending(ending) => {
                let _ = timeout(CLOSE_LIMIT, ending).await;
            }
            SlotState::Starting(mut start) => match timeout(CLOSE_LIMIT, &mut start).await {
                Ok(Ok(Ok(runner))) => runner.handle().kill().await,
                // Dropping what a start has made so far ends it.
                _ => start.abort(),
            },
        }
        if let Some(keeper) = &self.start.keeper
            && let Some(keeper) = keeper.lock().await.take()
        {
            keeper.handle().kill().await;
        }
    }

    /// Takes the runner, starting one where there is none. Gives up at `by`; the start goes on for the next call.
    async fn ready(&self, state: &mut SlotState, by: Instant) -> Result<Runner, ExecError> {
        let mut start = match std::mem::take(state) {
            SlotState::Ready(runner) if runner.is_alive() => {
                self.start.keep().await?;
                return Ok(runner);
            }
            SlotState::Ready(_) | SlotState::Empty => self.start.spawn(None),
            SlotState::Starting(start) => start,
            SlotState::Ending(ending) => self.start.spawn(Some(ending)),
        };
        tokio::select! {
            started = &mut start => started.unwrap_or_else(|error| Err(ExecError::Start(format!("the start was lost: {error}")))),
            () = tokio::time::sleep_until(by) => {
                *state = SlotState::Starting(start);
                Err(ExecError::Start("it takes too long on this machine now".into()))
            }
            () = self.closed.cancelled() => {
                *state = SlotState::Starting(start);
                Err(ExecError::Closed)
            }
        }
    }

    /// Kills a box, and frees what code that was cut short may have left blocked.
    fn end(&self, handle: Arc<dyn BoxHandle>, is_cut_short: bool) -> JoinHandle<()> {
        let (watch, keeper, closed) = (Arc::clone(&self.start.watch), self.start.keeper.clone(), self.closed.clone());
        tokio::spawn(async move {
            handle.kill().await;
            if !is_cut_short || closed.is_cancelled() {
                return;
            }
            watch.free().await;
            if let Some(keeper) = keeper
                && let Some(keeper) = &mut *keeper.lock().await
            {
                keeper.prompt().await;
            }
        })
    }
}

impl Start {
    /// Starts the runner once what was there before is gone.
    fn spawn(&self, before: Option<JoinHandle<()>>) -> JoinHandle<Result<Runner, ExecError>> {
        let this = self.clone();
        tokio::spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            let start = async {
                let runner = Runner::start(&*this.boxes, this.assets.runner(this.language));
                let (runner, kept) = tokio::join!(runner, this.keep());
                kept?;
                let runner = runner.map_err(ExecError::Start)?;
                if runner.is_cut_off() {
                    // Mostly by a page that is blocked. Each try of the runner takes seconds, so the next should not be in vain.
                    this.watch.free().await;
                }
                Ok::<_, ExecError>(runner)
            };
            let began = Stopwatch::start();
            let started = timeout(START_LIMIT, start)
                .await
                .unwrap_or_else(|_| Err(ExecError::Start(format!("not ready after {} s", START_LIMIT.as_secs()))));
            match &started {
                Ok(_) => tracing::debug!(language = ?this.language, took = ?began.elapsed(), "a code runner is ready"),
                Err(error) => tracing::warn!(language = ?this.language, %error, "a code runner did not start"),
            }
            started
        })
    }

    /// Has the keeper running, if this language has one.
    async fn keep(&self) -> Result<(), ExecError> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let mut keeper = keeper.lock().await;
        if !keeper.as_ref().is_some_and(Runner::is_alive) {
            let started = Runner::start(&*self.boxes, self.assets.keeper()).await;
            *keeper = Some(started.map_err(ExecError::Start)?);
        }
        Ok(())
    }
}

/// Longest error text, bytes; the end of stderr says most.
const ERROR_LIMIT: usize = 16 << 10;

impl Execution {
    fn answered(exit_code: i32, value: Option<String>, is_cut: bool, (stdout, stderr): (Output, Output)) -> Self {
        let truncated = is_cut || stdout.is_truncated || stderr.is_truncated;
        let value = value.map(|text| if is_cut { text + "\n[value truncated]" } else { text });
        let printed = match &value {
            Some(value) if stdout.text.is_empty() => value.clone(),
            _ => stdout.text,
        };
        let error = (exit_code != 0).then(|| error_text(&stderr.text, "Execution failed"));
        Self {
            result: Some(value.clone().unwrap_or_else(|| printed.clone())),
            stdout: printed,
            stderr: stderr.text,
            exit_code,
            killed: false,
            error,
            truncated,
            last_value: value,
        }
    }

    fn timed_out(limit: Duration, outputs: (Output, Output)) -> Self {
        let error = format!("Execution exceeded its timeout of {} s and was killed", limit.as_secs_f64());
        Self { killed: true, error: Some(error), ..Self::answered(137, None, false, outputs) }
    }

    fn exited(code: i32, outputs: (Output, Output)) -> Self {
        let mut this = Self::answered(code, None, false, outputs);
        if code != 0 {
            let how = if code == 137 { ", as when memory runs out" } else { "" };
            let note = format!("The code ended its process with exit code {code}{how}; variables are lost");
            this.error = Some(error_text(&this.stderr, &note));
        }
        this
    }
}

/// The end of what was printed as errors, or `otherwise`.
fn error_text(stderr: &str, otherwise: &str) -> String {
    let text = stderr.trim();
    if text.is_empty() {
        return otherwise.to_owned();
    }
    tail(text, ERROR_LIMIT).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> Output {
        Output { text: text.into(), is_truncated: false, is_whole: true }
    }

    /// Wire 8.2: the value of the last expression if there is one, otherwise stdout.
    #[test]
    fn the_result_is_the_value_and_otherwise_what_was_printed() {
        for (value, printed, stdout, result) in [
            (None, "", "", ""),
            (None, "a\n", "a\n", "a\n"),
            (Some("7"), "a\n", "a\n", "7"),
            (Some("7"), "", "7", "7"),
            (Some(""), "a\n", "a\n", ""),
        ] {
            let execution = Execution::answered(0, value.map(str::to_owned), false, (output(printed), output("")));
            assert_eq!((execution.stdout.as_str(), execution.result.as_deref()), (stdout, Some(result)));
            assert_eq!(execution.last_value.as_deref(), value);
            assert_eq!((execution.error, execution.killed), (None, false));
        }
    }

    #[test]
    fn a_failure_says_what_stderr_says() {
        let error = |exit, stderr: &str| Execution::answered(exit, None, false, (output(""), output(stderr))).error;
        assert_eq!(error(0, "warning"), None);
        assert_eq!(error(2, " boom\n").as_deref(), Some("boom"));
        assert_eq!(error(2, "").as_deref(), Some("Execution failed"));
        assert_eq!(error(1, &"€".repeat(10_000)).map(|text| text.len()), Some(ERROR_LIMIT / 3 * 3));
        assert!(Execution::exited(137, (output(""), output(""))).error.is_some_and(|e| e.contains("memory")));
        assert_eq!(Execution::exited(0, (output("x"), output(""))).error, None);
    }
}
