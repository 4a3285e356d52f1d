//! What holds without a grant: one table, read by the code, the docs and `belljar explain`.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{Access, GuestPath, LimitsRequest, Permission, ToolName};

use super::grants::{GrantSpec, MountSpec};
use crate::agent::builtin_tools::BUILTIN_TOOLS;
use crate::{SubagentsAsk, Visibility};

/// What an agent may do out of the box. Limits are [`belljar_policy::LIMITS`] for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultGrant {
    /// For agents of this visibility.
    pub visibility: Visibility,
    /// Tools.
    pub tools: &'static [&'static str],
    /// Tools that belljar answers itself.
    pub builtin_tools: &'static [&'static str],
    /// How the workspace is mounted.
    pub workspace: Option<Access>,
    /// Hosts. None: each is the operator's to list.
    pub hosts: &'static [&'static str],
    /// Secrets.
    pub secrets: &'static [&'static str],
}

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
        builtin_tools: &BUILTIN_TOOLS,
        workspace: Some(Access::Read),
        hosts: &[],
        secrets: &[],
    },
    DefaultGrant {
        visibility: Visibility::Internal,
        tools: &["file_read", "file_list", "file_find", "file_search", "attach_file"],
        builtin_tools: &[],
        workspace: Some(Access::Read),
        hosts: &[],
        secrets: &[],
    },
];

/// Whether agents of this visibility have tools of belljar's own by default.
pub(super) fn has_builtin_tools(visibility: Visibility) -> bool {
    DEFAULTS.iter().any(|row| row.visibility == visibility && !row.builtin_tools.is_empty())
}

/// The row as a grant with every key stated.
pub(super) fn spec(visibility: Visibility) -> GrantSpec {
    let Some(row) = DEFAULTS.iter().find(|row| row.visibility == visibility) else {
        return GrantSpec::nothing();
    };
    let tools =
        row.tools.iter().chain(row.builtin_tools).filter_map(|name| ToolName::new(name).ok());
    let tools: BTreeMap<_, _> = tools.map(|name| (name, Permission::Allow)).collect();
    let workspace = |access| MountSpec { guest: GuestPath::workspace(), host: None, access };
    GrantSpec {
        tools: Some(tools),
        add_tools: BTreeMap::new(),
        mounts: Some(row.workspace.into_iter().map(workspace).collect()),
        hosts: Some(row.hosts.iter().filter_map(|rule| rule.parse().ok()).collect()),
        secrets: Some(BTreeSet::new()),
        limits: LimitsRequest::default(),
        subagents: SubagentsAsk::default(),
    }
}
