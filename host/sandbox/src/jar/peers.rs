//! Calls made by a tool: the interface to the jar's owner, and the jar's own bounds, for any owner.
//!
//! A call with nested calls has a [`NestBounds`]: no other call runs beside it in the jar, because a tool that may
//! call others never overlaps, and nested calls queue in the nest and not in the jar. So no nested call waits
//! for its outer call. A nested call to a component that is itself waiting for nested calls is refused.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use belljar_policy::{Budget, BudgetCaps, BudgetLevel, Meter, ToolName};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::ToolHints;
use crate::jar::output::{ToolErrorKind, ToolOutput};
use crate::jar::queue::CallQueue;

/// The other tools of a jar's owner. A jar passes its guests' calls to this interface; the owner decides,
/// asks and records.
pub trait PeerPort: Send + Sync {
    /// The callable tools. The jar passes on the subset that its guest may call.
    fn list_tools(&self) -> Vec<PeerTool>;

    /// Makes these calls, each like a separate one; returns a result for each, in order. Calls of the jar's
    /// own tools go through [`crate::Jar::call_with`], with `within`. Dropping the future abandons the calls.
    fn call_tools(
        &self,
        calls: Vec<PeerCall>,
        within: NestedScope,
    ) -> BoxFuture<'static, Vec<PeerResult>>;
}

/// A callable tool.
#[derive(Debug, Clone)]
pub struct PeerTool {
    /// The name by which a guest calls the tool.
    pub name: String,
    /// The tool's own name.
    pub tool: ToolName,
    /// Its description.
    pub description: String,
    /// A JSON Schema of the arguments, as text.
    pub schema: String,
    /// Hints about the tool's effects, as the tool declares them.
    pub hints: ToolHints,
}

/// A call as the guest wrote it, unchecked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerCall {
    /// The name of the tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: String,
}

/// The result of a call, as the guest gets it.
pub type PeerResult = Result<ToolOutput, PeerError>;

/// Why a call has no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerError {
    /// The error variant of the contract.
    pub kind: ToolErrorKind,
    /// The text.
    pub message: String,
}

/// The outer call of nested calls, with its queue, budget and end.
#[derive(Clone)]
pub struct NestedScope {
    pub(crate) nest: Arc<NestBounds>,
    /// The outer call's remaining fuel, less its reserve.
    pub(crate) slice: Budget,
}

impl NestedScope {
    /// The nesting depth of these calls: 1 = directly below a model's call.
    pub fn nesting_depth(&self) -> u64 {
        self.nest.depth
    }

    /// Whether the calling tool's manifest requests this tool.
    pub fn may_call(&self, tool: &str) -> bool {
        self.nest.allowed.contains(tool)
    }

    /// Whether a tool belongs to a component that waits for these nested calls.
    pub fn is_waiting(&self, tool: &str) -> bool {
        self.nest.waiting.contains(tool)
    }

    /// Bills the fuel of a replayed call, which is not executed again.
    pub fn bill_fuel(&self, fuel: u64) {
        // The outer call notices the exhaustion in its remaining fuel.
        let _ = self.slice.bill(Meter::Fuel, fuel);
    }

    /// Cancelled when the outer call has ended.
    pub fn end_token(&self) -> &CancellationToken {
        &self.nest.stop
    }
}

impl std::fmt::Debug for NestedScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NestedScope").field("depth", &self.nest.depth).finish_non_exhaustive()
    }
}

/// The bounds of one call's nested calls.
pub(crate) struct NestBounds {
    depth: u64,
    /// The tools requested by the manifest and granted to the agent.
    allowed: BTreeSet<ToolName>,
    /// The tools of the components that wait for nested calls.
    waiting: BTreeSet<ToolName>,
    /// The slots of those components in the jar.
    pub(crate) slots: Vec<usize>,
    /// The queue in which the nested calls wait for each other.
    pub(crate) queue: CallQueue,
    pub(crate) stop: CancellationToken,
    /// The fuel of the outer call, if this one is nested.
    above: Option<Budget>,
    /// The count of nested calls below one call of the model.
    made: Arc<AtomicU64>,
    most: u64,
}

/// The limits of nesting, taken from the limits of the caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NestLimits {
    pub(crate) depth: u64,
    pub(crate) calls: u64,
}

impl NestBounds {
    /// The nest of a call in this slot, whose component offers the tools `own`; `None` = nested too deep.
    pub(crate) fn new(
        slot: usize,
        own: impl Iterator<Item = ToolName>,
        allowed: BTreeSet<ToolName>,
        within: Option<&NestedScope>,
        most: NestLimits,
        cancel: &CancellationToken,
    ) -> Option<Self> {
        let depth = within.map_or(0, |within| within.nest.depth) + 1;
        if depth > most.depth {
            return None;
        }
        let above = within.map(|within| &within.nest);
        let mut slots = above.map(|nest| nest.slots.clone()).unwrap_or_default();
        slots.push(slot);
        let mut waiting = above.map(|nest| nest.waiting.clone()).unwrap_or_default();
        waiting.extend(own);
        Some(Self {
            depth,
            allowed,
            waiting,
            slots,
            queue: CallQueue::default(),
            stop: above.map_or(cancel, |nest| &nest.stop).child_token(),
            above: within.map(|within| within.slice.clone()),
            made: above.map_or_else(Arc::default, |nest| Arc::clone(&nest.made)),
            most: above.map_or(most.calls, |nest| nest.most.min(most.calls)),
        })
    }

    /// Whether a guest sees this tool in its list.
    pub(crate) fn is_shown(&self, tool: &ToolName) -> bool {
        self.allowed.contains(tool) && !self.waiting.contains(tool)
    }

    /// Reserves so many calls; `Err` = the limit.
    pub(crate) fn reserve_calls(&self, calls: u64) -> Result<(), u64> {
        let made = self.made.fetch_add(calls, Ordering::Relaxed);
        if made.saturating_add(calls) > self.most { Err(self.most) } else { Ok(()) }
    }

    /// A budget for the nested calls of a guest with this much remaining fuel.
    pub(crate) fn slice_fuel(&self, fuel: u64) -> Budget {
        let caps = BudgetCaps::unlimited().with_cap(Meter::Fuel, fuel);
        match &self.above {
            Some(above) => above.new_child(BudgetLevel::Call, caps),
            None => Budget::new_root(BudgetLevel::Call, caps),
        }
    }
}

/// The other tools that a store's guest can call.
#[derive(Clone, Default)]
pub(crate) enum PeerReach {
    /// No tool: the right or the provider is missing.
    #[default]
    Nobody,
    /// No tool: the call has the largest nesting depth, which is the value.
    TooDeep(u64),
    /// The tools of this provider, within this nest.
    Open(Arc<dyn PeerPort>, Arc<NestBounds>),
}
