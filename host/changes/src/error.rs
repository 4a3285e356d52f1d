//! Why something about changes could not be done.

use std::io;
use std::path::{Path, PathBuf};

use belljar_policy::ShownPath as _;

/// Why something about changes could not be done. The workspace and the overlay are as they were.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// A directory or file could not be read or written, for example on a full disk.
    #[error("failed to {what} `{}`: {source}", path.shown())]
    Io {
        /// The step that was tried.
        what: &'static str,
        /// Where: in the workspace, or in the journal.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The overlay's index could not be written.
    #[error("failed to write the overlay's index: {0}")]
    Overlay(#[source] io::Error),
    /// A named path is invalid below the workspace.
    #[error(
        "`{}` is no path in the workspace: name it from the workspace on, without `..`", .0.shown()
    )]
    NotAPath(PathBuf),
    /// A file changed at the moment of its replacement. Nothing was applied.
    #[error(
        "`{}` changed in the workspace while changes were applied; all was taken back: try again",
        path.shown()
    )]
    ChangedMeanwhile {
        /// The file.
        path: PathBuf,
    },
    /// There are more changes than are listed.
    #[error(
        "more than {0} files are changed: discard what was not meant, such as a build's output"
    )]
    TooMany(usize),
    /// The copy for undo would be too large.
    #[error(
        "{bytes} bytes would have to be kept to take this back, of at most {most}: apply fewer paths"
    )]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The bound.
        most: u64,
    },
    /// The time for it is over, or whoever asked has gone. Nothing was applied.
    #[error("it was stopped before its end: it takes too long, or is not wanted any more")]
    Stopped(#[from] belljar_work::WorkStopped),
    /// The journal is not what was written.
    #[error("the journal `{}` is damaged: {why}", path.shown())]
    Journal {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: String,
    },
}

impl ChangesError {
    /// For `map_err`.
    pub(crate) fn io<E: Into<io::Error>>(
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source: source.into() }
    }
}
