//! The part of a session's past in a model's request: all turns, or a summary of the older turns with the
//! later turns unchanged. The store keeps all turns in either case.

use crate::record::past::Past;
use crate::record::rows::History;
use crate::record::turn::Turn;
use belljar_agent::frame;
use belljar_agent::message_bytes;
use belljar_model::Message;
use belljar_store::Compaction;

/// The assumed bytes of text in a token. English has about four and Chinese about three; three, because an
/// estimate that is too large is safer than one that is too small.
const BYTES_PER_TOKEN: u64 = 3;

impl Past {
    /// The messages of the past that the model is sent.
    pub fn messages(&self, history: History) -> Vec<Message> {
        let compaction = match history {
            History::Compacted => self.compaction.as_ref(),
            History::Whole => None,
        };
        messages(&self.turns, compaction)
    }
}

/// The summary, if any, and the turns after the summarised ones.
pub(crate) fn messages(turns: &[Turn], compaction: Option<&Compaction>) -> Vec<Message> {
    let mut messages = compaction.map_or_else(Vec::new, |kept| summary(&kept.text));
    for turn in turns.iter().filter(|turn| !stands_for(compaction, turn)) {
        add(&mut messages, turn);
    }
    messages
}

/// The messages of turns that follow each other.
pub(crate) fn joined(turns: &[Turn]) -> Vec<Message> {
    let mut messages = Vec::new();
    turns.iter().for_each(|turn| add(&mut messages, turn));
    messages
}

/// Appends a turn's messages, after the caller's results for the calls at the end of the turn before.
pub(crate) fn add(messages: &mut Vec<Message>, turn: &Turn) {
    turn.brought().answer(messages);
    messages.extend(turn.messages().iter().cloned());
}

/// A summary as messages in place of the summarised turns.
pub(crate) fn summary(text: &str) -> Vec<Message> {
    let noted = Message::said(frame::NOTED);
    vec![Message::user(frame::summary(text)), noted]
}

/// Returns whether the summary covers this turn.
pub(crate) fn stands_for(compaction: Option<&Compaction>, turn: &Turn) -> bool {
    compaction.is_some_and(|kept| turn.state.place <= kept.upto_sort_order)
}

/// Splits turns into the older ones, to be summarised, and the latest ones, with at most `kept` tokens
/// together.
pub(crate) fn split(turns: &[Turn], kept: u64) -> (&[Turn], &[Turn]) {
    let mut left = kept;
    let fits = |turn: &&Turn| {
        let fit = left.checked_sub(tokens(turn.messages()));
        left = fit.unwrap_or_default();
        fit.is_some()
    };
    let stay = turns.iter().rev().take_while(fits).count();
    turns.split_at(turns.len().saturating_sub(stay))
}

/// Tokens of messages, estimated from their bytes.
pub(crate) fn tokens(messages: &[Message]) -> u64 {
    tokens_of(messages.iter().map(message_bytes).sum())
}

/// The number of tokens estimated for `bytes`.
pub fn tokens_of(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The number of bytes estimated for `tokens`.
pub(crate) fn bytes_of(tokens: u64) -> u64 {
    tokens.saturating_mul(BYTES_PER_TOKEN)
}
