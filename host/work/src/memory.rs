//! Returns freed memory of the host's threads to the operating system.

/// Returns to the operating system the freed memory that the C library caches for threads. Otherwise glibc
/// keeps an arena of memory for each thread, and the process stays as large as at its peak. Takes
/// milliseconds. Does nothing except on Linux with glibc.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library's own function, which takes a number")]
pub fn give_back_memory() {
    // SAFETY: any thread may call the function at any time.
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing, because only glibc has such a function.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_memory() {}
