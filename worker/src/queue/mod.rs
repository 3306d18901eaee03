//! The consuming side of the queue.

pub mod consumer;
mod wakeup_source;
