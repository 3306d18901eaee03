//! One page from claim to end.

pub mod cached;
pub mod complete;
pub mod load;
pub mod make;
pub mod proxy_retry;
