//! Browser sessions: placed, used, ended and billed; the profiles that they share, and the scrapes that they continue.
//!
//! Every transition is guarded by the state it starts from, so that of several processes one moves the row. Whoever
//! destroys a session also frees its profile's lease and writes its one ledger entry, in the same transaction.
//!
//! Lock order: team, session. Placements of different teams stand in line at a lock of their own, taken after the
//! team's, so that a worker's free slots are counted once at a time.

mod counts;
mod life;
mod overdue;
mod place;
pub mod profiles;
mod rows;
pub mod scrape_context;
#[cfg(test)]
mod tests;

pub use counts::{SessionCounts, by_worker, counts, live_count};
pub use life::{Ended, Found, activate, begin_close, destroy, take_failure, touch, warn};
pub use overdue::{
    CLOSING_MS, OPENING_MS, OVERDUE_MS, end_orphans, end_overdue, of_dead_workers, orphans_exist, overdue, remove_old,
};
pub use place::{NewSession, NotPlaced, Placed, create};
pub use rows::{Owner, SessionRow, list, list_before, load, of_page, of_worker};
