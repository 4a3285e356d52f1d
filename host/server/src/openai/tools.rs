//! The tools that a caller defines in a request, in the forms of both APIs.

use belljar_agent::{ToolChoice, ToolSpec};
use belljar_policy::ShownText;
use serde_json::{Value, json};

use crate::http::problem::Problem;
use crate::openai::left_out::IgnoredParts;
use crate::openai::params::{invalid_value, unsupported_parameter};

/// The tools of a request, limited by its `tool_choice`.
pub(crate) struct ChosenTools {
    /// The tools that the model may call; empty if it may call none.
    pub(crate) tools: Vec<ToolSpec>,
    /// The call with which the answer must end, if the caller requires one.
    pub(crate) must: Option<ToolChoice>,
    /// `tool_choice` in the form that a response repeats.
    pub(crate) choice: Value,
}

/// Parses the tools of a request, and limits them by `tool_choice`. Tools of unsupported kinds are ignored
/// and recorded.
pub(crate) fn choose_tools(
    tools: &[Value],
    choice: Option<&Value>,
    left: &mut IgnoredParts,
) -> Result<ChosenTools, Problem> {
    let specs = parse_tools(tools, left)?;
    let chosen = |tools, must, choice| Ok(ChosenTools { tools, must, choice });
    let missing = |detail: String| {
        Err(invalid_value("tool_choice", detail)
            .with_hint("the choice is among `tools`, the caller's own"))
    };
    match choice {
        None | Some(Value::Null) => chosen(specs, None, json!("auto")),
        Some(Value::String(word)) => match word.as_str() {
            "auto" => chosen(specs, None, json!("auto")),
            "none" => chosen(Vec::new(), None, json!("none")),
            "required" if specs.is_empty() && !tools.is_empty() => {
                left.add_part("tool_choice");
                chosen(specs, None, json!("auto"))
            }
            "required" if specs.is_empty() => {
                missing("a call is required, and there are no `tools`".to_owned())
            }
            "required" => chosen(specs, Some(ToolChoice::Required), json!("required")),
            _ => Err(unfit_choice()),
        },
        Some(named) => match named.get("type").and_then(Value::as_str) {
            Some("function") => {
                let Some(name) = named_function(named) else { return Err(unfit_choice()) };
                if specs.iter().all(|spec| spec.name != name) {
                    let name = ShownText::clip_line(&name, 64);
                    return missing(format!("`{name}` is none of the `tools`"));
                }
                let choice = json!({"type": "function", "name": name});
                chosen(specs, Some(ToolChoice::Named(name)), choice)
            }
            // The chosen tool is of an unsupported kind, so the choice is ignored too.
            Some(kind) => {
                left.add_kind("tool_choice", kind);
                chosen(specs, None, json!("auto"))
            }
            None => Err(unfit_choice()),
        },
    }
}

/// The function that a choice names: nested for chat completions, flat for responses.
fn named_function(choice: &Value) -> Option<String> {
    let function = choice.get("function").unwrap_or(choice);
    function.get("name").and_then(Value::as_str).map(str::to_owned)
}

fn unfit_choice() -> Problem {
    let detail = "`tool_choice` can only be `auto`, `none`, `required` or one function";
    unsupported_parameter("tool_choice", detail)
        .with_hint("an agent chooses among its own tools by itself")
}

/// Parses the tools that are functions; others are recorded as ignored.
fn parse_tools(tools: &[Value], left: &mut IgnoredParts) -> Result<Vec<ToolSpec>, Problem> {
    let mut specs = Vec::with_capacity(tools.len());
    for (at, tool) in tools.iter().enumerate() {
        match tool.get("type").and_then(Value::as_str) {
            Some("function") => {
                specs.push(parse_tool(tool, at)?);
                left.tools.push(at);
            }
            Some(kind) => left.add_kind(&format!("tools[{at}]"), kind),
            None => {
                let place = format!("tools[{at}].type");
                return Err(invalid_value(&place, "a tool has no `type`")
                    .with_hint("tools that are served have the type `function`"));
            }
        }
    }
    Ok(specs)
}

/// Parses one function: nested for chat completions, flat for responses.
fn parse_tool(tool: &Value, at: usize) -> Result<ToolSpec, Problem> {
    let place = format!("tools[{at}]");
    let function = tool.get("function").filter(|it| it.is_object()).unwrap_or(tool);
    let name = function.get("name").and_then(Value::as_str);
    let no_name = || invalid_value(&format!("{place}.name"), format!("`{place}` has no name"));
    let description = match function.get("description") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(_) => {
            let at = format!("{place}.description");
            return Err(invalid_value(&at, format!("`{at}` is no text")));
        }
    };
    let schema = match function.get("parameters") {
        None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
        Some(schema) => schema.clone(),
    };
    Ok(ToolSpec { name: name.ok_or_else(no_name)?.to_owned(), description, schema })
}

/// The tools in the form that a response repeats.
pub(crate) fn list_tools(tools: &[Value]) -> Vec<Value> {
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
