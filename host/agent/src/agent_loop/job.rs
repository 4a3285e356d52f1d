//! The job of an agent, and the state that all agents of a run share.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belljar_definition::AgentId;
use belljar_model::{ChatMessage, ChatRequest, ResolvedModel};
use belljar_overlay::SessionLayers;
use belljar_policy::{Budget, BudgetCaps, BudgetLevel, Limits, Meter, Rights, ToolName};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::agent_loop::ledger::Ledger;
use crate::agent_loop::machine::AgentEnding;
use crate::billed::RecentBills;
use crate::brought::CallerInput;
use crate::called::CalledCommand;
use crate::clock::RunId;
use crate::events::{EventEmitter, EventKind};
use crate::host::Host;
use crate::limits::MAX_CHILDREN_PER_RUN;
use crate::outcome::RunError;
use crate::replay::log::ReplayLog;
use crate::replay::rerun::ReplayedRun;
use crate::rights::resolve::ResolvedAgent;
use crate::shorter::ShorterPast;
use crate::subagent::control::SubagentControl;
use crate::tools::approval::pause::PauseClock;
use crate::tools::builtin::tool::AgentDepth;
use crate::tools::served::ServerAccounts;

/// Ten years: later than any run, and within every clock's range.
const FAR_FUTURE: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The budget of a single run: the agent's limits, and one more step for the last answer, not usable by
/// subagents.
pub fn caps_of_run(limits: &Limits) -> BudgetCaps {
    BudgetCaps::for_agent(limits).with_cap(Meter::Steps, limits.steps.saturating_add(1))
}

/// The state that all agents of a run share.
pub(crate) struct RunState {
    pub(crate) host: Host,
    pub(crate) run: RunId,
    pub(crate) events: EventEmitter,
    pub(crate) workspace: PathBuf,
    pub(crate) spawned: SpawnCount,
    /// The journal from before the run's process died; empty for a new run.
    pub(crate) replay: Arc<ReplayLog>,
    /// The finished run that is replayed; `None` = a normal run.
    pub(crate) rerun: Option<Arc<ReplayedRun>>,
    /// Cancels single subagents from outside.
    pub(crate) control: Arc<SubagentControl>,
    /// The calls that a person has allowed for the whole run.
    pub(crate) allowed: Mutex<HashSet<(AgentId, ToolName)>>,
    /// What MCP servers have asked and used in the run.
    pub(crate) served: ServerAccounts,
}

impl RunState {
    /// Creates the state of a run without a journal to resume from.
    pub(crate) fn new(host: Host, run: RunId, events: EventEmitter, workspace: PathBuf) -> Self {
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
            served: ServerAccounts::default(),
        }
    }
}

/// The number of agents that a run has started, and of each slug.
#[derive(Debug, Default)]
pub(crate) struct SpawnCount(Mutex<(usize, HashMap<String, u32>)>);

impl SpawnCount {
    /// Continues the counts of an interrupted run. The top agent has the first index of its slug.
    pub(crate) fn from_replay(replay: &ReplayLog, top: &str) -> Self {
        let (children, mut by_slug) = replay.spawn_counts();
        let first = by_slug.entry(top.to_owned()).or_default();
        *first = (*first).max(1);
        Self(Mutex::new((children + 1, by_slug)))
    }

    /// The index of the next agent with that slug, from 0; `None` when the run has had
    /// [`MAX_CHILDREN_PER_RUN`] subagents.
    pub(crate) fn next_index(&self, slug: &str) -> Option<u32> {
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

/// An agent to be run: rights, model, budget, place in the tree and first message.
pub(crate) struct AgentJob {
    pub(crate) shared: Arc<RunState>,
    /// The agent's name after its parent's path, for example `main/scout#0`.
    pub(crate) path: Arc<str>,
    /// The agent's address in the journal of the run.
    pub(crate) address: Arc<str>,
    pub(crate) agent: Arc<ResolvedAgent>,
    /// The agent's rights in the run: within the grants and the parent's rights.
    pub(crate) rights: Rights,
    pub(crate) model: ResolvedModel,
    /// Where its overlays are stored; `None` = it has no overlays.
    pub(crate) layers: Option<SessionLayers>,
    /// What the model billed for the agent's latest steps.
    pub(crate) bills: Arc<RecentBills>,
    /// True if its overlays are separate copies, to be merged into the parent's at its end.
    pub(crate) isolated: bool,
    /// True if a client makes the calls instead of a model.
    pub(crate) direct: bool,
    /// Earlier messages of the conversation.
    pub(crate) history: Vec<ChatMessage>,
    /// Shortens `history` if the model's context is too small.
    pub(crate) shorter: Option<Arc<dyn ShorterPast>>,
    /// The first user message after `history`; blank = none.
    pub(crate) first: String,
    /// The command that the person called; its text is in `first`.
    pub(crate) command: Option<CalledCommand>,
    /// The caller's input; empty for a subagent.
    pub(crate) brought: CallerInput,
    pub(crate) spawn_index: u32,
    pub(crate) budget: Budget,
    pub(crate) deadline: Instant,
    pub(crate) cancel: CancellationToken,
    /// Measures the time of waiting for a person, which does not count against the deadline.
    pub(crate) pause: Arc<PauseClock>,
    /// How deep the agent is in the tree of agents; 0 = a person started it.
    pub(crate) depth: AgentDepth,
    /// The parent's request, if the agent is a fork that continues it.
    pub(crate) fork: Option<Arc<ChatRequest>>,
    /// Most bytes of its instructions in a request; `None` = all.
    pub(crate) instructions: Option<usize>,
    /// The prompt block about files that its parent has read.
    pub(crate) known: Option<String>,
    /// Warnings for a person that arose before it started.
    pub(crate) notes: Vec<String>,
    /// The tracer's span to which the agent's span belongs.
    pub(crate) span: Span,
}

impl AgentJob {
    /// A top agent's job without a task, a deadline or subagents. Without `layers` its overlays are only
    /// read; without a budget `above` it has a session budget to itself.
    pub(crate) fn new(
        shared: &Arc<RunState>,
        path: Arc<str>,
        agent: Arc<ResolvedAgent>,
        rights: Rights,
        model: ResolvedModel,
        layers: Option<SessionLayers>,
        above: Option<Budget>,
    ) -> Self {
        let rights = if layers.is_some() { rights } else { rights.without_overlays() };
        let limits = rights.limits();
        let above =
            above.unwrap_or_else(|| Budget::new_root(BudgetLevel::Session, caps_of_run(limits)));
        Self {
            shared: Arc::clone(shared),
            address: Arc::clone(&path),
            path,
            budget: above.new_child(BudgetLevel::Subagent, BudgetCaps::for_agent(limits)),
            rights,
            bills: shared.host.billed.bills_for_agent(&agent.id, model.model.id()),
            agent,
            model,
            layers,
            isolated: false,
            direct: false,
            history: Vec::new(),
            shorter: None,
            first: String::new(),
            command: None,
            brought: CallerInput::default(),
            spawn_index: 0,
            deadline: Instant::now() + FAR_FUTURE,
            cancel: CancellationToken::new(),
            pause: Arc::default(),
            depth: AgentDepth::for_root(0),
            fork: None,
            instructions: None,
            known: None,
            notes: Vec::new(),
            span: Span::current(),
        }
    }

    /// Sends an event about this agent.
    pub(crate) fn emit_event(&self, make: impl FnOnce() -> EventKind) {
        self.shared.events.emit(&self.path, make);
    }

    /// Sends the person a warning now, and also adds it to the outcome.
    pub(crate) fn record_warning(&self, ledger: &Ledger, message: String) {
        self.emit_event(|| EventKind::Warning { message: message.clone() });
        ledger.lock_entries().warnings.push(message);
    }

    /// The ending of an agent whose time is up.
    pub(crate) fn timeout_ending(&self) -> AgentEnding {
        let seconds = self.rights.limits().timeout_seconds;
        AgentEnding::partial(RunError::WallTime { seconds })
    }
}
