//! Plans a subagent (its agent, rights and limits), and runs it when its parent has a free slot.
//!
//! A fresh child's rights are its definition ∩ its grants ∩ the parent's rights; a fork has the parent's
//! rights. In both cases, tools that the child's depth does not allow are removed. A child has its own jar
//! and history, and a budget below the parent's.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use belljar_model::{ChatRequest, ResolvedModel};
use belljar_policy::{
    AskedRights, DecisionSource, DenyCode, MountAccess, NarrowingNote, PolicyDenial, Rights,
    ShownText, SourceStance, SourceVote, ToolName,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::agent_loop::driver::run_agent;
use crate::agent_loop::ended::{not_started, panic_message};
use crate::agent_loop::job::{AgentJob, RunState};
use crate::limits::{MAX_CHILDREN_PER_RUN, MAX_KNOWN_FILES, MAX_KNOWN_FILES_OF_SMALL};
use crate::outcome::{Outcome, RunError, RunStatus};
use crate::prompt::frame;
use crate::prompt::known;
use crate::replay::log::child_address;
use crate::rights::folders::with_skill_folders;
use crate::rights::model::model_of;
use crate::rights::resolve::ResolvedAgent;
use crate::subagent::planned::PlannedSpawn;
use crate::subagent::progress::ChildBatch;
use crate::subagent::small::SmallProfile;
use crate::tools::approval::pause::PauseClock;
use crate::tools::builtin::arguments::{SpawnArguments, SpawnMode};
use crate::tools::builtin::tool::AgentDepth;
use crate::tools::call::PlacedCall;
use crate::tools::dispatch::{CallRefusal, RefusalReason};
use crate::tools::executor::CallExecutor;

/// The agent that runs a task for which the model names no agent.
const GENERAL_PURPOSE: &str = "general-purpose";

/// The slug of a fork in paths, for example `main/fork#0`.
const FORK: &str = "fork";

/// The name of a fork as an agent. No agent's slug contains a `:`.
const CALLED_FORK: &str = "agent:fork";

impl CallExecutor<'_> {
    /// Plans a child: returns the agent and the rights, or the refusal. Unknown, internal and blocked agents
    /// get the same refusal with the list of allowed names. `place` is the child's position in the call.
    pub(crate) fn plan_child(
        &self,
        call: PlacedCall<'_>,
        place: usize,
        asked: SpawnArguments,
    ) -> Result<PlannedSpawn, CallRefusal> {
        let job = self.job;
        let (agent, name) = match asked.mode {
            SpawnMode::Fork if job.depth.forked => {
                let text = "a fork cannot fork again; do the task yourself".to_owned();
                return Err(CallRefusal::malformed_call(text));
            }
            SpawnMode::Fork => (Arc::clone(&job.agent), FORK.to_owned()),
            SpawnMode::Fresh => {
                self.find_child_agent(asked.agent.as_deref().unwrap_or(GENERAL_PURPOSE))?
            }
        };
        let slug = agent.id.slug.as_str();
        let index = self.effects.spawn_index(self, call, place, slug).ok_or_else(|| {
            CallRefusal::malformed_call(format!(
                "too many subagents in this run: at most {MAX_CHILDREN_PER_RUN}"
            ))
        })?;
        let part = match (asked.mode, agent.id.slug.as_str()) {
            (SpawnMode::Fork, _) => FORK,
            (SpawnMode::Fresh, FORK) => CALLED_FORK,
            (SpawnMode::Fresh, slug) => slug,
        };
        let path = format!("{}/{part}#{index}", job.path).into();
        let address = child_address(&job.address, &call.call.id, place);
        let outlives = asked.background;
        Ok(PlannedSpawn { agent, path, address, place, spawn_index: index, asked, name, outlives })
    }

    /// Finds the agent that a model names for a subagent; returns it with the trimmed name, or the refusal.
    fn find_child_agent(&self, name: &str) -> Result<(Arc<ResolvedAgent>, String), CallRefusal> {
        let job = self.job;
        let found = self.delegates.find_agent(name).and_then(|id| {
            crate::rights::resolve::resolve_child(&job.shared.host, id, &job.shared.workspace).ok()
        });
        if let Some(agent) = found {
            return Ok((Arc::new(agent), name.trim().to_owned()));
        }
        let text =
            format!("no such agent: the available agents are {}", self.delegates.format_names());
        let facts =
            format!("agent `{}` is unknown, internal or blocked", ShownText::clip_line(name, 64));
        let by = self.delegates.refused_by(&job.shared.host, name);
        let denied = PolicyDenial::new(DenyCode::ToolNotAllowed, by, facts);
        Err(CallRefusal { text, reason: RefusalReason::Denied(denied) })
    }

    /// Makes the job of a planned child; if the child cannot start, returns its outcome. `request` is the
    /// parent's request, for a fork. The overlays of an isolated child are not copied yet.
    pub(crate) fn job_of(
        &self,
        planned: &PlannedSpawn,
        request: &Arc<ChatRequest>,
        cancel: CancellationToken,
    ) -> Result<AgentJob, Box<Outcome>> {
        let job = self.job;
        let PlannedSpawn { agent, path, address, spawn_index, asked, .. } = planned;
        let fork = asked.mode == SpawnMode::Fork;
        // A fork is the same agent one level down, so the file's own depth limit already applies to the tree.
        let own = agent.definition.subagents.as_ref().filter(|_| !fork);
        let depth = job.depth.for_child(fork).with_bound(own);
        let bar = |name: &ToolName| self.bar_reason(depth, name);
        job.shared.control.add_subagent(path, &cancel);
        let mut notes = Vec::new();
        let above_rights = self.rights_for_children();
        let rights = if fork {
            attenuate_rights(&above_rights, &AskedRights::default(), &agent.grants, &bar).0
        } else {
            let wanted = &agent.definition.asked;
            let (rights, narrowed) = attenuate_rights(&above_rights, wanted, &agent.grants, &bar);
            notes.extend(narrowed.iter().map(NarrowingNote::to_string));
            rights
        };
        let own = &agent.definition.asked;
        let rights = with_skill_folders(rights, &job.shared.host, own, Some(&job.rights));
        let layers = self.current_layers();
        let isolated = asked.isolation.is_some() || (!fork && agent.definition.isolated);
        let isolated = isolated && layers.is_some();
        let layers = layers.map(|of| if isolated { of.fork_layers(address) } else { of });
        if isolated {
            notes.extend(not_isolated(&rights));
        }
        let model = if fork { Ok(job.model.clone()) } else { self.model_of_child(agent) };
        let model = model.map_err(|error| {
            let status = RunStatus::Failed;
            Box::new(not_started(&job.shared, agent, String::new(), status, error))
        })?;
        notes.extend(model.notes.iter().cloned());
        let may_hand_on = depth.can_delegate();
        let small = SmallProfile::for_child(&job.shared.host.settings, agent, &model, fork);
        let rights = match &small {
            Some(small) => rights.with_smaller_limits(&small.limits),
            None => rights,
        };
        let mut part = |what: &str, text| match &small {
            Some(small) => small.cut_part(what, text, &mut notes),
            None => Cow::Borrowed(text),
        };
        let context = asked.context.as_deref().map(|text| part("context", text));
        let (context, task) = (context.as_deref(), part("task", &asked.task));
        if !fork {
            // This only warns the person; the instructions are cut when the request is made.
            part("instructions", &agent.definition.body);
        }
        let first = if fork {
            frame::fork_message(&task, context, may_hand_on)
        } else {
            frame::first_message(&task, context)
        };
        let known = if fork { None } else { self.known_to(&rights, small.as_ref()) };
        let (path, above) = (Arc::clone(path), Some(job.budget.clone()));
        let agent = Arc::clone(agent);
        Ok(AgentJob {
            address: Arc::clone(address),
            isolated,
            first,
            spawn_index: *spawn_index,
            // The child's own time begins when it gets a slot; until then the parent's deadline holds.
            deadline: job.deadline.checked_add(job.pause.total_wait()).unwrap_or(job.deadline),
            pause: PauseClock::for_child(&job.pause),
            cancel,
            depth,
            fork: fork.then(|| Arc::clone(request)),
            known,
            instructions: small.and_then(|small| small.instruction_limit()),
            notes,
            ..AgentJob::new(&job.shared, path, agent, rights, model, layers, above)
        })
    }

    /// The prompt block about files that the agent has read, limited to files readable with these rights of
    /// the child.
    fn known_to(&self, rights: &Rights, small: Option<&SmallProfile>) -> Option<String> {
        let tools = &self.job.shared.host.tools;
        let reads_files = |name: &ToolName| {
            let owner = tools.find_component(name.as_str());
            owner.is_some_and(|component| component.manifest.ask.mounts.is_some())
        };
        if !rights.offered_tools().any(|(name, _)| reads_files(name)) {
            return None;
        }
        let most = if small.is_some() { MAX_KNOWN_FILES_OF_SMALL } else { MAX_KNOWN_FILES };
        known::known_files_block(&self.ledger.lock_entries(), (&self.job.rights, rights), most)
    }

    /// Which source bars a tool at this depth, and why, whatever the child is granted; `None` = not barred.
    fn bar_reason(
        &self,
        depth: AgentDepth,
        name: &ToolName,
    ) -> Option<(DecisionSource, &'static str)> {
        let blocked = &self.job.shared.host.settings.subagents.blocked_tools;
        let allowed = self.delegates.allowed_tools();
        if !depth.admits_name(name) {
            Some((DecisionSource::Host, "it is not offered at this depth of a run"))
        } else if blocked.contains(name) {
            Some((DecisionSource::Grants, "`blocked_tools` keeps it from subagents"))
        } else if allowed.is_some_and(|allowed| !allowed.contains(name)) {
            Some((DecisionSource::Parent, "`allowed_tools` keeps it from this subagent"))
        } else {
            None
        }
    }

    fn model_of_child(&self, agent: &ResolvedAgent) -> Result<ResolvedModel, RunError> {
        model_of(&self.job.shared.host, None, agent, Some(&self.job.model.name))
    }
}

/// Runs a child once one of the parent's slots is free. Dropping the future ends the child.
pub(crate) async fn run_in_slot(
    job: AgentJob,
    slots: Arc<Semaphore>,
    batch: Arc<ChildBatch>,
) -> Outcome {
    let (shared, agent, path) =
        (Arc::clone(&job.shared), Arc::clone(&job.agent), Arc::clone(&job.path));
    let model = job.model.model.id().to_owned();
    let cancel = job.cancel.clone();
    let Some(Ok(slot)) = cancel.run_until_cancelled(slots.acquire_owned()).await else {
        let error = RunError::Cancelled;
        let outcome = not_started(&shared, &agent, model, RunStatus::Cancelled, error);
        batch.mark_done(&path, &outcome, false);
        return outcome;
    };
    batch.mark_running(&path);
    shared.persist_running(&path, agent.id.slug.as_str()).await;
    let outcome = run_now(job, &shared, &agent, model).await;
    drop(slot);
    batch.mark_done(&path, &outcome, true);
    outcome
}

/// Runs a child after a slot became free: sets the deadline, then runs the child in a separate task.
async fn run_now(
    mut job: AgentJob,
    shared: &RunState,
    agent: &ResolvedAgent,
    model: String,
) -> Outcome {
    let own = Duration::from_secs(job.rights.limits().timeout_seconds);
    // The parent's deadline ends the child too. It moves by the time in which the parent waits for a person.
    job.deadline = Instant::now().checked_add(own).unwrap_or(job.deadline);
    // A separate task lets children use all cores. The task ends if this future is dropped.
    match AbortOnDropHandle::new(tokio::spawn(run_agent(job))).await {
        Ok(outcome) => outcome,
        Err(error) => {
            let message = match error.try_into_panic() {
                Ok(panic) => panic_message(&*panic),
                Err(error) => error.to_string(),
            };
            not_started(shared, agent, model, RunStatus::Failed, RunError::Internal { message })
        }
    }
}

/// Warnings about mounts that are shared with the parent although the child is isolated.
fn not_isolated(rights: &Rights) -> impl Iterator<Item = String> + '_ {
    let direct = rights.mounts().iter().filter(|mount| mount.access == MountAccess::ReadWrite);
    direct.map(|mount| {
        let guest = &mount.guest;
        format!("`{guest}` is written directly: `isolation` copies only overlays")
    })
}

/// Computes a child's rights: at most the parent's, and without tools that its depth bars.
fn attenuate_rights(
    parent: &Rights,
    asked: &AskedRights,
    grants: &belljar_policy::Grants,
    bar: &dyn Fn(&ToolName) -> Option<(DecisionSource, &'static str)>,
) -> (Rights, Vec<NarrowingNote>) {
    // The tools that the child's file lists, otherwise all of the parent's: a list only limits.
    let wanted: Vec<ToolName> = match &asked.tools {
        Some(tools) => tools.iter().cloned().collect(),
        None => parent.offered_tools().map(|(name, _)| name.clone()).collect(),
    };
    let barred = |name: &ToolName| {
        let (source, why) = bar(name)?;
        let vote = SourceVote { source, stance: SourceStance::Refuses, why: why.to_owned() };
        Some((name.clone(), vote))
    };
    let bars: BTreeMap<ToolName, SourceVote> = wanted.iter().filter_map(barred).collect();
    let tools = wanted.into_iter().filter(|name| !bars.contains_key(name)).collect();
    let narrowed = AskedRights { tools: Some(tools), ..asked.clone() };
    let (rights, notes) = parent.attenuate_for_child(&narrowed, grants);
    (rights.with_explanation(asked, bars), notes)
}
