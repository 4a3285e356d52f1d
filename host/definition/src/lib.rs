//! Parses text into validated types: agents, teams, skills, tool manifests, settings and grants. For example,
//! `parse_agent` turns a markdown file into an agent, or into diagnostics.
//!
//! Pure: no I/O, no environment, no clock; never panics. Every file of a stranger is bounded by named
//! constants before parsing, and an unparsable part becomes a [`Diagnostic`] with path, line, reason and
//! hint, never a right.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent;
mod catalog;
mod diagnostic;
mod dialect;
mod fields;
mod filed;
mod foreign;
mod frontmatter;
mod manifest;
mod settings;
mod skill;
mod slug;
mod snippet;
mod suggest;
pub mod suspicion;
mod team;
mod toml_read;
mod tools_as;
mod visibility;
mod yaml;

pub use agent::builtin_tools;
pub use agent::builtin_tools::BUILTIN_TOOLS;
pub use agent::{
    AgentContext, AgentDefinition, AgentReadiness, AliasStatus, CanonicalForm, Decider, KnownTools,
    Missing, NoCanonicalForm, NotAnAgent, NotKept, Parsed, READING_TOOLS, Shapes, SubagentsAsk,
    TOOL_ALIASES, ToolAlias, Translated, Unavailable, canonical_form, parse_agent, parse_agent_in,
    parse_too_large, readiness,
};
pub use catalog::{Catalog, CatalogEntry, Content, NotFound, SkipReason, Skipped, SourceFile};
pub use diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Severity};
pub use dialect::Dialect;
pub use filed::{FileKind, FileRead, Filed};
pub use foreign::{Argument, ArgumentKind, Becomes, ForeignTool, Given, SELF};
pub use frontmatter::{MAX_DEFINITION, MAX_FRONTMATTER};
pub use manifest::{CommandSpec, Resume, ToolManifest};
pub use settings::{
    DEFAULTS, DefaultGrant, GrantChange, GrantRemoval, GrantSpec, Grantee, HOST_PLACEHOLDER,
    HookAction, HookEvent, HookMatcher, HookSetting, IssuerSetting, KeySetting, McpGrants,
    McpOauthSetting, McpProgram, McpSetting, McpValue, ModelKind, ModelSetting, MountRemoval,
    MountSpec, NotRevoked, OverlaySetting, Profile, SecretSetting, ServerSetting, Settings,
    SignatureKind, SubagentPolicy, TokenRule, TokenScope, ToolSetting, apply_grant, apply_grants,
    command_of, grant_command, grant_lines, revoke_grants, shell_word,
};
pub use skill::{MAX_SKILL, Skill, SkillCallers};
pub use slug::{API_LIBRARY, AgentId, AgentIdError, Scope, Slug};
pub use snippet::Snippet;
pub use team::{
    Join, MAX_TEAM, MAX_TEAM_AGENTS, Member, Stage, TeamBudget, TeamDefinition, Template,
};
pub use toml_read::MAX_TOML;
pub use tools_as::ToolsAs;
pub use visibility::Visibility;
