//! The one place where a permit that needs an answer becomes a permit that needs none; `cargo xtask tidy`
//! refuses that step anywhere else.

use belljar_policy::ToolPermit;

/// Why a call is made without asking a person now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instead {
    /// A hook of the operator allows this very call.
    HookAllows,
    /// INV-258: the journal says that a person allowed it, before the process died.
    AllowedBefore,
    /// A replay makes it, and nothing that it does has an effect.
    NoEffect,
}

/// The permit after a person's yes. Only the code that asks sees this.
pub(super) fn said_yes(permit: ToolPermit) -> ToolPermit {
    permit.consented()
}

/// The permit of a call that a person need not be asked about.
pub(crate) fn without_asking(permit: ToolPermit, instead: Instead) -> ToolPermit {
    match instead {
        Instead::HookAllows | Instead::AllowedBefore | Instead::NoEffect => permit.consented(),
    }
}
