//! Time: the only module that reads the machine's clocks.
//!
//! | question | answer |
//! |---|---|
//! | what time is it, for rows and the wire | [`Clock::now`]: a [`Clock`] goes with every [`crate::store::Db`] (`db.now()`), and tests move it |
//! | how long did this take | [`Stopwatch`] |
//! | until when may this take | [`deadline`], for tokio's `sleep_until` and `timeout_at` |
//! | is what I remember still fresh | [`Clock::instant`], which tests move too |
//! | wait for what this clock makes due | [`Clock::sleep`], which ends when a test makes that time pass |
//! | what has a machine's sleep and nobody's setting of its clock in it | [`since_boot`] |
//! | is that deadline past | compare with [`instant`], which nobody moves: tokio does not either |
//!
//! Rules that depend on the time take `now` as an argument. `clippy.toml` forbids the functions behind these elsewhere.
//!
//! A test that moves the clock of processes names a file in their environment ([`ENVIRONMENT`]); builds without debug
//! assertions have no way to be told so.

#![expect(clippy::disallowed_methods, reason = "this is the one place that they are called in")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::time::Timestamp;

/// Names a file whose first eight bytes say how far a process's [`Clock`] is moved: milliseconds, little endian. Debug
/// builds alone look at it, and anew whenever they ask for the time, so that all processes are moved in one moment.
pub const ENVIRONMENT: &str = "WEIR_TEST_CLOCK";

/// Clocks of machines differ, and are put right, by less than this without a word, milliseconds. What is further ahead was
/// written by a clock that was wrong.
pub const APART_MS: i64 = 10_000;

/// What the database's clock says at the moment at which [`since_boot`] is 0, milliseconds since 1970; [`UNKNOWN`]: it is
/// this machine's wall clock. A process has one database.
static AT_BOOT_MS: AtomicI64 = AtomicI64::new(UNKNOWN);
const UNKNOWN: i64 = i64::MIN;

/// Time since the machine was started, which nobody sets, and which passes while the machine sleeps, too.
pub fn since_boot() -> Duration {
    let passed = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(passed.tv_sec.unsigned_abs(), u32::try_from(passed.tv_nsec).unwrap_or(0))
}

/// Sets what the database's clock said when so much time had passed [`since_boot`]. From now on this machine's wall clock may
/// be set as anybody likes.
pub fn follow_database(said: Timestamp, at: Duration) {
    AT_BOOT_MS.store(said.0.saturating_sub(milliseconds(at)), Ordering::Relaxed);
}

/// Whether the database's clock is known, and not taken for this machine's.
pub fn is_of_database() -> bool {
    AT_BOOT_MS.load(Ordering::Relaxed) != UNKNOWN
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// The machine's own wall clock.
pub fn of_machine() -> Timestamp {
    Timestamp(chrono::Utc::now().timestamp_millis())
}

/// The database's wall clock for traces, nanoseconds since 1970.
pub fn nanoseconds() -> u64 {
    match AT_BOOT_MS.load(Ordering::Relaxed) {
        UNKNOWN => chrono::Utc::now().timestamp_nanos_opt().unwrap_or(0).unsigned_abs(),
        at_boot => u64::try_from(since_boot().as_nanos())
            .unwrap_or(u64::MAX)
            .saturating_add(at_boot.unsigned_abs().saturating_mul(1_000_000)),
    }
}

/// The database's wall clock, as far as it is known. Nobody moves it: the queue library compares with it, in SQL, when
/// wake-ups are due.
pub fn of_database() -> Timestamp {
    match AT_BOOT_MS.load(Ordering::Relaxed) {
        UNKNOWN => of_machine(),
        at_boot => Timestamp(at_boot.saturating_add(milliseconds(since_boot()))),
    }
}

/// The wall clock of a service: the database's. Clones share it, so that a test that moves one moves all.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// How far it was moved, milliseconds.
    moved_ms: Arc<AtomicI64>,
}

impl Clock {
    /// The system's clock, in step with the database's.
    pub fn system() -> Self {
        Self::default()
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        of_database().plus_ms(self.moved_ms())
    }

    /// This moment, for what a process remembers for a while. It passes as the wall clock does, without its steps.
    pub fn instant(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.moved_ms().unsigned_abs())
    }

    fn moved_ms(&self) -> i64 {
        self.moved_ms.load(Ordering::Relaxed).saturating_add(outside::moved_ms())
    }

    /// Waits until so much of the wall clock's time has passed, for loops that see to what rows say is due.
    pub async fn sleep(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = outside::has_passed(pause) => {}
        }
    }

    /// Makes time pass without waiting. For tests; what is asleep elsewhere than in [`Clock::sleep`] does not wake by it.
    pub fn advance(&self, by: Duration) {
        self.moved_ms.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }
}

/// How far a test that has started this process has moved its clock.
#[cfg(not(debug_assertions))]
mod outside {
    /// Nobody has: this build does not look.
    #[inline(always)]
    pub const fn moved_ms() -> i64 {
        0
    }

    /// Nobody makes time pass.
    pub async fn has_passed(_: std::time::Duration) {
        std::future::pending().await
    }
}

#[cfg(debug_assertions)]
mod outside {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;
    use std::sync::LazyLock;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::ENVIRONMENT;

    static FILE: LazyLock<Option<File>> = LazyLock::new(|| {
        let path = std::env::var_os(ENVIRONMENT)?;
        Some(File::open(&path).unwrap_or_else(|error| panic!("{ENVIRONMENT}: {}: {error}", path.display())))
    });

    /// What its file says.
    ///
    /// # Panics
    /// When it cannot be read: the test is wrong.
    pub fn moved_ms() -> i64 {
        let Some(file) = &*FILE else { return 0 };
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, 0).unwrap_or_else(|error| panic!("{ENVIRONMENT}: {error}"));
        i64::from_le_bytes(bytes)
    }

    /// Waits until so much time has passed with what the test has made pass. For ever where no test does.
    pub async fn has_passed(time: Duration) {
        const LOOK_EVERY: Duration = Duration::from_millis(20);
        if FILE.is_none() {
            return std::future::pending().await;
        }
        let (began, before) = (Instant::now(), moved_ms());
        let is_over = || {
            let moved = Duration::from_millis((moved_ms() - before).max(0).unsigned_abs());
            began.elapsed() + moved >= time
        };
        while !is_over() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Measures how long something takes.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts to measure.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// This moment, on the clock that only runs forward and that tokio sleeps by.
pub fn instant() -> Instant {
    Instant::now()
}

/// Time to keep back of work that ends at `deadline`, for what comes after it: a quarter of what is left, since a machine that
/// is slow at the work is as slow afterwards; within bounds.
pub fn reserve(deadline: Instant) -> Duration {
    part_of(deadline.saturating_duration_since(instant()))
}

fn part_of(left: Duration) -> Duration {
    const LEAST: Duration = Duration::from_millis(250);
    const MOST: Duration = Duration::from_secs(4);
    (left / 4).clamp(LEAST, MOST)
}

/// The moment by which such work must have ended.
pub fn before(deadline: Instant) -> Instant {
    deadline.checked_sub(reserve(deadline)).unwrap_or(deadline)
}

/// The moment after this much time.
pub fn deadline(after: Duration) -> Instant {
    Instant::now() + after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_back_is_a_quarter_within_bounds() {
        for (left, kept) in [(0, 250), (900, 250), (2_000, 500), (6_000, 1_500), (60_000, 4_000)] {
            assert_eq!(part_of(Duration::from_millis(left)), Duration::from_millis(kept), "{left}");
        }
        let deadline = instant() + Duration::from_secs(3_600);
        assert_eq!(before(deadline), deadline - Duration::from_secs(4));
    }

    #[test]
    fn a_moved_clock_is_ahead_for_all_who_share_it_and_for_nobody_else() {
        let (moved, other) = (Clock::system(), Clock::system());
        let shared = moved.clone();
        moved.advance(Duration::from_secs(3_600));
        // The other one is read later: a millisecond may have passed.
        assert!((3_590_000..=3_600_000).contains(&shared.now().ms_since(other.now())));
        assert!(other.now().ms_since(of_database()) < 10_000);
    }
}
