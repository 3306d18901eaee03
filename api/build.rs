//! The console's files are compiled into the binary: when one of them comes or goes, it is made anew.

fn main() {
    println!("cargo:rerun-if-changed=console");
    println!("cargo:rerun-if-changed=build.rs");
}
