//! The allocator of both programs, and when it gives freed memory back to the machine.

use std::ffi::c_int;

pub use mimalloc::MiMalloc as Allocator;

/// How long freed memory stays with the process for its next use, ms. The allocator's own 1,000 keeps a busy worker a
/// third larger; below 50 the pages that are taken back and asked for again cost time.
const GIVE_BACK_AFTER: i64 = 50;
/// `mi_option_purge_delay`, which the bindings do not name; it stands before this one in every version.
const PURGE_DELAY: c_int = libmimalloc_sys::mi_option_use_numa_nodes - 1;

/// Makes the allocator give freed memory back soon. Call first in `main`.
#[allow(unsafe_code, reason = "the allocator's settings have no other door")]
pub fn give_back_soon() {
    // SAFETY: it writes one number of the allocator's own table, in bounds; any thread may at any time.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, GIVE_BACK_AFTER) }
}

/// Gives back at once what was freed. For work that was large and is followed by waiting: otherwise the allocator looks
/// at what it may give back when it is asked for the next large piece, which may be much later. Takes some milliseconds.
#[allow(unsafe_code, reason = "as above")]
pub fn give_back_now() {
    // SAFETY: it works on what this thread and the whole process have freed; any thread may call it at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of an option is the library's private matter: its default tells that it is still the one meant.
    #[test]
    #[allow(unsafe_code, reason = "as above")]
    fn the_option_is_the_delay() {
        // SAFETY: reads one number of the same table.
        let get = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(get(), 1_000);
        give_back_soon();
        assert_eq!(get(), GIVE_BACK_AFTER);
    }
}
