//! Returns freed memory of the host's threads to the system.

/// Returns the memory that the C library caches for its threads to the system. Without this call the C
/// library keeps an arena for each thread, and the process stays as large as at its peak. Takes milliseconds;
/// without effect except on Linux with glibc.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library's own function, which takes a number")]
pub fn give_back_memory() {
    // SAFETY: the function may be called at any time from any thread.
    unsafe { libc::malloc_trim(0) };
}

/// Has no effect, because only glibc has such a call.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_memory() {}
