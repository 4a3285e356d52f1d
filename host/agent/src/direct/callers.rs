//! The running calls of a client: the receivers of progress, and the people to ask.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::events::{Event, EventKind};
use crate::tools::approval::asker::{
    Approval, ApprovalQuestion, Asker, ClarificationAnswer, ClarificationQuestion,
};

/// Receives the progress of a call: the amount done, the total if known, and a text. It runs in the call's
/// own task, so it must return soon and must not wait. The sandbox bounds the number and length of reports.
pub type DirectProgress = Arc<dyn Fn(u64, Option<u64>, &str) + Send + Sync>;

/// The running calls of a client.
#[derive(Default)]
pub(super) struct RunningCalls(Mutex<RunningCallsState>);

#[derive(Default)]
struct RunningCallsState {
    calls: HashMap<String, ClientCall>,
    /// For each open question, the id of the call that it belongs to.
    asked: HashMap<u64, String>,
}

struct ClientCall {
    progress: Option<DirectProgress>,
    asker: Option<Arc<dyn Asker>>,
}

/// A running call, which is removed on drop.
pub(super) struct EnteredCall {
    callers: Arc<RunningCalls>,
    id: String,
}

impl RunningCalls {
    /// Adds a call until the returned value is dropped.
    pub(super) fn enter_call(
        self: &Arc<Self>,
        id: &str,
        progress: Option<DirectProgress>,
        asker: Option<Arc<dyn Asker>>,
    ) -> EnteredCall {
        self.lock_state().calls.insert(id.to_owned(), ClientCall { progress, asker });
        EnteredCall { callers: Arc::clone(self), id: id.to_owned() }
    }

    /// Passes the progress of a call to its client, and records which call a question belongs to.
    pub(super) fn forward_event(&self, event: &Event) {
        match &event.kind {
            EventKind::ToolProgress { call_id, done, total, message, .. } => {
                let state = self.lock_state();
                let progress =
                    state.calls.get(outermost_call(call_id)).and_then(|it| it.progress.clone());
                drop(state);
                if let Some(progress) = progress {
                    progress(*done, *total, message);
                }
            }
            EventKind::PermissionAsked { id, call_id, .. } => {
                self.lock_state().asked.insert(*id, outermost_call(call_id).to_owned());
            }
            EventKind::PermissionAnswered { id, .. } => {
                self.lock_state().asked.remove(id);
            }
            _ => {}
        }
    }

    fn find_asker(&self, question: u64) -> Option<Arc<dyn Asker>> {
        let state = self.lock_state();
        let call = state.asked.get(&question)?;
        state.calls.get(call)?.asker.clone()
    }

    fn lock_state(&self) -> MutexGuard<'_, RunningCallsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Asker for RunningCalls {
    async fn ask_approval(&self, question: ApprovalQuestion<'_>) -> Approval {
        match self.find_asker(question.id) {
            Some(asker) => asker.ask_approval(question).await,
            None => Approval::Nobody,
        }
    }

    fn link_question(&self, id: u64, call: &str) {
        self.lock_state().asked.insert(id, outermost_call(call).to_owned());
    }

    async fn ask_clarification(&self, question: ClarificationQuestion<'_>) -> ClarificationAnswer {
        let said = match self.find_asker(question.id) {
            Some(asker) => asker.ask_clarification(question).await,
            None => ClarificationAnswer::Nobody,
        };
        self.lock_state().asked.remove(&question.id);
        said
    }
}

impl Drop for EnteredCall {
    fn drop(&mut self) {
        let mut state = self.callers.lock_state();
        state.calls.remove(&self.id);
        state.asked.retain(|_, call| *call != self.id);
    }
}

/// The id of the client's call that started a nested call. A nested id is the client's id and numbers, for
/// example `call-1.1.2` belongs to `call-1`.
fn outermost_call(call: &str) -> &str {
    call.split('.').next().unwrap_or(call)
}
