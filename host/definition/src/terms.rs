//! The fields that skills and commands share: the tools that remain while the text is in use, a model, the
//! arguments, and the subagent that does the work.
//!
//! Each field narrows or informs; none grants a right. For example, `allowed-tools: Read, Grep` leaves an agent
//! with at most two of its tools.

use belljar_policy::ShownText;

use crate::diagnostic::FilePosition;
use crate::fields::{self, UnreadFields, quote_value};
use crate::yaml::{YamlKey, YamlNode, YamlValue};

/// The most names of one list; the longest public one has some 60.
const MAX_NAMES: usize = 200;

/// The most characters of a name, and of the text of another field.
const MAX_NAME: usize = 200;

/// The most bytes of `when_to_use`.
const MAX_WHEN: usize = 4_096;

/// The spellings of the field that lists the remaining tools.
const ALLOWED: &[&str] = &["allowed-tools", "allowed_tools", "allowedTools", "tools"];

/// The spellings of the field that lists tools that are taken away.
const DISALLOWED: &[&str] =
    &["disallowed-tools", "disallowed_tools", "disallowedTools", "denied-tools"];

/// What a skill or a command states about the use of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UseTerms {
    /// The tools that remain while the text is in use, as written; `None` = all.
    pub allowed_tools: Option<Vec<String>>,
    /// The tools that are taken away while the text is in use, as written.
    pub disallowed_tools: Vec<String>,
    /// The model for the work, as written. Foreign text.
    pub model: Option<String>,
    /// The arguments as a person sees them before typing, for example `[file]`. Foreign text.
    pub argument_hint: Option<String>,
    /// The names of the arguments, in order: `$NAME` in the text is the argument at that place.
    pub arguments: Vec<String>,
    /// The situation in which to use the text, beside its description. Foreign text.
    pub when_to_use: Option<String>,
    /// Whether a subagent does the work (`context: fork`).
    pub forks: bool,
    /// The agent that does the work, by name. Foreign text.
    pub agent: Option<String>,
}

impl UseTerms {
    /// The names of the fields, for suggestions.
    pub(crate) const KEYS: [&'static str; 8] = [
        "allowed-tools",
        "disallowed-tools",
        "model",
        "argument-hint",
        "arguments",
        "when_to_use",
        "context",
        "agent",
    ];

    /// Removes the fields from `fields` and reads the values. A value of the wrong kind is a warning, and
    /// narrows if the field narrows.
    pub(crate) fn take_from(fields: &mut UnreadFields<'_, '_>) -> Self {
        let mut terms = Self::default();
        while let Some((key, node)) = fields.take_matching(|name| ALLOWED.contains(&name)) {
            let names = read_names(&key, &node, fields).unwrap_or_default();
            terms.allowed_tools = Some(match terms.allowed_tools.take() {
                Some(before) => before.into_iter().filter(|name| names.contains(name)).collect(),
                None => names,
            });
        }
        while let Some((key, node)) = fields.take_matching(|name| DISALLOWED.contains(&name)) {
            match read_names(&key, &node, fields) {
                Some(names) => terms.disallowed_tools.extend(names),
                // Nobody knows what the author removed, so no tool remains.
                None => terms.allowed_tools = Some(Vec::new()),
            }
        }
        terms.model = read_line(fields, &["model"]).filter(|model| model != "inherit");
        terms.argument_hint = read_hint(fields);
        terms.arguments = read_arguments(fields);
        terms.when_to_use = read_text(fields, &["when_to_use", "when-to-use", "whenToUse"]);
        terms.agent = read_line(fields, &["agent", "subagent"]);
        terms.forks = read_fork(fields);
        terms
    }

    /// Whether the text narrows the tools of the agent that uses the text.
    pub fn narrows_tools(&self) -> bool {
        self.allowed_tools.is_some() || !self.disallowed_tools.is_empty()
    }
}

/// Splits at commas and white space outside parentheses: `Read, Bash(git add:*)` is two names.
pub(crate) fn split_tool_names(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    });
    let bare = |part: &str| part.trim_matches(['[', ']', '"', '\'', '`']).trim().to_owned();
    parts.map(bare).filter(|part| !part.is_empty() && part != "-").collect()
}

/// The tool names in a list, a text, or a map with switches.
fn read_names(
    key: &YamlKey,
    node: &YamlNode,
    fields: &mut UnreadFields<'_, '_>,
) -> Option<Vec<String>> {
    let names: Vec<String> = match &node.value {
        YamlValue::Null => Vec::new(),
        YamlValue::Text(text) => split_tool_names(text),
        YamlValue::List(items) => {
            items.iter().filter_map(YamlNode::as_text).flat_map(split_tool_names).collect()
        }
        // `Read: true`.
        YamlValue::Map(entries) => {
            let on = |(_, node): &&(YamlKey, YamlNode)| fields::parse_boolean(node) != Some(false);
            entries.iter().filter(on).map(|(key, _)| key.text.clone()).collect()
        }
        YamlValue::Bool(_) | YamlValue::Int(_) | YamlValue::Float => {
            let name = ShownText::clip_line(&key.text, 64);
            let message = format!("`{name}` is {}, not a list of tools", quote_value(node));
            fields.findings.warning(key.at, "bad-field", message, None);
            return None;
        }
    };
    if names.len() > MAX_NAMES {
        let message = format!("`{}` has more than {MAX_NAMES} names", key.text);
        fields.findings.warning(key.at, "too-many", message, None);
        return None;
    }
    Some(names.into_iter().map(|name| clip_text(&name, MAX_NAME)).collect())
}

/// The first field of these names with a text or a number.
fn read_text(fields: &mut UnreadFields<'_, '_>, names: &[&str]) -> Option<String> {
    let mut found = None;
    while let Some((key, node)) = fields.take_matching(|name| names.contains(&name)) {
        match node.as_text().map(str::trim) {
            Some(text) if !text.is_empty() => {
                found.get_or_insert_with(|| clip_text(text, MAX_WHEN));
            }
            Some(_) => {}
            None if node.value == YamlValue::Null => {}
            None => {
                let name = ShownText::clip_line(&key.text, 64);
                let message = format!("`{name}` is {}, not a text", node.describe_kind());
                fields.findings.warning(key.at, "bad-field", message, None);
            }
        }
    }
    found
}

fn read_line(fields: &mut UnreadFields<'_, '_>, names: &[&str]) -> Option<String> {
    read_text(fields, names)
        .map(|text| clip_text(&text.split_whitespace().collect::<Vec<_>>().join(" "), MAX_NAME))
}

/// `argument-hint: [file]` is a list in YAML, and a text for people.
fn read_hint(fields: &mut UnreadFields<'_, '_>) -> Option<String> {
    let spelled = |name: &str| matches!(name, "argument-hint" | "argument_hint" | "argumentHint");
    let (_, node) = fields.take_matching(spelled)?;
    let text = match &node.value {
        YamlValue::List(items) => {
            let words: Vec<&str> = items.iter().filter_map(YamlNode::as_text).collect();
            (!words.is_empty()).then(|| format!("[{}]", words.join(", ")))
        }
        YamlValue::Map(entries) => {
            let words: Vec<&str> = entries.iter().map(|(key, _)| key.text.as_str()).collect();
            (!words.is_empty()).then(|| words.join(" "))
        }
        YamlValue::Null
        | YamlValue::Bool(_)
        | YamlValue::Int(_)
        | YamlValue::Float
        | YamlValue::Text(_) => node.as_text().map(str::to_owned),
    };
    let text = text?.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then(|| clip_text(&text, MAX_NAME))
}

/// The names of arguments: words, or a list of words or of maps with `name`.
fn read_arguments(fields: &mut UnreadFields<'_, '_>) -> Vec<String> {
    let Some((key, node)) = fields.take_field("arguments") else { return Vec::new() };
    let named = |node: &YamlNode| match &node.value {
        YamlValue::Map(entries) => {
            let own = entries.iter().find(|(key, _)| key.text == "name");
            own.and_then(|(_, node)| node.as_text()).map(str::to_owned)
        }
        _ => node.as_text().map(str::to_owned),
    };
    let names: Vec<String> = match &node.value {
        YamlValue::Null => Vec::new(),
        YamlValue::List(items) => items.iter().filter_map(named).collect(),
        YamlValue::Map(entries) => entries.iter().map(|(key, _)| key.text.clone()).collect(),
        YamlValue::Text(text) => text.split([' ', ',', '\t', '\n']).map(str::to_owned).collect(),
        YamlValue::Bool(_) | YamlValue::Int(_) | YamlValue::Float => {
            let message = format!("`arguments` is {}, not a list of names", quote_value(&node));
            fields.findings.warning(key.at, "bad-field", message, None);
            Vec::new()
        }
    };
    let fits = |name: &String| {
        let mut chars = name.chars();
        chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
            && name.chars().count() <= 64
    };
    names.into_iter().filter(fits).take(MAX_NAMES).collect()
}

/// Whether `context: fork` lets a subagent do the work.
fn read_fork(fields: &mut UnreadFields<'_, '_>) -> bool {
    let at: FilePosition = fields.field_position("context");
    match read_line(fields, &["context"]).as_deref() {
        None | Some("inline" | "inherit" | "main") => false,
        Some("fork") => true,
        Some(other) => {
            let shown = ShownText::clip_line(other, 60);
            let message = format!("`context` is `{shown}`, not `fork`: it has no effect");
            fields.findings.note(at, "ignored-fields", message);
            false
        }
    }
}

fn clip_text(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools_are_split_outside_parentheses() {
        let split = |text: &str| split_tool_names(text).join("|");
        assert_eq!(split("Read, Grep"), "Read|Grep");
        assert_eq!(split("Read Grep\n- Glob"), "Read|Grep|Glob");
        assert_eq!(
            split("Bash(git add:*), Bash(git status:*)"),
            "Bash(git add:*)|Bash(git status:*)"
        );
        assert_eq!(split("[\"Read\", 'Write']"), "Read|Write");
        assert_eq!(split(" , "), "");
    }
}
