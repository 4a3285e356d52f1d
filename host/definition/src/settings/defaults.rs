//! The default rights without a grant: one table for the code, the documentation and `belljar explain`.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{CallPermission, GuestPath, LimitsRequest, MountAccess, ToolName};

use super::grants::{GrantSpec, MountSpec};
use crate::agent::builtin_tools::BUILTIN_TOOLS;
use crate::{SubagentsAsk, Visibility};

/// The default rights of an agent. The limits are [`belljar_policy::LIMITS`] for all agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultGrant {
    /// The visibility of the agents.
    pub visibility: Visibility,
    /// Tools that only read.
    pub tools: &'static [&'static str],
    /// Tools that change files, granted while every writable mount is an overlay.
    pub overlay_tools: &'static [&'static str],
    /// Tools that belljar itself executes.
    pub builtin_tools: &'static [&'static str],
    /// The access to the workspace; without overlays it is read-only.
    pub workspace: Option<MountAccess>,
    /// Hosts. None, because only the operator lists hosts.
    pub hosts: &'static [&'static str],
    /// Secrets.
    pub secrets: &'static [&'static str],
}

/// Tools that change files or run code. Every agent that asks for these tools has them by default, because
/// all changes stay in an overlay until a person applies them.
///
/// The tools that run code have no rights of their own, so they are granted together with `shell`.
pub(super) const OVERLAY_TOOLS: &[&str] =
    &["file_write", "file_edit", "notebook_edit", "shell", "run_javascript", "run_python"];

/// One row for each visibility.
pub const DEFAULTS: [DefaultGrant; 2] = [
    DefaultGrant {
        visibility: Visibility::UserFacing,
        tools: &[
            "file_read",
            "file_list",
            "file_find",
            "file_search",
            "attach_file",
            "web_fetch",
            "web_search",
        ],
        overlay_tools: OVERLAY_TOOLS,
        builtin_tools: &BUILTIN_TOOLS,
        workspace: Some(MountAccess::Overlay),
        hosts: &[],
        secrets: &[],
    },
    DefaultGrant {
        visibility: Visibility::Internal,
        tools: &["file_read", "file_list", "file_find", "file_search", "attach_file"],
        overlay_tools: OVERLAY_TOOLS,
        builtin_tools: &[],
        workspace: Some(MountAccess::Overlay),
        hosts: &[],
        secrets: &[],
    },
];

/// Belljar's own tools that agents of this visibility have by default.
pub(super) fn builtin_tools(visibility: Visibility) -> impl Iterator<Item = ToolName> {
    let rows = DEFAULTS.iter().filter(move |row| row.visibility == visibility);
    rows.flat_map(|row| row.builtin_tools).filter_map(|name| ToolName::new(name).ok())
}

/// The row as a grant with every key stated. Without `overlays` the workspace is read-only, and no tool
/// changes files.
pub(super) fn default_spec(visibility: Visibility, overlays: bool) -> GrantSpec {
    let Some(row) = DEFAULTS.iter().find(|row| row.visibility == visibility) else {
        return GrantSpec::empty_grant();
    };
    let overlay_tools = if overlays { row.overlay_tools } else { &[] };
    let names = row.tools.iter().chain(overlay_tools).chain(row.builtin_tools);
    let tools = names.filter_map(|name| ToolName::new(name).ok());
    let tools: BTreeMap<_, _> = tools.map(|name| (name, CallPermission::Allow)).collect();
    let most = if overlays { MountAccess::Overlay } else { MountAccess::Read };
    let workspace = |access: MountAccess| MountSpec {
        guest: GuestPath::workspace(),
        host: None,
        access: access.min(most),
    };
    GrantSpec {
        tools: Some(tools),
        add_tools: BTreeMap::new(),
        mounts: Some(row.workspace.into_iter().map(workspace).collect()),
        hosts: Some(row.hosts.iter().filter_map(|rule| rule.parse().ok()).collect()),
        secrets: Some(BTreeSet::new()),
        limits: LimitsRequest::default(),
        subagents: SubagentsAsk::default(),
        auto_background: None,
        tools_as: None,
    }
}

/// Removes the tools that change files from a row whose mounts were replaced by a writable one. These tools
/// are default only with overlays, because a mount does not grant a tool.
pub(super) fn without_overlay_tools(spec: &mut GrantSpec, visibility: Visibility) {
    let Some(row) = DEFAULTS.iter().find(|row| row.visibility == visibility) else { return };
    if let Some(tools) = &mut spec.tools {
        tools.retain(|name, _| !row.overlay_tools.contains(&name.as_str()));
    }
}
