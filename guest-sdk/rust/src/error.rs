//! From `std::io::Error` to the contract's error variants.

use crate::ToolError;
use std::fmt::Display;
use std::io::{Error, ErrorKind};

/// Names the thing an operation failed on, as the model knows it.
pub trait At<T> {
    /// Turns an I/O error into a [`ToolError`] that names `what`: the path as the model
    /// gave it, never a host path.
    ///
    /// # Errors
    ///
    /// The mapped error of [`from_io`].
    fn at(self, what: impl Display) -> Result<T, ToolError>;
}

impl<T> At<T> for Result<T, Error> {
    fn at(self, what: impl Display) -> Result<T, ToolError> {
        self.map_err(|error| from_io(&error, what))
    }
}

/// The contract's variant for an I/O error on `what`: absent, refused, over a limit, or
/// anything else.
#[must_use]
pub fn from_io(error: &Error, what: impl Display) -> ToolError {
    match classify(error) {
        Class::NotFound => ToolError::NotFound(format!("`{what}` does not exist")),
        Class::Denied => ToolError::Denied(format!("access to `{what}` was refused")),
        Class::ReadOnly => ToolError::Denied(format!("`{what}` is in a read-only mount")),
        Class::TooLarge => {
            ToolError::TooLarge(format!("`{what}`: the limit on written bytes is reached"))
        }
        Class::Other(text) => ToolError::Failed(format!("`{what}`: {text}")),
    }
}

enum Class {
    NotFound,
    Denied,
    ReadOnly,
    TooLarge,
    Other(String),
}

fn classify(error: &Error) -> Class {
    if let Some(class) = error.raw_os_error().and_then(errno) {
        return class;
    }
    match error.kind() {
        ErrorKind::NotFound => Class::NotFound,
        ErrorKind::PermissionDenied => Class::Denied,
        ErrorKind::ReadOnlyFilesystem => Class::ReadOnly,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            Class::TooLarge
        }
        ErrorKind::IsADirectory => Class::Other("is a directory".to_owned()),
        ErrorKind::NotADirectory => Class::Other("is not a directory".to_owned()),
        ErrorKind::AlreadyExists => Class::Other("exists already".to_owned()),
        ErrorKind::InvalidData => Class::Other("is not valid UTF-8 text".to_owned()),
        _ => Class::Other(without_code(&error.to_string())),
    }
}

/// WASI's error numbers that older standard libraries do not give a kind of their own.
#[cfg(target_family = "wasm")]
fn errno(code: i32) -> Option<Class> {
    const ACCES: i32 = 2;
    const DQUOT: i32 = 19;
    const FBIG: i32 = 22;
    const NOSPC: i32 = 51;
    const PERM: i32 = 63;
    const ROFS: i32 = 69;
    const NOTCAPABLE: i32 = 76;
    match code {
        ACCES | PERM | NOTCAPABLE => Some(Class::Denied),
        ROFS => Some(Class::ReadOnly),
        DQUOT | FBIG | NOSPC => Some(Class::TooLarge),
        _ => None,
    }
}

/// Elsewhere the standard library's own kinds say all that is needed.
#[cfg(not(target_family = "wasm"))]
fn errno(_code: i32) -> Option<Class> {
    None
}

/// Drops ` (os error 44)`: a number of this platform tells a model nothing.
fn without_code(text: &str) -> String {
    let end = text.rfind(" (os error ").unwrap_or(text.len());
    text[..end].to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(kind: ErrorKind) -> ToolError {
        from_io(&Error::from(kind), "notes/a.txt")
    }

    #[test]
    fn an_io_error_keeps_its_meaning_and_names_the_path() {
        assert!(matches!(mapped(ErrorKind::NotFound),
            ToolError::NotFound(text) if text == "`notes/a.txt` does not exist"));
        assert!(matches!(mapped(ErrorKind::PermissionDenied),
            ToolError::Denied(text) if text.contains("notes/a.txt")));
        assert!(matches!(mapped(ErrorKind::StorageFull),
            ToolError::TooLarge(text) if text.contains("notes/a.txt")));
        assert!(matches!(mapped(ErrorKind::IsADirectory),
            ToolError::Failed(text) if text == "`notes/a.txt`: is a directory"));
    }
}
