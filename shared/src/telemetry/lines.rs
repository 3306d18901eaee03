//! Lines of the log on their way out. Whoever takes them may stop for as long as they like, as a service manager that hangs or
//! a terminal that is halted does. No thread that works is to wait for that: one thread writes, and what waits for it is
//! bounded.

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// What waits to be written at most, bytes. Lines that come then are left out and counted.
const MOST: usize = 4 << 20;
/// What is kept of the room for lines when they are written, bytes.
const KEPT: usize = 64 << 10;
/// How long the last lines of a process may take.
const LAST: Duration = Duration::from_secs(1);

/// Where lines wait. Cheap to clone.
#[derive(Clone, Default)]
pub struct Lines(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    has_come: Condvar,
    is_written: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    is_writing: bool,
    left_out: u64,
}

impl Lines {
    /// Lines that a thread of their own writes to `output`. `tell` is called from it with how many were left out, when lines
    /// are taken again.
    pub fn start(output: impl Write + Send + 'static, tell: fn(u64)) -> io::Result<Self> {
        let lines = Self::default();
        let written = lines.clone();
        std::thread::Builder::new().name("log".to_owned()).spawn(move || written.write_out(output, tell))?;
        Ok(lines)
    }

    /// Waits a moment for what has come so far.
    pub fn flush(&self) {
        let is_under_way = |state: &mut State| state.is_writing || !state.waiting.is_empty();
        drop(self.0.is_written.wait_timeout_while(self.state(), LAST, is_under_way));
    }

    fn push(&self, line: &[u8]) {
        let mut state = self.state();
        if state.waiting.len() + line.len() > MOST {
            state.left_out += 1;
            return;
        }
        state.waiting.extend_from_slice(line);
        drop(state);
        self.0.has_come.notify_one();
    }

    fn write_out(&self, mut output: impl Write, tell: fn(u64)) {
        let mut batch = Vec::new();
        loop {
            let state = self.0.has_come.wait_while(self.state(), |state| state.waiting.is_empty());
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            mem::swap(&mut state.waiting, &mut batch);
            state.is_writing = true;
            drop(state);
            // What cannot be written, as on a full disk or to a reader that has gone, is no reason to stop.
            let _ = output.write_all(&batch);
            batch.clear();
            batch.shrink_to(KEPT);
            let mut state = self.state();
            state.is_writing = false;
            let left_out = mem::take(&mut state.left_out);
            drop(state);
            self.0.is_written.notify_all();
            if left_out > 0 {
                tell(left_out);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for &Lines {
    /// The log writes a line at a time.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Lines;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Takes what is written when it is told to.
    struct Reader {
        go: Receiver<()>,
        taken: Sender<Vec<u8>>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.go.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            let _ = self.taken.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

    #[test]
    fn whoever_does_not_read_keeps_nobody_waiting_and_hears_what_was_left_out() {
        let ((go, told), (sender, taken)) = (channel(), channel());
        let tell = |count| LEFT_OUT.store(count, Ordering::SeqCst);
        let lines = Lines::start(Reader { go: told, taken: sender }, tell).unwrap();
        lines.push(b"the first\n");
        // It is on its way: from now on everything waits.
        while !lines.state().is_writing {
            std::thread::yield_now();
        }
        let line = [b'x'; 1 << 10];
        for _ in 0..5_000 {
            lines.push(&line);
        }
        let state = lines.state();
        assert!(state.waiting.len() <= MOST && state.left_out == 5_000 - (MOST >> 10) as u64, "{}", state.left_out);
        drop(state);
        go.send(()).unwrap();
        go.send(()).unwrap();
        assert_eq!(taken.recv().unwrap(), b"the first\n");
        assert_eq!(taken.recv().unwrap().len(), MOST);
        lines.flush();
        while LEFT_OUT.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(LEFT_OUT.load(Ordering::SeqCst), 5_000 - (MOST >> 10) as u64);
        // A reader that has gone ends nothing.
        drop(go);
        lines.push(b"to nobody\n");
        lines.flush();
        lines.push(b"nor this\n");
        lines.flush();
        assert!(lines.state().waiting.is_empty());
    }
}
