//! Begins a turn: from the request to the task that runs the turn.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use belljar_policy::{Caps, LimitsRequest, Shown};
use belljar_store::{SessionKind, StoredSession};
use belljar_work::{WorkError, WorkKind};
use tracing::Instrument as _;

use super::admission::Permit;
use super::limits::TurnSlot;
use super::questions::TurnQuestions;
use super::running::{Claim, Purpose, RunningTurn};
use super::types::{ServiceError, TurnKind, TurnRequest};
use super::versions::Look;
use super::{Inner, RETRY_AFTER, Service};
use crate::conversation::talk::Conversation;
use crate::record::past::Past;
use crate::record::rows::History;
use crate::record::saved_session::{Saved, SavedSession, Words};
use crate::record::turn::{Open, Turn};
use crate::trace;
use belljar_agent::Asker;
use belljar_agent::Brought;
use belljar_agent::Host;
use belljar_agent::ResolveError;
use belljar_agent::Staying;
use belljar_agent::TeamSpec;
use belljar_agent::{ResolvedAgent, preview, resolve_known};
use belljar_agent::{RunError, RunSpec};
use belljar_model::Message;

/// The agent of a session without a named agent.
pub(super) const DEFAULT_AGENT: &str = "general-purpose";

/// Most bytes of one message of a person.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// How long the library is used without a look for changed files.
const LIBRARY_AGE: Duration = Duration::from_secs(1);

/// The way in which a turn waits for its places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// Waits in the queue, unless the queue is full.
    InLine,
    /// However many wait.
    Surely,
}

/// A turn that may run: its permit, and the version of settings and tools for the whole turn.
pub(super) struct Admitted<T = ResolvedAgent> {
    pub(super) host: Arc<Host>,
    pub(super) found: Arc<T>,
    _places: (TurnSlot, Permit),
}

/// An agent or a team, by whose name a turn is begun.
pub(super) trait Performer: Send + Sync + Sized + 'static {
    /// Finds one that can be run.
    fn find(
        inner: &Inner,
        host: &Arc<Host>,
        name: &str,
    ) -> impl Future<Output = Result<Arc<Self>, ServiceError>> + Send;

    /// The most jars of a turn at a time.
    fn jars(&self, host: &Host) -> usize;
}

/// The work of a turn that is stored.
pub(super) enum Work {
    Conversation(Box<Conversation>),
    Team(Box<TeamSpec>),
}

impl Service {
    /// Stores the message, the placeholder of its answer and the line of the audit log, and runs the turn in a
    /// new task. When `begin` returns, all of them outlive the process; a caller who goes away meanwhile
    /// changes nothing.
    pub async fn begin(&self, request: TurnRequest) -> Result<RunningTurn, ServiceError> {
        let service = self.clone();
        let beginning = async move { service.begin_here(request).await };
        let begun = self.spawn(beginning.in_current_span()).await;
        begun.map_err(|_| WorkError::Panicked { kind: "beginning a turn" })?
    }

    async fn begin_here(&self, request: TurnRequest) -> Result<RunningTurn, ServiceError> {
        let inner = &self.0;
        inner.check_not_draining()?;
        check(&request, inner.store.tenant()).await?;
        self.look(Look::IfChanged).await;
        // Checked before any wait: an unknown or busy session is refused at once.
        let known = match &request.session {
            Some(id) => Some(inner.store.session(id).await?),
            None => None,
        };
        let id = known.as_ref().map_or_else(|| inner.new_id(), |session| session.id.clone());
        let claim = inner.claim(&id, Purpose::Turn).await?;
        let name = known.as_ref().map(|session| session.agent.as_str());
        let name = name.or(request.agent.as_deref()).unwrap_or(DEFAULT_AGENT);
        let bytes =
            request.text.len().saturating_add(request.context.as_ref().map_or(0, String::len));
        let bytes = bytes.saturating_add(request.brought.bytes());
        inner.allowance.room(&inner.store, bytes).await?;
        let kind = match request.kind {
            TurnKind::Conversation => SessionKind::Api,
            TurnKind::Run => SessionKind::Run,
            TurnKind::Team => return inner.begin_team(claim, request).await,
        };
        let admitted = inner.admitted(name, Waits::InLine).await?;
        let (saved, past) = inner.open(id, known).await?;
        let mut saved = saved.of_kind(kind);
        if past.as_ref().is_some_and(|past| past.unfinished.is_some()) {
            // The session waits for its interrupted turn to be resumed.
            return Err(ServiceError::Busy(claim.session().to_owned()));
        }
        goes_on(&request, past.as_ref())?;
        let TurnRequest { model, limits, history, kept, .. } = request;
        let past = past.as_ref();
        let agent = Arc::clone(&admitted.found);
        let conversation = inner.conversation(agent, model, limits, history, past).await?;
        // INV-152: after all waiting, and before anything is stored.
        let TurnRequest { text, context, brought, entrance, forget, .. } = request;
        let words = Words { text, context, brought, entrance, forget };
        let brought = &words.brought;
        let checked = !brought.tools.is_empty() || brought.choice.is_some();
        if checked || brought.all_images().next().is_some() {
            fits(&admitted.host, &conversation, &words).await?;
        }
        let needed = || least_tokens(&admitted.host, &conversation, &words);
        inner.allowance.step(&inner.store, &*inner.clock, needed).await?;
        let saved_by = saved.by(&request.actor, Some(request.door));
        let turn = saved_by.say_with(&conversation, words).await?;
        let work = Work::Conversation(Box::new(conversation));
        Ok(inner.run(claim, admitted, saved, work, turn, kept))
    }
}

impl Inner {
    /// Runs a turn in a separate task.
    pub(super) fn run(
        self: &Arc<Self>,
        mut claim: Claim,
        admitted: Admitted<impl Performer>,
        mut saved: SavedSession,
        work: Work,
        turn: Turn<Open>,
        kept: Staying,
    ) -> RunningTurn {
        let agent = match &work {
            Work::Conversation(conversation) => conversation.agent().id.clone(),
            Work::Team(spec) => spec.team.id.clone(),
        };
        let running = claim.is(&turn, agent.to_string(), saved.last_event());
        let session = running.session.clone();
        let mut host = Host::clone(&admitted.host);
        host.asker = Arc::new(TurnQuestions {
            questions: Arc::clone(&self.questions),
            clock: Arc::clone(&host.clock),
            session: session.clone(),
            message: turn.message.clone(),
        }) as Arc<dyn Asker>;
        let span = trace::turn(self.store.tenant(), &session, agent.slug.as_str(), &turn);
        let (traced, tally) = (span.clone(), Arc::clone(&self.tally));
        let performing = async move {
            let cancel = claim.cancel.clone();
            let counted = tally.listening().keeping(kept);
            let done = match work {
                Work::Conversation(mut conversation) => {
                    saved.perform(turn, &mut conversation, &host, counted, cancel).await
                }
                Work::Team(spec) => {
                    let done = saved.perform_team(turn, *spec, &host, counted, cancel).await;
                    Saved { outcome: done.outcome.to_outcome(), unsaved: done.unsaved }
                }
            };
            tally.ended(&done.outcome);
            if let Some(error) = &done.unsaved {
                tracing::error!(
                    target: "belljar::session",
                    session = %claim.session(),
                    "the outcome of a turn could not be stored: {error}"
                );
            }
            belljar_agent::trace::turn_ended(&traced, &done.outcome);
            let end = claim.end.clone();
            claim.turn_ended();
            // Dropped first, because a caller that waits for the end may begin the next turn.
            drop((saved, claim, admitted));
            // An error: no caller waits for the end.
            let _ = end.send(Some(Arc::new(done.outcome)));
        };
        let task = self.runtime.spawn(performing.instrument(span));
        Claim::runs(self, &session, task.abort_handle());
        running
    }

    /// Locks a session for this process; a new session has no past.
    pub(super) async fn open(
        &self,
        id: String,
        known: Option<StoredSession>,
    ) -> Result<(SavedSession, Option<Past>), ServiceError> {
        let (store, clock) = (self.store.clone(), Arc::clone(&self.clock));
        let saved = SavedSession::new(store, clock)
            .of_kind(SessionKind::Api)
            .watched_by(Arc::clone(&self.hub))
            .beside(self.layers_counted().await.clone());
        match known {
            None => Ok((saved.called(id), None)),
            Some(session) => {
                let (saved, past) = saved.resume_session(session).await?;
                Ok((saved, Some(past)))
            }
        }
    }

    pub(super) async fn conversation(
        &self,
        agent: Arc<ResolvedAgent>,
        model: Option<String>,
        limits: LimitsRequest,
        history: History,
        past: Option<&Past>,
    ) -> Result<Conversation, ServiceError> {
        let budget = self.allowance.budget(&self.store, &*self.clock).await?;
        let saved = past.map(|past| past.session.model.clone()).filter(|model| !model.is_empty());
        let conversation =
            Conversation::below(&budget, agent, self.workspace.clone(), Caps::unlimited())
                .with_model(saved.or(model))
                .with_limits(limits)
                .with_history(history);
        Ok(match past {
            Some(past) => conversation.after(past.messages(history), past.used),
            None => conversation,
        })
    }

    /// Waits for a turn's permit, unless new turns are refused. INV-156: the turn gets the version in force
    /// after all waiting; a changed version may need other jars, so the wait begins again.
    pub(super) async fn admitted<T: Performer>(
        self: &Arc<Self>,
        name: &str,
        waits: Waits,
    ) -> Result<Admitted<T>, ServiceError> {
        let admitted = self.draining.run_until_cancelled(self.wait(name, waits));
        admitted.await.unwrap_or(Err(ServiceError::Draining))
    }

    async fn wait<T: Performer>(
        self: &Arc<Self>,
        name: &str,
        waits: Waits,
    ) -> Result<Admitted<T>, ServiceError> {
        let mut host = self.host();
        let mut found = T::find(self, &host, name).await?;
        loop {
            let waiting = self.places(found.jars(&host), waits);
            tokio::pin!(waiting);
            let _places = tokio::select! {
                biased;
                places = &mut waiting => places?,
                // The turn has to wait, so the settings read before are old afterwards.
                () = std::future::ready(()) => {
                    let places = waiting.await?;
                    Service(Arc::clone(self)).look(Look::IfChanged).await;
                    places
                }
            };
            let now = self.host();
            if Arc::ptr_eq(&now, &host) {
                return Ok(Admitted { host, found, _places });
            }
            found = T::find(self, &now, name).await?;
            host = now;
        }
    }

    pub(super) async fn places(
        &self,
        jars: usize,
        waits: Waits,
    ) -> Result<(TurnSlot, Permit), ServiceError> {
        let place = match waits {
            Waits::InLine => self.allowance.place().await?,
            Waits::Surely => self.allowance.waits().await?,
        };
        let sure = waits == Waits::Surely;
        let permit = self.admission.enter(self.store.tenant(), jars, sure).await;
        let full = |_| ServiceError::HostFull { retry_after: RETRY_AFTER };
        Ok((place, permit.map_err(full)?))
    }

    /// An agent that can be run.
    pub(super) async fn agent(
        &self,
        host: &Arc<Host>,
        name: &str,
    ) -> Result<Arc<ResolvedAgent>, ServiceError> {
        self.refresh(host).await;
        let agent = resolve_known(host, name, &self.workspace);
        let agent = agent.map_err(|error| match error {
            ResolveError::NotFound(found) => ServiceError::NoAgent(found),
            other => ServiceError::Agent(other.to_string()),
        })?;
        runnable(host, &agent)?;
        Ok(Arc::new(agent))
    }

    /// Looks for changed agent files, now and then.
    async fn refresh(&self, host: &Host) {
        {
            let mut seen =
                self.library_seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if seen.is_some_and(|seen: Instant| seen.elapsed() < LIBRARY_AGE) {
                return;
            }
            *seen = Some(Instant::now());
        }
        let library = Arc::clone(&host.library);
        // Run on a thread, because directories are read. On an error the library does not change.
        let owner = self.owner("turns");
        let _ = belljar_work::run(&REFRESH, &owner, move |stop| library.refresh_until(stop)).await;
    }
}

/// Looking for agent files that have changed.
pub(super) const REFRESH: WorkKind =
    WorkKind { name: "looking for changed agents", time: Duration::from_secs(60) };

/// Refuses an agent that this host cannot run at present.
pub(super) fn runnable(host: &Host, agent: &ResolvedAgent) -> Result<(), ServiceError> {
    agent.runnable(false)?;
    match host.models.is_empty() {
        true => Err(ServiceError::NoModel),
        false => Ok(()),
    }
}

impl Performer for ResolvedAgent {
    async fn find(inner: &Inner, host: &Arc<Host>, name: &str) -> Result<Arc<Self>, ServiceError> {
        inner.agent(host, name).await
    }

    /// Its own jar, and those of the parallel subagents, down to the greatest depth.
    fn jars(&self, host: &Host) -> usize {
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

/// The fewest tokens that the first step of a turn needs.
async fn least_tokens(
    host: &Host,
    conversation: &Conversation,
    words: &Words,
) -> Result<u64, ServiceError> {
    // Other faults become the outcome of the turn.
    let made = preview(host, spec_of(conversation, words)).await;
    Ok(made.map_or(0, |made| made.least_tokens()))
}

/// Checks that the caller's input fits the agent, before the turn is stored.
async fn fits(host: &Host, conversation: &Conversation, words: &Words) -> Result<(), ServiceError> {
    match preview(host, spec_of(conversation, words)).await {
        Err(RunError::Caller { message, images: true }) => Err(ServiceError::Images(message)),
        Err(RunError::Caller { message, images: false }) => Err(ServiceError::Caller(message)),
        // Other faults become the outcome of the turn.
        Ok(_) | Err(_) => Ok(()),
    }
}

fn spec_of(conversation: &Conversation, words: &Words) -> RunSpec {
    let mut spec = conversation.spec(words.text.clone());
    spec.history = words.brought.after(conversation.messages().to_vec());
    spec.context.clone_from(&words.context);
    spec.brought = Brought { history: Vec::new(), ..words.brought.clone() };
    spec
}

/// INV-282: a turn follows the turn `after`, the last of the session, and brings results for exactly that
/// turn's calls.
fn goes_on(request: &TurnRequest, past: Option<&Past>) -> Result<(), ServiceError> {
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
        let why = format!("no call `{}` waits for a result", Shown::clipped(&result.id, 64));
        return Err(ServiceError::Invalid(why));
    }
    Ok(())
}

fn ends_with_results(brought: &Brought) -> bool {
    matches!(brought.history.last(), Some(Message::Tool { .. }))
}

async fn check(request: &TurnRequest, tenant: &str) -> Result<(), ServiceError> {
    let invalid = |why: &str| Err(ServiceError::Invalid(why.to_owned()));
    request.brought.check(tenant).await?;
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
