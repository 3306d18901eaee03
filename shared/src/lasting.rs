//! Tasks that last as long as what they serve.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;

/// Pause before a task that broke begins again.
const AGAIN: Duration = Duration::from_secs(5);

/// Runs a task to its end. One that panics, as over something that nobody foresaw, begins again: nobody else does its work.
pub async fn again<F: Future<Output = ()>>(name: &'static str, run: impl FnMut() -> F) {
    again_after(name, || {}, run).await;
}

/// The same for one whose work waits meanwhile: `broke` is called before the pause.
pub async fn again_after<F: Future<Output = ()>>(name: &'static str, broke: impl Fn(), run: impl FnMut() -> F) {
    begun_again(name, AGAIN, broke, run).await;
}

async fn begun_again<F: Future<Output = ()>>(
    name: &'static str,
    pause: Duration,
    broke: impl Fn(),
    mut run: impl FnMut() -> F,
) {
    while AssertUnwindSafe(async { run().await }).catch_unwind().await.is_err() {
        tracing::error!(task = name, "a task of this process broke; it begins again");
        broke();
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_begins_again_until_it_ends() {
        let (runs, breaks) = (Cell::new(0), Cell::new(0));
        let run = || async {
            runs.set(runs.get() + 1);
            tokio::task::yield_now().await;
            assert!(runs.get() > 2, "on purpose");
        };
        begun_again("test", Duration::ZERO, || breaks.set(breaks.get() + 1), run).await;
        assert_eq!((runs.get(), breaks.get()), (3, 2));
    }
}
