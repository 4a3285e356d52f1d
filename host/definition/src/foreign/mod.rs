//! The tools of other programs: the names and arguments under which an agent's author wrote of them, and the
//! belljar tool and arguments that each becomes.
//!
//! [`TOOL_ALIASES`](crate::TOOL_ALIASES) maps a name in a file's `tools` to a right; this table maps the same
//! tool to the alias that is offered to the model. A system prompt that mentions `Read` and `file_path` thus
//! stays true, word for word. This module is data only: `belljar-agent` translates calls with the table.

mod claude_code;
mod copilot;
mod gemini_cli;
mod opencode;
mod pi;

use crate::Dialect;

/// One tool under the name in its author's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignTool {
    /// The name for the model's calls, for example `Read`.
    pub name: &'static str,
    /// The name of belljar's tool, for example `file_read`.
    pub tool: &'static str,
    /// The description that the model reads.
    pub description: &'static str,
    /// The arguments, in the order shown to the model.
    pub arguments: &'static [Argument],
    /// Arguments of belljar's tool that are set to fixed values unless the model's own arguments set them.
    pub given: &'static [(&'static str, Given)],
}

/// One argument under the name in its author's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// The name that the model writes, for example `file_path`.
    pub name: &'static str,
    /// The type of the value.
    pub kind: ArgumentKind,
    /// Whether a call without this argument is malformed.
    pub required: bool,
    /// The description that the model reads.
    pub description: &'static str,
    /// The argument of belljar's tool that this argument becomes.
    pub becomes: Becomes,
}

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A text.
    Text,
    /// A whole number.
    Number,
    /// True or false.
    Flag,
    /// One of these words, each with the word of belljar's tool.
    Word(&'static [(&'static str, &'static str)]),
    /// A list of texts.
    Texts,
    /// An object with any members.
    Object,
    /// A list of objects with these members.
    Items(&'static [Argument]),
}

/// The effect of an argument on the translated call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Becomes {
    /// Belljar's argument of this name, for example `path`, with the same value.
    Argument(&'static str),
    /// Belljar's argument of this name gets the only element of the list; a longer list is refused, because
    /// one call does one thing here.
    OnlyElement(&'static str),
    /// The members of the list's only object become arguments of the call; a longer list is refused.
    OnlyObject,
    /// More search terms in the text argument `of`: results only from these sites, or from all others.
    Sites {
        /// The argument that holds the terms.
        of: &'static str,
        /// Whether only these sites are searched; otherwise they are left out.
        only: bool,
    },
    /// Unless the value is true, the text argument of this name is literal text, not a regular expression.
    IsPattern(&'static str),
    /// Accepted without effect, for this reason.
    Nothing(&'static str),
    /// A call that sets this argument is refused with this message.
    Never(&'static str),
}

/// A fixed value of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// A text.
    Text(&'static str),
    /// True or false.
    Flag(bool),
}

impl ForeignTool {
    /// The aliases of a dialect's tools. An unknown dialect has no aliases: its tools keep belljar's own
    /// names.
    pub fn of(dialect: Dialect) -> &'static [ForeignTool] {
        match dialect {
            Dialect::ClaudeCode => claude_code::TOOLS,
            Dialect::OpenCode => opencode::TOOLS,
            Dialect::Copilot => copilot::TOOLS,
            Dialect::GeminiCli => gemini_cli::TOOLS,
            Dialect::Pi => pi::TOOLS,
            Dialect::Canonical | Dialect::SmallCode | Dialect::Unknown => &[],
        }
    }

    /// The aliases under which a tool is offered to an agent of this dialect: those that the author wrote in
    /// `tools`, else the dialect's first. An empty list means that the tool keeps its own name, for example
    /// because the author wrote that name.
    pub fn offered(dialect: Dialect, tool: &str, written: &[&str]) -> Vec<&'static ForeignTool> {
        if written.contains(&tool) {
            return Vec::new();
        }
        let aliases = || Self::of(dialect).iter().filter(|alias| alias.tool == tool);
        let named: Vec<_> = aliases().filter(|alias| written.contains(&alias.name)).collect();
        if named.is_empty() { aliases().take(1).collect() } else { named }
    }

    /// The foreign name of belljar's argument `own`.
    pub fn argument_for(&self, own: &str) -> Option<&'static str> {
        let is =
            |argument: &&Argument| matches!(argument.becomes, Becomes::Argument(it) if it == own);
        self.arguments.iter().find(is).map(|argument| argument.name)
    }

    /// The arguments that have no effect or are refused, each with the reason.
    pub fn limits(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.arguments.iter().filter_map(|argument| match argument.becomes {
            Becomes::Nothing(why) | Becomes::Never(why) => Some((argument.name, why)),
            Becomes::Argument(_)
            | Becomes::OnlyElement(_)
            | Becomes::OnlyObject
            | Becomes::Sites { .. }
            | Becomes::IsPattern(_) => None,
        })
    }
}

/// The target of an object's only member when the member's value replaces the object: a list of such objects
/// becomes a list of the values.
pub const SELF: &str = ".";

/// The description of the shell tool in every dialect.
const SHELL: &str = "Runs a command in a POSIX shell inside the sandbox, at `/workspace` to begin \
    with; the working directory and variables last from call to call. The usual text and file \
    utilities are there; git, compilers, package managers and interpreters are not, nor is the \
    network.";

/// The argument for a subagent's task.
const PROMPT: Argument = argument(
    "prompt",
    ArgumentKind::Text,
    "task",
    "The task, complete in itself: the subagent knows nothing of this conversation.",
)
.required();

/// The argument for facts that a subagent need not find out again. The author's program has no such argument.
const CONTEXT: Argument = argument(
    "context",
    ArgumentKind::Text,
    "context",
    "Optional. What you know already and the subagent would otherwise have to find out again: paths and \
     names that matter, findings so far, decisions, what was tried and failed. Pass facts, not how to work.",
);

/// The argument that names the agent to run as the subagent.
const fn agent(name: &'static str) -> Argument {
    let names = "The name of the agent, from the list in your instructions.";
    argument(name, ArgumentKind::Text, "agent", names)
}

/// An argument that is only renamed.
const fn argument(
    name: &'static str,
    kind: ArgumentKind,
    becomes: &'static str,
    description: &'static str,
) -> Argument {
    Argument { name, kind, required: false, description, becomes: Becomes::Argument(becomes) }
}

impl Argument {
    /// The same argument, but a call without it is malformed.
    const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// The same argument with another effect.
    const fn becomes(self, becomes: Becomes) -> Self {
        Self { becomes, ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::TOOL_ALIASES;

    fn names(dialect: Dialect, tool: &str, written: &[&str]) -> Vec<&'static str> {
        ForeignTool::offered(dialect, tool, written).iter().map(|alias| alias.name).collect()
    }

    #[test]
    fn every_tool_that_a_dialects_names_give_has_a_face_there() {
        for dialect in Dialect::WITH_TOOLS {
            let rows = TOOL_ALIASES.iter().filter(|row| row.dialect == dialect);
            let given: BTreeSet<_> = rows.flat_map(|row| row.canonical).collect();
            for tool in given {
                let known = ForeignTool::of(dialect).iter().any(|alias| alias.tool == *tool);
                // Copilot has no tool of its own that searches the web.
                let exempt = (dialect, *tool) == (Dialect::Copilot, "web_search");
                assert!(known || exempt, "{dialect}: {tool}");
            }
        }
    }

    #[test]
    fn what_the_author_wrote_is_what_the_model_is_offered() {
        let claude = |tool, written: &[&str]| names(Dialect::ClaudeCode, tool, written);
        assert_eq!(claude("file_edit", &[]), ["Edit"]);
        assert_eq!(claude("file_edit", &["MultiEdit"]), ["MultiEdit"]);
        assert_eq!(claude("file_edit", &["Edit", "MultiEdit", "Read"]), ["Edit", "MultiEdit"]);
        assert!(claude("file_edit", &["file_edit", "Edit"]).is_empty());
        assert!(claude("attach_file", &[]).is_empty());
        assert_eq!(names(Dialect::Copilot, "file_edit", &["edit"]), ["replace_string_in_file"]);
        assert!(names(Dialect::Unknown, "file_read", &["Read"]).is_empty());
    }

    #[test]
    fn every_name_of_the_tool_that_starts_a_subagent_takes_an_agent_a_task_and_a_context() {
        for dialect in Dialect::WITH_TOOLS {
            for alias in ForeignTool::of(dialect).iter().filter(|it| it.tool == "spawn_agent") {
                for own in ["agent", "task", "context"] {
                    let named = alias.argument_for(own);
                    assert!(named.is_some(), "{dialect} {}: `{own}`", alias.name);
                }
            }
        }
    }

    #[test]
    fn names_are_unique_and_every_required_argument_becomes_something() {
        for dialect in Dialect::WITH_TOOLS {
            let aliases = ForeignTool::of(dialect);
            let names: BTreeSet<_> = aliases.iter().map(|alias| alias.name).collect();
            assert_eq!(names.len(), aliases.len(), "{dialect}");
            for argument in aliases.iter().flat_map(|alias| alias.arguments) {
                let lost = matches!(argument.becomes, Becomes::Never(_));
                assert!(!(argument.required && lost), "{dialect}: {}", argument.name);
            }
        }
    }
}
