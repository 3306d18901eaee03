//! What is made of a site's response, by what it is: a page of HTML, a file of text, a PDF, an office file, a picture, a sound or a film.

mod attributes;
pub mod fetched;
mod files;
pub mod goods;
pub mod html;
mod markdown_html;
pub mod media;
pub mod office;
pub mod pdf;
pub mod picture;
mod raw;
mod recognised;
pub mod rendered;
pub mod stored;
