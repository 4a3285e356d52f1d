//! The entries of a conversation, from either API, and their use in a turn.
//!
//! | entry | becomes |
//! | --- | --- |
//! | `system`, `developer`, `instructions` | context beside the task: a caller's text, in a person's message, never a part of the agent's own prompt |
//! | the last messages of the user | the task |
//! | all entries before | the history, unchanged |
//! | results after the last call | the results that a turn waits for, or the end of the history |

use std::collections::{HashMap, HashSet};

use belljar_agent::{Image, Message, ToolCall, ToolResult};

use crate::http::problem::Problem;
use crate::openai::content::Content;
use crate::openai::params::invalid;

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    /// A text of a system or a developer.
    Context(String),
    /// Text and images of the user.
    User(Content),
    /// A text of the agent, and its calls of the caller's tools.
    Assistant { text: String, calls: Vec<ToolCall> },
    /// The result of such a call.
    Result { id: String, content: String },
}

/// The entries of one request, sorted.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Parts {
    /// The texts of systems and developers.
    pub(crate) context: Option<String>,
    /// The conversation before the results and the task.
    pub(crate) history: Vec<Message>,
    /// The results at the end, by the ids of their calls.
    pub(crate) results: Vec<(String, String)>,
    /// The task; empty if there are only results or images.
    pub(crate) task: String,
    /// Images beside the task.
    pub(crate) images: Vec<Image>,
}

/// Sorts entries into their uses; `param` = their place in the request.
pub(crate) fn sort(entries: Vec<Entry>, param: &str) -> Result<Parts, Problem> {
    let mut context = Vec::new();
    let mut rest = Vec::with_capacity(entries.len());
    for entry in entries {
        match entry {
            Entry::Context(text) => context.push(text),
            other => rest.push(other),
        }
    }
    let is_user = |entry: &&Entry| matches!(entry, Entry::User(_));
    let is_result = |entry: &&Entry| matches!(entry, Entry::Result { .. });
    let task: Vec<Entry> = split_end(&mut rest, is_user);
    let last: Vec<Entry> = split_end(&mut rest, is_result);
    if task.is_empty() && last.is_empty() {
        return Err(invalid(param, "the last entry has to be the user's, or a result of a tool")
            .hint("send what the agent should answer"));
    }
    let contents = task.into_iter().filter_map(|entry| match entry {
        Entry::User(content) => Some((content.text, content.images)),
        Entry::Context(_) | Entry::Assistant { .. } | Entry::Result { .. } => None,
    });
    let (texts, images): (Vec<_>, Vec<_>) = contents.unzip();
    let (task, images) = (texts.join("\n\n"), images.concat());
    let results: Vec<_> = last.into_iter().filter_map(result).collect();
    if task.trim().is_empty() && images.is_empty() && results.is_empty() {
        return Err(invalid(param, "the user's words are blank"));
    }
    let history = history(rest, param)?;
    if let Some(Message::Assistant { calls, .. }) = history.last()
        && !calls.is_empty()
    {
        // Checked in any case.
        paired(calls, results.clone(), param)?;
    }
    let context = Some(context.join("\n\n")).filter(|text| !text.trim().is_empty());
    Ok(Parts { context, history, results, task, images })
}

impl Parts {
    /// Moves the results at the end into the history, so that the history is complete before the task.
    pub(crate) fn closed(mut self, param: &str) -> Result<Self, Problem> {
        let results = std::mem::take(&mut self.results);
        let calls = match self.history.last() {
            Some(Message::Assistant { calls, .. }) => calls.clone(),
            Some(Message::User { .. } | Message::Tool { .. }) | None => Vec::new(),
        };
        if !results.is_empty() {
            self.history.push(Message::Tool { results: paired(&calls, results, param)? });
        }
        Ok(self)
    }
}

fn result(entry: Entry) -> Option<(String, String)> {
    match entry {
        Entry::Result { id, content } => Some((id, content)),
        Entry::Context(_) | Entry::User(_) | Entry::Assistant { .. } => None,
    }
}

/// Removes and returns the last entries of a kind.
fn split_end(entries: &mut Vec<Entry>, is: impl Fn(&&Entry) -> bool) -> Vec<Entry> {
    let count = entries.iter().rev().take_while(is).count();
    entries.split_off(entries.len() - count)
}

/// Entries as messages. Every call except for the last entry's is followed by its result.
fn history(entries: Vec<Entry>, param: &str) -> Result<Vec<Message>, Problem> {
    let mut messages: Vec<Message> = Vec::new();
    let mut entries = entries.into_iter().peekable();
    while let Some(entry) = entries.next() {
        match entry {
            Entry::Context(_) => {}
            Entry::User(content) => push_user(&mut messages, content),
            Entry::Result { id, .. } => return Err(no_call(&id, param)),
            Entry::Assistant { text, calls } if calls.is_empty() => {
                if !text.trim().is_empty() {
                    push_assistant(&mut messages, text);
                }
            }
            Entry::Assistant { text, mut calls } => {
                // Each item of a response has one call; a step's calls belong together.
                while let Some(Entry::Assistant { text: more, calls: others }) =
                    entries.next_if(is_calls_alone)
                {
                    debug_assert!(more.is_empty(), "looked at above");
                    calls.extend(others);
                }
                let mut results = Vec::new();
                while let Some(next) = entries.next_if(|next| matches!(next, Entry::Result { .. }))
                {
                    results.extend(result(next));
                }
                let is_last = entries.peek().is_none();
                messages.push(Message::Assistant { text, calls: calls.clone(), reasoning: None });
                if !(is_last && results.is_empty()) {
                    messages.push(Message::Tool { results: paired(&calls, results, param)? });
                }
            }
        }
    }
    Ok(messages)
}

fn is_calls_alone(entry: &Entry) -> bool {
    matches!(entry, Entry::Assistant { text, calls } if text.is_empty() && !calls.is_empty())
}

fn push_user(messages: &mut Vec<Message>, more: Content) {
    match messages.last_mut() {
        Some(Message::User { text, images }) => {
            text.push_str("\n\n");
            text.push_str(&more.text);
            images.extend(more.images);
        }
        _ => messages.push(Message::User { text: more.text, images: more.images }),
    }
}

fn push_assistant(messages: &mut Vec<Message>, more: String) {
    match messages.last_mut() {
        Some(Message::Assistant { text, calls, .. }) if calls.is_empty() => {
            text.push_str("\n\n");
            text.push_str(&more);
        }
        _ => messages.push(Message::said(more)),
    }
}

/// One result for each call, in the order of the calls.
pub(crate) fn paired(
    calls: &[ToolCall],
    results: Vec<(String, String)>,
    param: &str,
) -> Result<Vec<ToolResult>, Problem> {
    // INV-482: a body has room for tens of thousands of both.
    let known: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    let mut by_call = HashMap::with_capacity(results.len());
    for (id, content) in &results {
        if by_call.insert(id.as_str(), content).is_some() {
            return Err(invalid(
                param,
                format!("there are two results for the call `{}`", cut(id)),
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

/// A call that is left without a result.
pub(crate) fn no_result(id: &str, param: &str) -> Problem {
    let detail = format!("there is no result for the call `{}`", cut(id));
    invalid(param, detail).hint("send one for each call, behind the calls")
}

/// A result without a call.
pub(crate) fn no_call(id: &str, param: &str) -> Problem {
    invalid(param, format!("there is no call `{}` that this would be the result of", cut(id)))
}

fn cut(id: &str) -> String {
    belljar_policy::Shown::clipped(id, 80).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Entry {
        Entry::User(Content { text: text.to_owned(), images: Vec::new() })
    }

    fn said(text: &str, ids: &[&str]) -> Entry {
        let call = |id: &&str| ToolCall {
            id: (*id).to_owned(),
            name: "look".to_owned(),
            arguments: "{}".to_owned(),
        };
        Entry::Assistant { text: text.to_owned(), calls: ids.iter().map(call).collect() }
    }

    fn came(id: &str) -> Entry {
        Entry::Result { id: id.to_owned(), content: format!("of {id}") }
    }

    #[test]
    fn the_words_of_a_system_become_context_and_the_last_of_the_user_the_task() {
        let system = Entry::Context("be brief".to_owned());
        let entries = vec![user("a"), said("b", &[]), system, user("c"), user("d")];
        let parts = sort(entries, "messages").unwrap();
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
        let parts = sort(entries, "input").unwrap();
        assert_eq!(parts.results, [("3".to_owned(), "of 3".to_owned())]);
        let Some(Message::Tool { results }) = parts.history.get(2) else {
            panic!("{:?}", parts.history)
        };
        let ids: Vec<_> = results.iter().map(|result| result.id.as_str()).collect();
        assert_eq!(ids, ["1", "2"], "in the order of the calls");
        assert!(matches!(parts.history.last(), Some(Message::Assistant { .. })));
    }

    #[test]
    fn a_conversation_that_no_provider_takes_is_refused() {
        let refused = |entries: Vec<Entry>| sort(entries, "messages").is_err();
        assert!(refused(vec![]));
        assert!(refused(vec![user("a"), said("b", &[])]), "nothing to answer");
        assert!(refused(vec![said("", &["1"]), user("b")]), "a call without a result");
        assert!(refused(vec![said("", &["1"]), came("1"), came("1"), said("x", &[]), user("b")]));
        assert!(refused(vec![came("1"), said("x", &[]), user("b")]), "a result without a call");
        assert!(refused(vec![user(" ")]));
    }

    /// INV-482: a walk of all results for each call would hold up a server for a minute.
    #[test]
    fn tens_of_thousands_of_calls_are_paired_with_results_in_any_order() {
        let ids: Vec<String> = (0..30_000).map(|n| format!("call-{n}")).collect();
        let names: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut entries = vec![user("look"), said("", &names)];
        entries.extend(ids.iter().rev().map(|id| came(id)));
        entries.extend([said("done", &[]), user("go on")]);
        let parts = sort(entries.clone(), "messages").unwrap();
        let [_, _, Message::Tool { results }, _] = parts.history.as_slice() else {
            panic!("{} messages", parts.history.len())
        };
        assert!(results.iter().map(|result| &result.id).eq(&ids));
        entries.remove(2);
        let problem = sort(entries, "messages").unwrap_err();
        assert!(problem.body().detail().contains("no result for the call `call-29999`"));
    }
}
