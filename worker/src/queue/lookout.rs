//! Tells the queues' consumers when there is something to fetch, so that they fetch only then.

use std::collections::HashMap;
use std::sync::Weak;
use std::time::Duration;

use weir_shared::clock;
use weir_shared::queue;
use weir_shared::store::Db;
use weir_shared::wake::Wake;

use super::wakeup_source::Due;

/// Backstop of the signals.
const TICK: Duration = Duration::from_secs(2);
/// From a look that found wake-ups, or from a signal that may stand for several, to the next look.
const LATE: Duration = Duration::from_millis(15);
/// Pause after an error.
const ERROR_PAUSE: Duration = Duration::from_millis(500);

/// Calls a queue's worker when the queue holds a wake-up that is due, so that only then it fetches: a fetch writes, and
/// on SQLite stands in line with every other write, while this look is one read whatever the number of queues. Of
/// wake-ups it is told of, `ahead` may see to some itself and says how many are left.
pub async fn look_out(
    db: Db,
    wake: Wake,
    calls: HashMap<&'static str, Weak<Due>>,
    ahead: impl Fn(&str, u64) -> u64 + Send,
) {
    let due_in = |queue: &str| calls.get(queue).and_then(Weak::upgrade);
    // Signals of a file that come together count as one; notifications do not.
    let may_be_more = matches!(db, Db::Sqlite(_));
    let mut signals = wake.subscribe();
    // Wake-ups that came before this process listened are found by a first look.
    let mut next_look = clock::instant();
    while calls.values().any(|due| due.strong_count() > 0) {
        let _ = tokio::time::timeout_at(next_look, signals.changed()).await;
        signals.borrow_and_update();
        // The signal says what is due, so the database need not be asked.
        let told = wake.take_told();
        if !told.is_empty() {
            for (queue, count) in told {
                let left = ahead(&queue, count);
                if left > 0
                    && let Some(due) = due_in(&queue)
                {
                    due.add(left);
                }
            }
            let now = clock::instant();
            if may_be_more {
                next_look = next_look.min(now + LATE);
            }
            if now < next_look {
                continue;
            }
        }
        match queue::due(&db).await {
            Ok(due) => {
                // A fetch under way may have looked too early for what is there now.
                next_look = clock::deadline(if due.is_empty() { TICK } else { LATE });
                for (queue, count) in due {
                    if let Some(due) = due_in(&queue) {
                        due.at_least(count.unsigned_abs());
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot look for wake-ups; it is tried again");
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }
}
