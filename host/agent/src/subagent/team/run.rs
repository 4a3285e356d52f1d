//! Runs the stages of a team, one after the other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use belljar_definition::{Diagnostic, TeamStage};
use belljar_overlay::SessionLayers;
use belljar_policy::{Budget, BudgetCaps, BudgetLevel, ExhaustedLimit, LimitsRequest, Meter};
use futures::StreamExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::outcome::{MemberOutcome, StageOutcome, TeamOutcome, stage_id};
use super::{ResolvedTeam, pass};
use crate::agent_loop::driver::run_agent;
use crate::agent_loop::ended::{not_started, panic_message};
use crate::agent_loop::job::RunState;
use crate::clock::RunId;
use crate::events::{EventEmitter, EventKind, EventSink};
use crate::host::Host;
use crate::limits::{MAX_CHILDREN_PER_RUN, MAX_KEPT_TASK_BYTES, PARALLEL_CHILDREN, truncate_str};
use crate::outcome::ChildOrigin;
use crate::outcome::{Outcome, RunError, RunStatus, Usage};
use crate::replay::journal::QueuedChild;
use crate::rights::model::model_of;
use crate::rights::resolve::ResolvedAgent;
use crate::run::{RunSpec, job_from_spec, look_for_skills};
use crate::subagent::progress::{BatchHeading, ChildBatch};
use crate::tools::approval::pause::PauseClock;

/// The input of a team's run.
#[derive(Debug, Clone)]
pub struct TeamSpec {
    /// The team with its agents.
    pub team: Arc<ResolvedTeam>,
    /// The task, which the first stage gets byte for byte.
    pub task: String,
    /// The model of all agents, by name or alias; `None` = each agent's own.
    pub model: Option<String>,
    /// The workspace.
    pub workspace: PathBuf,
    /// Limits of the whole run: the smaller of these and the team file's holds. Only steps, tokens, fuel and
    /// seconds; other limits apply to each agent.
    pub limits: LimitsRequest,
    /// The budget above the team: a chat session's.
    pub budget: Option<Budget>,
    /// The directory of the agents' overlays, as in [`RunSpec::layers`].
    pub layers: Option<SessionLayers>,
}

/// Runs a team to its end. Always returns an outcome.
///
/// `cancel` ends the run: once `run_team` returns, no model call, guest effect or receipt follows.
pub async fn run_team(
    host: &Host,
    spec: TeamSpec,
    events: EventSink,
    cancel: CancellationToken,
) -> TeamOutcome {
    let run = RunId::new(&*host.clock);
    run_team_as(host, spec, run, events, cancel).await
}

/// As [`run_team`], for a caller that has made the run's id.
pub async fn run_team_as(
    host: &Host,
    spec: TeamSpec,
    run: RunId,
    events: EventSink,
    cancel: CancellationToken,
) -> TeamOutcome {
    let path: Arc<str> = spec.team.id.slug.as_str().into();
    let host = &look_for_skills(host, Vec::new(), &cancel).await;
    let own = host.for_run(spec.team.stages.iter().flatten().map(|agent| &**agent));
    let events = EventEmitter::new(events, run.clone(), 0);
    let shared = Arc::new(RunState::new(own, run.clone(), events, spec.workspace.clone()));
    let started = host.clock.now();
    let mut run_of = TeamRun::new(&spec, Arc::clone(&shared), Arc::clone(&path), cancel);
    let ending = match run_of.check_ready() {
        Ok(()) => run_of.run_stages().await,
        Err(error) => (RunStatus::Failed, Some(error)),
    };
    // Any remaining holder of the budget stops at its next check.
    run_of.budget.cancel();
    let stages = run_of.done;
    let mut total = Usage::default();
    for agent in stages.iter().flat_map(|stage| &stage.agents) {
        total += agent.outcome.total;
    }
    let (status, error) = ending;
    shared.events.emit(&path, || EventKind::RunFinished {
        status,
        error: error.as_ref().map(ToString::to_string),
        usage: Usage::default(),
        total,
    });
    let said = stages.iter().rev().find(|stage| !stage.output.trim().is_empty());
    TeamOutcome {
        run,
        team: spec.team.id.to_string(),
        status,
        output: said.map(|stage| stage.output.clone()).unwrap_or_default(),
        error,
        planned: spec.team.definition.stages.len(),
        stages,
        total,
        started,
        ended: host.clock.now(),
    }
}

/// How a team ends: its status, with the error unless completed.
type Ending = (RunStatus, Option<RunError>);

/// A member of the present stage that is about to run.
struct MemberStart {
    stage: usize,
    spec: RunSpec,
    /// The spawn index; `None` = the run has reached its maximum of agents.
    index: Option<u32>,
    path: Arc<str>,
}

/// The state of a team's run.
struct TeamRun<'a> {
    spec: &'a TeamSpec,
    shared: Arc<RunState>,
    path: Arc<str>,
    cancel: CancellationToken,
    budget: Budget,
    /// The moment at which the team is stopped, with its time limit in seconds; `None` = unlimited.
    deadline: Option<(Instant, u64)>,
    /// Measures the time of waiting for a person, which does not count against the deadline.
    pause: Arc<PauseClock>,
    done: Vec<StageOutcome>,
}

impl<'a> TeamRun<'a> {
    /// Prepares a team's run: its budget and deadline are the smaller of the file's limits and the caller's.
    fn new(
        spec: &'a TeamSpec,
        shared: Arc<RunState>,
        path: Arc<str>,
        cancel: CancellationToken,
    ) -> Self {
        let (own, asked) = (&spec.team.definition.budget, &spec.limits);
        let least = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
        let mut caps = BudgetCaps::unlimited();
        let meters = [
            (Meter::Steps, least(own.steps, asked.steps)),
            (Meter::Tokens, least(own.tokens, asked.tokens)),
            (Meter::Fuel, least(own.fuel, asked.fuel)),
        ];
        for (meter, limit) in meters {
            if let Some(limit) = limit {
                caps = caps.with_cap(meter, limit);
            }
        }
        let budget = match &spec.budget {
            Some(above) => above.new_child(BudgetLevel::Team, caps),
            None => Budget::new_root(BudgetLevel::Team, caps),
        };
        let now = Instant::now();
        let deadline = least(own.timeout_seconds, asked.timeout_seconds).and_then(|seconds| {
            // A time limit beyond the clock's range counts as unlimited.
            Some((now.checked_add(Duration::from_secs(seconds))?, seconds))
        });
        Self {
            spec,
            shared,
            path,
            cancel,
            budget,
            deadline,
            pause: Arc::default(),
            done: Vec::new(),
        }
    }

    /// Checks that every member may run and has a model. If one cannot, no agent of the team starts.
    fn check_ready(&self) -> Result<(), RunError> {
        let team = &self.spec.team;
        if !team.problems.is_empty() {
            let lines = |of: fn(&Diagnostic) -> Option<String>| -> Vec<String> {
                let mut lines: Vec<String> = team.problems.iter().filter_map(of).collect();
                lines.dedup();
                lines
            };
            let why = lines(|problem| Some(problem.message.clone()));
            let hints = lines(|problem| problem.hint.clone());
            return Err(RunError::Setup {
                message: format!("team `{}` cannot run: {}", team.id, why.join("; ")),
                hint: (!hints.is_empty()).then(|| hints.join("\n")),
            });
        }
        for agent in team.stages.iter().flatten() {
            model_of(&self.shared.host, self.spec.model.as_deref(), agent, None)?;
        }
        Ok(())
    }

    /// Runs the stages in order, each with the output of the one before, until one fails or a limit is
    /// reached.
    async fn run_stages(&mut self) -> Ending {
        let team = Arc::clone(&self.spec.team);
        self.shared.events.emit(&self.path, || EventKind::TeamStarted {
            id: team.id.to_string(),
            stages: team.definition.stages.len(),
            workspace: self.shared.workspace.to_string_lossy().into_owned(),
        });
        let mut early = None;
        let mut input: Option<String> = None;
        let stages = team.definition.stages.iter().zip(&team.stages);
        for (number, (stage, agents)) in (1..).zip(stages) {
            if let Some(ending) = self.used_up() {
                return ending;
            }
            let done = self.run_stage(number, stage, agents, input.as_deref()).await;
            input = Some(pass::format_stage_input(&done.agents));
            let (status, silent) = (done.status, done.output.trim().is_empty());
            let error = first_error(&done, status);
            self.done.push(done);
            match status {
                RunStatus::Completed => {}
                // The stage has no output, so the next stage has nothing to work on.
                RunStatus::Partial if silent => return (RunStatus::Partial, error),
                RunStatus::Partial => early = early.or(error),
                RunStatus::Failed | RunStatus::Cancelled => return (status, error),
            }
        }
        match early {
            Some(error) => (RunStatus::Partial, Some(error)),
            None => (RunStatus::Completed, None),
        }
    }

    /// The team's ending if the run was cancelled, or if a budget or the time of the team is used up.
    fn used_up(&self) -> Option<Ending> {
        if self.cancel.is_cancelled() || self.budget.is_cancelled() {
            return Some((RunStatus::Cancelled, Some(RunError::Cancelled)));
        }
        let exhausted = |meter| -> Option<ExhaustedLimit> { self.budget.exhausted_limit(meter) };
        let budget = [Meter::Steps, Meter::Tokens, Meter::Fuel].into_iter().find_map(exhausted);
        if let Some(exhausted) = budget {
            return Some((RunStatus::Partial, Some(RunError::Budget { exhausted })));
        }
        let (left, seconds) = self.time_left()?;
        let late = left.is_zero();
        late.then_some((RunStatus::Partial, Some(RunError::WallTime { seconds })))
    }

    /// The time until the deadline, and the whole time limit in seconds; `None` = unlimited.
    fn time_left(&self) -> Option<(Duration, u64)> {
        let (deadline, seconds) = self.deadline?;
        let deadline = deadline.checked_add(self.pause.total_wait())?;
        Some((deadline.saturating_duration_since(Instant::now()), seconds))
    }

    /// Runs the members of a stage, at most [`PARALLEL_CHILDREN`] at a time. Their outcomes have the order
    /// of the file.
    async fn run_stage(
        &self,
        number: usize,
        stage: &TeamStage,
        agents: &[Arc<ResolvedAgent>],
        input: Option<&str>,
    ) -> StageOutcome {
        self.shared.events.emit(&self.path, || EventKind::TeamStageStarted {
            stage: number,
            of: self.spec.team.definition.stages.len(),
            agents: agents.iter().map(|agent| agent.id.slug.to_string()).collect(),
        });
        let mut started = Vec::new();
        for (member, agent) in stage.members.iter().zip(agents) {
            let task = pass::format_member_task(member, input, &self.spec.task);
            let spec = RunSpec {
                context: member.context.clone(),
                model: self.spec.model.clone(),
                budget: Some(self.budget.clone()),
                layers: self.spec.layers.clone(),
                ..RunSpec::new(Arc::clone(agent), task, self.spec.workspace.clone())
            };
            // Indices are assigned here, in the order of the file, so that they do not depend on timing.
            let index = self.shared.spawned.next_index(agent.id.slug.as_str());
            let path = format!("{}/{}#{}", self.path, agent.id.slug, index.unwrap_or(0));
            let shown = pass::task_shown(member, number, &self.spec.task);
            started.push((MemberStart { stage: number, spec, index, path: path.into() }, shown));
        }
        let children: Vec<_> =
            started.iter().map(|(start, shown)| (Arc::clone(&start.path), shown.clone())).collect();
        let (shared, id) = (&self.shared, stage_id(number));
        shared
            .persist_queued(
                || started.iter().map(|(start, _)| self.queued_member(start)).collect(),
                None,
            )
            .await;
        let batch = ChildBatch::start(
            shared,
            &self.path,
            &id,
            &children,
            BatchHeading::default(),
            PARALLEL_CHILDREN,
        );
        let running = started.into_iter().map(|(start, _)| self.run_member(start, &batch));
        let agents: Vec<MemberOutcome> =
            futures::stream::iter(running).buffered(PARALLEL_CHILDREN).collect().await;
        let done = StageOutcome {
            stage: number,
            parallel: stage.parallel,
            status: pass::stage_status(&agents, stage.join),
            output: pass::format_stage_output(&agents),
            agents,
        };
        self.shared.events.emit(&self.path, || EventKind::TeamStageFinished {
            stage: number,
            status: done.status,
            error: first_error(&done, done.status).map(|error| error.to_string()),
        });
        done
    }

    /// The record of a member that waits for a slot, in a subagent's form.
    fn queued_member(&self, start: &MemberStart) -> QueuedChild {
        let MemberStart { stage, spec, index, path } = start;
        QueuedChild {
            path: Arc::clone(path),
            parent: Arc::clone(&self.path),
            parent_agent: format!("team {}", self.spec.team.id),
            depth: 1,
            agent: spec.agent.id.to_string(),
            origin: ChildOrigin::Team,
            spawn_index: index.unwrap_or(0),
            call_id: stage_id(*stage),
            task: truncate_str(&spec.task, MAX_KEPT_TASK_BYTES).to_owned(),
            context: spec.context.clone(),
        }
    }

    /// Runs a member to its end; its time begins when the future is first polled.
    async fn run_member(&self, start: MemberStart, batch: &ChildBatch) -> MemberOutcome {
        let MemberStart { stage, mut spec, index, path } = start;
        batch.mark_running(&path);
        self.shared.persist_running(&path, spec.agent.id.slug.as_str()).await;
        spec.limits = self.remaining_limits();
        let task = truncate_str(&spec.task, MAX_KEPT_TASK_BYTES).to_owned();
        let context = spec.context.clone();
        let outcome = match index {
            Some(index) => self.run_spec(spec, index, Arc::clone(&path)).await,
            None => {
                let message =
                    format!("too many subagents in this run: at most {MAX_CHILDREN_PER_RUN}");
                let error = RunError::Setup { message, hint: None };
                not_started(&self.shared, &spec.agent, String::new(), RunStatus::Failed, error)
            }
        };
        let (path, spawn_index) = (path.to_string(), index.unwrap_or(0));
        let member = MemberOutcome { path, spawn_index, task, context, outcome };
        self.shared.persist_ended(&member.to_child_summary(stage), None).await;
        batch.mark_done(&member.path, &member.outcome, true);
        member
    }

    /// Runs an agent from its spec in a separate task; a panic there becomes a failed outcome.
    async fn run_spec(&self, spec: RunSpec, spawn_index: u32, path: Arc<str>) -> Outcome {
        let agent = Arc::clone(&spec.agent);
        let not_run = |agent, error| {
            not_started(&self.shared, agent, String::new(), RunStatus::Failed, error)
        };
        let mut job =
            match job_from_spec(&self.shared, spec, path, spawn_index, self.cancel.clone()) {
                Ok(job) => job,
                Err((agent, error)) => return not_run(&agent, error),
            };
        job.pause = PauseClock::for_child(&self.pause);
        let budget = job.budget.clone();
        // A separate task lets the members of a stage use all cores. The task ends if this future is dropped.
        let outcome = match AbortOnDropHandle::new(tokio::spawn(run_agent(job))).await {
            Ok(outcome) => outcome,
            Err(error) => {
                let message = match error.try_into_panic() {
                    Ok(panic) => panic_message(&*panic),
                    Err(error) => error.to_string(),
                };
                not_run(&agent, RunError::Internal { message })
            }
        };
        budget.cancel();
        outcome
    }

    /// The limits of a member starting now: at most the time left for the team.
    fn remaining_limits(&self) -> LimitsRequest {
        let left = self.time_left().map(|(left, _)| {
            // Seconds are rounded up, because the check between the stages is exact.
            left.as_secs() + u64::from(left.subsec_nanos() > 0)
        });
        LimitsRequest { timeout_seconds: left, ..self.spec.limits }
    }
}

/// The error for a stage's status: of the first member with the status, otherwise of the first member without
/// success.
fn first_error(stage: &StageOutcome, status: RunStatus) -> Option<RunError> {
    let error = |of: &MemberOutcome| of.outcome.error.clone();
    let same = stage.agents.iter().filter(|agent| agent.outcome.status == status);
    let other = stage.agents.iter().filter(|agent| agent.outcome.status != RunStatus::Completed);
    same.chain(other).find_map(error)
}
