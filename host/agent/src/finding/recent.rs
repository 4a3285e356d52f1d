//! Which tools and library entries a conversation has already used or shown.

use std::collections::BTreeSet;

use belljar_model::ChatMessage;

use crate::finding::answers::is_matched_note;

/// Most calls of a conversation that are considered: the latest ones.
const MAX_CALLS: usize = 200;

/// The names of the called tools, in the order of their first call. A tool that was called in an earlier turn
/// is loaded again, in the same order in each turn, so the list of tools only grows.
pub(crate) fn called_tools(history: &[ChatMessage]) -> Vec<&str> {
    let calls = history.iter().rev().filter_map(|message| match message {
        ChatMessage::Assistant { calls, .. } => Some(calls.iter().rev()),
        ChatMessage::User { .. } | ChatMessage::Tool { .. } => None,
    });
    let mut names: Vec<&str> = calls.flatten().take(MAX_CALLS).map(|call| &*call.name).collect();
    names.reverse();
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

/// Returns whether a note in the conversation has already shown this line.
pub(crate) fn was_shown(history: &[ChatMessage], line: &str) -> bool {
    history.iter().any(|message| match message {
        ChatMessage::User { text, .. } => is_matched_note(text) && text.contains(line),
        ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => false,
    })
}
