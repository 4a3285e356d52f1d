//! The part of a session's past in a model's request: all turns, or a summary of the older turns with the
//! later turns unchanged. The store keeps all turns in either case.

use crate::record::past::SessionPast;
use crate::record::rows::HistoryMode;
use crate::record::turn::Turn;
use belljar_agent::frame;
use belljar_agent::limits::BYTES_PER_TOKEN;
use belljar_agent::message_bytes;
use belljar_model::ChatMessage;
use belljar_store::Compaction;

impl SessionPast {
    /// The messages of the past that the model is sent.
    pub fn request_messages(&self, history: HistoryMode) -> Vec<ChatMessage> {
        let compaction = match history {
            HistoryMode::Compacted => self.compaction.as_ref(),
            HistoryMode::Whole => None,
        };
        messages_to_send(&self.turns, compaction)
    }
}

/// The messages to send: the summary, if any, and then the turns that it does not cover.
pub(crate) fn messages_to_send(
    turns: &[Turn],
    compaction: Option<&Compaction>,
) -> Vec<ChatMessage> {
    let mut messages = compaction.map_or_else(Vec::new, |kept| summary_messages(&kept.text));
    for turn in turns.iter().filter(|turn| !stands_for(compaction, turn)) {
        append_turn(&mut messages, turn);
    }
    messages
}

/// Joins the messages of consecutive turns.
pub(crate) fn join_turns(turns: &[Turn]) -> Vec<ChatMessage> {
    let mut messages = Vec::new();
    turns.iter().for_each(|turn| append_turn(&mut messages, turn));
    messages
}

/// Appends a turn's messages, after the caller's results for the calls that ended the turn before.
pub(crate) fn append_turn(messages: &mut Vec<ChatMessage>, turn: &Turn) {
    turn.brought_input().answer(messages);
    messages.extend(turn.messages().iter().cloned());
}

/// A summary as messages in place of the summarised turns.
pub(crate) fn summary_messages(text: &str) -> Vec<ChatMessage> {
    let noted = ChatMessage::from_assistant(frame::NOTED);
    vec![ChatMessage::from_user(frame::summary_message(text)), noted]
}

/// Returns whether the summary covers this turn.
pub(crate) fn stands_for(compaction: Option<&Compaction>, turn: &Turn) -> bool {
    compaction.is_some_and(|kept| turn.state.place <= kept.upto_sort_order)
}

/// Splits turns into the older ones, to be summarised, and the latest ones, with at most `kept` tokens
/// together.
pub(crate) fn split_turns(turns: &[Turn], kept: u64) -> (&[Turn], &[Turn]) {
    let mut left = kept;
    let fits = |turn: &&Turn| {
        let fit = left.checked_sub(estimate_tokens(turn.messages()));
        left = fit.unwrap_or_default();
        fit.is_some()
    };
    let stay = turns.iter().rev().take_while(fits).count();
    turns.split_at(turns.len().saturating_sub(stay))
}

/// The number of tokens of messages, estimated from their bytes.
pub(crate) fn estimate_tokens(messages: &[ChatMessage]) -> u64 {
    tokens_of(messages.iter().map(message_bytes).sum())
}

/// The number of tokens estimated for `bytes`.
pub(crate) fn tokens_of(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The number of bytes estimated for `tokens`.
pub(crate) fn bytes_of(tokens: u64) -> u64 {
    tokens.saturating_mul(BYTES_PER_TOKEN)
}
