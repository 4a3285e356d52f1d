//! The messages of a chat completion as entries.

use belljar_agent::ToolCall;
use serde_json::Value;

use crate::http::problem::Problem;
use crate::openai::content::{read, text};
use crate::openai::entries::Entry;
use crate::openai::ids::MAX_CALL_ID;
use crate::openai::params::{invalid, unsupported};

/// The entries of messages.
pub(crate) fn entries(messages: &[Value]) -> Result<Vec<Entry>, Problem> {
    let messages = messages.iter().enumerate();
    messages.map(|(index, message)| entry(message, &format!("messages[{index}]"))).collect()
}

fn entry(message: &Value, at: &str) -> Result<Entry, Problem> {
    let content = || text(message.get("content"), &format!("{at}.content"));
    match message.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Ok(Entry::Context(content()?)),
        Some("user") => {
            let content = read(message.get("content"), &format!("{at}.content"));
            Ok(Entry::User(content?))
        }
        Some("assistant") => {
            let calls = match message.get("tool_calls") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(calls)) => {
                    let calls = calls.iter().enumerate();
                    let at = |index: usize| format!("{at}.tool_calls[{index}]");
                    let calls = calls.map(|(index, of)| call(of, &at(index)));
                    calls.collect::<Result<_, _>>()?
                }
                Some(_) => return Err(invalid(at, "`tool_calls` is no list")),
            };
            Ok(Entry::Assistant { text: content()?, calls })
        }
        Some("tool") => {
            let id = named(message, "tool_call_id", at)?;
            Ok(Entry::Result { id, content: content()? })
        }
        Some("function") => {
            Err(unsupported(at, "the role `function` is not supported").hint("use `tool`"))
        }
        _ => Err(invalid(&format!("{at}.role"), format!("`{at}` has no role that is known"))),
    }
}

fn call(call: &Value, at: &str) -> Result<ToolCall, Problem> {
    let function = call.get("function").unwrap_or(&Value::Null);
    let arguments = function.get("arguments").and_then(Value::as_str).unwrap_or_default();
    Ok(ToolCall {
        id: named(call, "id", at)?,
        name: named(function, "name", at)?,
        arguments: arguments.to_owned(),
    })
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
