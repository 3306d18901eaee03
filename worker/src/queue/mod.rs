//! The consuming side of the queue.
//!
//! ```text
//! wakeup_source   where the queue library gets wake-ups from
//! consumer        one library worker a queue, fenced against the library's defects
//! lookout         tells the consumers what is due
//! ahead           what is done about a wake-up before the library fetches it
//! start           all of it, for every kind of job
//! ```

mod ahead;
mod consumer;
mod lookout;
pub mod start;
mod wakeup_source;
