//! Gemini CLI's tools.

use super::ArgumentKind::{Flag, Items, Number, Text, Texts, Word};
use super::{Argument, Becomes, CONTEXT, ForeignTool, Given, PROMPT, SHELL, argument};

const FILE_PATH: Argument =
    argument("file_path", Text, "path", "The file, absolute under `/workspace` or relative to it.")
        .required();

const DIR_PATH: Argument =
    argument("dir_path", Text, "path", "The directory. Default: `/workspace`.");

const PATTERN: Argument =
    argument("pattern", Text, "pattern", "The regular expression.").required();

const STATUSES: &[(&str, &str)] = &[
    ("pending", "pending"),
    ("in_progress", "in_progress"),
    ("completed", "completed"),
    ("cancelled", "cancelled"),
    ("blocked", "pending"),
];

const TODOS: &[Argument] = &[
    argument("description", Text, "content", "What is to be done.").required(),
    argument("status", Word(STATUSES), "status", "How far it is.").required(),
];

const QUESTIONS: &[Argument] = &[
    argument("question", Text, "question", "One question, complete in itself.").required(),
    argument("header", Text, "", "A word for it.")
        .becomes(Becomes::Nothing("the question is shown whole")),
    argument("type", Text, "", "What kind of answer it wants.")
        .becomes(Becomes::Nothing("the person may answer in words of their own")),
    argument("options", Items(OPTIONS), "options", "Answers to choose from."),
    argument("multiSelect", Flag, "", "Whether several may be chosen.")
        .becomes(Becomes::Nothing("the person may answer in words of their own")),
    argument("placeholder", Text, "", "A text for an empty field.")
        .becomes(Becomes::Nothing("there is no such field")),
];

const OPTIONS: &[Argument] = &[
    argument("label", Text, super::SELF, "The answer.").required(),
    argument("description", Text, "", "What it means.")
        .becomes(Becomes::Nothing("an answer is shown by its label")),
];

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
        name: "write_file",
        tool: "file_write",
        description: "Writes a file, in place of what it held; missing directories are made.",
        arguments: &[
            FILE_PATH,
            argument("content", Text, "content", "The whole content.").required(),
        ],
        given: &[("create_dirs", Given::Flag(true))],
    },
    ForeignTool {
        name: "replace",
        tool: "file_edit",
        description: "Replaces a text in a file. `old_string` must occur once, unless \
            `allow_multiple` is set: include a line or two around the change to make it unique.",
        arguments: &[
            FILE_PATH,
            argument("instruction", Text, "", "What the change is for.")
                .becomes(Becomes::Nothing("the two texts say what changes")),
            argument(
                "old_string",
                Text,
                "old_text",
                "The text to replace, exactly as it stands in the file.",
            )
            .required(),
            argument("new_string", Text, "new_text", "What takes its place.").required(),
            argument(
                "allow_multiple",
                Flag,
                "replace_all",
                "Replace every occurrence. Default: false.",
            ),
        ],
        given: &[],
    },
    ForeignTool {
        name: "list_directory",
        tool: "file_list",
        description: "Lists a directory.",
        arguments: &[
            DIR_PATH,
            argument("ignore", Texts, "ignore", "Globs of entries to leave out."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "glob",
        tool: "file_find",
        description: "Finds files by a glob such as `src/**/*.ts`.",
        arguments: &[
            argument("pattern", Text, "pattern", "The glob.").required(),
            DIR_PATH,
            argument("case_sensitive", Flag, "", "Whether upper and lower case differ.")
                .becomes(Becomes::Nothing("they always do")),
        ],
        given: &[],
    },
    ForeignTool {
        name: "grep_search",
        tool: "file_search",
        description: "Searches the content of files with a regular expression.",
        arguments: &[
            PATTERN,
            DIR_PATH,
            argument("include_pattern", Text, "glob", "Only files that match this glob."),
            argument("total_max_matches", Number, "limit", "Most lines to return. Default: 100."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "search_file_content",
        tool: "file_search",
        description: "Searches the content of files with a regular expression.",
        arguments: &[
            PATTERN,
            DIR_PATH,
            argument("include", Text, "glob", "Only files that match this glob."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "run_shell_command",
        tool: "shell",
        description: SHELL,
        arguments: &[
            argument("command", Text, "command", "The command.").required(),
            argument("description", Text, "", "What it does, in a few words.")
                .becomes(Becomes::Nothing("a person sees the command itself")),
            argument("dir_path", Text, "cwd", "The directory to run it in."),
            argument("is_background", Flag, "", "Whether it goes on after the call.")
                .becomes(Becomes::Never("nothing goes on after its call; run it without it")),
        ],
        given: &[],
    },
    ForeignTool {
        name: "google_web_search",
        tool: "web_search",
        description: "Searches the web.",
        arguments: &[argument("query", Text, "query", "What to search for.").required()],
        given: &[],
    },
    ForeignTool {
        name: "write_todos",
        tool: "todo_write",
        description: "Keeps the list of what is to be done. Send the whole list each time.",
        arguments: &[argument("todos", Items(TODOS), "todos", "The whole list.").required()],
        given: &[],
    },
    ForeignTool {
        name: "invoke_agent",
        tool: "spawn_agent",
        description: "Hands a task to a subagent and waits for its conclusion, which is all that \
            comes back.",
        arguments: &[
            argument(
                "agent_name",
                Text,
                "agent",
                "The name of the agent, from the list in your instructions.",
            )
            .required(),
            PROMPT,
            CONTEXT,
        ],
        given: &[],
    },
    ForeignTool {
        name: "activate_skill",
        tool: "use_skill",
        description: "Loads the text of a skill from the list in your instructions.",
        arguments: &[argument("name", Text, "name", "The name of the skill.").required()],
        given: &[],
    },
    ForeignTool {
        name: "ask_user",
        tool: "clarify",
        description: "Asks the person a question and waits for the answer.",
        arguments: &[argument(
            "questions",
            Items(QUESTIONS),
            "",
            "One question; ask others in other calls.",
        )
        .required()
        .becomes(Becomes::OnlyObject)],
        given: &[],
    },
];
