//! Data of pages of one template, read without a language model once it is known how: format `json` in mode `learn`
//! (wire 3.4). The files stand in the order of their imports: each needs only those above it.
//!
//! ```text
//! page, as soon as it is parsed
//!   ──> the extractors of team, site and wish ──fits──> data without a model; now and then, and where something about
//!             │ none fits                                  the page is new, it is held against what the model reads
//!             ▼
//!          its turn? ──> the model reads it ──> kept ──> three of one template: one worker has an extractor written,
//!             │ others are at it                         judges it on the three, and puts it in use
//!             └──> waits, or goes back to the queue for a moment
//!
//! compare    whether two readings say the same; whether an extractor makes what a schema wants
//! learned    an extractor with what its values look like; whether a page is one of its template
//! rows       who reads and who writes, so that neither is done twice
//! known      what a worker remembers of it
//! write      has an extractor written
//! page       one page's way through all this
//! ```
//!
//! What a page says is data: the model turns it into an extractor, which is data in a closed form without a place for code,
//! is refused if it is not, and is bounded in what it costs.

mod compare;
mod known;
mod learned;
mod page;
mod rows;
mod write;

pub use self::known::Extractors;
pub use self::page::{Lookout, Source, Told, Way, begin, line};
