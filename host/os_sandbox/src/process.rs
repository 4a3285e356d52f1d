//! Prepares a process: system calls without a safe interface, and hiding the memory of the current process
//! from others of the same user.

/// Marks all descriptors except the standard streams, so that they are closed when the current process
/// starts another program. The program then does not inherit files of the operator's shell.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe interface marks descriptors that nobody here has opened")]
pub(crate) fn inherit_nothing() {
    // SAFETY: the arguments of the call are numbers. With this flag the call closes nothing now, so the
    // owners of the descriptors can go on using them. If the kernel lacks the call, at least the descriptors
    // that Rust opened are marked already.
    unsafe {
        let last = libc::c_uint::MAX;
        libc::syscall(libc::SYS_close_range, 3, last, libc::CLOSE_RANGE_CLOEXEC);
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn inherit_nothing() {}

/// Drops all capabilities of the current process for good, so that a program of `root` has no more rights
/// than the owner of root's files. A process without capabilities is not changed. Call it when starting a
/// program can no longer give rights.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe interface that is compiled in sets capabilities")]
pub(crate) fn drop_privileges() -> std::io::Result<()> {
    /// Version 3 of the interface, in which each set has two words.
    const VERSION: u32 = 0x2008_0522;
    let header = [VERSION, 0];
    let none = [0_u32; 6];
    // SAFETY: the header has a version and the id 0, which means the current process. The array has as many
    // words as this version reads. The call writes to neither.
    match unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Hides the memory of the current process, above all keys, from other processes of the same user: a crash
/// writes no core file, no other process can read the memory or trace this one, and `/proc/PID/environ` is
/// empty, although the current process can still read its variables. Call it first in `main`, before any
/// thread is made. A program the current process starts has to call it again.
///
/// A process that may trace all others, for example one of `root`, can still read the memory.
pub fn conceal_process() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{
            DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit,
        };
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        // The kernel never refuses to lower this limit, or to change this setting.
        let _ = setrlimit(Resource::Core, none);
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        move_environment();
    }
}

/// The beginnings of variables to which the dynamic loader and the allocator may still have pointers. Such
/// variables contain no keys.
#[cfg(target_os = "linux")]
const LOADERS: [&str; 3] = ["LD_", "GLIBC_", "MALLOC_"];

/// Copies the environment variables to memory of the current process, and blanks the kernel's copy, which
/// `/proc` shows.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe interface reaches the memory that the kernel shows")]
fn move_environment() {
    use std::ffi::{CStr, c_char};
    unsafe extern "C" {
        static mut environ: *mut *mut c_char;
    }
    /// # Safety
    ///
    /// No other thread may change the environment meanwhile.
    unsafe fn environment_strings() -> Vec<*mut c_char> {
        let mut strings = Vec::new();
        // SAFETY: `environ` is null or a list that ends with a null pointer, and no other code changes the
        // list now.
        unsafe {
            let mut at = environ;
            while !at.is_null() && !(*at).is_null() {
                strings.push(*at);
                at = at.add(1);
            }
        }
        strings
    }
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    if !matches!(threads, Ok(1)) {
        return;
    }
    // SAFETY: the current process has only the current thread. The old strings are in the block the kernel
    // made for the current process, which is writable and never freed. Strings the environment still names,
    // or that the loader may use, are not changed.
    unsafe {
        let old = environment_strings();
        for (name, value) in std::env::vars_os() {
            let name_bytes = name.as_encoded_bytes();
            if !name_bytes.is_empty() && !name_bytes.contains(&b'=') {
                std::env::set_var(name, value);
            }
        }
        let now = environment_strings();
        for string in old.into_iter().filter(|string| !now.contains(string)) {
            let bytes = CStr::from_ptr(string).to_bytes();
            if !LOADERS.iter().any(|name| bytes.starts_with(name.as_bytes())) {
                let length = bytes.len();
                string.write_bytes(0, length);
            }
        }
    }
}
