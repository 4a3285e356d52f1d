//! The program that an agent file was written for.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::yaml::{YamlKey, YamlNode, YamlValue};

/// The program whose format a file follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Belljar's own format. A file is canonical if it uses a field unique to this format.
    Canonical,
    /// Claude Code.
    ClaudeCode,
    /// OpenCode.
    OpenCode,
    /// SmallCode.
    SmallCode,
    /// Copilot's agents and chat modes.
    Copilot,
    /// Gemini CLI.
    GeminiCli,
    /// pi.
    Pi,
    /// Undetermined: no field is typical of a program.
    Unknown,
}

/// Fields unique to the canonical format: any of them makes a file canonical.
pub(crate) const CANONICAL_ONLY: &[&str] = &[
    "modelRole",
    "timeoutSeconds",
    "prefillTimeoutSeconds",
    "visibility",
    "emitStructuredFindings",
    "mounts",
    "hosts",
    "limits",
    "subagents",
    "toolsAs",
];

/// Fields of a canonical file that other formats have too.
pub(crate) const CANONICAL_SHARED: &[&str] = &[
    "name",
    "description",
    "tools",
    "disallowedTools",
    "permission",
    "readonly",
    "model",
    "maxTurns",
];

/// Names of tools unique to Gemini CLI among these programs, for example `run_shell_command`.
const GEMINI_TOOLS: &[&str] = &[
    "read_file",
    "write_file",
    "read_many_files",
    "list_directory",
    "grep_search",
    "search_file_content",
    "run_shell_command",
    "google_web_search",
    "write_todos",
    "activate_skill",
];

/// Names of tools that only pi has.
const PI_TOOLS: &[&str] = &["find", "ls"];

/// The tiers that SmallCode's files have in place of a model.
const TIERS: &[&str] = &["fast", "default", "medium", "strong"];

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Canonical => "canonical",
            Self::ClaudeCode => "Claude Code",
            Self::OpenCode => "OpenCode",
            Self::SmallCode => "SmallCode",
            Self::Copilot => "Copilot",
            Self::GeminiCli => "Gemini CLI",
            Self::Pi => "pi",
            Self::Unknown => "unknown",
        })
    }
}

impl Dialect {
    /// The dialects with tool names of their own.
    pub const WITH_TOOLS: [Self; 5] =
        [Self::ClaudeCode, Self::OpenCode, Self::Copilot, Self::GeminiCli, Self::Pi];

    /// Detects the dialect by the file's name and fields. Only the first rule is guaranteed; the others
    /// decide which tool names are tried first.
    pub(crate) fn detect(path: &Path, fields: &[(YamlKey, YamlNode)]) -> Self {
        let get = |name: &str| fields.iter().find(|(key, _)| key.text == name).map(|(_, n)| n);
        let has = |names: &[&str]| names.iter().any(|name| get(name).is_some());
        if has(CANONICAL_ONLY) {
            return Self::Canonical;
        }
        let file = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
        let file = file.unwrap_or_default();
        let copilot_file = file.ends_with(".agent.md") || file.ends_with(".chatmode.md");
        if copilot_file || has(&["user-invocable", "argument-hint", "mcp-servers", "handoffs"]) {
            return Self::Copilot;
        }
        let mode = get("mode").and_then(YamlNode::as_text).unwrap_or_default();
        let tool_map = get("tools").is_some_and(|node| matches!(node.value, YamlValue::Map(_)));
        if tool_map
            || matches!(mode, "primary" | "subagent" | "all")
            || has(&[
                "permission",
                "permissions",
                "steps",
                "maxSteps",
                "top_p",
                "disable",
                "hidden",
            ])
        {
            return Self::OpenCode;
        }
        if get("model").and_then(YamlNode::as_text).is_some_and(|model| TIERS.contains(&model)) {
            return Self::SmallCode;
        }
        let tools = get("tools").map(listed_names).unwrap_or_default();
        let names_any = |of: &[&str]| tools.iter().any(|name| of.contains(name));
        if names_any(GEMINI_TOOLS) {
            return Self::GeminiCli;
        }
        if names_any(PI_TOOLS) {
            return Self::Pi;
        }
        let claude = ["permissionMode", "mcpServers", "hooks", "maxTurns", "isolation", "memory"];
        let own_name = get("name").is_some();
        let own_tool = |node: &YamlNode| {
            let text = match &node.value {
                YamlValue::List(items) => items.first().and_then(YamlNode::as_text),
                _ => node.as_text(),
            };
            text.is_some_and(|text| text.trim().starts_with(|c: char| c.is_ascii_uppercase()))
        };
        let alias = get("model").and_then(YamlNode::as_text);
        let alias = alias.is_some_and(|m| matches!(m, "sonnet" | "opus" | "haiku" | "inherit"));
        if has(&claude) || (own_name && (alias || get("tools").is_some_and(own_tool))) {
            return Self::ClaudeCode;
        }
        Self::Unknown
    }
}

/// The names in a list, or in a text with commas.
fn listed_names(node: &YamlNode) -> Vec<&str> {
    let texts: Vec<&str> = match &node.value {
        YamlValue::List(items) => items.iter().filter_map(YamlNode::as_text).collect(),
        _ => node.as_text().into_iter().collect(),
    };
    texts.into_iter().flat_map(|text| text.split(',')).map(str::trim).collect()
}
