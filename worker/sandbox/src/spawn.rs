//! The one thread that starts boxes. The kernel's parent-death signal follows the *thread* that started a process,
//! and threads of a runtime come and go; this one ends with the worker, and every box with it.

use std::io;
use std::process::{Child, Command};
use std::sync::{OnceLock, mpsc};

use tokio::sync::oneshot;

struct Job {
    command: Command,
    started: oneshot::Sender<io::Result<Child>>,
}

static SPAWNER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();

/// Starts `command` from the permanent thread.
///
/// # Errors
/// When the program cannot be started.
pub(super) async fn spawn(command: Command) -> io::Result<Child> {
    let (started, outcome) = oneshot::channel();
    let gone = |_| io::Error::other("the thread that starts boxes is gone");
    spawner()?.send(Job { command, started }).map_err(|e| gone(e.to_string()))?;
    outcome.await.map_err(|e| gone(e.to_string()))?
}

fn spawner() -> io::Result<&'static mpsc::Sender<Job>> {
    if let Some(spawner) = SPAWNER.get() {
        return Ok(spawner);
    }
    let (jobs, queue) = mpsc::channel::<Job>();
    std::thread::Builder::new().name("boxes".to_owned()).spawn(move || {
        // The sender is never dropped, so this never ends.
        for mut job in queue {
            let outcome = job.command.spawn();
            // The command holds the worker's copies of the box's descriptors: they must not stay open.
            drop(job.command);
            if let Err(Ok(mut child)) = job.started.send(outcome) {
                // The caller that asked for the process has stopped waiting.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    })?;
    // Of two that come here at once one thread is used; the other's channel closes and it ends unused.
    Ok(SPAWNER.get_or_init(|| jobs))
}
