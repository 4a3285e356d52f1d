//! The one place that turns a permit which needs a person's answer into one that has it; `cargo xtask tidy`
//! refuses this anywhere else.

use belljar_policy::ToolPermit;

/// Why a call may be made without asking the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsentBasis {
    /// A hook of the operator allows the call.
    HookAllows,
    /// INV-258: the journal shows that a person allowed the call before the process died.
    AllowedBefore,
    /// A replay makes the call, which then has no outside effect.
    NoEffect,
}

/// The permit after a person has said yes. Called only by the code that asks.
pub(super) fn said_yes(permit: ToolPermit) -> ToolPermit {
    permit.consented()
}

/// The permit of a call about which the person need not be asked, for this reason.
pub(crate) fn without_asking(permit: ToolPermit, instead: ConsentBasis) -> ToolPermit {
    match instead {
        ConsentBasis::HookAllows | ConsentBasis::AllowedBefore | ConsentBasis::NoEffect => {
            permit.consented()
        }
    }
}
