//! The errors of a change of an overlay.

use std::io;

use rustix::io::Errno;

use crate::room::QuotaFull;

/// Why a change failed.
#[derive(Debug)]
pub enum ChangeFault {
    /// An error of the operating system.
    Errno(Errno),
    /// The quota is used up. Holds a message for the operator.
    Full(String),
    /// The layer cannot be written.
    Io(io::Error),
}

impl From<Errno> for ChangeFault {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<QuotaFull> for ChangeFault {
    fn from(QuotaFull(facts): QuotaFull) -> Self {
        Self::Full(facts)
    }
}

impl From<io::Error> for ChangeFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
