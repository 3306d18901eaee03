//! `weir`: the HTTP API and the operator's commands.

use std::process::ExitCode;

use weir_allocator as _;

fn main() -> ExitCode {
    weir_shared::memory::give_back_soon();
    weir_shared::descriptors::raise();
    weir_api::cli::main()
}
