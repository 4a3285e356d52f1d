//! Agent definitions: one markdown file each.
//!
//! [`parse_agent`] never fails and never panics: a file is an agent, is invalid with diagnostics, or is not
//! an agent at all. An unparsable part never becomes a right. For example, `tools: [Read, 7]` grants at most
//! `file_read`.

mod blocked_words;
pub mod builtin_tools;
mod canonical;
mod documents;
pub(crate) mod forms;
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
mod taking;
mod tool_list;
mod tools;
mod used_tools;
mod words;

use std::path::PathBuf;

use belljar_policy::{AskedRights, CallPermission, ToolName};

use crate::diagnostic::Diagnostic;
use crate::{Dialect, Slug, ToolsAs, Visibility};

pub use canonical::{CanonicalForm, NoCanonicalForm, canonical_form};
pub use narrowed::{NarrowingField, NotKept};
pub(crate) use parse::{NO_TOOLS, is_documentation, no_agent, say_no_split, say_utf16};
pub use parse::{parse_agent, parse_agent_in, parse_too_large};
pub use readiness::{AgentReadiness, MissingToolPolicy, assess_readiness};
pub(crate) use recover::recover_fields;
pub(crate) use requests::MODEL_ROLES;
pub(crate) use requests::{list_of, parse_access};
pub use shapes::{AgentContext, FrontmatterShapes};
pub use stated::READING_TOOLS;
pub(crate) use tools::WrittenToolName;
pub use tools::{AliasStatus, KnownTools, TOOL_ALIASES, ToolAlias};

/// A valid agent file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDefinition {
    /// The name for people, as written; the file's stem if a foreign file has no name.
    pub name: String,
    /// The name for look-up and for grants, for example `code-reviewer`.
    pub slug: Slug,
    /// The situation in which to use the agent; not blank.
    pub description: String,
    /// The system prompt: every byte after the frontmatter; not blank.
    pub body: String,
    /// The line on which the body begins, from 1.
    pub body_line: u32,
    /// The program whose format the file has.
    pub dialect: Dialect,
    /// The requested rights. `tools` are under belljar's names.
    pub asked: AskedRights,
    /// The names in `tools`, as written; `None` = the file has no such field.
    pub tools_as_written: Option<Vec<String>>,
    /// The translations of foreign names, for example of `Read` to `file_read`.
    pub translated: Vec<ToolTranslation>,
    /// Unknown names in `tools`. Always empty in a canonical file, and in a file of a person's own home.
    pub unknown_tools: Vec<String>,
    /// Names in `tools` that are known but unavailable here.
    pub unavailable: Vec<UnavailableTool>,
    /// Unparsable entries that deny tools. An agent with such an entry is not run, because more tools would
    /// be left than its author meant.
    pub unclear: Vec<UnavailableTool>,
    /// A model name or alias, unresolved; `modelRole` has the role's name in lower case. `None` = the
    /// operator's choice.
    pub model: Option<String>,
    /// The callers for whom the agent is meant.
    pub visibility: Visibility,
    /// Whether the agent's findings are returned as JSON beside the text.
    pub emit_structured_findings: bool,
    /// Whether the agent, as a subagent, changes files in a separate copy (`isolation: worktree`).
    pub isolated: bool,
    /// The form in which tools are shown to the agent; `None` = unstated.
    pub tools_as: Option<ToolsAs>,
    /// The limits on delegation; `None` = unstated.
    pub subagents: Option<SubagentsAsk>,
    /// The fields that denied tools, in the order of reading.
    pub deciders: Vec<NarrowingField>,
    /// Restricting names that may match tools installed later, as written: patterns, and unknown names.
    pub open_names: Vec<(String, CallPermission)>,
    /// Stated limits that are not enforced here. An agent with such a limit has no tools and is not run.
    pub not_kept: Vec<NotKept>,
    /// Whether the author switched the agent off.
    pub disabled: bool,
    /// The file.
    pub path: PathBuf,
}

/// A definition's limits on delegation to other agents, which narrow and grant nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubagentsAsk {
    /// Whether the agent may delegate at all; absent = as granted.
    pub enabled: Option<bool>,
    /// The levels of subagents below the agent; 0 = no delegation.
    pub max_depth: Option<u32>,
    /// The number of subagents that may run concurrently.
    pub max_concurrent: Option<u32>,
    /// The possible subagents, as written; absent = all.
    pub allowed_agents: Option<Vec<String>>,
    /// The possible tools of subagents, under belljar's names; absent = as granted.
    pub allowed_tools: Option<Vec<ToolName>>,
}

/// A foreign tool name with its translation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolTranslation {
    /// The name as written, for example `Read`.
    pub written: String,
    /// Belljar's tools for it.
    pub tools: Vec<ToolName>,
    /// The difference between belljar's tools and the author's tool; `None` = no difference.
    pub limits: Option<&'static str>,
}

/// A requested tool that is unavailable, or an unparsable statement about tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnavailableTool {
    /// The name as written, for example `Read`.
    pub name: String,
    /// The reason.
    pub why: String,
}

/// The result of parsing a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedAgentFile {
    /// An agent; the diagnostics are only warnings and notes.
    Agent {
        /// The agent.
        definition: Box<AgentDefinition>,
        /// Warnings and notes for the author.
        diagnostics: Vec<Diagnostic>,
    },
    /// Meant as an agent, but invalid: at least one error.
    Invalid {
        /// The errors, with their positions.
        diagnostics: Vec<Diagnostic>,
    },
    /// Not meant as an agent.
    NotAnAgent {
        /// The reason.
        reason: NotAnAgent,
    },
}

/// Why a markdown file is not an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAnAgent {
    /// The file is empty or only white space.
    Empty,
    /// The file has no frontmatter.
    NoFrontmatter,
    /// The frontmatter is in a code fence or after a heading, and is read only with [`FrontmatterShapes::Lenient`].
    Wrapped,
    /// A file without frontmatter, with a name like that of documentation, so not reported.
    Documentation,
    /// A document with fields of another kind, for example a page of a site.
    OtherDocument,
    /// A file of TOML, JSON or YAML without an agent's fields, so not reported.
    OtherFile,
}

impl AgentDefinition {
    /// Whether all named tools of the file are unavailable, or a limit is not enforced here: such an agent is
    /// not run.
    pub fn has_lost_all_tools(&self) -> bool {
        if !self.not_kept.is_empty() {
            return true;
        }
        let named = self.tools_as_written.as_ref().is_some_and(|names| !names.is_empty());
        named && self.asked.tools.as_ref().is_some_and(|tools| tools.is_empty())
    }
}

impl SubagentsAsk {
    /// Whether the limits rule out all delegation.
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
            Self::OtherDocument => {
                "the file is a document of another kind, by its place or its fields"
            }
            Self::OtherFile => "the file has no agent's fields",
        }
    }

    /// Whether a scan skips the file without reporting it.
    pub fn is_silent(self) -> bool {
        match self {
            Self::Documentation | Self::OtherDocument | Self::OtherFile => true,
            Self::Empty | Self::NoFrontmatter | Self::Wrapped => false,
        }
    }
}
