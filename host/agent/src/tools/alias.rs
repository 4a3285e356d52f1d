//! Shows an agent's tools to its model under the names that the agent's file uses, and translates the model's
//! calls back. Pure.
//!
//! All other code (rights, hooks, receipts, events) uses belljar's names only. A tool that is shown under
//! another name cannot be called by belljar's name, so the shown names are exactly the callable ones. For
//! example, if a file lists `Read`, the model sees `Read`, and receipts name `file_read`.

use std::collections::BTreeMap;

use belljar_definition::{
    AgentDefinition, ArgumentKind, ArgumentMapping, FixedValue, ForeignArgument, ForeignTool, SELF,
};
use belljar_model::{ToolCall, ToolSpec};
use belljar_policy::ShownText;
use serde_json::{Map, Value, json};

use crate::tools::answer::CallAnswer;
use crate::tools::call::arguments;

/// The names under which an agent's model sees its tools.
#[derive(Debug, Default)]
pub(crate) struct ToolAliases {
    aliases: BTreeMap<&'static str, &'static ForeignTool>,
}

impl ToolAliases {
    /// Renames each tool in `specs` to the names that the agent's file uses for it. Tools that the file does
    /// not name, and all tools if the file's dialect is unknown, keep belljar's names.
    pub(crate) fn put_up(definition: &AgentDefinition, specs: &mut Vec<ToolSpec>) -> Self {
        let mut shown: Vec<_> = std::mem::take(specs)
            .into_iter()
            .map(|spec| (list_aliases(definition, &spec.name), spec))
            .collect();
        // An alias is dropped if another tool keeps that name.
        while let Some((tool, name)) = find_clash(&shown) {
            for (aliases, spec) in &mut shown {
                aliases.retain(|alias| spec.name != tool || alias.name != name);
            }
        }
        let mut all = Self::default();
        for (aliases, spec) in shown {
            if aliases.is_empty() {
                specs.push(spec);
            }
            for alias in aliases {
                all.aliases.insert(alias.name, alias);
                specs.push(ToolSpec {
                    name: alias.name.to_owned(),
                    description: alias.description.to_owned(),
                    schema: arguments_schema(alias.arguments),
                });
            }
        }
        all
    }

    /// The foreign tool that is shown under this name.
    pub(crate) fn find_alias(&self, name: &str) -> Option<&'static ForeignTool> {
        self.aliases.get(name).copied()
    }

    /// The names under which a tool is shown, without its own name.
    pub(crate) fn alias_names(&self, tool: &str) -> Vec<&'static str> {
        self.aliases.values().filter(|alias| alias.tool == tool).map(|alias| alias.name).collect()
    }

    /// Rewrites an error for the model: if the model called the tool under another name, the error has that
    /// name and that tool's argument names.
    pub(crate) fn reword_answer(&self, called: &str, answer: CallAnswer) -> CallAnswer {
        let Some(alias) = self.find_alias(called).filter(|_| answer.is_error) else {
            return answer;
        };
        let mut content = answer.content.replace(&quote_name(alias.tool), &quote_name(alias.name));
        let mut reword = |arguments: &[ForeignArgument]| {
            for argument in arguments {
                if let ArgumentMapping::Argument(own) = argument.becomes
                    && own != argument.name
                {
                    content = content.replace(&quote_name(own), &quote_name(argument.name));
                }
            }
        };
        reword(alias.arguments);
        for argument in alias.arguments {
            if let ArgumentKind::Items(members) = argument.kind {
                reword(members);
            }
        }
        CallAnswer { content, ..answer }
    }
}

fn list_aliases(definition: &AgentDefinition, tool: &str) -> Vec<&'static ForeignTool> {
    ForeignTool::offered_aliases(definition.dialect, tool, &requested_names(definition, tool))
}

/// Finds a tool with an alias that is also the name which another tool keeps.
fn find_clash(shown: &[(Vec<&'static ForeignTool>, ToolSpec)]) -> Option<(String, &'static str)> {
    let kept =
        || shown.iter().filter(|(aliases, _)| aliases.is_empty()).map(|(_, spec)| &spec.name);
    shown.iter().find_map(|(aliases, spec)| {
        let alias = aliases.iter().find(|alias| kept().any(|name| name == alias.name))?;
        Some((spec.name.clone(), alias.name))
    })
}

/// The names in the file's `tools` that mean this tool.
fn requested_names<'d>(definition: &'d AgentDefinition, tool: &str) -> Vec<&'d str> {
    let all = definition.tools_as_written.iter().flatten();
    let own = all.map(String::as_str).filter(|name| *name == tool);
    let translated = definition.translated.iter();
    let gave = translated.filter(|row| row.tools.iter().any(|it| it.as_str() == tool));
    // A scope, for example `(*)` in `Bash(*)`, is not part of the name.
    let name = |text: &'d str| text.split('(').next().unwrap_or(text).trim();
    own.chain(gave.map(|row| name(&row.written))).collect()
}

fn quote_name(name: &str) -> String {
    format!("`{name}`")
}

/// Translates a call to belljar's name and arguments. The error text is for the model.
pub(crate) fn translate_call(alias: &ForeignTool, call: &ToolCall) -> Result<ToolCall, String> {
    let given: Map<String, Value> = belljar_received::json::from_str_with_wholes(arguments(call))
        .map_err(|error| {
        let shown = ShownText::clip_line(&error.to_string(), 200).to_string();
        format!("invalid arguments: {shown}; send one JSON object")
    })?;
    let mut own = Map::new();
    translate_members(alias.arguments, given, &mut own)?;
    for (name, value) in alias.given {
        own.entry(*name).or_insert_with(|| match value {
            FixedValue::Text(text) => json!(text),
            FixedValue::Flag(flag) => json!(flag),
        });
    }
    let arguments = Value::Object(own).to_string();
    Ok(ToolCall { id: call.id.clone(), name: alias.tool.to_owned(), arguments })
}

/// Translates the members of one JSON object of arguments, and inserts them into `own`.
fn translate_members(
    arguments: &[ForeignArgument],
    mut given: Map<String, Value>,
    own: &mut Map<String, Value>,
) -> Result<(), String> {
    for argument in arguments {
        // Models send `null` for omitted arguments.
        let value = given.shift_remove(argument.name).filter(|value| !value.is_null());
        match value {
            Some(value) => place_argument(argument, value, own)?,
            None if argument.required => {
                return Err(format!("invalid arguments: `{}` is missing", argument.name));
            }
            None => {
                if let ArgumentMapping::IsPattern(of) = argument.becomes {
                    escape_pattern(own, of);
                }
            }
        }
    }
    match given.keys().next() {
        None => Ok(()),
        Some(unknown) => {
            let names: Vec<_> =
                arguments.iter().map(|argument| quote_name(argument.name)).collect();
            let unknown = ShownText::clip_line(unknown, 60);
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Err(format!("invalid arguments: there is no `{unknown}`; there are {known}"))
        }
    }
}

/// Translates an argument and inserts it into `own`. An error names the argument.
fn place_argument(
    argument: &ForeignArgument,
    value: Value,
    own: &mut Map<String, Value>,
) -> Result<(), String> {
    let refuse = |why: &str| Err(format!("invalid arguments: `{}`: {why}", argument.name));
    match argument.becomes {
        ArgumentMapping::Argument(name) => {
            own.insert(name.to_owned(), translate_value(argument, value)?);
        }
        ArgumentMapping::OnlyElement(name) => match only_element(value) {
            Ok(element) => {
                own.insert(name.to_owned(), element);
            }
            Err(why) => return refuse(why),
        },
        ArgumentMapping::OnlyObject => match (only_element(value), argument.kind) {
            (Ok(Value::Object(object)), ArgumentKind::Items(inner)) => {
                translate_members(inner, object, own)?;
            }
            (Ok(_), _) => return refuse("its element is not an object"),
            (Err(why), _) => return refuse(why),
        },
        ArgumentMapping::Sites { of, only } => match format_site_terms(&value, only) {
            Some(terms) => {
                if let Some(Value::String(text)) = own.get_mut(of) {
                    text.push_str(&terms);
                }
            }
            None => return refuse("it is not a list of host names"),
        },
        ArgumentMapping::IsPattern(of) => {
            if value != Value::Bool(true) {
                escape_pattern(own, of);
            }
        }
        ArgumentMapping::Nothing(_) => {}
        ArgumentMapping::Never(why) => {
            if value != Value::Bool(false) {
                return refuse(why);
            }
        }
    }
    Ok(())
}

/// Translates an argument's value to belljar's type and words. A value of an unexpected type is passed on
/// unchanged, and the tool reports it.
fn translate_value(argument: &ForeignArgument, value: Value) -> Result<Value, String> {
    match (argument.kind, value) {
        (ArgumentKind::Word(words), Value::String(text)) => {
            let own = words.iter().find(|(theirs, _)| *theirs == text).map(|(_, own)| *own);
            own.map(|own| json!(own)).ok_or_else(|| {
                let known: Vec<_> = words.iter().map(|(theirs, _)| quote_name(theirs)).collect();
                let known = known.join(", ");
                format!("invalid arguments: `{}` is none of {known}", argument.name)
            })
        }
        (ArgumentKind::Items(inner), Value::Array(items)) => {
            let item = |(place, item): (usize, Value)| {
                let Value::Object(object) = item else { return Ok(item) };
                let mut own = Map::new();
                translate_members(inner, object, &mut own)
                    .map_err(|why| format!("{why} (item {})", place + 1))?;
                Ok(own.shift_remove(SELF).unwrap_or(Value::Object(own)))
            };
            items.into_iter().enumerate().map(item).collect()
        }
        (_, value) => Ok(value),
    }
}

/// The one element of a list; an error if the list has none or several.
fn only_element(value: Value) -> Result<Value, &'static str> {
    let Value::Array(mut elements) = value else { return Err("it is not a list") };
    match (elements.pop(), elements.is_empty()) {
        (Some(element), true) => Ok(element),
        (None, _) => Err("it is empty"),
        (Some(_), false) => Err("one call takes one of them; make a call for each"),
    }
}

/// The search terms that limit a web search to these sites, or exclude them if not `only`.
fn format_site_terms(value: &Value, only: bool) -> Option<String> {
    let plain = |text: &&str| {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '/' | '_');
        !text.is_empty() && text.chars().all(fine)
    };
    let names = value.as_array()?.iter().map(|it| it.as_str().filter(plain));
    let names: Vec<&str> = names.collect::<Option<_>>()?;
    let terms: Vec<String> = match only {
        true => names.iter().map(|name| format!("site:{name}")).collect(),
        false => names.iter().map(|name| format!("-site:{name}")).collect(),
    };
    let between = if only { " OR " } else { " " };
    Some(if terms.is_empty() { String::new() } else { format!(" {}", terms.join(between)) })
}

/// Escapes the text in member `of`, which a foreign tool takes literally, because belljar's tool reads a
/// regular expression there.
fn escape_pattern(own: &mut Map<String, Value>, of: &str) {
    if let Some(Value::String(text)) = own.get_mut(of) {
        let special = |c: char| r"\.+*?()|[]{}^$#&-~".contains(c);
        *text =
            text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect();
    }
}

/// The JSON Schema that shows a foreign tool's arguments to the model.
fn arguments_schema(arguments: &[ForeignArgument]) -> Value {
    let properties: Map<String, Value> = arguments
        .iter()
        .map(|argument| (argument.name.to_owned(), argument_schema(argument)))
        .collect();
    let required: Vec<_> = arguments.iter().filter(|it| it.required).map(|it| it.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The JSON Schema of one foreign argument.
fn argument_schema(argument: &ForeignArgument) -> Value {
    let mut property = match argument.kind {
        ArgumentKind::Text => json!({"type": "string"}),
        ArgumentKind::Number => json!({"type": "integer"}),
        ArgumentKind::Flag => json!({"type": "boolean"}),
        ArgumentKind::Word(words) => {
            let words: Vec<_> = words.iter().map(|(theirs, _)| *theirs).collect();
            json!({"type": "string", "enum": words})
        }
        ArgumentKind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        ArgumentKind::Object => json!({"type": "object"}),
        ArgumentKind::Items(members) => {
            json!({"type": "array", "items": arguments_schema(members)})
        }
    };
    if let Value::Object(property) = &mut property {
        property.insert("description".to_owned(), json!(argument.description));
    }
    property
}

#[cfg(test)]
mod tests;
