//! The tools of a caller, in the forms of both APIs.

use belljar_agent::{ToolChoice, ToolSpec};
use belljar_policy::Shown;
use serde_json::{Value, json};

use crate::http::problem::Problem;
use crate::openai::left_out::Unserved;
use crate::openai::params::{invalid, unsupported};

/// The tools of a request, after its choice.
pub(crate) struct Chosen {
    /// The tools; empty if no tool may be called.
    pub(crate) tools: Vec<ToolSpec>,
    /// The call that the answer has to end with.
    pub(crate) must: Option<ToolChoice>,
    /// `tool_choice` in the form of a response.
    pub(crate) choice: Value,
}

/// The tools of a request, limited by `tool_choice`. Tools of unsupported kinds are ignored.
pub(crate) fn chosen(
    tools: &[Value],
    choice: Option<&Value>,
    left: &mut Unserved,
) -> Result<Chosen, Problem> {
    let specs = specs(tools, left)?;
    let chosen = |tools, must, choice| Ok(Chosen { tools, must, choice });
    let missing = |detail: String| {
        Err(invalid("tool_choice", detail).hint("the choice is among `tools`, the caller's own"))
    };
    match choice {
        None | Some(Value::Null) => chosen(specs, None, json!("auto")),
        Some(Value::String(word)) => match word.as_str() {
            "auto" => chosen(specs, None, json!("auto")),
            "none" => chosen(Vec::new(), None, json!("none")),
            "required" if specs.is_empty() && !tools.is_empty() => {
                left.add("tool_choice");
                chosen(specs, None, json!("auto"))
            }
            "required" if specs.is_empty() => {
                missing("a call is required, and there are no `tools`".to_owned())
            }
            "required" => chosen(specs, Some(ToolChoice::Required), json!("required")),
            _ => Err(unfit()),
        },
        Some(named) => match named.get("type").and_then(Value::as_str) {
            Some("function") => {
                let Some(name) = named_function(named) else { return Err(unfit()) };
                if specs.iter().all(|spec| spec.name != name) {
                    let name = Shown::clipped(&name, 64);
                    return missing(format!("`{name}` is none of the `tools`"));
                }
                let choice = json!({"type": "function", "name": name});
                chosen(specs, Some(ToolChoice::Named(name)), choice)
            }
            // The chosen tool was ignored.
            Some(kind) => {
                left.add_kind("tool_choice", kind);
                chosen(specs, None, json!("auto"))
            }
            None => Err(unfit()),
        },
    }
}

/// The function named by a choice: nested for chat completions, flat for responses.
fn named_function(choice: &Value) -> Option<String> {
    let function = choice.get("function").unwrap_or(choice);
    function.get("name").and_then(Value::as_str).map(str::to_owned)
}

fn unfit() -> Problem {
    let detail = "`tool_choice` can only be `auto`, `none`, `required` or one function";
    unsupported("tool_choice", detail).hint("an agent chooses among its own tools by itself")
}

/// The tools that are functions.
fn specs(tools: &[Value], left: &mut Unserved) -> Result<Vec<ToolSpec>, Problem> {
    let mut specs = Vec::with_capacity(tools.len());
    for (at, tool) in tools.iter().enumerate() {
        match tool.get("type").and_then(Value::as_str) {
            Some("function") => {
                specs.push(spec(tool, at)?);
                left.tools.push(at);
            }
            Some(kind) => left.add_kind(&format!("tools[{at}]"), kind),
            None => {
                let place = format!("tools[{at}].type");
                return Err(invalid(&place, "a tool has no `type`")
                    .hint("tools that are served have the type `function`"));
            }
        }
    }
    Ok(specs)
}

/// A tool: nested for chat completions, flat for responses.
fn spec(tool: &Value, at: usize) -> Result<ToolSpec, Problem> {
    let place = format!("tools[{at}]");
    let function = tool.get("function").filter(|it| it.is_object()).unwrap_or(tool);
    let name = function.get("name").and_then(Value::as_str);
    let no_name = || invalid(&format!("{place}.name"), format!("`{place}` has no name"));
    let description = match function.get("description") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(_) => {
            let at = format!("{place}.description");
            return Err(invalid(&at, format!("`{at}` is no text")));
        }
    };
    let schema = match function.get("parameters") {
        None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
        Some(schema) => schema.clone(),
    };
    Ok(ToolSpec { name: name.ok_or_else(no_name)?.to_owned(), description, schema })
}

/// The tools in the form of a response.
pub(crate) fn listed(tools: &[Value]) -> Vec<Value> {
    let listed = |tool: &Value| {
        let part = |name: &str| tool.get(name).cloned().unwrap_or(Value::Null);
        json!({
            "type": "function",
            "name": part("name"),
            "description": part("description"),
            "parameters": part("parameters"),
            "strict": tool.get("strict").cloned().unwrap_or(Value::Bool(true)),
        })
    };
    let is_function = |tool: &&Value| tool.get("type").is_some_and(|kind| kind == "function");
    tools.iter().filter(is_function).map(listed).collect()
}
