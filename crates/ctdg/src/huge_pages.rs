//! Pages of 2 MiB for large lists.
//!
//! A history lies anywhere in lists of gigabytes. With pages of 4 KiB each of its lists costs a walk through the page tables on top of the
//! wait for memory; the translations of large pages stay in the processor's caches.

/// Asks the system to back `values` with large pages, before they are first written. A hint: contents stay, and a system that has none
/// does as before.
pub(crate) fn advise<T>(values: &mut [T]) {
    #[cfg(target_os = "linux")]
    linux::advise(values.as_mut_ptr().cast(), size_of_val(values));
    #[cfg(not(target_os = "linux"))]
    let _ = values;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{c_int, c_void};

    /// Of a large page; smaller lists have none to gain.
    const PAGE: usize = 2 << 20;

    /// `MADV_HUGEPAGE` of `sys/mman.h`, the same on all processors.
    const HUGE_PAGE: c_int = 14;

    #[expect(unsafe_code, reason = "a function of the C library")]
    unsafe extern "C" {
        fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    }

    pub(super) fn advise(start: *mut c_void, len: usize) {
        if len < 2 * PAGE {
            return;
        }
        // Whole large pages inside of the list.
        let skip = start.align_offset(PAGE);
        let len = (len - skip) / PAGE * PAGE;
        #[expect(unsafe_code, reason = "a call of the C library")]
        // SAFETY: the range lies within the list, and this advice changes no contents.
        unsafe {
            let first = start.byte_add(skip);
            // An answer that is not 0 means that there are no large pages.
            let _ = madvise(first, len, HUGE_PAGE);
        }
    }
}
