//! What stands on other pages of a site, too: the template that the page was poured into.
//!
//! One page cannot tell a shop's words about itself from the goods' description; ten pages can. Blocks of text that most
//! pages of a site have in common, and that the rules for one page have left, are known by numbers of their text.
//!
//! ```text
//! blocks    the runs of text that are left of a page, each with its number
//! site      which of them stand on which of the last pages of a site; in memory and as bytes
//! repeats   leaves out what most pages of the site have in common, as whole elements
//! ```
//!
//! Nothing here knows whose pages they are or where a site's knowledge is kept.

mod blocks;
mod repeats;
mod site;
#[cfg(test)]
mod tests;

pub use blocks::Blocks;
pub(crate) use blocks::Runs;
pub(crate) use repeats::leave_out;
pub use site::Site;
