//! The job of one agent, and the shared state of a run.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belljar_definition::AgentId;
use belljar_model::{ChatRequest, Message, Resolved};
use belljar_policy::{Budget, Caps, Level, Limits, Meter, Rights, ToolName};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::agent_loop::ledger::Ledger;
use crate::agent_loop::machine::Ending;
use crate::billed::Bills;
use crate::brought::Brought;
use crate::clock::RunId;
use crate::events::{EventKind, Events};
use crate::host::Host;
use crate::layers::Layers;
use crate::limits::MAX_CHILDREN_PER_RUN;
use crate::outcome::RunError;
use crate::replay::log::Replay;
use crate::replay::rerun::Rerun;
use crate::rights::resolve::ResolvedAgent;
use crate::shorter::ShorterPast;
use crate::subagent::control::Control;
use crate::tools::approval::pause::Pause;
use crate::tools::builtin::tool::Depth;
use crate::tools::served::Served;

/// Ten years: further than any run, within every clock.
const FAR_FUTURE: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The caps of a single run's session: the agent's, plus its last step, which subagents cannot take.
pub fn caps_of_run(limits: &Limits) -> Caps {
    Caps::of(limits).with(Meter::Steps, limits.steps.saturating_add(1))
}

/// The shared state of all agents of a run.
pub(crate) struct Shared {
    pub(crate) host: Host,
    pub(crate) run: RunId,
    pub(crate) events: Events,
    pub(crate) workspace: PathBuf,
    pub(crate) spawned: SpawnCount,
    /// The journal of the run, from before its process died.
    pub(crate) replay: Arc<Replay>,
    /// The finished run to replay.
    pub(crate) rerun: Option<Arc<Rerun>>,
    /// Ends single subagents.
    pub(crate) control: Arc<Control>,
    /// The calls that a person has allowed for the whole run.
    pub(crate) allowed: Mutex<HashSet<(AgentId, ToolName)>>,
    /// The doings of MCP servers.
    pub(crate) served: Served,
}

impl Shared {
    /// Creates the state of a run without a journal to resume from.
    pub(crate) fn new(host: Host, run: RunId, events: Events, workspace: PathBuf) -> Self {
        Self {
            host,
            run,
            events,
            workspace,
            spawned: SpawnCount::default(),
            replay: Arc::default(),
            rerun: None,
            control: Arc::default(),
            allowed: Mutex::default(),
            served: Served::default(),
        }
    }
}

/// Counts the agents of one run.
#[derive(Debug, Default)]
pub(crate) struct SpawnCount(Mutex<(usize, HashMap<String, u32>)>);

impl SpawnCount {
    /// Continues the counts of the journal; the top agent has the first index of its slug.
    pub(crate) fn after(replay: &Replay, top: &str) -> Self {
        let (children, mut by_slug) = replay.spawned();
        let first = by_slug.entry(top.to_owned()).or_default();
        *first = (*first).max(1);
        Self(Mutex::new((children + 1, by_slug)))
    }

    /// The index of the next agent with that slug, from 0; `None` when the run has had
    /// [`MAX_CHILDREN_PER_RUN`] subagents.
    pub(crate) fn next(&self, slug: &str) -> Option<u32> {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (total, by_slug) = &mut *count;
        if *total > MAX_CHILDREN_PER_RUN {
            return None;
        }
        *total += 1;
        let next = by_slug.entry(slug.to_owned()).or_default();
        let index = *next;
        *next += 1;
        Some(index)
    }
}

/// One agent to be run.
pub(crate) struct Job {
    pub(crate) shared: Arc<Shared>,
    /// The agent's name after its parent's path, for example `main/scout#0`.
    pub(crate) path: Arc<str>,
    /// The agent's address in the journal of the run.
    pub(crate) address: Arc<str>,
    pub(crate) agent: Arc<ResolvedAgent>,
    /// The rights in this run: within the grants and the parent's rights.
    pub(crate) rights: Rights,
    pub(crate) model: Resolved,
    /// The agent's layers; `None` = its rights have no overlays.
    pub(crate) layers: Option<Layers>,
    /// The model's recent bills for this agent.
    pub(crate) bills: Arc<Bills>,
    /// True if the layers are separate, to be merged at the end.
    pub(crate) isolated: bool,
    /// True if a client makes the calls instead of a model.
    pub(crate) direct: bool,
    /// Earlier messages of the conversation.
    pub(crate) history: Vec<Message>,
    /// Shortens `history` for a model whose context is too small.
    pub(crate) shorter: Option<Arc<dyn ShorterPast>>,
    /// The first user message after `history`; blank = none.
    pub(crate) first: String,
    /// The caller's input; empty for a subagent.
    pub(crate) brought: Brought,
    pub(crate) spawn_index: u32,
    pub(crate) budget: Budget,
    pub(crate) deadline: Instant,
    pub(crate) cancel: CancellationToken,
    /// The time of waiting for a person, which does not count.
    pub(crate) pause: Arc<Pause>,
    /// The agent's depth in the tree of agents; 0 = started by a person.
    pub(crate) depth: Depth,
    /// The request that a fork continues.
    pub(crate) fork: Option<Arc<ChatRequest>>,
    /// The largest number of bytes of the agent's instructions in a request; `None` = all.
    pub(crate) instructions: Option<usize>,
    /// The block about the files that the agent's parent has read.
    pub(crate) known: Option<String>,
    /// Warnings for a person before the agent starts.
    pub(crate) notes: Vec<String>,
    /// The span of the request, for tracers.
    pub(crate) span: Span,
}

impl Job {
    /// The job of a top agent without a task, a bound in time or subagents. Without `layers` its overlays are
    /// only read, and without a budget `above` it has a session budget to itself.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        path: Arc<str>,
        agent: Arc<ResolvedAgent>,
        rights: Rights,
        model: Resolved,
        layers: Option<Layers>,
        above: Option<Budget>,
    ) -> Self {
        let rights = if layers.is_some() { rights } else { rights.without_overlays() };
        let limits = rights.limits();
        let above = above.unwrap_or_else(|| Budget::root(Level::Session, caps_of_run(limits)));
        Self {
            shared: Arc::clone(shared),
            address: Arc::clone(&path),
            path,
            budget: above.child(Level::Subagent, Caps::of(limits)),
            rights,
            bills: shared.host.billed.of(&agent.id, model.model.id()),
            agent,
            model,
            layers,
            isolated: false,
            direct: false,
            history: Vec::new(),
            shorter: None,
            first: String::new(),
            brought: Brought::default(),
            spawn_index: 0,
            deadline: Instant::now() + FAR_FUTURE,
            cancel: CancellationToken::new(),
            pause: Arc::default(),
            depth: Depth::top(0),
            fork: None,
            instructions: None,
            known: None,
            notes: Vec::new(),
            span: Span::current(),
        }
    }

    /// Sends an event about this agent.
    pub(crate) fn emit(&self, make: impl FnOnce() -> EventKind) {
        self.shared.events.emit(&self.path, make);
    }

    /// Warns the person now, and in the outcome.
    pub(crate) fn warn(&self, ledger: &Ledger, message: String) {
        self.emit(|| EventKind::Warning { message: message.clone() });
        ledger.entries().warnings.push(message);
    }

    /// The ending of an agent whose time is up.
    pub(crate) fn late(&self) -> Ending {
        let seconds = self.rights.limits().timeout_seconds;
        Ending::partial(RunError::WallTime { seconds })
    }
}
