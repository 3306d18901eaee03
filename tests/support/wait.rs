//! The only place where a test waits: a condition is asked again until it holds or its time is up.

use std::future::Future;
use std::time::{Duration, Instant};

/// Asks `condition` until it gives a value, for at most 30 seconds. Panics with `what` after that.
pub async fn wait_until<T, F, Fut>(what: &str, condition: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    wait_until_within(Duration::from_secs(30), what, condition).await
}

/// [`wait_until`] with a bound of its own.
pub async fn wait_until_within<T, F, Fut>(bound: Duration, what: &str, mut condition: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + bound;
    let mut pause = Duration::from_millis(5);
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {bound:?} in vain: {what}");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}
