//! Agents that programs keep in other forms than markdown: TOML (Codex), JSON (Kiro), recipes in YAML (goose).
//!
//! Such a file is rewritten as markdown with frontmatter, and read like every other file: each field stays, so
//! each limit stays. For example, `developer_instructions = "..."` becomes the text below the frontmatter, and
//! `sandbox_mode = "read-only"` stays a field.

use std::borrow::Cow;
use std::path::Path;

use serde_json::{Map, Value};

use crate::agent::NotAnAgent;
use crate::diagnostic::{Diagnostic, FileFindings, FilePosition, clamp_count};
use crate::frontmatter;
use crate::yaml::{self, YamlNode, YamlValue};

/// A form other than markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentForm {
    /// TOML, as Codex has it.
    Toml,
    /// JSON, as Kiro has it.
    Json,
    /// A recipe of goose.
    Recipe,
}

/// Fields with the prompt, the most specific first.
const PROMPTS: &[&str] =
    &["developer_instructions", "system_prompt", "systemPrompt", "instructions", "prompt"];

/// Tools of a recipe's extension `developer`, by names that belljar knows.
const DEVELOPER_TOOLS: &[&str] = &["Read", "Write", "Edit", "Glob", "Grep", "LS", "Bash"];

/// The deepest nesting of a value that becomes a field.
const MAX_DEPTH: usize = 16;

/// A rewritten file, and where its lines came from.
pub(crate) struct RewrittenAgent {
    /// Markdown with frontmatter.
    pub(crate) text: String,
    /// The line in the original for each line of the frontmatter, fences included.
    lines: Vec<u32>,
    /// The line of the prompt in the original.
    body_line: u32,
}

impl AgentForm {
    /// The form that the ending of a name stands for; `None` = markdown, or no agent's.
    pub(crate) fn for_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "toml" => Some(Self::Toml),
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Recipe),
            _ => None,
        }
    }

    /// Rewrites a file as markdown.
    ///
    /// # Errors
    ///
    /// The file has no agent's fields; or it is an agent's and broken, with findings.
    pub(crate) fn rewrite(
        self,
        path: &Path,
        bytes: &[u8],
        findings: &mut FileFindings<'_>,
    ) -> Result<RewrittenAgent, NotAnAgent> {
        let text = frontmatter::decode_utf8(bytes).map_err(|_| NotAnAgent::OtherFile)?;
        let fields = match self {
            Self::Toml => parse_toml(text),
            Self::Json => parse_json(text),
            Self::Recipe => parse_yaml(text),
        };
        let Some(fields) = fields.filter(|fields| self.is_agent(path, fields)) else {
            return Err(NotAnAgent::OtherFile);
        };
        let Some(prompt) = PROMPTS.iter().copied().find(|key| has_text(&fields, key)) else {
            return Err(NotAnAgent::OtherFile);
        };
        let body = prompt_text(&fields, prompt).into_owned();
        if body.trim_start().starts_with("file://") {
            findings.error_hint(
                FilePosition { line: line_of_key(text, prompt), column: 1 },
                "prompt-elsewhere",
                "its prompt is in another file",
                "put the text of that file in its place",
            );
        }
        let fields = match self {
            Self::Recipe => recipe_fields(&fields),
            Self::Toml | Self::Json => fields,
        };
        Ok(rewrite_fields(&fields, prompt, &body, text))
    }

    /// Whether the fields are those of an agent, and not of one of the many other files of this form.
    fn is_agent(self, path: &Path, fields: &Map<String, Value>) -> bool {
        let has = |key: &str| has_text(fields, key);
        match self {
            Self::Toml => {
                has("developer_instructions")
                    || (has("name") && has("description") && PROMPTS.iter().any(|key| has(key)))
            }
            Self::Json => {
                let in_place = path.components().any(|part| {
                    part.as_os_str()
                        .to_str()
                        .is_some_and(|part| matches!(part, "agents" | "cli-agents"))
                });
                // What packages and manifests have beside a name and a description.
                let other =
                    ["version", "scripts", "dependencies", "$schema", "plugins", "arguments"];
                let is_other = other.iter().any(|key| {
                    fields.contains_key(*key)
                        && !(in_place && matches!(*key, "$schema" | "version"))
                });
                !is_other
                    && PROMPTS.iter().any(|key| has(key))
                    && (has("description")
                        || (has("name") && (in_place || fields.contains_key("tools"))))
            }
            Self::Recipe => {
                let recipe = ["extensions", "activities", "settings", "parameters", "sub_recipes"];
                (has("title") || has("name"))
                    && has("description")
                    && (has("instructions") || has("prompt"))
                    && (fields.contains_key("version")
                        || recipe.iter().any(|key| fields.contains_key(*key)))
            }
        }
    }
}

impl RewrittenAgent {
    /// Moves a finding to the line of the original.
    pub(crate) fn move_finding(&self, finding: &mut Diagnostic) {
        (finding.line, finding.column) = (self.original_line(finding.line), 1);
    }

    fn original_line(&self, line: u32) -> u32 {
        let at = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        self.lines.get(at).copied().unwrap_or(self.body_line)
    }

    /// The line of the prompt in the original.
    pub(crate) fn body_line(&self) -> u32 {
        self.body_line
    }
}

/// Whether a file that is not markdown may hold an agent, by a look at its text: most files of these forms
/// hold something else, and a reader of many files drops those at once.
pub fn may_hold_agent(path: &Path, bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    AgentForm::for_path(path).is_some() && PROMPTS.iter().any(|prompt| text.contains(prompt))
}

/// Whether a file of this path may be an agent, by its ending.
pub(crate) fn may_be_agent(path: &Path) -> bool {
    crate::filed::is_markdown(path) || AgentForm::for_path(path).is_some()
}

fn has_text(fields: &Map<String, Value>, key: &str) -> bool {
    fields.get(key).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
}

/// The prompt; a recipe's instructions come before its first task.
fn prompt_text<'a>(fields: &'a Map<String, Value>, prompt: &str) -> Cow<'a, str> {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    match prompt {
        "instructions" if has_text(fields, "prompt") => {
            Cow::Owned(format!("{}\n\n{}", text("instructions"), text("prompt")))
        }
        prompt => Cow::Borrowed(text(prompt)),
    }
}

fn parse_toml(text: &str) -> Option<Map<String, Value>> {
    let table: toml::Table = text.parse().ok()?;
    let value = serde_json::to_value(table).ok()?;
    into_fields(value)
}

fn parse_json(text: &str) -> Option<Map<String, Value>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    into_fields(serde_json::from_str(text).ok()?)
}

fn parse_yaml(text: &str) -> Option<Map<String, Value>> {
    let root = yaml::parse_document(text, 1).ok()?;
    into_fields(yaml_value(&root, 0)?)
}

fn into_fields(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

fn yaml_value(node: &YamlNode, depth: usize) -> Option<Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    Some(match &node.value {
        YamlValue::Map(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                map.insert(key.text.clone(), yaml_value(value, depth + 1)?);
            }
            Value::Object(map)
        }
        YamlValue::List(items) => Value::Array(
            items.iter().map(|item| yaml_value(item, depth + 1)).collect::<Option<_>>()?,
        ),
        _ => node.as_text().map_or(Value::Null, |text| Value::String(text.to_owned())),
    })
}

/// The fields of a recipe in the words of an agent: its extensions are its tools, and no others.
fn recipe_fields(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut made = Map::new();
    let title = ["name", "title"].iter().find_map(|key| fields.get(*key));
    for (key, value) in [("name", title), ("description", fields.get("description"))] {
        if let Some(value) = value {
            made.insert(key.to_owned(), value.clone());
        }
    }
    let extensions = fields.get("extensions").and_then(Value::as_array);
    let mut tools: Vec<Value> = Vec::new();
    for extension in extensions.into_iter().flatten() {
        let text = |key: &str| extension.get(key).and_then(Value::as_str);
        match (text("type"), text("name")) {
            (Some("builtin"), Some("developer")) => {
                tools.extend(DEVELOPER_TOOLS.iter().map(|name| Value::from(*name)));
            }
            // Another one is named, so that it counts as missing.
            (_, Some(name)) => tools.push(Value::from(name)),
            (_, None) => {}
        }
    }
    made.insert("tools".to_owned(), Value::Array(tools));
    let settings = fields.get("settings");
    for (from, to) in [("max_turns", "maxTurns"), ("goose_model", "model")] {
        if let Some(value) = settings.and_then(|settings| settings.get(from)) {
            made.insert(to.to_owned(), value.clone());
        }
    }
    made
}

/// Writes the fields but the prompt as frontmatter, and the prompt below.
fn rewrite_fields(
    fields: &Map<String, Value>,
    prompt: &str,
    body: &str,
    original: &str,
) -> RewrittenAgent {
    let (mut text, mut lines) = ("---\n".to_owned(), vec![1]);
    for (key, value) in fields {
        // Numbers of lines are at most one for each key, and a prompt has two keys in a recipe.
        if key == prompt || value.is_null() {
            continue;
        }
        let name = Value::String(key.clone());
        text.push_str(&format!("{name}: {value}\n"));
        lines.push(line_of_key(original, key));
    }
    text.push_str("---\n");
    lines.push(clamp_count(original.lines().count().max(1)));
    text.push_str(body);
    RewrittenAgent { text, lines, body_line: line_of_key(original, prompt) }
}

/// The first line that begins with this key; the first line of all if there is none.
fn line_of_key(text: &str, key: &str) -> u32 {
    let begins = |line: &str| {
        let line = line.trim_start().trim_start_matches(['"', '\'', '{']).trim_start();
        line.strip_prefix(key)
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with([':', '=']))
    };
    text.lines().position(begins).map_or(1, |at| clamp_count(at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{KnownTools, ParsedAgentFile, parse_agent};

    fn parse(path: &str, text: &str) -> ParsedAgentFile {
        parse_agent(Path::new(path), text.as_bytes(), &KnownTools::default())
    }

    fn agent(path: &str, text: &str) -> crate::AgentDefinition {
        match parse(path, text) {
            ParsedAgentFile::Agent { definition, .. } => *definition,
            other => panic!("{path}: {other:?}"),
        }
    }

    const CODEX: &str = "name = \"reviewer\"\ndescription = \"Reviews: all\"\nsandbox_mode = \"read-only\"\n\
        developer_instructions = \"\"\"\nYou review.\nAlways.\n\"\"\"\n";

    #[test]
    fn toml_json_and_recipes_are_agents() {
        let codex = agent("agents/reviewer.toml", CODEX);
        assert_eq!((codex.name.as_str(), codex.description.as_str()), ("reviewer", "Reviews: all"));
        assert_eq!(codex.body, "You review.\nAlways.\n");
        assert_eq!(codex.body_line, 4);
        let kiro = agent(
            ".kiro/agents/helper.json",
            "{\n  \"name\": \"helper\",\n  \"description\": \"Helps\",\n  \"tools\": [\"read\"],\n  \"prompt\": \"You help.\"\n}",
        );
        assert_eq!((kiro.name.as_str(), kiro.body.as_str()), ("helper", "You help."));
        assert_eq!(kiro.tools_as_written.as_deref(), Some(&["read".to_owned()][..]));
        let goose = agent(
            "recipes/plan.yaml",
            "version: 1.0.0\ntitle: Plan Maker\ndescription: Makes plans\ninstructions: |\n  You plan.\nprompt: Go.\nextensions: []\n",
        );
        assert_eq!(goose.body, "You plan.\n\n\nGo.");
        assert_eq!(goose.tools_as_written.as_deref(), Some(&[][..]));
        assert_eq!(goose.slug.as_str(), "plan-maker");
    }

    #[test]
    fn a_limit_stays_one_in_every_form() {
        let markdown = agent(
            "reviewer.md",
            "---\nname: reviewer\ndescription: \"Reviews: all\"\nsandbox_mode: read-only\n---\nYou review.\nAlways.\n",
        );
        let codex = agent("reviewer.toml", CODEX);
        assert_eq!(codex.asked, markdown.asked);
        assert_eq!(codex.not_kept.len(), markdown.not_kept.len());
    }

    #[test]
    fn other_files_of_these_forms_are_no_agents() {
        for (path, text) in [
            (
                "package.json",
                "{\"name\":\"x\",\"version\":\"1\",\"description\":\"d\",\"prompt\":\"p\"}",
            ),
            ("agents/plugin.json", "{\"name\":\"x\",\"description\":\"d\"}"),
            ("Cargo.toml", "[package]\nname = \"x\"\ndescription = \"d\"\n"),
            ("commands/plan.toml", "description = \"d\"\nprompt = \"p\"\n"),
            ("ci.yml", "name: ci\non: push\n"),
            ("openai.yaml", "interface:\n  display_name: x\n"),
            ("x.json", "[1, 2]"),
            ("x.json", "not json"),
            ("x.toml", "="),
            ("x.yaml", "a: [b"),
        ] {
            let ParsedAgentFile::NotAnAgent { reason } = parse(path, text) else {
                panic!("{path}: {text}")
            };
            assert_eq!(reason, NotAnAgent::OtherFile, "{path}");
        }
        let elsewhere = "{\"name\":\"x\",\"description\":\"d\",\"prompt\":\"file://./x.md\"}";
        assert!(matches!(parse("agents/x.json", elsewhere), ParsedAgentFile::Invalid { .. }));
    }
}
