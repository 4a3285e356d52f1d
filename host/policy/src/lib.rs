//! Rights and budgets: what an agent may do, and how much.
//!
//! Pure: no I/O, no clock, no async runtime. The other crates check here before they act, and a check returns
//! the thing that it allows (a [`ToolPermit`], a [`UrlPermit`], an [`AddressPermit`]), so that unchecked use
//! does not compile. For example, a connection needs an [`AddressPermit`], which only `UrlPermit::check_address`
//! returns.
//!
//! Effective rights = definition ∩ tool manifest ∩ operator grants ∩ the parent's rights. [`Rights`] holds
//! the first, third and fourth for one agent; [`Rights::for_tool`] adds the second and returns the
//! [`ToolRights`] of a store.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod address;
mod budget;
mod cancel;
mod decision;
mod explain;
mod host;
mod limits;
mod mount;
mod names;
mod peers;
mod rights;
mod shown;
pub mod spelling;
mod typed;

pub use address::{AddressClass, classify_address};
pub use budget::{Budget, BudgetCaps, BudgetHold, BudgetLevel, ExhaustedLimit, METERS, Meter};
pub use cancel::CancellationWait;
pub use decision::{CallPermission, DecisionSource, DenyCode, PolicyDenial};
pub use explain::{DecisionExplanation, RightsQuestion, SourceStance, SourceVote, explain_tool};
pub use host::{
    AddressPermit, GUEST_MARK, HostList, HostPattern, HostRule, HostRuleError, HostScope, Port,
    RequestTarget, TargetError, TargetHost, UrlPermit, UrlScheme,
};
pub use limits::{LIMITS, LimitRow, Limits, LimitsRequest};
pub use mount::{
    GuestPath, GuestPathError, Mount, MountAccess, MountAsk, PROTECTED_NAMES, WORKSPACE,
};
pub use names::{InvalidName, SecretName, ToolName};
pub use peers::PeersAsk;
pub use rights::{
    AskedRights, Grants, NarrowingNote, Rights, ToolAsk, ToolPermit, ToolRights, WantedRight,
    WriteScope,
};
pub use shown::{ShownPath, ShownText, is_hidden};
pub use typed::typed_path;
