//! Calls a tool makes of other tools: the interface the jar's owner implements, and the bounds that the jar
//! sets for any owner.
//!
//! A call that may make nested calls has [`NestBounds`]. No other call runs beside it in the jar, because a
//! tool that may call others never overlaps. Its nested calls queue in the nest instead of in the jar, so no
//! nested call waits for its outer call. A nested call to a component that itself waits for nested calls is
//! refused.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use belljar_policy::{Budget, BudgetCaps, BudgetLevel, Meter, ToolName};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::ToolHints;
use crate::jar::output::{ToolErrorKind, ToolOutput};
use crate::jar::queue::CallQueue;

/// The jar's owner as the provider of other tools. The jar passes its guests' nested calls on to this
/// interface; the owner decides about them, asks a person where needed, and records them.
pub trait PeerPort: Send + Sync {
    /// The tools guests can call. The jar shows a guest those of them that its manifest requests.
    fn list_tools(&self) -> Vec<PeerTool>;

    /// Makes nested calls, each like a call of its own, and returns a result for each in the same order.
    /// Calls the jar's own tools through [`crate::Jar::call_with`], with `within`. Dropping the future
    /// abandons the calls.
    fn call_tools(
        &self,
        calls: Vec<PeerCall>,
        within: NestedScope,
    ) -> BoxFuture<'static, Vec<PeerResult>>;
}

/// A tool guests can call.
#[derive(Debug, Clone)]
pub struct PeerTool {
    /// The name by which a guest calls the tool.
    pub name: String,
    /// The name of the tool itself, as its component declares it.
    pub tool: ToolName,
    /// The description of the tool, for a model.
    pub description: String,
    /// A JSON Schema of the arguments, as text.
    pub schema: String,
    /// Hints about the tool's effects, as its component declares them.
    pub hints: ToolHints,
}

/// A nested call as the guest wrote it, unchecked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerCall {
    /// The name of the tool to call.
    pub tool: String,
    /// The arguments as text, which should be a JSON object.
    pub arguments: String,
}

/// The result of a nested call, as the guest gets it.
pub type PeerResult = Result<ToolOutput, PeerError>;

/// Why a nested call has no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerError {
    /// The variant of the contract's error.
    pub kind: ToolErrorKind,
    /// The error text.
    pub message: String,
}

/// The scope of nested calls: their outer call's queue, budget and end.
#[derive(Clone)]
pub struct NestedScope {
    pub(crate) nest: Arc<NestBounds>,
    /// The part of the outer call's remaining fuel that nested calls may use.
    pub(crate) slice: Budget,
}

impl NestedScope {
    /// The nesting depth of the calls; 1 is directly below a model's call.
    pub fn nesting_depth(&self) -> u64 {
        self.nest.depth
    }

    /// Whether the manifest of the outer call's tool requests this tool.
    pub fn may_call(&self, tool: &str) -> bool {
        self.nest.allowed.contains(tool)
    }

    /// Whether the tool belongs to a component that waits for these nested calls, so that it cannot be
    /// called.
    pub fn is_waiting(&self, tool: &str) -> bool {
        self.nest.waiting.contains(tool)
    }

    /// Bills the fuel of a nested call whose recorded result is replayed instead of executing it again.
    pub fn bill_fuel(&self, fuel: u64) {
        // If this uses up the fuel, the outer call stops for that reason.
        let _ = self.slice.bill(Meter::Fuel, fuel);
    }

    /// A token cancelled when the outer call has ended.
    pub fn end_token(&self) -> &CancellationToken {
        &self.nest.stop
    }
}

impl std::fmt::Debug for NestedScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NestedScope").field("depth", &self.nest.depth).finish_non_exhaustive()
    }
}

/// The bounds of the nested calls of one outer call.
pub(crate) struct NestBounds {
    depth: u64,
    /// The tools the outer call's manifest requests and the agent has.
    allowed: BTreeSet<ToolName>,
    /// The tools of the components that wait for nested calls to end; calling one would wait for itself.
    waiting: BTreeSet<ToolName>,
    /// The jar's slots of the components that wait.
    pub(crate) slots: Vec<usize>,
    /// The queue in which the nested calls wait for each other.
    pub(crate) queue: CallQueue,
    pub(crate) stop: CancellationToken,
    /// If the outer call is nested itself, the fuel that its own outer call left for it.
    above: Option<Budget>,
    /// The number of all nested calls below a call of the model, and its limit in `most`.
    made: Arc<AtomicU64>,
    most: u64,
}

/// The limits of nesting, from the limits of the calling tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NestLimits {
    pub(crate) depth: u64,
    pub(crate) calls: u64,
}

impl NestBounds {
    /// Makes the bounds for a call in the slot `slot`, whose component offers the tools `own`. `None`: the
    /// call is nested too deep to make nested calls.
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

    /// Whether the guest sees this tool in its list of callable tools.
    pub(crate) fn is_shown(&self, tool: &ToolName) -> bool {
        self.allowed.contains(tool) && !self.waiting.contains(tool)
    }

    /// Counts `calls` further nested calls. `Err`: the limit, which they exceed.
    pub(crate) fn reserve_calls(&self, calls: u64) -> Result<(), u64> {
        let made = self.made.fetch_add(calls, Ordering::Relaxed);
        if made.saturating_add(calls) > self.most { Err(self.most) } else { Ok(()) }
    }

    /// Makes a budget for the nested calls of a guest that has `fuel` left for them.
    pub(crate) fn slice_fuel(&self, fuel: u64) -> Budget {
        let caps = BudgetCaps::unlimited().with_cap(Meter::Fuel, fuel);
        match &self.above {
            Some(above) => above.new_child(BudgetLevel::Call, caps),
            None => Budget::new_root(BudgetLevel::Call, caps),
        }
    }
}

/// The other tools the guest of a store can call.
#[derive(Clone, Default)]
pub(crate) enum PeerReach {
    /// No tool, because the guest has no right to call one, or the jar's owner provides none.
    #[default]
    Nobody,
    /// No tool, because the call is nested as deep as allowed: this many levels.
    TooDeep(u64),
    /// The tools of the jar's owner, within the bounds of the call.
    Open(Arc<dyn PeerPort>, Arc<NestBounds>),
}
