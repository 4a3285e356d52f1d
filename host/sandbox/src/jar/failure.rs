//! Calls that did not complete: the receipt gets the full reason, the model a part of it.

use belljar_policy::DenyCode;

use crate::error::LoadError;
use crate::jar::output::CallError;
use crate::jar::store::RunFault;
use crate::receipt::{CallEnding, Receipt};

/// Why a call did not complete.
pub(super) enum CallFailure {
    Refused(DenyCode),
    NotLoaded(LoadError),
    Fault(RunFault),
}

impl CallFailure {
    /// Writes the full reason into the receipt, and returns the part for the model. `timeout` is the call's
    /// limit in seconds.
    pub(super) fn record_failure(self, timeout: u64, receipt: &mut Receipt) -> CallError {
        let (ending, error) = match self {
            Self::Refused(code) => {
                (CallEnding::Refused(code.to_string()), CallError::Refused(code))
            }
            Self::NotLoaded(LoadError::Host(why)) => {
                (CallEnding::HostFault(why.to_string()), CallError::HostFault)
            }
            Self::NotLoaded(why) => {
                (CallEnding::Refused(why.to_string()), CallError::NotLoaded(why.to_string()))
            }
            Self::Fault(RunFault::Trapped { name, detail }) => {
                (CallEnding::Trapped(detail), CallError::Trapped(name))
            }
            Self::Fault(RunFault::Exhausted(which)) => {
                (CallEnding::Exhausted(which.to_string()), CallError::Exhausted(which))
            }
            Self::Fault(RunFault::TimedOut) => (CallEnding::TimedOut, CallError::TimedOut(timeout)),
            Self::Fault(RunFault::Cancelled) => (CallEnding::Cancelled, CallError::Cancelled),
            Self::Fault(RunFault::Panicked) => {
                (CallEnding::HostFault("a host function panicked".to_owned()), CallError::HostFault)
            }
        };
        if let CallEnding::HostFault(facts) = &ending {
            tracing::error!(target: "belljar::sandbox", tool = %receipt.tool, "{facts}");
        }
        receipt.ending = ending;
        error
    }
}
