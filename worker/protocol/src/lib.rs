//! The types of Chromium's DevTools protocol, for the build of `headless_chrome`.
//!
//! That crate is made of types that its build script has a crate of this name write from the whole protocol: 25,000 lines,
//! of which an eighth is named by anyone, a GPL licence, and a minute of each build. This one stands in its place
//! (`[patch.crates-io]` in the workspace's `Cargo.toml`) and has what is named, a file a domain: the commands, events and types
//! that Weir and `headless_chrome` name, and of their fields those that either names. What is missing is not sent, and passed over
//! where it is received.
//!
//! `/json/protocol` of a Chromium that listens on a port describes all of it. To use another one, write it beside its like: a
//! command is a struct that has its domain's name for it in `impl Method`, and what is answered is its `ReturnObject`.
//! `tests/it/protocol.rs` holds these files to the browser.

use std::path::Path;

/// The modules of the protocol, by the names that `headless_chrome` has for them: what all share, and the domains.
const MODULES: &[(&str, &str)] = &[
    ("types", include_str!("cdp/types.rs")),
    ("Browser", include_str!("cdp/browser.rs")),
    ("CSS", include_str!("cdp/css.rs")),
    ("DOM", include_str!("cdp/dom.rs")),
    ("Debugger", include_str!("cdp/debugger.rs")),
    ("Emulation", include_str!("cdp/emulation.rs")),
    ("Fetch", include_str!("cdp/fetch.rs")),
    ("IO", include_str!("cdp/io.rs")),
    ("Input", include_str!("cdp/input.rs")),
    ("Inspector", include_str!("cdp/inspector.rs")),
    ("Log", include_str!("cdp/log.rs")),
    ("Network", include_str!("cdp/network.rs")),
    ("Page", include_str!("cdp/page.rs")),
    ("Profiler", include_str!("cdp/profiler.rs")),
    ("Runtime", include_str!("cdp/runtime.rs")),
    ("Security", include_str!("cdp/security.rs")),
    ("Storage", include_str!("cdp/storage.rs")),
    ("Target", include_str!("cdp/target.rs")),
];

/// The protocol as one module, `cdp`, with a module for each domain.
pub fn source() -> String {
    let modules =
        MODULES.iter().map(|(name, text)| format!("    pub mod {name} {{\n{text}    }}\n")).collect::<String>();
    format!("#[allow(unused)]\n#[allow(non_camel_case_types)]\n#[allow(non_snake_case)]\npub mod cdp {{\n{modules}}}\n")
}

/// Writes [`source`] as `protocol.rs` into the directory that Cargo gives a build script (`OUT_DIR`), where `headless_chrome`
/// includes it.
///
/// # Panics
///
/// Outside of a build script, and when the directory can't be written to: that ends the build.
pub fn init() {
    let directory = std::env::var_os("OUT_DIR").expect("OUT_DIR is set for build scripts");
    let file = Path::new(&directory).join("protocol.rs");
    std::fs::write(&file, source()).unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
}
