//! The input of a response: parsed to conversation entries, and kept as items to be listed.

use belljar_agent::ToolCall;
use serde_json::{Value, json};

use crate::http::problem::Problem;
use crate::openai::content::{LEFT_OUT, parse_agent_text, parse_content, parse_text};
use crate::openai::entries::ConversationEntry;
use crate::openai::left_out::IgnoredParts;
use crate::openai::messages::{arguments_text, require_text};
use crate::openai::params::invalid_value;

/// The items of an input. An input that is a plain text becomes one message of the user.
pub(crate) fn input_items(input: Value) -> Result<Vec<Value>, Problem> {
    match input {
        Value::String(text) => {
            let content = json!([{"type": "input_text", "text": text}]);
            Ok(vec![json!({"type": "message", "role": "user", "content": content})])
        }
        Value::Array(items) => Ok(items),
        _ => Err(invalid_value("input", "`input` is neither a text nor a list of items")),
    }
}

/// Converts items to conversation entries; items without use are recorded in `left`.
pub(crate) fn entries_from_items(
    items: &[Value],
    left: &mut IgnoredParts,
) -> Result<Vec<ConversationEntry>, Problem> {
    let mut entries = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        entries.extend(entry_from_item(item, &format!("input[{index}]"), left)?);
    }
    Ok(entries)
}

/// Parses one item; `None` if it has nothing for the agent.
fn entry_from_item(
    item: &Value,
    at: &str,
    left: &mut IgnoredParts,
) -> Result<Option<ConversationEntry>, Problem> {
    let kind = match item.get("type") {
        None => None,
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(_) => {
            let detail = format!("`{at}` has a type that is no text");
            return Err(invalid_value(&format!("{at}.type"), detail));
        }
    };
    Ok(Some(match kind {
        None | Some("message") => entry_from_message(item, at, left)?,
        Some("function_call") => {
            let call = ToolCall {
                id: require_text(item, "call_id", at)?,
                name: require_text(item, "name", at)?,
                arguments: arguments_text(item),
            };
            ConversationEntry::Assistant { text: String::new(), calls: vec![call] }
        }
        Some("function_call_output") => {
            let output = item.get("output");
            let content = parse_agent_text(output, &format!("{at}.output"), Some(LEFT_OUT), left)?;
            ConversationEntry::Result { id: require_text(item, "call_id", at)?, content }
        }
        // A model's reasoning is for its own provider; this server never sends such items.
        Some("reasoning") => return Ok(None),
        // Items of other providers, for example calls of the providers' own tools, are left out and recorded.
        Some(kind) => {
            left.add_kind(at, kind);
            return Ok(None);
        }
    }))
}

/// Parses an item that is a message, by its role.
fn entry_from_message(
    item: &Value,
    at: &str,
    left: &mut IgnoredParts,
) -> Result<ConversationEntry, Problem> {
    let (content, place) = (item.get("content"), format!("{at}.content"));
    match item.get("role").and_then(Value::as_str) {
        Some("user") => Ok(ConversationEntry::User(parse_content(content, &place)?)),
        Some("system" | "developer") => {
            Ok(ConversationEntry::Context(parse_text(content, &place)?))
        }
        Some("assistant") => {
            let text = parse_agent_text(content, &place, None, left)?;
            Ok(ConversationEntry::Assistant { text, calls: Vec::new() })
        }
        _ => Err(invalid_value(&format!("{at}.role"), format!("`{at}` has no role that is known"))),
    }
}
