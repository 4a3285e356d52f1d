//! The host's own tools, and the one place that decides by an agent's depth which tools are offered. An offer
//! gives no right: the tools are granted like all others.

use belljar_definition::{SubagentsAsk, builtin_tools};
use belljar_policy::ToolName;

/// A tool that the host itself provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BuiltinTool {
    Spawn,
    Parallel,
    Status,
    Result,
    Cancel,
    Skill,
    Todo,
    Clarify,
    Worktree,
}

/// How deep an agent is in the tree of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentDepth {
    /// The number of agents above; 0 = started by a person.
    pub(crate) level: u32,
    /// The deepest allowed level of a subagent.
    pub(crate) max_depth: u32,
    /// True if the agent continues a copy of its parent's conversation.
    pub(crate) forked: bool,
}

impl BuiltinTool {
    pub(crate) const ALL: [Self; 9] = [
        Self::Spawn,
        Self::Parallel,
        Self::Status,
        Self::Result,
        Self::Cancel,
        Self::Skill,
        Self::Todo,
        Self::Clarify,
        Self::Worktree,
    ];

    /// The name of the tool in grants and for models.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Spawn => builtin_tools::SPAWN_AGENT,
            Self::Parallel => builtin_tools::DELEGATE_PARALLEL,
            Self::Status => builtin_tools::AGENT_STATUS,
            Self::Result => builtin_tools::AGENT_RESULT,
            Self::Cancel => builtin_tools::AGENT_CANCEL,
            Self::Skill => builtin_tools::USE_SKILL,
            Self::Todo => builtin_tools::TODO_WRITE,
            Self::Clarify => builtin_tools::CLARIFY,
            Self::Worktree => builtin_tools::WORKTREE,
        }
    }

    /// The built-in tool with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Returns whether the tool starts subagents or manages them.
    pub(crate) fn is_delegation(self) -> bool {
        match self {
            Self::Spawn | Self::Parallel | Self::Status | Self::Result | Self::Cancel => true,
            Self::Skill | Self::Todo | Self::Clarify | Self::Worktree => false,
        }
    }
}

impl AgentDepth {
    /// An agent that a person started.
    pub(crate) fn for_root(max_depth: u32) -> Self {
        Self { level: 0, max_depth, forked: false }
    }

    /// The depth of a child.
    pub(crate) fn for_child(self, forked: bool) -> Self {
        Self { level: self.level.saturating_add(1), forked: self.forked || forked, ..self }
    }

    /// Lowers the deepest level to the limit in the agent's own file.
    pub(crate) fn with_bound(self, asked: Option<&SubagentsAsk>) -> Self {
        let levels = asked.and_then(|asked| asked.max_depth);
        let deepest = levels.map_or(u32::MAX, |levels| self.level.saturating_add(levels));
        Self { max_depth: self.max_depth.min(deepest), ..self }
    }

    /// Returns whether another agent, not a person, started the agent.
    pub(crate) fn is_child(self) -> bool {
        self.level > 0
    }

    /// Returns whether the agent may start subagents at this depth.
    pub(crate) fn can_delegate(self) -> bool {
        self.level < self.max_depth
    }

    /// Returns whether an agent at this depth is offered the tool if it is granted.
    pub(crate) fn offers_tool(self, tool: BuiltinTool) -> bool {
        match tool {
            BuiltinTool::Clarify => !self.is_child(),
            BuiltinTool::Worktree => true,
            BuiltinTool::Todo | BuiltinTool::Skill => !self.is_child() || self.can_delegate(),
            BuiltinTool::Spawn
            | BuiltinTool::Parallel
            | BuiltinTool::Status
            | BuiltinTool::Result
            | BuiltinTool::Cancel => self.can_delegate(),
        }
    }

    /// Returns whether an agent at this depth may have a tool of this name in its rights.
    pub(crate) fn admits_name(self, name: &ToolName) -> bool {
        BuiltinTool::from_name(name.as_str()).is_none_or(|tool| self.offers_tool(tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the tools offered at a depth.
    fn offered(depth: AgentDepth) -> Vec<&'static str> {
        BuiltinTool::ALL
            .into_iter()
            .filter(|t| depth.offers_tool(*t))
            .map(BuiltinTool::name)
            .collect()
    }

    #[test]
    fn every_built_in_tool_has_a_name_of_the_definitions_list() {
        assert_eq!(BuiltinTool::ALL.map(BuiltinTool::name), belljar_definition::BUILTIN_TOOLS);
        assert!(
            BuiltinTool::ALL.iter().all(|tool| BuiltinTool::from_name(tool.name()) == Some(*tool))
        );
    }

    #[test]
    fn a_child_delegates_only_where_its_depth_allows_and_never_asks_the_person() {
        let top = AgentDepth::for_root(1);
        assert_eq!(offered(top).len(), BuiltinTool::ALL.len());
        assert_eq!(offered(top.for_child(false)), ["worktree"]);
        let middle = AgentDepth::for_root(2).for_child(false);
        assert!(middle.can_delegate() && !offered(middle).contains(&"clarify"));
        assert_eq!(offered(middle.for_child(false)), ["worktree"]);
        assert_eq!(
            offered(AgentDepth::for_root(0)),
            ["use_skill", "todo_write", "clarify", "worktree"]
        );
    }

    #[test]
    fn a_files_depth_bounds_the_tree_below_it_and_never_deepens_it() {
        let ask = |max_depth| SubagentsAsk { max_depth, ..SubagentsAsk::default() };
        let top = AgentDepth::for_root(4).with_bound(Some(&ask(Some(2))));
        assert_eq!(top.max_depth, 2);
        let child = top.for_child(false).with_bound(Some(&ask(Some(5))));
        assert!(child.can_delegate() && !child.for_child(false).can_delegate());
        let last = AgentDepth::for_root(4).for_child(false).with_bound(Some(&ask(Some(0))));
        assert!(
            !last.can_delegate()
                && offered(last) == offered(AgentDepth::for_root(0).for_child(false))
        );
        assert_eq!(AgentDepth::for_root(4).with_bound(Some(&ask(None))), AgentDepth::for_root(4));
        assert_eq!(AgentDepth::for_root(4).with_bound(None), AgentDepth::for_root(4));
    }

    #[test]
    fn what_comes_from_a_fork_stays_one() {
        let below = AgentDepth::for_root(4).for_child(true).for_child(false);
        assert!(below.forked && below.can_delegate());
    }
}
