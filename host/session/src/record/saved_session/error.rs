//! The errors of opening or resuming a session.

use std::io;
use std::path::PathBuf;

use belljar_policy::ShownPath as _;
use belljar_store::StoreError;

/// The reason why a session cannot be opened or resumed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process has the session open.
    #[error("session `{0}` is open in another process")]
    Locked(String),
    /// The session's lock cannot be used.
    #[error("failed to lock session `{session}` in `{}`: {source}", dir.to_shown())]
    Lock {
        /// The session.
        session: String,
        /// The directory of the locks.
        dir: PathBuf,
        /// The cause of the failure.
        source: io::Error,
    },
    /// There is no session to resume in this workspace.
    #[error("there is no session of this workspace yet")]
    Nothing,
}
