//! The rights that a file denies its agent, with the deciding fields, and the restrictions that cannot be
//! enforced.

use std::collections::BTreeMap;

use belljar_policy::{CallPermission, ShownText, ToolName};

use super::AgentDefinition;
use super::builtin_tools::{
    AGENT_CANCEL, AGENT_RESULT, AGENT_STATUS, DELEGATE_PARALLEL, SPAWN_AGENT,
};
use super::tool_list::ToolList;
use crate::diagnostic::{FileFindings, FilePosition};
use crate::yaml::{YamlKey, YamlNode, YamlValue};

/// Displayed characters of a field's name and of its value.
const MAX_SHOWN: usize = 60;

/// Advice about a limit that is not enforced.
pub(super) const HINT: &str = "take the line out if it limits nothing, or say it in a field that is kept: `tools`, `disallowedTools`, `permission`, `readonly`, `maxTurns`, `timeout`, `maxSubagentDepth`";

/// The tools of delegation, and of managing delegated work.
const DELEGATING: [&str; 5] =
    [SPAWN_AGENT, DELEGATE_PARALLEL, AGENT_STATUS, AGENT_RESULT, AGENT_CANCEL];

/// A field that lowers the permissions of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NarrowingField {
    /// The field.
    pub field: String,
    /// The line of the field in the file, from 1.
    pub line: u32,
    /// The highest permissions of the named tools.
    pub named: BTreeMap<ToolName, CallPermission>,
    /// The highest permission of all others; `None` = unstated.
    pub others: Option<CallPermission>,
}

/// A line with an unknown field or value that mentions a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotKept {
    /// The line in the file, from 1.
    pub line: u32,
    /// The field and its value, escaped and clipped.
    pub text: String,
    pub(super) at: FilePosition,
}

impl NarrowingField {
    /// The highest permission that the field leaves for a tool.
    pub fn max_permission(&self, tool: &str) -> CallPermission {
        self.named.get(tool).copied().or(self.others).unwrap_or(CallPermission::Allow)
    }
}

impl NotKept {
    /// The line about a field that is not enforced, escaped and clipped.
    pub(super) fn from_field(path: &str, key: &YamlKey, node: &YamlNode) -> Self {
        let value = match (&node.value, node.as_text()) {
            (YamlValue::Bool(value), _) => value.to_string(),
            (YamlValue::Int(value), _) => value.to_string(),
            (_, Some(text)) => text.to_owned(),
            (_, None) => format!("({})", node.describe_kind()),
        };
        let line = format!("{path}: {value}");
        Self {
            line: key.at.line,
            text: ShownText::clip_line(&line, 2 * MAX_SHOWN).to_string(),
            at: key.at,
        }
    }
}

impl AgentDefinition {
    /// The field that decides a tool's highest permission; `None` = no field besides `tools`.
    pub fn decided_by(&self, tool: &str) -> Option<&NarrowingField> {
        let most = self.asked.highest_permission(tool);
        let decides =
            |it: &&NarrowingField| most < CallPermission::Allow && it.max_permission(tool) == most;
        self.deciders.iter().find(decides)
    }
}

/// Denies the tools for delegating, because of this field.
pub(super) fn delegate_nothing(by: &(String, u32), tools: &mut ToolList) {
    let names = DELEGATING.into_iter().filter_map(|name| ToolName::new(name).ok());
    let named = names.map(|name| (name, CallPermission::Deny)).collect();
    tools.lower_permissions(by, &named, None);
}

/// Reports the limits that are not enforced.
pub(super) fn report_not_kept(not_kept: &[NotKept], findings: &mut FileFindings<'_>) {
    for it in not_kept {
        let message = format!(
            "`{}` speaks of a limit that is not understood, so the agent is blocked",
            it.text
        );
        findings.warning(it.at, "limit-not-kept", message, Some(HINT.to_owned()));
    }
}
