//! The API's side of the workers: which one is asked, how, and what becomes of a call that none answers.
//!
//! It knows no request and no caller.

pub mod direct_dispatch;
pub mod relay_target;
pub mod silent_workers;
pub mod worker_client;
