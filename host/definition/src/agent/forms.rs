//! Agents that programs store in other forms than markdown: TOML (Codex), JSON (Kiro), recipes in YAML
//! (goose).
//!
//! Such a file is rewritten as markdown with frontmatter and then read like every agent file. Each field is
//! kept, so each limit is kept. For example, `developer_instructions = "..."` becomes the text below the
//! frontmatter, and `sandbox_mode = "read-only"` stays a field.

use std::borrow::Cow;
use std::path::Path;

use serde_json::{Map, Value};

use crate::agent::NotAnAgent;
use crate::diagnostic::{Diagnostic, FileFindings, FilePosition, clamp_count};
use crate::frontmatter;
use crate::yaml::{self, YamlNode, YamlValue};

/// The form of an agent file that is not markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentForm {
    /// TOML, as Codex writes it.
    Toml,
    /// JSON, as Kiro writes it.
    Json,
    /// A recipe of goose.
    Recipe,
}

/// Fields that hold the prompt. If a file has several, the first of this list counts.
const PROMPTS: &[&str] =
    &["developer_instructions", "system_prompt", "systemPrompt", "instructions", "prompt"];

/// The tools that a recipe's extension `developer` means, by names that belljar knows.
const DEVELOPER_TOOLS: &[&str] = &["Read", "Write", "Edit", "Glob", "Grep", "LS", "Bash"];

/// The deepest nesting of a value that becomes a field.
const MAX_DEPTH: usize = 16;

/// A file rewritten as markdown, with the original lines.
pub(crate) struct RewrittenAgent {
    /// Markdown with frontmatter.
    pub(crate) text: String,
    /// For each line of the frontmatter, fences included, the line in the original.
    lines: Vec<u32>,
    /// The line of the original where the prompt is.
    body_line: u32,
}

impl AgentForm {
    /// The form that the ending of a file's name means; `None` = markdown, or not an agent file.
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
    /// The file has no fields of an agent; or it is an agent's and broken, with findings.
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

    /// Whether the fields are an agent's, and not those of one of the many other files of this form.
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
                // Fields that packages and manifests have beside `name` and `description`.
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
    /// Changes the line of a finding from the rewritten text to the original.
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

/// Whether a file that is not markdown may be an agent, by a quick search of its text: most files of these
/// forms are something else, and a scan of many files drops them at once.
pub fn may_hold_agent(path: &Path, bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    AgentForm::for_path(path).is_some() && PROMPTS.iter().any(|prompt| text.contains(prompt))
}

/// Whether the ending of a path is one that agent files have.
pub(crate) fn may_be_agent(path: &Path) -> bool {
    crate::filed::is_markdown(path) || AgentForm::for_path(path).is_some()
}

fn has_text(fields: &Map<String, Value>, key: &str) -> bool {
    fields.get(key).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
}

/// The prompt. Of a recipe, the instructions followed by its first task.
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

/// The fields, if the value is an object.
fn into_fields(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

/// Converts YAML to JSON; `None` = nested too deeply.
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

/// The fields of a recipe under the names of agent files: its extensions become its only tools.
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
            // An unknown extension is named as a tool, so it is reported as missing.
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

/// Writes all fields but the prompt as frontmatter, and the prompt below it.
fn rewrite_fields(
    fields: &Map<String, Value>,
    prompt: &str,
    body: &str,
    original: &str,
) -> RewrittenAgent {
    let (mut text, mut lines) = ("---\n".to_owned(), vec![1]);
    for (key, value) in fields {
        // Each key takes at most one line; of a recipe, two keys make the prompt.
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

    /// The agent in a file of this path and text.
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
