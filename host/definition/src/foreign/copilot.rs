//! Copilot's tools. The files name a tool by its purpose, for example `edit/editFiles`; the models use the
//! names in this table.

use super::ArgumentKind::{Flag, Items, Number, Text, Texts, Word};
use super::{Argument, Becomes, CONTEXT, ForeignTool, Given, PROMPT, SHELL, agent, argument};

const FILE_PATH: Argument =
    argument("filePath", Text, "path", "The file, absolute under `/workspace` or relative to it.")
        .required();

const TODOS: &[Argument] = &[
    argument("title", Text, "content", "What is to be done.").required(),
    argument("status", Word(STATUSES), "status", "How far it is.").required(),
    argument("description", Text, "", "More about it.")
        .becomes(Becomes::Nothing("an item is shown by its title")),
    argument("id", Number, "", "Its number in the list.")
        .becomes(Becomes::Nothing("the whole list is sent each time")),
];

const STATUSES: &[(&str, &str)] =
    &[("not-started", "pending"), ("in-progress", "in_progress"), ("completed", "completed")];

const CELL_EDITS: &[(&str, &str)] =
    &[("insert", "insert"), ("delete", "delete"), ("edit", "replace")];

pub(super) const TOOLS: &[ForeignTool] = &[
    ForeignTool {
        name: "read_file",
        tool: "file_read",
        description: "Reads a text file.",
        arguments: &[
            FILE_PATH,
            argument("offset", Number, "offset", "First line to return, from 1."),
            argument("limit", Number, "limit", "Most lines to return. Default: 2000."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "create_file",
        tool: "file_write",
        description: "Writes a file; missing directories are made.",
        arguments: &[
            FILE_PATH,
            argument("content", Text, "content", "The whole content.").required(),
        ],
        given: &[("create_dirs", Given::Flag(true))],
    },
    ForeignTool {
        name: "replace_string_in_file",
        tool: "file_edit",
        description: "Replaces a text in a file. `oldString` must occur once: include a line or \
            two around the change to make it unique.",
        arguments: &[
            FILE_PATH,
            argument("oldString", Text, "old_text", "The text to replace, exactly as it stands.")
                .required(),
            argument("newString", Text, "new_text", "What takes its place.").required(),
        ],
        given: &[],
    },
    ForeignTool {
        name: "edit_notebook_file",
        tool: "notebook_edit",
        description: "Replaces, inserts or deletes a cell of a Jupyter notebook.",
        arguments: &[
            FILE_PATH,
            argument("editType", Word(CELL_EDITS), "edit_mode", "What to do.").required(),
            argument("cellId", Text, "cell_id", "The cell; a new one goes after it."),
            argument("newCode", Text, "new_source", "The cell's new text."),
            argument("language", Text, "", "The language of the cell.")
                .becomes(Becomes::Nothing("the notebook has one language")),
        ],
        given: &[],
    },
    ForeignTool {
        name: "grep_search",
        tool: "file_search",
        description: "Searches the content of files for a text or a regular expression.",
        arguments: &[
            argument("query", Text, "pattern", "What to search for.").required(),
            argument("isRegexp", Flag, "", "Whether `query` is a regular expression.")
                .becomes(Becomes::IsPattern("pattern")),
            argument("includePattern", Text, "glob", "Only files that match this glob."),
            argument("maxResults", Number, "limit", "Most lines to return."),
        ],
        given: &[("case_insensitive", Given::Flag(true))],
    },
    ForeignTool {
        name: "file_search",
        tool: "file_find",
        description: "Finds files by a glob such as `src/**/*.ts`.",
        arguments: &[
            argument("query", Text, "pattern", "The glob.").required(),
            argument("maxResults", Number, "limit", "Most paths to return."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "list_dir",
        tool: "file_list",
        description: "Lists a directory.",
        arguments: &[argument("path", Text, "path", "The directory.").required()],
        given: &[],
    },
    ForeignTool {
        name: "run_in_terminal",
        tool: "shell",
        description: SHELL,
        arguments: &[
            argument("command", Text, "command", "The command.").required(),
            argument("explanation", Text, "", "What it does, in a sentence.")
                .becomes(Becomes::Nothing("a person sees the command itself")),
            argument("isBackground", Flag, "", "Must be false: nothing outlasts its call.")
                .becomes(Becomes::Never("nothing goes on after its call; run it without it")),
        ],
        given: &[],
    },
    ForeignTool {
        name: "fetch_webpage",
        tool: "web_fetch",
        description: "Fetches a page and gives its text.",
        arguments: &[
            argument("urls", Texts, "", "The page; fetch others in other calls.")
                .required()
                .becomes(Becomes::OnlyElement("url")),
            argument("query", Text, "", "What to look for in it.")
                .becomes(Becomes::Nothing("the page itself comes back, for you to read")),
        ],
        given: &[],
    },
    ForeignTool {
        name: "runSubagent",
        tool: "spawn_agent",
        description: "Hands a task to a subagent and waits for its conclusion, which is all that \
            comes back.",
        arguments: &[
            PROMPT,
            CONTEXT,
            argument("description", Text, "", "The task in a few words.")
                .becomes(Becomes::Nothing("a person sees the task itself")),
            agent("agentName"),
        ],
        given: &[],
    },
    ForeignTool {
        name: "manage_todo_list",
        tool: "todo_write",
        description: "Keeps the list of what is to be done. Send the whole list each time.",
        arguments: &[
            argument("todoList", Items(TODOS), "todos", "The whole list.").required(),
            argument("operation", Text, "", "What to do with the list.")
                .becomes(Becomes::Nothing("the whole list is written each time")),
        ],
        given: &[],
    },
];
