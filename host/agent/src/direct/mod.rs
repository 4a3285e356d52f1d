//! The tools of an agent for a client that makes the calls itself, without a model: for example an MCP
//! client. Decisions, hooks, questions, jar, budget and receipts are the same as for a model's calls.

mod callers;
mod no_model;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use belljar_model::{ResolvedModel, ToolCall, ToolSpec};
use belljar_overlay::SessionLayers;
use belljar_policy::{Budget, CallPermission, METERS, Meter, ToolName};
use belljar_sandbox::{OutputPart, ToolHints};
use futures::FutureExt as _;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::callers::RunningCalls;
use self::no_model::NoModel;
use crate::agent_loop::agent::AgentEffects as _;
use crate::agent_loop::job::{AgentJob, RunState};
use crate::agent_loop::ledger::Ledger;
use crate::agent_loop::live::LiveEffects;
use crate::agent_loop::machine::AgentLoop;
use crate::agent_loop::prepare::prepare_agent;
use crate::clock::RunId;
use crate::events::{EventEmitter, EventSink};
use crate::host::Host;
use crate::limits::CALL_CLOSE_LIMIT;
use crate::outcome::{Attachment, CallReceipt, RunError, Usage};
use crate::replay::journal::NoJournal;
use crate::rights::resolve::ResolvedAgent;
use crate::tools::answer::CallAnswer;
use crate::tools::approval::asker::Asker;
use crate::tools::call::{PlacedCall, arguments};
use crate::tools::dispatch::{CallDecision, CallRefusal};
use crate::tools::executor::{CallExecutor, CallMeans};
use crate::tools::result;
use crate::tools::served::ServerAccounts;

pub use self::callers::DirectProgress;

/// The share of a budget, in percent, from which a jar counts as worn, so running calls have the rest.
const WORN_PERCENT: u64 = 50;

/// The agent whose tools a client calls, with its workspace, budget and overlays.
#[derive(Debug, Clone)]
pub struct DirectSpec {
    /// The agent, resolved against its grants.
    pub agent: Arc<ResolvedAgent>,
    /// The workspace, canonical.
    pub workspace: PathBuf,
    /// The budget above; `None` = no budget above.
    pub budget: Option<Budget>,
    /// The place of overlays. `None` = none: overlaid mounts become read-only.
    pub layers: Option<SessionLayers>,
    /// The state of MCP servers from earlier jars of the session.
    pub served: ServerAccounts,
}

/// One jar of an agent whose tools a client calls. Dropping the value ends running calls.
pub struct DirectTools {
    job: AgentJob,
    ledger: Arc<Ledger>,
    means: CallMeans,
    stop: CancellationToken,
    machine: AgentLoop,
    callers: Arc<RunningCalls>,
    tools: Vec<DirectTool>,
    calls: AtomicU64,
}

/// A tool that a client may call.
#[derive(Debug, Clone)]
pub struct DirectTool {
    /// The specification, as a model would read it.
    pub spec: ToolSpec,
    /// The statements of the tool about effects, for example read-only.
    pub hints: ToolHints,
}

/// One call from a client.
#[derive(Default)]
pub struct DirectCall {
    /// The id, unique among running calls. It must not contain a dot, because `call-1.2` is the id of the
    /// second call nested in `call-1`.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The arguments: a JSON object as text; blank = an empty object.
    pub arguments: String,
    /// The receiver of the tool's progress reports.
    pub progress: Option<DirectProgress>,
    /// The person to ask if a grant or hook demands it; `None` = such calls are refused.
    pub asker: Option<Arc<dyn Asker>>,
    /// Cancels the call at once.
    pub cancel: CancellationToken,
    /// True if the tool, and tools that it calls, must find no state of earlier calls and leave none.
    pub fresh: bool,
}

/// The result of one call.
#[derive(Debug)]
pub struct DirectResult {
    /// The parts of the tool's answer; as an error, the text that a model would read. Foreign text.
    pub outcome: Result<Vec<OutputPart>, String>,
    /// The files that the call returned, for example `report.pdf`.
    pub attachments: Vec<Attachment>,
    /// The call's receipt, followed by the receipts of nested calls.
    pub receipts: Vec<CallReceipt>,
    /// The tokens of texts that models wrote for MCP servers since the result before.
    pub sampled: Usage,
    /// True if the client cancelled the call.
    pub cancelled: bool,
    /// True if the client may call no tool of this name.
    pub unknown: bool,
}

impl DirectTools {
    /// Prepares the jar. No tool runs.
    ///
    /// # Errors
    ///
    /// When the agent is blocked, or a mount of the agent cannot be opened.
    pub async fn open(host: &Host, spec: DirectSpec) -> Result<Self, RunError> {
        spec.agent.check_runnable(false)?;
        let callers = Arc::<RunningCalls>::default();
        let job = create_job(host, &callers, spec);
        let (ledger, stop) = (Arc::new(Ledger::keeping_forms()), job.cancel.clone());
        let (machine, means) = prepare_agent(&job, &ledger, &stop).await?;
        let offer = job.shared.host.tools.offer_tools(&job.shared.host.sandbox, &job.rights).await;
        let hints: BTreeMap<ToolName, ToolHints> =
            offer.jar_tools.iter().flat_map(|tool| tool.tools.clone()).collect();
        let tools = machine.request().tools.iter().map(|spec| DirectTool {
            hints: hints.get(spec.name.as_str()).copied().unwrap_or_default(),
            spec: spec.clone(),
        });
        let (tools, calls) = (tools.collect(), AtomicU64::new(0));
        Ok(Self { job, ledger, means, stop, machine, callers, tools, calls })
    }

    /// The tools that the client may call, in the order of their names.
    pub fn tools(&self) -> &[DirectTool] {
        &self.tools
    }

    /// Returns whether the agent's rights include a tool, even if only a model may call it.
    pub fn permits_tool(&self, tool: &str) -> bool {
        self.job.rights.tool_permission(tool) != CallPermission::Deny
    }

    /// Takes the warnings for a person that arose since the last call of this function.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.ledger.lock_entries().warnings)
    }

    /// Returns whether later calls need a new jar, because a budget is nearly used up or a hook has ended the
    /// agent.
    pub fn is_worn(&self) -> bool {
        let budget = &self.job.budget;
        let worn = |meter: Meter| {
            let limit = budget.limit(meter);
            limit != u64::MAX && budget.spent_amount(meter) > limit / 100 * WORN_PERCENT
        };
        // Memory is not a total: the number is what is held now.
        let metered = |meter: &&Meter| **meter != Meter::Memory;
        METERS.iter().filter(metered).any(|meter| worn(*meter))
            || self.means.hooked.halted.get().is_some()
    }

    /// Makes a call. The call ends at the limits of the tool, or when the client cancels.
    pub async fn call_tool(&self, call: DirectCall) -> DirectResult {
        let step = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let DirectCall { id, tool, arguments: text, progress, asker, cancel, fresh } = call;
        let _known = self.callers.enter_call(&id, progress, asker);
        let unknown = !self.tools.iter().any(|known| known.spec.name == tool);
        let asked = ToolCall { id, name: tool, arguments: text };
        let dispatcher = self.machine.dispatcher();
        let (own, decision) = match dispatcher.translate_call(&asked) {
            Ok(own) => {
                let decision = dispatcher.decide_asked(own.as_ref().unwrap_or(&asked), 0, None);
                (own, decision)
            }
            Err(refusal) => (None, CallDecision::Refuse(refusal)),
        };
        let decision = match self.means.hooked.halted.get() {
            Some(reason) => CallDecision::Refuse(CallRefusal::malformed_call(format!(
                "a hook ended this: {}",
                reason.to_model_text()
            ))),
            None => decision,
        };
        let call = own.as_ref().unwrap_or(&asked);
        let call = PlacedCall { step, position: 0, call, nested: None, fresh };
        // INV-365: when a client cancels a call that reaches an MCP server, directly or through another tool,
        // the server is notified and awaited. Other calls end when their future is dropped.
        let reaches = |tool: &ToolName| {
            self.means.remote.has_tool(tool) || self.means.jar.may_call_others(&self.job, tool)
        };
        let settles = matches!(&decision, CallDecision::Tool(it) if reaches(it.tool()));
        let stop = self.stop.child_token();
        let Self { job, ledger, means, .. } = self;
        let executor = CallExecutor { job, ledger, means, stop: &stop, effects: &LiveEffects };
        let calling =
            AssertUnwindSafe(LiveEffects.execute_call(&executor, call, decision, &self.machine));
        let mut calling = Box::pin(calling.catch_unwind());
        let (answer, cancelled) = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                stop.cancel();
                let answer = match settles {
                    true => timeout(CALL_CLOSE_LIMIT, &mut calling).await.ok(),
                    false => None,
                };
                (answer.and_then(Result::ok), true)
            }
            answer = &mut calling => (answer.ok(), false),
        };
        drop(calling);
        let answer = answer.unwrap_or_else(|| {
            executor.record_executed(
                call,
                result::from_abandoned(&call.call.name, arguments(call.call)),
            )
        });
        self.build_result(step, answer, (cancelled, unknown))
    }

    /// Collects the ledger's records of a call into the client's result.
    fn build_result(
        &self,
        step: u64,
        answer: CallAnswer,
        (cancelled, unknown): (bool, bool),
    ) -> DirectResult {
        let (receipts, attachments, form) = self.ledger.take_step(step);
        let sampled = self.ledger.take_tokens();
        let outcome = match form.unwrap_or_default().to_peer_result(&answer) {
            Ok(output) => Ok(output.parts),
            Err(_) => Err(answer.content),
        };
        DirectResult { outcome, attachments, receipts, sampled, cancelled, unknown }
    }

    /// Ends running calls, waits until none is running, and closes the overlays. Returns the names of calls
    /// that could not be ended.
    pub async fn close(self) -> Vec<String> {
        self.stop.cancel();
        self.means.remote.close_sessions(&self.job).await;
        self.means.jar.close_jar(&self.job, &self.ledger).await;
        if let Some(layers) = self.job.layers.clone() {
            layers.close_for(&self.job.shared.host.owner_of_overlays()).await;
        }
        std::mem::take(&mut self.ledger.lock_entries().unfinished)
    }
}

impl Drop for DirectTools {
    fn drop(&mut self) {
        self.stop.cancel();
        self.job.budget.cancel();
    }
}

impl std::fmt::Debug for DirectTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectTools").field("agent", &self.job.agent.id).finish_non_exhaustive()
    }
}

/// The job of an agent without a model, whose calls a client makes.
fn create_job(host: &Host, callers: &Arc<RunningCalls>, spec: DirectSpec) -> AgentJob {
    let DirectSpec { agent, workspace, budget, layers, served } = spec;
    let run = RunId::new(&*host.clock);
    let mut host = host.for_run([&*agent]);
    host.journal = Arc::new(NoJournal);
    host.asker = Arc::clone(callers) as Arc<dyn Asker>;
    let listening = Arc::clone(callers);
    let events = EventSink::with_listener(move |event| listening.forward_event(event));
    let events = EventEmitter::new(events, run.clone(), 0);
    let path: Arc<str> = agent.id.slug.as_str().into();
    let (rights, notes) = (agent.rights.clone(), agent.run_warnings());
    let model = ResolvedModel {
        model: Arc::new(NoModel),
        name: String::new(),
        context_tokens: None,
        small: false,
        notes: Vec::new(),
    };
    let shared = Arc::new(RunState { served, ..RunState::new(host, run, events, workspace) });
    // The job has no deadline; each call has its own.
    let job = AgentJob::new(&shared, path, agent, rights, model, layers, budget);
    AgentJob { notes, direct: true, ..job }
}
