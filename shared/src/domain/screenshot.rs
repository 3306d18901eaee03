//! A picture of a page, as a format and as an action.

use serde::{Deserialize, Serialize};

/// How the picture is taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Screenshot {
    /// The whole page instead of the window.
    pub full_page: bool,
    /// JPEG quality 1 to 100; absent: PNG.
    pub quality: Option<u8>,
    /// Window size; absent: the default of the device.
    pub viewport: Option<Viewport>,
}

/// A window size in CSS pixels: at most 7,680 by 4,320.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Viewport {
    pub width: u32,
    pub height: u32,
}
