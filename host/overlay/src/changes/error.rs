//! Errors of listing, applying, undoing and discarding changes.

use std::io;
use std::path::{Path, PathBuf};

use belljar_policy::ShownPath as _;

/// Why an operation on changes failed. The workspace and the overlay are unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// A directory or file could not be read or written, for example on a full disk.
    #[error("failed to {what} `{}`: {source}", path.to_shown())]
    Io {
        /// The attempted step.
        what: &'static str,
        /// The path in the workspace or in the journal.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The overlay's index could not be written.
    #[error("failed to write the overlay's index: {0}")]
    Overlay(#[source] io::Error),
    /// A path is not a path below the workspace.
    #[error(
        "`{}` is no path in the workspace: name it from the workspace on, without `..`", .0.to_shown()
    )]
    NotAPath(PathBuf),
    /// A file changed at the moment of its replacement. Nothing was applied.
    #[error(
        "`{}` changed in the workspace while changes were applied; all was taken back: try again",
        path.to_shown()
    )]
    ChangedMeanwhile {
        /// The file.
        path: PathBuf,
    },
    /// The overlay has more changes than can be listed.
    #[error(
        "more than {0} files are changed: discard what was not meant, such as a build's output"
    )]
    TooMany(usize),
    /// The stored originals for an undo would be too large.
    #[error(
        "{bytes} bytes would have to be kept to take this back, of at most {most}: apply fewer paths"
    )]
    TooLarge {
        /// The size in bytes.
        bytes: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// The time is over, or the caller disconnected. Nothing was applied.
    #[error("it was stopped before its end: it takes too long, or is not wanted any more")]
    Stopped(#[from] belljar_work::WorkStopped),
    /// The journal is damaged.
    #[error("the journal `{}` is damaged: {why}", path.to_shown())]
    Journal {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

impl ChangesError {
    /// Adds the step and the path to an I/O error, for `map_err`.
    pub(crate) fn from_io<E: Into<io::Error>>(
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source: source.into() }
    }
}
