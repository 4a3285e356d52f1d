//! The rights that a file denies its agent, with the deciding fields, and the restrictions that cannot be
//! enforced.

use std::collections::BTreeMap;

use belljar_policy::{Permission, Shown, ToolName};

use super::AgentDefinition;
use super::builtin_tools::{
    AGENT_CANCEL, AGENT_RESULT, AGENT_STATUS, DELEGATE_PARALLEL, SPAWN_AGENT,
};
use super::tool_list::ToolList;
use crate::diagnostic::{Findings, Position};
use crate::yaml::{Key, Node, Value};

/// Displayed characters of a field's name and of its value.
const MAX_SHOWN: usize = 60;

/// Advice about a limit that is not enforced.
pub(super) const HINT: &str = "take the line out if it limits nothing, or say it in a field that is kept: `tools`, `disallowedTools`, `permission`, `readonly`, `maxTurns`, `timeout`, `maxSubagentDepth`";

/// The tools of delegation, and of managing delegated work.
const DELEGATING: [&str; 5] =
    [SPAWN_AGENT, DELEGATE_PARALLEL, AGENT_STATUS, AGENT_RESULT, AGENT_CANCEL];

/// A field that lowers the permissions of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decider {
    /// The field.
    pub field: String,
    /// The line of the field in the file, from 1.
    pub line: u32,
    /// The highest permissions of the named tools.
    pub named: BTreeMap<ToolName, Permission>,
    /// The highest permission of all others; `None` = unstated.
    pub others: Option<Permission>,
}

/// A line with an unknown field or value that mentions a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotKept {
    /// The line in the file, from 1.
    pub line: u32,
    /// The field and its value, escaped and clipped.
    pub text: String,
    pub(super) at: Position,
}

impl Decider {
    /// The highest permission that the field leaves for a tool.
    pub fn most(&self, tool: &str) -> Permission {
        self.named.get(tool).copied().or(self.others).unwrap_or(Permission::Allow)
    }
}

impl NotKept {
    pub(super) fn of(path: &str, key: &Key, node: &Node) -> Self {
        let value = match (&node.value, node.text()) {
            (Value::Bool(value), _) => value.to_string(),
            (Value::Int(value), _) => value.to_string(),
            (_, Some(text)) => text.to_owned(),
            (_, None) => format!("({})", node.kind()),
        };
        let line = format!("{path}: {value}");
        Self {
            line: key.at.line,
            text: Shown::clipped(&line, 2 * MAX_SHOWN).to_string(),
            at: key.at,
        }
    }
}

impl AgentDefinition {
    /// The field that decides a tool's highest permission; `None` = no field besides `tools`.
    pub fn decided_by(&self, tool: &str) -> Option<&Decider> {
        let most = self.asked.most(tool);
        let decides = |it: &&Decider| most < Permission::Allow && it.most(tool) == most;
        self.deciders.iter().find(decides)
    }
}

/// Denies the tools for delegating, because of this field.
pub(super) fn delegate_nothing(by: &(String, u32), tools: &mut ToolList) {
    let names = DELEGATING.into_iter().filter_map(|name| ToolName::new(name).ok());
    let named = names.map(|name| (name, Permission::Deny)).collect();
    tools.lower(by, &named, None);
}

/// Reports the limits that are not enforced.
pub(super) fn say(not_kept: &[NotKept], findings: &mut Findings<'_>) {
    for it in not_kept {
        let message = format!(
            "`{}` speaks of a limit that is not understood, so the agent is blocked",
            it.text
        );
        findings.warning(it.at, "limit-not-kept", message, Some(HINT.to_owned()));
    }
}
