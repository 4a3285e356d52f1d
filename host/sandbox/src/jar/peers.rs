//! Calls made by a tool: the port for the jar's owner, and the jar's own bounds, for any owner.
//!
//! A call with nested calls has a [`Nest`]: nothing else runs beside it in the jar, because a tool that may
//! call others never overlaps, and nested calls queue in the nest and not in the jar. So no nested call waits
//! for its outer call. A call that would, to a component that is itself waiting, is refused.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use belljar_policy::{Budget, Caps, Level, Meter, ToolName};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::Hints;
use crate::jar::output::{Output, ToolErrorKind};
use crate::jar::queue::Queue;

/// The other tools of a jar's owner. A jar passes its guests' calls on to this port, which decides, asks and
/// records.
pub trait Peers: Send + Sync {
    /// The callable tools. The jar passes on those for its guest.
    fn list(&self) -> Vec<PeerTool>;

    /// Makes these calls, each like a separate one; returns a result for each, in order. Calls of the jar's
    /// own tools go through [`crate::Jar::call_with`], with `within`. Dropping the future gives the calls up.
    fn call(&self, calls: Vec<PeerCall>, within: Within) -> BoxFuture<'static, Vec<PeerResult>>;
}

/// A tool that can be called.
#[derive(Debug, Clone)]
pub struct PeerTool {
    /// The name to call it by.
    pub name: String,
    /// Its own name.
    pub tool: ToolName,
    /// Its description.
    pub description: String,
    /// A JSON Schema of its arguments, as text.
    pub schema: String,
    /// Promises about its effects.
    pub hints: Hints,
}

/// A call, in a guest's words: nothing of it is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerCall {
    /// The name of the tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: String,
}

/// The result of a call, as the guest is told it.
pub type PeerResult = Result<Output, PeerError>;

/// Why a call gave nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerError {
    /// The contract's variant.
    pub kind: ToolErrorKind,
    /// The text.
    pub message: String,
}

/// The outer call of nested calls: their queue, their budget, and their end.
#[derive(Clone)]
pub struct Within {
    pub(crate) nest: Arc<Nest>,
    /// The rest of the outer call's fuel, less its reserve.
    pub(crate) slice: Budget,
}

impl Within {
    /// The nesting depth of calls made here: 1 = directly below a model's call.
    pub fn depth(&self) -> u64 {
        self.nest.depth
    }

    /// Whether a tool may be called from here, by what the manifest of the calling tool asks for.
    pub fn may_call(&self, tool: &str) -> bool {
        self.nest.allowed.contains(tool)
    }

    /// Whether a tool belongs to a component that waits for the calls made here.
    pub fn waits(&self, tool: &str) -> bool {
        self.nest.waiting.contains(tool)
    }

    /// Takes the fuel of a call that is not repeated.
    pub fn bill(&self, fuel: u64) {
        // The outer call sees the exhaustion in its remaining fuel.
        let _ = self.slice.bill(Meter::Fuel, fuel);
    }

    /// Cancelled when the outer call has ended.
    pub fn ended(&self) -> &CancellationToken {
        &self.nest.stop
    }
}

impl std::fmt::Debug for Within {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Within").field("depth", &self.nest.depth).finish_non_exhaustive()
    }
}

/// The bounds of a call for its nested calls.
pub(crate) struct Nest {
    depth: u64,
    /// The tools requested by the manifest and granted to the agent.
    allowed: BTreeSet<ToolName>,
    /// The tools of the components that wait.
    waiting: BTreeSet<ToolName>,
    /// Theirs in the jar.
    pub(crate) slots: Vec<usize>,
    /// The calls made here wait for each other alone.
    pub(crate) queue: Queue,
    pub(crate) stop: CancellationToken,
    /// The fuel of the call above, where there is one.
    above: Option<Budget>,
    /// The number of calls below one model call.
    made: Arc<AtomicU64>,
    most: u64,
}

/// The bounds of nesting, out of the limits of who calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    pub(crate) depth: u64,
    pub(crate) calls: u64,
}

impl Nest {
    /// The nest of a call in this slot, whose component offers `own`; `None` = too deep.
    pub(crate) fn new(
        slot: usize,
        own: impl Iterator<Item = ToolName>,
        allowed: BTreeSet<ToolName>,
        within: Option<&Within>,
        most: Most,
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
            queue: Queue::default(),
            stop: above.map_or(cancel, |nest| &nest.stop).child_token(),
            above: within.map(|within| within.slice.clone()),
            made: above.map_or_else(Arc::default, |nest| Arc::clone(&nest.made)),
            most: above.map_or(most.calls, |nest| nest.most.min(most.calls)),
        })
    }

    /// Whether a guest is shown this tool.
    pub(crate) fn shows(&self, tool: &ToolName) -> bool {
        self.allowed.contains(tool) && !self.waiting.contains(tool)
    }

    /// Takes room for so many calls; `Err` = the bound.
    pub(crate) fn take(&self, calls: u64) -> Result<(), u64> {
        let made = self.made.fetch_add(calls, Ordering::Relaxed);
        if made.saturating_add(calls) > self.most { Err(self.most) } else { Ok(()) }
    }

    /// A budget for the nested calls of a guest with this much remaining fuel.
    pub(crate) fn slice(&self, fuel: u64) -> Budget {
        let caps = Caps::unlimited().with(Meter::Fuel, fuel);
        match &self.above {
            Some(above) => above.child(Level::Call, caps),
            None => Budget::root(Level::Call, caps),
        }
    }
}

/// The other tools that a store's guest finds.
#[derive(Clone, Default)]
pub(crate) enum PeerReach {
    /// Nobody: the right is missing, or no provider.
    #[default]
    Nobody,
    /// Its call stands as deep as calls may.
    TooDeep(u64),
    /// These.
    Open(Arc<dyn Peers>, Arc<Nest>),
}
