//! The turns of one tenant that run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_store::Store;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::types::RunningTurn;
use crate::record::hub::{Hub, Watch};
use belljar_agent::Control;
use belljar_agent::events::Counts;
use belljar_agent::{Outcome, RunStatus as Status, Usage};

/// The turns that run, by session.
#[derive(Debug, Default)]
pub(crate) struct Running {
    turns: Mutex<HashMap<String, Entry>>,
    ended: Notify,
}

#[derive(Debug)]
struct Entry {
    turn: RunningTurn,
    cancel: CancellationToken,
    control: Arc<Control>,
    task: Option<AbortHandle>,
}

/// A session's only turn. Dropping it ends the claim.
pub(crate) struct Claim {
    service: Arc<super::Inner>,
    session: String,
    pub(crate) cancel: CancellationToken,
}

/// How a turn ended.
#[derive(Debug, Clone)]
pub struct TurnEnd {
    /// How it ended.
    pub status: Status,
    /// The conclusion. Foreign text.
    pub text: String,
    /// Why it did not complete.
    pub error: Option<String>,
    /// What it used, subagents included.
    pub total: Usage,
    /// Its subagents.
    pub subagents: Counts,
}

/// A turn that is saved and runs. Dropping this does not end it.
#[derive(Debug)]
pub struct TurnHandle {
    /// The session.
    pub session: String,
    /// The agent's message.
    pub message: String,
    /// The person's message.
    pub user_message: String,
    pub(crate) ended: watch::Receiver<Option<Arc<TurnEnd>>>,
    pub(crate) store: Store,
    pub(crate) hub: Arc<Hub>,
    /// The id of the session's last event before it.
    pub(crate) after: i64,
}

impl TurnHandle {
    /// Waits for its end; its outcome is stored then. `None` = it was stopped with the host
    /// and goes on at the next start.
    pub async fn ended(&mut self) -> Option<Arc<TurnEnd>> {
        let ended = self.ended.wait_for(Option::is_some).await;
        ended.ok().and_then(|end| end.clone())
    }

    /// Its events, from its first one. Those of later turns of the session follow.
    pub fn watch(&self) -> Watch {
        self.hub.watch_behind(&self.store, &self.session, self.after)
    }
}

impl TurnEnd {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let mut subagents = Counts::default();
        count(outcome, &mut subagents);
        Self {
            status: outcome.status,
            text: outcome.output.clone(),
            error: outcome.error.as_ref().map(ToString::to_string),
            total: outcome.total,
            subagents,
        }
    }
}

fn count(outcome: &Outcome, counts: &mut Counts) {
    for child in &outcome.children {
        counts.total += 1;
        *counts.ended(child.outcome.status) += 1;
        count(&child.outcome, counts);
    }
}

impl Running {
    /// Takes a session for one turn; `None` = it has one.
    pub(crate) fn claim(service: &Arc<super::Inner>, session: &str, now: i64) -> Option<Claim> {
        let mut turns = service.running.turns();
        if turns.contains_key(session) {
            return None;
        }
        let cancel = CancellationToken::new();
        let turn = RunningTurn {
            session: session.to_owned(),
            message: String::new(),
            agent: String::new(),
            started: now,
        };
        let (control, cancelled) = (Arc::default(), cancel.clone());
        let entry = Entry { turn, cancel: cancelled, control, task: None };
        turns.insert(session.to_owned(), entry);
        drop(turns);
        Some(Claim { service: Arc::clone(service), session: session.to_owned(), cancel })
    }

    pub(crate) fn cancel(&self, session: &str) -> bool {
        let turns = self.turns();
        turns.get(session).inspect(|entry| entry.cancel.cancel()).is_some()
    }

    pub(crate) fn cancel_subagent(&self, session: &str, path: &str) -> bool {
        let control = self.turns().get(session).map(|entry| Arc::clone(&entry.control));
        control.is_some_and(|control| control.cancel(path))
    }

    pub(crate) fn list(&self) -> Vec<RunningTurn> {
        let mut turns: Vec<_> = self.turns().values().map(|entry| entry.turn.clone()).collect();
        turns.sort_by(|a, b| (a.started, &a.session).cmp(&(b.started, &b.session)));
        turns
    }

    /// Waits until none runs.
    pub(crate) async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.turns().is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// Stops all where they are.
    pub(crate) fn abort(&self) {
        for entry in self.turns().values() {
            if let Some(task) = &entry.task {
                task.abort();
            }
        }
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claim {
    /// The session.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// What is known of the turn now.
    pub(crate) fn is(&self, message: &str, agent: &str, control: &Arc<Control>) {
        if let Some(entry) = self.service.running.turns().get_mut(&self.session) {
            message.clone_into(&mut entry.turn.message);
            agent.clone_into(&mut entry.turn.agent);
            entry.control = Arc::clone(control);
        }
    }

    /// The task that runs the turn, unless it has ended by now.
    pub(crate) fn runs(service: &super::Inner, session: &str, task: AbortHandle) {
        if let Some(entry) = service.running.turns().get_mut(session) {
            entry.task = Some(task);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.service.running.turns().remove(&self.session);
        self.service.running.ended.notify_waiters();
    }
}
