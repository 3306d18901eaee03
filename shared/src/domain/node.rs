//! The life of a worker process, as the others see it in its row.

use super::states::states;

states! {
    /// State of a worker.
    NodeState {
        /// Takes work.
        Live = "live",
        /// Finishes what it has and stops.
        Draining = "draining",
        /// Writes nothing any more: what it had is for others.
        Dead = "dead",
    }
    /// How a worker goes on. A dead one stays dead: its process announces itself anew under another id.
    NodeMove {
        /// The operator asks for it.
        Drain: Live => Draining,
        /// It signed off, its process is gone, or its heartbeat is too old.
        Die: Live => Dead,
        /// The same of one that drains.
        Stop: Draining => Dead,
    }
}
