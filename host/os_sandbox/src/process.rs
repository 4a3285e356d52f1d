//! Setting up a process: what has no safe interface.

/// Marks every descriptor past the standard streams to be closed when this process starts
/// another program. What the operator's shell had open is nobody's business but its own.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe interface marks descriptors that nobody here has opened")]
pub(crate) fn inherit_nothing() {
    // SAFETY: the call takes numbers only and, with this flag, closes nothing now: whoever owns
    // one of the descriptors goes on to use it. Where the kernel does not know the call, the
    // descriptors that Rust opened are marked already.
    unsafe {
        let last = libc::c_uint::MAX;
        libc::syscall(libc::SYS_close_range, 3, last, libc::CLOSE_RANGE_CLOEXEC);
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn inherit_nothing() {}
