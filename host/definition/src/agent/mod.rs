//! Agent definitions: one markdown file each.
//!
//! [`parse_agent`] never fails and never panics: a file is an agent, is invalid with
//! diagnostics, or is not an agent at all. What it cannot read never becomes a right.

mod blocked_words;
pub mod builtin_tools;
mod canonical;
mod keys;
mod leftovers;
mod limit_words;
mod listed;
pub(crate) mod name;
mod names;
mod narrowed;
pub(crate) mod own;
mod parse;
mod permission;
mod program_tools;
mod readiness;
mod recover;
mod requests;
mod says;
mod servers;
mod settings_form;
mod shapes;
mod stated;
mod stated_fields;
mod swallowed;
mod tool_list;
mod tools;
mod words;

use std::path::PathBuf;

use belljar_policy::{Asked, Permission, ToolName};

use crate::diagnostic::Diagnostic;
use crate::{Dialect, Slug, ToolsAs, Visibility};

pub use canonical::{CanonicalForm, NoCanonicalForm, canonical_form};
pub use narrowed::{Decider, NotKept};
pub(crate) use parse::{NO_TOOLS, is_documentation, no_agent, say_no_split, say_utf16};
pub use parse::{parse_agent, parse_agent_in, parse_too_large};
pub use readiness::{AgentReadiness, Missing, readiness};
pub(crate) use recover::recover;
pub(crate) use requests::MODEL_ROLES;
pub(crate) use requests::{list_of, parse_access};
pub use shapes::{AgentContext, Shapes};
pub use stated::READING_TOOLS;
pub(crate) use tools::Written;
pub use tools::{AliasStatus, KnownTools, TOOL_ALIASES, ToolAlias};

/// An agent file that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDefinition {
    /// The name for people, as written; the file's stem where a foreign file has none.
    pub name: String,
    /// The name for look-up and for grants.
    pub slug: Slug,
    /// When to use the agent; not blank.
    pub description: String,
    /// The system prompt: every byte after the frontmatter; not blank.
    pub body: String,
    /// The line on which the body begins, from 1.
    pub body_line: u32,
    /// Whose format the file follows.
    pub dialect: Dialect,
    /// The rights that it asks for. `tools` are under belljar's names.
    pub asked: Asked,
    /// The names in `tools`, as written; `None` where the file has no such field.
    pub tools_as_written: Option<Vec<String>>,
    /// How foreign names were read.
    pub translated: Vec<Translated>,
    /// Names in `tools` that exist nowhere. Always empty in a canonical file, and in one of a person's
    /// own home.
    pub unknown_tools: Vec<String>,
    /// Names in `tools` that are known and cannot be had here.
    pub unavailable: Vec<Unavailable>,
    /// Entries that take tools away in a way that nobody here can read. With one of them the agent
    /// is not run: it would have more than its author meant.
    pub unclear: Vec<Unavailable>,
    /// A model name or alias, unresolved; `modelRole` gives the role's name in lower case.
    /// `None` = the operator's choice.
    pub model: Option<String>,
    /// Who it is offered to.
    pub visibility: Visibility,
    /// Whether its findings come as JSON beside the text.
    pub emit_structured_findings: bool,
    /// Whether it changes files in a copy of its own as a subagent (`isolation: worktree`).
    pub isolated: bool,
    /// How it wants to be shown its tools; `None` where it says nothing.
    pub tools_as: Option<ToolsAs>,
    /// Its words about delegating; `None` where it says nothing.
    pub subagents: Option<SubagentsAsk>,
    /// Which of its fields took tools away, in the order in which they were read.
    pub deciders: Vec<Decider>,
    /// Names that take something away and may mean tools that are installed later, as written:
    /// patterns, and names that nobody knows yet.
    pub open_names: Vec<(String, Permission)>,
    /// Limits that it states and that are not kept here. With one of them the agent has no tools
    /// and is not run.
    pub not_kept: Vec<NotKept>,
    /// Its author switched it off.
    pub disabled: bool,
    /// The file.
    pub path: PathBuf,
}

/// A definition's words about delegating to other agents. It narrows; it gives nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubagentsAsk {
    /// Whether it may delegate at all; absent = as granted.
    pub enabled: Option<bool>,
    /// How many levels of children there may be below it; 0 = it delegates nothing.
    pub max_depth: Option<u32>,
    /// How many children may run at the same time.
    pub max_concurrent: Option<u32>,
    /// The agents it may delegate to, as written; absent = all.
    pub allowed_agents: Option<Vec<String>>,
    /// The tools its children may use, under belljar's names; absent = as granted.
    pub allowed_tools: Option<Vec<ToolName>>,
}

/// A foreign tool name and what it became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    /// The name as written.
    pub written: String,
    /// Belljar's tools for it.
    pub tools: Vec<ToolName>,
    /// The gap between them and the author's tool.
    pub limits: Option<&'static str>,
}

/// A tool that was asked for and cannot be had, or something said of tools that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// The name as written.
    pub name: String,
    /// Why not.
    pub why: String,
}

/// The result of reading a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// An agent; the diagnostics hold warnings and notes only.
    Agent {
        /// The agent.
        definition: Box<AgentDefinition>,
        /// Findings that its author should know.
        diagnostics: Vec<Diagnostic>,
    },
    /// Meant to be an agent and not understood: at least one error.
    Invalid {
        /// Why, and where.
        diagnostics: Vec<Diagnostic>,
    },
    /// Something else.
    NotAnAgent {
        /// Why.
        reason: NotAnAgent,
    },
}

/// Why a markdown file is no agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAnAgent {
    /// It holds nothing but white space.
    Empty,
    /// It has no frontmatter.
    NoFrontmatter,
    /// Its frontmatter stands in a code fence or after a heading, which is read only where
    /// [`Shapes::Lenient`] says so.
    Wrapped,
    /// It has no frontmatter and is named like documentation; nobody needs to hear of it.
    Documentation,
}

impl AgentDefinition {
    /// Whether the file names tools and not one of them can be had, or states a limit that is not
    /// kept here: such an agent is not run.
    pub fn has_lost_all_tools(&self) -> bool {
        if !self.not_kept.is_empty() {
            return true;
        }
        let named = self.tools_as_written.as_ref().is_some_and(|names| !names.is_empty());
        named && self.asked.tools.as_ref().is_some_and(|tools| tools.is_empty())
    }
}

impl SubagentsAsk {
    /// Whether it rules out handing work on.
    pub fn is_nobody(&self) -> bool {
        self.enabled == Some(false)
            || self.max_depth == Some(0)
            || self.allowed_agents.as_ref().is_some_and(Vec::is_empty)
    }
}

impl NotAnAgent {
    /// The reason in a few words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "the file is empty",
            Self::NoFrontmatter => "the file does not begin with `---`, so it has no frontmatter",
            Self::Wrapped => {
                "its frontmatter stands in a code fence or after a heading; to have that read, set `lenient = true` under `[agents]` in `belljar.toml`, or check with `--lenient`"
            }
            Self::Documentation => "the file is documentation",
        }
    }

    /// Whether a scan passes it over without a word.
    pub fn is_silent(self) -> bool {
        match self {
            Self::Documentation => true,
            Self::Empty | Self::NoFrontmatter | Self::Wrapped => false,
        }
    }
}
