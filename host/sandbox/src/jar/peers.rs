//! Calls that a tool makes: what whoever owns a jar provides for them, and what the jar itself holds
//! them to, whoever provides it.
//!
//! While a call runs in which others are made, it has a [`Nest`]: nothing else runs beside it in the
//! jar, because a tool that may call others never overlaps, and the calls that it makes queue in the
//! nest and not in the jar. So none of them can wait for a call that waits for it. What would, a tool
//! of a component that is itself waiting, is refused.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use belljar_policy::{Budget, Caps, Level, Meter, ToolName};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::Hints;
use crate::jar::output::{Output, ToolErrorKind};
use crate::jar::queue::Queue;

/// The other tools of whoever a jar belongs to. A jar hands its guests' calls to this, and knows
/// nothing of who decides about them, who is asked, and what is recorded.
pub trait Peers: Send + Sync {
    /// The tools that can be called. The jar passes on those that its guest may call.
    fn list(&self) -> Vec<PeerTool>;

    /// Makes these calls, each as if it had been asked for by itself; gives one result for each, in
    /// their order. Those of the jar's own tools go through [`crate::Jar::call_with`], with `within`.
    /// Dropping the future gives them up.
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

/// The call in which others are made: where those queue, what they may cost, and what ends them.
#[derive(Clone)]
pub struct Within {
    pub(crate) nest: Arc<Nest>,
    /// The rest of the fuel of the call that makes them, less its reserve.
    pub(crate) slice: Budget,
}

impl Within {
    /// How deep the calls stand that are made here: 1 = in one that nobody nested.
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

    /// Takes fuel that a call made here has used which is not made again.
    pub fn bill(&self, fuel: u64) {
        // The call that makes it is told by what it has left.
        let _ = self.slice.bill(Meter::Fuel, fuel);
    }

    /// Ends what is under way when the call that makes them has ended.
    pub fn ended(&self) -> &CancellationToken {
        &self.nest.stop
    }
}

impl std::fmt::Debug for Within {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Within").field("depth", &self.nest.depth).finish_non_exhaustive()
    }
}

/// The bounds that a call sets to those which it makes.
pub(crate) struct Nest {
    depth: u64,
    /// The tools that its manifest asks for and its agent has.
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
    /// All calls below one that nobody nested.
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
    /// That of a call in this slot, whose component offers `own`; `None` = it stands too deep.
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

    /// Whether a guest is shown this one.
    pub(crate) fn shows(&self, tool: &ToolName) -> bool {
        self.allowed.contains(tool) && !self.waiting.contains(tool)
    }

    /// Takes room for so many calls; `Err` = the bound.
    pub(crate) fn take(&self, calls: u64) -> Result<(), u64> {
        let made = self.made.fetch_add(calls, Ordering::Relaxed);
        if made.saturating_add(calls) > self.most { Err(self.most) } else { Ok(()) }
    }

    /// A budget for the calls that a guest makes which has this much fuel left itself.
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
    /// Nobody: there is no such right, or nobody provides it.
    #[default]
    Nobody,
    /// Its call stands as deep as calls may.
    TooDeep(u64),
    /// These.
    Open(Arc<dyn Peers>, Arc<Nest>),
}
