//! How many files and connections a process may have open at once.
//!
//! A shell, a container and most service managers start programs with a soft limit of 1,024, which connections that send
//! nothing fill; the hard one is higher as a rule, and a program may raise the one to the other. What a worker starts in boxes
//! has limits of its own.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As many as the units that are packaged have. Programs that look at every number below the limit stay quick.
const WANTED: u64 = 65_536;

/// Below this, calls, pages and the connections to the database may stand in each other's way.
pub const LEAST: u64 = 4_096;

/// Raises this process's limit as far as that is allowed and of use. Call at the start.
pub fn raise() {
    let found = getrlimit(Resource::Nofile);
    if let Some(wanted) = raised(&found) {
        let raised = Rlimit { current: Some(wanted), ..found };
        // The lower one does as well, with fewer connections.
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files cannot be raised");
        }
    }
}

/// What the soft limit is raised to. `None`: it is high enough, or as high as it may be.
fn raised(found: &Rlimit) -> Option<u64> {
    let wanted = found.maximum.map_or(WANTED, |most| most.min(WANTED));
    found.current.filter(|current| *current < wanted).map(|_| wanted)
}

/// What one browser session may take of a worker's: its boxes bound their connections so that this holds.
pub const PER_SESSION: u64 = 1_200;

/// What a worker with so many sessions needs, so that none of them can take what the others and the pages have.
pub fn needed(sessions: usize) -> u64 {
    LEAST + PER_SESSION * sessions as u64
}

/// How many this process may have open now.
pub fn allowed() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_as_far_as_it_may_be_and_never_lowered() {
        for (current, maximum, expected) in [
            (Some(1_024), Some(20_000), Some(20_000)),
            (Some(1_024), Some(1_048_576), Some(WANTED)),
            (Some(1_024), None, Some(WANTED)),
            (Some(1_024), Some(1_024), None),
            (Some(WANTED), None, None),
            (Some(1_048_576), Some(1_048_576), None),
            (None, None, None),
        ] {
            assert_eq!(raised(&Rlimit { current, maximum }), expected, "{current:?} {maximum:?}");
        }
    }

    #[test]
    fn the_process_has_what_it_may_have() {
        raise();
        let most = getrlimit(Resource::Nofile).maximum.map_or(WANTED, |most| most.min(WANTED));
        assert!(allowed() >= most, "{} of {most}", allowed());
    }
}
