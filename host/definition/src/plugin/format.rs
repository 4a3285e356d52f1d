//! The formats of manifests, and the file that describes a plugin.

use super::tree::PluginTree;

/// The schema that a manifest of Agent Plugins names. It is never fetched.
pub(super) const AGENT_PLUGINS_SCHEMA: &str =
    "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";

/// The format of a plugin's manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum PluginFormat {
    /// `.claude-plugin/plugin.json`, or a plugin without a manifest.
    #[strum(serialize = "Claude Code")]
    ClaudeCode,
    /// `plugin.json` with the schema of Agent Plugins 1.0.0.
    #[strum(serialize = "Agent Plugins 1.0.0")]
    AgentPlugins,
    /// `.codex-plugin/plugin.json`.
    Codex,
    /// `plugin.json` at the root without a schema, `.plugin/` or `.github/plugin/`.
    Copilot,
    /// `.cursor-plugin/plugin.json`.
    Cursor,
    /// `gemini-extension.json`.
    Gemini,
}

/// The files that may describe a plugin, in order of preference: the first one is the manifest.
const MANIFESTS: &[(&str, PluginFormat)] = &[
    (".claude-plugin/plugin.json", PluginFormat::ClaudeCode),
    ("plugin.json", PluginFormat::Copilot),
    (".plugin/plugin.json", PluginFormat::Copilot),
    (".github/plugin/plugin.json", PluginFormat::Copilot),
    (".codex-plugin/plugin.json", PluginFormat::Codex),
    (".cursor-plugin/plugin.json", PluginFormat::Cursor),
    ("gemini-extension.json", PluginFormat::Gemini),
];

/// The manifest of a plugin: its path, and its format.
pub(super) fn find_manifest(tree: &PluginTree) -> Option<(&'static str, PluginFormat)> {
    let found = MANIFESTS.iter().find(|(path, _)| tree.has_file(path))?;
    match *found {
        (path @ "plugin.json", _) if names_schema(tree.read(path)) => {
            Some((path, PluginFormat::AgentPlugins))
        }
        found => Some(found),
    }
}

/// Whether a manifest's text names the schema of Agent Plugins, also in a document that is broken elsewhere.
fn names_schema(bytes: Option<&[u8]>) -> bool {
    let prefix = b"https://agent-plugins.org/";
    bytes.is_some_and(|bytes| bytes.windows(prefix.len()).any(|part| part == prefix))
}
