//! Claude Code's tools.

use super::ArgumentKind::{Flag, Items, Number, Object, Text, Texts, Word};
use super::{Argument, Becomes, CONTEXT, ForeignTool, Given, PROMPT, SHELL, argument};

const FILE_PATH: Argument =
    argument("file_path", Text, "path", "The file, absolute under `/workspace` or relative to it.")
        .required();

const EDITS: &[Argument] = &[
    argument(
        "old_string",
        Text,
        "old_text",
        "The text to replace, exactly as it stands in the file.",
    )
    .required(),
    argument("new_string", Text, "new_text", "What takes its place.").required(),
    argument("replace_all", Flag, "replace_all", "Replace every occurrence. Default: false."),
];

const TODOS: &[Argument] = &[
    argument("content", Text, "content", "What is to be done.").required(),
    argument("status", Word(STATUSES), "status", "How far it is.").required(),
    argument("activeForm", Text, "activeForm", "How it is called while it is worked on."),
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

const TASK_STATUSES: &[(&str, &str)] = &[
    ("pending", "pending"),
    ("in_progress", "in_progress"),
    ("completed", "completed"),
    ("deleted", "deleted"),
];

const TODO_ID: Argument = argument("taskId", Text, "id", "The task's id.").required();

const ACTIVE_FORM: Argument =
    argument("activeForm", Text, "activeForm", "How it is called while it is worked on.");

const METADATA: Argument = argument("metadata", Object, "", "Further facts.")
    .becomes(Becomes::Nothing("nothing here reads them"));

const QUESTIONS: &[Argument] = &[
    argument("question", Text, "question", "One question, complete in itself.").required(),
    argument("header", Text, "", "A word for it.")
        .becomes(Becomes::Nothing("the question is shown whole")),
    argument("options", Items(OPTIONS), "options", "Answers to choose from."),
    argument("multiSelect", Flag, "", "Whether several may be chosen.")
        .becomes(Becomes::Nothing("the person may answer in words of their own")),
];

/// An option, which here is only its label.
const OPTIONS: &[Argument] = &[
    argument("label", Text, super::SELF, "The answer.").required(),
    argument("description", Text, "", "What it means.")
        .becomes(Becomes::Nothing("an answer is shown by its label")),
];

const OUTPUT_MODES: &[(&str, &str)] =
    &[("files_with_matches", "files_with_matches"), ("content", "content"), ("count", "count")];

const TASK: &[Argument] = &[
    argument("description", Text, "", "The task in a few words.")
        .becomes(Becomes::Nothing("a person sees the task itself")),
    PROMPT,
    CONTEXT,
    argument(
        "subagent_type",
        Text,
        "agent",
        "The name of the agent, from the list in your instructions. Left out: `general-purpose`.",
    ),
    argument(
        "run_in_background",
        Flag,
        "background",
        "True: return at once with an id and go on; you are told when it has ended. Default: false.",
    ),
    argument(
        "isolation",
        Text,
        "isolation",
        "`worktree`: it changes files in a copy of its own, merged into yours when it concludes.",
    ),
];

const TASK_ID: Argument =
    argument("task_id", Text, "id", "The id that the call which started it gave.").required();

const TASK_TEXT: &str = "Hands a task to a subagent and waits for its conclusion, unless \
`run_in_background` is set. Only the conclusion comes back. Several calls in one step run side by \
side.";

pub(super) const TOOLS: &[ForeignTool] = &[
    ForeignTool {
        name: "Read",
        tool: "file_read",
        description: "Reads a text file, with line numbers: each line is its number, a tab, and \
            the text.",
        arguments: &[
            FILE_PATH,
            argument("offset", Number, "offset", "First line to return, from 1."),
            argument("limit", Number, "limit", "Most lines to return. Default: 2000."),
        ],
        given: &[("line_numbers", Given::Text("tab"))],
    },
    ForeignTool {
        name: "Write",
        tool: "file_write",
        description: "Writes a file, in place of what it held; missing directories are made.",
        arguments: &[
            FILE_PATH,
            argument("content", Text, "content", "The whole content.").required(),
        ],
        given: &[("create_dirs", Given::Flag(true))],
    },
    ForeignTool {
        name: "Edit",
        tool: "file_edit",
        description: "Replaces a text in a file. `old_string` must occur once, unless \
            `replace_all` is set: include a line or two around the change to make it unique.",
        arguments: &[FILE_PATH, EDITS[0], EDITS[1], EDITS[2]],
        given: &[],
    },
    ForeignTool {
        name: "MultiEdit",
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
        name: "Glob",
        tool: "file_find",
        description: "Finds files by a glob such as `src/**/*.ts`.",
        arguments: &[
            argument("pattern", Text, "pattern", "The glob.").required(),
            argument("path", Text, "path", "The directory to look in. Default: `/workspace`."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "Grep",
        tool: "file_search",
        description: "Searches the content of files with a regular expression in ripgrep's \
            syntax.",
        arguments: &[
            argument("pattern", Text, "pattern", "The regular expression.").required(),
            argument("path", Text, "path", "The directory or file. Default: `/workspace`."),
            argument("glob", Text, "glob", "Only files that match this glob."),
            argument("type", Text, "file_type", "Only files of this type, such as `rust` or `js`."),
            argument(
                "output_mode",
                Word(OUTPUT_MODES),
                "output_mode",
                "`files_with_matches`, the default, names files; `content` shows lines; `count` \
                 counts them.",
            ),
            argument("-A", Number, "after", "Lines to show after each match."),
            argument("-B", Number, "before", "Lines to show before each match."),
            argument("-C", Number, "context", "Lines to show before and after each match."),
            argument("-i", Flag, "case_insensitive", "Ignore upper and lower case."),
            argument("-n", Flag, "", "Show line numbers.")
                .becomes(Becomes::Nothing("they are always shown")),
            argument("multiline", Flag, "multiline", "Let a match span lines."),
            argument("head_limit", Number, "limit", "Most lines or files to return."),
        ],
        given: &[("output_mode", Given::Text("files_with_matches"))],
    },
    ForeignTool {
        name: "LS",
        tool: "file_list",
        description: "Lists a directory.",
        arguments: &[
            argument("path", Text, "path", "The directory. Default: `/workspace`."),
            argument("ignore", Texts, "ignore", "Globs of entries to leave out."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "Bash",
        tool: "shell",
        description: SHELL,
        arguments: &[
            argument("command", Text, "command", "The command.").required(),
            argument("description", Text, "", "What it does, in a few words.")
                .becomes(Becomes::Nothing("a person sees the command itself")),
            argument("timeout", Number, "", "Milliseconds it may take.")
                .becomes(Becomes::Nothing("the grant's own time limit holds")),
            argument("run_in_background", Flag, "", "Must be false: nothing outlasts its call.")
                .becomes(Becomes::Never("nothing goes on after its call; run it without it")),
        ],
        given: &[],
    },
    ForeignTool {
        name: "NotebookEdit",
        tool: "notebook_edit",
        description: "Replaces, inserts or deletes a cell of a Jupyter notebook.",
        arguments: &[
            argument("notebook_path", Text, "path", "The notebook.").required(),
            argument("cell_id", Text, "cell_id", "The cell; a new one goes after it."),
            argument("cell_number", Number, "cell_number", "The cell by its place, from 0."),
            argument("new_source", Text, "new_source", "The cell's new text."),
            argument("cell_type", Word(CELLS), "cell_type", "What kind of cell."),
            argument("edit_mode", Word(CELL_EDITS), "edit_mode", "Default: `replace`."),
        ],
        given: &[],
    },
    ForeignTool {
        name: "NotebookRead",
        tool: "file_read",
        description: "Reads a Jupyter notebook as the JSON that it is, with line numbers.",
        arguments: &[argument("notebook_path", Text, "path", "The notebook.").required()],
        given: &[("line_numbers", Given::Text("tab"))],
    },
    ForeignTool {
        name: "WebFetch",
        tool: "web_fetch",
        description: "Fetches a page and gives its text.",
        arguments: &[
            argument("url", Text, "url", "The page, an `http` or `https` URL.").required(),
            argument("prompt", Text, "", "What you want to know of it.")
                .becomes(Becomes::Nothing("the page itself comes back, for you to read")),
        ],
        given: &[],
    },
    ForeignTool {
        name: "WebSearch",
        tool: "web_search",
        description: "Searches the web.",
        arguments: &[
            argument("query", Text, "query", "What to search for.").required(),
            argument("allowed_domains", Texts, "", "Only pages of these sites.")
                .becomes(Becomes::Sites { of: "query", only: true }),
            argument("blocked_domains", Texts, "", "No pages of these sites.")
                .becomes(Becomes::Sites { of: "query", only: false }),
        ],
        given: &[],
    },
    ForeignTool {
        name: "Task",
        tool: "spawn_agent",
        description: TASK_TEXT,
        arguments: TASK,
        given: &[],
    },
    ForeignTool {
        name: "Agent",
        tool: "spawn_agent",
        description: TASK_TEXT,
        arguments: TASK,
        given: &[],
    },
    ForeignTool {
        name: "TodoWrite",
        tool: "todo_write",
        description: "Keeps the list of what is to be done. Send the whole list each time.",
        arguments: &[argument("todos", Items(TODOS), "todos", "The whole list.").required()],
        given: &[],
    },
    ForeignTool {
        name: "Skill",
        tool: "use_skill",
        description: "Loads the text of a skill from the list in your instructions.",
        arguments: &[
            argument("skill", Text, "name", "The name of the skill.").required(),
            argument("args", Text, "", "What to apply it to.")
                .becomes(Becomes::Nothing("the skill's text comes back, for you to follow")),
        ],
        given: &[],
    },
    ForeignTool {
        name: "TaskOutput",
        tool: "agent_result",
        description: "Gives the conclusion of a subagent in the background. Waits until it has \
            ended, unless `block` is false.",
        arguments: &[
            TASK_ID,
            argument("block", Flag, "wait", "Default: true."),
            argument("timeout", Number, "", "Milliseconds to wait.")
                .becomes(Becomes::Nothing("the subagent's own time limit holds")),
        ],
        given: &[],
    },
    ForeignTool {
        name: "TaskStop",
        tool: "agent_cancel",
        description: "Ends a subagent in the background. What it has found until then is kept.",
        arguments: &[TASK_ID],
        given: &[],
    },
    ForeignTool {
        name: "TaskCreate",
        tool: "todo_write",
        description: "Adds a task to the list of what is to be done, and gives its id.",
        arguments: &[
            argument("subject", Text, "content", "The task in a few words: what is to be done.")
                .required(),
            argument("description", Text, "detail", "All that is to be known of it."),
            ACTIVE_FORM,
            METADATA,
        ],
        given: &[("action", Given::Text("create"))],
    },
    ForeignTool {
        name: "TaskGet",
        tool: "todo_write",
        description: "Gives one task of the list with all that is known of it.",
        arguments: &[TODO_ID],
        given: &[("action", Given::Text("get"))],
    },
    ForeignTool {
        name: "TaskList",
        tool: "todo_write",
        description: "Gives the list of what is to be done: a line for each task.",
        arguments: &[],
        given: &[("action", Given::Text("list"))],
    },
    ForeignTool {
        name: "TaskUpdate",
        tool: "todo_write",
        description: "Changes a task of the list. Set `status` to `in_progress` before you begin \
            with it and to `completed` when it is done; `deleted` removes it.",
        arguments: &[
            TODO_ID,
            argument("status", Word(TASK_STATUSES), "status", "How far it is."),
            argument("subject", Text, "content", "The task in a few words."),
            argument("description", Text, "detail", "All that is to be known of it."),
            ACTIVE_FORM,
            argument("addBlocks", Texts, "blocks", "The ids of tasks that have to wait for it."),
            argument("addBlockedBy", Texts, "blocked_by", "The ids of tasks it has to wait for."),
            argument("owner", Text, "", "Whose it is.")
                .becomes(Becomes::Nothing("the list is the agent's own")),
            METADATA,
        ],
        given: &[("action", Given::Text("update"))],
    },
    ForeignTool {
        name: "EnterWorktree",
        tool: "worktree",
        description: "Begins a worktree: a copy of your files in the same places. What you and \
            subagents that you start then change stays in it until you leave it.",
        arguments: &[
            argument("name", Text, "name", "Its name. Default: `worktree`."),
            argument("path", Text, "", "An existing worktree.")
                .becomes(Becomes::Never("there is no other worktree to enter here")),
        ],
        given: &[("action", Given::Text("enter"))],
    },
    ForeignTool {
        name: "ExitWorktree",
        tool: "worktree",
        description: "Leaves the worktree. `keep` merges what was changed in it into your files; \
            where both were changed, the worktree's version stands beside. `remove` drops it.",
        arguments: &[
            argument("action", Word(WORKTREE_ENDS), "action", "`keep` or `remove`.").required(),
            argument(
                "discard_changes",
                Flag,
                "discard_changes",
                "For `remove`: drop it although something was changed in it. Default: false.",
            ),
        ],
        given: &[],
    },
    ForeignTool {
        name: "AskUserQuestion",
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

const WORKTREE_ENDS: &[(&str, &str)] = &[("keep", "keep"), ("remove", "remove")];

const CELLS: &[(&str, &str)] = &[("code", "code"), ("markdown", "markdown"), ("raw", "raw")];

const CELL_EDITS: &[(&str, &str)] =
    &[("replace", "replace"), ("insert", "insert"), ("delete", "delete")];
