//! The one place where the answer to a question turns a permit into an answered one; `cargo xtask tidy`
//! refuses this step anywhere else.

use belljar_policy::ToolPermit;

/// The reason why a call is made without a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsentBasis {
    /// A hook of the operator allows this very call.
    HookAllows,
    /// INV-258: a person allowed the call before the process died, by the journal.
    AllowedBefore,
    /// A replay makes the call, without effects.
    NoEffect,
}

/// The permit after a person's yes. Only the asking code may call `said_yes`.
pub(super) fn said_yes(permit: ToolPermit) -> ToolPermit {
    permit.consented()
}

/// The permit of a call that a person need not be asked about.
pub(crate) fn without_asking(permit: ToolPermit, instead: ConsentBasis) -> ToolPermit {
    match instead {
        ConsentBasis::HookAllows | ConsentBasis::AllowedBefore | ConsentBasis::NoEffect => {
            permit.consented()
        }
    }
}
