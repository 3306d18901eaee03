//! Points with names at which tests break the service, where else they would have to guess when it gets there.
//!
//! Only builds with debug assertions have them: a program in service has no way to be told to kill itself, and pays
//! nothing. In a debug build a point that nothing is armed for costs one relaxed load of an atomic.
//!
//! A [`Faults`] goes with every [`crate::store::Db`]. Tests of one process arm it (`db.faults()`); those that start
//! processes name faults in their environment, as [`ENVIRONMENT`] says.

/// Which faults a process begins with: `after_claim=kill,before_post=fail@3` kills it when its first claim is committed,
/// and makes its third post fail. Each fault happens once.
pub const ENVIRONMENT: &str = "WEIR_TEST_FAULTS";

/// Where a fault can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultPoint {
    /// Pages are claimed and the claim is committed; the worker has not heard of it.
    AfterClaim,
    /// A document or a session's profile is in the blobs; no row names it yet.
    BetweenBlobAndRow,
    /// The ends of pages are written, and not committed.
    BeforeCommit,
    /// The ends of pages are committed; the worker has not heard of it.
    AfterCommit,
    /// What a wake-up asked for is done; the wake-up is not acknowledged.
    BeforeAcknowledgement,
    /// A delivery is claimed; its receiver has not heard of it.
    BeforePost,
    /// A receiver has a delivery; it is not recorded.
    AfterPost,
    /// A step of a task is written down; nothing of it is done.
    StepBegun,
    /// A step of a task is done; what came of it is not written down.
    StepDone,
    /// What came of a step of a task is written down.
    StepStored,
    /// An extractor is to be written by this worker; the language model has not heard of it.
    WritingBegun,
    /// An extractor is written; no row has it.
    WritingDone,
    /// A part of what a page of a crawl leads to is committed before the page's end.
    EnteredAhead,
    /// What a caller asks for is committed; the API has not heard of it.
    CallCommitted,
}

impl FaultPoint {
    /// Every point.
    pub const ALL: [Self; 14] = [
        Self::AfterClaim,
        Self::BetweenBlobAndRow,
        Self::BeforeCommit,
        Self::AfterCommit,
        Self::BeforeAcknowledgement,
        Self::BeforePost,
        Self::AfterPost,
        Self::StepBegun,
        Self::StepDone,
        Self::StepStored,
        Self::WritingBegun,
        Self::WritingDone,
        Self::EnteredAhead,
        Self::CallCommitted,
    ];

    /// Its name in [`ENVIRONMENT`].
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AfterClaim => "after_claim",
            Self::BetweenBlobAndRow => "between_blob_and_row",
            Self::BeforeCommit => "before_commit",
            Self::AfterCommit => "after_commit",
            Self::BeforeAcknowledgement => "before_acknowledgement",
            Self::BeforePost => "before_post",
            Self::AfterPost => "after_post",
            Self::StepBegun => "step_begun",
            Self::StepDone => "step_done",
            Self::StepStored => "step_stored",
            Self::WritingBegun => "writing_begun",
            Self::WritingDone => "writing_done",
            Self::EnteredAhead => "entered_ahead",
            Self::CallCommitted => "call_committed",
        }
    }
}

/// What happens to who gets there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL to this process.
    Kill,
    /// An error, as when the connection to the database breaks.
    Fail,
    /// SIGTERM to this process, a second before the work at this point goes on.
    Stop,
}

/// The faults that are armed. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    #[cfg(debug_assertions)]
    armed: std::sync::Arc<armed::Armed>,
}

#[cfg(not(debug_assertions))]
impl Faults {
    /// None: this build has no faults.
    pub fn of_environment() -> Self {
        Self {}
    }

    /// Nothing happens.
    ///
    /// # Errors
    /// Never.
    #[inline(always)]
    pub fn reach(&self, _: FaultPoint) -> crate::store::StoreResult<()> {
        Ok(())
    }
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};

    use super::{ENVIRONMENT, Fault, FaultPoint, Faults};
    use crate::store::{StoreError, StoreResult};

    #[derive(Debug, Default)]
    pub struct Armed {
        /// Whether there are any.
        is_armed: AtomicBool,
        faults: Mutex<Vec<Waiting>>,
    }

    /// A fault that has not happened yet.
    #[derive(Debug)]
    struct Waiting {
        point: FaultPoint,
        fault: Fault,
        /// Who gets there is counted down to 1, who meets it.
        arrival: u32,
    }

    impl Faults {
        /// Those that the environment names.
        ///
        /// # Panics
        /// When it names one that there is not: the test is wrong.
        pub fn of_environment() -> Self {
            let faults = Self::default();
            for text in std::env::var(ENVIRONMENT).iter().flat_map(|all| all.split(',')).filter(|text| !text.is_empty())
            {
                let (point, fault, arrival) = parse(text).unwrap_or_else(|| panic!("{ENVIRONMENT}: {text}"));
                faults.arm(point, fault, arrival);
            }
            faults
        }

        /// From now on the `arrival`-th to get to `point`, 1 for the first, meets the fault.
        pub fn arm(&self, point: FaultPoint, fault: Fault, arrival: u32) {
            let mut faults = self.armed.faults.lock().unwrap_or_else(PoisonError::into_inner);
            faults.push(Waiting { point, fault, arrival });
            self.armed.is_armed.store(true, Ordering::Relaxed);
        }

        /// Whether every fault that was armed has happened.
        pub fn have_happened(&self) -> bool {
            self.armed.faults.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
        }

        /// The work is at this point.
        ///
        /// # Errors
        /// When a test wants one.
        pub fn reach(&self, point: FaultPoint) -> StoreResult<()> {
            if !self.armed.is_armed.load(Ordering::Relaxed) {
                return Ok(());
            }
            match self.armed.take(point) {
                None => Ok(()),
                Some(Fault::Fail) => {
                    Err(StoreError::Unavailable(sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into())))
                }
                Some(Fault::Stop) => {
                    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
                    std::thread::sleep(std::time::Duration::from_secs(1));
                    Ok(())
                }
                Some(Fault::Kill) => {
                    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
                    std::process::abort()
                }
            }
        }
    }

    impl Armed {
        /// The fault of who arrives at `point` now.
        fn take(self: &Arc<Self>, point: FaultPoint) -> Option<Fault> {
            let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
            let mut due = None;
            for (place, waiting) in faults.iter_mut().enumerate().filter(|(_, waiting)| waiting.point == point) {
                waiting.arrival = waiting.arrival.saturating_sub(1);
                if waiting.arrival == 0 && due.is_none() {
                    due = Some(place);
                }
            }
            due.map(|place| faults.remove(place).fault)
        }
    }

    fn parse(text: &str) -> Option<(FaultPoint, Fault, u32)> {
        let (point, fault) = text.trim().split_once('=')?;
        let (fault, arrival) = fault.split_once('@').unwrap_or((fault, "1"));
        let point = FaultPoint::ALL.into_iter().find(|known| known.as_str() == point)?;
        let fault = match fault {
            "kill" => Fault::Kill,
            "fail" => Fault::Fail,
            "stop" => Fault::Stop,
            _ => return None,
        };
        Some((point, fault, arrival.parse().ok()?))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_fault_happens_once_to_who_arrives_in_its_turn() {
            let faults = Faults::default();
            assert!(faults.reach(FaultPoint::AfterClaim).is_ok());
            faults.arm(FaultPoint::AfterClaim, Fault::Fail, 2);
            assert!(faults.reach(FaultPoint::BeforePost).is_ok() && faults.reach(FaultPoint::AfterClaim).is_ok());
            assert!(!faults.have_happened());
            assert!(faults.clone().reach(FaultPoint::AfterClaim).is_err());
            assert!(faults.have_happened() && faults.reach(FaultPoint::AfterClaim).is_ok());
        }

        #[test]
        fn faults_have_names_for_the_environment() {
            for point in FaultPoint::ALL {
                assert_eq!(parse(&format!("{}=kill", point.as_str())), Some((point, Fault::Kill, 1)));
            }
            assert_eq!(parse("before_post=fail@3"), Some((FaultPoint::BeforePost, Fault::Fail, 3)));
            assert!(parse("never=kill").is_none() && parse("after_post=nap").is_none());
        }
    }
}
