//! Rights and budgets: what an agent may do, and how much.
//!
//! Pure: no I/O, no clock, no async runtime. The other crates check here before they act, and a check returns
//! the thing that it allows (a [`ToolPermit`], a [`UrlPermit`], an [`AddressPermit`]), so that unchecked use
//! does not compile. For example, a connection needs an [`AddressPermit`], which only `UrlPermit::address`
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

pub use address::{AddressClass, classify};
pub use budget::{Budget, Caps, Exhausted, Hold, Level, METERS, Meter};
pub use cancel::Cancelled;
pub use decision::{Denied, DenyCode, Permission, Source};
pub use explain::{Explanation, RightsQuestion, Stance, Vote, explain};
pub use host::{
    AddressPermit, GUEST_MARK, HostList, HostPattern, HostRule, HostRuleError, HostScope, Port,
    Scheme, Target, TargetError, TargetHost, UrlPermit,
};
pub use limits::{LIMITS, LimitRow, Limits, LimitsRequest};
pub use mount::{Access, GuestPath, GuestPathError, Mount, MountAsk, PROTECTED_NAMES, WORKSPACE};
pub use names::{InvalidName, SecretName, ToolName};
pub use peers::PeersAsk;
pub use rights::{
    Asked, Grants, Narrowing, Rights, ToolAsk, ToolPermit, ToolRights, Wanted, Writes,
};
pub use shown::{Shown, ShownPath, is_hidden};
pub use typed::typed_path;
