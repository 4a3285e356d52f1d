//! One run: an agent, a task, and all subagents.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use belljar_catalogue::SkillFolders;
use belljar_definition::{AgentId, builtin_tools};
use belljar_model::{ChatMessage, ChatRequest};
use belljar_overlay::SessionLayers;
use belljar_policy::{Budget, LimitsRequest};
use belljar_work::{WorkKind, WorkStopped};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent_loop::driver::run_agent;
use crate::agent_loop::ended::not_started;
use crate::agent_loop::job::{AgentJob, RunState, SpawnCount};
use crate::agent_loop::ledger::Ledger;
use crate::agent_loop::library::match_message;
use crate::agent_loop::machine::{least_tokens, prompt_bytes};
use crate::agent_loop::prepare::prepare_agent;
use crate::brought::CallerInput;
use crate::called::{CalledCommand, find_called};
use crate::clock::RunId;
use crate::events::{EventEmitter, EventKind, EventSink};
use crate::finding::parts::RequestPart;
use crate::host::Host;
use crate::outcome::{Outcome, RunError, RunStatus};
use crate::prompt::commands;
use crate::prompt::frame::{self, first_message};
use crate::prompt::skills;
use crate::replay::log::ReplayLog;
use crate::replay::rerun::ReplayedRun;
use crate::rights::folders::{readable_folders, with_skill_folders};
use crate::rights::model::model_of;
use crate::rights::resolve::ResolvedAgent;
use crate::shorter::ShorterPast;
use crate::subagent::control::SubagentControl;
use crate::tools::builtin::tool::AgentDepth;
use crate::tools::served::ServerAccounts;

/// The input of a run.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// The agent with its grants and rights.
    pub agent: Arc<ResolvedAgent>,
    /// The task. Sent byte for byte.
    pub task: String,
    /// Facts for the agent beside the task; blank = none.
    pub context: Option<String>,
    /// The name or alias of the model; `None` = the definition's model, else `main`.
    pub model: Option<String>,
    /// The workspace: for records, and for the grants of subagents. Its mount is in the rights.
    pub workspace: PathBuf,
    /// Limits of the run, which lower the granted limits, for example from `--max-steps`.
    pub limits: LimitsRequest,
    /// True = a blocked agent runs with the rights it has.
    pub partial: bool,
    /// Earlier messages of the conversation, sent unchanged before the task.
    pub history: Vec<ChatMessage>,
    /// Shortens `history` if the model reports that the request exceeds its context; `None` = the run fails
    /// then.
    pub shorter: Option<Arc<dyn ShorterPast>>,
    /// The caller's tools, images, form of the answer and other input beside the text; not `history`.
    pub brought: CallerInput,
    /// The budget that bounds the run from above, for example of a team or of a chat session. `None` = the
    /// run has a session budget to itself.
    pub budget: Option<Budget>,
    /// The id of the run; `None` = a new id.
    pub run: Option<RunId>,
    /// The journal of the run from before its process died; `None` = a new run. The other fields must equal
    /// those of the interrupted run.
    pub replay: Option<Arc<ReplayLog>>,
    /// The finished run to replay; `None` = a normal run. `layers` must then be a separate directory, because
    /// agents of a replay write to overlays only. The other fields must equal those of the original run.
    pub rerun: Option<Arc<ReplayedRun>>,
    /// The number of the run's next event, above 0 if the run resumes.
    pub first_event: u64,
    /// Cancels single subagents of the run. Default: reachable by no one.
    pub control: Arc<SubagentControl>,
    /// Where the overlays of the run are stored. `None` = overlaid mounts are read-only.
    pub layers: Option<SessionLayers>,
}

impl RunSpec {
    /// A run of this task, with every other field at its default.
    pub fn new(agent: Arc<ResolvedAgent>, task: impl Into<String>, workspace: PathBuf) -> Self {
        Self {
            agent,
            task: task.into(),
            context: None,
            model: None,
            workspace,
            limits: LimitsRequest::default(),
            partial: false,
            history: Vec::new(),
            shorter: None,
            brought: CallerInput::default(),
            budget: None,
            run: None,
            replay: None,
            rerun: None,
            first_event: 0,
            control: Arc::default(),
            layers: None,
        }
    }
}

/// The exact first request to the model.
#[derive(Debug, Clone)]
pub struct RequestPreview {
    /// The model, as provider and name, for example `openai:gpt-x`.
    pub model: String,
    /// System blocks, messages and tools.
    pub request: ChatRequest,
    /// Warnings for a person, for example about narrowed rights or left-out tools.
    pub notes: Vec<String>,
    /// The parts of the request in its order, with what each costs.
    pub parts: Vec<RequestPart>,
    /// The note after the message with the library entries that fit the message's words; `None` = no entry
    /// fits, or everything is listed already.
    pub matched: Option<String>,
    least_tokens: u64,
}

impl RequestPreview {
    /// The least number of tokens that the step costs: from the model's bill for a similar step, otherwise
    /// from the request's size.
    pub fn least_tokens(&self) -> u64 {
        self.least_tokens
    }
}

/// Runs an agent to its end. Always returns an outcome, also after a fault of a model, a guest or the host
/// itself.
///
/// `cancel` ends the run: once `run` returns, no model call, guest effect or receipt follows. Dropping the
/// future has the same effect, without the wait and the outcome.
pub async fn run(
    host: &Host,
    spec: RunSpec,
    events: EventSink,
    cancel: CancellationToken,
) -> Outcome {
    let along = brought_along(host, spec, &cancel).await;
    let BroughtAlong { host, mut spec, command, problem } = along;
    let run = spec.run.take().unwrap_or_else(|| RunId::new(&*host.clock));
    let replay = spec.replay.take().unwrap_or_default();
    let slug = spec.agent.id.slug.as_str();
    let rerun = spec.rerun.take();
    let own = host.for_run([&*spec.agent]);
    let (host, spawned) = match &rerun {
        Some(rerun) => (rerun.restrict_host(own), rerun.spawn_count(slug)),
        None => (own, SpawnCount::from_replay(&replay, slug)),
    };
    let events = EventEmitter::new(events, run.clone(), spec.first_event);
    let shared = Arc::new(RunState {
        spawned,
        served: ServerAccounts::from_replay(&replay),
        replay: Arc::clone(&replay),
        rerun,
        control: Arc::clone(&spec.control),
        ..RunState::new(host, run, events, spec.workspace.clone())
    });
    let path: Arc<str> = spec.agent.id.slug.as_str().into();
    let outcome = match job_from_spec(&shared, spec, Arc::clone(&path), 0, cancel) {
        Ok(job) => {
            let mut job = AgentJob { command, ..job };
            job.notes.extend(problem);
            // Also when this future is dropped.
            let _ended = BudgetGuard(job.budget.clone());
            run_agent(job).await
        }
        Err((agent, error)) => {
            not_started(&shared, &agent, String::new(), RunStatus::Failed, error)
        }
    };
    shared.events.emit(&path, || EventKind::RunFinished {
        status: outcome.status,
        error: outcome.error.as_ref().map(ToString::to_string),
        usage: outcome.usage,
        total: outcome.total,
    });
    outcome
}

/// Builds the first request of a run without sending it. No model is called and no tool runs.
pub async fn preview_request(host: &Host, spec: RunSpec) -> Result<RequestPreview, RunError> {
    let cancel = CancellationToken::new();
    let along = brought_along(host, spec, &cancel).await;
    let BroughtAlong { host, spec, command: _, problem: _ } = along;
    let run = RunId::new(&*host.clock);
    let events = EventEmitter::new(EventSink::none(), run.clone(), 0);
    let shared = Arc::new(RunState::new(host, run, events, spec.workspace.clone()));
    let path: Arc<str> = spec.agent.id.slug.as_str().into();
    let stop = CancellationToken::new();
    let job = job_from_spec(&shared, spec, path, 0, stop.clone()).map_err(|(_, error)| error)?;
    let ledger = Ledger::default();
    ledger.lock_entries().warnings.extend(job.notes.iter().cloned());
    let (mut machine, means) = prepare_agent(&job, &ledger, &stop).await?;
    let matched = match_message(&job, &means.library).await;
    let parts = RequestPart::list_parts(machine.request(), &means.library, matched.as_deref());
    if let Some(text) = matched.clone() {
        machine.add_note(text);
    }
    let request = machine.request().clone();
    let prompt = prompt_bytes(&request);
    Ok(RequestPreview {
        model: job.model.model.id().to_owned(),
        least_tokens: least_tokens(prompt).max(job.bills.fewest_tokens(prompt)),
        request: Arc::unwrap_or_clone(request),
        notes: ledger.take_entries().warnings,
        parts,
        matched,
    })
}

/// Cancels a budget on drop: remaining holders stop at their next check.
struct BudgetGuard(Budget);

impl Drop for BudgetGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Checks a spec and makes the top agent's job. The run's time limit starts now.
pub(crate) fn job_from_spec(
    shared: &Arc<RunState>,
    spec: RunSpec,
    path: Arc<str>,
    spawn_index: u32,
    cancel: CancellationToken,
) -> Result<AgentJob, (Arc<ResolvedAgent>, RunError)> {
    let RunSpec { agent, task, context, model, limits, partial, history, .. } = spec;
    let RunSpec { shorter, brought, budget, layers, .. } = spec;
    if let Err(error) = agent.check_runnable(partial) {
        return Err((agent, error.into()));
    }
    let model = match model_of(&shared.host, model.as_deref(), &agent, None) {
        Ok(model) => model,
        Err(error) => {
            log_for_the_operator(&error);
            return Err((agent, error));
        }
    };
    let mut notes = agent.run_warnings();
    notes.extend(model.notes.iter().cloned());
    let rights = agent.rights.clone().with_smaller_limits(&limits);
    let rights = match &shared.rerun {
        Some(rerun) => rerun.restrict_rights(rights),
        None => rights,
    };
    let rights = with_skill_folders(rights, &shared.host, &agent.definition.asked, None);
    let depth = AgentDepth::for_root(shared.host.settings.subagents.max_depth)
        .with_bound(agent.definition.subagents.as_ref());
    let time = Duration::from_secs(rights.limits().timeout_seconds);
    let first = first_of(&task, context.as_deref(), &brought);
    let mut job = AgentJob::new(shared, path, agent, rights, model, layers, budget);
    // A time limit beyond the clock's range counts as unlimited.
    job.deadline = Instant::now().checked_add(time).unwrap_or(job.deadline);
    Ok(AgentJob { depth, spawn_index, history, shorter, first, brought, cancel, notes, ..job })
}

/// The first user message; blank if the caller sends only tool results.
fn first_of(task: &str, context: Option<&str>, brought: &CallerInput) -> String {
    let context = context.filter(|context| !context.trim().is_empty());
    let mut first = match context {
        Some(context) if task.trim().is_empty() => format!("Context:\n{context}"),
        context => first_message(task, context),
    };
    if let Some(schema) = &brought.form {
        let form = frame::request_form(schema);
        first = if first.is_empty() { form } else { format!("{first}\n\n{form}") };
    }
    first
}

/// Logs the hint of an error, which only the operator can follow. The caller of a service gets the message
/// without the hint.
fn log_for_the_operator(error: &RunError) {
    if let RunError::Setup { message, hint: Some(hint) } = error {
        tracing::warn!(target: "belljar::agent", "{message}: {hint}");
    }
}

const REFRESH_SKILLS: WorkKind =
    WorkKind { name: "looking for changed skills", time: Duration::from_secs(60) };

/// The time for the look at the folders of skills, after which those found so far are used.
const FOLDERS_TIME: Duration = Duration::from_secs(30);

/// A run with what the person called for it.
struct BroughtAlong {
    /// The host, with the folders of skills.
    host: Host,
    spec: RunSpec,
    command: Option<CalledCommand>,
    /// The reason why the command has no text; `None` = it has one, or there is no command.
    problem: Option<String>,
}

/// Looks for changed skills and their folders. The look reads directories, also a stranger's; if it does not end
/// in time, the known skills are used with the folders found by then. `called`: skills that a person called.
pub(crate) async fn look_for_skills(
    host: &Host,
    called: Vec<String>,
    cancel: &CancellationToken,
) -> Host {
    let (skills, commands) = (Arc::clone(&host.skills), Arc::clone(&host.commands));
    let owner = host.owner_of("skills");
    let look = belljar_work::run_job(&REFRESH_SKILLS, &owner, move |stop| {
        skills.refresh_until(stop)?;
        commands.refresh_until(stop)?;
        let catalog = skills.catalog();
        let called = called.iter().filter_map(|name| find_called(&catalog, name).ok());
        let called: Vec<AgentId> = called.map(|skill| skill.id.clone()).collect();
        Ok::<_, WorkStopped>(skills.find_folders(&called, &stop.with_part_timeout(FOLDERS_TIME)))
    });
    let found = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        found = look => found.ok().and_then(Result::ok),
    };
    let mut host = host.clone();
    let Some(SkillFolders { folders, problems }) = found else { return host };
    for problem in problems {
        tracing::info!(target: "belljar::agent", "{problem}");
    }
    host.skill_folders = folders.into();
    host
}

/// Adds the skills that a person called, and those that the task's triggers name if the agent may use skills, to
/// the run's context, and puts the text of a called command in the place of the task.
async fn brought_along(host: &Host, mut spec: RunSpec, cancel: &CancellationToken) -> BroughtAlong {
    let called = spec.brought.skills.clone();
    let host = look_for_skills(host, called, cancel).await;
    let asked = &spec.agent.definition.asked;
    let rights = with_skill_folders(spec.agent.rights.clone(), &host, asked, None);
    let folders = readable_folders(&host, &rights);
    let mut texts = Vec::new();
    for name in &spec.brought.skills {
        // A skill that was removed since the turn began is left out.
        let skill = skills::load_called_skill(&host.skills, name, &spec.task, &folders);
        texts.extend(skill.ok());
    }
    if rights.has_tool(builtin_tools::USE_SKILL) {
        texts.extend(skills::triggered_skills(&host.skills, &spec.task, &folders));
    }
    texts.extend(spec.context.take().filter(|context| !context.trim().is_empty()));
    spec.context = (!texts.is_empty()).then(|| texts.join("\n\n"));
    let mut along = BroughtAlong { host, spec, command: None, problem: None };
    let Some(call) = along.spec.brought.command.clone() else { return along };
    match commands::expand_call(&along.host.commands, &call) {
        Ok(command) => {
            let BroughtAlong { host, spec, .. } = &mut along;
            spec.task = command.written_text();
            let known = |model: &&String| host.models.resolve_model(model, None).is_ok();
            let model = command.terms.model.as_ref().filter(known).cloned();
            spec.model = spec.model.take().or(model);
            along.command = Some(command);
        }
        // INV-653: a command that was removed since the turn began leaves the line that the person typed, and no
        // more tools than it might have left.
        Err(why) => {
            along.command = Some(CalledCommand::without_text(&call.name));
            along.problem = Some(format!("the turn has no tools that act: {why}"));
        }
    }
    along
}
