//! What files say: PDFs ([`pdf`]) and office files ([`office`]) to text. Each file is read by a process of its own that has
//! no rights ([`confined`]); what only a picture says is recognised in a box ([`pdf::ocr`]).
//!
//! Knows nothing of jobs, pages and rows. What the formats of office files are is `weir-office`'s.

pub mod confined;
pub mod office;
pub mod pdf;
