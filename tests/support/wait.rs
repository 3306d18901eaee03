//! How tests wait for something: a condition is asked again until it holds or its time is up.
//!
//! The bound is no measure: it ends tests of what never comes, on a machine on which every process may stand still for
//! seconds.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use weir_shared::clock;

const BOUND: Duration = Duration::from_secs(60);

/// Asks `condition` until it gives a value, for at most a minute. Panics with `what` after that.
pub async fn wait_until<T, F, Fut>(what: &str, condition: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    wait_until_within(BOUND, what, condition).await
}

/// Asks `rest` until nothing is left, for at most a minute. Panics with `what` and the rest after that.
pub async fn wait_until_none<T: Debug>(what: &str, mut rest: impl FnMut() -> Vec<T>) {
    let mut last = Vec::new();
    let empty = async {
        loop {
            last = rest();
            if last.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = tokio::time::timeout(BOUND, empty).await.is_ok();
    assert!(in_time, "left after {BOUND:?}: {what}: {last:?}");
}

/// [`wait_until`] with a bound of its own.
pub async fn wait_until_within<T, F, Fut>(bound: Duration, what: &str, mut condition: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    let deadline = clock::deadline(bound);
    let mut pause = Duration::from_millis(5);
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(clock::instant() < deadline, "waited {bound:?} in vain: {what}");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}
