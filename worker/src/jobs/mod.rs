//! What a worker does with a ticket that is not about pages: one file a kind.

pub mod deliver_webhook;
