//! The host's own tools, which act on the session and not on the outside world.

/// Starts one subagent.
pub const SPAWN_AGENT: &str = "spawn_agent";

/// Starts several subagents concurrently and waits for all.
pub const DELEGATE_PARALLEL: &str = "delegate_parallel";

/// Returns the state of subagents in the background.
pub const AGENT_STATUS: &str = "agent_status";

/// Returns the result of a subagent in the background.
pub const AGENT_RESULT: &str = "agent_result";

/// Ends a subagent in the background.
pub const AGENT_CANCEL: &str = "agent_cancel";

/// Loads the text of a skill.
pub const USE_SKILL: &str = "use_skill";

/// Stores the agent's list of tasks.
pub const TODO_WRITE: &str = "todo_write";

/// Asks the person at the root a question.
pub const CLARIFY: &str = "clarify";

/// Enters and leaves a copy of the agent's overlays.
pub const WORKTREE: &str = "worktree";

/// Finds agents by words.
pub const FIND_AGENT: &str = "find_agent";

/// Finds skills by words.
pub const FIND_SKILL: &str = "find_skill";

/// Finds tools of servers by words, and loads them.
pub const FIND_TOOL: &str = "find_tool";

/// The tools that find what a list has no room for. They are offered with the tools whose lists they extend, and
/// no grant names them: a search shows only what its agent may use anyway. No other tool has these names.
pub const FINDER_TOOLS: [&str; 3] = [FIND_AGENT, FIND_SKILL, FIND_TOOL];

/// All built-in tools. They have ordinary names in the allowlist of all tools; whether one is offered also
/// depends on the agent's place in the session.
pub const BUILTIN_TOOLS: [&str; 9] = [
    SPAWN_AGENT,
    DELEGATE_PARALLEL,
    AGENT_STATUS,
    AGENT_RESULT,
    AGENT_CANCEL,
    USE_SKILL,
    TODO_WRITE,
    CLARIFY,
    WORKTREE,
];
