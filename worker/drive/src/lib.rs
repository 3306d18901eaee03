//! What drives a session's browser: clients of CDP and viewers through the [`relay`], a person's words through the
//! [`agent`], callers' code in boxes through [`exec`].
//!
//! [`calls`] is what the handlers of the worker's private listener share, of which the relay's are the lowest.
//!
//! None of it knows what a session is paid, kept or ended by: a browser, a box and a model are handed in.

pub mod agent;
pub mod calls;
pub mod exec;
mod front;
pub mod relay;

use weir_browser as browser;
use weir_sandbox as sandbox;
