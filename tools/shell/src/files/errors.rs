//! I/O errors with the words a shell uses.

use bashkit::Error;
use std::io;

/// The same error with the text that `strerror` gives, because utilities print it.
pub(super) fn shell(error: io::Error) -> Error {
    let text = match error.kind() {
        io::ErrorKind::NotFound => "No such file or directory",
        io::ErrorKind::PermissionDenied => "Permission denied",
        io::ErrorKind::ReadOnlyFilesystem => "Read-only file system",
        io::ErrorKind::AlreadyExists => "File exists",
        io::ErrorKind::IsADirectory => "Is a directory",
        io::ErrorKind::NotADirectory => "Not a directory",
        io::ErrorKind::DirectoryNotEmpty => "Directory not empty",
        io::ErrorKind::StorageFull => "No space left on device",
        io::ErrorKind::QuotaExceeded => "Disk quota exceeded",
        io::ErrorKind::FileTooLarge => "File too large",
        _ => return other(&error),
    };
    io::Error::new(error.kind(), text).into()
}

/// Drops ` (os error 44)`: a number of this platform tells nobody anything.
fn other(error: &io::Error) -> Error {
    let text = error.to_string();
    let end = text.rfind(" (os error ").unwrap_or(text.len());
    io::Error::new(error.kind(), &text[..end]).into()
}

/// A refusal of one kind.
pub(super) fn refused(kind: io::ErrorKind) -> Error {
    shell(kind.into())
}
