//! The allocator of the programs, which they have by naming this crate. It gives freed memory back to the system, which the
//! default one keeps for long; when it does is said in `weir_shared::memory`.
//!
//! A crate of its own, because the ways into it are compiled where it is declared, and are walked a thousand times a page: a
//! build that does not optimize the programs optimizes this.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
