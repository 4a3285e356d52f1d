//! Rights and budgets: what an agent may do, and how much of it.
//!
//! This crate only computes: no I/O, no clock, no async runtime. Other crates check here before they act. A
//! check returns a permit (a [`ToolPermit`], a [`UrlPermit`], an [`AddressPermit`]) that the act needs, so
//! that an act without a check does not compile. For example, connecting needs an [`AddressPermit`], which
//! only `UrlPermit::check_address` returns.
//!
//! An agent's rights in a tool are the intersection of four sources: its definition, the tool's manifest,
//! the operator's grants, and the rights of its parent. [`Rights`] is the intersection without the manifest;
//! [`Rights::for_tool`] adds the manifest and returns the [`ToolRights`] of a store.

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
mod protected;
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
pub use protected::is_protected;
pub use rights::{
    AskedRights, Grants, NarrowingNote, Rights, ToolAsk, ToolPermit, ToolRights, WantedRight,
    WriteScope,
};
pub use shown::{ShownPath, ShownText, is_hidden};
pub use typed::typed_path;
