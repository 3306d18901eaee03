//! What the console shows and does beyond the public API: who is signed in, lists over all teams, figures by the minute.
//!
//! Every list here goes by an index from where its cursor stands and looks through a bounded number of rows, so that it
//! costs the same on its first page and on its thousandth, and with a million pages as with ten.

pub mod figures;
pub mod history;
pub mod jobs;
pub mod pages;
pub mod sign_ins;
#[cfg(test)]
mod tests;
pub mod usage;
