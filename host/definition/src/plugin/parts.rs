//! The kinds of parts of a plugin, and where each program looks for them.

use super::format::PluginFormat;

/// A kind of part of a plugin.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display, strum::EnumIter,
)]
#[strum(serialize_all = "lowercase")]
pub enum PartKind {
    /// Agents: markdown files.
    #[strum(serialize = "agents")]
    Agents,
    /// Skills: folders with a `SKILL.md`.
    #[strum(serialize = "skills")]
    Skills,
    /// Commands: markdown files, or TOML of Gemini.
    #[strum(serialize = "commands")]
    Commands,
    /// Hooks: JSON.
    #[strum(serialize = "hooks")]
    Hooks,
    /// MCP servers: JSON.
    #[strum(serialize = "MCP servers")]
    Servers,
    /// Language servers.
    #[strum(serialize = "LSP servers")]
    LspServers,
    /// Styles of answers.
    #[strum(serialize = "output styles")]
    OutputStyles,
    /// Programs that watch something.
    #[strum(serialize = "monitors")]
    Monitors,
    /// Colours of a terminal.
    #[strum(serialize = "themes")]
    Themes,
    /// Scripts that orchestrate agents.
    #[strum(serialize = "workflows")]
    Workflows,
    /// Programs for the search path.
    #[strum(serialize = "programs in bin/")]
    Programs,
    /// Rules of Cursor.
    #[strum(serialize = "rules")]
    Rules,
    /// Settings for the program that loads the plugin.
    #[strum(serialize = "settings")]
    Settings,
    /// Texts for every session, for example `GEMINI.md`.
    #[strum(serialize = "context files")]
    Contexts,
    /// Apps and channels of other programs.
    #[strum(serialize = "apps and channels")]
    Apps,
    /// Code for the process of another program, for example OpenCode.
    #[strum(serialize = "code for another program")]
    ForeignCode,
}

/// How the paths of a manifest's key relate to the default path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathRule {
    /// The default path is used too.
    Add,
    /// The default path is not used.
    Replace,
}

/// The place of a kind of part in a plugin.
pub(super) struct PartRow {
    pub(super) kind: PartKind,
    /// The key of the manifest; empty = none.
    pub(super) key: &'static str,
    pub(super) rule: PathRule,
    /// Whether the key may hold objects too.
    pub(super) inline: bool,
    /// The default paths.
    pub(super) defaults: &'static [&'static str],
}

const fn row(
    kind: PartKind,
    key: &'static str,
    rule: PathRule,
    inline: bool,
    defaults: &'static [&'static str],
) -> PartRow {
    PartRow { kind, key, rule, inline, defaults }
}

/// The places that Claude Code uses; other programs differ in a few of them.
pub(super) const PART_ROWS: &[PartRow] = &[
    row(PartKind::Agents, "agents", PathRule::Replace, false, &["agents"]),
    row(PartKind::Skills, "skills", PathRule::Add, false, &["skills"]),
    row(PartKind::Commands, "commands", PathRule::Replace, false, &["commands"]),
    row(PartKind::Hooks, "hooks", PathRule::Add, true, &["hooks/hooks.json"]),
    row(PartKind::Servers, "mcpServers", PathRule::Add, true, &[".mcp.json"]),
    row(PartKind::LspServers, "lspServers", PathRule::Add, true, &[".lsp.json"]),
    row(PartKind::OutputStyles, "outputStyles", PathRule::Replace, false, &["output-styles"]),
    row(PartKind::Monitors, "monitors", PathRule::Add, true, &["monitors/monitors.json"]),
    row(PartKind::Themes, "themes", PathRule::Replace, true, &["themes"]),
    row(PartKind::Workflows, "workflows", PathRule::Replace, false, &["workflows"]),
    row(PartKind::Programs, "", PathRule::Replace, false, &["bin"]),
    row(PartKind::Rules, "rules", PathRule::Replace, false, &["rules"]),
    row(PartKind::Settings, "settings", PathRule::Replace, true, &["settings.json"]),
    row(PartKind::Apps, "apps", PathRule::Replace, true, &[".app.json"]),
    row(
        PartKind::ForeignCode,
        "",
        PathRule::Replace,
        false,
        &[".opencode/plugin", ".opencode/plugins", ".pi/extensions"],
    ),
];

impl PartKind {
    /// Why belljar does not serve this kind; `None` = it does.
    pub fn unserved_reason(self) -> Option<&'static str> {
        match self {
            Self::Agents | Self::Skills | Self::Commands | Self::Hooks | Self::Servers => None,
            Self::LspServers => Some("belljar starts no language server"),
            Self::OutputStyles => Some("an agent's own text decides how it answers"),
            Self::Monitors => Some("belljar starts no program by itself"),
            Self::Themes => Some("belljar's terminal has no themes"),
            Self::Workflows => Some("a team is belljar's form of a workflow"),
            Self::Programs => Some("only the operator names native programs"),
            Self::Rules => Some("rules are Cursor's; a skill is belljar's form"),
            Self::Settings => Some("only the operator's settings count"),
            Self::Contexts => Some("a stranger's text is not joined to every session"),
            Self::Apps => Some("they belong to another program's service"),
            Self::ForeignCode => Some("it runs in another program's process"),
        }
    }
}

/// The default paths of a kind for a format; others than Claude Code's where they differ.
pub(super) fn default_paths(row: &PartRow, format: PluginFormat) -> &'static [&'static str] {
    match (format, row.kind) {
        (PluginFormat::AgentPlugins, PartKind::Skills) => &["skills"],
        (PluginFormat::AgentPlugins | PluginFormat::Cursor, PartKind::Servers) => &["mcp.json"],
        (PluginFormat::AgentPlugins, _) => &[],
        (PluginFormat::Codex, PartKind::Hooks) => &["hooks/hooks.json", "hooks.json"],
        (PluginFormat::Gemini, PartKind::Servers) => &[],
        _ => row.defaults,
    }
}
