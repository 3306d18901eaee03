//! The one thread that starts boxes. The kernel's parent-death signal follows the *thread* that started a process,
//! and threads of a runtime come and go; this one ends with the worker, and every box with it.

use std::io;
use std::process::{Child, Command};
use std::sync::{OnceLock, mpsc};

use tokio::sync::oneshot;

enum Job {
    Start {
        command: Box<Command>,
        started: oneshot::Sender<io::Result<Unclaimed>>,
    },
    /// Tells when all that was asked for before is done.
    Settle(oneshot::Sender<()>),
}

/// A process that nobody looks after yet. Dropped, it ends: who asked for it may have stopped waiting.
struct Unclaimed(Option<Child>);

impl Unclaimed {
    fn claim(mut self) -> Option<Child> {
        self.0.take()
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

static SPAWNER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();

/// Starts `command` from the permanent thread.
///
/// # Errors
/// When the program cannot be started.
pub(super) async fn spawn(command: Command) -> io::Result<Child> {
    let (started, outcome) = oneshot::channel();
    let gone = |_| io::Error::other("the thread that starts boxes is gone");
    let job = Job::Start { command: Box::new(command), started };
    spawner()?.send(job).map_err(|e| gone(e.to_string()))?;
    let child = outcome.await.map_err(|e| gone(e.to_string()))??;
    child.claim().ok_or_else(|| gone(String::new()))
}

/// Waits until no process is about to be started: one that is, when the worker ends, may miss the parent-death signal.
pub(super) async fn settle() {
    let (settled, wait) = oneshot::channel();
    if let Some(spawner) = SPAWNER.get()
        && spawner.send(Job::Settle(settled)).is_ok()
    {
        let _ = wait.await;
    }
}

fn spawner() -> io::Result<&'static mpsc::Sender<Job>> {
    if let Some(spawner) = SPAWNER.get() {
        return Ok(spawner);
    }
    let (jobs, queue) = mpsc::channel::<Job>();
    std::thread::Builder::new().name("boxes".to_owned()).spawn(move || {
        // The sender is never dropped, so this never ends.
        for job in queue {
            match job {
                Job::Start { mut command, started } => {
                    let outcome = command.spawn().map(|child| Unclaimed(Some(child)));
                    // The command holds the worker's copies of the box's descriptors: they must not stay open.
                    drop(command);
                    // Nobody may wait any more: then it ends here.
                    drop(started.send(outcome));
                }
                Job::Settle(settled) => drop(settled.send(())),
            }
        }
    })?;
    // Of two that come here at once one thread is used; the other's channel closes and it ends unused.
    Ok(SPAWNER.get_or_init(|| jobs))
}
