//! The input of a response as entries, and as listed items.

use belljar_agent::ToolCall;
use serde_json::{Value, json};

use crate::http::problem::Problem;
use crate::openai::content::{LEFT_OUT, read, text, told};
use crate::openai::entries::Entry;
use crate::openai::left_out::Unserved;
use crate::openai::messages::{arguments, named};
use crate::openai::params::invalid;

/// The items of an input: a text is one message of the user.
pub(crate) fn items(input: Value) -> Result<Vec<Value>, Problem> {
    match input {
        Value::String(text) => {
            let content = json!([{"type": "input_text", "text": text}]);
            Ok(vec![json!({"type": "message", "role": "user", "content": content})])
        }
        Value::Array(items) => Ok(items),
        _ => Err(invalid("input", "`input` is neither a text nor a list of items")),
    }
}

/// The entries of items.
pub(crate) fn entries(items: &[Value], left: &mut Unserved) -> Result<Vec<Entry>, Problem> {
    let mut entries = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        entries.extend(entry(item, &format!("input[{index}]"), left)?);
    }
    Ok(entries)
}

/// Parses an item; `None` = the item has no text for the agent.
fn entry(item: &Value, at: &str, left: &mut Unserved) -> Result<Option<Entry>, Problem> {
    let kind = match item.get("type") {
        None => None,
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(_) => {
            let detail = format!("`{at}` has a type that is no text");
            return Err(invalid(&format!("{at}.type"), detail));
        }
    };
    Ok(Some(match kind {
        None | Some("message") => message(item, at, left)?,
        Some("function_call") => {
            let call = ToolCall {
                id: named(item, "call_id", at)?,
                name: named(item, "name", at)?,
                arguments: arguments(item),
            };
            Entry::Assistant { text: String::new(), calls: vec![call] }
        }
        Some("function_call_output") => {
            let output = item.get("output");
            let content = told(output, &format!("{at}.output"), Some(LEFT_OUT), left)?;
            Entry::Result { id: named(item, "call_id", at)?, content }
        }
        // A model's reasoning is for its provider; this server sends none.
        Some("reasoning") => return Ok(None),
        // Items of other providers, for example calls of their tools with the results, are left out.
        Some(kind) => {
            left.add_kind(at, kind);
            return Ok(None);
        }
    }))
}

fn message(item: &Value, at: &str, left: &mut Unserved) -> Result<Entry, Problem> {
    let (content, place) = (item.get("content"), format!("{at}.content"));
    match item.get("role").and_then(Value::as_str) {
        Some("user") => Ok(Entry::User(read(content, &place)?)),
        Some("system" | "developer") => Ok(Entry::Context(text(content, &place)?)),
        Some("assistant") => {
            let text = told(content, &place, None, left)?;
            Ok(Entry::Assistant { text, calls: Vec::new() })
        }
        _ => Err(invalid(&format!("{at}.role"), format!("`{at}` has no role that is known"))),
    }
}
