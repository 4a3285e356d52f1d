//! The messages of a chat completion as entries.

use std::collections::HashSet;

use belljar_agent::ToolCall;
use serde_json::Value;

use crate::http::problem::Problem;
use crate::openai::content::{LEFT_OUT, read, text, told};
use crate::openai::entries::Entry;
use crate::openai::ids::MAX_CALL_ID;
use crate::openai::left_out::Unserved;
use crate::openai::params::{invalid, unsupported};

/// The entries of messages.
pub(crate) fn entries(messages: &[Value], left: &mut Unserved) -> Result<Vec<Entry>, Problem> {
    let mut entries = Vec::with_capacity(messages.len());
    // The ids of calls whose tool is not a function: these calls and their results are left out.
    let mut unserved = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        entries.extend(entry(message, &format!("messages[{index}]"), &mut unserved, left)?);
    }
    Ok(entries)
}

/// `None`: the result of a call that is left out.
fn entry<'m>(
    message: &'m Value,
    at: &str,
    unserved: &mut HashSet<&'m str>,
    left: &mut Unserved,
) -> Result<Option<Entry>, Problem> {
    let (content, place) = (message.get("content"), format!("{at}.content"));
    let entry = match message.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Ok(Entry::Context(text(content, &place)?)),
        Some("user") => Ok(Entry::User(read(content, &place)?)),
        Some("assistant") => {
            let calls = calls(message, at, unserved, left)?;
            Ok(Entry::Assistant { text: told(content, &place, None, left)?, calls })
        }
        Some("tool") => {
            let id = named(message, "tool_call_id", at)?;
            if unserved.contains(id.as_str()) {
                left.add(at);
                return Ok(None);
            }
            Ok(Entry::Result { id, content: told(content, &place, Some(LEFT_OUT), left)? })
        }
        Some("function") => {
            Err(unsupported(at, "the role `function` is not supported").hint("use `tool`"))
        }
        _ => Err(invalid(&format!("{at}.role"), format!("`{at}` has no role that is known"))),
    };
    entry.map(Some)
}

/// The calls of functions that a message has; the others are noted in `unserved`.
fn calls<'m>(
    message: &'m Value,
    at: &str,
    unserved: &mut HashSet<&'m str>,
    left: &mut Unserved,
) -> Result<Vec<ToolCall>, Problem> {
    let all = match message.get("tool_calls") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(all)) => all,
        Some(_) => return Err(invalid(at, "`tool_calls` is no list")),
    };
    let mut calls = Vec::with_capacity(all.len());
    for (index, of) in all.iter().enumerate() {
        let at = format!("{at}.tool_calls[{index}]");
        match of.get("type").and_then(Value::as_str) {
            Some(kind) if kind != "function" => {
                left.add_kind(&at, kind);
                unserved.extend(of.get("id").and_then(Value::as_str));
            }
            Some(_) | None => calls.push(call(of, &at)?),
        }
    }
    Ok(calls)
}

fn call(call: &Value, at: &str) -> Result<ToolCall, Problem> {
    let function = call.get("function").unwrap_or(&Value::Null);
    Ok(ToolCall {
        id: named(call, "id", at)?,
        name: named(function, "name", at)?,
        arguments: arguments(function),
    })
}

/// The arguments of a call, as text; some programs send the object itself.
pub(crate) fn arguments(of: &Value) -> String {
    match of.get("arguments") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A short text that has to be there.
pub(crate) fn named(of: &Value, name: &str, at: &str) -> Result<String, Problem> {
    let text = of.get(name).and_then(Value::as_str).unwrap_or_default();
    if (1..=MAX_CALL_ID).contains(&text.len()) {
        return Ok(text.to_owned());
    }
    let detail = format!("`{at}.{name}` has to be a text of 1 to {MAX_CALL_ID} bytes");
    Err(invalid(&format!("{at}.{name}"), detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_of_tools_that_are_left_out_are_left_out_with_their_results() {
        let function = json!({"name": "look", "arguments": {"at": 1}});
        let messages = [
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}], "tool_calls": [
                {"id": "1", "type": "custom", "custom": {"name": "apply_patch", "input": "x"}},
                {"id": "2", "type": "function", "function": function},
            ]}),
            json!({"role": "tool", "tool_call_id": "1", "content": "done"}),
            json!({"role": "tool", "tool_call_id": "2", "content": "seen"}),
        ];
        let mut left = Unserved::default();
        let entries = entries(&messages, &mut left).unwrap();
        let [Entry::Assistant { text, calls }, Entry::Result { id, .. }] = entries.as_slice()
        else {
            panic!("{entries:?}")
        };
        assert_eq!((text.as_str(), id.as_str()), ("", "2"));
        assert_eq!((calls[0].name.as_str(), calls[0].arguments.as_str()), ("look", "{\"at\":1}"));
        let left = format!("{left:?}");
        for named in ["content[0] (thinking)", "tool_calls[0] (custom)", "\"messages[1]\""] {
            assert!(left.contains(named), "{left} should name {named}");
        }
        let orphan = json!({"role": "tool", "content": "x"});
        assert!(super::entries(&[orphan], &mut Unserved::default()).is_err());
    }
}
