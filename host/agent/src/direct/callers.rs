//! The callers of running calls: receivers of reports, and people to ask.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::events::{Event, EventKind};
use crate::tools::approval::asker::{Approval, Asker, Question, Said};

/// The receiver of one call's reports: done, of how many, and a text. Runs in the call's own task, so it must
/// return soon and must not wait. The sandbox bounds the number and length of reports.
pub type DirectProgress = Arc<dyn Fn(u64, Option<u64>, &str) + Send + Sync>;

/// The running calls.
#[derive(Default)]
pub(super) struct Callers(Mutex<State>);

#[derive(Default)]
struct State {
    calls: HashMap<String, Caller>,
    /// The call of each open question.
    asked: HashMap<u64, String>,
}

struct Caller {
    progress: Option<DirectProgress>,
    asker: Option<Arc<dyn Asker>>,
}

/// A running call, removed on drop.
pub(super) struct Entered {
    callers: Arc<Callers>,
    id: String,
}

impl Callers {
    /// Knows a call until the result is dropped.
    pub(super) fn enter(
        self: &Arc<Self>,
        id: &str,
        progress: Option<DirectProgress>,
        asker: Option<Arc<dyn Asker>>,
    ) -> Entered {
        self.state().calls.insert(id.to_owned(), Caller { progress, asker });
        Entered { callers: Arc::clone(self), id: id.to_owned() }
    }

    /// Passes progress to the client of the call, and notes the call of each question.
    pub(super) fn listen(&self, event: &Event) {
        match &event.kind {
            EventKind::ToolProgress { call_id, done, total, message, .. } => {
                let state = self.state();
                let progress = state.calls.get(first(call_id)).and_then(|it| it.progress.clone());
                drop(state);
                if let Some(progress) = progress {
                    progress(*done, *total, message);
                }
            }
            EventKind::PermissionAsked { id, call_id, .. } => {
                self.state().asked.insert(*id, first(call_id).to_owned());
            }
            EventKind::PermissionAnswered { id, .. } => {
                self.state().asked.remove(id);
            }
            _ => {}
        }
    }

    fn asker(&self, question: u64) -> Option<Arc<dyn Asker>> {
        let state = self.state();
        let call = state.asked.get(&question)?;
        state.calls.get(call)?.asker.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Asker for Callers {
    async fn ask(&self, question: Question<'_>) -> Approval {
        match self.asker(question.id) {
            Some(asker) => asker.ask(question).await,
            None => Approval::Nobody,
        }
    }

    fn concerns(&self, id: u64, call: &str) {
        self.state().asked.insert(id, first(call).to_owned());
    }

    async fn clarify(&self, id: u64, agent: &str, question: &str, options: &[String]) -> Said {
        let said = match self.asker(id) {
            Some(asker) => asker.clarify(id, agent, question, options).await,
            None => Said::Nobody,
        };
        self.state().asked.remove(&id);
        said
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut state = self.callers.state();
        state.calls.remove(&self.id);
        state.asked.retain(|_, call| *call != self.id);
    }
}

/// The id of the client's call that started a nested call. A nested id is the client's id and numbers, for
/// example `call-1.1.2` belongs to `call-1`.
fn first(call: &str) -> &str {
    call.split('.').next().unwrap_or(call)
}
