//! `weir`: the HTTP API and the operator's commands.

use std::process::ExitCode;

/// Gives freed memory back to the system, which the default allocator keeps for long.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    weir_api::cli::main()
}
