//! Descriptions of tools as functions (stubs), for a model that calls tools from Python or JavaScript code.
//!
//! A stub is made from a tool's schema, which may be a stranger's text. Text that would end the stub's
//! comment, and invalid names, are left out.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use belljar_model::ToolSpec;
use serde_json::{Map, Value};

/// Most bytes of all stubs together. Tools beyond it are only named, and code can ask `help` about them.
const MAX_STUBS: usize = 48 << 10;

/// Most bytes of one description in a stub.
const MAX_TEXT: usize = 2_000;

/// Levels of nested types that a stub shows; a deeper type is shown as `Any`.
const MAX_DEPTH: usize = 4;

/// The languages that tools can be called from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StubLanguage {
    /// Python, by `run_python`.
    Python,
    /// JavaScript, by `run_javascript`.
    JavaScript,
}

impl StubLanguage {
    /// All languages, the default first.
    pub(crate) const ALL: [Self; 2] = [Self::Python, Self::JavaScript];

    /// The tool that runs the language.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Python => "run_python",
            Self::JavaScript => "run_javascript",
        }
    }

    /// The stubs of these tools, for the description of the code tool.
    pub(crate) fn render_interface<'t>(
        self,
        tools: impl IntoIterator<Item = &'t ToolSpec>,
    ) -> String {
        let mut text = String::from("\n\nThe tools:\n");
        let mut unsaid = Vec::new();
        for tool in tools {
            let stub = self.render_stub(tool);
            if text.len().saturating_add(stub.len()) > MAX_STUBS {
                unsaid.push(format!("`{}`", tool.name));
                continue;
            }
            text.push_str(&stub);
        }
        if !unsaid.is_empty() {
            // Writing to a text does not fail.
            let _ = writeln!(text, "And {}: ask `help`.", unsaid.join(", "));
        }
        text
    }

    /// The stub of a tool: its function signature with the descriptions as comment.
    fn render_stub(self, tool: &ToolSpec) -> String {
        let arguments = list_arguments(&tool.schema);
        match self {
            Self::Python => {
                let listed: Vec<String> = arguments.iter().map(|it| it.to_python()).collect();
                let star = if listed.is_empty() { "" } else { "*, " };
                let mut text = format!("def tools.{}({star}{}):\n", tool.name, listed.join(", "));
                let _ = write!(text, "    \"\"\"{}", to_comment_line(&tool.description));
                for argument in arguments.iter().filter(|it| !it.note.is_empty()) {
                    let _ = write!(text, "\n    {}: {}", argument.name, argument.note);
                }
                text.push_str("\"\"\"\n");
                text
            }
            Self::JavaScript => {
                let mut text = format!("/** {}", to_comment_line(&tool.description));
                for argument in arguments.iter().filter(|it| !it.note.is_empty()) {
                    let _ = write!(text, "\n * {}: {}", argument.name, argument.note);
                }
                let listed: Vec<String> = arguments.iter().map(|it| it.to_javascript()).collect();
                let object = match listed.as_slice() {
                    [] => String::new(),
                    listed => format!("{{{}}}", listed.join(", ")),
                };
                let _ = writeln!(text, " */\ntools.{}({object})", tool.name);
                text
            }
        }
    }
}

/// One argument of a tool.
struct StubArgument<'s> {
    name: &'s str,
    schema: &'s Value,
    required: bool,
    note: String,
}

impl StubArgument<'_> {
    fn to_python(&self) -> String {
        let default = if self.required { "" } else { " = ..." };
        format!("{}: {}{default}", self.name, python_type(self.schema, 0))
    }

    fn to_javascript(&self) -> String {
        let mark = if self.required { "" } else { "?" };
        format!("{}{mark}: {}", self.name, javascript_type(self.schema, 0))
    }
}

/// The arguments in an object schema, required ones first.
fn list_arguments(schema: &Value) -> Vec<StubArgument<'_>> {
    let required = schema.get("required").and_then(Value::as_array);
    let required: BTreeSet<&str> =
        required.into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let named = properties.into_iter().flatten().filter(|(name, _)| is_name(name));
    let mut arguments: Vec<StubArgument<'_>> = named
        .map(|(name, schema)| {
            let note = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            StubArgument {
                name,
                schema,
                required: required.contains(name.as_str()),
                note: to_comment_line(note),
            }
        })
        .collect();
    arguments.sort_by_key(|argument| !argument.required);
    arguments
}

/// The Python type of a schema, for example `list[str]`. `depth` counts the levels above.
fn python_type(schema: &Value, depth: usize) -> String {
    if let Some(words) = enum_literals(schema) {
        return format!("Literal[{}]", words.join(", "));
    }
    match schema_shape(schema, depth) {
        ValueShape::Text => "str".to_owned(),
        ValueShape::Integer => "int".to_owned(),
        ValueShape::Number => "float".to_owned(),
        ValueShape::Boolean => "bool".to_owned(),
        ValueShape::Null => "None".to_owned(),
        ValueShape::List(items) => format!("list[{}]", python_type(items, depth + 1)),
        ValueShape::Object(fields) => {
            let all: Vec<String> = fields
                .iter()
                .map(|(name, of)| format!("{}: {}", quote_text(name), python_type(of, depth + 1)))
                .collect();
            format!("{{{}}}", all.join(", "))
        }
        ValueShape::Map => "dict".to_owned(),
        ValueShape::OneOf(all) => join_types(all, |one| python_type(one, depth + 1)),
        ValueShape::Any => "Any".to_owned(),
    }
}

/// The TypeScript type of a schema, for example `Array<string>`. `depth` counts the levels above.
fn javascript_type(schema: &Value, depth: usize) -> String {
    if let Some(words) = enum_literals(schema) {
        return words.join(" | ");
    }
    match schema_shape(schema, depth) {
        ValueShape::Text => "string".to_owned(),
        ValueShape::Integer | ValueShape::Number => "number".to_owned(),
        ValueShape::Boolean => "boolean".to_owned(),
        ValueShape::Null => "null".to_owned(),
        ValueShape::List(items) => format!("Array<{}>", javascript_type(items, depth + 1)),
        ValueShape::Object(fields) => {
            let all: Vec<String> = fields
                .iter()
                .map(|(name, of)| {
                    format!("{}?: {}", quote_text(name), javascript_type(of, depth + 1))
                })
                .collect();
            format!("{{{}}}", all.join(", "))
        }
        ValueShape::Map => "object".to_owned(),
        ValueShape::OneOf(all) => join_types(all, |one| javascript_type(one, depth + 1)),
        ValueShape::Any => "any".to_owned(),
    }
}

/// The kind of value that a schema allows.
enum ValueShape<'s> {
    Text,
    Integer,
    Number,
    Boolean,
    Null,
    List(&'s Value),
    Object(Vec<(&'s String, &'s Value)>),
    Map,
    OneOf(&'s Vec<Value>),
    Any,
}

/// Finds the kind of value that a schema allows; unknown or too deep schemas allow any.
fn schema_shape(schema: &Value, depth: usize) -> ValueShape<'_> {
    if depth >= MAX_DEPTH {
        return ValueShape::Any;
    }
    let several = ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array());
    if let Some(all) = several.filter(|all| !all.is_empty()) {
        return ValueShape::OneOf(all);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => ValueShape::Text,
        Some("integer") => ValueShape::Integer,
        Some("number") => ValueShape::Number,
        Some("boolean") => ValueShape::Boolean,
        Some("null") => ValueShape::Null,
        Some("array") => ValueShape::List(schema.get("items").unwrap_or(&Value::Null)),
        Some("object") => match schema.get("properties").and_then(Value::as_object) {
            Some(fields) if !fields.is_empty() => {
                ValueShape::Object(fields.iter().filter(|(name, _)| is_name(name)).collect())
            }
            Some(_) | None => ValueShape::Map,
        },
        Some(_) | None => ValueShape::Any,
    }
}

/// The values of an `enum`, quoted as both languages write them; `None` = no `enum`.
fn enum_literals(schema: &Value) -> Option<Vec<String>> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(quote_text(text)),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let constant =
        |schema: &Map<String, Value>| schema.get("const").and_then(one).map(|it| vec![it]);
    let schema = schema.as_object()?;
    match schema.get("enum").and_then(Value::as_array) {
        Some(all) if !all.is_empty() => all.iter().map(one).collect(),
        Some(_) | None => constant(schema),
    }
}

fn join_types(all: &[Value], one: impl Fn(&Value) -> String) -> String {
    let mut types: Vec<String> = all.iter().map(one).collect();
    types.dedup();
    types.join(" | ")
}

/// A text in quotes, without characters that would end the quotes.
fn quote_text(text: &str) -> String {
    Value::from(to_comment_line(text)).to_string()
}

/// A text in one line that cannot end the surrounding comment.
fn to_comment_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.replace("\"\"\"", "'''").replace("*/", "* /");
    crate::limits::truncate_str(&words, MAX_TEXT).to_owned()
}

/// Returns whether a name is a valid argument name in both languages.
fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let begins = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    begins && name.len() <= 64 && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, description: &str, schema: Value) -> ToolSpec {
        ToolSpec { name: name.to_owned(), description: description.to_owned(), schema }
    }

    fn both(tool: &ToolSpec) -> (String, String) {
        (StubLanguage::Python.render_stub(tool), StubLanguage::JavaScript.render_stub(tool))
    }

    #[test]
    fn a_stub_has_the_types_of_the_schema_and_what_must_be_given_first() {
        let schema = json!({
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "description": "How many."},
                "path": {"type": "string", "description": "The\n file."},
                "mode": {"enum": ["a", "b"]},
                "edits": {"type": "array", "items": {"type": "object", "properties": {"old": {"type": "string"}}}},
                "at": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            },
            "required": ["path"],
        });
        let (python, javascript) = both(&tool("file_read", "Reads.", schema));
        assert_eq!(
            python,
            "def tools.file_read(*, path: str, limit: int = ..., mode: Literal[\"a\", \"b\"] = ..., \
             edits: list[{\"old\": str}] = ..., at: float | None = ...):\n    \"\"\"Reads.\n    \
             path: The file.\n    limit: How many.\"\"\"\n"
        );
        assert_eq!(
            javascript,
            "/** Reads.\n * path: The file.\n * limit: How many. */\ntools.file_read({path: string, \
             limit?: number, mode?: \"a\" | \"b\", edits?: Array<{\"old\"?: string}>, at?: number | null})\n"
        );
    }

    #[test]
    fn a_tool_without_arguments_has_none() {
        let (python, javascript) = both(&tool("now", "Now.", json!({"type": "object"})));
        assert_eq!(python, "def tools.now():\n    \"\"\"Now.\"\"\"\n");
        assert_eq!(javascript, "/** Now. */\ntools.now()\n");
    }

    #[test]
    fn hostile_schemas_stay_inside_of_their_comment() {
        let name = "x): evil()\ndef tools.y(";
        let schema = json!({
            "type": "object",
            "properties": {
                name: {"type": "string"},
                "ok": {"type": "string", "description": "\"\"\"\nimport os */ evil()"},
                "words": {"enum": ["\"\"\" */"]},
            },
        });
        let (python, javascript) = both(&tool("t", "\"\"\" */ evil", schema));
        assert!(!python.contains("x)") && !javascript.contains("x)"));
        assert_eq!(python.matches("\"\"\"").count(), 2, "{python}");
        assert_eq!(javascript.matches("*/").count(), 1, "{javascript}");
        let mut deep = json!({"type": "string"});
        for _ in 0..50 {
            deep = json!({"type": "array", "items": deep});
        }
        let (python, _) = both(&tool("t", "", json!({"properties": {"deep": deep}})));
        assert!(python.contains("list[list[list[list[Any]]]]"), "{python}");
    }

    #[test]
    fn arguments_are_not_looked_for_one_by_one_in_the_list_of_the_required_ones() {
        let names: Vec<String> = (0..60_000).map(|n| format!("a{n}")).collect();
        let properties: Map<String, Value> =
            names.iter().map(|it| (it.clone(), json!({}))).collect();
        // Comparing each of these properties with each required name would take over a billion comparisons.
        let schema = json!({"properties": properties, "required": names});
        assert_eq!(list_arguments(&schema).iter().filter(|it| it.required).count(), names.len());
    }

    #[test]
    fn many_tools_are_named_where_there_is_no_room_for_their_stubs() {
        let long = "x ".repeat(900);
        let tools: Vec<ToolSpec> =
            (0..60).map(|at| tool(&format!("t{at}"), &long, json!({}))).collect();
        let text = StubLanguage::Python.render_interface(&tools);
        assert!(text.len() < MAX_STUBS + 2_000, "{}", text.len());
        assert!(text.contains("def tools.t0(") && text.ends_with("`t59`: ask `help`.\n"));
    }
}
