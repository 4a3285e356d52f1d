//! System calls as an attacker makes them in a process that was taken over: past every library.

use std::ffi::CString;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// The result of a system call.
pub(crate) type Done = io::Result<i64>;

/// An argument of a system call. Memory that it refers to lives until the call is over.
pub(crate) enum RawArgument {
    /// A number, for example a descriptor.
    Number(i64),
    /// A path or a name.
    Text(CString),
    /// Bytes that the call reads or writes.
    Bytes(Vec<u8>),
}

impl RawArgument {
    pub(crate) fn from_path(path: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        Self::Text(CString::new(path.as_os_str().as_bytes()).unwrap_or_default())
    }

    pub(crate) fn from_text(text: &str) -> Self {
        Self::Text(CString::new(text).unwrap_or_default())
    }

    pub(crate) fn with_room(bytes: usize) -> Self {
        Self::Bytes(vec![0; bytes])
    }

    /// The value of the argument's register: the number, or the address of the bytes.
    fn as_word(&mut self) -> i64 {
        match self {
            Self::Number(number) => *number,
            Self::Text(text) => text.as_ptr() as i64,
            Self::Bytes(bytes) => bytes.as_mut_ptr() as i64,
        }
    }
}

impl From<i64> for RawArgument {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<i32> for RawArgument {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

/// Makes a system call by its number. The kernel trusts the stated length of memory among the arguments, so
/// it must not be larger than the memory.
#[expect(unsafe_code, reason = "an attacker makes calls that no safe interface offers")]
pub(crate) fn call_kernel<const N: usize>(number: i64, arguments: [RawArgument; N]) -> Done {
    let mut arguments = arguments;
    let mut words = [0_i64; 6];
    for (word, argument) in words.iter_mut().zip(&mut arguments) {
        *word = argument.as_word();
    }
    let [a, b, c, d, e, f] = words;
    // SAFETY: every pointer is to memory that `arguments` owns until the end of this function. The
    // process exists to make these calls and ends right after; were one to succeed and do harm,
    // that is what the attack is to show.
    let given = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    drop(arguments);
    if given < 0 { Err(io::Error::last_os_error()) } else { Ok(given) }
}

/// A descriptor that the process has inherited, which nothing here has opened.
#[expect(unsafe_code, reason = "an attacker uses whatever descriptors there are")]
pub(crate) fn borrow_descriptor<'a>(descriptor: i32) -> BorrowedFd<'a> {
    // SAFETY: used at once; if the descriptor is closed meanwhile, the call fails.
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}

/// Makes a system call whose last argument is a buffer; returns the buffer, empty if the call fails.
pub(crate) fn call_for_bytes(number: i64, arguments: [RawArgument; 3]) -> Vec<u8> {
    let [first, second, mut room] = arguments;
    let pointer = room.as_word();
    match call_kernel(number, [first, second, RawArgument::Number(pointer)]) {
        Ok(_) => match room {
            RawArgument::Bytes(bytes) => bytes,
            RawArgument::Number(_) | RawArgument::Text(_) => Vec::new(),
        },
        Err(_) => Vec::new(),
    }
}
