//! Whether a failed page has another try, and when: one rule for every step that works on a page's row.

use weir_shared::domain::job::{MAX_TRIES, retry_pause_ms};
use weir_shared::random;
use weir_shared::store::work::page::rows::Claimed;
use weir_shared::time::Timestamp;

/// Pause before a caller on the line gets the next try, milliseconds.
const DIRECT_PAUSE_MS: i64 = 100;

/// When a page that has failed is tried again. `is_direct`: a caller waits for it, and gets the next try at once. `None`:
/// it has had all of its tries.
pub fn next_try(page: &Claimed, is_direct: bool, now: Timestamp) -> Option<Timestamp> {
    if page.tries + 1 >= MAX_TRIES {
        return None;
    }
    let pause = if is_direct { DIRECT_PAUSE_MS } else { retry_pause_ms(page.tries + 1) };
    // Pages that failed together do not all come back together.
    let jitter = i64::try_from(random::up_to((pause / 4).unsigned_abs())).unwrap_or(0);
    Some(now.plus_ms(pause + jitter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::claimed_page;

    #[test]
    fn a_page_has_so_many_tries_and_a_caller_waits_less_for_the_next() {
        let page = |tries| Claimed { tries, ..claimed_page() };
        let pause = |tries, is_direct| {
            let now = Timestamp(1_000_000);
            next_try(&page(tries), is_direct, now).map(|at| at.ms_since(now))
        };
        for tries in 0..MAX_TRIES - 1 {
            let (direct, background) = (pause(tries, true), pause(tries, false));
            assert!(direct.is_some_and(|ms| (100..=125).contains(&ms)), "{direct:?}");
            let least = retry_pause_ms(tries + 1);
            assert!(background.is_some_and(|ms| (least..=least * 5 / 4).contains(&ms)), "{background:?}");
        }
        assert_eq!((pause(MAX_TRIES - 1, true), pause(MAX_TRIES - 1, false)), (None, None));
    }
}
