//! The tools of a caller, in the two forms that these wires have.

use belljar_agent::{ToolChoice, ToolSpec};
use belljar_policy::Shown;
use serde_json::{Value, json};

use crate::http::problem::Problem;
use crate::openai::params::{invalid, unsupported};

/// Whether a call may be made of the caller's tools.
pub(crate) struct Chosen {
    /// The tools, none where none may be called.
    pub(crate) tools: Vec<ToolSpec>,
    /// The call that the answer has to end with.
    pub(crate) must: Option<ToolChoice>,
    /// `tool_choice`, as a response repeats it.
    pub(crate) choice: Value,
}

/// The tools of a request, as `tool_choice` has them.
pub(crate) fn chosen(tools: &[Value], choice: Option<&Value>) -> Result<Chosen, Problem> {
    let specs = tools.iter().enumerate();
    let specs = specs.map(|(at, tool)| spec(tool, at)).collect::<Result<Vec<_>, _>>()?;
    let chosen = |tools, must, choice| Ok(Chosen { tools, must, choice });
    let missing = |detail: String| {
        Err(invalid("tool_choice", detail).hint("the choice is among `tools`, the caller's own"))
    };
    match choice {
        None | Some(Value::Null) => chosen(specs, None, json!("auto")),
        Some(Value::String(word)) => match word.as_str() {
            "auto" => chosen(specs, None, json!("auto")),
            "none" => chosen(Vec::new(), None, json!("none")),
            "required" if specs.is_empty() => {
                missing("a call is required, and there are no `tools`".to_owned())
            }
            "required" => chosen(specs, Some(ToolChoice::Required), json!("required")),
            _ => Err(unfit()),
        },
        Some(named) => {
            let Some(name) = named_function(named) else { return Err(unfit()) };
            if specs.iter().all(|spec| spec.name != name) {
                let name = Shown::clipped(&name, 64);
                return missing(format!("`{name}` is none of the `tools`"));
            }
            let choice = json!({"type": "function", "name": name});
            chosen(specs, Some(ToolChoice::Named(name)), choice)
        }
    }
}

/// The function that a choice names: of chat completions inside, of responses in one piece.
fn named_function(choice: &Value) -> Option<String> {
    choice.get("type").filter(|kind| *kind == "function")?;
    let function = choice.get("function").unwrap_or(choice);
    function.get("name").and_then(Value::as_str).map(str::to_owned)
}

fn unfit() -> Problem {
    let detail = "`tool_choice` can only be `auto`, `none`, `required` or one function";
    unsupported("tool_choice", detail).hint("an agent chooses among its own tools by itself")
}

/// A tool: of chat completions with its function inside, of responses in one piece.
fn spec(tool: &Value, at: usize) -> Result<ToolSpec, Problem> {
    let place = format!("tools[{at}]");
    if tool.get("type").and_then(Value::as_str) != Some("function") {
        return Err(unsupported(
            &format!("{place}.type"),
            "tools can only be of the type `function`",
        )
        .hint("what else an agent can do, its own tools say"));
    }
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

/// The tools as a response lists them.
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
    tools.iter().map(listed).collect()
}
