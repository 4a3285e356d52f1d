//! The tools that remain for an agent while it uses a skill or a command with `allowed-tools`.
//!
//! The names are those of any program's files, read as in agent files. The result is a request in the shape of
//! a definition's, so `policy` intersects it with the agent's rights: it never adds a tool.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{AskedRights, CallPermission, ToolName};

use super::builtin_tools::{
    AGENT_CANCEL, AGENT_RESULT, AGENT_STATUS, CLARIFY, TODO_WRITE, USE_SKILL,
};
use super::names::find_named_tools;
use super::tools::{KnownTools, ToolNameMeaning, WrittenToolName};
use crate::{Dialect, UseTerms};

/// Tools that remain beside every list, if the agent has them: they load further instructions, keep a list, ask
/// the person, or watch subagents that were started before.
const KEPT: [&str; 6] = [USE_SKILL, TODO_WRITE, CLARIFY, AGENT_STATUS, AGENT_RESULT, AGENT_CANCEL];

/// Tools with the rights of `shell` and no other: they remain where the shell does.
const LIKE_SHELL: [&str; 2] = ["run_python", "run_javascript"];

/// The programs of a scope such as `Bash(python3 *)`, each with the tool that runs its language.
const INTERPRETERS: [(&str, &str); 4] = [
    ("python", "run_python"),
    ("python3", "run_python"),
    ("uv", "run_python"),
    ("node", "run_javascript"),
];

impl UseTerms {
    /// The tools that remain while the text is in use; `None` = all.
    ///
    /// A scope that belljar does not enforce (`Bash(git *)`) leaves no shell, because the whole shell is more than
    /// the author listed. A name that means nothing here leaves nothing.
    pub fn remaining_tools(&self, known: &KnownTools) -> Option<AskedRights> {
        if !self.narrows_tools() {
            return None;
        }
        let mut tools = Some(BTreeSet::new());
        for written in self.allowed_tools.iter().flatten() {
            match WrittenToolName::from_text(written).resolve_meaning(Dialect::ClaudeCode, known) {
                ToolNameMeaning::All => tools = None,
                ToolNameMeaning::Tools(named, _) => {
                    tools.iter_mut().for_each(|tools| tools.extend(named.iter().cloned()));
                }
                ToolNameMeaning::Unavailable(_) | ToolNameMeaning::Unknown => {
                    let tool = find_interpreter(written).and_then(|tool| known.get(tool));
                    tools.iter_mut().for_each(|tools| tools.extend(tool.cloned()));
                }
            }
        }
        if self.allowed_tools.is_none() {
            tools = None;
        }
        if let Some(tools) = &mut tools {
            let shell = tools.iter().any(|tool| tool.as_str() == "shell");
            let like_shell = LIKE_SHELL.into_iter().filter(|_| shell);
            let beside = KEPT.into_iter().chain(like_shell);
            tools.extend(beside.filter_map(|name| known.get(name).cloned()));
        }
        Some(AskedRights { tools, at_most: self.denied_tools(known), ..AskedRights::default() })
    }

    /// Everything that the names of `disallowed-tools` may mean.
    fn denied_tools(&self, known: &KnownTools) -> BTreeMap<ToolName, CallPermission> {
        let named = self.disallowed_tools.iter().map(|name| find_named_tools(name, known));
        let tools = named.flat_map(|named| named.tools.into_iter().chain(named.beside));
        let mut denied: BTreeMap<_, _> = tools.map(|tool| (tool, CallPermission::Deny)).collect();
        if denied.contains_key("shell") {
            let like_shell = LIKE_SHELL.into_iter().filter_map(|name| known.get(name).cloned());
            denied.extend(like_shell.map(|tool| (tool, CallPermission::Deny)));
        }
        denied
    }
}

/// The tool that runs the language of a scope, for example `run_python` of `Bash(python3 scripts/a.py *)`.
fn find_interpreter(written: &str) -> Option<&'static str> {
    let WrittenToolName { name, scope } = WrittenToolName::from_text(written);
    if name != "Bash" {
        return None;
    }
    let program = scope?.split([' ', ':']).next()?;
    INTERPRETERS.iter().find(|(known, _)| *known == program).map(|(_, tool)| *tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tools that remain, as text, for a skill with these lists.
    fn remaining(allowed: Option<&[&str]>, denied: &[&str]) -> String {
        let names = [
            "file_read",
            "file_search",
            "file_write",
            "shell",
            "run_python",
            "run_javascript",
            "spawn_agent",
            "use_skill",
            "todo_write",
        ];
        let known: KnownTools = names.iter().map(|name| ToolName::new(name).unwrap()).collect();
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let terms = UseTerms {
            allowed_tools: allowed.map(owned),
            disallowed_tools: owned(denied),
            ..UseTerms::default()
        };
        let Some(asked) = terms.remaining_tools(&known) else { return "all".to_owned() };
        let left = names.into_iter().filter(|name| {
            asked.tools.as_ref().is_none_or(|tools| tools.contains(*name))
                && asked.highest_permission(name) != CallPermission::Deny
        });
        left.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_list_leaves_what_it_names_and_a_denial_takes_all_that_it_may_mean() {
        const OTHERS: &str = "use_skill todo_write";
        for (allowed, left) in [
            (&["Read", "Grep"][..], "file_read file_search use_skill todo_write"),
            (&["Bash"], "shell run_python run_javascript use_skill todo_write"),
            (&["Bash(git *)"], OTHERS),
            (&["Bash(python3 scripts/a.py:*)"], "run_python use_skill todo_write"),
            (&["Task"], "spawn_agent use_skill todo_write"),
            (&["NoSuchTool"], OTHERS),
            (&[], OTHERS),
        ] {
            assert_eq!(remaining(Some(allowed), &[]), left, "{allowed:?}");
        }
        assert_eq!(remaining(None, &[]), "all");
        assert!(remaining(Some(&["*"]), &[]).contains("file_write"));
        let without = remaining(None, &["Write", "Bash"]);
        assert_eq!(without, "file_read file_search spawn_agent use_skill todo_write");
        assert_eq!(
            remaining(Some(&["Read", "Write"]), &["Write"]),
            "file_read use_skill todo_write"
        );
    }
}
