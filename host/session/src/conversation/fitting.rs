//! A turn whose request exceeds the model's context: its earlier turns are replaced by a summary, and the
//! request is sent again.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use belljar_agent::events::{EventEmitter, EventKind, EventSink};
use belljar_agent::{Host, Outcome, RunSpec, ShorterPast, Usage};
use belljar_model::ChatMessage;
use belljar_store::Store;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::conversation::compaction::{self, CompactProblem, CompactionInput, CompactionResult};
use crate::conversation::talk::Conversation;
use crate::record::rows::HistoryMode;

/// What a turn needs to summarise its session's earlier turns.
pub(crate) struct FittingContext<'a> {
    pub(crate) host: &'a Host,
    pub(crate) store: &'a Store,
    pub(crate) session: &'a str,
    /// The number of messages before the turn, without those that the caller brought.
    pub(crate) before: usize,
    /// True if the caller brought messages or results, which no summary may replace.
    pub(crate) has_brought: bool,
}

/// A turn that has ended, with the cost of a summary during the turn.
pub(crate) struct EndedTurn {
    pub(crate) outcome: Outcome,
    /// The usage of the summarising calls.
    pub(crate) used: Usage,
    /// The number of messages before the turn, after a possible summary.
    pub(crate) before: usize,
}

/// Runs a turn. If the model refuses a request as too long, the earlier turns are summarised once, and the
/// turn continues.
pub(crate) async fn run_fitted(
    place: FittingContext<'_>,
    conversation: &mut Conversation,
    spec: RunSpec,
    events: EventSink,
    cancel: CancellationToken,
) -> EndedTurn {
    let FittingContext { host, store, session, before, has_brought } = place;
    let can = !has_brought && before > 0 && conversation.history_mode() == HistoryMode::Compacted;
    let fitting = can.then(|| {
        let state =
            FittingState { conversation: conversation.clone(), done: CompactionResult::default() };
        Arc::new(FittingPast {
            host: host.clone(),
            store: store.clone(),
            session: session.to_owned(),
            state: Mutex::new(state),
        })
    });
    let shorter = fitting.clone().map(|it| it as Arc<dyn ShorterPast>);
    let spec = RunSpec { shorter, ..spec };
    let outcome = conversation.run_behind(host, spec, events, cancel).await;
    let done = match fitting {
        Some(fitting) => std::mem::take(&mut fitting.state.lock().await.done),
        None => CompactionResult::default(),
    };
    let used = done.used;
    let before = done.messages.as_ref().map_or(before, Vec::len);
    conversation.take_over(done);
    conversation.take_over_turn(&outcome);
    EndedTurn { outcome, used, before }
}

/// The earlier turns of a conversation, which can be summarised while a later turn runs.
struct FittingPast {
    host: Host,
    store: Store,
    session: String,
    state: Mutex<FittingState>,
}

/// The conversation behind a running turn, before and after its summary.
struct FittingState {
    /// The conversation as the turn's model was sent it.
    conversation: Conversation,
    /// The summary made during the turn, which the conversation uses after the turn.
    done: CompactionResult,
}

#[async_trait]
impl ShorterPast for FittingPast {
    async fn shorten_past(
        &self,
        events: &EventEmitter,
        cancel: &CancellationToken,
    ) -> Option<Vec<ChatMessage>> {
        let mut state = self.state.lock().await;
        let (host, store, session) = (&self.host, &self.store, &*self.session);
        let conversation = &state.conversation;
        let work = CompactionInput { host, store, session, conversation, events, cancel };
        let done = compaction::compact_now(&work).await;
        match &done.problem {
            None | Some(CompactProblem::Nothing) => {}
            Some(_) if cancel.is_cancelled() => {}
            Some(problem) => {
                let message = format!("the earlier turns could not be summarised: {problem}");
                work.emit_event(|| EventKind::Warning { message });
            }
        }
        let messages = done.messages.clone();
        state.done.used += done.used;
        if messages.is_some() {
            state.done.messages.clone_from(&messages);
        }
        state.conversation.take_over(done);
        messages
    }
}

impl fmt::Debug for FittingPast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FittingPast").field("session", &self.session).finish_non_exhaustive()
    }
}
