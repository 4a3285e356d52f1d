//! The running turns of one tenant, and the claims that keep a session to one turn or review at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_store::{MessageStatus, Store, StoreError};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::forget::DeletionGuard;
use super::types::ServiceError;
use crate::record::hub::{EventWatch, WatchHub};
use crate::record::turn::{OpenState, Turn};
use belljar_agent::{Outcome, SubagentControl};

/// The tenant's running turns, looks and reviews, by session.
#[derive(Debug, Default)]
pub(crate) struct RunningTurns {
    turns: Mutex<HashMap<String, RunningEntry>>,
    /// For each session, the number of callers that wait for a running look to end.
    wanted: Mutex<HashMap<String, usize>>,
    ended: Notify,
}

/// The reason why a session is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimPurpose {
    /// A running or waiting turn.
    Turn,
    /// A decision about the session's changes, or a change of its head: over in a moment.
    Review,
    /// A read of the changes, which is ended when another caller claims the session for a turn or a decision.
    Look,
}

/// The present claim on a session, with the means to cancel its turn.
#[derive(Debug)]
struct RunningEntry {
    turn: RunningTurn,
    purpose: ClaimPurpose,
    cancel: CancellationToken,
    control: Arc<SubagentControl>,
    task: Option<AbortHandle>,
}

/// The effect of a request to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The turn is cancelled now.
    Cancelled,
    /// The turn was cancelled by an earlier request, and is about to end.
    Before,
    /// The turn does not run.
    NotRunning,
}

impl CancelOutcome {
    fn for_running(is_first: bool) -> Self {
        if is_first { Self::Cancelled } else { Self::Before }
    }

    /// Returns whether a turn was running, and is about to end.
    pub fn is_ending(self) -> bool {
        self != Self::NotRunning
    }
}

/// The present claim on a session, as the map of running turns has it.
pub(crate) struct SessionHolder {
    pub(crate) turn: Box<RunningTurn>,
    pub(crate) purpose: ClaimPurpose,
    cancel: CancellationToken,
}

/// The right to be the session's only turn or review. Dropping the claim ends it.
pub(crate) struct SessionClaim {
    service: Arc<super::ServiceInner>,
    turn: RunningTurn,
    pub(crate) cancel: CancellationToken,
    /// Sends the turn's outcome to those who wait for its end.
    pub(crate) end: watch::Sender<Option<Arc<Outcome>>>,
}

/// A running or waiting turn. Dropping `RunningTurn` does not end the turn.
#[derive(Debug, Clone)]
pub struct RunningTurn {
    /// The session.
    pub session: String,
    /// The agent's message; empty while the turn waits.
    pub message: String,
    /// The person's message; empty while the turn waits.
    pub user_message: String,
    /// The agent; empty while the turn waits.
    pub agent: String,
    /// The start, in milliseconds since 1970.
    pub started: i64,
    ended: watch::Receiver<Option<Arc<Outcome>>>,
    store: Store,
    hub: Arc<WatchHub>,
    /// The id of the session's last event before this turn; watchers begin after it.
    after: i64,
    /// Deletes the session when the last clone is dropped; `None` = the session is kept.
    forget: Option<Arc<DeletionGuard>>,
}

impl RunningTurn {
    /// Waits until the turn has ended and its outcome is stored. `None` = the turn was stopped with the host,
    /// and is resumed at the next start.
    pub async fn wait_for_end(&self) -> Option<Arc<Outcome>> {
        let mut ended = self.ended.clone();
        let ended = ended.wait_for(Option::is_some).await;
        ended.ok().and_then(|end| end.clone())
    }

    /// The events of the session, from this turn's first event on; events of later turns follow.
    pub fn watch_events(&self) -> EventWatch {
        self.hub.watch_behind(&self.store, &self.session, self.after)
    }
}

impl super::ServiceInner {
    /// Claims a session. A session whose turn is being stored, or whose changes are under review, is free in
    /// a moment, so this waits: a client that saw a turn's end finds the session free.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Busy`] if a turn runs or waits in the session.
    pub(super) async fn claim_session(
        self: &Arc<Self>,
        session: &str,
        purpose: ClaimPurpose,
    ) -> Result<SessionClaim, ServiceError> {
        // INV-412: a caller that changes a session goes before all callers that only look, however many wait.
        let _wanted =
            (purpose != ClaimPurpose::Look).then(|| ClaimWaiter::for_session(self, session));
        loop {
            if purpose == ClaimPurpose::Look && self.running.lock_waiters().contains_key(session) {
                return Err(ServiceError::Busy(session.to_owned()));
            }
            let held = match RunningTurns::claim_session(self, session, self.now_millis(), purpose)
            {
                Ok(claim) => return Ok(claim),
                Err(held) => held,
            };
            let is_over = match held.purpose {
                ClaimPurpose::Review => true,
                ClaimPurpose::Look if purpose == ClaimPurpose::Look => true,
                ClaimPurpose::Look => {
                    held.cancel.cancel();
                    true
                }
                ClaimPurpose::Turn => self.is_stored(&held.turn).await?,
            };
            if !is_over {
                return Err(ServiceError::Busy(session.to_owned()));
            }
            held.turn.wait_for_end().await;
        }
    }

    /// Returns whether the store has the turn's outcome already.
    async fn is_stored(&self, turn: &RunningTurn) -> Result<bool, ServiceError> {
        if turn.message.is_empty() {
            return Ok(false);
        }
        match self.store.read_message(&turn.session, &turn.message).await {
            Ok(row) => Ok(row.status != MessageStatus::InFlight),
            Err(StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl RunningTurns {
    /// Claims a session for a turn, look or review. The error is the claim that the session has at present.
    pub(crate) fn claim_session(
        service: &Arc<super::ServiceInner>,
        session: &str,
        now: i64,
        purpose: ClaimPurpose,
    ) -> Result<SessionClaim, SessionHolder> {
        let mut turns = service.running.lock_turns();
        if let Some(RunningEntry { turn, purpose, cancel, .. }) = turns.get(session) {
            let (turn, cancel) = (Box::new(turn.clone()), cancel.clone());
            return Err(SessionHolder { turn, purpose: *purpose, cancel });
        }
        let (end, ended) = watch::channel(None);
        let turn = RunningTurn {
            session: session.to_owned(),
            message: String::new(),
            user_message: String::new(),
            agent: String::new(),
            started: now,
            ended,
            store: service.store.clone(),
            hub: Arc::clone(&service.hub),
            after: 0,
            forget: None,
        };
        let cancel = CancellationToken::new();
        let (own, cancelled) = (turn.clone(), cancel.clone());
        let control = Arc::default();
        let entry = RunningEntry { turn: own, purpose, cancel: cancelled, control, task: None };
        turns.insert(session.to_owned(), entry);
        drop(turns);
        Ok(SessionClaim { service: Arc::clone(service), turn, cancel, end })
    }

    /// Cancels the turn of a session, and notes `by` as the canceller if the turn had none.
    pub(crate) fn cancel_turn(&self, session: &str, by: &str) -> CancelOutcome {
        let turns = self.lock_turns();
        let turn = turns.get(session).filter(|entry| entry.purpose == ClaimPurpose::Turn);
        let Some(entry) = turn else { return CancelOutcome::NotRunning };
        let is_first = entry.control.run_cancelled_by().is_none();
        // Noted before the turn ends, so that the canceller is known when the outcome is stored.
        entry.control.run_cancelled(by);
        entry.cancel.cancel();
        CancelOutcome::for_running(is_first)
    }

    /// Cancels the subagent with this path in the session's turn, and notes `by` as its canceller.
    pub(crate) fn cancel_subagent(&self, session: &str, path: &str, by: &str) -> CancelOutcome {
        let turns = self.lock_turns();
        let Some(entry) = turns.get(session) else { return CancelOutcome::NotRunning };
        let is_first = entry.control.cancelled_by(path).is_none();
        match entry.control.cancel_subagent(path, by) {
            true => CancelOutcome::for_running(is_first),
            false => CancelOutcome::NotRunning,
        }
    }

    /// The running and waiting turns, in the order of their starts.
    pub(crate) fn list_turns(&self) -> Vec<RunningTurn> {
        let all = self.lock_turns();
        let turns = all.values().filter(|entry| entry.purpose == ClaimPurpose::Turn);
        let mut turns: Vec<_> = turns.map(|entry| entry.turn.clone()).collect();
        drop(all);
        turns.sort_by(|a, b| (a.started, &a.session).cmp(&(b.started, &b.session)));
        turns
    }

    /// Cancels the look or the review that has claimed a session, and returns a handle to wait for its end. A
    /// turn is not cancelled.
    pub(crate) fn end_review(&self, session: &str) -> Option<RunningTurn> {
        let turns = self.lock_turns();
        let entry = turns.get(session).filter(|entry| entry.purpose != ClaimPurpose::Turn)?;
        entry.cancel.cancel();
        Some(entry.turn.clone())
    }

    /// Cancels all looks and reviews, see [`ClaimPurpose`].
    pub(crate) fn end_reviews(&self) {
        let turns = self.lock_turns();
        let reviews = turns.values().filter(|entry| entry.purpose != ClaimPurpose::Turn);
        reviews.for_each(|entry| entry.cancel.cancel());
    }

    /// Waits until no session is claimed by a turn, review or look, for example before the host stops.
    pub(crate) async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.lock_turns().is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// Stops all turns, looks and reviews without waiting for their ends.
    pub(crate) fn abort_all(&self) {
        for entry in self.lock_turns().values() {
            match (&entry.task, entry.purpose) {
                (Some(task), _) => task.abort(),
                (None, ClaimPurpose::Look | ClaimPurpose::Review) => entry.cancel.cancel(),
                (None, ClaimPurpose::Turn) => {}
            }
        }
    }

    fn lock_waiters(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_turns(&self) -> MutexGuard<'_, HashMap<String, RunningEntry>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller that waits to change a session. While one exists, new looks at the session are refused.
struct ClaimWaiter {
    service: Arc<super::ServiceInner>,
    session: String,
}

impl ClaimWaiter {
    fn for_session(service: &Arc<super::ServiceInner>, session: &str) -> Self {
        *service.running.lock_waiters().entry(session.to_owned()).or_default() += 1;
        Self { service: Arc::clone(service), session: session.to_owned() }
    }
}

impl Drop for ClaimWaiter {
    fn drop(&mut self) {
        let mut wanted = self.service.running.lock_waiters();
        if let Some(many) = wanted.get_mut(&self.session) {
            *many -= 1;
            if *many == 0 {
                wanted.remove(&self.session);
            }
        }
    }
}

impl SessionClaim {
    pub(crate) fn session_id(&self) -> &str {
        &self.turn.session
    }

    /// Notes that the claim's turn is stored and about to run. `after` = the id of the session's last event.
    pub(crate) fn attach_turn(
        &mut self,
        turn: &Turn<OpenState>,
        agent: String,
        after: i64,
    ) -> RunningTurn {
        self.turn.message.clone_from(&turn.message);
        self.turn.user_message.clone_from(&turn.asked);
        self.turn.agent = agent;
        self.turn.after = after;
        self.turn.forget = turn.is_forgotten().then(|| self.deletion_guard());
        if let Some(entry) = self.service.running.lock_turns().get_mut(&self.turn.session) {
            entry.turn = self.turn.clone();
            // The turn may have been cancelled while it waited for a place.
            if let Some(by) = entry.control.run_cancelled_by() {
                turn.state.control.run_cancelled(&by);
            }
            entry.control = Arc::clone(&turn.state.control);
        }
        self.turn.clone()
    }

    /// Makes the guard that deletes the session in a new task, once the turn has ended and no handle is left.
    fn deletion_guard(&self) -> Arc<DeletionGuard> {
        let (service, session) = (Arc::clone(&self.service), self.turn.session.clone());
        DeletionGuard::new(move || {
            let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
            let (service, session) = (super::Service(Arc::clone(&service)), session.clone());
            runtime.spawn(async move {
                if let Err(error) = service.delete_session(&session).await {
                    tracing::warn!(
                        target: "belljar::session",
                        %session,
                        "a session that was not to be kept is not deleted: {error}"
                    );
                }
            });
        })
    }

    /// Notes that the turn has ended and is stored, so that a session with `forget` can be deleted.
    pub(crate) fn turn_ended(&self) {
        if let Some(forget) = &self.turn.forget {
            forget.turn_ended();
        }
    }

    /// Stores the handle with which `abort_all` stops the turn's task. Does nothing if the turn has ended
    /// already.
    pub(crate) fn attach_task(service: &super::ServiceInner, session: &str, task: AbortHandle) {
        if let Some(entry) = service.running.lock_turns().get_mut(session) {
            entry.task = Some(task);
        }
    }
}

impl Drop for SessionClaim {
    fn drop(&mut self) {
        self.service.running.lock_turns().remove(&self.turn.session);
        self.service.running.ended.notify_waiters();
    }
}
