//! The tools that the host itself provides, and the one place that says which of them an agent
//! is offered: they depend on where it stands in the session. They are granted like all other
//! tools, so being offered one is no right to it.

use belljar_definition::{SubagentsAsk, host_tools};
use belljar_policy::ToolName;

/// A tool that acts on the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostTool {
    Spawn,
    Parallel,
    Status,
    Result,
    Cancel,
    Skill,
    Todo,
    Clarify,
}

/// Where an agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scene {
    /// Agents above it; 0 = a person started it.
    pub(crate) depth: u32,
    /// The deepest that a subagent may stand.
    pub(crate) max_depth: u32,
    /// It carries on a copy of its parent's conversation.
    pub(crate) forked: bool,
}

impl HostTool {
    pub(crate) const ALL: [Self; 8] = [
        Self::Spawn,
        Self::Parallel,
        Self::Status,
        Self::Result,
        Self::Cancel,
        Self::Skill,
        Self::Todo,
        Self::Clarify,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Spawn => host_tools::SPAWN_AGENT,
            Self::Parallel => host_tools::DELEGATE_PARALLEL,
            Self::Status => host_tools::AGENT_STATUS,
            Self::Result => host_tools::AGENT_RESULT,
            Self::Cancel => host_tools::AGENT_CANCEL,
            Self::Skill => host_tools::USE_SKILL,
            Self::Todo => host_tools::TODO_WRITE,
            Self::Clarify => host_tools::CLARIFY,
        }
    }

    /// The host tool of this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Whether it hands work to other agents, or looks after work that was handed on.
    pub(crate) fn delegates(self) -> bool {
        match self {
            Self::Spawn | Self::Parallel | Self::Status | Self::Result | Self::Cancel => true,
            Self::Skill | Self::Todo | Self::Clarify => false,
        }
    }
}

impl Scene {
    /// An agent that a person started.
    pub(crate) fn top(max_depth: u32) -> Self {
        Self { depth: 0, max_depth, forked: false }
    }

    /// One level further down.
    pub(crate) fn below(self, forked: bool) -> Self {
        Self { depth: self.depth.saturating_add(1), forked: self.forked || forked, ..self }
    }

    /// The same for an agent whose own file allows so many levels below it at most.
    pub(crate) fn bounded(self, asked: Option<&SubagentsAsk>) -> Self {
        let levels = asked.and_then(|asked| asked.max_depth);
        let deepest = levels.map_or(u32::MAX, |levels| self.depth.saturating_add(levels));
        Self { max_depth: self.max_depth.min(deepest), ..self }
    }

    /// Whether another agent started it.
    pub(crate) fn is_child(self) -> bool {
        self.depth > 0
    }

    /// Whether it may hand work on.
    pub(crate) fn supervises(self) -> bool {
        self.depth < self.max_depth
    }

    /// Whether an agent here is offered the tool, if it is granted.
    pub(crate) fn offers(self, tool: HostTool) -> bool {
        match tool {
            HostTool::Clarify => !self.is_child(),
            HostTool::Todo | HostTool::Skill => !self.is_child() || self.supervises(),
            HostTool::Spawn
            | HostTool::Parallel
            | HostTool::Status
            | HostTool::Result
            | HostTool::Cancel => self.supervises(),
        }
    }

    /// Whether a name may stand in the rights of an agent here.
    pub(crate) fn admits(self, name: &ToolName) -> bool {
        HostTool::of(name.as_str()).is_none_or(|tool| self.offers(tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(scene: Scene) -> Vec<&'static str> {
        HostTool::ALL.into_iter().filter(|t| scene.offers(*t)).map(HostTool::name).collect()
    }

    #[test]
    fn every_host_tool_has_a_name_of_the_definitions_list() {
        assert_eq!(HostTool::ALL.map(HostTool::name), belljar_definition::HOST_TOOLS);
        assert!(HostTool::ALL.iter().all(|tool| HostTool::of(tool.name()) == Some(*tool)));
    }

    #[test]
    fn a_child_delegates_only_where_its_depth_allows_and_never_asks_the_person() {
        let top = Scene::top(1);
        assert_eq!(offered(top).len(), HostTool::ALL.len());
        assert!(offered(top.below(false)).is_empty());
        let middle = Scene::top(2).below(false);
        assert!(middle.supervises() && !offered(middle).contains(&"clarify"));
        assert!(offered(middle.below(false)).is_empty());
        assert_eq!(offered(Scene::top(0)), ["use_skill", "todo_write", "clarify"]);
    }

    #[test]
    fn a_files_depth_bounds_the_tree_below_it_and_never_deepens_it() {
        let ask = |max_depth| SubagentsAsk { max_depth, ..SubagentsAsk::default() };
        let top = Scene::top(4).bounded(Some(&ask(Some(2))));
        assert_eq!(top.max_depth, 2);
        let child = top.below(false).bounded(Some(&ask(Some(5))));
        assert!(child.supervises() && !child.below(false).supervises());
        let last = Scene::top(4).below(false).bounded(Some(&ask(Some(0))));
        assert!(!last.supervises() && offered(last) == offered(Scene::top(0).below(false)));
        assert_eq!(Scene::top(4).bounded(Some(&ask(None))), Scene::top(4));
        assert_eq!(Scene::top(4).bounded(None), Scene::top(4));
    }

    #[test]
    fn what_comes_from_a_fork_stays_one() {
        let below = Scene::top(4).below(true).below(false);
        assert!(below.forked && below.supervises());
    }
}
