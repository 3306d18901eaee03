//! Files from outside are read in a child process of their own, so that one that is made to exhaust or crash its reader
//! takes nothing else along.
//!
//! ```text
//! worker ── the file (stdin) ──> child: this program with an argument of its own     bounds: memory, CPU, no files, no
//!        <── lines of JSON ──                                                        network, no other processes
//! ```

pub mod child;

use std::process::{ExitStatus, Stdio};
use std::sync::LazyLock;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout_at};
use weir_shared::guests::Holder;
use weir_shared::slots::Slots;
use weir_shared::{blocking, clock};

/// Readers at once; further files wait, though not long behind other teams' that take long.
static READERS: LazyLock<Slots> =
    LazyLock::new(|| Slots::new(std::thread::available_parallelism().map_or(2, std::num::NonZero::get)));

/// Most bytes taken from a reader.
const MAX_ANSWER: u64 = 128 << 20;

/// What a reader may use.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Bounds {
    /// Bytes of memory.
    memory: u64,
    /// Seconds of processor time; the caller's deadline counts besides.
    cpu_seconds: u64,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum ConfinedError {
    /// The deadline or the bound of processor time has passed. What was said ahead.
    NoTime(Vec<u8>),
    /// It ran into the bounds of memory or stack, or gave more than is taken.
    TooLarge,
    /// It ended without an answer, which only a panic does.
    GaveUp,
    /// Nothing about the file: no reader could be started.
    NoReader(String),
}

/// Has a holder's file read by a child with this first argument and at most so many bytes of memory; it is gone when this
/// returns or is dropped. Answers with the last line it said.
///
/// # Errors
/// As [`ConfinedError`] says; at the deadline at the latest.
pub async fn read<A: DeserializeOwned + Send + 'static>(
    argument: &str,
    memory: u64,
    request: &impl Serialize,
    file: Bytes,
    holder: Holder,
    deadline: Instant,
) -> Result<A, ConfinedError> {
    let turn = timeout_at(deadline, READERS.acquire(holder)).await;
    let Ok(_turn) = turn else { return Err(ConfinedError::NoTime(Vec::new())) };
    let left = deadline.saturating_duration_since(clock::instant());
    let bounds = Bounds { memory, cpu_seconds: left.as_secs() + 1 };
    let failed = |error: &dyn std::fmt::Display| ConfinedError::NoReader(error.to_string());
    let mut child = start(argument, bounds, request).map_err(|error| failed(&error))?;
    let mut said = Vec::new();
    let finished = timeout_at(deadline, converse(&mut child, file, &mut said)).await;
    let _ = child.start_kill();
    let status = match finished {
        Err(_) => return Err(ConfinedError::NoTime(said)),
        Ok(status) => status.map_err(|error| failed(&error))?,
    };
    use std::os::unix::process::ExitStatusExt as _;
    match status.signal() {
        Some(libc::SIGXCPU | libc::SIGKILL) => return Err(ConfinedError::NoTime(said)),
        Some(_) => return Err(ConfinedError::TooLarge),
        None if said.len() as u64 >= MAX_ANSWER => return Err(ConfinedError::TooLarge),
        None => {}
    }
    let parsed = blocking::run(move || {
        let last = said.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        serde_json::from_slice(last)
    });
    parsed.await.ok().and_then(Result::ok).ok_or(ConfinedError::GaveUp)
}

fn start(argument: &str, bounds: Bounds, request: &impl Serialize) -> std::io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(argument).arg(serde_json::to_string(&bounds)?).arg(serde_json::to_string(request)?);
    // The allocator is not to reserve memory beyond what it uses: that would count against the bound.
    command.env_clear().env("MIMALLOC_ARENA_RESERVE", "0").current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn()
}

/// Hands in the file, takes what is said, waits for the end.
async fn converse(child: &mut Child, file: Bytes, said: &mut Vec<u8>) -> std::io::Result<ExitStatus> {
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(std::io::Error::other("a reader without pipes"));
    };
    let give = async {
        // A reader that has seen enough, or is gone, closes its end.
        let _ = stdin.write_all(&file).await;
        drop(stdin);
    };
    let mut stdout = stdout.take(MAX_ANSWER);
    let ((), taken) = tokio::join!(give, stdout.read_to_end(said));
    taken?;
    drop(stdout);
    child.wait().await
}
