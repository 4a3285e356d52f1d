//! Parses text into validated types: agents, teams, skills, tool manifests, settings and grants. For example,
//! `parse_agent` turns a markdown file into an agent, or into diagnostics.
//!
//! Pure: no I/O, no environment, no clock; never panics. Every file of a stranger is bounded by named
//! constants before parsing, and an unparsable part becomes a [`Diagnostic`] with path, line, reason and
//! hint, never a right.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent;
mod catalog;
mod command;
mod diagnostic;
mod dialect;
mod fields;
mod filed;
mod foreign;
mod frontmatter;
mod manifest;
pub mod plugin;
mod settings;
mod skill;
mod slug;
mod snippet;
mod suggest;
pub mod suspicion;
mod team;
mod terms;
mod toml_read;
mod tools_as;
mod visibility;
mod yaml;

pub use agent::builtin_tools;
pub use agent::builtin_tools::{BUILTIN_TOOLS, FINDER_TOOLS};
pub use agent::forms::may_hold_agent;
pub use agent::{
    AgentContext, AgentDefinition, AgentReadiness, AliasStatus, CanonicalForm, FrontmatterShapes,
    KnownTools, MissingToolPolicy, NarrowingField, NoCanonicalForm, NotAnAgent, NotKept,
    ParsedAgentFile, READING_TOOLS, SubagentsAsk, TOOL_ALIASES, ToolAlias, ToolTranslation,
    UnavailableTool, assess_readiness, canonical_form, parse_agent, parse_agent_in,
    parse_too_large,
};
pub use catalog::{
    Catalog, CatalogEntry, NotFound, ScannedContent, SkipReason, SkippedFile, SourceFile,
};
pub use command::{
    CommandArguments, CommandDefinition, CommandPiece, CommandStyle, ExpandError, MAX_COMMAND,
    expand_skill,
};
pub use diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Severity};
pub use dialect::Dialect;
pub use filed::{CatalogItem, FileKind, FileRead};
pub use foreign::{ArgumentKind, ArgumentMapping, FixedValue, ForeignArgument, ForeignTool, SELF};
pub use frontmatter::{MAX_DEFINITION, MAX_FRONTMATTER};
pub use manifest::{CommandSpec, ResumeMode, ToolManifest};
pub use settings::{
    ContextSetting, DEFAULTS, DefaultGrant, GrantChange, GrantRemoval, GrantSpec, Grantee,
    HOST_PLACEHOLDER, HookAction, HookEvent, HookMatcher, HookSetting, IssuerSetting, KeySetting,
    McpGrants, McpOauthSetting, McpProgram, McpSetting, McpValue, ModelKind, ModelSetting,
    MountRemoval, MountSpec, NotRevoked, OverlaySetting, SecretSetting, ServerSetting, Settings,
    SignatureKind, SubagentPolicy, SubagentProfile, TokenRule, TokenScope, ToolSetting,
    apply_grant, apply_grants, command_of, grant_command, grant_lines, revoke_grants, shell_word,
};
pub use skill::{MAX_SKILL, SkillCallers, SkillDefinition};
pub use slug::{API_LIBRARY, AgentId, AgentIdError, AgentScope, LibraryName, Slug};
pub use snippet::SourceSnippet;
pub use team::{
    MAX_TEAM, MAX_TEAM_AGENTS, StageJoin, TaskTemplate, TeamBudget, TeamDefinition, TeamMember,
    TeamStage,
};
pub use terms::UseTerms;
pub use toml_read::MAX_TOML;
pub use tools_as::ToolsAs;
pub use visibility::Visibility;
