//! A clock of processes that a test moves: what the service takes for the time now is the machine's time and what is
//! written here. Builds without debug assertions do not look at it.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use weir_shared::clock;
use weir_shared::time::Timestamp;

/// Its file goes when it is dropped.
pub struct MovedClock {
    path: PathBuf,
    file: File,
    moved_ms: AtomicI64,
}

impl MovedClock {
    /// One that is not moved yet. Processes get it by their environment: [`clock::ENVIRONMENT`] names its file.
    pub fn new() -> Self {
        let path = crate::temporary("clock");
        let file = File::create(&path).unwrap();
        let clock = Self { path, file, moved_ms: AtomicI64::new(0) };
        clock.advance(Duration::ZERO);
        clock
    }

    /// What the environment of processes says.
    pub fn setting(&self) -> (&'static str, String) {
        (clock::ENVIRONMENT, self.path.display().to_string())
    }

    /// The time that the processes have.
    pub fn now(&self) -> Timestamp {
        clock::of_machine().plus_ms(self.moved_ms.load(Ordering::SeqCst))
    }

    /// Makes time pass for all processes at once. What is asleep wakes by it in [`clock::Clock::sleep`] alone.
    pub fn advance(&self, by: Duration) {
        self.shift(i64::try_from(by.as_millis()).unwrap());
    }

    /// Sets the clock of all processes back.
    pub fn set_back(&self, by: Duration) {
        self.shift(-i64::try_from(by.as_millis()).unwrap());
    }

    fn shift(&self, by: i64) {
        let moved = self.moved_ms.load(Ordering::SeqCst) + by;
        self.file.write_all_at(&moved.to_le_bytes(), 0).unwrap();
        self.moved_ms.store(moved, Ordering::SeqCst);
    }
}

impl Default for MovedClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for MovedClock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
