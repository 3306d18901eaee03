//! What a machine can do as a worker, as its `weir-worker` has tried it for `weir doctor`.

use serde::{Deserialize, Serialize};

/// The argument with which `weir-worker` examines the machine, prints this as JSON, and ends. Not for people.
pub const ARGUMENT: &str = "__examine";

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Examination {
    /// Where boxes are made, or why they cannot be; then nothing else of boxes was tried.
    pub run_dir: Result<(), String>,
    /// What keeps boxes within their memory and processes.
    pub limits: Option<Limits>,
    /// Whether a box with code and one with a browser start; why not.
    pub boxes: Option<Result<(), String>>,
    /// Whether pictures in PDFs are read, and images.
    pub reads_pages: bool,
    pub reads_images: bool,
}

/// Bounds of boxes as wholes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Limits {
    pub name: String,
    pub is_cgroup: bool,
}
