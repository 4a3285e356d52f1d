//! The tools of an agent for a client that makes the calls instead of a model. Decisions, hooks, questions,
//! jar, budget and receipts are the same.
//!
//! ```text
//! a client ──DirectCall──> DirectTools ──> CallExecutor, as for a call of a model ──> DirectResult
//! ```

mod callers;
mod no_model;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use belljar_model::{Resolved, ToolCall, ToolSpec};
use belljar_policy::{Budget, METERS, Meter, Permission, ToolName};
use belljar_sandbox::{Hints, Part};
use futures::FutureExt as _;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::callers::Callers;
use self::no_model::NoModel;
use crate::agent_loop::agent::Effects as _;
use crate::agent_loop::job::{Job, Shared};
use crate::agent_loop::ledger::Ledger;
use crate::agent_loop::live::Live;
use crate::agent_loop::machine::Loop;
use crate::agent_loop::prepare::prepare;
use crate::clock::RunId;
use crate::events::{EventSink, Events};
use crate::host::Host;
use crate::layers::Layers;
use crate::limits::CALL_CLOSE_LIMIT;
use crate::outcome::{Attachment, CallReceipt, RunError, Usage};
use crate::replay::journal::NoJournal;
use crate::rights::resolve::ResolvedAgent;
use crate::tools::answer::Answer;
use crate::tools::approval::asker::Asker;
use crate::tools::call::{Call, arguments};
use crate::tools::dispatch::{Decision, Refusal};
use crate::tools::executor::{CallExecutor, CallMeans};
use crate::tools::result;
use crate::tools::served::Served;

pub use self::callers::DirectProgress;

/// The share of a budget, in percent, after which a new jar is to be made: running calls have the rest.
const WORN_PERCENT: u64 = 50;

/// Whose tools, and where.
#[derive(Debug, Clone)]
pub struct DirectSpec {
    /// The agent, resolved against its grants.
    pub agent: Arc<ResolvedAgent>,
    /// The workspace, canonical.
    pub workspace: PathBuf,
    /// The budget above; `None` = no budget above.
    pub budget: Option<Budget>,
    /// The place of overlays. `None` = none: overlaid mounts become read-only.
    pub layers: Option<Layers>,
    /// The state of MCP servers from earlier jars of the session.
    pub served: Served,
}

/// One jar of an agent whose tools a client calls, with the decisions about the calls. Dropping this value
/// ends running calls.
pub struct DirectTools {
    job: Job,
    ledger: Arc<Ledger>,
    means: CallMeans,
    stop: CancellationToken,
    machine: Loop,
    callers: Arc<Callers>,
    tools: Vec<DirectTool>,
    calls: AtomicU64,
}

/// A tool that a client may call.
#[derive(Debug, Clone)]
pub struct DirectTool {
    /// The specification, as a model would read it.
    pub spec: ToolSpec,
    /// The tool's statements about its effects.
    pub hints: Hints,
}

/// One call of a client.
#[derive(Default)]
pub struct DirectCall {
    /// Unique among running calls; without a dot.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// A JSON object as text; blank = none.
    pub arguments: String,
    /// The receiver of the tool's progress reports.
    pub progress: Option<DirectProgress>,
    /// The person to ask if a grant or hook demands it; `None` = such calls are refused.
    pub asker: Option<Arc<dyn Asker>>,
    /// Cancels the call at once.
    pub cancel: CancellationToken,
    /// True if the tool, with nested tools, finds no state of earlier calls and leaves none.
    pub fresh: bool,
}

/// The result of one call.
#[derive(Debug)]
pub struct DirectResult {
    /// The parts, or the error text that a model would read. Foreign text.
    pub outcome: Result<Vec<Part>, String>,
    /// The files handed over.
    pub attachments: Vec<Attachment>,
    /// The call's receipt, followed by the receipts of nested calls.
    pub receipts: Vec<CallReceipt>,
    /// The tokens of models that wrote for MCP servers in the meantime.
    pub sampled: Usage,
    /// True if the client cancelled the call.
    pub cancelled: bool,
    /// True if no tool of this name was offered.
    pub unknown: bool,
}

impl DirectTools {
    /// Prepares the jar. No tool runs.
    ///
    /// # Errors
    ///
    /// When the agent is blocked, or a mount of the agent cannot be opened.
    pub async fn open(host: &Host, spec: DirectSpec) -> Result<Self, RunError> {
        spec.agent.runnable(false)?;
        let callers = Arc::<Callers>::default();
        let job = job(host, &callers, spec);
        let (ledger, stop) = (Arc::new(Ledger::keeping_forms()), job.cancel.clone());
        let (machine, means) = prepare(&job, &ledger, &stop).await?;
        let offer = job.shared.host.tools.offer(&job.shared.host.sandbox, &job.rights).await;
        let hints: BTreeMap<ToolName, Hints> =
            offer.jar_tools.iter().flat_map(|tool| tool.tools.clone()).collect();
        let tools = machine.request().tools.iter().map(|spec| DirectTool {
            hints: hints.get(spec.name.as_str()).copied().unwrap_or_default(),
            spec: spec.clone(),
        });
        let (tools, calls) = (tools.collect(), AtomicU64::new(0));
        Ok(Self { job, ledger, means, stop, machine, callers, tools, calls })
    }

    /// The tools, in the order of their names.
    pub fn tools(&self) -> &[DirectTool] {
        &self.tools
    }

    /// Returns whether the agent's rights include a tool, even one only for models.
    pub fn permits(&self, tool: &str) -> bool {
        self.job.rights.permission(tool) != Permission::Deny
    }

    /// Warnings for a person since the last time.
    pub fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.ledger.entries().warnings)
    }

    /// Returns whether later calls need a new jar: a budget is nearly used up, or a hook has ended this jar.
    pub fn is_worn(&self) -> bool {
        let budget = &self.job.budget;
        let worn = |meter: Meter| {
            let limit = budget.limit(meter);
            limit != u64::MAX && budget.spent(meter) > limit / 100 * WORN_PERCENT
        };
        // Memory is what is held now.
        let metered = |meter: &&Meter| **meter != Meter::Memory;
        METERS.iter().filter(metered).any(|meter| worn(*meter))
            || self.means.hooked.halted.get().is_some()
    }

    /// Makes one call. A call ends at its limits, or when cancelled.
    pub async fn call(&self, call: DirectCall) -> DirectResult {
        let step = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let DirectCall { id, tool, arguments: text, progress, asker, cancel, fresh } = call;
        let _known = self.callers.enter(&id, progress, asker);
        let unknown = !self.tools.iter().any(|known| known.spec.name == tool);
        let asked = ToolCall { id, name: tool, arguments: text };
        let dispatcher = self.machine.dispatcher();
        let (own, decision) = match dispatcher.translate(&asked) {
            Ok(own) => {
                let decision = dispatcher.decide_asked(own.as_ref().unwrap_or(&asked), 0, None);
                (own, decision)
            }
            Err(refusal) => (None, Decision::Refuse(refusal)),
        };
        let decision = match self.means.hooked.halted.get() {
            Some(reason) => {
                Decision::Refuse(Refusal::malformed(format!("a hook ended this: {reason}")))
            }
            None => decision,
        };
        let call = own.as_ref().unwrap_or(&asked);
        let call = Call { step, position: 0, call, nested: None, fresh };
        // INV-365: a server is notified of the call's end, and its work is waited for, for clients' calls and
        // tools' calls alike. Other calls end with their future.
        let reaches = |tool: &ToolName| {
            self.means.remote.has(tool) || self.means.jar.may_call_others(&self.job, tool)
        };
        let settles = matches!(&decision, Decision::Tool(it) if reaches(it.tool()));
        let stop = self.stop.child_token();
        let Self { job, ledger, means, .. } = self;
        let executor = CallExecutor { job, ledger, means, stop: &stop, effects: &Live };
        let calling = AssertUnwindSafe(Live.call(&executor, call, decision, &self.machine));
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
            executor.note(call, result::of_abandoned(&call.call.name, arguments(call.call)))
        });
        self.result(step, answer, (cancelled, unknown))
    }

    fn result(
        &self,
        step: u64,
        answer: Answer,
        (cancelled, unknown): (bool, bool),
    ) -> DirectResult {
        let (receipts, attachments, form) = self.ledger.take_step(step);
        let sampled = self.ledger.take_tokens();
        let outcome = match form.unwrap_or_default().tell(&answer) {
            Ok(output) => Ok(output.parts),
            Err(_) => Err(answer.content),
        };
        DirectResult { outcome, attachments, receipts, sampled, cancelled, unknown }
    }

    /// Ends running calls, waits until nothing is running, and closes the overlays. Returns the names of
    /// unfinished calls.
    pub async fn close(self) -> Vec<String> {
        self.stop.cancel();
        self.means.remote.close(&self.job).await;
        self.means.jar.close(&self.job, &self.ledger).await;
        if let Some(layers) = self.job.layers.clone() {
            layers.close_for(&self.job.shared.host).await;
        }
        std::mem::take(&mut self.ledger.entries().unfinished)
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

/// The job of calls without a model.
fn job(host: &Host, callers: &Arc<Callers>, spec: DirectSpec) -> Job {
    let DirectSpec { agent, workspace, budget, layers, served } = spec;
    let run = RunId::new(&*host.clock);
    let mut host = host.for_run([&*agent]);
    host.journal = Arc::new(NoJournal);
    host.asker = Arc::clone(callers) as Arc<dyn Asker>;
    let listening = Arc::clone(callers);
    let events = EventSink::to(move |event| listening.listen(event));
    let events = Events::new(events, run.clone(), 0);
    let path: Arc<str> = agent.id.slug.as_str().into();
    let (rights, notes) = (agent.rights.clone(), agent.notes());
    let model = Resolved {
        model: Arc::new(NoModel),
        name: String::new(),
        context_tokens: None,
        small: false,
        notes: Vec::new(),
    };
    let shared = Arc::new(Shared { served, ..Shared::new(host, run, events, workspace) });
    // It has no bound in time: each call has its own.
    let job = Job::new(&shared, path, agent, rights, model, layers, budget);
    Job { notes, direct: true, ..job }
}
