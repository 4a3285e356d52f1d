//! The entries of a conversation, from either API, and their use in a turn.
//!
//! | entry | becomes |
//! | --- | --- |
//! | `system`, `developer`, `instructions` | context beside the task: a caller's text, in a person's message, never a part of the agent's own prompt |
//! | the last messages of the user | the task |
//! | all entries before | the history, unchanged |
//! | results after the last call | the results that a turn waits for, or the end of the history |

use std::collections::{HashMap, HashSet};

use belljar_agent::{ChatMessage, Image, ToolCall, ToolResult};

use crate::http::problem::Problem;
use crate::openai::content::MessageContent;
use crate::openai::params::invalid_value;

/// One entry of a conversation, from either API.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ConversationEntry {
    /// A text with the role `system` or `developer`.
    Context(String),
    /// A message of the user.
    User(MessageContent),
    /// A text of the agent, and its calls of the caller's tools.
    Assistant { text: String, calls: Vec<ToolCall> },
    /// The result of a call of a caller's tool.
    Result { id: String, content: String },
}

/// The entries of one request, sorted by their use in a turn.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SortedEntries {
    /// The texts with the role `system` or `developer`.
    pub(crate) context: Option<String>,
    /// The conversation before the results and the task.
    pub(crate) history: Vec<ChatMessage>,
    /// The results at the end of the conversation, each with the id of its call.
    pub(crate) results: Vec<(String, String)>,
    /// The task; empty if there are only results or images.
    pub(crate) task: String,
    /// The images that belong to the task.
    pub(crate) images: Vec<Image>,
}

/// Splits a request's entries into context, history, results, and the task with its images. `param` is the
/// name of the entries' field in the request, for error texts, for example `messages`.
pub(crate) fn sort_entries(
    entries: Vec<ConversationEntry>,
    param: &str,
) -> Result<SortedEntries, Problem> {
    let mut context = Vec::new();
    let mut rest = Vec::with_capacity(entries.len());
    for entry in entries {
        match entry {
            ConversationEntry::Context(text) => context.push(text),
            other => rest.push(other),
        }
    }
    let is_user = |entry: &&ConversationEntry| matches!(entry, ConversationEntry::User(_));
    let is_result = |entry: &&ConversationEntry| matches!(entry, ConversationEntry::Result { .. });
    let task: Vec<ConversationEntry> = split_end(&mut rest, is_user);
    let last: Vec<ConversationEntry> = split_end(&mut rest, is_result);
    if task.is_empty() && last.is_empty() {
        return Err(invalid_value(
            param,
            "the last entry has to be the user's, or a result of a tool",
        )
        .with_hint("send what the agent should answer"));
    }
    let contents = task.into_iter().filter_map(|entry| match entry {
        ConversationEntry::User(content) => Some((content.text, content.images)),
        ConversationEntry::Context(_)
        | ConversationEntry::Assistant { .. }
        | ConversationEntry::Result { .. } => None,
    });
    let (texts, images): (Vec<_>, Vec<_>) = contents.unzip();
    let (task, images) = (texts.join("\n\n"), images.concat());
    let results: Vec<_> = last.into_iter().filter_map(into_result_pair).collect();
    if task.trim().is_empty() && images.is_empty() && results.is_empty() {
        return Err(invalid_value(param, "the user's words are blank"));
    }
    let history = build_history(rest, param)?;
    if let Some(ChatMessage::Assistant { calls, .. }) = history.last()
        && !calls.is_empty()
    {
        // The results must match the calls even when no stored turn waits for them.
        pair_results(calls, results.clone(), param)?;
    }
    let context = Some(context.join("\n\n")).filter(|text| !text.trim().is_empty());
    Ok(SortedEntries { context, history, results, task, images })
}

impl SortedEntries {
    /// Moves the results at the end into the history, because no stored turn waits for them.
    pub(crate) fn close_results(mut self, param: &str) -> Result<Self, Problem> {
        let results = std::mem::take(&mut self.results);
        let calls = match self.history.last() {
            Some(ChatMessage::Assistant { calls, .. }) => calls.clone(),
            Some(ChatMessage::User { .. } | ChatMessage::Tool { .. }) | None => Vec::new(),
        };
        if !results.is_empty() {
            self.history.push(ChatMessage::Tool { results: pair_results(&calls, results, param)? });
        }
        Ok(self)
    }
}

/// The id and text of a result; `None` for every other entry.
fn into_result_pair(entry: ConversationEntry) -> Option<(String, String)> {
    match entry {
        ConversationEntry::Result { id, content } => Some((id, content)),
        ConversationEntry::Context(_)
        | ConversationEntry::User(_)
        | ConversationEntry::Assistant { .. } => None,
    }
}

/// Removes and returns the entries at the end for which `is_kind` is true.
fn split_end(
    entries: &mut Vec<ConversationEntry>,
    is: impl Fn(&&ConversationEntry) -> bool,
) -> Vec<ConversationEntry> {
    let count = entries.iter().rev().take_while(is).count();
    entries.split_off(entries.len() - count)
}

/// Converts entries to messages of the history. Every call must be followed by its result, except for calls
/// of the last entry.
fn build_history(
    entries: Vec<ConversationEntry>,
    param: &str,
) -> Result<Vec<ChatMessage>, Problem> {
    let mut messages: Vec<ChatMessage> = Vec::new();
    let mut entries = entries.into_iter().peekable();
    while let Some(entry) = entries.next() {
        match entry {
            ConversationEntry::Context(_) => {}
            ConversationEntry::User(content) => push_user(&mut messages, content),
            ConversationEntry::Result { id, .. } => return Err(no_call(&id, param)),
            ConversationEntry::Assistant { text, calls } if calls.is_empty() => {
                if !text.trim().is_empty() {
                    push_assistant(&mut messages, text);
                }
            }
            ConversationEntry::Assistant { text, mut calls } => {
                // The Responses API has one item for each call; consecutive calls are one step of the model.
                while let Some(ConversationEntry::Assistant { text: more, calls: others }) =
                    entries.next_if(is_calls_alone)
                {
                    debug_assert!(more.is_empty(), "looked at above");
                    calls.extend(others);
                }
                let mut results = Vec::new();
                while let Some(next) =
                    entries.next_if(|next| matches!(next, ConversationEntry::Result { .. }))
                {
                    results.extend(into_result_pair(next));
                }
                let is_last = entries.peek().is_none();
                messages.push(ChatMessage::Assistant {
                    text,
                    calls: calls.clone(),
                    reasoning: None,
                });
                if !(is_last && results.is_empty()) {
                    messages
                        .push(ChatMessage::Tool { results: pair_results(&calls, results, param)? });
                }
            }
        }
    }
    Ok(messages)
}

fn is_calls_alone(entry: &ConversationEntry) -> bool {
    matches!(entry, ConversationEntry::Assistant { text, calls } if text.is_empty() && !calls.is_empty())
}

/// Adds a user's message, joined to the message before if that is the user's too.
fn push_user(messages: &mut Vec<ChatMessage>, more: MessageContent) {
    match messages.last_mut() {
        Some(ChatMessage::User { text, images }) => {
            text.push_str("\n\n");
            text.push_str(&more.text);
            images.extend(more.images);
        }
        _ => messages.push(ChatMessage::User { text: more.text, images: more.images }),
    }
}

/// Adds a text of the agent, joined to the message before if that is the agent's too and has no calls.
fn push_assistant(messages: &mut Vec<ChatMessage>, more: String) {
    match messages.last_mut() {
        Some(ChatMessage::Assistant { text, calls, .. }) if calls.is_empty() => {
            text.push_str("\n\n");
            text.push_str(&more);
        }
        _ => messages.push(ChatMessage::from_assistant(more)),
    }
}

/// Finds the result of each call; returns the results in the order of the calls.
pub(crate) fn pair_results(
    calls: &[ToolCall],
    results: Vec<(String, String)>,
    param: &str,
) -> Result<Vec<ToolResult>, Problem> {
    // INV-482: looked up by id, because a body has room for tens of thousands of calls and results.
    let known: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    let mut by_call = HashMap::with_capacity(results.len());
    for (id, content) in &results {
        if by_call.insert(id.as_str(), content).is_some() {
            return Err(invalid_value(
                param,
                format!("there are two results for the call `{}`", shorten_id(id)),
            ));
        }
        if !known.contains(id.as_str()) {
            return Err(no_call(id, param));
        }
    }
    calls
        .iter()
        .map(|call| match by_call.get(call.id.as_str()) {
            Some(content) => Ok(ToolResult {
                id: call.id.clone(),
                name: call.name.clone(),
                content: (*content).clone(),
                is_error: false,
            }),
            None => Err(no_result(&call.id, param)),
        })
        .collect()
}

/// The problem of a call without a result.
pub(crate) fn no_result(id: &str, param: &str) -> Problem {
    let detail = format!("there is no result for the call `{}`", shorten_id(id));
    invalid_value(param, detail).with_hint("send one for each call, behind the calls")
}

/// The problem of a result whose call is missing.
pub(crate) fn no_call(id: &str, param: &str) -> Problem {
    invalid_value(
        param,
        format!("there is no call `{}` that this would be the result of", shorten_id(id)),
    )
}

fn shorten_id(id: &str) -> String {
    belljar_policy::ShownText::clip_line(id, 80).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> ConversationEntry {
        ConversationEntry::User(MessageContent { text: text.to_owned(), images: Vec::new() })
    }

    fn said(text: &str, ids: &[&str]) -> ConversationEntry {
        let call = |id: &&str| ToolCall {
            id: (*id).to_owned(),
            name: "look".to_owned(),
            arguments: "{}".to_owned(),
        };
        ConversationEntry::Assistant {
            text: text.to_owned(),
            calls: ids.iter().map(call).collect(),
        }
    }

    fn came(id: &str) -> ConversationEntry {
        ConversationEntry::Result { id: id.to_owned(), content: format!("of {id}") }
    }

    #[test]
    fn the_words_of_a_system_become_context_and_the_last_of_the_user_the_task() {
        let system = ConversationEntry::Context("be brief".to_owned());
        let entries = vec![user("a"), said("b", &[]), system, user("c"), user("d")];
        let parts = sort_entries(entries, "messages").unwrap();
        assert_eq!(parts.context.as_deref(), Some("be brief"));
        assert_eq!((parts.task.as_str(), parts.history.len()), ("c\n\nd", 2));
    }

    #[test]
    fn results_behind_the_last_calls_are_apart_and_earlier_ones_are_history() {
        let entries = vec![
            user("a"),
            said("", &["1"]),
            said("", &["2"]),
            came("2"),
            came("1"),
            said("", &["3"]),
            came("3"),
        ];
        let parts = sort_entries(entries, "input").unwrap();
        assert_eq!(parts.results, [("3".to_owned(), "of 3".to_owned())]);
        let Some(ChatMessage::Tool { results }) = parts.history.get(2) else {
            panic!("{:?}", parts.history)
        };
        let ids: Vec<_> = results.iter().map(|result| result.id.as_str()).collect();
        assert_eq!(ids, ["1", "2"], "in the order of the calls");
        assert!(matches!(parts.history.last(), Some(ChatMessage::Assistant { .. })));
    }

    #[test]
    fn a_conversation_that_no_provider_takes_is_refused() {
        let refused = |entries: Vec<ConversationEntry>| sort_entries(entries, "messages").is_err();
        assert!(refused(vec![]));
        assert!(refused(vec![user("a"), said("b", &[])]), "nothing to answer");
        assert!(refused(vec![said("", &["1"]), user("b")]), "a call without a result");
        assert!(refused(vec![said("", &["1"]), came("1"), came("1"), said("x", &[]), user("b")]));
        assert!(refused(vec![came("1"), said("x", &[]), user("b")]), "a result without a call");
        assert!(refused(vec![user(" ")]));
    }

    /// INV-482: a search through all results for each call would block a server for a minute.
    #[test]
    fn tens_of_thousands_of_calls_are_paired_with_results_in_any_order() {
        let ids: Vec<String> = (0..30_000).map(|n| format!("call-{n}")).collect();
        let names: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut entries = vec![user("look"), said("", &names)];
        entries.extend(ids.iter().rev().map(|id| came(id)));
        entries.extend([said("done", &[]), user("go on")]);
        let parts = sort_entries(entries.clone(), "messages").unwrap();
        let [_, _, ChatMessage::Tool { results }, _] = parts.history.as_slice() else {
            panic!("{} messages", parts.history.len())
        };
        assert!(results.iter().map(|result| &result.id).eq(&ids));
        entries.remove(2);
        let problem = sort_entries(entries, "messages").unwrap_err();
        assert!(problem.to_body().detail().contains("no result for the call `call-29999`"));
    }
}
