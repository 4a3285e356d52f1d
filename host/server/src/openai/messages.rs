//! Parses the messages of a chat completion into conversation entries.

use std::collections::HashSet;

use belljar_agent::ToolCall;
use serde_json::Value;

use crate::http::problem::Problem;
use crate::openai::content::{LEFT_OUT, parse_agent_text, parse_content, parse_text};
use crate::openai::entries::ConversationEntry;
use crate::openai::ids::MAX_CALL_ID;
use crate::openai::left_out::IgnoredParts;
use crate::openai::params::{invalid_value, unsupported_parameter};

/// Parses all messages; ignored parts are recorded in `left`.
pub(crate) fn entries_from_messages(
    messages: &[Value],
    left: &mut IgnoredParts,
) -> Result<Vec<ConversationEntry>, Problem> {
    let mut entries = Vec::with_capacity(messages.len());
    // The ids of calls of tools that are no functions: such calls and their results are left out.
    let mut unserved = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        entries.extend(entry_from_message(
            message,
            &format!("messages[{index}]"),
            &mut unserved,
            left,
        )?);
    }
    Ok(entries)
}

/// Parses one message; `None` for the result of a call that was left out.
fn entry_from_message<'m>(
    message: &'m Value,
    at: &str,
    unserved: &mut HashSet<&'m str>,
    left: &mut IgnoredParts,
) -> Result<Option<ConversationEntry>, Problem> {
    let (content, place) = (message.get("content"), format!("{at}.content"));
    let entry = match message.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => {
            Ok(ConversationEntry::Context(parse_text(content, &place)?))
        }
        Some("user") => Ok(ConversationEntry::User(parse_content(content, &place)?)),
        Some("assistant") => {
            let calls = parse_calls(message, at, unserved, left)?;
            Ok(ConversationEntry::Assistant {
                text: parse_agent_text(content, &place, None, left)?,
                calls,
            })
        }
        Some("tool") => {
            let id = require_text(message, "tool_call_id", at)?;
            if unserved.contains(id.as_str()) {
                left.add_part(at);
                return Ok(None);
            }
            Ok(ConversationEntry::Result {
                id,
                content: parse_agent_text(content, &place, Some(LEFT_OUT), left)?,
            })
        }
        Some("function") => Err(unsupported_parameter(at, "the role `function` is not supported")
            .with_hint("use `tool`")),
        _ => Err(invalid_value(&format!("{at}.role"), format!("`{at}` has no role that is known"))),
    };
    entry.map(Some)
}

/// The calls of functions in a message; the ids of other calls are added to `unserved`.
fn parse_calls<'m>(
    message: &'m Value,
    at: &str,
    unserved: &mut HashSet<&'m str>,
    left: &mut IgnoredParts,
) -> Result<Vec<ToolCall>, Problem> {
    let all = match message.get("tool_calls") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(all)) => all,
        Some(_) => return Err(invalid_value(at, "`tool_calls` is no list")),
    };
    let mut calls = Vec::with_capacity(all.len());
    for (index, of) in all.iter().enumerate() {
        let at = format!("{at}.tool_calls[{index}]");
        match of.get("type").and_then(Value::as_str) {
            Some(kind) if kind != "function" => {
                left.add_kind(&at, kind);
                unserved.extend(of.get("id").and_then(Value::as_str));
            }
            Some(_) | None => calls.push(parse_call(of, &at)?),
        }
    }
    Ok(calls)
}

/// Parses one call of a function.
fn parse_call(call: &Value, at: &str) -> Result<ToolCall, Problem> {
    let function = call.get("function").unwrap_or(&Value::Null);
    Ok(ToolCall {
        id: require_text(call, "id", at)?,
        name: require_text(function, "name", at)?,
        arguments: arguments_text(function),
    })
}

/// The arguments of a call as text; some programs send the JSON object itself.
pub(crate) fn arguments_text(of: &Value) -> String {
    match of.get("arguments") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The required text `name` of an object; a problem if it is missing or too long.
pub(crate) fn require_text(of: &Value, name: &str, at: &str) -> Result<String, Problem> {
    let text = of.get(name).and_then(Value::as_str).unwrap_or_default();
    if (1..=MAX_CALL_ID).contains(&text.len()) {
        return Ok(text.to_owned());
    }
    let detail = format!("`{at}.{name}` has to be a text of 1 to {MAX_CALL_ID} bytes");
    Err(invalid_value(&format!("{at}.{name}"), detail))
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
        let mut left = IgnoredParts::default();
        let entries = entries_from_messages(&messages, &mut left).unwrap();
        let [ConversationEntry::Assistant { text, calls }, ConversationEntry::Result { id, .. }] =
            entries.as_slice()
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
        assert!(super::entries_from_messages(&[orphan], &mut IgnoredParts::default()).is_err());
    }
}
