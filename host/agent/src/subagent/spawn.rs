//! Executes the calls that start subagents, wait for background subagents or cancel them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use belljar_model::ChatRequest;
use belljar_overlay::{CopyEnding, SessionLayers};
use belljar_policy::{ShownText, ToolPermit};
use belljar_work::WorkKind;
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::agent_loop::job::AgentJob;
use crate::events::EventKind;
use crate::limits::{MAX_BATCH_CONCLUSIONS, MAX_CONCLUSION_BYTES, MIN_CONCLUSION_BYTES};
use crate::outcome::{ChildSummary, Outcome, RunStatus};
use crate::prompt::frame;
use crate::replay::journal::QueuedChild;
use crate::replay::log::{PlannedChild, StepEntry, StepKind};
use crate::replay::persist::address_of;
use crate::subagent::background::{ChildStanding, EndedChild, still_running};
use crate::subagent::plan::run_in_slot;
use crate::subagent::planned::{PlannedSpawn, StartingChild};
use crate::subagent::progress::{BatchHeading, ChildBatch};
use crate::tools::answer::CallAnswer;
use crate::tools::builtin::arguments::{BatchArguments, SpawnArguments};
use crate::tools::call::PlacedCall;
use crate::tools::executor::CallExecutor;
use crate::trace;

/// How long a call of `spawn_agent` waits for its child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChildWait {
    UntilItEnds,
    /// At most this long; after that the child continues in the background.
    AtMost(Duration),
    /// Not at all: the child begins in the background.
    Not,
}

/// What the list of background subagents shows about a child.
struct BackgroundEntrant {
    name: String,
    task: String,
}

/// The plan for a child of a batch.
enum ChildStart {
    Ready(PlannedSpawn),
    /// The child does not start: the requested agent's name, and the reason.
    Refused(String, String),
}

impl CallExecutor<'_> {
    /// Starts a child and waits for the end. The child goes to the background if the call asks for the
    /// background, or if the grant's longest wait passes first.
    pub(crate) async fn spawn_child(
        &self,
        call: PlacedCall<'_>,
        permit: ToolPermit,
        asked: SpawnArguments,
        request: &Arc<ChatRequest>,
    ) -> CallAnswer {
        // Everything up to the first wait happens in the order of the calls, so spawn indices
        // do not depend on timing.
        let mut planned = match self.plan_child(call, 0, asked) {
            Ok(planned) => planned,
            Err(refusal) => return self.refuse_begun(call, refusal),
        };
        let wait = self.wait_for_child(call, &planned);
        planned.outlives = wait != ChildWait::UntilItEnds;
        if let Err(refusal) = self.effects.permit_spawn(self, call, permit).await {
            return self.refuse_begun(call, refusal);
        }
        let heading = BatchHeading { title: None, background: wait == ChildWait::Not };
        let batch = self.effects.announce_children(self, call, &[&planned], heading).await;
        let answer = match wait {
            ChildWait::UntilItEnds => {
                let job = self.create_child_job(&planned, request, self.stop.child_token()).await;
                self.run_child(call, planned, job, batch, MAX_CONCLUSION_BYTES).await
            }
            ChildWait::AtMost(wait) => self.run_or_leave(call, planned, request, batch, wait).await,
            ChildWait::Not => self.spawn_background(call, planned, request, batch).await,
        };
        trace::record_delegation(&answer);
        answer
    }

    /// Starts the children of one `delegate_parallel` call and waits for all of them. A child that cannot
    /// start does not stop the others.
    pub(crate) async fn spawn_batch(
        &self,
        call: PlacedCall<'_>,
        permit: ToolPermit,
        BatchArguments { title, tasks: asked }: BatchArguments,
        request: &Arc<ChatRequest>,
    ) -> CallAnswer {
        let mut starts = Vec::with_capacity(asked.len());
        let mut first = None;
        for (place, asked) in asked.into_iter().enumerate() {
            let agent = asked.agent.clone();
            starts.push(match self.plan_child(call, place, asked) {
                Ok(planned) => ChildStart::Ready(planned),
                Err(refusal) => {
                    let message = refusal.child_warning(agent.as_deref());
                    self.job.emit_event(|| EventKind::Warning { message });
                    first.get_or_insert_with(|| refusal.clone());
                    ChildStart::Refused(agent.unwrap_or_default(), refusal.text)
                }
            });
        }
        match first {
            Some(refusal) if !starts.iter().any(|start| matches!(start, ChildStart::Ready(_))) => {
                self.refuse_begun(call, refusal)
            }
            Some(_) | None => {
                self.run_parallel(call, permit, title.as_deref(), starts, request).await
            }
        }
    }

    /// Runs the children of a batch side by side once permitted, and joins their conclusions in the order of
    /// the tasks.
    async fn run_parallel(
        &self,
        call: PlacedCall<'_>,
        permit: ToolPermit,
        title: Option<&str>,
        starts: Vec<ChildStart>,
        request: &Arc<ChatRequest>,
    ) -> CallAnswer {
        if let Err(refusal) = self.effects.permit_spawn(self, call, permit).await {
            return self.refuse_begun(call, refusal);
        }
        let ready: Vec<&PlannedSpawn> = starts
            .iter()
            .filter_map(|start| match start {
                ChildStart::Ready(planned) => Some(planned),
                ChildStart::Refused(..) => None,
            })
            .collect();
        let heading = BatchHeading { title, background: false };
        let batch = self.effects.announce_children(self, call, &ready, heading).await;
        let each = (MAX_BATCH_CONCLUSIONS / starts.len().max(1))
            .clamp(MIN_CONCLUSION_BYTES, MAX_CONCLUSION_BYTES);
        // All overlay copies show the parent's files as they are now, because no child runs before the last
        // copy is made.
        let mut begun = Vec::with_capacity(starts.len());
        for start in starts {
            begun.push(match start {
                ChildStart::Refused(name, why) => Err((name, why)),
                ChildStart::Ready(planned) => {
                    let job =
                        self.create_child_job(&planned, request, self.stop.child_token()).await;
                    Ok((planned, job))
                }
            });
        }
        // Each child's outcome is stored when it ends; only the text for the model waits for the last child.
        let running = begun.into_iter().map(|start| {
            let batch = Arc::clone(&batch);
            async move {
                match start {
                    Err((name, why)) => {
                        CallAnswer { content: frame::refused_child(&name, &why), is_error: true }
                    }
                    Ok((planned, job)) => self.run_child(call, planned, job, batch, each).await,
                }
            }
        });
        let answers = join_all(running).await;
        let good = answers.iter().filter(|answer| !answer.is_error).count();
        let parts: Vec<String> = answers.into_iter().map(|answer| answer.content).collect();
        let total = parts.len();
        let head = format!("{good} of {total} subagents gave a conclusion, in the order asked:");
        let summary = batch.summary();
        let content = format!("{head}\n{}\nsummary: {summary}", parts.join("\n"));
        let answer = CallAnswer { content, is_error: good == 0 };
        trace::record_delegation(&answer);
        answer
    }

    /// The answer of `agent_status`: the states of all background subagents, or of the one with this id.
    pub(crate) fn background_status(&self, id: Option<&str>) -> CallAnswer {
        match self.background.format_list(id) {
            Some(content) => CallAnswer { content, is_error: false },
            None => self.no_such(id.unwrap_or_default()),
        }
    }

    /// The answer of `agent_result`: the conclusion of a background subagent, after its end if `wait`.
    pub(crate) async fn child_result(&self, id: &str, wait: bool) -> CallAnswer {
        let standing = if wait {
            self.stop.run_until_cancelled(self.background.wait_for_child(id)).await
        } else {
            Some(self.background.look(id))
        };
        match standing {
            Some(ChildStanding::Ended(ended)) => answer_of(ended),
            Some(ChildStanding::Running) => {
                CallAnswer { content: still_running(id), is_error: false }
            }
            Some(ChildStanding::Unknown) => self.no_such(id),
            None => CallAnswer { content: "cancelled".to_owned(), is_error: true },
        }
    }

    /// The answer of `agent_cancel`: cancels a background subagent and waits for its end.
    pub(crate) async fn cancel_child(&self, id: &str) -> CallAnswer {
        self.background.cancel_child(id);
        match self.child_result(id, true).await {
            answer if matches!(self.background.look(id), ChildStanding::Unknown) => answer,
            answer => CallAnswer { is_error: false, ..answer },
        }
    }

    fn no_such(&self, id: &str) -> CallAnswer {
        let (id, ids) = (ShownText::clip_line(id, 64), self.background.format_ids());
        let content = format!("no subagent `{id}` in the background; there are {ids}");
        CallAnswer { content, is_error: true }
    }

    /// Starts a child in the background and returns its id at once.
    async fn spawn_background(
        &self,
        call: PlacedCall<'_>,
        planned: PlannedSpawn,
        request: &Arc<ChatRequest>,
        batch: Arc<ChildBatch>,
    ) -> CallAnswer {
        let cancel = self.stop.child_token();
        // The id is assigned before any wait, so ids follow the order of the calls.
        let id = self.effects.background_id(self, call);
        let job = self.create_child_job(&planned, request, cancel.clone()).await;
        let shown = BackgroundEntrant::from_planned(&planned);
        let asked = planned.asked.background;
        let child = self.starting_child(call, planned, job, batch, MAX_CONCLUSION_BYTES);
        let child = self.effects.run_child(self, child);
        self.in_background(call, &id, &shown, cancel, child);
        let content = match asked {
            true => frame::started_in_background(&shown.name, &id),
            // The journal shows a foreground call that was moved to the background before the process died.
            false => frame::left_in_background(&shown.name, &id),
        };
        CallAnswer { content, is_error: false }
    }

    /// Runs a child to its end. After the longest wait the child continues in the background.
    async fn run_or_leave(
        &self,
        call: PlacedCall<'_>,
        planned: PlannedSpawn,
        request: &Arc<ChatRequest>,
        batch: Arc<ChildBatch>,
        wait: Duration,
    ) -> CallAnswer {
        let cancel = self.stop.child_token();
        let job = self.create_child_job(&planned, request, cancel.clone()).await;
        let shown = BackgroundEntrant::from_planned(&planned);
        let child =
            self.starting_child(call, planned, job, Arc::clone(&batch), MAX_CONCLUSION_BYTES);
        let mut child = self.effects.run_child(self, child);
        tokio::select! {
            biased;
            ended = child.as_mut() => return answer_of(ended),
            () = self.has_waited(wait) => {}
        }
        let id = self.effects.background_id(self, call);
        self.in_background(call, &id, &shown, cancel, child);
        batch.move_to_background(&id);
        CallAnswer { content: frame::left_in_background(&shown.name, &id), is_error: false }
    }

    /// How long a call waits for its child, by the call itself, the journal of a resumed run and the grant.
    fn wait_for_child(&self, call: PlacedCall<'_>, planned: &PlannedSpawn) -> ChildWait {
        // INV-520: what the journal says about the call precedes the present grant.
        let left = self.effects.was_left(call);
        match self.job.agent.auto_background {
            _ if planned.asked.background || left == Some(true) => ChildWait::Not,
            Some(wait) if left.is_none() => ChildWait::AtMost(wait),
            Some(_) | None => ChildWait::UntilItEnds,
        }
    }

    /// Returns after this much waiting time. Time in which the agent or a descendant waits for a person does
    /// not count.
    async fn has_waited(&self, wait: Duration) {
        let pause = &self.job.pause;
        let (began, before) = (Instant::now(), pause.total_wait());
        loop {
            let paused = pause.total_wait().saturating_sub(before);
            match began.checked_add(wait.saturating_add(paused)) {
                Some(end) if end > Instant::now() => tokio::time::sleep_until(end).await,
                Some(_) | None if pause.is_open() => pause.wait_until_closed().await,
                Some(_) | None => return,
            }
        }
    }

    /// Enters a child, which may already run, under this id in the list of background subagents.
    fn in_background(
        &self,
        call: PlacedCall<'_>,
        id: &str,
        shown: &BackgroundEntrant,
        cancel: CancellationToken,
        child: BoxFuture<'static, EndedChild>,
    ) {
        let named = (call.call.id.as_str(), shown.name.as_str(), shown.task.as_str());
        self.background.add_child(id, named, cancel);
        let (background, key) = (Arc::clone(&self.background), id.to_owned());
        let task = async move {
            // The end is recorded even if the child's task panics, because the parent waits for it.
            let ended = AssertUnwindSafe(child).catch_unwind().await;
            let ended = ended.unwrap_or_else(|_| EndedChild {
                status: RunStatus::Failed,
                conclusion: frame::refused_child("", "the host failed"),
            });
            background.record_end(&key, ended);
        };
        self.background.attach_task(id, AbortOnDropHandle::new(tokio::spawn(task)));
    }

    /// Makes the job of a child, including copies of the parent's present layers if the child is isolated.
    async fn create_child_job(
        &self,
        planned: &PlannedSpawn,
        request: &Arc<ChatRequest>,
        cancel: CancellationToken,
    ) -> Result<AgentJob, Box<Outcome>> {
        let job = self.job_of(planned, request, cancel.clone())?;
        copy_layers(&job, &cancel).await;
        Ok(job)
    }

    /// Runs a child to its end, stores the outcome, and returns the text for the parent's model.
    async fn run_child(
        &self,
        call: PlacedCall<'_>,
        planned: PlannedSpawn,
        job: Result<AgentJob, Box<Outcome>>,
        batch: Arc<ChildBatch>,
        limit: usize,
    ) -> CallAnswer {
        let child = self.starting_child(call, planned, job, batch, limit);
        answer_of(self.effects.run_child(self, child).await)
    }

    /// Assembles a child that can run without its parent's future.
    fn starting_child(
        &self,
        call: PlacedCall<'_>,
        planned: PlannedSpawn,
        job: Result<AgentJob, Box<Outcome>>,
        batch: Arc<ChildBatch>,
        limit: usize,
    ) -> StartingChild {
        StartingChild {
            parent: address_of(self.job, call),
            past: call.nested.and_then(|nested| nested.outer.nested_journal().cloned()),
            nested: call.nested.is_some(),
            job,
            planned,
            call_id: call.call.id.clone(),
            step: call.step,
            position: call.position,
            limit,
            slots: Arc::clone(&self.slots),
            batch,
            shared: Arc::clone(&self.job.shared),
            ledger: Arc::clone(self.ledger),
        }
    }

    /// Stores in the journal that subagents are about to start. `begun`: also store that the call itself has
    /// begun.
    pub(crate) async fn persist_queued(
        &self,
        call: PlacedCall<'_>,
        children: &[&PlannedSpawn],
        begun: bool,
    ) {
        let queued = || children.iter().map(|planned| self.queued_child(call, planned)).collect();
        let begun = (begun && self.job.shared.persists_steps()).then(|| {
            let children = children.iter().map(|planned| planned.journal_entry(call)).collect();
            let called = call.nested.map(|nested| nested.called.to_owned());
            self.job
                .entry_of(call, StepKind::Begun { children, called, course: None, asked: false })
        });
        self.job.shared.persist_queued(queued, begun).await;
    }

    /// Sends watchers the event that subagents are about to start.
    pub(crate) fn announce_batch(
        &self,
        call: PlacedCall<'_>,
        children: &[&PlannedSpawn],
        heading: BatchHeading<'_>,
    ) -> Arc<ChildBatch> {
        let children: Vec<_> = children
            .iter()
            .map(|planned| (Arc::clone(&planned.path), planned.asked.task.clone()))
            .collect();
        let most = self.delegates.max_concurrent();
        let (shared, parent, id) = (&self.job.shared, &self.job.path, &call.call.id);
        ChildBatch::start(shared, parent, id, &children, heading, most)
    }

    /// The record of a child that waits for a slot.
    fn queued_child(&self, call: PlacedCall<'_>, planned: &PlannedSpawn) -> QueuedChild {
        let asked = &planned.asked;
        QueuedChild {
            path: Arc::clone(&planned.path),
            parent: Arc::clone(&self.job.path),
            parent_agent: self.job.agent.id.to_string(),
            depth: self.job.depth.level.saturating_add(1),
            agent: planned.agent.id.to_string(),
            origin: asked.child_origin(),
            spawn_index: planned.spawn_index,
            call_id: call.call.id.clone(),
            task: asked.task.clone(),
            context: asked.context.clone(),
        }
    }
}

impl BackgroundEntrant {
    fn from_planned(planned: &PlannedSpawn) -> Self {
        Self { name: planned.name.clone(), task: planned.asked.task.clone() }
    }
}

impl PlannedSpawn {
    /// The journal entry of a child before its start.
    fn journal_entry(&self, call: PlacedCall<'_>) -> PlannedChild {
        let outlives = call.nested.is_some() && self.outlives;
        PlannedChild {
            place: self.place,
            slug: self.agent.id.slug.to_string(),
            spawn_index: self.spawn_index,
            call: outlives.then(|| call.call.clone()),
        }
    }
}

impl StartingChild {
    /// The end of a child from a stored outcome: the child had ended before the process died.
    pub(crate) fn into_ended(self, child: ChildSummary) -> EndedChild {
        if let Some(own) = self.job.as_ref().ok().filter(|job| job.isolated) {
            // The child's separate layers were merged or dropped at the end of the child. Planning has made
            // new layers, so the new ones are discarded.
            own.layers.iter().for_each(SessionLayers::discard_layers);
        }
        let conclusion = frame::conclusion_message(&self.planned.name, &child.outcome, self.limit);
        let status = child.outcome.status;
        self.batch.ended_before(&child.outcome);
        self.ledger.record_child(self.child_place(), child);
        EndedChild { status, conclusion }
    }

    /// Runs the child to its end. The outcome is stored on return: no parent acts on an outcome that could be
    /// lost.
    pub(crate) async fn run_to_end(self) -> EndedChild {
        let at = self.child_place();
        let PlannedSpawn { path, spawn_index, asked, name, .. } = self.planned;
        let own = self.job.as_ref().ok().filter(|job| job.isolated);
        let own = own.and_then(|job| job.layers.clone());
        let mut outcome = match self.job {
            Ok(job) => run_in_slot(job, self.slots, self.batch).await,
            Err(outcome) => {
                self.batch.mark_done(&path, &outcome, false);
                *outcome
            }
        };
        let status = outcome.status;
        if let Some(own) = own {
            let owner = self.shared.host.owner_of_layers();
            let merged = end_layers(own, &owner, status, format!("{name}-{spawn_index}")).await;
            outcome.merged.extend(merged);
        }
        let conclusion = frame::conclusion_message(&name, &outcome, self.limit);
        // The messages are dropped: no reader needs a child's conversation, and a fork shares its parent's.
        outcome.messages = Vec::new();
        let origin = asked.child_origin();
        let SpawnArguments { task, context, .. } = asked;
        let summary = ChildSummary {
            call_id: self.call_id,
            step: self.step,
            spawn_index,
            path: path.to_string(),
            origin,
            task,
            context,
            outcome,
        };
        let with = self.shared.persists_steps().then(|| {
            let (position, place) = at;
            let kind = StepKind::Child { place, summary: Box::new(summary.clone()) };
            StepEntry { agent: self.parent, step: self.step, position, kind }
        });
        self.shared.control.remove_subagent(&summary.path);
        self.shared.persist_ended(&summary, with).await;
        self.ledger.record_child(at, summary);
        EndedChild { status, conclusion }
    }
}

const COPY_LAYERS: WorkKind =
    WorkKind { name: "copying the overlay for a subagent", time: Duration::from_secs(600) };

/// Copies the overlays of an isolated subagent on another thread, because an overlay may have 2 GiB in
/// 100,000 files. A failure is reported later, when the jar is opened.
async fn copy_layers(job: &AgentJob, cancel: &CancellationToken) {
    let Some(own) = job.layers.clone().filter(SessionLayers::is_copy) else { return };
    let (copied, rights) = (own.clone(), job.rights.clone());
    let owner = job.shared.host.owner_of_layers();
    let work = belljar_work::run_job(&COPY_LAYERS, &owner, move |stop| {
        copied.open_overlays_until(&rights, stop).map(drop).map_err(|error| error.to_string())
    });
    let made = tokio::select! {
        biased;
        () = cancel.cancelled() => Err("it was cancelled".to_owned()),
        made = work => made.unwrap_or_else(|error| Err(error.to_string())),
    };
    if let Err(why) = made {
        own.not_copied(&why);
    }
}

const END_LAYERS: WorkKind =
    WorkKind { name: "merging what a subagent changed", time: Duration::from_secs(600) };

/// Merges the changes of an isolated subagent into the parent's layers if the subagent concluded; otherwise
/// drops the changes.
async fn end_layers(
    own: SessionLayers,
    owner: &str,
    status: RunStatus,
    name: String,
) -> Vec<String> {
    let concluded = match status {
        RunStatus::Completed | RunStatus::Partial => true,
        RunStatus::Failed | RunStatus::Cancelled => false,
    };
    // Reads and writes files, perhaps for long. Never interrupted: half a merge would be neither the parent's
    // nor the subagent's state.
    let ended = belljar_work::run_job(&END_LAYERS, owner, move |_| own.end(concluded, &name)).await;
    match ended {
        Ok(told) => told.iter().filter_map(CopyEnding::line_for_parent).collect(),
        Err(_) => vec!["what it changed could not be merged".to_owned()],
    }
}

fn answer_of(ended: EndedChild) -> CallAnswer {
    CallAnswer { content: ended.conclusion, is_error: frame::is_error(ended.status) }
}
