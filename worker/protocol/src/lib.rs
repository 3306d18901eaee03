//! The types of Chromium's DevTools protocol, for the build of `headless_chrome`.
//!
//! That crate is made of types that its build script has a crate of this name write from the whole protocol: 25,000 lines,
//! of which an eighth is named by anyone, a GPL licence, and a minute of each build. This one stands in its place
//! (`[patch.crates-io]` in the workspace's `Cargo.toml`) and has what is named: `protocol.rs`.

use std::path::Path;

/// Writes `protocol.rs` into the directory that Cargo gives a build script (`OUT_DIR`), where `headless_chrome` includes it.
///
/// # Panics
///
/// Outside of a build script, and when the directory can't be written to: that ends the build.
pub fn init() {
    let directory = std::env::var_os("OUT_DIR").expect("OUT_DIR is set for build scripts");
    let file = Path::new(&directory).join("protocol.rs");
    std::fs::write(&file, include_str!("protocol.rs"))
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
}
