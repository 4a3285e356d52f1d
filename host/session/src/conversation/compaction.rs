//! Shortens a history to a model's context: a model summarises the older turns, and the latest turns stay
//! unchanged. The full text stays in the store.
//!
//! A summary is a stranger's text like any answer of a model, so it is framed and has no right. If no summary
//! can be made, the whole history is sent to the model, and a warning names the reason.

use std::sync::Arc;
use std::time::Duration;

use belljar_model::{
    CallContext, ChatMessage, ChatRequest, ModelError, ModelReply, ModelRole, ModelTimeouts,
    ResolvedModel, StopReason,
};
use belljar_policy::Meter;
use belljar_store::{Compaction, Store, StoreError};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::conversation::history;
use crate::conversation::material;
use crate::conversation::talk::Conversation;
use crate::record::past::{SessionPast, load_past};
use crate::record::rows::HistoryMode;
use belljar_agent::Host;
use belljar_agent::Usage;
use belljar_agent::events::{EventEmitter, EventKind};
use belljar_agent::limits::truncate_str;
use belljar_agent::model_of;
use belljar_agent::trace;
use belljar_agent::{PartialAnswer, count_usage, cut_off, hold_tokens, prompt_bytes};

/// The share of the context, in percent, above which a history is summarised by default, because the rest is
/// for instructions, tools, the turn and the answer.
const DEFAULT_PERCENT: u64 = 60;

/// The divisor of the share: a third of it is for the latest turns, which stay unchanged.
const KEPT_PART: u64 = 3;

/// The part of the summarising model's context for one piece of history, in percent.
const MATERIAL_PERCENT: u64 = 70;

/// The limits of a summary in tokens; within them, a summary has a tenth of the context.
const SUMMARY_TOKENS: std::ops::RangeInclusive<u64> = 256..=4_096;

/// Most bytes of a summary for each token of its limit; a longer summary is cut.
const MAX_BYTES_PER_TOKEN: u64 = 5;

/// The context in tokens that is assumed when a person asks for a summary and the model's context is unknown.
const UNKNOWN_CONTEXT: u64 = 32_768;

/// Most calls of a model for one summary. A longer history would exceed the model's context more than ten
/// times.
const MAX_CALLS: usize = 16;

/// The time limit of one call of the summarising model.
const CALL_TIME: Duration = Duration::from_secs(120);

/// The agent's name of summarising calls in transcripts.
const CALLER: &str = "compaction";

/// A conversation whose history may be summarised.
pub(crate) struct CompactionInput<'a> {
    pub(crate) host: &'a Host,
    pub(crate) store: &'a Store,
    pub(crate) session: &'a str,
    pub(crate) conversation: &'a Conversation,
    pub(crate) events: &'a EventEmitter,
    pub(crate) cancel: &'a CancellationToken,
}

/// The result of a compaction.
#[derive(Debug, Default)]
pub(crate) struct CompactionResult {
    /// The new history; `None` = unchanged.
    pub(crate) messages: Option<Vec<ChatMessage>>,
    /// The number of turns that the new summary covers and an earlier summary did not.
    pub(crate) turns: usize,
    /// The usage of the summarising calls, also if no summary was made.
    pub(crate) used: Usage,
    /// The reason why no summary was made.
    pub(crate) problem: Option<CompactProblem>,
}

/// The reason why a history was not summarised.
#[derive(Debug, thiserror::Error)]
pub enum CompactProblem {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model failed.
    #[error("the model `{model}` failed: {source}")]
    Model {
        /// The model.
        model: String,
        /// The reason.
        source: ModelError,
    },
    /// No model is configured for summaries.
    #[error("{0}")]
    NoModel(String),
    /// The model's answer cannot be used as a summary, for example because it is not shorter than the
    /// history.
    #[error("the model `{0}` gave no text, or one that is no shorter than the turns")]
    NoSummary(String),
    /// The history is too large even for the summarising model.
    #[error("the history is too large to be summarised in {MAX_CALLS} calls")]
    TooLarge,
    /// The store's messages differ from those that were sent to the model, so that a stored summary would be
    /// wrong.
    #[error("an earlier turn is not in the store")]
    NotStored,
    /// The session's budget of tokens or steps is used up.
    #[error("the budget is used up")]
    Budget,
    /// No turn is left to summarise.
    #[error("no turn is left to summarise")]
    Nothing,
}

/// How much of a model's context a history may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ContextRoom {
    /// The model's whole context, in tokens.
    context: u64,
    /// The room for the latest turns, which stay unchanged.
    kept: u64,
}

/// Summarises the older turns if the history has grown beyond its share of the model's context.
pub(crate) async fn compact_if_due(work: &CompactionInput<'_>) -> CompactionResult {
    let Some(room) = room_if_due(work.host, work.conversation) else {
        return CompactionResult::default();
    };
    let done = compact_history(work, room).await;
    // A person who stopped the turn needs no reason for the missing summary.
    if let Some(problem) = done.problem.as_ref().filter(|_| !work.cancel.is_cancelled()) {
        let message = format!("the history is sent whole: {problem}");
        work.emit_event(|| EventKind::Warning { message });
    }
    done
}

/// Summarises all turns, whatever their size.
pub(crate) async fn compact_now(work: &CompactionInput<'_>) -> CompactionResult {
    let context = context_tokens(work.host, work.conversation).unwrap_or(UNKNOWN_CONTEXT);
    compact_history(work, ContextRoom { context, kept: 0 }).await
}

/// Returns whether the history is so long that the next turn begins with its summary.
pub(crate) fn is_due(host: &Host, conversation: &Conversation) -> bool {
    room_if_due(host, conversation).is_some()
}

/// The context sizes for a summary if the history is too large for its model; `None` = no summary is needed,
/// wanted or possible.
fn room_if_due(host: &Host, conversation: &Conversation) -> Option<ContextRoom> {
    let percent = host.settings.compact_at.unwrap_or(DEFAULT_PERCENT);
    if percent == 0 || conversation.history_mode() == HistoryMode::Whole {
        return None;
    }
    let context = context_tokens(host, conversation)?;
    let most = context.saturating_mul(percent) / 100;
    let too_large = history::estimate_tokens(conversation.messages()) > most;
    too_large.then_some(ContextRoom { context, kept: most / KEPT_PART })
}

/// The context size of the conversation's model, in tokens; `None` = the model or the size is unknown.
fn context_tokens(host: &Host, conversation: &Conversation) -> Option<u64> {
    let model = model_of(host, conversation.model(), conversation.agent(), None);
    model.ok()?.context_tokens
}

/// Summarises the turns that do not fit into `room`, and returns the new history or the reason why there is
/// none. The usage is in the result in both cases.
async fn compact_history(work: &CompactionInput<'_>, room: ContextRoom) -> CompactionResult {
    let mut done = CompactionResult::default();
    match summarise_turns(work, room, &mut done).await {
        Ok(messages) => done.messages = Some(messages),
        Err(problem) => done.problem = Some(problem),
    }
    done
}

/// Makes and stores a summary. Steps: compares the store with the conversation; splits the turns into older
/// ones and the latest; sends the older ones, piece by piece, to the model for summaries; stores the last
/// summary if it is shorter.
async fn summarise_turns(
    work: &CompactionInput<'_>,
    room: ContextRoom,
    done: &mut CompactionResult,
) -> Result<Vec<ChatMessage>, CompactProblem> {
    let CompactionInput { host, store, session, conversation, .. } = *work;
    let SessionPast { turns, compaction: before, .. } =
        load_past(store, store.read_session(session).await?).await?;
    if history::messages_to_send(&turns, before.as_ref()) != conversation.messages() {
        return Err(CompactProblem::NotStored);
    }
    let first = turns.iter().take_while(|turn| history::stands_for(before.as_ref(), turn)).count();
    let open = turns.get(first..).unwrap_or_default();
    let (older, kept) = history::split_turns(open, room.kept);
    let last = older.last().ok_or(CompactProblem::Nothing)?;
    let tokens_before = history::estimate_tokens(conversation.messages());
    let model = host.models.resolve_model(ModelRole::Compaction.name(), None);
    let model = model.map_err(|error| CompactProblem::NoModel(error.public_message()))?;
    done.turns = older.len();
    work.emit_event(|| EventKind::HistoryCompacting {
        turns: older.len(),
        model: model.model.id().to_owned(),
    });
    let mut text = before.map_or_else(String::new, |before| before.text);
    let reads = model.context_tokens.unwrap_or(room.context);
    let most = (room.context / 10).clamp(*SUMMARY_TOKENS.start(), *SUMMARY_TOKENS.end());
    // Most of the context is for the piece of history. The rest is for the earlier summary, the instructions
    // and the answer.
    let limit = history::bytes_of(reads.saturating_mul(MATERIAL_PERCENT) / 100);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let pieces = material::split_messages(history::join_turns(older).iter(), limit);
    if pieces.len() > MAX_CALLS {
        return Err(CompactProblem::TooLarge);
    }
    for (piece, step) in pieces.iter().zip(1..) {
        let request = ChatRequest {
            system: vec![material::INSTRUCTIONS.to_owned()],
            messages: vec![ChatMessage::from_user(material::summary_prompt(&text, piece))],
            max_output_tokens: Some(most),
            ..ChatRequest::default()
        };
        text = work.ask_model(&model, &request, step, &mut done.used).await?;
    }
    let mut messages = history::summary_messages(&text);
    kept.iter().for_each(|turn| history::append_turn(&mut messages, turn));
    let tokens_after = history::estimate_tokens(&messages);
    if tokens_after >= tokens_before {
        return Err(CompactProblem::NoSummary(model.model.id().to_owned()));
    }
    let created = host.clock.now().as_millisecond();
    let compaction = Compaction { upto_sort_order: last.state.place, text, created };
    store.save_compaction(session, &compaction).await?;
    work.emit_event(|| EventKind::HistoryCompacted {
        turns: older.len(),
        tokens_before,
        tokens_after,
        used: done.used,
    });
    Ok(messages)
}

impl CompactionInput<'_> {
    /// Makes one call of the summarising model, and returns the summary. The call is billed even if it fails.
    async fn ask_model(
        &self,
        model: &ResolvedModel,
        request: &ChatRequest,
        step: u64,
        used: &mut Usage,
    ) -> Result<String, CompactProblem> {
        let budget = self.conversation.budget();
        let is_over = budget.exhausted_limit(Meter::Tokens).is_some();
        let prompt = prompt_bytes(request);
        let Ok(held) = hold_tokens(budget, prompt, 0) else { return Err(CompactProblem::Budget) };
        if is_over || budget.reserve(Meter::Steps, 1).is_err() {
            return Err(CompactProblem::Budget);
        }
        let timeouts = ModelTimeouts { total: Some(CALL_TIME), ..ModelTimeouts::default() };
        let cancel = self.cancel.clone();
        let cx = CallContext { step, timeouts, cancel, ..CallContext::new(CALLER) };
        let span = trace::step_span(model, step);
        let mut partial = PartialAnswer::default();
        let mut listen = |event| partial.on_event(&event);
        let asking = async {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => Err(ModelError::Cancelled),
                reply = model.model.chat(request, &cx, &mut listen) => reply,
            }
        };
        let answered = asking.instrument(span.clone()).await;
        // From here on the real usage is billed, so the reserved estimate is returned.
        drop(held);
        let reply = match answered {
            Ok(reply) => reply,
            Err(source) => {
                trace::record_model_error(&span, &source);
                match partial.begun {
                    false => budget.refund(Meter::Steps, 1),
                    // A cut-off answer was also read and written by the provider, so its tokens are billed.
                    true => self.bill_reply(prompt, &cut_off(prompt, partial.bytes), used),
                }
                return Err(CompactProblem::Model { model: model.model.id().to_owned(), source });
            }
        };
        trace::record_reply(&span, &reply);
        self.bill_reply(prompt, &reply, used);
        let text = text_of(reply, request.max_output_tokens);
        text.ok_or_else(|| CompactProblem::NoSummary(model.model.id().to_owned()))
    }

    /// Bills an answer of the summarising model to the conversation's budget, and adds it to `used`.
    fn bill_reply(&self, prompt: u64, reply: &ModelReply, used: &mut Usage) {
        let usage = count_usage(prompt, reply);
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        // If this exceeds the limit, the error appears when the turn begins.
        let _ = self.conversation.budget().bill(Meter::Tokens, tokens);
        *used += Usage { steps: 1, ..usage };
    }

    pub(crate) fn emit_event(&self, make: impl FnOnce() -> EventKind) {
        let agent: Arc<str> = self.conversation.agent().id.slug.as_str().into();
        self.events.emit(&agent, make);
    }
}

/// The summary in an answer of the model; `None` = the answer has no text. A cut-off summary ends with a
/// note.
fn text_of(reply: ModelReply, most: Option<u64>) -> Option<String> {
    let text = reply.text.trim();
    if text.is_empty() || reply.stop == StopReason::Refusal {
        return None;
    }
    // Cut here as well, because some servers ignore the requested limit.
    let most = most.map_or(usize::MAX, |tokens| {
        usize::try_from(tokens.saturating_mul(MAX_BYTES_PER_TOKEN)).unwrap_or(usize::MAX)
    });
    let kept = truncate_str(text, most);
    let whole = kept.len() == text.len() && reply.stop != StopReason::MaxTokens;
    Some(if whole { kept.to_owned() } else { format!("{kept}\n[the summary is cut here]") })
}
