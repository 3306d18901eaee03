//! What is made of an answer, by what it is.

pub mod files;
mod markdown_html;
pub mod media;
pub mod pdf;
pub mod picture;
