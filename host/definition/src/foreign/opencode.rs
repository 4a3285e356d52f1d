//! OpenCode's tools.

use super::ArgumentKind::{Flag, Items, Number, Text, Texts, Word};
use super::{Argument, Becomes, CONTEXT, ForeignTool, Given, PROMPT, SHELL, agent, argument};

const FILE_PATH: Argument =
    argument("filePath", Text, "path", "The file, absolute under `/workspace` or relative to it.")
        .required();

const EDITS: &[Argument] = &[
    argument(
        "oldString",
        Text,
        "old_text",
        "The text to replace, exactly as it stands in the file.",
    )
    .required(),
    argument("newString", Text, "new_text", "What takes its place.").required(),
    argument("replaceAll", Flag, "replace_all", "Replace every occurrence. Default: false."),
];

const TODOS: &[Argument] = &[
    argument("content", Text, "content", "What is to be done.").required(),
    argument("status", Word(STATUSES), "status", "How far it is.").required(),
    argument("priority", Text, "", "How urgent it is.")
        .becomes(Becomes::Nothing("the order of the list says it")),
    argument("id", Text, "", "Its name in the list.")
        .becomes(Becomes::Nothing("the whole list is sent each time")),
];

const STATUSES: &[(&str, &str)] = &[
    ("pending", "pending"),
    ("in_progress", "in_progress"),
    ("completed", "completed"),
    ("cancelled", "cancelled"),
];

const QUESTIONS: &[Argument] = &[
    argument("question", Text, "question", "One question, complete in itself.").required(),
    argument("header", Text, "", "A word for it.")
        .becomes(Becomes::Nothing("the question is shown whole")),
    argument("options", Items(OPTIONS), "options", "Answers to choose from."),
    argument("multiple", Flag, "", "Whether several may be chosen.")
        .becomes(Becomes::Nothing("the person may answer in words of their own")),
];

const OPTIONS: &[Argument] = &[
    argument("label", Text, super::SELF, "The answer.").required(),
    argument("description", Text, "", "What it means.")
        .becomes(Becomes::Nothing("an answer is shown by its label")),
];

const FORMATS: &[(&str, &str)] = &[("text", ""), ("markdown", ""), ("html", "")];

pub(super) const TOOLS: &[ForeignTool] = &[
    ForeignTool {
        name: "read",
        tool: "file_read",
        description: "Reads a text file, with line numbers: each line is its number in five \
            digits, a bar, and the text.",
        arguments: &[
            FILE_PATH,
            argument("offset", Number, "offset", "First line to return, from 1."),
            argument("limit", Number, "limit", "Most lines to return. Default: 2000."),
        ],
        given: &[("line_numbers", Given::Text("bar"))],
    },
    ForeignTool {
        name: "write",
        tool: "file_write",
        description: "Writes a file, in place of what it held; missing directories are made.",
        arguments: &[
            FILE_PATH,
            argument("content", Text, "content", "The whole content.").required(),
        ],
        given: &[("create_dirs", Given::Flag(true))],
    },
    ForeignTool {
        name: "edit",
        tool: "file_edit",
        description: "Replaces a text in a file. `oldString` must occur once, unless \
            `replaceAll` is set: include a line or two around the change to make it unique.",
        arguments: &[FILE_PATH, EDITS[0], EDITS[1], EDITS[2]],
        given: &[],
    },
    ForeignTool {
        name: "multiedit",
        tool: "file_edit",
        description: "Replaces several texts in one file, in the order given, each in the result \
            of the one before: all of them or, if one cannot be done, none.",
        arguments: &[
            FILE_PATH,
            argument("edits", Items(EDITS), "edits", "The replacements.").required(),
        ],
        given: &[],
    },
    ForeignTool {
        name: "glob",
        tool: "file_find",
        description: "Finds files by a glob such as `src/**/*.ts`.",
        arguments: &[
            argument("pattern", Text, "pattern", "The glob.").required(),
            argument("path", Text, "path", "The directory to look in. Default: `/workspace`."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "grep",
        tool: "file_search",
        description: "Searches the content of files with a regular expression.",
        arguments: &[
            argument("pattern", Text, "pattern", "The regular expression.").required(),
            argument("path", Text, "path", "The directory or file. Default: `/workspace`."),
            argument("include", Text, "glob", "Only files that match this glob."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "list",
        tool: "file_list",
        description: "Lists a directory.",
        arguments: &[
            argument("path", Text, "path", "The directory. Default: `/workspace`."),
            argument("ignore", Texts, "ignore", "Globs of entries to leave out."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "bash",
        tool: "shell",
        description: SHELL,
        arguments: &[
            argument("command", Text, "command", "The command.").required(),
            argument("description", Text, "", "What it does, in a few words.")
                .becomes(Becomes::Nothing("a person sees the command itself")),
            argument("timeout", Number, "", "Milliseconds it may take.")
                .becomes(Becomes::Nothing("the grant's own time limit holds")),
            argument("workdir", Text, "cwd", "The directory to run it in."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "webfetch",
        tool: "web_fetch",
        description: "Fetches a page and gives its text as markdown.",
        arguments: &[
            argument("url", Text, "url", "The page, an `http` or `https` URL.").required(),
            argument("format", Word(FORMATS), "", "How to give it.")
                .becomes(Becomes::Nothing("a page is always given as markdown")),
            argument("timeout", Number, "", "Seconds it may take.")
                .becomes(Becomes::Nothing("the tool's own time limit holds")),
        ],
        given: &[],
    },
    ForeignTool {
        name: "websearch",
        tool: "web_search",
        description: "Searches the web.",
        arguments: &[
            argument("query", Text, "query", "What to search for.").required(),
            argument("numResults", Number, "count", "Most results to return."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "task",
        tool: "spawn_agent",
        description: "Hands a task to a subagent and waits for its conclusion, which is all that \
            comes back. Several calls in one step run side by side.",
        arguments: &[
            argument("description", Text, "", "The task in a few words.")
                .becomes(Becomes::Nothing("a person sees the task itself")),
            PROMPT,
            CONTEXT,
            agent("subagent_type"),
        ],
        given: &[],
    },
    ForeignTool {
        name: "todowrite",
        tool: "todo_write",
        description: "Keeps the list of what is to be done. Send the whole list each time.",
        arguments: &[argument("todos", Items(TODOS), "todos", "The whole list.").required()],
        given: &[],
    },
    ForeignTool {
        name: "skill",
        tool: "use_skill",
        description: "Loads the text of a skill from the list in your instructions.",
        arguments: &[argument("name", Text, "name", "The name of the skill.").required()],
        given: &[],
    },
    ForeignTool {
        name: "question",
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
