//! The running turns of one tenant.

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

/// The turns that run, by session.
#[derive(Debug, Default)]
pub(crate) struct RunningTurns {
    turns: Mutex<HashMap<String, RunningEntry>>,
    /// The sessions in which a look must end, with the number of waiting callers.
    wanted: Mutex<HashMap<String, usize>>,
    ended: Notify,
}

/// The purpose of a claim on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimPurpose {
    /// A running or waiting turn.
    Turn,
    /// A decision about the session's changes, or a change of its head: over in a moment.
    Review,
    /// A look at the changes, which ends when the session is claimed for another purpose.
    Look,
}

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
    /// The turn was cancelled before, and is about to end.
    Before,
    /// The turn does not run.
    NotRunning,
}

impl CancelOutcome {
    fn for_running(is_first: bool) -> Self {
        if is_first { Self::Cancelled } else { Self::Before }
    }

    /// Returns whether the turn ran, and ends.
    pub fn is_ending(self) -> bool {
        self != Self::NotRunning
    }
}

/// The holder of a session.
pub(crate) struct SessionHolder {
    pub(crate) turn: Box<RunningTurn>,
    pub(crate) purpose: ClaimPurpose,
    cancel: CancellationToken,
}

/// A session's only turn or review. Dropping it ends the claim.
pub(crate) struct SessionClaim {
    service: Arc<super::ServiceInner>,
    turn: RunningTurn,
    pub(crate) cancel: CancellationToken,
    /// Sends the outcome of the turn.
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
    /// The id of the session's last event before the turn.
    after: i64,
    /// Deletes the session after the last clone, if not to be kept.
    forget: Option<Arc<DeletionGuard>>,
}

impl RunningTurn {
    /// Waits for the end; the outcome is stored then. `None` = the turn was stopped with the host, and is
    /// resumed at the next start.
    pub async fn wait_for_end(&self) -> Option<Arc<Outcome>> {
        let mut ended = self.ended.clone();
        let ended = ended.wait_for(Option::is_some).await;
        ended.ok().and_then(|end| end.clone())
    }

    /// The events from the turn's first one. Events of later turns of the session follow.
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
        // INV-412: a caller that changes a session precedes all callers that only look, however many there
        // are.
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

    /// Returns whether a turn is stored to its end.
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
    /// Claims a session for one turn or review; an error holds the present claim.
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

    pub(crate) fn cancel_turn(&self, session: &str, by: &str) -> CancelOutcome {
        let turns = self.lock_turns();
        let turn = turns.get(session).filter(|entry| entry.purpose == ClaimPurpose::Turn);
        let Some(entry) = turn else { return CancelOutcome::NotRunning };
        let is_first = entry.control.run_cancelled_by().is_none();
        // Noted before the end, so that the canceller is known when the outcome is stored.
        entry.control.run_cancelled(by);
        entry.cancel.cancel();
        CancelOutcome::for_running(is_first)
    }

    pub(crate) fn cancel_subagent(&self, session: &str, path: &str, by: &str) -> CancelOutcome {
        let turns = self.lock_turns();
        let Some(entry) = turns.get(session) else { return CancelOutcome::NotRunning };
        let is_first = entry.control.cancelled_by(path).is_none();
        match entry.control.cancel_subagent(path, by) {
            true => CancelOutcome::for_running(is_first),
            false => CancelOutcome::NotRunning,
        }
    }

    pub(crate) fn list_turns(&self) -> Vec<RunningTurn> {
        let all = self.lock_turns();
        let turns = all.values().filter(|entry| entry.purpose == ClaimPurpose::Turn);
        let mut turns: Vec<_> = turns.map(|entry| entry.turn.clone()).collect();
        drop(all);
        turns.sort_by(|a, b| (a.started, &a.session).cmp(&(b.started, &b.session)));
        turns
    }

    /// Cancels the look or the review that has claimed a session, and returns the holder of the claim. A turn
    /// is not cancelled.
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

    /// Waits until no turn, review or look has a session, for example before the host stops.
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

/// A caller that waits for a session in order to change the session. While one waits, looks are refused.
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

    /// The turn is saved, and about to run; `after` is the id of its session's last event.
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
            // The turn may have been cancelled while waiting.
            if let Some(by) = entry.control.run_cancelled_by() {
                turn.state.control.run_cancelled(&by);
            }
            entry.control = Arc::clone(&turn.state.control);
        }
        self.turn.clone()
    }

    /// The deletion of the session, in a separate task.
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

    /// Notes that the turn has ended and is stored, so that a session that is not to be kept can be deleted.
    pub(crate) fn turn_ended(&self) {
        if let Some(forget) = &self.turn.forget {
            forget.turn_ended();
        }
    }

    /// Stores the handle with which `abort_all` stops the turn's task; does nothing if the turn has ended by
    /// now.
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
