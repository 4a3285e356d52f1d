//! Tool names: belljar's own, and those of other programs, with the table that translates them.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{ShownText, ToolName};

use super::builtin_tools::SPAWN_AGENT;
use super::words::flatten_text;
use crate::dialect::Dialect;
use crate::suggest;

/// The tools that exist here: built in, provided by the host, or installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownTools {
    names: BTreeSet<ToolName>,
    /// The tools by lower-case name, and those of MCP servers also by `SERVER_TOOL`. Computed once, because a
    /// file may name hundreds of tools and servers may have thousands.
    spoken: BTreeMap<String, BTreeSet<ToolName>>,
    /// The tools by their names in lower case without joining characters, for example `filewrite`.
    flat: BTreeMap<String, BTreeSet<ToolName>>,
    /// The tools of each MCP server, by `mcp__SERVER` in lower case.
    servers: BTreeMap<String, BTreeSet<ToolName>>,
    /// The servers by their names in agent files, in lower case, for example `plugin_tools_docs`.
    called: BTreeMap<String, String>,
}

/// How well belljar's tools stand in for a foreign tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AliasStatus {
    /// The named tools do all that the foreign tool does.
    Works,
    /// They do, with these limits.
    Limited(&'static str),
    /// No tool here does the same, for this reason.
    Unavailable(&'static str),
}

/// A row of the translation table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolAlias {
    /// The program in whose files the name is used.
    pub dialect: Dialect,
    /// The name in that program, for example `Read`.
    pub name: &'static str,
    /// Belljar's tools for the name; empty if unavailable.
    pub canonical: &'static [&'static str],
    /// How well belljar's tools replace the foreign one.
    pub status: AliasStatus,
}

/// What a tool name in a file means here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolNameMeaning {
    /// Every granted tool.
    All,
    /// These tools, with the limits of the translation, if any.
    Tools(Vec<ToolName>, Option<&'static str>),
    /// Known, but unavailable here, for this reason.
    Unavailable(String),
    /// Unknown.
    Unknown,
}

/// A tool name split from its scope: `Bash(git:*)` is `Bash` with `git:*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrittenToolName<'a> {
    pub(crate) name: &'a str,
    pub(crate) scope: Option<&'a str>,
}

impl KnownTools {
    /// Builds the set, with its indexes.
    pub fn new(names: impl IntoIterator<Item = ToolName>) -> Self {
        let names: BTreeSet<ToolName> = names.into_iter().collect();
        let mut known = Self { names, ..Self::default() };
        for tool in &known.names {
            let lower = tool.as_str().to_ascii_lowercase();
            let parts = lower.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
            if let Some((server, of_server)) = parts {
                let also = format!("{server}_{of_server}");
                known.spoken.entry(also).or_default().insert(tool.clone());
                let whole = format!("mcp__{server}");
                known.servers.entry(whole).or_default().insert(tool.clone());
            }
            known.flat.entry(flatten_text(&lower)).or_default().insert(tool.clone());
            known.spoken.entry(lower).or_default().insert(tool.clone());
        }
        known
    }

    /// The same tools, with other names of their servers in agent files, in lower case. For example, with
    /// `plugin_tools_docs` for the server `docs`, `mcp__plugin_tools_docs__find` is `mcp__docs__find`.
    #[must_use]
    pub fn with_server_names(mut self, called: &BTreeMap<String, String>) -> Self {
        for (name, server) in called {
            let prefix = format!("mcp__{server}__");
            let own = self.names.iter().filter(|tool| tool.as_str().starts_with(&prefix));
            for tool in own {
                let lower = tool.as_str().to_ascii_lowercase();
                let of_server = lower.strip_prefix(&prefix).unwrap_or_default();
                for spelling in [format!("mcp__{name}__{of_server}"), format!("{name}_{of_server}")]
                {
                    self.spoken.entry(spelling).or_default().insert(tool.clone());
                }
                self.servers.entry(format!("mcp__{name}")).or_default().insert(tool.clone());
            }
        }
        self.called.clone_from(called);
        self
    }

    /// The tool of a server that agent files call otherwise.
    fn called_tool(&self, name: &str) -> Option<&ToolName> {
        let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
        let own = self.called.get(&server.to_ascii_lowercase())?;
        self.names.get(format!("mcp__{own}__{tool}").as_str())
    }

    /// Whether a tool has this name.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// All names, in order.
    pub fn iter(&self) -> impl Iterator<Item = &ToolName> {
        self.names.iter()
    }

    /// The tool with exactly this name.
    pub(crate) fn get(&self, name: &str) -> Option<&ToolName> {
        self.names.get(name)
    }

    /// The tools that a lower-case name refers to in any program's files: a tool's own name, `mcp__SERVER`
    /// for all tools of a server, `SERVER_TOOL` for one.
    pub(crate) fn spoken_tools(&self, name: &str) -> BTreeSet<ToolName> {
        let found = self.spoken.get(name).into_iter().chain(self.servers.get(name));
        found.flatten().cloned().collect()
    }

    /// The tools with this name, in lower case and without characters that only join words.
    pub(crate) fn tools_by_spelling(&self, name: &str) -> BTreeSet<ToolName> {
        self.flat.get(name).into_iter().flatten().cloned().collect()
    }

    /// The tools whose joined lower-case name is accepted by `fits`.
    pub(crate) fn flat_like(&self, fits: impl Fn(&str) -> bool) -> BTreeSet<ToolName> {
        let found = self.flat.iter().filter(|(name, _)| fits(name));
        found.flat_map(|(_, tools)| tools).cloned().collect()
    }

    /// The tools with a lower-case name that `fits` accepts.
    pub(crate) fn spoken_like(&self, fits: impl Fn(&str) -> bool) -> BTreeSet<ToolName> {
        let found = self.spoken.iter().filter(|(name, _)| fits(name));
        found.flat_map(|(_, tools)| tools).cloned().collect()
    }

    /// All tools of an MCP server, for a name like `mcp__SERVER__*`, for example `mcp__work__*`.
    pub(crate) fn server_tools(&self, name: &str) -> Vec<ToolName> {
        let name = name.strip_suffix("__*").unwrap_or(name);
        let server = name.strip_prefix("mcp__").filter(|server| !server.is_empty());
        let Some(server) = server.filter(|server| !server.contains("__")) else {
            return Vec::new();
        };
        let server = self.called.get(&server.to_ascii_lowercase()).map_or(server, String::as_str);
        let prefix = format!("mcp__{server}__");
        self.names.iter().filter(|tool| tool.as_str().starts_with(&prefix)).cloned().collect()
    }

    /// The name that was likely meant.
    pub fn suggest_name(&self, name: &str) -> Option<&str> {
        suggest::find_nearest(name, self.names.iter().map(ToolName::as_str))
    }
}

impl FromIterator<ToolName> for KnownTools {
    fn from_iter<I: IntoIterator<Item = ToolName>>(names: I) -> Self {
        Self::new(names)
    }
}

impl<'a> WrittenToolName<'a> {
    /// Splits off the scope. An unclosed parenthesis stays part of the name, which is then unknown.
    pub(crate) fn from_text(text: &'a str) -> Self {
        match text.strip_suffix(')').and_then(|rest| rest.split_once('(')) {
            Some((name, scope)) => Self { name: name.trim(), scope: Some(scope.trim()) },
            None => Self { name: text.trim(), scope: None },
        }
    }

    /// The meaning of the name in a file of the dialect. If the name has a scope that belljar does not
    /// enforce, the tool is unavailable, because the whole tool would be more than the file asks for.
    pub(crate) fn resolve_meaning(&self, dialect: Dialect, known: &KnownTools) -> ToolNameMeaning {
        let meaning = self.unscoped_meaning(dialect, known);
        let Some(scope) = self.scope.filter(|scope| *scope != "*") else { return meaning };
        match meaning {
            ToolNameMeaning::Tools(tools, _) if tools.iter().all(|t| t.as_str() == SPAWN_AGENT) => {
                ToolNameMeaning::Tools(tools, None)
            }
            ToolNameMeaning::Tools(..) | ToolNameMeaning::All => {
                ToolNameMeaning::Unavailable(format!(
                    "the scope `{}` is not something that belljar enforces",
                    ShownText::clip_line(scope, 80)
                ))
            }
            ToolNameMeaning::Unavailable(_) | ToolNameMeaning::Unknown => meaning,
        }
    }

    /// The meaning of the name without its scope.
    fn unscoped_meaning(&self, dialect: Dialect, known: &KnownTools) -> ToolNameMeaning {
        if self.name == "*" {
            return ToolNameMeaning::All;
        }
        if let Some(own) = known.get(self.name) {
            return ToolNameMeaning::Tools(vec![own.clone()], None);
        }
        if let Some(own) = known.called_tool(self.name) {
            return ToolNameMeaning::Tools(vec![own.clone()], None);
        }
        let of_server = known.server_tools(self.name);
        if !of_server.is_empty() {
            return ToolNameMeaning::Tools(of_server, None);
        }
        if self.name.starts_with("mcp_") {
            return ToolNameMeaning::Unavailable("it is a tool of an MCP server".to_owned());
        }
        let rows = || TOOL_ALIASES.iter().filter(|row| row.name == self.name);
        let Some(row) = rows().find(|row| row.dialect == dialect).or_else(|| rows().next()) else {
            return ToolNameMeaning::Unknown;
        };
        let limits = match row.status {
            AliasStatus::Works => None,
            AliasStatus::Limited(limits) => Some(limits),
            AliasStatus::Unavailable(why) => return ToolNameMeaning::Unavailable(why.to_owned()),
        };
        let tools: Option<Vec<_>> =
            row.canonical.iter().map(|name| known.get(name).cloned()).collect();
        match tools {
            Some(tools) if !tools.is_empty() => ToolNameMeaning::Tools(tools, limits),
            Some(_) | None => ToolNameMeaning::Unavailable(format!(
                "`{}` is not installed",
                row.canonical.join("`, `")
            )),
        }
    }
}

const SHELL: &str =
    "the sandbox's own shell and utilities: no git, compilers, package managers or interpreters";
const BACKGROUND: &str = "a command ends with its call: none goes on in the background";
const TASKS: &str = "it runs an editor's own tasks";
const EDITOR: &str = "it belongs to an editor";
const TODO: &str = "the list stands in the conversation: each write sends the whole of it";
const PLAN: &str = "there is no plan mode: what an agent may do is settled before it starts";
const SERVER: &str = "no language server runs in the sandbox";
const PATCH: &str = "patches are not read; `edit` and `write` change files";
const MEMORY: &str = "nothing is kept from one session to the next";
const OWN_AGENT: &str = "it is an agent of that program; hand work to your own";
const WORKTREE: &str =
    "a copy of the agent's overlay, without git: no branch, and its last message ends it";
const SCHEDULE: &str = "nothing is started by a clock";
const NOTIFIES: &str = "an agent's last message is what a person gets; nothing is sent elsewhere";
const TRACKER: &str = "the list is sent whole: ask for `write_todos`";
const INDEX: &str = "it asks a service that keeps an index of public code";

macro_rules! aliases {
    ($($dialect:ident { $($name:literal => $status:expr $(, $tool:literal)*;)* })*) => {
        /// Every known foreign tool name: one table for the loader, the documentation and `belljar tools
        /// aliases`.
        pub const TOOL_ALIASES: &[ToolAlias] = &[
            $($(ToolAlias {
                dialect: Dialect::$dialect,
                name: $name,
                canonical: &[$($tool),*],
                status: $status,
            },)*)*
        ];
    };
}

use AliasStatus::{Limited, Unavailable, Works};

aliases! {
    ClaudeCode {
        "Read" => Limited("text only: no images or PDF pages; a notebook is its JSON"), "file_read";
        "Write" => Works, "file_write";
        "Edit" => Works, "file_edit";
        "MultiEdit" => Works, "file_edit";
        "Glob" => Works, "file_find";
        "Grep" => Works, "file_search";
        "LS" => Works, "file_list";
        "WebFetch" => Limited("gives the page; no model answers a question about it"), "web_fetch";
        "WebSearch" => Works, "web_search";
        "Task" => Works, "spawn_agent";
        "Agent" => Works, "spawn_agent";
        "Bash" => Limited(SHELL), "shell";
        "BashOutput" => Unavailable(BACKGROUND);
        "KillShell" => Unavailable(BACKGROUND);
        "KillBash" => Unavailable(BACKGROUND);
        "TodoWrite" => Works, "todo_write";
        "TodoRead" => Unavailable(TODO);
        "NotebookRead" => Limited("gives the notebook's JSON; no pictures"), "file_read";
        "NotebookEdit" => Works, "notebook_edit";
        "ExitPlanMode" => Unavailable(PLAN);
        "EnterPlanMode" => Unavailable(PLAN);
        "AskUserQuestion" => Limited("one question for each call"), "clarify";
        "SlashCommand" => Unavailable("commands are typed by a person; a skill serves an agent");
        "Skill" => Works, "use_skill";
        "ToolSearch" => Unavailable("an agent is shown all its tools from the start");
        "LSP" => Unavailable(SERVER);
        "Workflow" => Unavailable("a sequence of agents is a team, which a person starts");
        "SendMessage" => Unavailable("agents at work hear nothing from each other; conclusions go back");
        "TaskCreate" => Works, "todo_write";
        "TaskGet" => Works, "todo_write";
        "TaskList" => Works, "todo_write";
        "TaskUpdate" => Works, "todo_write";
        "TaskOutput" => Works, "agent_result";
        "TaskStop" => Works, "agent_cancel";
        "EnterWorktree" => Limited(WORKTREE), "worktree";
        "ExitWorktree" => Limited(WORKTREE), "worktree";
        "CronCreate" => Unavailable(SCHEDULE);
        "CronDelete" => Unavailable(SCHEDULE);
        "CronList" => Unavailable(SCHEDULE);
        "Monitor" => Unavailable(BACKGROUND);
        "PowerShell" => Unavailable("the sandbox's shell is a POSIX shell: ask for `Bash`");
        "TeamCreate" => Unavailable("a sequence of agents is a team, which a person starts");
        "TeamDelete" => Unavailable("a sequence of agents is a team, which a person starts");
        "ListMcpResourcesTool" => Unavailable("it is a tool of an MCP server");
        "ReadMcpResourceTool" => Unavailable("it is a tool of an MCP server");
        "WaitForMcpServers" => Unavailable("it is a tool of an MCP server");
        "MCPSearch" => Unavailable("it is a tool of an MCP server");
        "ScheduleWakeup" => Unavailable(SCHEDULE);
        "RemoteTrigger" => Unavailable(SCHEDULE);
        "Sleep" => Unavailable(SCHEDULE);
        "PushNotification" => Unavailable(NOTIFIES);
        "SendUserMessage" => Unavailable(NOTIFIES);
        "SendUserFile" => Unavailable("a file is handed over by `attach_file`");
        "Artifact" => Unavailable("nothing is published from here; a file is handed over by `attach_file`");
        "ReportFindings" => Unavailable("findings stand in an agent's conclusion: `emitStructuredFindings`");
        "StructuredOutput" => Unavailable("an agent's last message is its conclusion");
        "ShareOnboardingGuide" => Unavailable("it belongs to that program");
        "Config" => Unavailable("it belongs to that program");
        "REPL" => Unavailable("no interpreter runs in the sandbox: ask for `Bash`");
        "AgentOutputTool" => Unavailable("it is called `TaskOutput` now");
    }
    OpenCode {
        "read" => Works, "file_read";
        "write" => Works, "file_write";
        "edit" => Works, "file_edit";
        "multiedit" => Works, "file_edit";
        "glob" => Works, "file_find";
        "grep" => Works, "file_search";
        "list" => Works, "file_list";
        "webfetch" => Works, "web_fetch";
        "websearch" => Works, "web_search";
        "task" => Works, "spawn_agent";
        "bash" => Limited(SHELL), "shell";
        "patch" => Unavailable(PATCH);
        "apply_patch" => Unavailable(PATCH);
        "todowrite" => Works, "todo_write";
        "todoread" => Unavailable(TODO);
        "lsp" => Unavailable(SERVER);
        "skill" => Works, "use_skill";
        "question" => Limited("one question for each call"), "clarify";
        "codesearch" => Unavailable(INDEX);
    }
    Copilot {
        "read" => Works, "file_read";
        "read/readFile" => Works, "file_read";
        "edit" => Works, "file_edit", "file_write";
        "edit/editFiles" => Works, "file_edit";
        "edit/createFile" => Works, "file_write";
        "editFiles" => Works, "file_edit";
        "createFile" => Works, "file_write";
        "search" => Works, "file_search", "file_find";
        "search/codebase" => Limited("a text search, not one by meaning"), "file_search";
        "search/textSearch" => Works, "file_search";
        "search/fileSearch" => Works, "file_find";
        "search/listDirectory" => Works, "file_list";
        "codebase" => Limited("a text search, not one by meaning"), "file_search";
        "textSearch" => Works, "file_search";
        "fileSearch" => Works, "file_find";
        "listDirectory" => Works, "file_list";
        "fetch" => Works, "web_fetch";
        "web" => Works, "web_fetch", "web_search";
        "web/fetch" => Works, "web_fetch";
        "agent" => Works, "spawn_agent";
        "agent/runSubagent" => Works, "spawn_agent";
        "runSubagent" => Works, "spawn_agent";
        "edit/createDirectory" => Unavailable("writing a file makes the directories that it needs");
        "edit/editNotebook" => Works, "notebook_edit";
        "execute" => Limited(SHELL), "shell";
        "execute/runInTerminal" => Limited(SHELL), "shell";
        "execute/getTerminalOutput" => Unavailable(BACKGROUND);
        "execute/runTask" => Unavailable(TASKS);
        "execute/createAndRunTask" => Unavailable(TASKS);
        "execute/runTests" => Unavailable(TASKS);
        "execute/testFailure" => Unavailable(EDITOR);
        "execute/runNotebookCell" => Unavailable(EDITOR);
        "runInTerminal" => Limited(SHELL), "shell";
        "runCommands" => Limited(SHELL), "shell";
        "runCommands/runInTerminal" => Limited(SHELL), "shell";
        "runTasks" => Unavailable(TASKS);
        "runTests" => Unavailable(TASKS);
        "runNotebooks" => Unavailable(EDITOR);
        "shell" => Limited(SHELL), "shell";
        "terminal" => Limited(SHELL), "shell";
        "terminalCommand" => Limited(SHELL), "shell";
        "terminalLastCommand" => Unavailable(EDITOR);
        "terminalSelection" => Unavailable(EDITOR);
        "read/terminalLastCommand" => Unavailable(EDITOR);
        "read/terminalSelection" => Unavailable(EDITOR);
        "read/getNotebookSummary" => Unavailable(EDITOR);
        "read/problems" => Unavailable(EDITOR);
        "problems" => Unavailable(EDITOR);
        "usages" => Unavailable(EDITOR);
        "search/usages" => Unavailable(EDITOR);
        "search/changes" => Unavailable(EDITOR);
        "search/searchResults" => Unavailable(EDITOR);
        "searchResults" => Unavailable(EDITOR);
        "changes" => Unavailable(EDITOR);
        "findTestFiles" => Unavailable(EDITOR);
        "testFailure" => Unavailable(EDITOR);
        "openSimpleBrowser" => Unavailable(EDITOR);
        "extensions" => Unavailable(EDITOR);
        "new" => Unavailable(EDITOR);
        "vscode" => Unavailable(EDITOR);
        "vscodeAPI" => Unavailable(EDITOR);
        "vscode/vscodeAPI" => Unavailable(EDITOR);
        "vscode/extensions" => Unavailable(EDITOR);
        "vscode/getProjectSetupInfo" => Unavailable(EDITOR);
        "vscode/installExtension" => Unavailable(EDITOR);
        "vscode/newWorkspace" => Unavailable(EDITOR);
        "vscode/openSimpleBrowser" => Unavailable(EDITOR);
        "vscode/runCommand" => Unavailable(EDITOR);
        "vscode/askQuestions" => Unavailable(EDITOR);
        "githubRepo" => Unavailable(INDEX);
        "web/githubRepo" => Unavailable(INDEX);
        "github" => Unavailable("it is a tool of an MCP server");
        "todo" => Works, "todo_write";
        "todos" => Works, "todo_write";
        "think" => Unavailable("a model thinks without a tool");
    }
    GeminiCli {
        "read_file" => Works, "file_read";
        "read_many_files" => Limited("one file for each call"), "file_read";
        "write_file" => Works, "file_write";
        "replace" => Works, "file_edit";
        "list_directory" => Works, "file_list";
        "glob" => Works, "file_find";
        "grep_search" => Works, "file_search";
        "search_file_content" => Works, "file_search";
        "run_shell_command" => Limited(SHELL), "shell";
        "google_web_search" => Works, "web_search";
        "write_todos" => Works, "todo_write";
        "activate_skill" => Works, "use_skill";
        "ask_user" => Limited("one question for each call"), "clarify";
        "save_memory" => Unavailable(MEMORY);
        "codebase_investigator" => Unavailable(OWN_AGENT);
        "generalist" => Unavailable(OWN_AGENT);
        "cli_help" => Unavailable(OWN_AGENT);
        "get_internal_docs" => Unavailable("it explains that program");
        "enter_plan_mode" => Unavailable(PLAN);
        "exit_plan_mode" => Unavailable(PLAN);
        "complete_task" => Unavailable("an agent's last message is its conclusion");
        "invoke_agent" => Works, "spawn_agent";
        "update_topic" => Unavailable("a person sees what an agent says and calls");
        "list_mcp_resources" => Unavailable("it is a tool of an MCP server");
        "read_mcp_resource" => Unavailable("it is a tool of an MCP server");
        "tracker_create_task" => Unavailable(TRACKER);
        "tracker_update_task" => Unavailable(TRACKER);
        "tracker_get_task" => Unavailable(TRACKER);
        "tracker_list_tasks" => Unavailable(TRACKER);
        "tracker_add_dependency" => Unavailable(TRACKER);
        "tracker_visualize" => Unavailable(TRACKER);
    }
    Pi {
        "read" => Works, "file_read";
        "write" => Works, "file_write";
        "edit" => Works, "file_edit";
        "bash" => Limited(SHELL), "shell";
        "grep" => Works, "file_search";
        "find" => Works, "file_find";
        "ls" => Works, "file_list";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tools that exist in these tests.
    fn known() -> KnownTools {
        let names = [
            "file_read",
            "file_write",
            "file_edit",
            "notebook_edit",
            "file_find",
            "file_search",
            "file_list",
            "notebook_edit",
            "shell",
            "web_fetch",
            "web_search",
            "attach_file",
        ];
        names
            .into_iter()
            .chain(crate::BUILTIN_TOOLS)
            .map(|name| ToolName::new(name).unwrap())
            .collect()
    }

    #[test]
    fn a_name_of_a_server_means_all_its_tools_that_are_there() {
        let known = ["mcp__a__x", "mcp__a__y", "mcp__ab__z", "file_read"];
        let known = KnownTools::new(known.map(|name| ToolName::new(name).unwrap()));
        let means = |text| match WrittenToolName::from_text(text)
            .resolve_meaning(Dialect::ClaudeCode, &known)
        {
            ToolNameMeaning::Tools(tools, _) => tools.iter().map(ToString::to_string).collect(),
            ToolNameMeaning::All | ToolNameMeaning::Unavailable(_) | ToolNameMeaning::Unknown => {
                Vec::new()
            }
        };
        assert_eq!(means("mcp__a__x"), ["mcp__a__x"]);
        for all in ["mcp__a", "mcp__a__*"] {
            assert_eq!(means(all), ["mcp__a__x", "mcp__a__y"], "{all}");
        }
        for none in ["mcp__", "mcp__c__*", "mcp__a__*x", "mcp", "mcp__a__z", "mcp__a(x)"] {
            assert!(means(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn no_alias_does_nothing_and_every_target_is_a_stock_tool() {
        for row in TOOL_ALIASES {
            let unavailable = matches!(row.status, Unavailable(_));
            assert_eq!(row.canonical.is_empty(), unavailable, "{}", row.name);
            assert!(row.canonical.iter().all(|name| known().contains(name)), "{}", row.name);
        }
    }

    #[test]
    fn no_name_stands_twice_in_one_dialect() {
        let names: BTreeSet<_> = TOOL_ALIASES.iter().map(|row| (row.dialect, row.name)).collect();
        assert_eq!(names.len(), TOOL_ALIASES.len());
    }

    #[test]
    fn a_scope_that_is_not_enforced_gives_nothing() {
        let meaning =
            |text| WrittenToolName::from_text(text).resolve_meaning(Dialect::ClaudeCode, &known());
        assert!(matches!(meaning("Read(src/**)"), ToolNameMeaning::Unavailable(_)));
        assert!(matches!(meaning("Read(*)"), ToolNameMeaning::Tools(..)));
        assert!(matches!(meaning("Agent(scout, critic)"), ToolNameMeaning::Tools(..)));
        assert!(matches!(meaning("Read(src"), ToolNameMeaning::Unknown));
        assert!(matches!(meaning("*(x)"), ToolNameMeaning::Unavailable(_)));
    }

    #[test]
    fn a_server_has_the_name_of_its_plugin_in_agent_files_too() {
        let known = ["mcp__docs__find", "mcp__other__find"];
        let known = KnownTools::new(known.map(|name| ToolName::new(name).unwrap()));
        let called = BTreeMap::from([("plugin_pilot_docs".to_owned(), "docs".to_owned())]);
        let known = known.with_server_names(&called);
        let means = |name: &str| match WrittenToolName::from_text(name)
            .resolve_meaning(Dialect::ClaudeCode, &known)
        {
            ToolNameMeaning::Tools(tools, _) => {
                tools.iter().map(|tool| tool.as_str().to_owned()).collect()
            }
            _ => Vec::new(),
        };
        for name in
            ["mcp__plugin_pilot_docs__find", "mcp__plugin_pilot_docs__*", "mcp__plugin_pilot_docs"]
        {
            assert_eq!(means(name), ["mcp__docs__find"], "{name}");
        }
        assert!(means("mcp__plugin_other_docs__find").is_empty());
        // A denial by that name takes the same tool away.
        let denied = known.spoken_tools("mcp__plugin_pilot_docs__find");
        assert_eq!(denied.iter().map(ToolName::as_str).collect::<Vec<_>>(), ["mcp__docs__find"]);
    }

    #[test]
    fn a_dialects_own_row_wins() {
        let tools = |dialect| WrittenToolName::from_text("edit").resolve_meaning(dialect, &known());
        let ToolNameMeaning::Tools(copilot, _) = tools(Dialect::Copilot) else { panic!() };
        let ToolNameMeaning::Tools(opencode, _) = tools(Dialect::OpenCode) else { panic!() };
        assert_eq!((copilot.len(), opencode.len()), (2, 1));
    }
}
