//! Two symbols of POSIX threads that older C libraries for WASI lack.
//!
//! The executor can start helper threads, so its code refers to these; on WASI none is ever
//! started, since std refuses to. Without them the component does not link against Debian's
//! `wasi-libc`.

#[expect(unsafe_code, reason = "a C symbol has to be exported under its own name")]
mod symbols {
    use std::ffi::{c_int, c_void};

    /// `ESRCH`, as WASI numbers it: there is no such thread.
    const NO_SUCH_THREAD: c_int = 71;

    #[unsafe(no_mangle)]
    extern "C" fn pthread_join(_thread: *mut c_void, _result: *mut *mut c_void) -> c_int {
        NO_SUCH_THREAD
    }

    #[unsafe(no_mangle)]
    extern "C" fn pthread_detach(_thread: *mut c_void) -> c_int {
        NO_SUCH_THREAD
    }
}
