//! The rights that hold without a grant: one table, read by the code, the docs and `belljar
//! explain`.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{Access, GuestPath, LimitsRequest, Permission, ToolName};

use super::grants::{GrantSpec, MountSpec};
use crate::agent::builtin_tools::BUILTIN_TOOLS;
use crate::{SubagentsAsk, Visibility};

/// The rights of an agent out of the box. Limits are [`belljar_policy::LIMITS`] for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultGrant {
    /// For agents of this visibility.
    pub visibility: Visibility,
    /// Tools.
    pub tools: &'static [&'static str],
    /// Tools that change files, as long as all that they can change is an overlay.
    pub overlay_tools: &'static [&'static str],
    /// Tools that belljar answers itself.
    pub builtin_tools: &'static [&'static str],
    /// How the workspace is mounted; without overlays it is read.
    pub workspace: Option<Access>,
    /// Hosts. None: each is the operator's to list.
    pub hosts: &'static [&'static str],
    /// Secrets.
    pub secrets: &'static [&'static str],
}

/// By default whoever asks for them may call these: what they do stays in an overlay until a person
/// applies it.
///
/// Those that run code have no rights of their own, and are given wherever `shell` is.
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
        workspace: Some(Access::Overlay),
        hosts: &[],
        secrets: &[],
    },
    DefaultGrant {
        visibility: Visibility::Internal,
        tools: &["file_read", "file_list", "file_find", "file_search", "attach_file"],
        overlay_tools: OVERLAY_TOOLS,
        builtin_tools: &[],
        workspace: Some(Access::Overlay),
        hosts: &[],
        secrets: &[],
    },
];

/// The tools of belljar's own that agents of this visibility have by default.
pub(super) fn builtin_tools(visibility: Visibility) -> impl Iterator<Item = ToolName> {
    let rows = DEFAULTS.iter().filter(move |row| row.visibility == visibility);
    rows.flat_map(|row| row.builtin_tools).filter_map(|name| ToolName::new(name).ok())
}

/// The row as a grant with every key stated. Without `overlays` the workspace is read, and no tool
/// changes files.
pub(super) fn spec(visibility: Visibility, overlays: bool) -> GrantSpec {
    let Some(row) = DEFAULTS.iter().find(|row| row.visibility == visibility) else {
        return GrantSpec::nothing();
    };
    let overlay_tools = if overlays { row.overlay_tools } else { &[] };
    let names = row.tools.iter().chain(overlay_tools).chain(row.builtin_tools);
    let tools = names.filter_map(|name| ToolName::new(name).ok());
    let tools: BTreeMap<_, _> = tools.map(|name| (name, Permission::Allow)).collect();
    let most = if overlays { Access::Overlay } else { Access::Read };
    let workspace = |access: Access| MountSpec {
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

/// Takes the tools that change files out of a row whose mounts were replaced by one to be written:
/// they are there for overlays alone, and a mount is no grant of a tool.
pub(super) fn without_overlay_tools(spec: &mut GrantSpec, visibility: Visibility) {
    let Some(row) = DEFAULTS.iter().find(|row| row.visibility == visibility) else { return };
    if let Some(tools) = &mut spec.tools {
        tools.retain(|name, _| !row.overlay_tools.contains(&name.as_str()));
    }
}
