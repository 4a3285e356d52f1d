//! The beginning of a turn: from the caller's request to the task that runs the turn.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use belljar_policy::{BudgetCaps, LimitsRequest, ShownText};
use belljar_store::{SessionKind, StoredSession};
use belljar_work::{WorkError, WorkKind};
use tracing::Instrument as _;

use super::admission::JarPermit;
use super::limits::TurnSlot;
use super::questions::TurnQuestions;
use super::running::{ClaimPurpose, RunningTurn, SessionClaim};
use super::types::{ServiceError, TurnKind, TurnRequest};
use super::versions::LookDepth;
use super::{RETRY_AFTER, Service, ServiceInner};
use crate::conversation::talk::Conversation;
use crate::record::past::SessionPast;
use crate::record::rows::HistoryMode;
use crate::record::saved_session::{SavedOutcome, SavedSession, TurnInput};
use crate::record::turn::{OpenState, Turn};
use crate::trace;
use belljar_agent::Asker;
use belljar_agent::CallerInput;
use belljar_agent::Host;
use belljar_agent::ResolveError;
use belljar_agent::TeamSpec;
use belljar_agent::TextRetention;
use belljar_agent::{ResolvedAgent, preview_request, resolve_known};
use belljar_agent::{RunError, RunSpec};
use belljar_model::ChatMessage;

/// The agent of a new session whose request names no agent.
pub(super) const DEFAULT_AGENT: &str = "general-purpose";

/// Most bytes of one message of a person; longer material belongs into a file of the workspace.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// The time after which the agent files are checked for changes again, when a turn begins.
const LIBRARY_AGE: Duration = Duration::from_secs(1);

/// What a new turn does when the tenant or the host has no free place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitMode {
    /// Waits in the queue; a full queue is an error.
    InLine,
    /// Waits even if the queue is full. Used for a turn that is resumed, because the turn was admitted
    /// before.
    Surely,
}

/// A turn that may run: its places in the tenant and the host, and the settings and tools for the whole turn.
pub(super) struct AdmittedTurn<T = ResolvedAgent> {
    pub(super) host: Arc<Host>,
    pub(super) found: Arc<T>,
    _places: (TurnSlot, JarPermit),
}

/// What a turn runs: an agent or a team, named in the request.
pub(super) trait TurnPerformer: Send + Sync + Sized + 'static {
    /// Finds the agent or the team `name`, and checks that this host can run it.
    fn find_runnable(
        inner: &ServiceInner,
        host: &Arc<Host>,
        name: &str,
    ) -> impl Future<Output = Result<Arc<Self>, ServiceError>> + Send;

    /// The most jars that a turn of this agent or team uses at the same time.
    fn max_jars(&self, host: &Host) -> usize;
}

/// What a stored turn will run: a conversation's next message, or a team.
pub(super) enum StoredWork {
    Conversation(Box<Conversation>),
    Team(Box<TeamSpec>),
}

impl Service {
    /// Stores the message, the placeholder of its answer and the line of the audit log, and runs the turn in
    /// a new task. When `begin_turn` returns, the three are on disk. A caller who drops the future meanwhile
    /// changes nothing.
    pub async fn begin_turn(&self, request: TurnRequest) -> Result<RunningTurn, ServiceError> {
        let service = self.clone();
        let beginning = async move { service.begin_here(request).await };
        let begun = self.spawn_task(beginning.in_current_span()).await;
        begun.map_err(|_| WorkError::Panicked { kind: "beginning a turn" })?
    }

    /// Begins a turn, in the service's own runtime. Checks the request, claims the session, waits for a
    /// place, checks limits, stores the message, and starts the task that runs the turn.
    async fn begin_here(&self, request: TurnRequest) -> Result<RunningTurn, ServiceError> {
        let inner = &self.0;
        inner.check_not_draining()?;
        check_request(&request, inner.store.tenant()).await?;
        self.look_for_changes(LookDepth::IfChanged).await;
        // Checked before any wait: an unknown or busy session is refused at once.
        let known = match &request.session {
            Some(id) => Some(inner.store.read_session(id).await?),
            None => None,
        };
        let id = known.as_ref().map_or_else(|| inner.new_id(), |session| session.id.clone());
        let claim = inner.claim_session(&id, ClaimPurpose::Turn).await?;
        let name = known.as_ref().map(|session| session.agent.as_str());
        let name = name.or(request.agent.as_deref()).unwrap_or(DEFAULT_AGENT);
        let bytes =
            request.text.len().saturating_add(request.context.as_ref().map_or(0, String::len));
        let bytes = bytes.saturating_add(request.brought.stored_bytes());
        inner.allowance.check_room(&inner.store, bytes).await?;
        let kind = match request.kind {
            TurnKind::Conversation => SessionKind::Api,
            TurnKind::Run => SessionKind::Run,
            TurnKind::Team => return inner.begin_team(claim, request).await,
        };
        let admitted = inner.admit_turn(name, WaitMode::InLine).await?;
        let (saved, past) = inner.open_session(id, known).await?;
        let mut saved = saved.with_kind(kind);
        if past.as_ref().is_some_and(|past| past.unfinished.is_some()) {
            // The interrupted turn of the session must be resumed before a new turn begins.
            return Err(ServiceError::Busy(claim.session_id().to_owned()));
        }
        goes_on(&request, past.as_ref())?;
        let TurnRequest { model, limits, history, kept, .. } = request;
        let past = past.as_ref();
        let agent = Arc::clone(&admitted.found);
        let conversation = inner.new_conversation(agent, model, limits, history, past).await?;
        // INV-152: the checks follow all waiting, and precede every write.
        let TurnRequest { text, context, brought, entrance, forget, .. } = request;
        let words = TurnInput { text, context, brought, entrance, forget };
        let brought = &words.brought;
        let checked = !brought.tools.is_empty() || brought.choice.is_some();
        if checked || brought.all_images().next().is_some() {
            check_input_fits(&admitted.host, &conversation, &words).await?;
        }
        let needed = || least_tokens(&admitted.host, &conversation, &words);
        inner.allowance.check_step(&inner.store, &*inner.clock, needed).await?;
        let saved_by = saved.set_actor(&request.actor, Some(request.door));
        let turn = saved_by.say_with(&conversation, words).await?;
        let work = StoredWork::Conversation(Box::new(conversation));
        Ok(inner.spawn_turn(claim, admitted, saved, work, turn, kept))
    }
}

impl ServiceInner {
    /// Runs a stored turn in a new task, and returns the handle of the turn.
    pub(super) fn spawn_turn(
        self: &Arc<Self>,
        mut claim: SessionClaim,
        admitted: AdmittedTurn<impl TurnPerformer>,
        mut saved: SavedSession,
        work: StoredWork,
        turn: Turn<OpenState>,
        kept: TextRetention,
    ) -> RunningTurn {
        let agent = match &work {
            StoredWork::Conversation(conversation) => conversation.agent().id.clone(),
            StoredWork::Team(spec) => spec.team.id.clone(),
        };
        let running = claim.attach_turn(&turn, agent.to_string(), saved.last_event());
        let session = running.session.clone();
        let mut host = Host::clone(&admitted.host);
        host.asker = Arc::new(TurnQuestions {
            questions: Arc::clone(&self.questions),
            clock: Arc::clone(&host.clock),
            session: session.clone(),
            message: turn.message.clone(),
        }) as Arc<dyn Asker>;
        let span = trace::turn_span(self.store.tenant(), &session, agent.slug.as_str(), &turn);
        let (traced, tally) = (span.clone(), Arc::clone(&self.tally));
        let performing = async move {
            let cancel = claim.cancel.clone();
            let counted = tally.event_sink().with_retention(kept);
            let done = match work {
                StoredWork::Conversation(mut conversation) => {
                    saved.perform_turn(turn, &mut conversation, &host, counted, cancel).await
                }
                StoredWork::Team(spec) => {
                    let done = saved.perform_team(turn, *spec, &host, counted, cancel).await;
                    SavedOutcome { outcome: done.outcome.to_outcome(), unsaved: done.unsaved }
                }
            };
            tally.count_outcome(&done.outcome);
            if let Some(error) = &done.unsaved {
                tracing::error!(
                    target: "belljar::session",
                    session = %claim.session_id(),
                    "the outcome of a turn could not be stored: {error}"
                );
            }
            belljar_agent::trace::turn_ended(&traced, &done.outcome);
            let end = claim.end.clone();
            claim.turn_ended();
            // Dropped before the outcome is sent, because a caller that waits for the end may begin the next
            // turn.
            drop((saved, claim, admitted));
            // The send fails if no caller waits for the end, which is harmless.
            let _ = end.send(Some(Arc::new(done.outcome)));
        };
        let task = self.runtime.spawn(performing.instrument(span));
        SessionClaim::attach_task(self, &session, task.abort_handle());
        running
    }

    /// Locks a session for this process. `known` = the stored session to resume; `None` = a new session with
    /// `id`, which has no past.
    pub(super) async fn open_session(
        &self,
        id: String,
        known: Option<StoredSession>,
    ) -> Result<(SavedSession, Option<SessionPast>), ServiceError> {
        let (store, clock) = (self.store.clone(), Arc::clone(&self.clock));
        let saved = SavedSession::new(store, clock)
            .with_kind(SessionKind::Api)
            .watched_by(Arc::clone(&self.hub))
            .with_layers(self.layers_counted().await.clone());
        match known {
            None => Ok((saved.with_id(id), None)),
            Some(session) => {
                let (saved, past) = saved.resume_session(session).await?;
                Ok((saved, Some(past)))
            }
        }
    }

    /// Makes a conversation below the tenant's budget of the day, with the messages and the model of the
    /// session's past.
    pub(super) async fn new_conversation(
        &self,
        agent: Arc<ResolvedAgent>,
        model: Option<String>,
        limits: LimitsRequest,
        history: HistoryMode,
        past: Option<&SessionPast>,
    ) -> Result<Conversation, ServiceError> {
        let budget = self.allowance.day_budget(&self.store, &*self.clock).await?;
        let saved = past.map(|past| past.session.model.clone()).filter(|model| !model.is_empty());
        let conversation = Conversation::below_budget(
            &budget,
            agent,
            self.workspace.clone(),
            BudgetCaps::unlimited(),
        )
        .with_model(saved.or(model))
        .with_limits(limits)
        .with_history(history);
        Ok(match past {
            Some(past) => conversation.with_messages(past.request_messages(history), past.used),
            None => conversation,
        })
    }

    /// Waits for a turn's permit, unless new turns are refused. INV-156: the turn gets the version in force
    /// after all waiting; a changed version may need other jars, so the wait begins again.
    pub(super) async fn admit_turn<T: TurnPerformer>(
        self: &Arc<Self>,
        name: &str,
        waits: WaitMode,
    ) -> Result<AdmittedTurn<T>, ServiceError> {
        let admitted = self.draining.run_until_cancelled(self.wait_for_version(name, waits));
        admitted.await.unwrap_or(Err(ServiceError::Draining))
    }

    /// Waits for the places of a turn, and returns the settings in force afterwards. If these changed during
    /// the wait, the places are returned and the wait begins again, because the new version may need other
    /// jars.
    async fn wait_for_version<T: TurnPerformer>(
        self: &Arc<Self>,
        name: &str,
        waits: WaitMode,
    ) -> Result<AdmittedTurn<T>, ServiceError> {
        let mut host = self.current_host();
        let mut found = T::find_runnable(self, &host, name).await?;
        loop {
            let waiting = self.wait_for_places(found.max_jars(&host), waits);
            tokio::pin!(waiting);
            let _places = tokio::select! {
                biased;
                places = &mut waiting => places?,
                // Without a free place the turn waits, and the settings may change meanwhile: they are read
                // again.
                () = std::future::ready(()) => {
                    let places = waiting.await?;
                    Service(Arc::clone(self)).look_for_changes(LookDepth::IfChanged).await;
                    places
                }
            };
            let now = self.current_host();
            if Arc::ptr_eq(&now, &host) {
                return Ok(AdmittedTurn { host, found, _places });
            }
            found = T::find_runnable(self, &now, name).await?;
            host = now;
        }
    }

    /// Waits for the turn's two places: one among the tenant's turns, and `jars` among the host's jars.
    pub(super) async fn wait_for_places(
        &self,
        jars: usize,
        waits: WaitMode,
    ) -> Result<(TurnSlot, JarPermit), ServiceError> {
        let place = match waits {
            WaitMode::InLine => self.allowance.place().await?,
            WaitMode::Surely => self.allowance.wait_place().await?,
        };
        let sure = waits == WaitMode::Surely;
        let permit = self.admission.wait_for_permit(self.store.tenant(), jars, sure).await;
        let full = |_| ServiceError::HostFull { retry_after: RETRY_AFTER };
        Ok((place, permit.map_err(full)?))
    }

    /// Finds the agent `name`, checks that this host can run it, and returns it with its rights.
    pub(super) async fn runnable_agent(
        &self,
        host: &Arc<Host>,
        name: &str,
    ) -> Result<Arc<ResolvedAgent>, ServiceError> {
        self.refresh_library(host).await;
        let agent = resolve_known(host, name, &self.workspace);
        let agent = agent.map_err(|error| match error {
            ResolveError::NotFound(found) => ServiceError::NoAgent(found),
            other => ServiceError::Agent(other.to_string()),
        })?;
        check_runnable(host, &agent)?;
        Ok(Arc::new(agent))
    }

    /// Reads agent files that have changed, unless the last check was less than `LIBRARY_AGE` ago.
    async fn refresh_library(&self, host: &Host) {
        {
            let mut seen =
                self.library_seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if seen.is_some_and(|seen: Instant| seen.elapsed() < LIBRARY_AGE) {
                return;
            }
            *seen = Some(Instant::now());
        }
        let library = Arc::clone(&host.library);
        // Directories are read on a separate thread. On an error the library stays as it was.
        let owner = self.work_owner("turns");
        let _ =
            belljar_work::run_job(&REFRESH, &owner, move |stop| library.refresh_until(stop)).await;
    }
}

/// The kind of host work that checks agent files for changes.
pub(super) const REFRESH: WorkKind =
    WorkKind { name: "looking for changed agents", time: Duration::from_secs(60) };

/// Refuses an agent that is blocked, or that has no model on this host.
pub(super) fn check_runnable(host: &Host, agent: &ResolvedAgent) -> Result<(), ServiceError> {
    agent.check_runnable(false)?;
    match host.models.is_empty() {
        true => Err(ServiceError::NoModel),
        false => Ok(()),
    }
}

impl TurnPerformer for ResolvedAgent {
    async fn find_runnable(
        inner: &ServiceInner,
        host: &Arc<Host>,
        name: &str,
    ) -> Result<Arc<Self>, ServiceError> {
        inner.runnable_agent(host, name).await
    }

    /// One jar for the agent, and one for each parallel subagent, down to the greatest depth.
    fn max_jars(&self, host: &Host) -> usize {
        let depth = host.settings.subagents.max_depth;
        let granted = host.settings.delegation(&self.id, self.definition.visibility);
        let side_by_side = belljar_agent::side_by_side(&granted, &self.definition);
        let mut jars = 1_usize;
        for _ in 0..depth {
            jars = jars.saturating_mul(side_by_side).saturating_add(1);
        }
        jars
    }
}

/// The fewest tokens that the first step of a turn needs: its request, and the shortest answer.
async fn least_tokens(
    host: &Host,
    conversation: &Conversation,
    words: &TurnInput,
) -> Result<u64, ServiceError> {
    // A request that cannot be made for another reason is reported by the turn itself.
    let made = preview_request(host, spec_of(conversation, words)).await;
    Ok(made.map_or(0, |made| made.least_tokens()))
}

/// Checks that the caller's input fits the agent, before the turn is stored.
async fn check_input_fits(
    host: &Host,
    conversation: &Conversation,
    words: &TurnInput,
) -> Result<(), ServiceError> {
    match preview_request(host, spec_of(conversation, words)).await {
        Err(RunError::Caller { message, images: true }) => Err(ServiceError::Images(message)),
        Err(RunError::Caller { message, images: false }) => Err(ServiceError::Caller(message)),
        // A request that cannot be made for another reason is reported by the turn itself.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The parameters of the turn's run: the conversation's, with this text, context and caller's input.
fn spec_of(conversation: &Conversation, words: &TurnInput) -> RunSpec {
    let mut spec = conversation.run_spec(words.text.clone());
    spec.history = words.brought.after(conversation.messages().to_vec());
    spec.context.clone_from(&words.context);
    spec.brought = CallerInput { history: Vec::new(), ..words.brought.clone() };
    spec
}

/// INV-282: checks that the turn `request.after` is still the session's last one, and that the request brings
/// a result for each of that turn's waiting calls and for no other call.
fn goes_on(request: &TurnRequest, past: Option<&SessionPast>) -> Result<(), ServiceError> {
    let Some(after) = &request.after else {
        return match request.brought.results.is_empty() {
            true => Ok(()),
            false => Err(ServiceError::Invalid("no turn waits for these results".to_owned())),
        };
    };
    let Some(past) = past else { return Err(ServiceError::NoSession(after.clone())) };
    let last = past.turns.last().filter(|turn| turn.message == *after);
    let last = last.ok_or_else(|| ServiceError::GoneOn(past.session.id.clone()))?;
    let calls = &last.state.outcome.calls;
    let results = &request.brought.results;
    let answered: HashSet<&str> = results.iter().map(|result| result.id.as_str()).collect();
    let missing = calls.iter().filter(|call| !answered.contains(call.id.as_str()));
    let missing: Vec<String> = missing.map(|call| call.id.clone()).collect();
    if !missing.is_empty() {
        return Err(ServiceError::Unanswered(missing));
    }
    let known: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    if let Some(result) = results.iter().find(|one| !known.contains(one.id.as_str())) {
        let why = format!("no call `{}` waits for a result", ShownText::clip_line(&result.id, 64));
        return Err(ServiceError::Invalid(why));
    }
    Ok(())
}

fn ends_with_results(brought: &CallerInput) -> bool {
    matches!(brought.history.last(), Some(ChatMessage::Tool { .. }))
}

/// Checks what does not depend on the session: sizes, a text that is not empty, and no new agent or model for
/// an existing session.
async fn check_request(request: &TurnRequest, tenant: &str) -> Result<(), ServiceError> {
    let invalid = |why: &str| Err(ServiceError::Invalid(why.to_owned()));
    request.brought.check_inputs(tenant).await?;
    let results = !request.brought.results.is_empty();
    let images = !request.brought.images.is_empty();
    let says = !request.text.trim().is_empty() || images;
    if !says && !results && !ends_with_results(&request.brought) {
        return invalid("`text` is empty; say something");
    }
    if request.text.len() > MAX_TEXT_BYTES {
        return invalid("`text` is too long: at most 4 MiB; put it into a file of the workspace");
    }
    if request.session.is_some() && (request.agent.is_some() || request.model.is_some()) {
        return invalid("a session keeps its agent and model; leave `agent` and `model` out");
    }
    Ok(())
}
