//! `weir`: the HTTP API and the operator's commands.

use std::process::ExitCode;

/// Gives freed memory back to the system, which the default allocator keeps for long.
#[global_allocator]
static ALLOCATOR: weir_shared::memory::Allocator = weir_shared::memory::Allocator;

fn main() -> ExitCode {
    weir_shared::memory::give_back_soon();
    weir_api::cli::main()
}
