//! The memory of both programs: what is given back to the machine when. Their allocator is `weir-allocator`.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::time::Duration;

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

/// A program has started within this time.
const START: Duration = Duration::from_secs(2);

/// Waits until the program has started and gives back what only the start has used: half of what a program at rest would
/// hold are pages of its own file, read once, as the tables of relocations and the code of everything that is set up.
/// What is needed again comes back from the file, mostly out of the system's cache.
pub async fn forget_the_start() {
    tokio::time::sleep(START).await;
    give_back_now();
    unmap_constants();
}

/// Unmaps the pages of code and constants of this program from its memory; each comes back when it is touched.
#[allow(unsafe_code, reason = "the program's own parts have no other door")]
fn unmap_constants() {
    for part in constants() {
        // SAFETY: pages of a file that nobody may write to are as they were when they are read again.
        unsafe { libc::madvise(part.start as *mut c_void, part.len(), libc::MADV_DONTNEED) };
    }
}

/// Where the program's code and constants are: whole pages of its file that were mapped without the right to write. What
/// the loader has filled in and then locked is not among them.
#[allow(unsafe_code, reason = "as above")]
fn constants() -> Vec<Range<usize>> {
    /// The first object is the program; the libraries are small.
    unsafe extern "C" fn of_program(object: *mut libc::dl_phdr_info, _: usize, parts: *mut c_void) -> c_int {
        // SAFETY: the loader hands over its own table, and the pointer is the one given below.
        let (object, parts) = unsafe { (&*object, &mut *parts.cast::<Vec<Range<usize>>>()) };
        // SAFETY: the table has this many rows and stays as long as the program does.
        let rows = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum)) };
        let page = rustix::param::page_size();
        parts.extend(rows.iter().filter(|row| row.p_type == libc::PT_LOAD && row.p_flags & libc::PF_W == 0).map(
            |row| {
                let start = (object.dlpi_addr + row.p_vaddr) as usize;
                start.next_multiple_of(page)..(start + row.p_memsz as usize) / page * page
            },
        ));
        1
    }
    let mut parts = Vec::<Range<usize>>::new();
    // SAFETY: the function is called before this returns, with the vector that lives here.
    unsafe { libc::dl_iterate_phdr(Some(of_program), (&raw mut parts).cast()) };
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constants and code are what they were, and what was given back is gone from the program's memory.
    #[test]
    fn what_the_start_used_is_given_back() {
        let resident = || {
            let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
            pages.split(' ').nth(2).unwrap().parse::<usize>().unwrap()
        };
        let of_file = constants();
        assert!(of_file.iter().any(|part| part.contains(&(unmap_constants as *const () as usize))), "{of_file:x?}");
        for part in &of_file {
            for page in part.clone().step_by(rustix::param::page_size()) {
                #[expect(unsafe_code, reason = "the page is the program's own")]
                // SAFETY: constants and code may be read.
                std::hint::black_box(unsafe { (page as *const u8).read_volatile() });
            }
        }
        let whole = resident();
        unmap_constants();
        let after = resident();
        let size = of_file.iter().map(Range::len).sum::<usize>() / rustix::param::page_size();
        assert!(after + size / 2 < whole, "{whole} pages of files, {after} afterwards; the program's are {size}");
    }

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
