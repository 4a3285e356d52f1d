//! Memory that the host's threads have freed goes back to the system.

/// Gives the memory that the C library keeps for its threads back to the system. Without this call the C library
/// keeps what one moment of much work has freed, in an arena for each thread, and the process stays as large
/// as it was at that moment. It takes milliseconds; elsewhere than on Linux with glibc it does nothing.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library's own function, which takes a number")]
pub fn give_back_memory() {
    // SAFETY: it may be called at any time from any thread.
    unsafe { libc::malloc_trim(0) };
}

/// Gives nothing back: only glibc has a call for this.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_memory() {}
